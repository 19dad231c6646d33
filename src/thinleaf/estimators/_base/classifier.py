"""What every classifier of this library has in common, whatever it is made of."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from thinleaf._dtypes import AccumArray


class SparseInputClassifier(ClassifierMixin):  # type: ignore[misc]
    """A classifier of dense and sparse rows that gives probabilities."""

    @abstractmethod
    def predict_proba(self, X: Any) -> AccumArray:
        """Return the probability of every class, of shape (n_rows, n_classes)."""

    def predict_log_proba(self, X: Any) -> AccumArray:
        """Return the logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            out: AccumArray = np.log(self.predict_proba(X))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

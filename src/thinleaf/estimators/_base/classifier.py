"""What every classifier of this library has in common, whatever it is made of."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral
from operator import is_not
from typing import Any, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import PARAM
from thinleaf.arrays.checks import check_real
from thinleaf.arrays.rows import Rows, as_rows
from thinleaf.model.predictor import Predictions

Fit = TypeVar("Fit", bound=Callable[..., Any])
Made = TypeVar("Made")


def all_or_nothing(fit: Fit) -> Fit:
    """Let a fit that fails or is interrupted leave the estimator as it was before."""

    @functools.wraps(fit)
    def wrapper(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **options)
        except BaseException:
            go_back(self, before)
            raise

    return cast(Fit, wrapper)


def go_back(estimator: Any, before: dict[str, Any]) -> None:
    """Give an estimator the attributes that it had, and no others."""
    vars(estimator).clear()
    vars(estimator).update(before)


class SparseInputClassifier(Predictions, ClassifierMixin):  # type: ignore[misc]
    """A classifier of dense and sparse rows, which scikit-learn validates."""

    @all_or_nothing
    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Train on labelled rows.

        A fit that fails, or is interrupted before there is a model, leaves the estimator as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels: integers or strings.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        self._fit(X, y, sample_weight)
        return self

    @abstractmethod
    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train with parameters that are valid."""

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        check_real(X)
        return as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM))

    @property
    def _n_threads(self) -> int:  # type: ignore[override]
        n_jobs = getattr(self, "n_jobs", None)
        return int(n_jobs) if isinstance(n_jobs, Integral) else 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_MADE: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Any]] = WeakKeyDictionary()


def made_once(estimator: Any, parts: tuple[Any, ...], make: Callable[[], Made]) -> Made:
    """Return what is made of some parts of an estimator, made anew only if one is another object.

    It is kept beside the estimator, not in it: predictions leave its attributes as they are, and
    copies and pickles do without.
    """
    kept = _MADE.get(estimator)
    if kept is None or len(kept[0]) != len(parts) or any(map(is_not, kept[0], parts)):
        kept = _MADE[estimator] = (parts, make())
    return cast(Made, kept[1])

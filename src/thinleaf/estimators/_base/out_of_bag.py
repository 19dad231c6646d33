"""The error of a growing forest on rows that its trees do not know: out of bag, or held out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, IndexArray
from thinleaf.arrays.ragged import offsets
from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier


class WeightedRows(NamedTuple):
    """Rows with class ids and weights."""

    X: Any
    y: IndexArray
    weight: AccumArray

    def with_all(self, n_classes: int) -> WeightedRows:
        """Return the rows with one of no weight for each class that they lack.

        An estimator takes its classes from the labels, those of such rows too.
        """
        absent = np.setdiff1d(np.arange(n_classes, dtype=INDEX), self.y)
        if absent.size == 0:
            return self
        again = np.concatenate([np.arange(self.y.size), np.zeros(absent.size, dtype=INDEX)])
        return WeightedRows(
            self.X[again],
            np.concatenate([self.y, absent]),
            np.concatenate([self.weight, np.zeros(absent.size)]),
        )


class Votes:
    """What trees say of rows that they were not trained on, and the errors as trees are added.

    Votes are the probabilities of the classes in a row's leaf.
    """

    def __init__(self, rows: WeightedRows, n_classes: int) -> None:
        self._rows = rows
        self._sum = sp.csr_array((rows.y.size, n_classes), dtype=ACCUM)
        self._seen = np.zeros(rows.y.size, dtype=np.bool_)
        self.history: list[dict[str, Any]] = []

    def add(self, tree: BaseTaoClassifier, unseen: IndexArray) -> None:
        """Add the votes of a tree on some rows."""
        X, y, weight = self._rows
        P = tree._packed_form().predict_proba_sparse(X[unseen])
        sizes = np.zeros(y.size, dtype=P.indptr.dtype)
        sizes[unseen] = np.diff(P.indptr)
        placed = sp.csr_array(
            (P.data, P.indices, offsets(sizes, sizes.dtype)), shape=self._sum.shape
        )
        self._sum = self._sum + placed
        self._seen[unseen] = True
        judged = self._seen & (weight > 0.0)
        best = np.asarray(self._sum.argmax(axis=1)).ravel()
        error = None
        if judged.any():
            error = float(np.average(best[judged] != y[judged], weights=weight[judged]))
        self.history.append({"n_trees": len(self.history) + 1, "error": error})

    @property
    def best(self) -> int:
        """How many trees had the lowest error first."""
        errors = [entry["error"] for entry in self.history]
        known = [np.inf if error is None else error for error in errors]
        return 1 + int(np.argmin(known)) if min(known, default=np.inf) < np.inf else len(known)

"""The predictor of models that are no trees and score every class: MACH and double sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.rows import Rows, n_rows_of, take_rows
from thinleaf.model.predictor import Predictor

_MAX_SCORES = 1 << 22
"""Scores that are held at a time."""


class ScoringPredictor(Predictor):
    """Answers by a score of every class; of equal scores, the class that sorts first wins.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
    n_features : int
    scores : callable
        Returns a score of every class, of shape (n_rows, n_classes), for some rows.
    as_probabilities : callable
        Returns probabilities in the same order as the scores.
    nbytes : int
    """

    def __init__(
        self,
        labels: AnyArray,
        n_features: int,
        scores: Callable[[Rows], AccumArray],
        as_probabilities: Callable[[AccumArray], AccumArray],
        nbytes: int,
    ) -> None:
        self.labels, self.n_features, self._nbytes = labels, n_features, nbytes
        self._scores, self._as_probabilities = scores, as_probabilities

    @cached_property
    def label_list(self) -> list[Any]:  # type: ignore[override]
        """The labels as Python values."""
        return self.labels.tolist()  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return self._nbytes

    def top_class(self, rows: Rows, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        best: IndexArray = np.concatenate([s.argmax(axis=1) for _, s in self._parts(rows)])
        return best

    def top_k(self, rows: Rows, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k classes with the highest scores and their probabilities, best first."""
        ids, p = [], []
        for _, scores in self._parts(rows):
            ids.append(np.argsort(-scores, axis=1, kind="stable")[:, :k])
            p.append(np.take_along_axis(self._as_probabilities(scores), ids[-1], axis=1))
        return np.concatenate(ids), np.concatenate(p)

    def probabilities(self, rows: Rows, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        return np.concatenate([self._as_probabilities(scores) for _, scores in self._parts(rows)])

    def probability_of(
        self, rows: Rows, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row; none is outside."""
        p = np.empty(ids.size, dtype=ACCUM)
        for at, scores in self._parts(rows):
            P = self._as_probabilities(scores)
            p[at] = P[np.arange(P.shape[0]), ids[at]]
        return p

    def _parts(self, rows: Rows) -> Iterator[tuple[slice, AccumArray]]:
        """Yield the scores of some rows after the other, so that they need not all fit."""
        n_rows, step = n_rows_of(rows), max(1, _MAX_SCORES // self.labels.size)
        for begin in range(0, n_rows, step):
            at = slice(begin, min(begin + step, n_rows))
            yield at, self._scores(take_rows(rows, np.arange(at.start, at.stop)))

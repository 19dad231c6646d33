"""What classifiers do that are no trees and score every class: MACH and double sampling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray
from thinleaf.arrays.checks import check_top_k, ids_of_rows
from thinleaf.arrays.rows import CSR, Rows, as_rows, dense_row, n_rows_of, pairs, take_rows
from thinleaf.estimators._base.classifier import SparseInputClassifier

_MAX_SCORES = 1 << 22
"""Scores that are held at a time."""


class BaseScoringClassifier(SparseInputClassifier, BaseEstimator):  # type: ignore[misc]
    """Predictions from a score of every class; subclasses compute it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    classes_: AnyArray
    n_features_in_: int

    @abstractmethod
    def _scores(self, X: Rows) -> AccumArray:
        """Return a score of every class, of shape (n_rows, n_classes); the highest wins."""

    @abstractmethod
    def _as_probabilities(self, scores: AccumArray) -> AccumArray:
        """Return probabilities in the same order as the scores."""

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row; of equal scores, that of the class that sorts first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        best = [scores.argmax(axis=1) for _, scores in self._parts(self._rows(X))]
        labels: AnyArray = self.classes_[np.concatenate(best)]
        return labels

    def predict_one(self, x: Any, values: Any = None) -> Any:
        """Return the label of one sample; only its width is checked.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            A dense row; or, with ``values``, the ascending indices of the nonzero features.
        values : ndarray of the shape of ``x``, optional

        Returns
        -------
        label
        """
        check_is_fitted(self)
        rows: Rows
        if values is None:
            rows = dense_row(x)[None]
            width = rows.shape[1]
            fits = width == self.n_features_in_
        else:
            indices, values = pairs(x, values)
            width = int(indices.max(initial=-1)) + 1
            fits = width <= self.n_features_in_ and int(indices.min(initial=0)) >= 0
            if indices.size != values.size:
                raise ValueError(f"{indices.size} indices, but {values.size} values")
            ends = np.array([0, indices.size], dtype=INDEX)
            rows = CSR(ends, indices, values, self.n_features_in_)
        if not fits:
            raise ValueError(
                f"the sample has {width} features, but {type(self).__name__} was fitted to "
                f"{self.n_features_in_}"
            )
        return self.classes_[self._scores(rows).argmax()]

    def predict_proba(self, X: Any) -> AccumArray:
        """Return the probability of every class; rows sum to one.

        Returns
        -------
        P : ndarray of shape (n_rows, n_classes)
        """
        parts = [self._as_probabilities(scores) for _, scores in self._parts(self._rows(X))]
        return np.concatenate(parts)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` classes with the highest scores and their probabilities, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        k : int

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        probabilities : ndarray of shape (n_rows, k)
        """
        check_is_fitted(self)
        check_top_k(k, self.classes_.size)
        ids, p = [], []
        for _, scores in self._parts(self._rows(X)):
            ids.append(np.argsort(-scores, axis=1, kind="stable")[:, :k])
            p.append(np.take_along_axis(self._as_probabilities(scores), ids[-1], axis=1))
        return self.classes_[np.concatenate(ids)], np.concatenate(p)

    def label_proba(self, X: Any, y: npt.ArrayLike) -> AccumArray:
        """Return the probability of one given label for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Known labels.

        Returns
        -------
        p : ndarray of shape (n_rows,)
        """
        rows = self._rows(X)
        ids = ids_of_rows(self.classes_, y, n_rows_of(rows))
        p = np.empty(ids.size, dtype=ACCUM)
        for at, scores in self._parts(rows):
            P = self._as_probabilities(scores)
            p[at] = P[np.arange(P.shape[0]), ids[at]]
        return p

    def _parts(self, rows: Rows) -> Iterator[tuple[slice, AccumArray]]:
        """Yield the scores of some rows after the other, so that they need not all fit."""
        n_rows, step = n_rows_of(rows), max(1, _MAX_SCORES // self.classes_.size)
        for begin in range(0, n_rows, step):
            at = slice(begin, min(begin + step, n_rows))
            yield at, self._scores(take_rows(rows, np.arange(at.start, at.stop)))

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM))

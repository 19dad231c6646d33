"""What every tree classifier does once it has a tree: predict."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray, OffsetArray
from thinleaf.estimators.inputs import as_rows, class_ids
from thinleaf.inference import leaf_of_rows, leaf_scores, route
from thinleaf.kernels.rows import Rows
from thinleaf.metrics import mean_flops
from thinleaf.probability import Backoff, ragged_argmax, ragged_softmax, spread
from thinleaf.tree import Tree


class BaseTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction with a fitted ``tree_``; subclasses fit it.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray of shape (n_classes,)
    backoff_ : Backoff or None
        If None, classes outside a leaf get ``epsilon_`` before renormalising.
    epsilon_ : float
    """

    tree_: Tree
    classes_: AnyArray
    backoff_: Backoff | None
    epsilon_: float

    def predict(self, X: Any) -> AnyArray:
        """Return the top class of the leaf that each row reaches.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        ptr, scores, leaves = self._score(self._rows(X))
        class_ids = self._slots(leaves, ptr, ragged_argmax(ptr, scores))
        return self.classes_[class_ids]

    def predict_proba(self, X: Any) -> AccumArray:
        """Return the probability of every class; rows sum to one.

        With many classes the result is large: prefer ``predict_topk`` or ``label_proba``.

        Returns
        -------
        P : ndarray of shape (n_rows, n_classes)
        """
        ptr, scores, leaves = self._score(self._rows(X))
        P = np.empty((leaves.size, self.classes_.size), dtype=ACCUM)
        probabilities = ragged_softmax(ptr, scores)
        for node, inside, outside in self._spread(leaves):
            classes = self.tree_.leaf(node).classes
            rows = np.flatnonzero(leaves == node)
            P[rows] = outside
            P[np.ix_(rows, classes)] = inside * probabilities[_block(ptr, rows, classes.size)]
        return P

    def predict_log_proba(self, X: Any) -> AccumArray:
        """Return the logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            out: AccumArray = np.log(self.predict_proba(X))
        return out

    def predict_topk(self, X: Any, k: int = 5) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable classes and their probabilities, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        k : int

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        probabilities : ndarray of shape (n_rows, k)
            As in ``predict_proba``, without ever making that matrix.
        """
        X = self._rows(X)
        if not isinstance(k, Integral) or not 1 <= k <= self.classes_.size:
            raise ValueError(f"k must be an integer in 1..{self.classes_.size}, got {k!r}")
        ptr, scores, leaves = self._score(X)
        probabilities = ragged_softmax(ptr, scores)
        top = np.empty((leaves.size, k), dtype=INDEX)
        top_p = np.empty((leaves.size, k), dtype=ACCUM)
        for node, inside, outside in self._spread(leaves):
            classes = self.tree_.leaf(node).classes
            rows = np.flatnonzero(leaves == node)
            others = _best_others(outside, classes, self._prior(), k)
            candidates = np.concatenate([classes, others])
            p = np.empty((rows.size, candidates.size), dtype=ACCUM)
            p[:, : classes.size] = inside * probabilities[_block(ptr, rows, classes.size)]
            p[:, classes.size :] = outside[others]
            best = np.argsort(-p, axis=1, kind="stable")[:, :k]
            top[rows] = candidates[best]
            top_p[rows] = np.take_along_axis(p, best, axis=1)
        return self.classes_[top], top_p

    def label_proba(self, X: Any, y: npt.ArrayLike, *, smooth: bool = True) -> AccumArray:
        """Return the probability of one given label for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Known labels.
        smooth : bool
            False leaves classes outside a leaf at zero: what coverage and the papers' perplexity
            are computed from.

        Returns
        -------
        p : ndarray of shape (n_rows,)
        """
        X = self._rows(X)
        ptr, scores, leaves = self._score(X)
        ids = class_ids(self.classes_, np.asarray(y))
        if ids.shape != leaves.shape:
            raise ValueError(f"y must have one label a row ({leaves.size}), got {ids.shape}")
        probabilities = ragged_softmax(ptr, scores)
        out = np.zeros(leaves.size, dtype=ACCUM)
        for node, inside, outside in self._spread(leaves, smooth):
            classes = self.tree_.leaf(node).classes
            rows = np.flatnonzero(leaves == node)
            slot = np.minimum(np.searchsorted(classes, ids[rows]), classes.size - 1)
            held = classes[slot] == ids[rows]
            out[rows] = np.where(held, inside * probabilities[ptr[rows] + slot], outside[ids[rows]])
        return out

    def n_absent(self, X: Any) -> IndexArray:
        """Return how many classes the leaf that each row reaches lacks."""
        leaves = self.apply(X)
        sizes = np.diff(self.tree_.class_ptr)[leaves]
        return (self.classes_.size - sizes).astype(INDEX)

    def apply(self, X: Any) -> IndexArray:
        """Return the node of the leaf that each row reaches.

        Returns
        -------
        leaves : ndarray of shape (n_rows,)
        """
        X = self._rows(X)
        return leaf_of_rows(self.tree_, route(self.tree_, X))

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction; see :mod:`thinleaf.metrics`."""
        rows = self._rows(X)
        return mean_flops(self.tree_, rows)

    # -- shared steps ------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM))

    def _score(self, X: Rows) -> tuple[OffsetArray, AnyArray, IndexArray]:
        return leaf_scores(self.tree_, X, route(self.tree_, X))

    def _slots(self, leaves: IndexArray, ptr: OffsetArray, at: OffsetArray) -> IndexArray:
        """Return the class ids of positions in ragged scores."""
        ids: IndexArray = self.tree_.class_ids[self.tree_.class_ptr[leaves] + at - ptr[:-1]]
        return ids

    def _spread(
        self, leaves: IndexArray, smooth: bool = True
    ) -> Iterator[tuple[int, float, AccumArray]]:
        if smooth:
            return spread(self.tree_, leaves, self.backoff_, self.epsilon_)
        return spread(self.tree_, leaves, None, 0.0)

    def _prior(self) -> AccumArray:
        """Return what ranks classes of probability zero."""
        if self.backoff_ is not None:
            return self.backoff_.prior
        return np.bincount(self.tree_.class_ids, minlength=self.classes_.size).astype(ACCUM)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _block(ptr: OffsetArray, rows: AnyArray, k: int) -> AnyArray:
    """Return where the k scores of each row stand, of shape (n_rows, k)."""
    return ptr[rows][:, None] + np.arange(k)


def _best_others(outside: AccumArray, classes: IndexArray, prior: AccumArray, k: int) -> IndexArray:
    """Return the k most probable classes that a leaf lacks; ties and zeros by their frequency."""
    absent = np.ones(outside.size, dtype=np.bool_)
    absent[classes] = False
    ids = np.flatnonzero(absent)
    ranked = np.lexsort((ids, -prior[ids], -outside[ids]))[:k]
    return ids[ranked].astype(INDEX)

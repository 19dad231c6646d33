"""The plain values that a tree is made of: routers and leaves, for solvers and for people.

A leaf that was trained on sparse rows has a weight for few of its pairs of feature and class. It is
kept as a :class:`SparseLeaf` where that is smaller; ``weights`` is the whole block all the same,
made when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, SLOT, IndexArray, ParamArray, SlotArray

MOST_SLOTS = int(np.iinfo(SLOT).max) + 1
"""The most classes of a leaf whose slots can be counted."""


@dataclass(frozen=True)
class Router:
    """A sparse hyperplane: a row goes right if ``weights·x[features] + bias ≥ 0``, else left."""

    features: IndexArray
    weights: ParamArray
    bias: float

    @classmethod
    def constant(cls, side: int) -> Router:
        """Return the router that sends every row to child ``side``."""
        return cls(np.empty(0, INDEX), np.empty(0, PARAM), 1.0 if side else -1.0)


@dataclass(frozen=True)
class Leaf:
    """A softmax over a few classes.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Ascending class ids.
    features : ndarray of shape (n_used,)
        Ascending ids of the features with a nonzero weight.
    weights : ndarray of shape (n_used, k)
    bias : ndarray of shape (k,)
    """

    classes: IndexArray
    features: IndexArray
    weights: ParamArray
    bias: ParamArray

    @classmethod
    def constant(cls, class_id: int) -> Leaf:
        """Return the leaf that always predicts one class."""
        return cls(
            np.array([class_id], INDEX),
            np.empty(0, INDEX),
            np.empty((0, 1), PARAM),
            np.zeros(1, PARAM),
        )

    @property
    def stored(self) -> ParamArray:
        """The weights that are kept, in one axis; others are zero."""
        return self.weights.ravel()

    @property
    def n_weights(self) -> int:
        """Number of pairs of a feature and a class."""
        return self.features.size * self.classes.size

    def nonzero(self) -> tuple[IndexArray, SlotArray, ParamArray]:
        """Return how many weights each feature has, and the slots and values of all of them."""
        flat, k = self.weights.ravel(), self.classes.size
        at = np.flatnonzero(flat != 0.0)  # far quicker than of two axes
        rows = at // k
        sizes = np.bincount(rows, minlength=self.features.size).astype(INDEX)
        return sizes, (at - rows * k).astype(SLOT), flat[at]

    def scaled(self, factor: float) -> Leaf:
        """Return the leaf with its scores multiplied by a factor."""
        weights, bias = (self.weights * factor).astype(PARAM), (self.bias * factor).astype(PARAM)
        return Leaf(self.classes, self.features, weights, bias)

    def compact(self) -> Leaf:
        """Return the leaf in the form that takes fewer bytes."""
        if self.classes.size > MOST_SLOTS:
            return self
        n_entries = int(np.count_nonzero(self.weights))
        per_entry, per_row = np.dtype(PARAM).itemsize + np.dtype(SLOT).itemsize, 4
        if per_entry * n_entries + per_row * self.features.size >= self.weights.nbytes:
            return self
        return SparseLeaf(self.classes, self.features, *self.nonzero(), self.bias)


class SparseLeaf(Leaf):
    """A leaf that keeps only the weights that are not zero.

    Attributes
    ----------
    row_sizes : ndarray of shape (n_used,)
        Number of weights of each feature.
    slots : ndarray of shape (n_entries,)
        The class of each weight, as its position in ``classes``; ascending within a feature.
    values : ndarray of shape (n_entries,)
    """

    row_sizes: IndexArray
    slots: SlotArray
    values: ParamArray

    def __init__(
        self,
        classes: IndexArray,
        features: IndexArray,
        row_sizes: IndexArray,
        slots: SlotArray,
        values: ParamArray,
        bias: ParamArray,
    ) -> None:
        own = {
            "classes": classes, "features": features, "row_sizes": row_sizes,
            "slots": slots, "values": values, "bias": bias,
        }  # fmt: skip
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @property
    def weights(self) -> ParamArray:
        """The weights as one block of shape (n_used, k)."""
        block = np.zeros((self.features.size, self.classes.size), dtype=PARAM)
        rows = np.repeat(np.arange(self.features.size), self.row_sizes)
        block[rows, self.slots] = self.values
        return block

    @property
    def stored(self) -> ParamArray:
        """The weights that are kept, in one axis; others are zero."""
        return self.values

    def nonzero(self) -> tuple[IndexArray, SlotArray, ParamArray]:
        """Return how many weights each feature has, and the slots and values of all of them."""
        if np.all(self.values):
            return self.row_sizes, self.slots, self.values
        return Leaf(self.classes, self.features, self.weights, self.bias).nonzero()

    def scaled(self, factor: float) -> SparseLeaf:
        """Return the leaf with its scores multiplied by a factor."""
        values, bias = (self.values * factor).astype(PARAM), (self.bias * factor).astype(PARAM)
        return SparseLeaf(self.classes, self.features, self.row_sizes, self.slots, values, bias)

    def compact(self) -> Leaf:
        """Return the leaf itself."""
        return self

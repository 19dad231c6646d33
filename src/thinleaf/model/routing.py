"""Running rows through a tree: which leaf they reach, what it scores, what that costs.

These functions allocate; the kernels fill. They serve training, metrics and estimators alike.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    NO_CHILD,
    PARAM,
    AccumArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.rows import Rows, n_features_of, n_rows_of
from thinleaf.model.kernels.leaf_losses import group_losses
from thinleaf.model.kernels.partition import route_rows, score_router
from thinleaf.model.tree import Leaf, Router, Tree


@dataclass(frozen=True)
class Reach:
    """Which rows reach which node: ``rows[order[begin[i]:end[i]]]`` for node ``i``."""

    rows: IndexArray
    order: IndexArray
    begin: IndexArray
    end: IndexArray

    def positions(self, node: int) -> IndexArray:
        """Return the positions in ``rows`` that reach a node: the left child's come first."""
        return self.order[self.begin[node] : self.end[node]]

    def of(self, node: int) -> IndexArray:
        """Return the rows that reach a node: its reach set."""
        return self.rows[self.positions(node)]

    @cached_property
    def sizes(self) -> IndexArray:
        """Number of rows that reach each node."""
        return self.end - self.begin


class _Scratch(threading.local):
    """Memory of a thread for all features, as kernels leave it: else each node would clear it."""

    def __init__(self) -> None:
        self._weights = np.empty(0, dtype=PARAM)
        self._positions = np.empty(0, dtype=INDEX)

    def weights(self, n_features: int) -> ParamArray:
        """Return zeros."""
        if self._weights.size < n_features:
            self._weights = np.zeros(n_features, dtype=PARAM)
        return self._weights[:n_features]

    def positions(self, n_features: int) -> IndexArray:
        """Return -1 for each feature."""
        if self._positions.size < n_features:
            self._positions = np.full(n_features, -1, dtype=INDEX)
        return self._positions[:n_features]


_SCRATCH = _Scratch()


def all_rows(X: Rows) -> IndexArray:
    """Return the ids of all rows."""
    return np.arange(n_rows_of(X), dtype=INDEX)


def route(tree: Tree, X: Rows, rows: IndexArray | None = None, start: int = 0) -> Reach:
    """Send rows from node ``start`` down to the leaves."""
    rows = all_rows(X) if rows is None else rows
    order = np.arange(rows.size, dtype=INDEX)
    begin = np.zeros(tree.n_nodes, dtype=INDEX)
    end = np.zeros(tree.n_nodes, dtype=INDEX)
    route_rows(
        X, rows, start, tree.children, tree.router_ptr, tree.router_idx, tree.router_val, tree.bias,
        order, begin, end, _SCRATCH.weights(n_features_of(X)),
    )  # fmt: skip
    return Reach(rows, order, begin, end)


def reach_of_assignment(tree: Tree, leaf_of_row: IndexArray) -> Reach:
    """Return the reach sets that a given leaf for each row implies."""
    n_rows = leaf_of_row.size
    begin = np.zeros(tree.n_nodes, dtype=INDEX)
    end = np.zeros(tree.n_nodes, dtype=INDEX)
    sizes = np.bincount(leaf_of_row, minlength=tree.n_nodes)
    for node in range(tree.n_nodes - 1, -1, -1):
        left, right = tree.children[node]
        if left != NO_CHILD:
            sizes[node] = sizes[left] + sizes[right]
    end[0] = n_rows
    for node, (left, right) in enumerate(tree.children):
        if left != NO_CHILD:
            begin[left], end[left] = begin[node], begin[node] + sizes[left]
            begin[right], end[right] = end[left], end[node]
    order = np.argsort(begin[leaf_of_row], kind="stable").astype(INDEX)
    return Reach(np.arange(n_rows, dtype=INDEX), order, begin, end)


def leaf_of_rows(tree: Tree, reach: Reach) -> IndexArray:
    """Return the leaf that each row reaches, aligned with ``reach.rows``."""
    out = np.empty(reach.rows.size, dtype=INDEX)
    leaves = np.flatnonzero(tree.is_leaf).astype(INDEX)
    leaves = leaves[np.argsort(reach.begin[leaves], kind="stable")]
    out[reach.order] = np.repeat(leaves, reach.sizes[leaves])
    return out


def losses(
    tree: Tree, X: Rows, y: IndexArray, reach: Reach, sharpness: float = 1.0
) -> tuple[AccumArray, BoolArray]:
    """Return cross-entropy (∞ where the leaf lacks the class) and 0/1 outcome of routed rows.

    ``y`` is indexed by row id; the results are aligned with ``reach.rows``. Scores of leaves count
    ``sharpness`` times.
    """
    cross_entropy = np.empty(reach.rows.size, dtype=ACCUM)
    correct = np.empty(reach.rows.size, dtype=np.bool_)
    group_losses(
        X, reach.rows, y, reach.order, reach.begin, reach.end, tree.children, tree.class_ptr,
        tree.class_ids, tree.feat_ptr, tree.feat_idx, tree.block_ptr, tree.block_val,
        tree.row_size, tree.entry_ptr, tree.entry_slot, tree.entry_val, tree.leaf_bias,
        _SCRATCH.positions(n_features_of(X)), PARAM(sharpness), cross_entropy, correct,
    )  # fmt: skip
    return cross_entropy, correct


def losses_from(
    tree: Tree, X: Rows, y: IndexArray, rows: IndexArray, start: int
) -> tuple[AccumArray, BoolArray]:
    """Route rows down from a node and return their losses there, aligned with ``rows``."""
    return losses(tree, X, y, route(tree, X, rows, start))


def leaf_losses(
    leaf: Leaf, X: Rows, y: IndexArray, rows: IndexArray, sharpness: float = 1.0
) -> tuple[AccumArray, BoolArray]:
    """Return the losses of rows at one leaf, whose scores count ``sharpness`` times."""
    n_classes = int(leaf.classes[-1]) + 1
    alone = Tree.build(
        np.full((1, 2), NO_CHILD), [leaf], n_features=n_features_of(X), n_classes=n_classes
    )
    whole = np.array([rows.size], dtype=INDEX)
    order = np.arange(rows.size, dtype=INDEX)
    return losses(alone, X, y, Reach(rows, order, np.zeros(1, INDEX), whole), sharpness)


def router_scores(router: Router, X: Rows, rows: IndexArray) -> ParamArray:
    """Return w·x + b of each row: its logarithmic odds of going right."""
    out = np.empty(rows.size, dtype=PARAM)
    score_router(
        X, rows, router.features, router.weights, np.float32(router.bias),
        _SCRATCH.weights(n_features_of(X)), np.arange(rows.size, dtype=INDEX), out,
    )  # fmt: skip
    return out


def choose_child(router: Router, X: Rows, rows: IndexArray) -> IndexArray:
    """Return 0 (left) or 1 (right) for each row."""
    return (router_scores(router, X, rows) >= 0.0).astype(INDEX)

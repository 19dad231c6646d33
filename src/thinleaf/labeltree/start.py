"""Which tree a learned one starts from: that of the labels' order, if the order says something.

Names such as codes and paths put labels next to each other that are alike; random names do not. On
rows that are held out, it shows: along the path of a row's label, the child with the nearest
centroid is the right one more often than in trees over the labels in random order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray, ParamArray
from thinleaf.arrays.rows import Rows, n_features_of, n_rows_of
from thinleaf.labeltree.fixed_trees import balanced
from thinleaf.labeltree.kernels.embedding import embed_rows
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.targets import Targets

_DIM = 64
_HELD_OUT = 0.2
_MOST_HELD_OUT = 20_000
_N_RANDOM = 5
"""How many random orders the given one is compared with."""
_DEVIATIONS = 4.0
"""By how many standard errors it must be better than the best of them."""
_NODE_ROWS = 4096
"""Rows that are compared with centroids at a time."""


class OrderTest(NamedTuple):
    """How often the nearest centroid is right, per node of a path."""

    ordered: float
    shuffled: float
    """The best of some random orders."""
    standard_error: float

    @property
    def passed(self) -> bool:
        """Whether the order says which labels are alike."""
        return self.ordered > self.shuffled + _DEVIATIONS * self.standard_error


def projected(X: Rows, scale: float, rng: np.random.Generator) -> ParamArray:
    """Return rows in few dimensions, by a random projection."""
    U = rng.standard_normal((n_features_of(X), _DIM), dtype=PARAM)
    rows = np.empty((n_rows_of(X), _DIM), dtype=PARAM)
    embed_rows(X, scale, U, rows)
    return rows


def prototypes(rows: ParamArray, targets: Targets, n_labels: int) -> ParamArray:
    """Return the direction of the mean of each label's rows; 0 for a label without."""
    out = np.zeros((n_labels, rows.shape[1]), dtype=PARAM)
    np.add.at(out, targets.labels, rows[targets.rows])
    return _unit(out)


def order_test(
    rows: ParamArray, targets: Targets, n_labels: int, arity: int, rng: np.random.Generator
) -> OrderTest:
    """Compare the order of the labels with random ones on held-out rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_dims)
        As of :func:`projected`.
    targets : Targets
    n_labels, arity : int
    rng : numpy.random.Generator
    """
    rows = _unit(rows)
    order = rng.permutation(rows.shape[0])
    n_held = min(int(_HELD_OUT * order.size), _MOST_HELD_OUT)
    held, kept = order[:n_held], order[n_held:]
    known = targets.take(kept)
    sums = np.zeros((n_labels, rows.shape[1]), dtype=PARAM)
    np.add.at(sums, known.labels, rows[kept][known.rows])
    asked = targets.take(held)
    points, labels = rows[held][asked.rows], asked.labels
    has_rows = np.any(sums != 0.0, axis=1)[labels]
    points, labels = points[has_rows], labels[has_rows]
    trees = [balanced(n_labels, arity), *(balanced(n_labels, arity, rng) for _ in range(_N_RANDOM))]
    right = [_share_right(tree, sums, points, labels) for tree in trees]
    best = max(right[1:])
    error = np.sqrt(max(best * (1.0 - best), 1e-12) / max(labels.size, 1))
    return OrderTest(right[0], best, float(error))


def _share_right(tree: LabelTree, sums: ParamArray, points: ParamArray, labels: AnyArray) -> float:
    """Return how often, along the paths of labels, the nearest child is the right one."""
    if labels.size == 0:
        return 0.0
    below = np.zeros((tree.n_nodes * tree.arity, sums.shape[1]), dtype=PARAM)
    branch = tree.path_nodes * tree.arity + tree.path_branches
    np.add.at(below, branch, sums[tree.entry_labels()])
    centroid = _unit(below).reshape(tree.n_nodes, tree.arity, -1)
    n_right, n_seen = 0, 0
    for begin in range(0, labels.size, _NODE_ROWS):
        some = labels[begin : begin + _NODE_ROWS]
        for depth in range(tree.depth):
            on = np.flatnonzero(tree.depths[some] > depth)
            entry = tree.path_ptr[some[on]] + depth
            node = tree.path_nodes[entry]
            scores = np.einsum("nmd,nd->nm", centroid[node], points[begin + on])
            scores[~tree.present[node]] = -np.inf
            n_right += int(np.count_nonzero(scores.argmax(axis=1) == tree.path_branches[entry]))
            n_seen += on.size
    return n_right / n_seen


def _unit(rows: ParamArray) -> ParamArray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    out: ParamArray = rows / np.maximum(length, np.float32(1e-12))
    return out

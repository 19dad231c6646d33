"""What a tree starts with: its depth, its splits, the classes of its leaves, or one flat leaf.

The papers set Δ₀ and k₀ by hand. Here they follow the number of classes and the shape of the rows,
as far as a user has not fixed them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, IndexArray
from thinleaf.arrays.rows import CSR, Rows, n_features_of
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.initial_tree import InitialTree, Way, initial_tree
from thinleaf.softmaxtree.growth.thin import AS_GOOD
from thinleaf.softmaxtree.growth.trial import LeafLoss
from thinleaf.softmaxtree.tao import TrainingData
from thinleaf.softmaxtree.tao.units import feature_spread

SPARSE_WORK = 5e7
DENSE_WORK = 4e10
"""Multiplications of one pass over the rows by all classes up to which one flat leaf is tried."""

_FEW_CLASSES = 600
_MOST_SPARSE_WORK = 2e9
_MOST_WEIGHTS = 1.5e8
"""Sparse rows of so few classes have such a trial up to more work, as far as a block of weights is
no larger: with guests and some shares of the classes, leaves of a tree take about as much."""

_CLASSES_PER_FEATURE = 16
"""Dense features that are fewer than classes by more than this are not tried with one flat leaf."""

_TABLE = 64
"""Dense features up to which splits by one of them are tried, and a tree need not be surely better
than a flat leaf."""

CLASSES_PER_LEAF = 50
"""The largest fair share of a leaf of the first tree."""

_FAIR_SHARES = 4


@dataclass(frozen=True)
class Wishes:
    """What a user has fixed; the rest is found.

    Attributes
    ----------
    depth : int, optional
        Of the tree to start from.
    deepest : int
        That it may have.
    contraction : float
        α.
    first_share : float, optional
        α₀: the share of all classes that a leaf of the first tree may hold.
    leaf_losses, flat_losses : sequence of {"softmax", "hinge"}
        Of leaves of a tree, and of one flat leaf of dense rows.
    search : bool
        Look for the ridge of leaves.
    init : Way
    axis : bool
        Also try to start from splits by one feature.
    refit_sweeps : int
    thin_above, thin_errors : float
        Sparse rows: a tree of more weights loses those that the judge does not miss, whose errors
        may be so many times more.
    """

    depth: int | None
    deepest: int
    contraction: float
    first_share: float | None
    leaf_losses: Sequence[LeafLoss]
    flat_losses: Sequence[LeafLoss]
    search: bool
    init: Way
    axis: bool
    refit_sweeps: int
    thin_above: float = math.inf
    thin_errors: float = AS_GOOD


def way_of(init: Way, *, axis: bool) -> Way:
    """Return how trees start, if it may be from splits by one feature."""
    if not axis:
        return init
    return "random_axis_splits" if init == "random_median" else "axis_splits"


def first_tree(
    data: TrainingData, depth: int, way: Way, seed: np.random.SeedSequence
) -> InitialTree:
    """Return a tree to start from."""
    spread = None if isinstance(data.X, CSR) else feature_spread(data.X)
    return initial_tree(data, depth, way, seed, spread)


def usual_depth(n_classes: int) -> int:
    """Return the depth at which a leaf's fair share of the classes is small."""
    return max(2, math.ceil(math.log2(max(n_classes, 2) / CLASSES_PER_LEAF)))


def flat_is_affordable(X: Rows, n_classes: int) -> bool:
    """Return whether one leaf of all classes is worth a trial."""
    if isinstance(X, CSR):
        return sparse_flat_is_affordable(X.data.size, X.n_features, n_classes)
    few = n_classes > _CLASSES_PER_FEATURE * n_features_of(X)
    return not few and X.size * float(n_classes) <= DENSE_WORK


def sparse_flat_is_affordable(n_values: float, n_features: float, n_classes: int) -> bool:
    """Return the same of sparse rows with so many values that are not zero."""
    work = n_values * n_classes
    few = n_classes <= _FEW_CLASSES and n_features * n_classes <= _MOST_WEIGHTS
    return work <= SPARSE_WORK or (few and work <= _MOST_SPARSE_WORK)


def few_features(X: Rows) -> bool:
    """Return whether splits by one feature are worth a trial."""
    return not isinstance(X, CSR) and 1 < n_features_of(X) <= _TABLE


def first_limits(tree: Tree, wishes: Wishes) -> IndexArray:
    """Return k₀ for every leaf of the initial tree."""
    if tree.n_leaves == 1 and wishes.first_share is None:
        return np.full(tree.n_nodes, tree.n_classes, dtype=INDEX)
    return usual_limits(tree, wishes.contraction, wishes.first_share)


def usual_limits(tree: Tree, contraction: float, first_share: float | None) -> IndexArray:
    """Return the same: the share of all classes that is given, or some fair shares of a leaf."""
    share = contraction if first_share is None else first_share
    limit = math.floor(share * tree.n_classes + 1e-9)
    if first_share is None:
        limit = min(limit, _FAIR_SHARES * math.ceil(tree.n_classes / tree.n_leaves))
    return np.full(tree.n_nodes, max(limit, 1), dtype=INDEX)

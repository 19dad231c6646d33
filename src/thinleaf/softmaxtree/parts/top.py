"""The top of a tree whose rows do not fit into memory: routers that send each row to its part.

It is trained on a sample. Where a tree starts from groups of classes, as on text, these are halved,
and a router learns to tell the halves apart: for that a sample will do, even if it has few rows of
each class. It is one router that a sample trains; each half has a sample of its own rows for the
next, since routers of all levels that share one sample have fewer rows, the deeper they are, and
send far more rows astray. Elsewhere a whole tree is fitted to the sample, and cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, IndexArray
from thinleaf.arrays.rows import CSR
from thinleaf.execution import Executor
from thinleaf.model.routing import route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.first_tree import usual_depth, usual_limits
from thinleaf.softmaxtree.growth.hierarchy import Hierarchy
from thinleaf.softmaxtree.growth.initial_tree import Way, initial_tree
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.tao import Settings, TrainingData, optimise
from thinleaf.softmaxtree.tao.units import feature_spread

_BY_CLASS = ("balanced_clusters", "class_clusters")
_GROUP_SWEEPS, _TREE_SWEEPS = 2, 3
_CONTRACTION = 0.85
_LEVELS = 1
"""Between groups of classes, of one sample."""

SettingsOf: TypeAlias = Callable[[TrainingData, IndexArray], Settings]
"""From rows and the most classes of each leaf to settings."""


def depth_for(n_bytes: float, capacity: float) -> int:
    """Return the depth at which parts of some rows, of about the same size, fit."""
    return max(1, math.ceil(math.log2(max(n_bytes / capacity, 1.0))))


def top_tree(
    sample: TrainingData,
    depth: int,
    init: Way,
    settings_of: SettingsOf,
    seed: np.random.SeedSequence,
    executor: Executor,
) -> Tree:
    """Return a tree whose leaves, each of which is reached by rows of the sample, are the parts.

    Parameters
    ----------
    sample : TrainingData
    depth : int
        At the most; between groups of classes there is one router, whatever the depth.
    init : Way
        How the whole tree starts.
    settings_of : callable
    """
    if isinstance(init, Hierarchy) or init in _BY_CLASS:
        tree = _between_groups(sample, min(depth, _LEVELS), init, settings_of, seed, executor)
    else:
        tree = _of_whole_tree(sample, depth, init, settings_of, seed, executor)
    tree = _numbered(tree)
    return prune(tree, route(tree, sample.X).sizes > 0)[0]


def _numbered(tree: Tree) -> Tree:
    """Return a tree with leaves of one class each, all different, so that none are merged."""
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    nodes: list[Router | Leaf] = [
        Leaf.constant(0) if leaf else tree.router(i) for i, leaf in enumerate(tree.is_leaf)
    ]
    for number, leaf in enumerate(leaves):
        nodes[leaf] = Leaf.constant(number)
    return Tree.build(tree.children, nodes, n_features=tree.n_features, n_classes=len(leaves))


def cut(tree: Tree, depth: int) -> Tree:
    """Return the nodes down to a depth; those at it become leaves."""
    kept = np.flatnonzero(tree.node_depth <= depth)
    place = np.full(tree.n_nodes, NO_CHILD, dtype=INDEX)
    place[kept] = np.arange(kept.size)
    inner = ~tree.is_leaf[kept] & (tree.node_depth[kept] < depth)
    children = np.where(inner[:, None], place[tree.children[kept]], NO_CHILD)
    nodes = [
        tree.router(i) if router else Leaf.constant(0)
        for i, router in zip(kept.tolist(), inner.tolist(), strict=True)
    ]
    return Tree.build(children, nodes, n_features=tree.n_features, n_classes=tree.n_classes)


def _between_groups(
    sample: TrainingData,
    depth: int,
    init: Way,
    settings_of: SettingsOf,
    seed: np.random.SeedSequence,
    executor: Executor,
) -> Tree:
    start = initial_tree(sample, depth, init, seed)
    leaves = np.flatnonzero(start.tree.is_leaf)
    group = np.searchsorted(leaves, start.assignment).astype(INDEX)
    data = replace(sample, y=group, n_classes=leaves.size)
    tree = replace(start.tree, n_classes=leaves.size)
    tree = tree.replace({int(leaf): Leaf.constant(0) for leaf in leaves})
    settings = settings_of(data, np.ones(tree.n_nodes, dtype=INDEX))
    result = optimise(
        tree, data, settings, executor, max_sweeps=_GROUP_SWEEPS, assignment=start.assignment
    )
    return _whole(result.tree, result.ended)


def _of_whole_tree(
    sample: TrainingData,
    depth: int,
    init: Way,
    settings_of: SettingsOf,
    seed: np.random.SeedSequence,
    executor: Executor,
) -> Tree:
    spread = None if isinstance(sample.X, CSR) else feature_spread(sample.X)
    deep = max(depth, usual_depth(sample.n_classes))
    start = initial_tree(sample, deep, init, seed, spread)
    settings = settings_of(sample, usual_limits(start.tree, _CONTRACTION, None))
    result = optimise(
        start.tree,
        sample,
        replace(settings, overlap=None),
        executor,
        max_sweeps=_TREE_SWEEPS,
        assignment=start.assignment,
    )
    return cut(_whole(result.tree, result.ended), depth)


def _whole(tree: Tree, ended: str) -> Tree:
    if ended == "interrupted":
        raise KeyboardInterrupt
    return tree

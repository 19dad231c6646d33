"""A frozen tree in words: sizes, depth profile, the routers at its top, its largest leaves.

:func:`describe` gives plain values, :func:`render` lines of text. What rows do in the tree is
counted by :class:`LeafCounts`, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AnyArray, IndexArray, OffsetArray
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import PackedTree


@dataclass(frozen=True)
class Level:
    """The nodes of one depth. ``n_rows`` are those that end there, if rows were counted."""

    depth: int
    n_routers: int
    n_leaves: int
    mean_leaf_classes: float | None
    n_rows: int | None = None


@dataclass(frozen=True)
class RouterView:
    """A router: the features that send a row left and right, with their weights."""

    node: int
    depth: int
    n_weights: int
    bias: float
    left: list[tuple[str, float]]
    right: list[tuple[str, float]]
    n_left_leaves: int
    n_right_leaves: int


@dataclass(frozen=True)
class LeafView:
    """A leaf: its classes, and its features, each with the class that it speaks for most."""

    leaf: int
    node: int
    depth: int
    n_classes: int
    labels: list[Any]
    n_features: int
    features: list[tuple[str, float, Any]]
    n_rows: int | None = None
    error: float | None = None


@dataclass(frozen=True)
class TreeView:
    """All that :func:`render` prints."""

    n_classes: int
    n_features: int
    n_trees: int
    n_leaves: int
    n_routers: int
    depth: int
    mean_depth: float
    min_leaf_classes: int
    mean_leaf_classes: float
    max_leaf_classes: int
    layout: str
    weights: str
    beam: int
    temperature: float
    nbytes: int
    levels: list[Level]
    routers: list[RouterView]
    leaves: list[LeafView]
    n_rows: int | None = None
    error: float | None = None


class LeafCounts:
    """How many rows reach each leaf, and how many of them are predicted wrong.

    Parameters
    ----------
    model : FrozenTree
    """

    def __init__(self, model: FrozenTree) -> None:
        self._model = model
        self._single = model if model.beam == 1 else model.with_beam(1)
        leaf_nodes = np.flatnonzero(model.packed.child < 0)
        self._leaf_of_node = np.full(model.packed.n_nodes, -1, dtype=INDEX)
        self._leaf_of_node[leaf_nodes] = np.arange(leaf_nodes.size)
        self.n_rows: OffsetArray = np.zeros(leaf_nodes.size, dtype=OFFSET)
        self.n_labelled: OffsetArray = np.zeros(leaf_nodes.size, dtype=OFFSET)
        self.n_wrong: OffsetArray = np.zeros(leaf_nodes.size, dtype=OFFSET)

    def add(self, X: Any, y: AnyArray, labelled: AnyArray) -> None:
        """Count more rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
            Class ids; a class that the model does not know is -1.
        labelled : ndarray of bool of shape (n_rows,)
            Whether a row has a label.
        """
        leaves = self._leaf_of_node[self._single.apply(X)].reshape(y.size, -1)
        wrong = labelled & ((y < 0) | (self._model.predict(X) != self._model.labels[y]))
        self.n_rows += np.bincount(leaves.ravel(), minlength=self.n_rows.size)
        self.n_labelled += np.bincount(leaves[labelled].ravel(), minlength=self.n_rows.size)
        self.n_wrong += np.bincount(leaves[wrong].ravel(), minlength=self.n_rows.size)


def describe(
    model: FrozenTree,
    *,
    feature_name: Callable[[int], str] | None = None,
    counts: LeafCounts | None = None,
    n_routers: int = 3,
    n_leaves: int = 5,
    n_features: int = 6,
    n_labels: int = 8,
) -> TreeView:
    """Return a model's tree as plain values.

    Parameters
    ----------
    model : FrozenTree
    feature_name : callable, optional
        Names the features; by default the model's ``feature_names``, or else their numbers.
    counts : LeafCounts, optional
        Of rows; the largest leaves are then those that most rows reach.
    n_routers, n_leaves : int
        How many routers from the top and how many of the largest leaves.
    n_features, n_labels : int
        How many features of a node and labels of a leaf.

    Returns
    -------
    TreeView
    """
    packed = model.packed
    name = feature_name or _names_of(model)
    depth = packed.node_depth
    leaf_nodes = np.flatnonzero(packed.child < 0)
    sizes = np.diff(packed.class_ptr)
    below = _leaves_below(packed)
    order = np.argsort(-(sizes if counts is None else counts.n_rows), kind="stable")[:n_leaves]
    routers = np.flatnonzero(packed.child >= 0)[:n_routers].tolist()
    return TreeView(
        n_classes=model.n_classes,
        n_features=model.n_features,
        n_trees=model.n_trees,
        n_leaves=model.n_leaves,
        n_routers=packed.n_nodes - model.n_leaves,
        depth=int(depth.max()),
        mean_depth=float(depth[leaf_nodes].mean()),
        min_leaf_classes=int(sizes.min()),
        mean_leaf_classes=float(sizes.mean()),
        max_leaf_classes=int(sizes.max()),
        layout="sparse" if packed.sparse else "dense",
        weights=packed.weights,
        beam=model.beam,
        temperature=model.temperature,
        nbytes=model.nbytes,
        levels=_levels(depth, leaf_nodes, sizes, counts),
        routers=[
            _router(packed, node, int(depth[node]), name, below, n_features) for node in routers
        ],
        leaves=[
            _leaf(
                model,
                i,
                int(leaf_nodes[i]),
                int(depth[leaf_nodes[i]]),
                name,
                counts,
                n_features,
                n_labels,
            )
            for i in order.tolist()
        ],
        n_rows=None if counts is None else int(counts.n_rows.sum()) // model.n_trees,
        error=None if counts is None else _share(counts.n_wrong.sum(), counts.n_labelled.sum()),
    )


def _names_of(model: FrozenTree) -> Callable[[int], str]:
    names = model.feature_names
    return str if names is None else names.__getitem__


def _leaves_below(packed: PackedTree) -> IndexArray:
    """Return the number of leaves in the subtree of each node."""
    below = (packed.child < 0).astype(INDEX)
    for node in np.flatnonzero(packed.child >= 0)[::-1]:  # children come after their parents
        left = packed.child[node]
        below[node] = below[left] + below[left + 1]
    return below


def _levels(
    depth: IndexArray, leaf_nodes: AnyArray, sizes: AnyArray, counts: LeafCounts | None
) -> list[Level]:
    n_nodes = np.bincount(depth)
    n_leaves = np.bincount(depth[leaf_nodes], minlength=n_nodes.size)
    classes = np.bincount(depth[leaf_nodes], sizes, n_nodes.size)
    rows = None
    if counts is not None:
        rows = np.bincount(depth[leaf_nodes], counts.n_rows, n_nodes.size)
    return [
        Level(
            level,
            int(n_nodes[level] - n_leaves[level]),
            int(n_leaves[level]),
            float(classes[level] / n_leaves[level]) if n_leaves[level] else None,
            None if rows is None else int(rows[level]),
        )
        for level in range(n_nodes.size)
    ]


def _router(
    packed: PackedTree,
    node: int,
    depth: int,
    name: Callable[[int], str],
    below: IndexArray,
    n_features: int,
) -> RouterView:
    router = packed.router(node)
    order = np.argsort(router.weights, kind="stable")
    sides = (order[:n_features], order[::-1][:n_features])
    left, right = (
        [
            (name(int(router.features[t])), float(router.weights[t]))
            for t in side
            if np.sign(router.weights[t]) == sign
        ]
        for side, sign in zip(sides, (-1.0, 1.0), strict=True)
    )
    child = int(packed.child[node])
    return RouterView(
        node,
        depth,
        int(np.count_nonzero(router.weights)),
        router.bias,
        left,
        right,
        int(below[child]),
        int(below[child + 1]),
    )


def _leaf(
    model: FrozenTree,
    i: int,
    node: int,
    depth: int,
    name: Callable[[int], str],
    counts: LeafCounts | None,
    n_features: int,
    n_labels: int,
) -> LeafView:
    leaf = model.packed.leaf(i)
    labels = model.labels[leaf.classes].tolist()
    best = leaf.weights.argmax(axis=1) if leaf.features.size else np.empty(0, INDEX)
    top = leaf.weights[np.arange(best.size), best]
    order = np.argsort(-top, kind="stable")[:n_features]
    return LeafView(
        i,
        node,
        depth,
        len(labels),
        labels[:n_labels],
        int(leaf.features.size),
        [(name(int(leaf.features[t])), float(top[t]), labels[best[t]]) for t in order],
        None if counts is None else int(counts.n_rows[i]),
        None if counts is None else _share(counts.n_wrong[i], counts.n_labelled[i]),
    )


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


# -- as text ---------------------------------------------------------------------------------------


def render(view: TreeView) -> str:
    """Return what :func:`describe` found as lines of text."""
    trees = "" if view.n_trees == 1 else f"{view.n_trees} trees: "
    at = "" if view.temperature == 1.0 else f" at temperature {view.temperature:g}"
    lines = [
        f"{view.n_classes:,} classes, {view.n_features:,} features",
        f"{trees}{view.n_leaves:,} leaves and {view.n_routers:,} routers, depth {view.depth} "
        f"(leaves: {view.mean_depth:.1f} on average)",
        f"classes a leaf: {view.mean_leaf_classes:.1f} on average, {view.min_leaf_classes:,} to "
        f"{view.max_leaf_classes:,}",
        f"{view.nbytes:,} bytes for {view.layout} rows, weights {view.weights}, beam {view.beam}"
        f"{at}",
    ]
    if view.n_rows is not None:
        lines.append(f"{view.n_rows:,} rows{_error(view.error)}")
    lines += ["", *_level_lines(view)]
    if view.routers:
        lines += ["", "routers at the top"]
        lines += [line for router in view.routers for line in _router_lines(router)]
    largest = "largest leaves" if view.n_rows is None else "leaves that most rows reach"
    lines += ["", largest]
    lines += [line for leaf in view.leaves for line in _leaf_lines(leaf)]
    return "\n".join(lines)


def _level_lines(view: TreeView) -> list[str]:
    counted = view.n_rows is not None
    lines = ["depth  routers  leaves  classes a leaf" + ("      rows" if counted else "")]
    for level in view.levels:
        classes = "" if level.mean_leaf_classes is None else f"{level.mean_leaf_classes:.1f}"
        line = f"{level.depth:5}  {level.n_routers:7,}  {level.n_leaves:6,}  {classes:>14}"
        lines.append((line + (f"  {level.n_rows:8,}" if counted else "")).rstrip())
    return lines


def _router_lines(router: RouterView) -> list[str]:
    def side(n_leaves: int, features: list[tuple[str, float]]) -> str:
        words = ", ".join(f"{name} {weight:+.2f}" for name, weight in features) or "–"
        return f"({n_leaves:,} {'leaf' if n_leaves == 1 else 'leaves'})  {words}"

    return [
        f"  node {router.node}, depth {router.depth}: {router.n_weights:,} weights, "
        f"bias {router.bias:+.2f}",
        f"    left  {side(router.n_left_leaves, router.left)}",
        f"    right {side(router.n_right_leaves, router.right)}",
    ]


def _leaf_lines(leaf: LeafView) -> list[str]:
    words = ", ".join(f"{name} {w:+.2f} ({label})" for name, w, label in leaf.features) or "–"
    reached = "" if leaf.n_rows is None else f", {leaf.n_rows:,} rows{_error(leaf.error)}"
    return [
        f"  leaf {leaf.leaf}, depth {leaf.depth}: {leaf.n_classes:,} classes, "
        f"{leaf.n_features:,} features{reached}",
        f"    classes   {_listed(leaf.labels, leaf.n_classes)}",
        f"    features  {words}",
    ]


def _listed(labels: Sequence[Any], n_all: int) -> str:
    more = f" and {n_all - len(labels):,} more" if n_all > len(labels) else ""
    return ", ".join(map(str, labels)) + more


def _error(error: float | None) -> str:
    return "" if error is None else f", error {100 * error:.2f} %"

"""A tree laid out to be drawn: which nodes are shown, where they stand, and what is said of them.

Nothing here draws. Trees lie on their side, the root at the left: each shown leaf has a line of its
own, so that words at nodes never meet, however many there are. Where a tree has more leaves than
are to be shown, the subtrees that the fewest rows reach are closed.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, AnyArray
from thinleaf.explain.overview import name_of_feature
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.importance import PackedRouters, rows_below

ROUTER, LEAF, CLOSED = "router", "leaf", "closed"


@dataclass(frozen=True)
class OutlineNode:
    """A node that is shown.

    Attributes
    ----------
    node, parent : int
        Numbers in the tree; the root's parent is -1.
    kind : {"router", "leaf", "closed"}
        A closed subtree stands for all that is below.
    depth : int
    line : float
        Which line it stands on, from above; a router between its children.
    rows : float
        How many rows reach it, or leaves are below it if no rows were counted.
    side : {"", "left", "right"}
        Of its parent.
    features : tuple of (str, float)
        That lead here from the parent, with their weights, the strongest first.
    labels : tuple of (object, float or None)
        Of a leaf or a closed subtree, the classes and their share of its rows, the largest first.
    n_classes, n_leaves : int
        At and below the node.
    """

    node: int
    parent: int
    kind: str
    depth: int
    line: float
    rows: float
    side: str
    features: tuple[tuple[str, float], ...]
    labels: tuple[tuple[Any, float | None], ...]
    n_classes: int
    n_leaves: int


@dataclass(frozen=True)
class Outline:
    """The shown part of a tree.

    Attributes
    ----------
    nodes : tuple of OutlineNode
        Parents before their children.
    n_lines : int
    depth : int
        Of the deepest shown node.
    n_leaves, n_shown : int
        Leaves of the tree, and those that are shown.
    counted : bool
        Whether rows were counted.
    """

    nodes: tuple[OutlineNode, ...]
    n_lines: int
    depth: int
    n_leaves: int
    n_shown: int
    counted: bool


class Counts:
    """How many rows reach each node of one tree, and of which classes.

    Parameters
    ----------
    model : FrozenTree
    X : rows or texts, optional
    y : array-like, optional
        Labels; without them, the predicted ones are counted.
    """

    def __init__(self, model: FrozenTree, X: Any = None, y: Any = None) -> None:
        packed = model.packed
        self.counted = X is not None
        if X is None:
            self.rows: AccumArray = rows_below(packed, np.ones(packed.n_leaves))
            self._by_leaf: dict[int, tuple[AnyArray, AnyArray]] = {}
            return
        rows = model._rows(X)
        number = np.cumsum(packed.child < 0) - 1
        leaves = number[model.predictor.leaves(rows)]
        self.rows = rows_below(packed, np.bincount(leaves.ravel(), minlength=packed.n_leaves))
        if y is None:
            ids = model.predictor.top_class(rows).astype(np.int64)
        else:
            known = {label: i for i, label in enumerate(model.labels.tolist())}
            ids = np.array([known.get(label, -1) for label in np.asarray(y).tolist()])
            if ids.shape != (leaves.shape[0],):
                raise ValueError(f"there are {leaves.shape[0]} rows, but {ids.size} labels")
        keys = (leaves.astype(np.int64) * (packed.n_classes + 1) + ids[:, None] + 1).ravel()
        unique, counts = np.unique(keys, return_counts=True)
        leaf_of, class_of = np.divmod(unique, packed.n_classes + 1)
        cuts = np.searchsorted(leaf_of, np.arange(packed.n_leaves + 1))
        self._by_leaf = {
            leaf: (class_of[a:b] - 1, counts[a:b])
            for leaf, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        }

    def of_leaf(self, leaf: int) -> tuple[AnyArray, AnyArray]:
        """Return the classes of the rows of a leaf, and how many rows there are of each."""
        empty = np.empty(0, dtype=np.int64)
        return self._by_leaf.get(leaf, (empty, empty))


def outline(
    model: FrozenTree,
    counts: Counts,
    *,
    tree: int = 0,
    max_leaves: int = 500,
    n_features: int = 3,
    n_labels: int = 6,
) -> Outline:
    """Return the part of a tree that is to be drawn, laid out.

    Parameters
    ----------
    model : FrozenTree
    counts : Counts
    tree : int
        Which one of a forest.
    max_leaves : int
        The most lines.
    n_features, n_labels : int
        How many features lead to a node, and classes of a leaf.
    """
    packed = model.packed
    if not 0 <= tree < packed.n_trees:
        raise ValueError(f"tree must be in 0..{packed.n_trees - 1}, got {tree!r}")
    if max_leaves < 1:
        raise ValueError(f"max_leaves must be at least 1, got {max_leaves!r}")
    opened = _opened(packed.child, counts.rows, tree, max_leaves)
    n_below = rows_below(packed, np.ones(packed.n_leaves)).astype(int)
    order, line, depth, parent = _placed(packed.child, opened, tree)
    routers, name = PackedRouters(packed), name_of_feature(model)
    label_list = model.labels.tolist()
    shown, n_lines, deepest = [], 0, 0
    for node in order:
        child, kind = int(packed.child[node]), ROUTER
        if child < 0:
            kind = LEAF
        elif node not in opened:
            kind = CLOSED
        own_labels: tuple[tuple[Any, float | None], ...] = ()
        n_classes = 0
        if kind != ROUTER:
            leaves = leaves_below(model, node)
            n = n_labels if kind == LEAF else n_labels // 2
            own_labels, n_classes = _labels(model, leaves, counts, n, label_list)
        n_lines += kind != ROUTER
        deepest = max(deepest, depth[node])
        up = parent[node]
        right = up >= 0 and node != packed.child[up]
        shown.append(
            OutlineNode(
                node, up, kind, depth[node], line[node], float(counts.rows[node]),
                "" if up < 0 else "right" if right else "left",
                () if up < 0 else _leading(routers[up], right, n_features, name),
                own_labels, n_classes, int(n_below[node]),
            )
        )  # fmt: skip
    n_shown = sum(node.kind == LEAF for node in shown)
    return Outline(tuple(shown), n_lines, deepest, int(n_below[tree]), n_shown, counts.counted)


def _opened(child: AnyArray, rows: AccumArray, root: int, max_leaves: int) -> set[int]:
    """Return the routers whose children are shown: those that most rows reach."""
    opened: set[int] = set()
    n_lines = 1
    waiting = [(-float(rows[root]), root)] if child[root] >= 0 else []
    while waiting and n_lines < max_leaves:
        node = heapq.heappop(waiting)[1]
        opened.add(node)
        n_lines += 1
        for below in (int(child[node]), int(child[node]) + 1):
            if child[below] >= 0:
                heapq.heappush(waiting, (-float(rows[below]), below))
    return opened


def _placed(
    child: AnyArray, opened: set[int], root: int
) -> tuple[list[int], dict[int, float], dict[int, int], dict[int, int]]:
    """Return the shown nodes from the root on, their lines, depths and parents."""
    order: list[int] = []
    depth, parent, line = {root: 0}, {root: -1}, {}
    stack, n_lines = [root], 0
    while stack:
        node = stack.pop()
        order.append(node)
        if node not in opened:
            line[node] = float(n_lines)
            n_lines += 1
            continue
        left = int(child[node])
        for below in (left + 1, left):
            depth[below], parent[below] = depth[node] + 1, node
            stack.append(below)
    for node in reversed(order):
        if node in opened:
            left = int(child[node])
            line[node] = (line[left] + line[left + 1]) / 2.0
    return order, line, depth, parent


def _leading(router: Any, right: bool, n: int, name: Any) -> tuple[tuple[str, float], ...]:
    weights = router.weights if right else -router.weights
    order = np.argsort(-weights, kind="stable")[:n].tolist()
    return tuple(
        (name(int(router.features[t])), float(weights[t])) for t in order if weights[t] > 0.0
    )


def _labels(
    model: FrozenTree, leaves: list[int], counts: Counts, n: int, names: list[Any]
) -> tuple[tuple[tuple[Any, float | None], ...], int]:
    """Return the classes of some leaves with their shares, and how many classes there are."""
    packed = model.packed
    slots = [slice(*packed.class_ptr[leaf : leaf + 2]) for leaf in leaves]
    held = np.unique(np.concatenate([packed.class_ids[slot] for slot in slots]))
    found = [counts.of_leaf(leaf) for leaf in leaves]
    ids, place = np.unique(np.concatenate([part[0] for part in found]), return_inverse=True)
    rows = np.bincount(place, np.concatenate([part[1] for part in found]), ids.size)
    if rows.size == 0:
        if len(leaves) > 1:
            return (), int(held.size)
        order = np.argsort(-packed.leaf_bias[slots[0]], kind="stable")[:n]
        return tuple((names[i], None) for i in held[order].tolist()), int(held.size)
    order = np.lexsort((ids, -rows))[:n]
    total = float(rows.sum())
    shares = tuple(
        (names[i] if i >= 0 else "others", count / total)
        for i, count in zip(ids[order].tolist(), rows[order].tolist(), strict=True)
    )
    return shares, int(held.size)


def leaves_below(model: FrozenTree, node: int) -> list[int]:
    """Return the leaves at or below a node."""
    found, stack = [], [node]
    while stack:
        child = int(model.packed.child[stack.pop()])
        if child < 0:
            found.append(-1 - child)
        else:
            stack += [child + 1, child]
    return found


def weight_picture(weights: AnyArray, features: AnyArray, shape: tuple[int, int]) -> AccumArray:
    """Return weights as a picture of shape (height, width)."""
    picture = np.zeros(shape[0] * shape[1], dtype=ACCUM)
    picture[features] = weights
    return picture.reshape(shape)

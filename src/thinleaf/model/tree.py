"""The tree as flat arrays, and the plain values that its nodes are made of.

A node is a router or a leaf. Routers are rows of one CSR matrix; a leaf holds sorted class ids and
a dense block of weights over the features that it uses, the class axis contiguous. Arrays are the
truth and are never changed in place: :meth:`Tree.replace` gives a new tree. :class:`Router` and
:class:`Leaf` are views for solvers and for people. Nothing here trains or predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, cast

import numpy as np

from thinleaf._dtypes import (
    INDEX,
    NO_CHILD,
    OFFSET,
    PARAM,
    AnyArray,
    BoolArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.arrays.checks import require
from thinleaf.arrays.ragged import offsets


class TreeError(ValueError):
    """The arrays do not describe a tree."""


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


class Nodes(Protocol):
    """What is needed of a tree to predict with it, whatever it is made of."""

    @property
    def n_features(self) -> int:
        """Width of a row."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def children(self) -> IndexArray:
        """Left and right child, of shape (n_nodes, 2); ``NO_CHILD`` twice for a leaf."""

    @property
    def bias(self) -> ParamArray:
        """Of routers; 0 for leaves."""

    @property
    def n_nodes(self) -> int:
        """Number of routers and leaves."""

    @property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""

    def router(self, node: int) -> Router:
        """Return a router."""

    def leaf(self, node: int) -> Leaf:
        """Return a leaf."""

    def classes_of(self, node: int) -> IndexArray:
        """Return the classes of a leaf."""


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A binary tree of routers and softmax leaves, as a struct of arrays.

    Attributes
    ----------
    n_features, n_classes : int
    children : ndarray of shape (n_nodes, 2)
        Left and right child, each greater than its parent; ``NO_CHILD`` twice for a leaf. Node 0 is
        the root.
    router_ptr, router_idx, router_val : CSR of shape (n_nodes, n_features)
    bias : ndarray of shape (n_nodes,)
        Of routers; 0 for leaves.
    class_ptr, class_ids : leaf classes; node i has ``class_ids[class_ptr[i]:class_ptr[i + 1]]``
    leaf_bias : ndarray, aligned with ``class_ids``
    feat_ptr, feat_idx : features that a leaf uses
    block_ptr, block_val : leaf weights; node i has a block of shape (its features, its classes)
    """

    n_features: int
    n_classes: int
    children: IndexArray
    router_ptr: OffsetArray
    router_idx: IndexArray
    router_val: ParamArray
    bias: ParamArray
    class_ptr: OffsetArray
    class_ids: IndexArray
    leaf_bias: ParamArray
    feat_ptr: OffsetArray
    feat_idx: IndexArray
    block_ptr: OffsetArray
    block_val: ParamArray

    # -- making trees ------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        children: AnyArray,
        nodes: Sequence[Router | Leaf],
        *,
        n_features: int,
        n_classes: int,
    ) -> Tree:
        """Pack nodes into arrays; ``nodes[i]`` must be a leaf exactly where ``children[i]`` is."""
        routers = [node if isinstance(node, Router) else None for node in nodes]
        leaves = [node if isinstance(node, Leaf) else None for node in nodes]
        return cls(
            n_features,
            n_classes,
            np.asarray(children, dtype=INDEX).reshape(-1, 2),
            **_pack_routers(routers),
            **_pack_leaves(leaves),
        )

    @classmethod
    def complete(cls, depth: int, *, n_features: int, n_classes: int, class_id: int = 0) -> Tree:
        """Return the complete tree of a depth, all routers zero, all leaves one constant class."""
        n_routers = 2**depth - 1
        first = 2 * np.arange(n_routers, dtype=INDEX) + 1
        children = np.full((2 * n_routers + 1, 2), NO_CHILD, dtype=INDEX)
        children[:n_routers] = np.column_stack([first, first + 1])
        nodes: list[Router | Leaf] = [Router.constant(0)] * n_routers
        nodes += [Leaf.constant(class_id)] * (n_routers + 1)
        return cls.build(children, nodes, n_features=n_features, n_classes=n_classes)

    @classmethod
    def from_linear(cls, coef: AnyArray, intercept: AnyArray) -> Tree:
        """Return the oblique tree of constant leaves that equals ``argmax(coef @ x + intercept)``.

        Theorem 3.1 of paper 001: each level compares the best class so far with the next one. The
        tree is complete of depth K - 1, so it is for small K only. Ties go to the later class.

        Parameters
        ----------
        coef : array-like of shape (K, n_features), or (1, n_features) for two classes
        intercept : array-like of shape (K,), or (1,)
            As scikit-learn's linear classifiers have them.

        Examples
        --------
        >>> import numpy as np
        >>> from thinleaf import Tree
        >>> tree = Tree.from_linear(np.eye(3), np.zeros(3))
        >>> tree.n_leaves, tree.depth
        (4, 2)
        """
        A = np.atleast_2d(np.asarray(coef, dtype=PARAM))
        b = np.asarray(intercept, dtype=PARAM).ravel()
        if A.shape[0] == 1:  # the score of the second class; the first has zero
            A, b = np.vstack([np.zeros_like(A), A]), np.concatenate([[0.0], b]).astype(PARAM)
        n_classes, n_features = A.shape
        if b.size != n_classes:
            raise ValueError(f"coef has {n_classes} rows but intercept has {b.size} entries")
        if n_classes > 20:
            raise ValueError(f"the exact tree of {n_classes} classes has 2^{n_classes - 1} leaves")
        tree = cls.complete(n_classes - 1, n_features=n_features, n_classes=n_classes)
        winner = np.zeros(tree.n_nodes, dtype=INDEX)
        nodes: list[Router | Leaf] = []
        for node, depth in enumerate(tree.node_depth):
            left, right = tree.children[node]
            if left == NO_CHILD:
                nodes.append(Leaf.constant(int(winner[node])))
                continue
            rival = depth + 1
            winner[left], winner[right] = winner[node], rival
            difference = A[rival] - A[winner[node]]
            used = np.flatnonzero(difference).astype(INDEX)
            offset = float(b[rival] - b[winner[node]])
            nodes.append(Router(used, difference[used], offset))
        return cls.build(tree.children, nodes, n_features=n_features, n_classes=n_classes)

    def replace(self, nodes: Mapping[int, Router | Leaf]) -> Tree:
        """Return a tree with some nodes' parameters replaced; the structure stays."""
        routers = {i: node for i, node in nodes.items() if isinstance(node, Router)}
        leaves = {i: node for i, node in nodes.items() if isinstance(node, Leaf)}
        changed: dict[str, Any] = {}
        if routers:
            changed["bias"] = self.bias.copy()
            changed["bias"][list(routers)] = [router.bias for router in routers.values()]
            changed |= self._splice(
                "router_ptr",
                router_idx={i: r.features for i, r in routers.items()},
                router_val={i: r.weights for i, r in routers.items()},
            )
        if leaves:
            changed |= self._splice(
                "class_ptr",
                class_ids={i: f.classes for i, f in leaves.items()},
                leaf_bias={i: f.bias for i, f in leaves.items()},
            )
            changed |= self._splice("feat_ptr", feat_idx={i: f.features for i, f in leaves.items()})
            changed |= self._splice(
                "block_ptr", block_val={i: f.weights.ravel() for i, f in leaves.items()}
            )
        return replace(self, **changed)

    def graft(self, subtrees: Mapping[int, Tree]) -> Tree:
        """Return a tree with some leaves replaced by trees.

        Nodes keep their numbers; a subtree's root takes its leaf's, and its other nodes come last,
        in the order of the leaves and of the subtree.
        """
        children = self.children.copy()
        nodes = [self.node(i) for i in range(self.n_nodes)]
        for leaf, subtree in sorted(subtrees.items()):
            if not self.is_leaf[leaf]:
                raise ValueError(f"node {leaf} is a router, not a leaf")
            moved = np.where(
                subtree.children == NO_CHILD, NO_CHILD, subtree.children + (len(nodes) - 1)
            )
            children = np.concatenate([children, moved[1:]])
            children[leaf] = moved[0]
            nodes += [subtree.node(i) for i in range(1, subtree.n_nodes)]
            nodes[leaf] = subtree.node(0)
        return Tree.build(children, nodes, n_features=self.n_features, n_classes=self.n_classes)

    def _splice(self, ptr_name: str, **fields: Mapping[int, AnyArray]) -> dict[str, AnyArray]:
        """Replace some nodes' ranges in arrays that share offsets; copy the rest in long runs."""
        ptr = getattr(self, ptr_name)
        sizes = np.diff(ptr)
        changed: dict[str, AnyArray] = {}
        for name, new in fields.items():
            old = getattr(self, name)
            pieces, done = [], 0
            for node in sorted(new):
                pieces += [old[ptr[done] : ptr[node]], new[node]]
                sizes[node] = new[node].size
                done = node + 1
            pieces.append(old[ptr[done] :])
            changed[name] = np.concatenate(pieces).astype(old.dtype, copy=False)
        return changed | {ptr_name: offsets(sizes)}

    def __repr__(self) -> str:
        """Return the shape in one line, without the arrays."""
        return (
            f"Tree({self.n_leaves} leaves, depth {self.depth}, {self.n_classes} classes, "
            f"{self.n_features} features, {self.n_nonzero} weights)"
        )

    # -- looking at trees --------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of routers and leaves."""
        return int(self.children.shape[0])

    @cached_property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""
        return cast(BoolArray, self.children[:, 0] == NO_CHILD)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @cached_property
    def node_depth(self) -> IndexArray:
        """Depth of each node; the root has 0."""
        depth = np.zeros(self.n_nodes, dtype=INDEX)
        for node, (left, right) in enumerate(self.children):
            if left != NO_CHILD:
                depth[left] = depth[right] = depth[node] + 1
        return depth

    @property
    def depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.node_depth.max())

    @cached_property
    def leaf_sizes(self) -> IndexArray:
        """Number of classes of each leaf, in node order."""
        return np.diff(self.class_ptr)[self.is_leaf].astype(INDEX)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(getattr(self, name).nbytes) for name in _DTYPES)

    @property
    def n_nonzero(self) -> int:
        """Number of nonzero weights in routers and leaves."""
        return int(np.count_nonzero(self.router_val) + np.count_nonzero(self.block_val))

    def levels(self) -> list[IndexArray]:
        """Return the nodes of each depth, from the root down."""
        order = np.argsort(self.node_depth, kind="stable").astype(INDEX)
        return np.split(order, np.cumsum(np.bincount(self.node_depth))[:-1])

    def router(self, node: int) -> Router:
        """Return a view of a router."""
        if self.is_leaf[node]:
            raise ValueError(f"node {node} is a leaf, not a router")
        at = slice(self.router_ptr[node], self.router_ptr[node + 1])
        return Router(self.router_idx[at], self.router_val[at], float(self.bias[node]))

    def leaf(self, node: int) -> Leaf:
        """Return a view of a leaf."""
        if not self.is_leaf[node]:
            raise ValueError(f"node {node} is a router, not a leaf")
        features = self.feat_idx[self.feat_ptr[node] : self.feat_ptr[node + 1]]
        block = self.block_val[self.block_ptr[node] : self.block_ptr[node + 1]]
        bias = self.leaf_bias[self.class_ptr[node] : self.class_ptr[node + 1]]
        return Leaf(self.classes_of(node), features, block.reshape(features.size, bias.size), bias)

    def classes_of(self, node: int) -> IndexArray:
        """Return the classes of a leaf."""
        return self.class_ids[self.class_ptr[node] : self.class_ptr[node + 1]]

    def node(self, node: int) -> Router | Leaf:
        """Return a view of a node."""
        return self.leaf(node) if self.is_leaf[node] else self.router(node)

    # -- checking trees ----------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise :class:`TreeError` unless every kernel may safely run on these arrays."""
        n = self.children.shape[0] if self.children.ndim == 2 else 0
        _require(n > 0 and self.children.shape[1] == 2, "children must have shape (n_nodes, 2)")
        _require(self.n_features >= 0 and self.n_classes > 0, "a tree needs at least one class")
        for name, dtype in _DTYPES.items():
            array = getattr(self, name)
            _require(array.dtype == dtype, f"{name} must be {np.dtype(dtype)}, is {array.dtype}")
            _require(name == "children" or array.ndim == 1, f"{name} must have one axis")
        left, right = self.children.T
        leaf = left == NO_CHILD
        _require(bool(np.all((right == NO_CHILD) == leaf)), "a node has two children or none")
        inner = self.children[~leaf]
        parents = np.flatnonzero(~leaf)[:, None]
        _require(
            bool(np.all((inner > parents) & (inner < n))), "a child must come after its parent"
        )
        _require(
            np.array_equal(np.sort(inner.ravel()), np.arange(1, n)),
            "every node but the root needs exactly one parent",
        )
        for name, n_items in (
            ("router_ptr", self.router_idx.size),
            ("class_ptr", self.class_ids.size),
            ("feat_ptr", self.feat_idx.size),
            ("block_ptr", self.block_val.size),
        ):
            ptr = getattr(self, name)
            # compared, not subtracted: differences of hostile offsets wrap around
            monotone = ptr.shape == (n + 1,) and ptr[0] == 0 and bool(np.all(ptr[:-1] <= ptr[1:]))
            _require(monotone and ptr[-1] == n_items, f"{name} must rise from 0 to {n_items}")
        _require(self.bias.shape == (n,), "bias must have one entry a node")
        _require(self.router_val.shape == self.router_idx.shape, "router_val, router_idx differ")
        _require(self.leaf_bias.shape == self.class_ids.shape, "leaf_bias, class_ids differ")
        n_classes_of, n_feat_of = np.diff(self.class_ptr), np.diff(self.feat_ptr)
        _require(bool(np.all(n_classes_of[leaf] > 0)), "every leaf needs a class")
        _require(bool(np.all(n_classes_of[~leaf] == 0)), "only leaves have classes")
        _require(bool(np.all(np.diff(self.router_ptr)[leaf] == 0)), "only routers route")
        _require(
            np.array_equal(np.diff(self.block_ptr), n_classes_of * n_feat_of),
            "a leaf's block must have shape (features, classes)",
        )
        _require_sorted("router_idx", self.router_ptr, self.router_idx, self.n_features)
        _require_sorted("class_ids", self.class_ptr, self.class_ids, self.n_classes)
        _require_sorted("feat_idx", self.feat_ptr, self.feat_idx, self.n_features)
        for name in ("router_val", "bias", "leaf_bias", "block_val"):
            _require(bool(np.all(np.isfinite(getattr(self, name)))), f"{name} must be finite")


_DTYPES: dict[str, type] = {
    "children": INDEX, "router_ptr": OFFSET, "router_idx": INDEX, "router_val": PARAM,
    "bias": PARAM, "class_ptr": OFFSET, "class_ids": INDEX, "leaf_bias": PARAM,
    "feat_ptr": OFFSET, "feat_idx": INDEX, "block_ptr": OFFSET, "block_val": PARAM,
}  # fmt: skip


def array_names() -> tuple[str, ...]:
    """Return the names of the arrays that make a tree."""
    return tuple(_DTYPES)


_require = partial(require, error=TreeError)


def _require_sorted(name: str, ptr: OffsetArray, ids: IndexArray, limit: int) -> None:
    _require(bool(np.all((ids >= 0) & (ids < limit))), f"{name} must lie in 0..{limit - 1}")
    rises = np.diff(ids) > 0
    starts = ptr[1:-1]
    starts = starts[(starts > 0) & (starts < ids.size)]
    rises[starts - 1] = True  # between two nodes ids may fall
    _require(bool(np.all(rises)), f"{name} must be strictly ascending within a node")


def join(parts: list[AnyArray], dtype: type) -> AnyArray:
    """Return all parts in one array, also if there are none."""
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def _pack_routers(routers: Sequence[Router | None]) -> dict[str, AnyArray]:
    return {
        "router_ptr": offsets([r.features.size if r else 0 for r in routers]),
        "router_idx": join([r.features for r in routers if r], INDEX),
        "router_val": join([r.weights for r in routers if r], PARAM),
        "bias": np.array([r.bias if r else 0.0 for r in routers], dtype=PARAM),
    }


def _pack_leaves(leaves: Sequence[Leaf | None]) -> dict[str, AnyArray]:
    return {
        "class_ptr": offsets([leaf.classes.size if leaf else 0 for leaf in leaves]),
        "class_ids": join([leaf.classes for leaf in leaves if leaf], INDEX),
        "leaf_bias": join([leaf.bias for leaf in leaves if leaf], PARAM),
        "feat_ptr": offsets([leaf.features.size if leaf else 0 for leaf in leaves]),
        "feat_idx": join([leaf.features for leaf in leaves if leaf], INDEX),
        "block_ptr": offsets([leaf.weights.size if leaf else 0 for leaf in leaves]),
        "block_val": join([leaf.weights.ravel() for leaf in leaves if leaf], PARAM),
    }

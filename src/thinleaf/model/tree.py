"""The tree as flat arrays.

A node is a router or a leaf. Routers are rows of one CSR matrix; a leaf holds sorted class ids and
weights over the features that it uses: a dense block, the class axis contiguous, or the weights
that are not zero, where these are few. Arrays are the truth and are never changed in place:
:meth:`Tree.replace` gives a new tree. :class:`Router` and :class:`Leaf` are views for solvers and
for people. Nothing here trains or predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from thinleaf._dtypes import (
    INDEX,
    NO_CHILD,
    OFFSET,
    PARAM,
    SLOT,
    AnyArray,
    BoolArray,
    IndexArray,
    OffsetArray,
    ParamArray,
    SlotArray,
)
from thinleaf.arrays.checks import require
from thinleaf.arrays.ragged import offsets
from thinleaf.model.nodes import Leaf, Router, SparseLeaf

__all__ = ["Leaf", "Nodes", "Router", "SparseLeaf", "Tree", "TreeError", "array_names", "join"]


class TreeError(ValueError):
    """The arrays do not describe a tree."""


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
    row_size, entry_ptr, entry_slot, entry_val : leaf weights, of leaves without a block
        Number of weights of each feature, aligned with ``feat_idx``; node i has the weights
        ``entry_val[entry_ptr[i]:entry_ptr[i + 1]]``, feature by feature, each of the class that
        ``entry_slot`` counts within the leaf. Without them, all leaves have blocks.
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
    row_size: IndexArray = field(default_factory=lambda: np.empty(0, INDEX))
    entry_ptr: OffsetArray = field(default_factory=lambda: np.empty(0, OFFSET))
    entry_slot: SlotArray = field(default_factory=lambda: np.empty(0, SLOT))
    entry_val: ParamArray = field(default_factory=lambda: np.empty(0, PARAM))

    def __post_init__(self) -> None:
        """Fill in that there are no sparse leaves, where nothing is said of them."""
        if self.entry_ptr.size == 0:
            ptr = np.zeros(len(self.children) + 1, dtype=OFFSET)
            object.__setattr__(self, "entry_ptr", ptr)
            object.__setattr__(self, "row_size", np.zeros(self.feat_idx.size, dtype=INDEX))

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
            parts = {i: _parts_of(leaf) for i, leaf in leaves.items()}
            changed |= self._splice(
                "feat_ptr",
                feat_idx={i: f.features for i, f in leaves.items()},
                row_size={i: part.row_size for i, part in parts.items()},
            )
            changed |= self._splice(
                "block_ptr", block_val={i: part.block for i, part in parts.items()}
            )
            changed |= self._splice(
                "entry_ptr",
                entry_slot={i: part.slots for i, part in parts.items()},
                entry_val={i: part.values for i, part in parts.items()},
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
        weights = (self.router_val, self.block_val, self.entry_val)
        return sum(int(np.count_nonzero(values)) for values in weights)

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
        if block.size == 0 and features.size > 0:
            entries = slice(self.entry_ptr[node], self.entry_ptr[node + 1])
            sizes = self.row_size[self.feat_ptr[node] : self.feat_ptr[node + 1]]
            slots, values = self.entry_slot[entries], self.entry_val[entries]
            return SparseLeaf(self.classes_of(node), features, sizes, slots, values, bias)
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
            ("entry_ptr", self.entry_val.size),
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
        self._validate_entries(n_classes_of, n_feat_of)
        _require_sorted("router_idx", self.router_ptr, self.router_idx, self.n_features)
        _require_sorted("class_ids", self.class_ptr, self.class_ids, self.n_classes)
        _require_sorted("feat_idx", self.feat_ptr, self.feat_idx, self.n_features)
        for name in ("router_val", "bias", "leaf_bias", "block_val", "entry_val"):
            _require(bool(np.all(np.isfinite(getattr(self, name)))), f"{name} must be finite")

    def _validate_entries(self, n_classes_of: OffsetArray, n_feat_of: OffsetArray) -> None:
        """Check that each leaf has a block of its shape, or sparse weights within it."""
        block = np.diff(self.block_ptr)
        sparse = (block == 0) & (n_feat_of > 0)
        _require(
            bool(np.all((block == n_classes_of * n_feat_of) | sparse)),
            "a leaf's block must have shape (features, classes)",
        )
        _require(bool(np.all(n_classes_of[sparse] > 0)), "only leaves have features")
        _require(self.entry_slot.shape == self.entry_val.shape, "entry_slot, entry_val differ")
        _require(self.row_size.shape == self.feat_idx.shape, "row_size, feat_idx differ")
        sizes, entries = self.row_size, np.diff(self.entry_ptr)
        most = np.repeat(np.where(sparse, n_classes_of, 0), n_feat_of)
        _require(bool(np.all((sizes >= 0) & (sizes <= most))), "row_size is out of range")
        rows = offsets(sizes)
        ends = rows[self.feat_ptr]
        _require(np.array_equal(np.diff(ends), entries), "row_size, entry_ptr differ")
        for begin in range(0, sizes.size, _CHECKED_ROWS):  # few at a time: there may be very many
            some = sizes[begin : begin + _CHECKED_ROWS]
            slots = self.entry_slot[rows[begin] : rows[begin + some.size]]
            row_of = np.repeat(np.arange(some.size), some)
            below = slots < most[begin : begin + some.size][row_of]
            _require(bool(np.all(below)), "entry_slot is out of range")
            rises = (slots[1:] > slots[:-1]) | (row_of[1:] != row_of[:-1])
            _require(bool(np.all(rises)), "entry_slot must be ascending within a feature")


_CHECKED_ROWS = 2**16
_DTYPES: dict[str, type] = {
    "children": INDEX, "router_ptr": OFFSET, "router_idx": INDEX, "router_val": PARAM,
    "bias": PARAM, "class_ptr": OFFSET, "class_ids": INDEX, "leaf_bias": PARAM,
    "feat_ptr": OFFSET, "feat_idx": INDEX, "block_ptr": OFFSET, "block_val": PARAM,
    "row_size": INDEX, "entry_ptr": OFFSET, "entry_slot": SLOT, "entry_val": PARAM,
}  # fmt: skip
_OF_SPARSE_LEAVES = ("row_size", "entry_ptr", "entry_slot", "entry_val")


def array_names(*, sparse: bool = False) -> tuple[str, ...]:
    """Return the names of the arrays that make a tree; those of sparse leaves alone, or others."""
    return tuple(name for name in _DTYPES if (name in _OF_SPARSE_LEAVES) == sparse)


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


class _LeafParts(NamedTuple):
    """Weights of a leaf as a tree stores them: a block, or entries."""

    block: ParamArray
    row_size: IndexArray
    slots: SlotArray
    values: ParamArray


def _parts_of(leaf: Leaf) -> _LeafParts:
    if isinstance(leaf, SparseLeaf):
        return _LeafParts(np.empty(0, PARAM), leaf.row_sizes, leaf.slots, leaf.values)
    none = np.zeros(leaf.features.size, dtype=INDEX)
    return _LeafParts(leaf.weights.ravel(), none, np.empty(0, SLOT), np.empty(0, PARAM))


def _pack_leaves(leaves: Sequence[Leaf | None]) -> dict[str, AnyArray]:
    parts = [_parts_of(leaf) if leaf else None for leaf in leaves]
    return {
        "class_ptr": offsets([leaf.classes.size if leaf else 0 for leaf in leaves]),
        "class_ids": join([leaf.classes for leaf in leaves if leaf], INDEX),
        "leaf_bias": join([leaf.bias for leaf in leaves if leaf], PARAM),
        "feat_ptr": offsets([leaf.features.size if leaf else 0 for leaf in leaves]),
        "feat_idx": join([leaf.features for leaf in leaves if leaf], INDEX),
        "block_ptr": offsets([part.block.size if part else 0 for part in parts]),
        "block_val": join([part.block for part in parts if part], PARAM),
        "row_size": join([part.row_size for part in parts if part], INDEX),
        "entry_ptr": offsets([part.values.size if part else 0 for part in parts]),
        "entry_slot": join([part.slots for part in parts if part], SLOT),
        "entry_val": join([part.values for part in parts if part], PARAM),
    }

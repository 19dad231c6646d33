"""A tree packed for prediction: nodes breadth-first, each router and leaf in its best layout.

Packing is one-way: :func:`pack` takes a trained :class:`~thinleaf.model.tree.Tree` and gives arrays
that kernels read through one table of addresses. Classes are ids here, without their labels. Arrays
may come from a file: :meth:`PackedTree.validate` says whether kernels may read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    SLOT,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.arrays.checks import is_whole, require
from thinleaf.arrays.ragged import offsets
from thinleaf.model.kernels.packed import ARRAYS, FLOAT16, FLOAT32, INT8, mark_routers
from thinleaf.model.narrow import (
    LARGE,
    NARROW,
    OF_NARROW,
    ROW_SHIFT,
    features_between,
    n_segments,
    narrowed,
    problem_of,
    row_offsets,
)
from thinleaf.model.nodes import MOST_SLOTS
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Leaf, Nodes, Router, TreeError, join

WeightType: TypeAlias = Literal["float32", "float16", "int8"]

WEIGHT_CODES: dict[WeightType, int] = {"float32": FLOAT32, "float16": FLOAT16, "int8": INT8}
_MAX_BEAM = 1024
_MIN_TEMPERATURE = 1e-3
_N_TOP = 128  # for each path: seven levels of a tree
_MIN_MARKED = 4  # weights of routers for each feature: where there are fewer, all are added up
_MAX_DENSE_WIDTH = 2**24
"""A sparse row takes this much scratch at most, whatever a file says."""

# What an entry of a sparse row costs, in numbers of a dense block: for dense rows in time, since
# scattered additions do not vectorise; for sparse rows, where both take nearly the same time, in
# bytes. Measured by benchmarks/latency.py.
_ENTRY_COST_DENSE = 10.0
_ENTRY_COST_SPARSE = 1.5


@dataclass(frozen=True, eq=False, repr=False)
class PackedTree:
    """The arrays of a tree that only predicts.

    Attributes
    ----------
    n_features, n_classes : int
    sparse : bool
        Whether the layout is for sparse rows. Rows of the other kind are converted.
    weights : {"float32", "float16", "int8"}
        Type of the leaf weights.
    n_trees : int
        The first nodes are the roots of as many trees.
    child : ndarray of shape (n_nodes,)
        A router's left child, whose right sibling comes next; of leaf number i, ``-1 - i``.
    bias : ndarray of shape (n_nodes,)
    dense_at : ndarray of shape (n_nodes,)
        Row of ``dense_val`` that holds a router's weights over all features, or -1.
    dense_val : ndarray
    router_ptr, router_idx, router_val : the other routers' weights, compressed
        For dense rows by node, so that ``router_idx`` are features; for sparse rows by feature, so
        that they are nodes: the few weights of a word stand together, whatever path is taken.
    class_ptr, class_ids, leaf_bias : by leaf
    scale : ndarray aligned with ``class_ids``; empty unless ``weights`` is "int8"
    feat_ptr, feat_idx : features that a leaf uses; none for a block over all features
    block_ptr, block : leaves with dense blocks, of shape (features, classes)
    row_ptr, slot, entry : leaves with sparse rows
        Row r, aligned with ``feat_idx``, has entries for the classes in ``slot``, counted within
        the leaf.
    inside, outside : ndarray of shape (n_leaves,)
        Probability of the leaf's own classes; factor of the prior of the others.
    prior, rank : ndarray of shape (n_classes,)
        Of classes outside a leaf, and their order by it.
    extra_ptr, extra_ids, extra : by leaf
        Classes outside the leaf that it has seen: what is added to their prior.
    segment_ptr, row_base : offsets of a narrow tree, else empty
        Then ``feat_idx`` and ``row_ptr`` are of two bytes (:mod:`thinleaf.model.narrow`).
    """

    n_features: int
    n_classes: int
    sparse: bool
    weights: WeightType
    n_trees: int
    child: IndexArray
    bias: ParamArray
    dense_at: IndexArray
    dense_val: ParamArray
    router_ptr: OffsetArray
    router_idx: AnyArray
    router_val: AnyArray
    class_ptr: OffsetArray
    class_ids: IndexArray
    leaf_bias: ParamArray
    scale: ParamArray
    feat_ptr: OffsetArray
    feat_idx: AnyArray
    block_ptr: OffsetArray
    block: AnyArray
    row_ptr: AnyArray
    slot: AnyArray
    entry: AnyArray
    inside: AccumArray
    outside: AccumArray
    prior: AccumArray
    rank: IndexArray
    extra_ptr: OffsetArray
    extra_ids: IndexArray
    extra: AccumArray
    segment_ptr: OffsetArray = field(default_factory=lambda: np.empty(0, OFFSET))
    row_base: OffsetArray = field(default_factory=lambda: np.empty(0, OFFSET))

    def __post_init__(self) -> None:
        """Make the arrays read-only: kernels trust what has been checked."""
        for own in fields(self):
            array = getattr(self, own.name)
            if isinstance(array, np.ndarray):
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, own.name, view)

    @property
    def n_nodes(self) -> int:
        """Number of routers and leaves."""
        return int(self.child.size)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.class_ptr.size - 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(array.nbytes) for array in self.arrays().values())

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays by name; those that only narrow trees have, if they are not empty."""
        named = {name: getattr(self, name) for name in array_dtypes(self.weights)}
        return {name: array for name, array in named.items() if array.size or name not in OF_NARROW}

    # -- looking at nodes --------------------------------------------------------------------------

    @property
    def node_depth(self) -> IndexArray:
        """Depth of each node, of shape (n_nodes,)."""
        depth = np.zeros(self.n_nodes, dtype=INDEX)
        begin, end, level = 0, self.n_trees, 0
        while begin < end:  # breadth-first: the nodes of a level stand together
            depth[begin:end] = level
            n_routers = int(np.count_nonzero(self.child[begin:end] >= 0))
            begin, end, level = end, end + 2 * n_routers, level + 1
        return depth

    def router(self, node: int) -> Router:
        """Return the hyperplane of a router, whatever its layout."""
        if not 0 <= node < self.n_nodes or self.child[node] < 0:
            raise TreeError(f"node {node} is no router")
        bias = float(self.bias[node])
        row = int(self.dense_at[node])
        if row >= 0:
            weights = self.dense_val[row * self.n_features : (row + 1) * self.n_features]
            features = np.flatnonzero(weights).astype(INDEX)
            return Router(features, weights[features], bias)
        if self.sparse:
            entries = np.flatnonzero(self.router_idx == node)
            own_features = np.searchsorted(self.router_ptr, entries, side="right") - 1
            values = self.router_val[entries].astype(PARAM, copy=False)
            return Router(own_features.astype(INDEX), values, bias)
        own = slice(*self.router_ptr[node : node + 2])
        return Router(self.router_idx[own], self.router_val[own], bias)

    def leaf(self, i: int) -> Leaf:
        """Return the softmax of leaf number ``i``, its weights as float32.

        Raises
        ------
        TreeError
            If there is no such leaf, or if what a file says of it is out of range.
        """
        if not 0 <= i < self.n_leaves:
            raise TreeError(f"there is no leaf {i}")
        own = slice(*self.class_ptr[i : i + 2])
        classes, bias = self.class_ids[own], self.leaf_bias[own]
        features = features_between(self, i, i + 1)
        _require_ascending("class_ids", classes, self.n_classes)
        _require_ascending("feat_idx", features, self.n_features)
        stored = self.block[slice(*self.block_ptr[i : i + 2])]
        if stored.size == 0:
            weights = self._entries_of_leaf(i, features.size, classes.size)
        else:
            weights = stored.reshape(-1, classes.size).astype(PARAM)
            if features.size == 0:
                features = np.flatnonzero(weights.any(axis=1)).astype(INDEX)
                weights = weights[features]
        if self.weights == "int8":
            weights = weights * self.scale[own]
        finite = bool(np.all(np.isfinite(weights)) and np.all(np.isfinite(bias)))
        _require(finite, f"the weights of leaf {i} must be finite")
        return Leaf(classes, features, weights, bias)

    def _entries_of_leaf(self, i: int, n_features: int, n_classes: int) -> ParamArray:
        """Return the weights of a leaf with sparse rows, of shape (n_features, n_classes)."""
        begin, end = self.feat_ptr[i : i + 2]
        ptr = row_offsets(self, int(begin), int(end))
        valid = 0 <= ptr[0] <= ptr[-1] <= self.slot.size and bool(np.all(ptr[:-1] <= ptr[1:]))
        _require(valid, f"row_ptr of leaf {i} must rise")
        slots = self.slot[ptr[0] : ptr[-1]]
        _require(bool(np.all(slots < n_classes)), f"slot of leaf {i} is out of range")
        weights = np.zeros((n_features, n_classes), dtype=PARAM)
        rows = np.repeat(np.arange(n_features), np.diff(ptr))
        weights[rows, slots] = self.entry[ptr[0] : ptr[-1]]
        return weights

    # -- checking ----------------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise :class:`TreeError` unless kernels may safely run, but for the insides of leaves.

        Those are checked by the kernels when a row first reaches a leaf (``state`` 0), so that a
        large memory-mapped model opens without reading its weights.
        """
        for name, dtype in array_dtypes(self.weights).items():
            array = getattr(self, name)
            narrow = self.sparse and name in NARROW and array.dtype == NARROW[name]
            fits = array.dtype == dtype or narrow
            _require(fits, f"{name} must be {np.dtype(dtype)}, is {array.dtype}")
            _require(array.ndim == 1, f"{name} must have one axis")
            _require(array.flags.c_contiguous, f"{name} must be contiguous")
        limit = 2**31 if self.sparse else _MAX_DENSE_WIDTH + 1
        _require(0 <= self.n_features < limit, "n_features is out of range")
        _require(0 < self.n_classes < 2**31, "n_classes is out of range")
        self._validate_structure()
        self._validate_routers()
        self._validate_leaves()
        self._validate_outside()

    def _validate_structure(self) -> None:
        n, n_leaves = self.n_nodes, self.n_leaves
        _require(0 < self.n_trees <= n_leaves, "a tree needs a leaf")
        _require(n == 2 * n_leaves - self.n_trees, "a binary tree has one router less than leaves")
        routers = np.flatnonzero(self.child >= 0)
        _require(
            np.array_equal(self.child[routers], 2 * np.arange(routers.size) + self.n_trees),
            "nodes must be numbered breadth-first",
        )
        _require(bool(np.all(self.child[routers] > routers)), "a child must come after its parent")
        leaves = -1 - self.child[self.child < 0].astype(OFFSET)
        _require(np.array_equal(leaves, np.arange(n_leaves)), "leaves must be numbered in order")

    def _validate_routers(self) -> None:
        n = self.n_nodes
        _require(self.bias.shape == (n,) and self.dense_at.shape == (n,), "one entry a node")
        n_dense = _rows_of(self.dense_val.size, self.n_features)
        dense = self.dense_at[self.dense_at >= 0]
        _require(bool(np.all(self.dense_at >= -1)), "dense_at must be -1 or a row")
        _require(np.array_equal(np.sort(dense), np.arange(n_dense)), "each dense row has a router")
        _require(bool(np.all(self.child[self.dense_at >= 0] >= 0)), "only routers route")
        n_lists = self.n_features if self.sparse else n
        _require_pointers("router_ptr", self.router_ptr, n_lists, self.router_idx.size)
        _require(self.router_val.shape == self.router_idx.shape, "router_val, router_idx differ")
        limit = n if self.sparse else self.n_features
        _require_ids("router_idx", self.router_idx, limit)
        rises = self.router_idx[1:] > self.router_idx[:-1]
        starts = self.router_ptr[1:-1]
        rises[starts[(starts > 0) & (starts < self.router_idx.size)] - 1] = True
        _require(bool(np.all(rises)), "router_idx must be ascending")
        for name in ("bias", "dense_val", "router_val"):
            _require(bool(np.all(np.isfinite(getattr(self, name)))), f"{name} must be finite")

    def _validate_leaves(self) -> None:
        n_leaves = self.n_leaves
        _require_pointers("class_ptr", self.class_ptr, n_leaves, self.class_ids.size)
        _require_pointers("feat_ptr", self.feat_ptr, n_leaves, self.feat_idx.size)
        _require_pointers("block_ptr", self.block_ptr, n_leaves, self.block.size)
        _require_pointers("extra_ptr", self.extra_ptr, n_leaves, self.extra_ids.size)
        _require(self.leaf_bias.shape == self.class_ids.shape, "leaf_bias, class_ids differ")
        scaled = self.class_ids.size if self.weights == "int8" else 0
        _require(self.scale.shape == (scaled,), "scale must have one entry a class of a leaf")
        k, used, block = (np.diff(ptr) for ptr in (self.class_ptr, self.feat_ptr, self.block_ptr))
        _require(bool(np.all((k > 0) & (k <= self.n_classes))), "every leaf needs a class")
        # Python integers: a product of hostile sizes must not overflow
        for classes, features, size in zip(k.tolist(), used.tolist(), block.tolist(), strict=True):
            rows = self.n_features if features == 0 and not self.sparse else features
            _require(size in (0, rows * classes), "a block must have shape (features, classes)")
            _require(
                size > 0 or features == 0 or classes <= MOST_SLOTS, "too many classes for slots"
            )
        n_rows = self.feat_idx.size
        _require(self.row_ptr.shape == (n_rows + 1,), "row_ptr must have one entry a feature")
        problem = problem_of(self)
        _require(problem is None, str(problem))
        first, last = row_offsets(self, 0, 0), row_offsets(self, n_rows, n_rows)
        _require(first[0] == 0 and last[0] == self.slot.size, "row_ptr, slot differ")
        _require(self.entry.shape == self.slot.shape, "entry, slot differ")

    def _validate_outside(self) -> None:
        _require(self.extra.shape == self.extra_ids.shape, "extra, extra_ids differ")
        for name in ("inside", "outside"):
            values = getattr(self, name)
            _require(values.shape == (self.n_leaves,), f"{name} must have one entry a leaf")
            top = 1.0 if name == "inside" else np.finfo(ACCUM).max
            valid = (values >= 0.0) & (values <= top)
            _require(bool(np.all(valid)), f"{name} must be finite and at least 0")
        _require(self.prior.shape == self.rank.shape == (self.n_classes,), "one prior a class")
        _require(bool(np.all((self.prior >= 0.0) & (self.prior <= 1.0))), "prior must be in [0, 1]")
        _require_ids("rank", self.rank, self.n_classes)
        seen = np.zeros(self.n_classes, dtype=np.bool_)
        seen[self.rank] = True
        _require(bool(np.all(seen)), "rank must hold every class once")
        _require(bool(np.all(np.diff(self.prior[self.rank]) <= 0.0)), "rank must follow the prior")

    # -- for kernels -------------------------------------------------------------------------------

    def table(
        self, beam: int, temperature: float, state: AnyArray
    ) -> tuple[OffsetArray, list[AnyArray]]:
        """Return the table of addresses, and the arrays to keep alive as long as it is used.

        Parameters
        ----------
        beam : int
        temperature : float
            What scores of routers are divided by in a beam.
        state : ndarray of shape (n_leaves,) of uint8
            1 for leaves that need no check; kernels write into it.
        """
        if not is_whole(beam) or not 1 <= beam <= _MAX_BEAM:
            raise ValueError(f"beam must be an integer in 1..{_MAX_BEAM}, got {beam!r}")
        number = isinstance(temperature, float | int | np.floating | np.integer)
        number &= not isinstance(temperature, bool)
        if not number or not _MIN_TEMPERATURE <= temperature <= 1.0 / _MIN_TEMPERATURE:
            raise ValueError(f"temperature must be from 0.001 to 1000, got {temperature!r}")
        n_top = min(self.n_nodes, _N_TOP * self.n_trees * int(beam)) if self.sparse else 0
        marked = self.sparse and self.n_trees * beam == 1
        marked &= self.router_idx.size >= _MIN_MARKED * self.n_features
        near = np.empty(3 * self.n_features if marked else 0, dtype=np.uint64)
        numbers = [
            self.n_features, self.n_classes, int(self.sparse), WEIGHT_CODES[self.weights],
            self.n_trees, beam, self.slot.size, n_top,
            self.router_idx.itemsize, FLOAT32 if self.router_val.dtype == PARAM else FLOAT16,
            n_segments(self.n_features) if self.segment_ptr.size else 0,
            ROW_SHIFT if self.row_base.size else -1, self.slot.itemsize, int(marked),
        ]  # fmt: skip
        sharpness = np.array([1.0 / float(temperature)])
        own = {"state": state, "sharpness": sharpness, "near": near}
        kept = [own[name] if name in own else getattr(self, name) for name in ARRAYS]
        addresses = [array.__array_interface__["data"][0] for array in kept]
        table: OffsetArray = np.array(numbers + addresses, dtype=OFFSET)
        if marked:
            mark_routers(table)
        return table, kept


def array_dtypes(weights: WeightType) -> dict[str, type]:
    """Return the dtype of each array of a packed tree, unless it is narrow."""
    weight = {"float32": PARAM, "float16": np.float16, "int8": np.int8}[weights]
    own: dict[str, type] = {"block": weight, "entry": weight, "slot": SLOT, "rank": INDEX}
    by_suffix = {"_ptr": OFFSET, "_idx": INDEX, "_ids": INDEX, "_val": PARAM, "_at": INDEX}
    floats = dict.fromkeys(("inside", "outside", "prior", "extra"), ACCUM)
    named = own | floats | {"child": INDEX, "bias": PARAM, "leaf_bias": PARAM, "scale": PARAM}
    named["row_base"] = OFFSET
    names = [field.name for field in fields(PackedTree)][5:]
    return {
        name: named[name] if name in named else by_suffix["_" + name.rsplit("_", 1)[1]]
        for name in names
    }


# -- packing ---------------------------------------------------------------------------------------


def pack(
    tree: Nodes,
    outside: Outside,
    *,
    sparse: bool,
    n_trees: int = 1,
    blocks: bool | None = None,
) -> PackedTree:
    """Pack a tree whose nodes are numbered breadth-first, as pruning leaves them.

    Parameters
    ----------
    tree : Tree, or any other Nodes
    outside : Outside
        What classes outside a leaf get, by node of the tree.
    sparse : bool
        Whether rows to come are mostly sparse. Very wide rows are taken to be.
    n_trees : int
        How many roots the nodes begin with.
    blocks : bool, optional
        Store all leaves as dense blocks, or all as sparse rows; by default, each as is cheaper.
    """
    sparse = sparse or tree.n_features > _MAX_DENSE_WIDTH
    leaf_nodes = np.flatnonzero(tree.is_leaf)
    child = tree.children[:, 0].copy()
    child[leaf_nodes] = -1 - np.arange(leaf_nodes.size)
    if not np.array_equal(tree.children[child >= 0, 1], child[child >= 0] + 1):
        raise TreeError("nodes must be numbered breadth-first: prune the tree first")
    packed = PackedTree(
        tree.n_features,
        tree.n_classes,
        sparse,
        "float32",
        n_trees,
        child.astype(INDEX),
        tree.bias.copy(),
        **_pack_routers(tree, sparse),
        **_pack_leaves(
            (tree.leaf(int(node)) for node in leaf_nodes), tree.n_features, sparse, blocks
        ),
        scale=np.empty(0, PARAM),
        **outside.of_leaves(leaf_nodes),
    )
    if packed.nbytes > LARGE:
        packed = narrowed(packed)
    packed.validate()
    return packed


def _pack_routers(tree: Nodes, sparse: bool) -> dict[str, AnyArray]:
    """Store a router over all features where that is smaller; the others compressed."""
    routers = {int(i): tree.router(int(i)) for i in np.flatnonzero(~tree.is_leaf)}
    dense = [i for i, router in routers.items() if 2 * router.features.size > tree.n_features]
    dense_at = np.full(tree.n_nodes, -1, dtype=INDEX)
    dense_at[dense] = np.arange(len(dense))
    dense_val = np.zeros((len(dense), tree.n_features), dtype=PARAM)
    for row, i in enumerate(dense):
        dense_val[row, routers[i].features] = routers[i].weights
    empty = Router(np.empty(0, INDEX), np.empty(0, PARAM), 0.0)
    others = [
        routers[i] if i in routers and dense_at[i] < 0 else empty for i in range(tree.n_nodes)
    ]
    sizes = np.array([router.features.size for router in others])
    idx = np.concatenate([router.features for router in others]).astype(INDEX)
    val = np.concatenate([router.weights for router in others]).astype(PARAM)
    if sparse:
        by_feature = np.argsort(idx, kind="stable")
        sizes = np.bincount(idx, minlength=tree.n_features)
        nodes = np.repeat(np.arange(tree.n_nodes), [router.features.size for router in others])
        idx, val = nodes[by_feature].astype(INDEX), val[by_feature]
    return {
        "dense_at": dense_at,
        "dense_val": dense_val.ravel(),
        "router_ptr": offsets(sizes),
        "router_idx": idx,
        "router_val": val,
    }


def _pack_leaves(
    leaves: Iterable[Leaf], n_features: int, sparse: bool, blocks: bool | None
) -> dict[str, AnyArray]:
    classes: list[AnyArray] = []
    bias: list[AnyArray] = []
    feat: list[AnyArray] = []
    dense: list[AnyArray] = []
    slots: list[AnyArray] = []
    entries: list[AnyArray] = []
    row_sizes: list[AnyArray] = []
    for leaf in leaves:
        k = leaf.classes.size
        if _as_block(leaf, sparse, blocks):
            whole = not sparse and 2 * leaf.features.size > n_features
            features = np.empty(0, INDEX) if whole else leaf.features
            block = leaf.weights
            if whole:
                block = np.zeros((n_features, k), dtype=PARAM)
                block[leaf.features] = leaf.weights
            dense.append(block.ravel())
            row_sizes.append(np.zeros(features.size, dtype=OFFSET))
        else:
            features = leaf.features
            sizes, own_slots, values = leaf.nonzero()
            slots.append(own_slots)
            entries.append(values)
            row_sizes.append(sizes)
            dense.append(np.empty(0, PARAM))
        feat.append(features)
        classes.append(leaf.classes)
        bias.append(leaf.bias)
    return {
        "class_ptr": offsets([ids.size for ids in classes]),
        "class_ids": join(classes, INDEX),
        "leaf_bias": join(bias, PARAM),
        "feat_ptr": offsets([features.size for features in feat]),
        "feat_idx": join(feat, INDEX),
        "block_ptr": offsets([block.size for block in dense]),
        "block": join(dense, PARAM),
        "row_ptr": offsets(join(row_sizes, OFFSET)),
        "slot": join(slots, SLOT),
        "entry": join(entries, PARAM),
    }


def _as_block(leaf: Leaf, sparse: bool, blocks: bool | None) -> bool:
    """Return whether a leaf is stored as a dense block: asked for, or cheaper than sparse rows."""
    if leaf.features.size == 0:
        return False
    if leaf.classes.size > MOST_SLOTS:
        return True
    if blocks is not None:
        return blocks
    cost = _ENTRY_COST_SPARSE if sparse else _ENTRY_COST_DENSE
    return cost * int(np.count_nonzero(leaf.stored)) > leaf.n_weights


# -- small steps -----------------------------------------------------------------------------------


def _rows_of(size: int, width: int) -> int:
    _require(size == 0 or (width > 0 and size % width == 0), "dense_val must have whole rows")
    return size // width if size else 0


_require = partial(require, error=TreeError)


def _require_pointers(name: str, ptr: OffsetArray, n: int, n_items: int) -> None:
    monotone = ptr.shape == (n + 1,) and ptr[0] == 0 and bool(np.all(ptr[:-1] <= ptr[1:]))
    _require(monotone and ptr[-1] == n_items, f"{name} must rise from 0 to {n_items}")


def _require_ids(name: str, ids: IndexArray, limit: int) -> None:
    _require(bool(np.all((ids >= 0) & (ids < limit))), f"{name} must lie in 0..{limit - 1}")


def _require_ascending(name: str, ids: IndexArray, limit: int) -> None:
    _require_ids(name, ids, limit)
    _require(bool(np.all(ids[:-1] < ids[1:])), f"{name} must be ascending")

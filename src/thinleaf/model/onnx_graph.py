"""Packed trees and forests of one path as ONNX graphs of standard operators; needs the extra onnx.

The path is unrolled: at each level a row's node says which entries of which features to gather,
and the sign of their sum which node comes next; a leaf is its own child. Entries of all nodes of a
level are padded to the longest: what a graph costs a row is the longest router of each level and
the largest leaf, not its own ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray
from thinleaf.arrays.ragged import offsets
from thinleaf.model.packing import PackedTree

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree

OPSET = 18
MAX_STEPS = 256
MAX_PADDED = 10_000_000
_NO_SCORE = np.float32(-3e38)
"""Of classes that a leaf with fewer than the most does not have."""


def to_onnx(model: FrozenTree, *, probabilities: bool = True) -> Any:
    """Return a model as an ONNX graph.

    See :meth:`thinleaf.FrozenTree.to_onnx`.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("onnx is needed for this: pip install 'thinleaf[onnx]'") from error
    packed = model.packed
    if model.beam > 1:
        raise ValueError("a graph takes one path in each tree: call with_beam(1) first")
    depth = int(packed.node_depth.max())
    if model.n_trees * max(depth, 1) > MAX_STEPS:
        raise ValueError(
            f"{model.n_trees} trees of depth {depth} are more than {MAX_STEPS} steps of a graph: "
            "deploy the model file instead, or fewer trees with prefix(…)"
        )
    model.check()
    graph = _Graph()
    _tree_graph(graph, packed, model.labels, depth, probabilities)
    label_type = _onnx_type(onnx, model.labels)
    outputs = [onnx.helper.make_tensor_value_info("label", label_type, ["rows"])]
    if probabilities:
        shape: list[str | int | None] = ["rows", model.n_classes]
        outputs.append(
            onnx.helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, shape)
        )
    rows = onnx.helper.make_tensor_value_info(
        "X", onnx.TensorProto.FLOAT, ["rows", packed.n_features]
    )
    make = onnx.helper
    nodes = [make.make_node(kind, ins, [out], **more) for kind, ins, out, more in graph.nodes]
    constants = [_tensor(onnx, name, array) for name, array in graph.constants.items()]
    made = make.make_model(
        make.make_graph(nodes, "thinleaf", [rows], outputs, constants),
        opset_imports=[make.make_opsetid("", OPSET)],
        ir_version=9,
        producer_name="thinleaf",
    )
    onnx.checker.check_model(made)
    return made


@dataclass
class _Graph:
    """Operators in order, each with one result, and constants."""

    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, AnyArray] = field(default_factory=dict)
    known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def do(self, kind: str, *inputs: str, to: str | None = None, **more: Any) -> str:
        name = to or f"{kind.lower()}_{len(self.nodes)}"
        if "to_type" in more:  # what the operator calls "to", as the argument for the name is
            more["to"] = more.pop("to_type")
        self.nodes.append((kind, list(inputs), name, more))
        return name

    def keep(self, array: AnyArray) -> str:
        """Return the name of a constant; equal ones are kept once."""
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype != object else b"")
        name = f"constant_{len(self.constants)}"
        if array.dtype != object:
            name = self.known.setdefault(key, name)
        self.constants.setdefault(name, array)
        return name

    def of(self, value: AnyArray, index: str) -> str:
        """Take entries of a constant."""
        return self.do("Gather", self.keep(value), index)


@dataclass(frozen=True)
class _Entries:
    """Parts of several sizes; the last entry of each array is for what is not there."""

    ptr: AnyArray
    features: AnyArray
    weights: AnyArray
    slots: AnyArray

    def taken(self, graph: _Graph, number: str) -> tuple[str, str]:
        """Return x_f w and slots of the part that each row has the number of, padded."""
        longest = int(np.diff(self.ptr).max(initial=0))
        begin = graph.of(self.ptr[:-1], number)
        end = graph.of(self.ptr[1:], number)
        at = graph.do("Add", _column(graph, begin), graph.keep(np.arange(longest)[None]))
        none = graph.keep(np.array(self.features.size - 1))
        at = graph.do("Where", graph.do("Less", at, _column(graph, end)), at, none)
        x = graph.do("GatherElements", "X", graph.of(self.features, at), axis=1)
        return graph.do("Mul", x, graph.of(self.weights, at)), graph.of(self.slots, at)


def _column(graph: _Graph, vector: str) -> str:
    return graph.do("Unsqueeze", vector, graph.keep(np.array([1])))


def _joined(parts: list[tuple[AnyArray, AnyArray, AnyArray]]) -> _Entries:
    sizes = [len(features) for features, _, _ in parts]
    if len(parts) * max(sizes, default=0) > MAX_PADDED * 100 or max(sizes, default=0) > MAX_PADDED:
        raise ValueError("a node has too many weights for a graph: deploy the model file instead")
    columns = zip(*parts, strict=True)
    features, weights, slots = (np.concatenate([*column, [0]]) for column in columns)
    return _Entries(
        offsets(sizes), features.astype(np.int64), weights.astype(PARAM), slots.astype(np.int64)
    )


def _tree_graph(
    graph: _Graph, packed: PackedTree, labels: AnyArray, depth: int, probabilities: bool
) -> None:
    rows = graph.do("Slice", graph.do("Shape", "X"), *(graph.keep(np.array([i])) for i in (0, 1)))
    one_tree = packed.n_trees == 1
    wanted = probabilities or not one_tree
    total = ""
    for tree in range(packed.n_trees):
        node = graph.do("Expand", graph.keep(np.array([tree])), rows)
        for level in range(depth):
            node = _next_node(graph, packed, node, level)
        leaf = graph.of(np.maximum(-1 - packed.child, 0).astype(np.int64), node)
        scores, classes = _scores(graph, packed, leaf)
        if one_tree:
            best = graph.do("ArgMax", scores, axis=1, keepdims=1)
            chosen = graph.do("GatherElements", classes, best, axis=1)
            flat = graph.do("Squeeze", chosen, graph.keep(np.array([1])))
            graph.do("Gather", graph.keep(labels), flat, to="label")
        if wanted:
            own = _probabilities(graph, packed, leaf, scores, classes)
            total = own if not total else graph.do("Add", total, own)
    if not one_tree:
        best = graph.do("ArgMax", total, axis=1, keepdims=0)
        graph.do("Gather", graph.keep(labels), best, to="label")
    if probabilities:
        share = graph.keep(np.array(1.0 / packed.n_trees))
        scaled = graph.do("Mul", total, share)
        kept = graph.do("Max", scaled, graph.keep(np.array(0.0)))
        graph.do("Cast", kept, to="probabilities", to_type=1)


def _next_node(graph: _Graph, packed: PackedTree, node: str, level: int) -> str:
    """Return the nodes of the next level; a leaf stays where it is."""
    at_level = np.flatnonzero((packed.node_depth == level) & (packed.child >= 0))
    routers = [packed.router(int(i)) for i in at_level]
    none = (np.empty(0), np.empty(0), np.empty(0))
    parts = [(r.features, r.weights, np.zeros(r.features.size)) for r in routers]
    number = np.full(packed.n_nodes, len(parts), dtype=np.int64)
    number[at_level] = np.arange(at_level.size)
    products, _ = _joined([*parts, none]).taken(graph, graph.of(number, node))
    total = graph.do("ReduceSum", products, graph.keep(np.array([1])), keepdims=0)
    score = graph.do("Add", total, graph.of(packed.bias, node))
    right = graph.do("GreaterOrEqual", score, graph.keep(np.zeros((), dtype=PARAM)))
    stays = np.arange(packed.n_nodes)
    left = np.where(number < len(parts), packed.child, stays).astype(np.int64)
    step = (number < len(parts)).astype(np.int64)
    move = graph.do("Mul", graph.do("Cast", right, to_type=7), graph.of(step, node))
    return graph.do("Add", graph.of(left, node), move)


def _scores(graph: _Graph, packed: PackedTree, leaf: str) -> tuple[str, str]:
    """Return the scores and the classes of each row's leaf, padded to the most classes."""
    leaves = [packed.leaf(i) for i in range(packed.n_leaves)]
    most = max(own.classes.size for own in leaves)
    bias = np.full((len(leaves), most), _NO_SCORE, dtype=PARAM)
    classes = np.zeros((len(leaves), most), dtype=np.int64)
    parts = []
    for i, own in enumerate(leaves):
        bias[i, : own.bias.size] = own.bias
        classes[i, : own.classes.size] = own.classes
        row, slot = np.nonzero(own.weights)
        parts.append((own.features[row], own.weights[row, slot], slot))
    products, slots = _joined(parts).taken(graph, leaf)
    scores = graph.do(
        "ScatterElements", graph.of(bias, leaf), slots, products, axis=1, reduction="add"
    )
    return scores, graph.of(classes, leaf)


def _probabilities(graph: _Graph, packed: PackedTree, leaf: str, scores: str, classes: str) -> str:
    """Return the probability of every class: see ``mixture_of`` of the kernels."""
    wide = graph.do("Softmax", graph.do("Cast", scores, to_type=11), axis=1)
    inside = _column(graph, graph.of(packed.inside, leaf))
    outside = _column(graph, graph.of(packed.outside, leaf))
    everywhere = graph.do("Mul", outside, graph.keep(packed.prior[None]))
    held = np.arange(np.diff(packed.class_ptr).max())[None] < np.diff(packed.class_ptr)[:, None]
    missing = graph.do("Mul", outside, graph.do("Gather", graph.keep(packed.prior), classes))
    own = graph.do("Sub", graph.do("Mul", inside, wide), missing)
    own = graph.do("Mul", own, graph.of(held.astype(np.float64), leaf))
    p = graph.do("ScatterElements", everywhere, classes, own, axis=1, reduction="add")
    sizes = np.diff(packed.extra_ptr)
    if sizes.max(initial=0) == 0:
        return p
    ids = np.zeros((packed.n_leaves, sizes.max()), dtype=np.int64)
    extra = np.zeros(ids.shape)
    for i in range(packed.n_leaves):
        seen = slice(*packed.extra_ptr[i : i + 2])
        ids[i, : sizes[i]], extra[i, : sizes[i]] = packed.extra_ids[seen], packed.extra[seen]
    more = graph.do("Mul", outside, graph.of(extra, leaf))
    return graph.do("ScatterElements", p, graph.of(ids, leaf), more, axis=1, reduction="add")


def _onnx_type(onnx: Any, labels: AnyArray) -> Any:
    kinds = {"i": "INT64", "u": "INT64", "f": "DOUBLE", "b": "BOOL"}
    return getattr(onnx.TensorProto, kinds.get(labels.dtype.kind, "STRING"))


def _tensor(onnx: Any, name: str, array: AnyArray) -> Any:
    if array.dtype.kind in "OU":
        texts = [str(label).encode() for label in array.tolist()]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, [len(texts)], texts)
    if array.dtype.kind in "iu":
        array = array.astype(np.int64)
    return onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)

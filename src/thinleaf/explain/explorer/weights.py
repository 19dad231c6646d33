"""The weights of routers and leaves as a page holds them, and which features matter most at a node.

Here alone the layout of packed trees is known: routers through their arrays, leaves through
:meth:`thinleaf.model.packing.PackedTree.leaf`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.outline import LabelNodes, Outline
from thinleaf.model.packing import PackedTree
from thinleaf.model.tree import Leaf

_MOST_PRODUCTS = 4_000_000_000
"""Multiplications that the top features of a label tree may cost."""


@dataclass(frozen=True, eq=False)
class Routers:
    """Weights by node, features ascending.

    Attributes
    ----------
    ptr, features, weights : compressed by node
    in_lanes : ndarray of shape (n_nodes,)
        Whether a router adds up in eight lanes, as kernels do with weights over all features.
    """

    ptr: OffsetArray
    features: IndexArray
    weights: ParamArray
    in_lanes: AnyArray


def routers_of(packed: PackedTree) -> Routers:
    """Return the routers of a packed tree, by node whatever its layout."""
    n, d = packed.n_nodes, packed.n_features
    at = packed.router_ptr
    own = np.repeat(np.arange(at.size - 1), np.diff(at))
    nodes, features = (packed.router_idx, own) if packed.sparse else (own, packed.router_idx)
    values = packed.router_val
    dense = np.flatnonzero(packed.dense_at >= 0)
    if dense.size:
        table = packed.dense_val.reshape(-1, d)[packed.dense_at[dense]]
        row, column = np.nonzero(table)
        nodes = np.concatenate([nodes, dense[row]])
        features = np.concatenate([features, column])
        values = np.concatenate([values, table[row, column]])
    order = np.lexsort((features, nodes))
    in_lanes = (packed.dense_at >= 0) & (not packed.sparse)
    return Routers(
        offsets(np.bincount(nodes, minlength=n)),
        features[order].astype(INDEX),
        values[order].astype(PARAM),
        in_lanes.astype(np.uint8),
    )


def add_routers(block: Block, packed: PackedTree, routers: Routers) -> None:
    """Add what takes rows to leaves, and what mixes leaves."""
    block.add("router.sizes", np.diff(routers.ptr))
    block.add_rising("router.features", routers.features)
    block.add("router.weights", _half_if_exact(routers.weights))
    block.add("router.lanes", routers.in_lanes)
    block.add("router.bias", packed.bias)
    block.add("leaf.bias", packed.leaf_bias)
    block.add("leaf.scale", packed.scale)
    for name in ("inside", "outside", "prior", "extra"):
        block.add(name, getattr(packed, name))
    block.add("rank", packed.rank)
    block.add("extra.sizes", np.diff(packed.extra_ptr))
    block.add("extra.ids", packed.extra_ids)


def entries_of_leaves(packed: PackedTree) -> IndexArray:
    """Return how many weights of each leaf are not zero, each counted with its feature."""
    counts = np.zeros(packed.n_leaves, dtype=INDEX)
    for i in range(packed.n_leaves):
        leaf = packed.leaf(i)
        counts[i] = np.count_nonzero(leaf.weights) + leaf.features.size // 2
    return counts


def add_leaves(block: Block, packed: PackedTree, kept: AnyArray) -> None:
    """Add the weights of some leaves, which are those of scores before any scale."""
    sizes, features, row_sizes, slots, values = [], [], [], [], []
    for i in kept.tolist():
        leaf = packed.leaf(i)
        weights = leaf.weights
        if packed.weights == "int8":
            scale = packed.scale[packed.class_ptr[i] : packed.class_ptr[i + 1]]
            safe = np.where(scale > 0.0, scale, PARAM(1.0))
            weights = np.rint(weights / safe).astype(np.int8)
        rows, columns = np.nonzero(weights)
        n_entries = np.bincount(rows, minlength=leaf.features.size)
        full = n_entries[rows] == leaf.classes.size
        sizes.append(leaf.features.size)
        features.append(leaf.features)
        row_sizes.append(n_entries)
        slots.append(columns[~full])
        values.append(weights[rows, columns])
    kind = {"float32": PARAM, "float16": np.float16, "int8": np.int8}[packed.weights]
    block.add_rising("kept", kept)
    block.add("kept.sizes", np.array(sizes, dtype=INDEX))
    block.add_rising("kept.features", _joined(features))
    block.add("kept.row_sizes", _joined(row_sizes))
    block.add("kept.slots", _joined(slots))
    block.add("kept.values", np.concatenate([np.empty(0, kind), *values]).astype(kind))


def _half_if_exact(weights: ParamArray) -> AnyArray:
    """Return weights as float16 if they are such numbers, as those of small models are."""
    with np.errstate(over="ignore"):
        halves = weights.astype(np.float16)
    return halves if np.array_equal(halves.astype(PARAM), weights) else weights


def add_label_nodes(block: Block, nodes: LabelNodes, *, rounded: bool = False) -> None:
    """Add embeddings and the parameters of a label tree's nodes, or these rounded to float16."""
    kind = np.float16 if rounded else PARAM
    block.values |= {
        "dim": int(nodes.U.shape[1]),
        "outputs": int(nodes.weights.shape[1]),
        "scale": float(nodes.scale),
    }
    block.add("node.weights", np.ascontiguousarray(nodes.weights, dtype=kind).ravel())
    block.add("node.bias", np.ascontiguousarray(nodes.bias, dtype=PARAM).ravel())
    block.add("embeddings", np.ascontiguousarray(nodes.U, dtype=kind).ravel())


def _joined(parts: list[AnyArray]) -> AnyArray:
    return np.concatenate([np.empty(0, INDEX), *parts]).astype(INDEX)


# -- what matters most -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TopFeatures:
    """The features that decide most at each node: those with the largest effect.

    The effect of a feature is its weight times how much it varies from row to row.

    Attributes
    ----------
    sizes : ndarray of shape (n_nodes,)
    features : ndarray
    weights : ndarray
        Of routers, below zero for the left; of leaves, of the class that is next.
    classes : ndarray
        The class that a leaf's feature speaks for; of routers, the child.
    effects : ndarray
        Without sign.
    """

    sizes: IndexArray
    features: IndexArray
    weights: ParamArray
    classes: IndexArray
    effects: ParamArray


_Top: TypeAlias = tuple[AnyArray, AnyArray, AnyArray, AnyArray]


def top_features(packed: PackedTree, routers: Routers, spread: AnyArray, n: int) -> TopFeatures:
    """Return the top features of each node of a packed tree, at most ``n`` a side.

    Parameters
    ----------
    packed : PackedTree
    routers : Routers
        Of the same.
    spread : ndarray of shape (n_features,)
        How much features vary.
    n : int
    """
    return _collected(_of_packed(packed, routers, spread, n))


def _of_packed(packed: PackedTree, routers: Routers, spread: AnyArray, n: int) -> Iterator[_Top]:
    for node in range(packed.n_nodes):
        if packed.child[node] < 0:
            yield _top_of_leaf(packed.leaf(-1 - int(packed.child[node])), spread, n)
            continue
        own = slice(*routers.ptr[node : node + 2])
        features, weights = routers.features[own], routers.weights[own]
        effects = weights * spread[features]
        order = np.argsort(effects, kind="stable")
        left, right = order[:n], order[::-1][:n]
        top = np.concatenate([left[effects[left] < 0.0], right[effects[right] > 0.0]])
        yield features[top], weights[top], weights[top] > 0.0, np.abs(effects[top])


def _top_of_leaf(leaf: Leaf, spread: AnyArray, n: int) -> _Top:
    if leaf.features.size == 0:
        nothing = np.empty(0, PARAM)
        return leaf.features, nothing, leaf.features, nothing
    best = leaf.weights.argmax(axis=1)
    weights = leaf.weights[np.arange(best.size), best]
    effects = weights * spread[leaf.features]
    top = np.argsort(-effects, kind="stable")[: 2 * n]
    top = top[effects[top] > 0.0]
    return leaf.features[top], weights[top], leaf.classes[best[top]], effects[top]


def top_features_of_labels(outline: Outline, nodes: LabelNodes, n: int) -> TopFeatures | None:
    """Return the features that speak for each child of a label tree's node; None if that is long.

    The score of a child is linear in the features: their weights are U times the child's.
    """
    if nodes.weights.size * nodes.U.shape[0] > _MOST_PRODUCTS:
        return None

    def found() -> Iterator[_Top]:
        none, zero = np.empty(0, INDEX), np.empty(0, PARAM)
        for node in range(outline.n_nodes):
            first, size = int(outline.first_child[node]), int(outline.n_children[node])
            if first < 0:
                yield none, zero, none, zero
                continue
            outputs = nodes.U @ nodes.weights[outline.source[node]].T
            if outputs.shape[1] == 1:  # of two children, the score of the second over the first
                outputs = np.hstack([-outputs, outputs])
            scores = outputs[:, outline.branch[first : first + size]]
            best = scores.argmax(axis=1)
            margin = scores[np.arange(best.size), best] - scores.mean(axis=1)
            top = np.argsort(-margin, kind="stable")[: 2 * n]
            top = top[margin[top] > 0.0]
            yield top, margin[top] * nodes.scale, best[top], margin[top]

    return _collected(found())


def _collected(found: Iterator[_Top]) -> TopFeatures:
    features, weights, classes, effects = zip(*found, strict=True)
    return TopFeatures(
        np.array([part.size for part in features], dtype=INDEX),
        np.concatenate(features).astype(INDEX),
        np.concatenate(weights).astype(PARAM),
        np.concatenate(classes).astype(INDEX),
        np.concatenate(effects).astype(PARAM),
    )

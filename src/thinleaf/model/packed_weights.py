"""The weights that some nodes of a packed tree have for some features, whatever their layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.ragged import ranges
from thinleaf.model.narrow import features_between, row_offsets
from thinleaf.model.packing import PackedTree


def router_weights(packed: PackedTree, nodes: IndexArray, features: IndexArray) -> AccumArray:
    """Return the weights of routers for features, of shape (n_features, n_routers).

    Parameters
    ----------
    packed : PackedTree
    nodes : ndarray of shape (n_routers,)
        Routers, each once.
    features : ndarray of shape (n_features,)
        Ascending; if the layout is for sparse rows, in any order, and as often as one likes.
    """
    weights = np.zeros((features.size, nodes.size), dtype=ACCUM)
    dense_at = packed.dense_at[nodes]
    whole = np.flatnonzero(dense_at >= 0)
    if whole.size:
        begin = dense_at[whole].astype(np.int64) * packed.n_features
        weights[:, whole] = packed.dense_val[features[:, None].astype(np.int64) + begin]
    ptr = packed.router_ptr
    if packed.sparse:
        column = np.full(packed.n_nodes, -1, dtype=INDEX)
        column[nodes] = np.arange(nodes.size)
        sizes = ptr[features + 1] - ptr[features]
        entries = ranges(ptr[features], sizes)
        columns = column[packed.router_idx[entries]]
        rows = np.repeat(np.arange(features.size), sizes)
        kept = columns >= 0
        weights[rows[kept], columns[kept]] = packed.router_val[entries[kept]]
    elif features.size:
        sizes = ptr[nodes + 1] - ptr[nodes]
        entries = ranges(ptr[nodes], sizes)
        own = packed.router_idx[entries]
        rows = np.minimum(np.searchsorted(features, own), features.size - 1)
        kept = features[rows] == own
        columns = np.repeat(np.arange(nodes.size), sizes)
        weights[rows[kept], columns[kept]] = packed.router_val[entries[kept]]
    return weights


def leaf_weights(packed: PackedTree, leaf: int, features: IndexArray) -> AccumArray:
    """Return the weights of a leaf for features, of shape (n_features, n_classes of the leaf).

    The leaf must have been checked: kernels do so when a row first reaches it.
    """
    first, last = packed.class_ptr[leaf : leaf + 2].tolist()
    begin, end = packed.feat_ptr[leaf : leaf + 2].tolist()
    block, block_end = packed.block_ptr[leaf : leaf + 2].tolist()
    k = last - first
    weights = np.zeros((features.size, k), dtype=ACCUM)
    if begin == end:
        if block < block_end:  # over all features
            weights[:] = packed.block[block:block_end].reshape(-1, k)[features]
    else:
        at, found = _places(features_between(packed, leaf, leaf + 1), features)
        if block < block_end:
            weights[found] = packed.block[block:block_end].reshape(-1, k)[at[found]]
        else:
            rows = np.flatnonzero(found)
            ptr = row_offsets(packed, begin, end)
            start = ptr[at[rows]]
            sizes = ptr[at[rows] + 1] - start
            entries = ranges(start, sizes)
            weights[np.repeat(rows, sizes), packed.slot[entries]] = packed.entry[entries]
    if packed.weights == "int8":
        weights *= packed.scale[first:last]
    return weights


def leaf_columns(
    packed: PackedTree, leaf: int, slots: Sequence[int]
) -> tuple[IndexArray, AccumArray]:
    """Return the features of a checked leaf, and its weights for some of its classes.

    Parameters
    ----------
    packed : PackedTree
    leaf : int
    slots : sequence of int
        Places of classes in the leaf, each once.

    Returns
    -------
    features : ndarray of shape (n_features,)
    weights : ndarray of shape (n_features, n_slots)
    """
    first, last = packed.class_ptr[leaf : leaf + 2].tolist()
    begin, end = packed.feat_ptr[leaf : leaf + 2].tolist()
    block, block_end = packed.block_ptr[leaf : leaf + 2].tolist()
    features = features_between(packed, leaf, leaf + 1)
    if block < block_end:
        stored = packed.block[block:block_end].reshape(-1, last - first)
        weights = stored[:, list(slots)].astype(ACCUM)
        if begin == end:  # over all features
            features = np.arange(stored.shape[0], dtype=INDEX)
    else:
        weights = np.zeros((features.size, len(slots)), dtype=ACCUM)
        ptr = row_offsets(packed, begin, end)
        own = packed.slot[ptr[0] : ptr[-1]] if ptr.size else packed.slot[:0]
        for column, slot in enumerate(slots):
            entries = np.flatnonzero(own == slot) + ptr[0]
            rows = np.searchsorted(ptr, entries, side="right") - 1
            weights[rows, column] = packed.entry[entries]
    if packed.weights == "int8":
        weights *= packed.scale[first:last][list(slots)]
    return features, weights


def _places(known: IndexArray, wanted: IndexArray) -> tuple[AnyArray, AnyArray]:
    """Return where ids stand among ascending ones, and which of them do."""
    at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return at, known[at] == wanted

"""Packed trees for sparse rows in few bytes: numbers of nodes, features, rows and slots.

A large text model is mostly such numbers. Nodes and slots take one or two bytes where these count
far enough. Features of a leaf are kept by segments of 65,536 ids, the lower two bytes of each; its
rows begin at two bytes after an offset that 32 rows share. What is wide can be made narrow and back
without a change in any answer. Small models stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, PARAM, SLOT, IndexArray, OffsetArray
from thinleaf.arrays.ragged import offsets

if TYPE_CHECKING:
    from thinleaf.model.packing import PackedTree

SEGMENT_BITS = 16
ROW_SHIFT = 5
"""2⁵ rows share an offset."""

NARROW: dict[str, type] = {
    "router_idx": np.uint16, "router_val": np.float16, "feat_idx": np.uint16,
    "row_ptr": np.uint16, "slot": np.uint8,
}  # fmt: skip
"""What arrays of a tree for sparse rows may be instead."""

OF_NARROW = ("segment_ptr", "row_base")
"""Arrays that no other tree has."""

LARGE = 2**20
"""Bytes above which a tree is packed narrow."""

_MOST = 65_536


def is_narrow(packed: PackedTree) -> bool:
    """Return whether some array is narrow."""
    return any(getattr(packed, name).dtype == dtype for name, dtype in NARROW.items())


def n_segments(n_features: int) -> int:
    """Return the number of segments of features."""
    return max(1, (n_features + _MOST - 1) // _MOST)


def narrowed(packed: PackedTree) -> PackedTree:
    """Return a wide tree with as few bytes as its numbers need; one for dense rows as it is."""
    if not packed.sparse:
        return packed
    changes: dict[str, Any] = {}
    if packed.n_nodes <= _MOST:
        changes["router_idx"] = packed.router_idx.astype(np.uint16)
    parts = n_segments(packed.n_features)
    if packed.n_leaves * parts * np.dtype(OFFSET).itemsize < packed.feat_idx.nbytes // 2:
        leaf_of_row = np.repeat(np.arange(packed.n_leaves), np.diff(packed.feat_ptr))
        part_of_row = leaf_of_row * parts + (packed.feat_idx >> SEGMENT_BITS)
        counts = np.bincount(part_of_row, minlength=packed.n_leaves * parts)
        changes["segment_ptr"] = offsets(counts)
        changes["feat_idx"] = packed.feat_idx.astype(np.uint16)
    base = packed.row_ptr[:: 2**ROW_SHIFT]
    after = packed.row_ptr - np.repeat(base, 2**ROW_SHIFT)[: packed.row_ptr.size]
    if after.max(initial=0) < _MOST:
        changes |= {"row_base": base.copy(), "row_ptr": after.astype(np.uint16)}
    if packed.slot.max(initial=0) < 2**8:
        changes["slot"] = packed.slot.astype(np.uint8)
    return replace(packed, **changes)


def widened(packed: PackedTree) -> PackedTree:
    """Return a tree with numbers and weights of routers of the usual width."""
    if not packed.sparse:
        return packed
    return replace(
        packed,
        router_idx=packed.router_idx.astype(INDEX, copy=False),
        router_val=packed.router_val.astype(PARAM, copy=False),
        feat_idx=features_between(packed, 0, packed.n_leaves),
        segment_ptr=np.empty(0, OFFSET),
        row_ptr=row_offsets(packed, 0, packed.feat_idx.size),
        row_base=np.empty(0, OFFSET),
        slot=packed.slot.astype(SLOT, copy=False),
    )


def with_half_routers(packed: PackedTree) -> PackedTree:
    """Return a narrow tree whose routers have weights of float16, if their numbers are narrow."""
    if packed.router_idx.dtype != NARROW["router_idx"]:
        return packed
    limit = np.finfo(np.float16).max
    halves = np.clip(packed.router_val, -limit, limit).astype(np.float16)
    return replace(packed, router_val=halves)


def features_between(packed: PackedTree, begin: int, end: int) -> IndexArray:
    """Return the features of some leaves, one after the other."""
    rows = slice(packed.feat_ptr[begin], packed.feat_ptr[end])
    low: IndexArray = packed.feat_idx[rows].astype(INDEX, copy=False)
    if packed.segment_ptr.size == 0:
        return low
    parts = n_segments(packed.n_features)
    sizes = np.diff(packed.segment_ptr[begin * parts : end * parts + 1])
    upper = np.tile(np.arange(parts, dtype=INDEX) << SEGMENT_BITS, end - begin)
    whole: IndexArray = low + np.repeat(upper, sizes)
    return whole


def row_offsets(packed: PackedTree, begin: int, end: int) -> OffsetArray:
    """Return where some rows begin, and where the last one ends."""
    stored: OffsetArray = packed.row_ptr[begin : end + 1].astype(OFFSET, copy=False)
    if packed.row_base.size == 0:
        return stored
    base: OffsetArray = packed.row_base[np.arange(begin, end + 1) >> ROW_SHIFT]
    return stored + base


def problem_of(packed: PackedTree) -> str | None:
    """Return what is wrong with how narrow a tree is, if anything; its leaves are not read."""
    if packed.router_val.dtype == np.float16 and packed.router_idx.dtype != np.uint16:
        return "router_val may be float16 only if router_idx is uint16"
    parts = n_segments(packed.n_features)
    if packed.feat_idx.dtype == INDEX:
        if packed.segment_ptr.size:
            return "segment_ptr is for narrow features"
    else:
        ptr = packed.segment_ptr
        if ptr.shape != (packed.n_leaves * parts + 1,) or not np.all(ptr[:-1] <= ptr[1:]):
            return "segment_ptr must rise, with an entry a segment of each leaf"
        if not np.array_equal(ptr[::parts], packed.feat_ptr):
            return "segment_ptr, feat_ptr differ"
    n_bases = 0 if packed.row_ptr.dtype == OFFSET else (packed.feat_idx.size >> ROW_SHIFT) + 1
    if packed.row_base.shape != (n_bases,):
        return f"row_base must have {n_bases} entries"
    return None

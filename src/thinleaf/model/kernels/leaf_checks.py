"""Whether the leaves of a packed tree may be used: those of a mapped file are checked at first use.

What there is to know of trees is in :mod:`thinleaf.model.kernels.packed`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import (
    float32_at,
    float64_at,
    int32_at,
    int64_at,
    uint8_at,
    uint16_at,
)
from thinleaf.model.kernels.packed import (
    BLOCK,
    BLOCK_PTR,
    CLASS_IDS,
    CLASS_PTR,
    ENTRY,
    EXTRA,
    EXTRA_IDS,
    EXTRA_PTR,
    FEAT_IDX,
    FEAT_PTR,
    FLOAT16,
    FLOAT32,
    INT8,
    LEAF_BIAS,
    N_CLASSES,
    N_ENTRIES,
    N_FEATURES,
    N_SEGMENTS,
    SCALE,
    SEGMENT_PTR,
    SLOT,
    SLOT_BYTES,
    STATE,
    WEIGHTS,
    row_begin,
)


@inlined
def leaf_is_ready(table, leaf):
    """Return whether a leaf may be used; check it if that was not done yet."""
    state = uint8_at(table[STATE])
    if state[leaf] == 0:
        state[leaf] = 1 if leaf_is_valid(table, leaf) else 2
    return state[leaf] == 1


@strict_kernel
def leaf_is_valid(table: OffsetArray, leaf: int) -> bool:
    """Return whether a leaf's ids are in range and ascending, and its weights finite."""
    first, last = int64_at(table[CLASS_PTR])[leaf], int64_at(table[CLASS_PTR])[leaf + 1]
    begin, end = int64_at(table[FEAT_PTR])[leaf], int64_at(table[FEAT_PTR])[leaf + 1]
    block, block_end = int64_at(table[BLOCK_PTR])[leaf], int64_at(table[BLOCK_PTR])[leaf + 1]
    n_classes = table[N_CLASSES]
    valid = _ascending(int32_at(table[CLASS_IDS]), first, last, n_classes)
    valid &= _finite(float32_at(table[LEAF_BIAS]), first, last)
    if table[WEIGHTS] == INT8:
        valid &= _finite(float32_at(table[SCALE]), first, last)
    if table[N_SEGMENTS] == 0:
        valid &= _ascending(int32_at(table[FEAT_IDX]), begin, end, table[N_FEATURES])
    else:
        valid &= _segments_are_valid(table, leaf)
    valid &= _finite_weights(table, BLOCK, block, block_end)
    if begin < end:
        at, stop = row_begin(table, begin), row_begin(table, end)
        valid &= 0 <= at <= stop <= table[N_ENTRIES]
        valid &= block == block_end or at == stop
        for r in range(begin, end):
            valid &= row_begin(table, r) <= row_begin(table, r + 1)
        if valid:
            valid &= _finite_weights(table, ENTRY, at, stop)
            wide, narrow = uint16_at(table[SLOT]), uint8_at(table[SLOT])
            for t in range(at, stop):
                slot = np.int64(wide[t]) if table[SLOT_BYTES] == 2 else np.int64(narrow[t])
                valid &= slot < last - first
    extra_ids, extra = int32_at(table[EXTRA_IDS]), float64_at(table[EXTRA])
    for t in range(int64_at(table[EXTRA_PTR])[leaf], int64_at(table[EXTRA_PTR])[leaf + 1]):
        valid &= 0 <= extra_ids[t] < n_classes
        valid &= 0.0 <= extra[t] < np.inf
    return bool(valid)


@strict_part
def _segments_are_valid(table, leaf):
    """Return whether the features of a leaf ascend within each segment, and are in range."""
    ids = uint16_at(table[FEAT_IDX])
    ptr = int64_at(table[SEGMENT_PTR])
    valid = True
    for segment in range(table[N_SEGMENTS]):
        at = leaf * table[N_SEGMENTS] + segment
        limit = table[N_FEATURES] - segment * 65536
        for r in range(ptr[at], ptr[at + 1]):
            valid &= np.int64(ids[r]) < limit
            valid &= r == ptr[at] or ids[r - 1] < ids[r]
    return valid


@inlined
def _ascending(ids, begin, end, limit):
    valid = begin == end or (ids[begin] >= 0 and ids[end - 1] < limit)
    for i in range(begin + 1, end):
        valid &= ids[i - 1] < ids[i]
    return valid


@inlined
def _finite(values, begin, end):
    valid = True
    for i in range(begin, end):
        valid &= abs(values[i]) < np.inf
    return valid


@strict_part
def _finite_weights(table, i, begin, end):
    kind = table[WEIGHTS]
    if kind == FLOAT32:
        return _finite(float32_at(table[i]), begin, end)
    valid = True
    if kind == FLOAT16:
        halves = uint16_at(table[i])
        for t in range(begin, end):
            valid &= halves[t] & 0x7C00 != 0x7C00
    return valid

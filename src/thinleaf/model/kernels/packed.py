"""Rows, routers and leaves of packed trees.

A packed tree, or a forest, arrives as a table of numbers and addresses, which are named below
(:mod:`thinleaf.model.kernels.addresses`); :class:`thinleaf.model.packing.PackedTree` says what
each array holds. It is laid out for dense or for sparse rows; a row of the other kind is converted
first.

Leaves are numbered apart from nodes. STATE says which leaves have been checked: those of a mapped
file are when a row first reaches them, so that opening a file reads no weights. SHARPNESS is one
number, one over the temperature of a beam.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thinleaf._dtypes import OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import (
    fetch,
    float32_at,
    half_to_float,
    int8_at,
    int32_at,
    int64_at,
    n_ones,
    uint8_at,
    uint16_at,
    uint64_at,
)

ARRAYS = (
    "child", "bias", "dense_at", "dense_val", "router_ptr", "router_idx", "router_val", "class_ptr",
    "class_ids", "leaf_bias", "scale", "feat_ptr", "feat_idx", "block_ptr", "block", "row_ptr",
    "slot", "entry", "inside", "outside", "prior", "rank", "extra_ptr", "extra_ids", "extra",
    "state", "sharpness", "segment_ptr", "row_base", "near",
)  # fmt: skip
"""The arrays of a packed tree in the order of their addresses."""

(
    N_FEATURES, N_CLASSES, IS_SPARSE, WEIGHTS, N_TREES, BEAM, N_ENTRIES, N_TOP,
    NODE_BYTES, ROUTER_WEIGHTS, N_SEGMENTS, ROW_SHIFT, SLOT_BYTES, IS_MARKED,
) = range(14)  # fmt: skip
"""The numbers that a table begins with; addresses follow.

What is narrow: nodes in ROUTER_IDX and slots may have fewer bytes, and weights of routers another
type. If there are segments, FEAT_IDX holds the lower 16 bits of features, segment by segment; if
ROW_SHIFT is not negative, ROW_PTR counts from the entry of ROW_BASE for as many rows.

If it IS_MARKED, NEAR has three numbers of 64 bits for each feature: where its weights begin in
ROUTER_VAL, and of which of the first 128 nodes there are some (:func:`mark_routers`).
"""

(
    CHILD, BIAS, DENSE_AT, DENSE_VAL, ROUTER_PTR, ROUTER_IDX, ROUTER_VAL, CLASS_PTR, CLASS_IDS,
    LEAF_BIAS, SCALE, FEAT_PTR, FEAT_IDX, BLOCK_PTR, BLOCK, ROW_PTR, SLOT, ENTRY, INSIDE, OUTSIDE,
    PRIOR, RANK, EXTRA_PTR, EXTRA_IDS, EXTRA, STATE, SHARPNESS, SEGMENT_PTR, ROW_BASE, NEAR,
) = range(14, 14 + len(ARRAYS))  # fmt: skip

FLOAT32, FLOAT16, INT8 = range(3)

OK = 0
WRONG_WIDTH = -1
BAD_FEATURE = -2
BAD_LEAF = -3


# -- rows ------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """Pointers to one row in the form that the layout wants: ``x``, or ``idx`` and ``val``."""

    x: Any
    idx: Any
    val: Any
    n: int
    top: Any  # w·x of the first N_TOP routers, if the tree is laid out for sparse rows


@inlined
def row_from(table, x, idx, val, top):
    """Return pointers into arrays that the caller keeps: see :func:`keep_alive`."""
    row = Row(
        float32_at(x.ctypes.data),
        int32_at(idx.ctypes.data),
        float32_at(val.ctypes.data),
        idx.size,
        float32_at(top.ctypes.data),
    )
    score_top(table, row)
    return row


@inlined
def row_as_is(x):
    """Return pointers to a dense row of a tree that is laid out for such rows."""
    return Row(float32_at(x.ctypes.data), int32_at(0), float32_at(0), 0, float32_at(0))


@strict_part
def score_top(table, row):
    """Fill in ``row.top``.

    The weights of a feature stand together, those of routers near the root first: to add up all of
    these is cheaper than to look for the few on the path, unless marks say where they are.
    """
    n_top = 0 if table[IS_MARKED] == 1 else table[N_TOP]
    for node in range(n_top):
        row.top[node] = 0.0
    if n_top > 0 and table[NODE_BYTES] == 4:
        _add_top(table, row, int32_at(table[ROUTER_IDX]))
    elif n_top > 0 and table[ROUTER_WEIGHTS] == FLOAT32:
        _add_top(table, row, uint16_at(table[ROUTER_IDX]))
    elif n_top > 0:
        ptr, idx = int64_at(table[ROUTER_PTR]), uint16_at(table[ROUTER_IDX])
        halves = uint16_at(table[ROUTER_VAL])
        for t in range(row.n):
            x = row.val[t]
            at, end = ptr[row.idx[t]], ptr[row.idx[t] + 1]
            while at < end and idx[at] < n_top:
                row.top[idx[at]] += x * half_to_float(halves[at])
                at += 1


@inlined
def _add_top(table, row, idx):
    """Add to ``row.top`` what routers with weights of float32 say, whatever the width of ids."""
    n_top = table[N_TOP]
    ptr, val = int64_at(table[ROUTER_PTR]), float32_at(table[ROUTER_VAL])
    for t in range(row.n):
        x = row.val[t]
        at, end = ptr[row.idx[t]], ptr[row.idx[t] + 1]
        while at < end and idx[at] < n_top:
            row.top[idx[at]] += x * val[at]
            at += 1


@strict_part
def keep_alive(result, x, idx, val, top):
    """Return a result that was computed through pointers into arrays.

    An array is freed after its last use, and a pointer is none: without this one, memory of a
    converted row would be given to the next array while the row is still being read.
    """
    return result


@strict_part
def nonzero(x, idx, val):
    """Fill in the nonzero entries of a dense row; return their number."""
    n = 0
    for f in range(x.size):
        if x[f] != 0.0:
            idx[n] = f
            val[n] = x[f]
            n += 1
    return n


@strict_part
def pairs_of(x):
    """Return index and value pairs of a dense row."""
    idx = np.empty(x.size, dtype=np.int32)
    val = np.empty(x.size, dtype=np.float32)
    n = nonzero(x, idx, val)
    return idx[:n], val[:n]


@strict_part
def dense_of(table, idx, val):
    """Return the dense row of index and value pairs, if the tree's layout wants it."""
    x = np.zeros(0 if table[IS_SPARSE] == 1 else table[N_FEATURES], dtype=np.float32)
    if x.size > 0:
        for t in range(idx.size):
            x[idx[t]] += val[t]
    return x


# -- routers ---------------------------------------------------------------------------------------


@inlined
def _find(ids, begin, end, wanted):
    """Return the first position in ``ids[begin:end]``, ascending, whose id is not below wanted."""
    size = end - begin
    while size > 1:  # without branches: half of them would be mispredicted
        half = size // 2
        begin += half if ids[begin + half - 1] < wanted else 0
        size -= half
    return begin + 1 if size == 1 and ids[begin] < wanted else begin


@inlined
def _dot(x, w, at, size):
    """Return the dot product of x and w[at:at + size], in eight lanes: one vector register."""
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    e, f, g, h = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    n = size - size % 8
    for t in range(0, n, 8):
        a += x[t] * w[at + t]
        b += x[t + 1] * w[at + t + 1]
        c += x[t + 2] * w[at + t + 2]
        d += x[t + 3] * w[at + t + 3]
        e += x[t + 4] * w[at + t + 4]
        f += x[t + 5] * w[at + t + 5]
        g += x[t + 6] * w[at + t + 6]
        h += x[t + 7] * w[at + t + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for t in range(n, size):
        total += x[t] * w[at + t]
    return total


@inlined
def router_score(table, row, node):
    """Return w·x + b of a router: the logarithmic odds of going right."""
    n_features = table[N_FEATURES]
    begin = np.int64(int32_at(table[DENSE_AT])[node]) * n_features
    total = np.float32(0.0)
    if begin < 0 and node < table[N_TOP] and table[IS_MARKED] == 1:
        total = _marked_score(table, row, node)
    elif begin < 0 and node < table[N_TOP]:
        total = row.top[node]
    elif begin >= 0 and table[IS_SPARSE] == 0:
        total = _dot(row.x, float32_at(table[DENSE_VAL]), begin, n_features)
    elif begin >= 0:
        w = float32_at(table[DENSE_VAL])
        for t in range(row.n):
            total += row.val[t] * w[begin + row.idx[t]]
    elif table[IS_SPARSE] == 0:
        ptr, idx = int64_at(table[ROUTER_PTR]), int32_at(table[ROUTER_IDX])
        val = float32_at(table[ROUTER_VAL])
        for t in range(ptr[node], ptr[node + 1]):
            total += row.x[idx[t]] * val[t]
    elif table[NODE_BYTES] == 4:
        ptr, idx = int64_at(table[ROUTER_PTR]), int32_at(table[ROUTER_IDX])
        for t in range(row.n):
            end = ptr[row.idx[t] + 1]
            at = _find(idx, ptr[row.idx[t]], end, node)
            if at < end and idx[at] == node:
                total += row.val[t] * float32_at(table[ROUTER_VAL])[at]
    else:
        total = _narrow_score(table, row, node)
    return total + float32_at(table[BIAS])[node]


@strict_part
def _marked_score(table, row, node):
    """Return w·x of a router near the root: marks of a feature tell where its weight stands."""
    near = uint64_at(table[NEAR])
    word, bit = np.int64(node) >> 6, np.uint64(1) << np.uint64(node & 63)
    wide, halves = float32_at(table[ROUTER_VAL]), uint16_at(table[ROUTER_VAL])
    is_wide = table[ROUTER_WEIGHTS] == FLOAT32
    last = np.uint64(int64_at(table[ROUTER_PTR])[table[N_FEATURES]] - 1)
    total = np.float32(0.0)
    for t in range(row.n):  # without branches: which weights there are cannot be foreseen
        own = 3 * np.int64(row.idx[t])
        marks = near[own + 1 + word]
        before = n_ones(marks & (bit - np.uint64(1)))
        before += n_ones(near[own + 1]) if word == 1 else np.uint64(0)
        at = min(near[own] + before, last)
        product = row.val[t] * (wide[at] if is_wide else half_to_float(halves[at]))
        total += product if marks & bit != np.uint64(0) else np.float32(0.0)
    return total


@strict_kernel
def mark_routers(table: OffsetArray) -> None:
    """Fill in NEAR."""
    ptr, near = int64_at(table[ROUTER_PTR]), uint64_at(table[NEAR])
    wide, narrow = int32_at(table[ROUTER_IDX]), uint16_at(table[ROUTER_IDX])
    is_wide = table[NODE_BYTES] == 4
    for feature in range(table[N_FEATURES]):
        first, second = np.uint64(0), np.uint64(0)
        for at in range(ptr[feature], ptr[feature + 1]):
            node = np.int64(wide[at]) if is_wide else np.int64(narrow[at])
            if node < 64:
                first |= np.uint64(1) << np.uint64(node)
            elif node < 128:
                second |= np.uint64(1) << np.uint64(node - 64)
        near[3 * feature] = np.uint64(ptr[feature])
        near[3 * feature + 1], near[3 * feature + 2] = first, second


@strict_part
def _narrow_score(table, row, node):
    """Return w·x of a router whose number has two bytes."""
    ptr, idx = int64_at(table[ROUTER_PTR]), uint16_at(table[ROUTER_IDX])
    total = np.float32(0.0)
    for t in range(row.n):
        end = ptr[row.idx[t] + 1]
        at = _find(idx, ptr[row.idx[t]], end, node)
        if at < end and idx[at] == node:
            if table[ROUTER_WEIGHTS] == FLOAT32:
                total += row.val[t] * float32_at(table[ROUTER_VAL])[at]
            else:
                total += row.val[t] * half_to_float(uint16_at(table[ROUTER_VAL])[at])
    return total


@strict_part
def descend(table, row, root):
    """Return the number of the leaf that a row reaches from a root."""
    child = int32_at(table[CHILD])
    node = root
    while child[node] >= 0:
        right = 1 if router_score(table, row, node) >= 0.0 else 0
        node = child[node] + right
    return -1 - child[node]


# -- leaves ----------------------------------------------------------------------------------------


@strict_part
def _add_block(table, at, x, scores):
    """Add x times the row of a dense block that begins at ``at``."""
    kind = table[WEIGHTS]
    if kind == FLOAT32:
        weights = float32_at(table[BLOCK])
        for c in range(scores.size):
            scores[c] += x * weights[at + c]
    elif kind == FLOAT16:
        halves = uint16_at(table[BLOCK])
        for c in range(scores.size):
            scores[c] += x * half_to_float(halves[at + c])
    else:
        bytes_ = int8_at(table[BLOCK])
        for c in range(scores.size):
            scores[c] += x * np.float32(bytes_[at + c])


@strict_part
def _add_four(table, at, x0, x1, x2, x3, scores):
    """Add four rows of a block of float32 that begins at ``at``: as one by one, in one pass."""
    k = scores.size
    weights = float32_at(table[BLOCK])
    for c in range(k):
        total = scores[c]
        total += x0 * weights[at + c]
        total += x1 * weights[at + k + c]
        total += x2 * weights[at + 2 * k + c]
        total += x3 * weights[at + 3 * k + c]
        scores[c] = total


@strict_part
def _add_entries(table, begin, end, x, scores):
    """Add x times the entries of a sparse row."""
    if table[SLOT_BYTES] == 2:
        _add_at(table, begin, end, x, uint16_at(table[SLOT]), scores)
    else:
        _add_at(table, begin, end, x, uint8_at(table[SLOT]), scores)


@inlined
def _add_at(table, begin, end, x, slot, scores):
    """Add x times some entries at their slots, whatever the width of these."""
    kind = table[WEIGHTS]
    if kind == FLOAT32:
        weights = float32_at(table[ENTRY])
        for t in range(begin, end):
            scores[slot[t]] += x * weights[t]
    elif kind == FLOAT16:
        halves = uint16_at(table[ENTRY])
        for t in range(begin, end):
            scores[slot[t]] += x * half_to_float(halves[t])
    else:
        bytes_ = int8_at(table[ENTRY])
        for t in range(begin, end):
            scores[slot[t]] += x * np.float32(bytes_[t])


@strict_part
def _find_all(ids, begin, end, row):
    """Return where each feature of a row stands in ``ids[begin:end]``, ascending; -1 if nowhere.

    All binary searches go on together, so that their cache misses overlap.
    """
    at = np.zeros(row.n, dtype=np.int32)
    size = end - begin
    while size > 1:
        half = size // 2
        for t in range(row.n):
            at[t] += half if ids[begin + at[t] + half - 1] < row.idx[t] else 0
        size -= half
    for t in range(row.n):
        at[t] += 1 if size == 1 and ids[begin + at[t]] < row.idx[t] else 0
        if begin + at[t] >= end or ids[begin + at[t]] != row.idx[t]:
            at[t] = -1
    return at


@strict_part
def _find_in_segments(table, leaf, row):
    """Return where each feature of a row stands in a leaf, counted within it; -1 if nowhere.

    As :func:`_find_all`, in the segment of features with the same upper bits.
    """
    ids = uint16_at(table[FEAT_IDX])
    n_segments = table[N_SEGMENTS]
    segment_ptr = int64_at(table[SEGMENT_PTR])
    first = segment_ptr[leaf * n_segments]
    at = np.empty(row.n, dtype=np.int32)
    size = np.empty(row.n, dtype=np.int32)
    most = np.int64(0)
    for t in range(row.n):
        segment = leaf * n_segments + (row.idx[t] >> 16)
        at[t] = segment_ptr[segment] - first
        size[t] = segment_ptr[segment + 1] - segment_ptr[segment]
        most = max(most, np.int64(size[t]))
    while most > 1:
        for t in range(row.n):
            half = size[t] // 2
            before = max(at[t] + half - 1, 0)  # nothing to add if it is that of another segment
            at[t] += half if ids[first + before] < (row.idx[t] & 0xFFFF) else 0
            size[t] -= half
        most -= most // 2
    for t in range(row.n):
        low = row.idx[t] & 0xFFFF
        end = segment_ptr[leaf * n_segments + (row.idx[t] >> 16) + 1] - first
        at[t] += 1 if size[t] == 1 and ids[first + at[t]] < low else 0
        if at[t] >= end or ids[first + at[t]] != low:
            at[t] = -1
    return at


@inlined
def row_begin(table, r):
    """Return where the entries of a row begin: those of the row before end there."""
    shift = table[ROW_SHIFT]
    if shift < 0:
        return int64_at(table[ROW_PTR])[r]
    return int64_at(table[ROW_BASE])[r >> shift] + np.int64(uint16_at(table[ROW_PTR])[r])


@strict_part
def _add_rows(table, begin, found, row, scores):
    """Add what the rows of a leaf say that were found; their cache misses overlap."""
    known = np.empty(row.n, dtype=np.int32)
    n = 0
    for t in range(row.n):  # without a branch: which are known cannot be foreseen
        known[n] = t
        n += 1 if found[t] >= 0 else 0
    ends = np.empty(2 * n, dtype=np.int64)
    width = 4 if table[WEIGHTS] == FLOAT32 else 2 if table[WEIGHTS] == FLOAT16 else 1
    for i in range(n):
        r = begin + found[known[i]]
        ends[2 * i], ends[2 * i + 1] = row_begin(table, r), row_begin(table, r + 1)
        fetch(table[SLOT] + table[SLOT_BYTES] * ends[2 * i])
        fetch(table[ENTRY] + width * ends[2 * i])
        fetch(table[ENTRY] + width * ends[2 * i + 1] - 1)
    if width == 4 and table[SLOT_BYTES] == 1:  # what most have: which kind is asked but once
        weights, slot = float32_at(table[ENTRY]), uint8_at(table[SLOT])
        for i in range(n):
            x = row.val[known[i]]
            for e in range(ends[2 * i], ends[2 * i + 1]):
                scores[slot[e]] += x * weights[e]
        return
    for i in range(n):
        _add_entries(table, ends[2 * i], ends[2 * i + 1], row.val[known[i]], scores)


@strict_part
def score_leaf(table, row, leaf, scores):
    """Fill in Wx + b of a leaf."""
    first = int64_at(table[CLASS_PTR])[leaf]
    begin, end = int64_at(table[FEAT_PTR])[leaf], int64_at(table[FEAT_PTR])[leaf + 1]
    block, block_end = int64_at(table[BLOCK_PTR])[leaf], int64_at(table[BLOCK_PTR])[leaf + 1]
    feat_idx = int32_at(table[FEAT_IDX])
    bias = float32_at(table[LEAF_BIAS])
    quantised = table[WEIGHTS] == INT8
    k = scores.size
    for c in range(k):
        scores[c] = 0.0 if quantised else bias[first + c]
    if table[IS_SPARSE] == 1:
        if table[N_SEGMENTS] == 0 or begin == end:
            found = _find_all(feat_idx, begin, end, row)
        elif table[N_SEGMENTS] == 1:
            found = _find_all(uint16_at(table[FEAT_IDX]), begin, end, row)
        else:
            found = _find_in_segments(table, leaf, row)
        if block == block_end:
            _add_rows(table, begin, found, row, scores)
        else:
            for t in range(row.n):
                if found[t] >= 0:
                    _add_block(table, block + found[t] * k, row.val[t], scores)
    elif block == block_end:
        row_ptr = int64_at(table[ROW_PTR])
        for r in range(begin, end):
            _add_entries(table, row_ptr[r], row_ptr[r + 1], row.x[feat_idx[r]], scores)
    elif begin == end:  # a block over all features
        n = table[N_FEATURES]
        fours = n - n % 4 if table[WEIGHTS] == FLOAT32 else 0
        for f in range(0, fours, 4):
            x = row.x
            _add_four(table, block + f * k, x[f], x[f + 1], x[f + 2], x[f + 3], scores)
        for f in range(fours, n):
            _add_block(table, block + f * k, row.x[f], scores)
    else:
        for r in range(begin, end):
            _add_block(table, block + (r - begin) * k, row.x[feat_idx[r]], scores)
    if quantised:
        scale = float32_at(table[SCALE])
        for c in range(k):
            scores[c] = scores[c] * scale[first + c] + bias[first + c]


@inlined
def argmax(scores):
    """Return where the first largest score stands."""
    best = 0
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            best = c
    return best

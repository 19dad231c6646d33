"""Prediction with a packed tree: one row at a time, whole batches without the GIL.

A packed tree arrives as a table of numbers and addresses (:mod:`thinleaf.kernels.addresses`), which
are named below; :class:`thinleaf.packing.PackedTree` says what each array holds. The tree is laid
out for dense or for sparse rows; a row of the other kind is converted first. Single rows and
batches run the same strict code, so they agree to the bit.

Leaves are numbered apart from nodes. STATE says which leaves have been checked: those of a mapped
file are when a row first reaches them, so that opening a file reads no weights.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import strict_kernel
from thinleaf.kernels.addresses import (
    float32_at,
    float64_at,
    half_to_float,
    int8_at,
    int32_at,
    int64_at,
    uint8_at,
    uint16_at,
)
from thinleaf.kernels.rows import Rows

ARRAYS = (
    "child", "bias", "dense_at", "dense_val", "router_ptr", "router_idx", "router_val", "class_ptr",
    "class_ids", "leaf_bias", "scale", "feat_ptr", "feat_idx", "block_ptr", "block", "row_ptr",
    "slot", "entry", "inside", "outside", "prior", "rank", "extra_ptr", "extra_ids", "extra",
    "state",
)  # fmt: skip
"""The arrays of a packed tree in the order of their addresses."""

N_FEATURES, N_CLASSES, IS_SPARSE, WEIGHTS, BEAM, N_ENTRIES, N_TOP = range(7)
"""The numbers that a table begins with; addresses follow."""

(
    CHILD, BIAS, DENSE_AT, DENSE_VAL, ROUTER_PTR, ROUTER_IDX, ROUTER_VAL, CLASS_PTR, CLASS_IDS,
    LEAF_BIAS, SCALE, FEAT_PTR, FEAT_IDX, BLOCK_PTR, BLOCK, ROW_PTR, SLOT, ENTRY, INSIDE, OUTSIDE,
    PRIOR, RANK, EXTRA_PTR, EXTRA_IDS, EXTRA, STATE,
) = range(7, 7 + len(ARRAYS))  # fmt: skip

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


@strict_kernel
def _row(table, x, idx, val, top):
    """Return pointers into arrays that the caller keeps: see :func:`_after`."""
    row = Row(
        float32_at(x.ctypes.data),
        int32_at(idx.ctypes.data),
        float32_at(val.ctypes.data),
        idx.size,
        float32_at(top.ctypes.data),
    )
    _score_top(table, row)
    return row


@strict_kernel
def _row_as_is(x):
    """Return pointers to a dense row of a tree that is laid out for such rows."""
    return Row(float32_at(x.ctypes.data), int32_at(0), float32_at(0), 0, float32_at(0))


@strict_kernel
def _score_top(table, row):
    """Fill in ``row.top``.

    The weights of a feature stand together, those of routers near the root first: to add up all of
    these is cheaper than to look for the few on the path.
    """
    n_top = table[N_TOP]
    ptr, idx = int64_at(table[ROUTER_PTR]), int32_at(table[ROUTER_IDX])
    val = float32_at(table[ROUTER_VAL])
    for node in range(n_top):
        row.top[node] = 0.0
    for t in range(row.n if n_top > 0 else 0):
        x = row.val[t]
        at, end = ptr[row.idx[t]], ptr[row.idx[t] + 1]
        while at < end and idx[at] < n_top:
            row.top[idx[at]] += x * val[at]
            at += 1


@strict_kernel
def _after(result, x, idx, val, top):
    """Return a result that was computed through pointers into arrays.

    An array is freed after its last use, and a pointer is none: without this one, memory of a
    converted row would be given to the next array while the row is still being read.
    """
    return result


@strict_kernel
def _nonzero(x, idx, val):
    """Fill in the nonzero entries of a dense row; return their number."""
    n = 0
    for f in range(x.size):
        if x[f] != 0.0:
            idx[n] = f
            val[n] = x[f]
            n += 1
    return n


@strict_kernel
def _converted(table, x):
    """Return index and value pairs of a dense row, if the tree's layout wants them."""
    if table[IS_SPARSE] == 0:
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    idx = np.empty(x.size, dtype=np.int32)
    val = np.empty(x.size, dtype=np.float32)
    n = _nonzero(x, idx, val)
    return idx[:n], val[:n]


@strict_kernel
def _scattered(table, idx, val):
    """Return the dense row of index and value pairs, if the tree's layout wants it."""
    x = np.zeros(0 if table[IS_SPARSE] == 1 else table[N_FEATURES], dtype=np.float32)
    if x.size > 0:
        for t in range(idx.size):
            x[idx[t]] += val[t]
    return x


# -- routers ---------------------------------------------------------------------------------------


@strict_kernel
def _find(ids, begin, end, wanted):
    """Return the first position in ``ids[begin:end]``, ascending, whose id is not below wanted."""
    size = end - begin
    while size > 1:  # without branches: half of them would be mispredicted
        half = size // 2
        begin += half if ids[begin + half - 1] < wanted else 0
        size -= half
    return begin + 1 if size == 1 and ids[begin] < wanted else begin


@strict_kernel
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


@strict_kernel
def _router_score(table, row, node):
    """Return w·x + b of a router: the logarithmic odds of going right."""
    n_features = table[N_FEATURES]
    begin = np.int64(int32_at(table[DENSE_AT])[node]) * n_features
    total = np.float32(0.0)
    if begin < 0 and node < table[N_TOP]:
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
    else:
        ptr, idx = int64_at(table[ROUTER_PTR]), int32_at(table[ROUTER_IDX])
        val = float32_at(table[ROUTER_VAL])
        for t in range(row.n):
            end = ptr[row.idx[t] + 1]
            at = _find(idx, ptr[row.idx[t]], end, node)
            if at < end and idx[at] == node:
                total += row.val[t] * val[at]
    return total + float32_at(table[BIAS])[node]


@strict_kernel
def _descend(table, row):
    """Return the number of the leaf that a row reaches."""
    child = int32_at(table[CHILD])
    node = 0
    while child[node] >= 0:
        right = 1 if _router_score(table, row, node) >= 0.0 else 0
        node = child[node] + right
    return -1 - child[node]


@strict_kernel
def _log_sigmoid(score):
    """Return log σ(score) without overflow."""
    return min(score, 0.0) - np.log1p(np.exp(-abs(score)))


@strict_kernel
def _search(table, row, leaves, weights):
    """Fill in the leaves of the most probable paths and their probabilities; return how many.

    A beam: all paths go down a level together, and the ``leaves.size`` most probable ones live on.
    The probabilities are scaled to sum to one.
    """
    child = int32_at(table[CHILD])
    beam = leaves.size
    nodes = np.zeros(2 * beam, dtype=np.int64)
    logs = np.zeros(2 * beam, dtype=np.float64)
    n = 1
    going = child[0] >= 0
    while going:
        total = n
        for p in range(n):
            left = child[nodes[p]]
            if left >= 0:
                score = np.float64(_router_score(table, row, nodes[p]))
                nodes[total] = left
                logs[total] = logs[p] + _log_sigmoid(-score)
                nodes[p] = left + 1
                logs[p] += _log_sigmoid(score)
                total += 1
        # the best come first, by insertion: where few paths still go on, few have to move
        for p in range(1, total):
            node, log = nodes[p], logs[p]
            at = p
            while at > 0 and logs[at - 1] < log:
                nodes[at], logs[at] = nodes[at - 1], logs[at - 1]
                at -= 1
            nodes[at], logs[at] = node, log
        n = min(beam, total)
        going = False
        for p in range(n):
            going |= child[nodes[p]] >= 0
    mass = 0.0
    for p in range(n):
        leaves[p] = -1 - child[nodes[p]]
        weights[p] = np.exp(logs[p] - logs[0])
        mass += weights[p]
    for p in range(n):
        weights[p] /= mass
    return n


# -- leaves ----------------------------------------------------------------------------------------


@strict_kernel
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


@strict_kernel
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


@strict_kernel
def _add_entries(table, begin, end, x, scores):
    """Add x times the entries of a sparse row."""
    kind = table[WEIGHTS]
    slot = uint16_at(table[SLOT])
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


@strict_kernel
def _score(table, row, leaf, scores):
    """Fill in Wx + b of a leaf."""
    first = int64_at(table[CLASS_PTR])[leaf]
    begin, end = int64_at(table[FEAT_PTR])[leaf], int64_at(table[FEAT_PTR])[leaf + 1]
    block, block_end = int64_at(table[BLOCK_PTR])[leaf], int64_at(table[BLOCK_PTR])[leaf + 1]
    feat_idx = int32_at(table[FEAT_IDX])
    row_ptr = int64_at(table[ROW_PTR])
    bias = float32_at(table[LEAF_BIAS])
    quantised = table[WEIGHTS] == INT8
    k = scores.size
    for c in range(k):
        scores[c] = 0.0 if quantised else bias[first + c]
    if table[IS_SPARSE] == 1:
        for t in range(row.n):
            at = _find(feat_idx, begin, end, row.idx[t])
            if at < end and feat_idx[at] == row.idx[t]:
                if block < block_end:
                    _add_block(table, block + (at - begin) * k, row.val[t], scores)
                else:
                    _add_entries(table, row_ptr[at], row_ptr[at + 1], row.val[t], scores)
    elif block == block_end:
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


@strict_kernel
def _argmax(scores):
    """Return where the first largest score stands."""
    best = 0
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            best = c
    return best


@strict_kernel
def _ready(table, leaf):
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
    valid &= _ascending(int32_at(table[FEAT_IDX]), begin, end, table[N_FEATURES])
    valid &= _finite_weights(table, BLOCK, block, block_end)
    if begin < end:
        row_ptr = int64_at(table[ROW_PTR])
        slot = uint16_at(table[SLOT])
        at, stop = row_ptr[begin], row_ptr[end]
        valid &= 0 <= at <= stop <= table[N_ENTRIES]
        valid &= block == block_end or at == stop
        for r in range(begin, end):
            valid &= row_ptr[r] <= row_ptr[r + 1]
        if valid:
            valid &= _finite_weights(table, ENTRY, at, stop)
            for t in range(at, stop):
                valid &= slot[t] < last - first
    extra_ids, extra = int32_at(table[EXTRA_IDS]), float64_at(table[EXTRA])
    for t in range(int64_at(table[EXTRA_PTR])[leaf], int64_at(table[EXTRA_PTR])[leaf + 1]):
        valid &= 0 <= extra_ids[t] < n_classes
        valid &= 0.0 <= extra[t] < np.inf
    return bool(valid)


@strict_kernel
def _ascending(ids, begin, end, limit):
    valid = begin == end or (ids[begin] >= 0 and ids[end - 1] < limit)
    for i in range(begin + 1, end):
        valid &= ids[i - 1] < ids[i]
    return valid


@strict_kernel
def _finite(values, begin, end):
    valid = True
    for i in range(begin, end):
        valid &= abs(values[i]) < np.inf
    return valid


@strict_kernel
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


# -- mixtures --------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """The classes that some leaves hold or have seen, with their probabilities."""

    ids: IndexArray
    p: AccumArray
    lookup: IndexArray  # open addressing: position + 1 of an id, or 0
    rest: float  # what the prior of every other class is multiplied by


@strict_kernel
def _lookup(lookup, ids, wanted):
    """Return where an id stands in a hash table: at its entry, or where it would go."""
    mask = lookup.size - 1
    at = (np.int64(wanted) * 40503) & mask
    while lookup[at] != 0 and ids[lookup[at] - 1] != wanted:
        at = (at + 1) & mask
    return at


@strict_kernel
def _softmax(scores, p):
    """Fill in the softmax of scores."""
    top = np.float64(scores[_argmax(scores)])
    total = 0.0
    for c in range(scores.size):
        p[c] = np.exp(np.float64(scores[c]) - top)
        total += p[c]
    for c in range(scores.size):
        p[c] /= total


@strict_kernel
def _paths(table, row):
    """Return the leaves that a row's paths end in, and the paths' probabilities."""
    beam = table[BEAM]
    leaves = np.empty(beam, dtype=np.int64)
    weights = np.ones(beam, dtype=np.float64)
    n = 1
    if beam == 1:
        leaves[0] = _descend(table, row)
    else:
        n = _search(table, row, leaves, weights)
    return leaves[:n], weights[:n]


@strict_kernel
def _mixture(table, row, smooth):
    """Return the mixture of the leaves at the ends of a row's paths, and OK or an error.

    Without ``smooth``, classes outside a leaf get nothing. The classes that leaves hold come first,
    in the order of the leaves; then those that they have only seen.
    """
    leaves, weights = _paths(table, row)
    class_ptr, class_ids = int64_at(table[CLASS_PTR]), int32_at(table[CLASS_IDS])
    extra_ptr, extra_ids = int64_at(table[EXTRA_PTR]), int32_at(table[EXTRA_IDS])
    inside, outside = float64_at(table[INSIDE]), float64_at(table[OUTSIDE])
    prior = float64_at(table[PRIOR])
    status = OK
    bound = 0
    rest = 0.0
    for i in range(leaves.size):
        leaf = leaves[i]
        if not _ready(table, leaf):
            status = BAD_LEAF
        bound += class_ptr[leaf + 1] - class_ptr[leaf] + extra_ptr[leaf + 1] - extra_ptr[leaf]
        rest += weights[i] * outside[leaf] if smooth else 0.0
    size = 1
    while size < 2 * bound:
        size *= 2
    lookup = np.zeros(size, dtype=np.int32)
    ids = np.empty(bound, dtype=np.int32)
    p = np.empty(bound, dtype=np.float64)
    n = 0
    for i in range(leaves.size if status == OK else 0):
        leaf = leaves[i]
        share = weights[i] * (inside[leaf] if smooth else 1.0)
        missing = weights[i] * outside[leaf] if smooth else 0.0
        first = class_ptr[leaf]
        scores = np.empty(class_ptr[leaf + 1] - first, dtype=np.float32)
        own = np.empty(scores.size, dtype=np.float64)
        _score(table, row, leaf, scores)
        _softmax(scores, own)
        for c in range(scores.size):
            class_id = class_ids[first + c]
            at = _lookup(lookup, ids, class_id)
            if lookup[at] == 0:
                ids[n] = class_id
                p[n] = rest * prior[class_id] if leaves.size > 1 else missing * prior[class_id]
                n += 1
                lookup[at] = n
            # instead of what a leaf gives to a class that it does not hold
            p[lookup[at] - 1] -= missing * prior[class_id]
            p[lookup[at] - 1] += share * own[c]
    extra = float64_at(table[EXTRA])
    for i in range(leaves.size if smooth and status == OK else 0):
        leaf = leaves[i]
        for t in range(extra_ptr[leaf], extra_ptr[leaf + 1]):
            class_id = extra_ids[t]
            at = _lookup(lookup, ids, class_id)
            if lookup[at] == 0:
                ids[n] = class_id
                p[n] = rest * prior[class_id]
                n += 1
                lookup[at] = n
            p[lookup[at] - 1] += weights[i] * outside[leaf] * extra[t]
    for c in range(n):  # what is left of a difference can be just below zero
        p[c] = max(p[c], 0.0)
    return Mixture(ids[:n], p[:n], lookup, rest), status


@strict_kernel
def _insert(ids, p, n, class_id, value):
    """Insert a class into the best so far, after those of equal probability; return their number.

    When the arrays are full, the last one drops out: the class must be better than that.
    """
    at = min(n, ids.size - 1)
    while at > 0 and p[at - 1] < value:
        p[at] = p[at - 1]
        ids[at] = ids[at - 1]
        at -= 1
    p[at] = value
    ids[at] = class_id
    return min(n + 1, ids.size)


@strict_kernel
def _best_of(table, mixture, ids, p):
    """Fill in the most probable classes of a mixture, best first."""
    mixed, mixed_p, lookup, rest = mixture
    n = 0
    for c in range(mixed.size):
        if n < ids.size or mixed_p[c] > p[n - 1]:
            n = _insert(ids, p, n, mixed[c], mixed_p[c])
    rank, prior = int32_at(table[RANK]), float64_at(table[PRIOR])
    for r in range(table[N_CLASSES]):
        value = rest * prior[rank[r]]
        if n == ids.size and value <= p[n - 1]:
            break
        if lookup[_lookup(lookup, mixed, rank[r])] == 0:
            n = _insert(ids, p, n, rank[r], value)


# -- one row ---------------------------------------------------------------------------------------


@strict_kernel
def _top_class(table, row):
    """Return the most probable class of a row, or an error."""
    if table[BEAM] > 1:
        mixture, status = _mixture(table, row, True)
        if status != OK:
            return np.int64(status)
        ids = np.empty(1, dtype=np.int32)
        _best_of(table, mixture, ids, np.empty(1, dtype=np.float64))
        return np.int64(ids[0])
    leaf = _descend(table, row)
    if not _ready(table, leaf):
        return np.int64(BAD_LEAF)
    first, last = int64_at(table[CLASS_PTR])[leaf], int64_at(table[CLASS_PTR])[leaf + 1]
    scores = np.empty(last - first, dtype=np.float32)
    _score(table, row, leaf, scores)
    return np.int64(int32_at(table[CLASS_IDS])[first + _argmax(scores)])


@strict_kernel
def _top_classes(table, row, ids, p):
    """Fill in the most probable classes of a row; return OK or an error."""
    mixture, status = _mixture(table, row, True)
    if status == OK:
        _best_of(table, mixture, ids, p)
    return status


@strict_kernel
def _in_range(table, idx, val):
    if idx.size != val.size:
        return False
    n_outside = 0
    for t in range(idx.size):
        n_outside += 0 if 0 <= idx[t] < table[N_FEATURES] else 1
    return n_outside == 0


@strict_kernel
def top_class(table: OffsetArray, x: ParamArray) -> int:
    """Return the class of one dense row, or an error."""
    if x.size != table[N_FEATURES]:
        return np.int64(WRONG_WIDTH)  # type: ignore[return-value]
    if table[IS_SPARSE] == 0:  # the quickest way: x is the caller's, nothing is allocated for it
        return _top_class(table, _row_as_is(x))
    idx, val = _converted(table, x)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return _after(_top_class(table, _row(table, x, idx, val, top)), x, idx, val, top)


@strict_kernel
def top_class_of_pairs(table: OffsetArray, idx: IndexArray, val: ParamArray) -> int:
    """Return the class of one row of index and value pairs, or an error."""
    if not _in_range(table, idx, val):
        return np.int64(BAD_FEATURE)  # type: ignore[return-value]
    x = _scattered(table, idx, val)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return _after(_top_class(table, _row(table, x, idx, val, top)), x, idx, val, top)


@strict_kernel
def top_k(table: OffsetArray, x: ParamArray, ids: IndexArray, p: AccumArray) -> int:
    """Fill in the best classes of one dense row; return OK or an error."""
    if x.size != table[N_FEATURES]:
        return WRONG_WIDTH
    idx, val = _converted(table, x)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return _after(_top_classes(table, _row(table, x, idx, val, top), ids, p), x, idx, val, top)


@strict_kernel
def top_k_of_pairs(
    table: OffsetArray, idx: IndexArray, val: ParamArray, ids: IndexArray, p: AccumArray
) -> int:
    """Fill in the best classes of one row of pairs; return OK or an error."""
    if not _in_range(table, idx, val):
        return BAD_FEATURE
    x = _scattered(table, idx, val)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return _after(_top_classes(table, _row(table, x, idx, val, top), ids, p), x, idx, val, top)


# -- batches: rows begin..end of X, whose width and indices have been checked ----------------------


class Scratch(NamedTuple):
    """Room for one row in the tree's layout."""

    x: ParamArray
    idx: IndexArray
    val: ParamArray
    top: ParamArray


def scratch_for(table: OffsetArray, X: Rows) -> Scratch:
    """Return room for a converted row."""
    raise TypeError("only called from kernels")


def row_at(table: OffsetArray, X: Rows, i: int, scratch: Scratch) -> Row:
    """Return row ``i`` of a batch, converted to the tree's layout if need be."""
    raise TypeError("only called from kernels")


@overload(scratch_for)
def _scratch_for(table, X):
    if isinstance(X, types.Array):

        def dense(table, X):
            n = X.shape[1] if table[IS_SPARSE] == 1 else 0
            idx, val = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
            top = np.empty(table[N_TOP], dtype=np.float32)
            return Scratch(np.empty(0, dtype=np.float32), idx, val, top)

        return dense

    def sparse(table, X):
        n = X.n_features if table[IS_SPARSE] == 0 else 0
        idx, val = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
        top = np.empty(table[N_TOP], dtype=np.float32)
        return Scratch(np.zeros(n, dtype=np.float32), idx, val, top)

    return sparse


@overload(row_at)
def _row_at(table, X, i, scratch):
    if isinstance(X, types.Array):

        def dense(table, X, i, scratch):
            x = float32_at(X.ctypes.data + 4 * i * X.shape[1])
            idx, val = int32_at(scratch.idx.ctypes.data), float32_at(scratch.val.ctypes.data)
            n = 0 if table[IS_SPARSE] == 0 else _nonzero(X[i], scratch.idx, scratch.val)
            row = Row(x, idx, val, n, float32_at(scratch.top.ctypes.data))
            _score_top(table, row)
            return row

        return dense

    def sparse(table, X, i, scratch):
        begin, end = X.indptr[i], X.indptr[i + 1]
        idx = int32_at(X.indices.ctypes.data + 4 * begin)
        val = float32_at(X.data.ctypes.data + 4 * begin)
        if table[IS_SPARSE] == 0:
            scratch.x[:] = 0.0
            for t in range(end - begin):
                scratch.x[idx[t]] += val[t]
        x, top = float32_at(scratch.x.ctypes.data), float32_at(scratch.top.ctypes.data)
        row = Row(x, idx, val, end - begin, top)
        _score_top(table, row)
        return row

    return sparse


@strict_kernel
def top_class_of_rows(table: OffsetArray, X: Rows, begin: int, end: int, out: IndexArray) -> int:
    """Fill in the class of each row; return OK or an error."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        class_id = _top_class(table, row_at(table, X, i, scratch))
        if class_id < 0:
            return class_id
        out[i] = class_id
    return OK


@strict_kernel
def top_k_of_rows(
    table: OffsetArray, X: Rows, begin: int, end: int, ids: IndexArray, p: AccumArray
) -> int:
    """Fill in the best classes of each row; return OK or an error."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        status = _top_classes(table, row_at(table, X, i, scratch), ids[i], p[i])
        if status != OK:
            return status
    return OK


@strict_kernel
def probabilities_of_rows(
    table: OffsetArray, X: Rows, begin: int, end: int, out: AccumArray
) -> int:
    """Fill in the probability of every class; return OK or an error."""
    scratch = scratch_for(table, X)
    prior = float64_at(table[PRIOR])
    for i in range(begin, end):
        mixture, status = _mixture(table, row_at(table, X, i, scratch), True)
        if status != OK:
            return status
        ids, p, _, rest = mixture
        for c in range(table[N_CLASSES]):
            out[i, c] = rest * prior[c]
        for c in range(ids.size):
            out[i, ids[c]] = p[c]
    return OK


@strict_kernel
def label_probability_of_rows(
    table: OffsetArray,
    X: Rows,
    begin: int,
    end: int,
    labels: IndexArray,
    smooth: bool,
    out: AccumArray,
) -> int:
    """Fill in the probability of one class for each row; return OK or an error."""
    scratch = scratch_for(table, X)
    prior = float64_at(table[PRIOR])
    for i in range(begin, end):
        mixture, status = _mixture(table, row_at(table, X, i, scratch), smooth)
        if status != OK:
            return status
        ids, p, lookup, rest = mixture
        at = lookup[_lookup(lookup, ids, labels[i])]
        out[i] = p[at - 1] if at > 0 else rest * prior[labels[i]]
    return OK


@strict_kernel
def count_classes_of_rows(
    table: OffsetArray, X: Rows, begin: int, end: int, out: OffsetArray
) -> int:
    """Fill in how many classes the leaves of each row hold; return OK or an error."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        mixture, status = _mixture(table, row_at(table, X, i, scratch), False)
        if status != OK:
            return status
        out[i] = mixture.ids.size
    return OK


@strict_kernel
def held_classes_of_rows(
    table: OffsetArray,
    X: Rows,
    begin: int,
    end: int,
    ptr: OffsetArray,
    ids: IndexArray,
    p: AccumArray,
) -> int:
    """Fill in the classes that the leaves of each row hold, with their probabilities."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        mixture, status = _mixture(table, row_at(table, X, i, scratch), True)
        if status != OK:
            return status
        own, own_p, _, _ = mixture
        for c in range(ptr[i + 1] - ptr[i]):
            ids[ptr[i] + c] = own[c]
            p[ptr[i] + c] = own_p[c]
    return OK


@strict_kernel
def leaf_of_rows(table: OffsetArray, X: Rows, begin: int, end: int, out: IndexArray) -> int:
    """Fill in the number of the leaf that each row reaches."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        out[i] = _descend(table, row_at(table, X, i, scratch))
    return OK

"""Prediction with packed trees: one row at a time, whole batches without the GIL.

Single rows and batches run the same strict code, so they agree to the bit. What a tree and a row
are is in :mod:`thinleaf.model.kernels.packed`, what becomes of several paths in
:mod:`thinleaf.model.kernels.mixture`.

``several`` is None for a model of one tree and one path, else True; ``sparse`` is None for a layout
for dense rows, else True. Where an argument is None, numba drops what it is not needed for before
it compiles: beams and forests would take several times as long as a single path. For single rows
there is a kernel for each case, since an argument takes some 50 ns.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import inlined, strict_kernel
from thinleaf.model.kernels.addresses import float32_at, float64_at, int32_at, int64_at
from thinleaf.model.kernels.leaf_checks import leaf_is_ready
from thinleaf.model.kernels.mixture import UNDECIDED, best_of, mixture_of, slot_of, vote
from thinleaf.model.kernels.packed import (
    BAD_FEATURE,
    BAD_LEAF,
    CLASS_IDS,
    CLASS_PTR,
    IS_SPARSE,
    N_CLASSES,
    N_FEATURES,
    N_TOP,
    N_TREES,
    OK,
    PRIOR,
    WRONG_WIDTH,
    Row,
    argmax,
    dense_of,
    descend,
    keep_alive,
    nonzero,
    pairs_of,
    row_as_is,
    row_from,
    score_leaf,
    score_top,
)

# -- one row ---------------------------------------------------------------------------------------


@inlined
def _top_class(table, row, several):
    """Return the most probable class of a row, or an error."""
    if several is not None:
        class_id = vote(table, row)
        if class_id != UNDECIDED:
            return class_id
        mixture, status = mixture_of(table, row, True)
        if status != OK:
            return np.int64(status)
        ids = np.empty(1, dtype=np.int32)
        best_of(table, mixture, ids, np.empty(1, dtype=np.float64))
        return np.int64(ids[0])
    leaf = descend(table, row, 0)
    if not leaf_is_ready(table, leaf):
        return np.int64(BAD_LEAF)
    first, last = int64_at(table[CLASS_PTR])[leaf], int64_at(table[CLASS_PTR])[leaf + 1]
    scores = np.empty(last - first, dtype=np.float32)
    score_leaf(table, row, leaf, scores)
    return np.int64(int32_at(table[CLASS_IDS])[first + argmax(scores)])


@inlined
def _top_classes(table, row, ids, p):
    """Fill in the most probable classes of a row; return OK or an error."""
    mixture, status = mixture_of(table, row, True)
    if status == OK:
        best_of(table, mixture, ids, p)
    return status


@inlined
def _in_range(table, idx, val):
    if idx.size != val.size:
        return False
    n_outside = 0
    for t in range(idx.size):
        n_outside += 0 if 0 <= idx[t] < table[N_FEATURES] else 1
    return n_outside == 0


@inlined
def _class_of_row(table, x, several, sparse):
    if x.size != table[N_FEATURES]:
        return np.int64(WRONG_WIDTH)
    if sparse is None:  # the quickest way: x is the caller's, nothing is allocated for it
        return _top_class(table, row_as_is(x), several)
    idx, val = pairs_of(x)
    top = np.empty(table[N_TOP], dtype=np.float32)
    class_id = _top_class(table, row_from(table, x, idx, val, top), several)
    return keep_alive(class_id, x, idx, val, top)


@inlined
def class_of_pairs(table, idx, val, several):
    """Return the class of one row of index and value pairs, or an error."""
    if not _in_range(table, idx, val):
        return np.int64(BAD_FEATURE)
    x = dense_of(table, idx, val)
    top = np.empty(table[N_TOP], dtype=np.float32)
    class_id = _top_class(table, row_from(table, x, idx, val, top), several)
    return keep_alive(class_id, x, idx, val, top)


@strict_kernel
def top_class(table: OffsetArray, x: ParamArray) -> int:
    """Return the class of one dense row at the end of one path, or an error."""
    return _class_of_row(table, x, None, None)


@strict_kernel
def top_class_converted(table: OffsetArray, x: ParamArray) -> int:
    """Do as :func:`top_class`, in a tree that is laid out for sparse rows."""
    return _class_of_row(table, x, None, True)


@strict_kernel
def top_class_of_pairs(table: OffsetArray, idx: IndexArray, val: ParamArray) -> int:
    """Do as :func:`top_class` with a row of index and value pairs, in either layout."""
    return class_of_pairs(table, idx, val, None)


@strict_kernel
def mixed_class(table: OffsetArray, x: ParamArray) -> int:
    """Do as :func:`top_class` with several paths."""
    return _class_of_row(table, x, True, None)


@strict_kernel
def mixed_class_converted(table: OffsetArray, x: ParamArray) -> int:
    """Do as :func:`top_class_converted` with several paths."""
    return _class_of_row(table, x, True, True)


@strict_kernel
def mixed_class_of_pairs(table: OffsetArray, idx: IndexArray, val: ParamArray) -> int:
    """Do as :func:`top_class_of_pairs` with several paths."""
    return class_of_pairs(table, idx, val, True)


def single_row_kernels(several: bool, sparse: bool) -> tuple[Any, Any]:
    """Return the kernels for a dense row and for one of pairs, of a model's paths and layout."""
    if several:
        return mixed_class_converted if sparse else mixed_class, mixed_class_of_pairs
    return top_class_converted if sparse else top_class, top_class_of_pairs


@strict_kernel
def top_k(table: OffsetArray, x: ParamArray, ids: IndexArray, p: AccumArray) -> int:
    """Fill in the best classes of one dense row; return OK or an error."""
    if x.size != table[N_FEATURES]:
        return WRONG_WIDTH
    if table[IS_SPARSE] == 0:
        return _top_classes(table, row_as_is(x), ids, p)
    idx, val = pairs_of(x)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return keep_alive(
        _top_classes(table, row_from(table, x, idx, val, top), ids, p), x, idx, val, top
    )


@strict_kernel
def top_k_of_pairs(
    table: OffsetArray, idx: IndexArray, val: ParamArray, ids: IndexArray, p: AccumArray
) -> int:
    """Fill in the best classes of one row of pairs; return OK or an error."""
    if not _in_range(table, idx, val):
        return BAD_FEATURE
    x = dense_of(table, idx, val)
    top = np.empty(table[N_TOP], dtype=np.float32)
    return keep_alive(
        _top_classes(table, row_from(table, x, idx, val, top), ids, p), x, idx, val, top
    )


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
            n = 0 if table[IS_SPARSE] == 0 else nonzero(X[i], scratch.idx, scratch.val)
            row = Row(x, idx, val, n, float32_at(scratch.top.ctypes.data))
            score_top(table, row)
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
        score_top(table, row)
        return row

    return sparse


@strict_kernel
def top_class_of_rows(
    table: OffsetArray, X: Rows, begin: int, end: int, several: bool | None, out: IndexArray
) -> int:
    """Fill in the class of each row; return OK or an error."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        class_id = _top_class(table, row_at(table, X, i, scratch), several)
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
        mixture, status = mixture_of(table, row_at(table, X, i, scratch), True)
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
        mixture, status = mixture_of(table, row_at(table, X, i, scratch), smooth)
        if status != OK:
            return status
        ids, p, lookup, rest = mixture
        at = lookup[slot_of(lookup, ids, labels[i])]
        out[i] = p[at - 1] if at > 0 else rest * prior[labels[i]]
    return OK


@strict_kernel
def count_classes_of_rows(
    table: OffsetArray, X: Rows, begin: int, end: int, out: OffsetArray
) -> int:
    """Fill in how many classes the leaves of each row hold; return OK or an error."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        mixture, status = mixture_of(table, row_at(table, X, i, scratch), False)
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
        mixture, status = mixture_of(table, row_at(table, X, i, scratch), True)
        if status != OK:
            return status
        own, own_p, _, _ = mixture
        for c in range(ptr[i + 1] - ptr[i]):
            ids[ptr[i] + c] = own[c]
            p[ptr[i] + c] = own_p[c]
    return OK


@strict_kernel
def leaf_of_rows(table: OffsetArray, X: Rows, begin: int, end: int, out: IndexArray) -> int:
    """Fill in the number of the leaf that each row reaches in each tree."""
    scratch = scratch_for(table, X)
    for i in range(begin, end):
        row = row_at(table, X, i, scratch)
        for root in range(table[N_TREES]):
            out[i, root] = descend(table, row, root)
    return OK

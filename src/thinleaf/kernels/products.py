"""Inputs as the kernels see them: rows to predict with, local problems to solve.

Rows are a C-contiguous ``float32`` matrix or a :class:`CSR` triple. A node's local problem holds
its rows as such a matrix, or, if they are sparse, by column as a :class:`CSC` triple. A kernel is
written once and specialised by the type that it is given: the few primitives that differ are chosen
with ``numba.extending.overload``.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import (
    INDEX,
    OFFSET,
    PARAM,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
    SlotArray,
)
from thinleaf.arrays.ragged import ranges
from thinleaf.arrays.rows import CSC, CSR, Local, Rows, offset_type
from thinleaf.kernels._jit import kernel

_FEW_ENTRIES = 16
"""Features for each entry of some rows above which those that occur are found by sorting."""


def gather(X: Rows, rows: IndexArray) -> tuple[Local, IndexArray]:
    """Copy ``rows`` of ``X``; of sparse input, by column and only the features that occur.

    Returns
    -------
    local : Local
        Its column ``j`` is feature ``features[j]``.
    features : ndarray of shape (n_local,)
        Ascending feature ids. For dense input, all features.
    """
    if not isinstance(X, CSR):
        return X[rows], np.arange(X.shape[1], dtype=INDEX)
    sizes = X.indptr[rows + 1] - X.indptr[rows]
    n_entries = int(sizes.sum(dtype=OFFSET))
    if _FEW_ENTRIES * n_entries < X.n_features:
        return _gather_few(X, rows, sizes)
    kind = offset_type(n_entries)
    counts = np.zeros(X.n_features, dtype=kind)
    _count_features(X.indptr, X.indices, rows, counts)
    features = np.flatnonzero(counts).astype(INDEX)
    indptr = np.zeros(features.size + 1, dtype=kind)
    np.cumsum(counts[features], out=indptr[1:])
    counts[features] = indptr[:-1]  # now: where the next entry of a feature goes
    indices = np.empty(indptr[-1], dtype=INDEX)
    data = np.empty(indptr[-1], dtype=PARAM)
    _fill_columns(X.indptr, X.indices, X.data, rows, counts, indices, data)
    return CSC(indptr, indices, data, rows.size), features


def _gather_few(X: CSR, rows: IndexArray, sizes: AnyArray) -> tuple[Local, IndexArray]:
    """Return the same by sorting entries, which takes less time than to look at all features."""
    entries = ranges(X.indptr[rows], sizes)
    found = X.indices[entries]
    order = np.argsort(found, kind="stable")
    ranked = found[order]
    first = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    begins = np.concatenate([np.zeros(min(ranked.size, 1), dtype=first.dtype), first])
    indptr = np.append(begins, ranked.size).astype(INDEX)
    row = np.repeat(np.arange(rows.size, dtype=INDEX), sizes)
    return CSC(indptr, row[order], X.data[entries][order], rows.size), ranked[begins]


@kernel
def _count_features(
    indptr: AnyArray, indices: IndexArray, rows: IndexArray, counts: AnyArray
) -> None:
    for i in range(rows.size):
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            counts[indices[t]] += 1


@kernel
def _fill_columns(
    indptr: AnyArray,
    indices: IndexArray,
    data: ParamArray,
    rows: IndexArray,
    cursor: AnyArray,
    out_indices: IndexArray,
    out_data: ParamArray,
) -> None:
    for i in range(rows.size):
        for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
            at = cursor[indices[t]]
            out_indices[at] = i
            out_data[at] = data[t]
            cursor[indices[t]] = at + 1


def project_rows(
    X: Rows,
    rows: IndexArray,
    order: IndexArray,
    w_idx: IndexArray,
    w_val: ParamArray,
    w_dense: ParamArray,
    out: ParamArray,
) -> None:
    """Fill ``out`` with w·x of rows ``rows[order]``.

    ``w_dense`` holds the same weights scattered over all features.
    """
    raise TypeError("only called from kernels")


@overload(project_rows, inline="always")
def _project_rows(X, rows, order, w_idx, w_val, w_dense, out):
    if isinstance(X, types.Array):

        def dense(X, rows, order, w_idx, w_val, w_dense, out):
            if 2 * w_idx.size > w_dense.size:
                for p in range(order.size):
                    row = rows[order[p]]
                    total = np.float32(0.0)
                    for f in range(w_dense.size):
                        total += X[row, f] * w_dense[f]
                    out[p] = total
            else:
                for p in range(order.size):
                    row = rows[order[p]]
                    total = np.float32(0.0)
                    for t in range(w_idx.size):
                        total += X[row, w_idx[t]] * w_val[t]
                    out[p] = total

        return dense

    def sparse(X, rows, order, w_idx, w_val, w_dense, out):
        for p in range(order.size):
            row = rows[order[p]]
            total = np.float32(0.0)
            for t in range(X.indptr[row], X.indptr[row + 1]):
                total += X.data[t] * w_dense[X.indices[t]]
            out[p] = total

    return sparse


def score_row(
    X: Rows,
    row: int,
    features: IndexArray,
    block: ParamArray,
    bias: ParamArray,
    position: IndexArray,
    scores: ParamArray,
) -> None:
    """Fill ``scores`` with Wx + b of a leaf; ``position`` maps features to rows of ``block``."""
    raise TypeError("only called from kernels")


@overload(score_row, inline="always")
def _score_row(X, row, features, block, bias, position, scores):
    if isinstance(X, types.Array):

        def dense(X, row, features, block, bias, position, scores):
            for c in range(bias.size):
                scores[c] = bias[c]
            for r in range(features.size):
                x = X[row, features[r]]
                for c in range(bias.size):
                    scores[c] += x * block[r, c]

        return dense

    def sparse(X, row, features, block, bias, position, scores):
        for c in range(bias.size):
            scores[c] = bias[c]
        for t in range(X.indptr[row], X.indptr[row + 1]):
            r = position[X.indices[t]]
            if r >= 0:
                x = X.data[t]
                for c in range(bias.size):
                    scores[c] += x * block[r, c]

    return sparse


def score_row_by_entries(
    X: Rows,
    row: int,
    features: IndexArray,
    row_ptr: OffsetArray,
    slots: SlotArray,
    values: ParamArray,
    bias: ParamArray,
    position: IndexArray,
    scores: ParamArray,
) -> None:
    """Fill ``scores`` as :func:`score_row` does, of a leaf that keeps nonzero weights alone.

    Feature ``r`` of the leaf has the weights ``values[row_ptr[r]:row_ptr[r + 1]]``.
    """
    raise TypeError("only called from kernels")


@overload(score_row_by_entries, inline="always")
def _score_row_by_entries(X, row, features, row_ptr, slots, values, bias, position, scores):
    if isinstance(X, types.Array):

        def dense(X, row, features, row_ptr, slots, values, bias, position, scores):
            for c in range(bias.size):
                scores[c] = bias[c]
            for r in range(features.size):
                x = X[row, features[r]]
                for t in range(row_ptr[r], row_ptr[r + 1]):
                    scores[slots[t]] += x * values[t]

        return dense

    def sparse(X, row, features, row_ptr, slots, values, bias, position, scores):
        for c in range(bias.size):
            scores[c] = bias[c]
        for s in range(X.indptr[row], X.indptr[row + 1]):
            r = position[X.indices[s]]
            if r >= 0:
                x = X.data[s]
                for t in range(row_ptr[r], row_ptr[r + 1]):
                    scores[slots[t]] += x * values[t]

    return sparse

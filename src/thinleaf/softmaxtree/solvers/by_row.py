"""The rows of a node's problem, one after the other, for solvers of the dual."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSC, offset_type
from thinleaf.kernels._jit import kernel


def by_row(
    X: ParamArray | CSC, n_rows: int
) -> tuple[IndexArray, IndexArray, ParamArray, AccumArray]:
    """Return rows as offsets, features and values, and their squared lengths."""
    if not isinstance(X, CSC):
        d = X.shape[1]
        indices = np.tile(np.arange(d, dtype=INDEX), n_rows)
        square = np.square(X, dtype=ACCUM).sum(axis=1)
        indptr = offsets(np.full(n_rows, d), offset_type(n_rows * d))
        return indptr, indices, np.ascontiguousarray(X).ravel(), square
    indptr = offsets(np.bincount(X.indices, minlength=n_rows), offset_type(X.indices.size))
    indices, data = np.empty_like(X.indices), np.empty_like(X.data)
    square = np.zeros(n_rows, dtype=ACCUM)
    _transpose(X.indptr, X.indices, X.data, indptr[:-1].copy(), indices, data, square)
    return indptr, indices, data, square


@kernel
def _transpose(
    indptr: AnyArray,
    indices: IndexArray,
    data: ParamArray,
    cursor: IndexArray,
    out_indices: IndexArray,
    out_data: ParamArray,
    square: AccumArray,
) -> None:
    """Fill rows from columns, and the squared lengths of rows; ``cursor`` is where each begins."""
    for j in range(indptr.size - 1):
        for t in range(indptr[j], indptr[j + 1]):
            i, x = indices[t], np.float64(data[t])
            at = cursor[i]
            out_indices[at] = j
            out_data[at] = data[t]
            square[i] += x * x
            cursor[i] = at + 1

"""Hashes: of rows, to order them and find equal ones whatever their storage; and of features."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import INDEX, AnyArray, BoolArray, IndexArray, ParamArray
from thinleaf.arrays.rows import CSR, Rows, as_rows, n_rows_of
from thinleaf.kernels._jit import inlined, kernel


def hash_rows(X: Rows) -> AnyArray:
    """Return a 64-bit hash of the nonzero entries of each row, the same for dense and CSR."""
    out = np.empty(n_rows_of(X), dtype=np.uint64)
    _hash_rows(X, out)
    return out


def hash_features(features: IndexArray, bits: int) -> IndexArray:
    """Return a hash of each feature id, of so many bits."""
    z = features.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (z >> np.uint64(64 - bits)).astype(INDEX)


def equal_to_next(X: Rows) -> BoolArray:
    """Return, for each row but the last, whether the next one is equal."""
    hashes = hash_rows(X)
    out: BoolArray = hashes[1:] == hashes[:-1]
    for i in np.flatnonzero(out).tolist():
        out[i] = _equal(X, i, i + 1)
    return out


def _equal(X: Rows, a: int, b: int) -> bool:
    if not isinstance(X, CSR):
        return np.array_equal(X[a], X[b])
    (idx, val), (other_idx, other_val) = _entries(X, a), _entries(X, b)
    return np.array_equal(idx, other_idx) and np.array_equal(val, other_val)


def _entries(X: CSR, row: int) -> tuple[IndexArray, ParamArray]:
    """Return the nonzero entries of a row; a stored zero is none."""
    at = slice(X.indptr[row], X.indptr[row + 1])
    nonzero = X.data[at] != 0.0
    return X.indices[at][nonzero], X.data[at][nonzero]


@inlined
def _mix(state: np.uint64, feature: int, value: float) -> np.uint64:
    """Stir one entry into a hash (the finaliser of splitmix64)."""
    bits = np.uint64(np.float32(value).view(np.uint32))
    z = state ^ ((np.uint64(feature) << np.uint64(32)) | bits)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_row(X: Rows, row: int) -> np.uint64:
    """Return the hash of one row."""
    raise TypeError("only called from kernels")


@overload(hash_row, inline="always")
def _hash_row(X, row):
    if isinstance(X, types.Array):

        def dense(X, row):
            state = np.uint64(0x9E3779B97F4A7C15)
            for f in range(X.shape[1]):
                if X[row, f] != 0.0:
                    state = _mix(state, f, X[row, f])
            return state

        return dense

    def sparse(X, row):
        state = np.uint64(0x9E3779B97F4A7C15)
        for t in range(X.indptr[row], X.indptr[row + 1]):
            if X.data[t] != 0.0:
                state = _mix(state, X.indices[t], X.data[t])
        return state

    return sparse


@kernel
def _hash_rows(X: Rows, out: AnyArray) -> None:
    for row in range(out.size):
        out[row] = hash_row(X, row)


def hashed(X: Rows, bits: int) -> CSR:
    """Return rows whose features are hashed to 2^bits ones; values that meet are added up."""
    import scipy.sparse as sp

    assert isinstance(X, CSR)
    indices = hash_features(X.indices, bits)
    matrix = sp.csr_matrix((X.data, indices, X.indptr), shape=(X.indptr.size - 1, 1 << bits))
    rows = as_rows(matrix)
    assert isinstance(rows, CSR)
    return rows

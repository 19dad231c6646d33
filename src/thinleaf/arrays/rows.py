"""Rows of features, dense or sparse: what users have, as kernels take it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.arrays.checks import check_columns, check_real
from thinleaf.arrays.ragged import offsets, ranges

if TYPE_CHECKING:
    import scipy.sparse as sp

_FLOAT32 = np.dtype(PARAM)
_INT32 = np.dtype(INDEX)
_STEP = (_FLOAT32.itemsize,)


class CSR(NamedTuple):
    """Sparse rows: row ``i`` holds ``indices[indptr[i]:indptr[i + 1]]``, ascending."""

    indptr: IndexArray | OffsetArray
    indices: IndexArray
    data: ParamArray
    n_features: int


class CSC(NamedTuple):
    """Sparse columns: column ``j`` holds rows ``indices[indptr[j]:indptr[j + 1]]``, ascending."""

    indptr: IndexArray | OffsetArray
    indices: IndexArray
    data: ParamArray
    n_rows: int


Rows: TypeAlias = ParamArray | CSR


Local: TypeAlias = ParamArray | CSC


_FEW_ENTRIES = np.iinfo(INDEX).max
"""Up to so many stored entries, offsets of rows are as narrow as other indices."""


def offset_type(n_entries: int) -> Any:
    """Return the dtype of offsets into so many stored entries: int64 from 2^31 on, else int32.

    Kernels are compiled for the wide ones when they are first met.
    """
    return OFFSET if n_entries > _FEW_ENTRIES else INDEX


def n_rows_of(X: Rows) -> int:
    """Return the number of rows."""
    return X.indptr.size - 1 if isinstance(X, CSR) else X.shape[0]


def n_features_of(X: Rows) -> int:
    """Return the number of features."""
    return X.n_features if isinstance(X, CSR) else X.shape[1]


def take_rows(X: Rows, rows: AnyArray) -> Rows:
    """Return a copy of some rows, in the order given."""
    if not isinstance(X, CSR):
        return X[rows]
    sizes = np.diff(X.indptr)[rows]
    indptr = offsets(sizes, offset_type(int(sizes.sum(dtype=OFFSET))))
    entries = ranges(X.indptr[rows], sizes)
    return CSR(indptr, X.indices[entries], X.data[entries], X.n_features)


def rows_between(X: Rows, begin: int, end: int) -> Rows:
    """Return consecutive rows, as views."""
    if not isinstance(X, CSR):
        return X[begin:end]
    return CSR(X.indptr[begin : end + 1], X.indices, X.data, X.n_features)


def n_local_features(X: Local) -> int:
    """Return the number of features of a local problem."""
    return X.indptr.size - 1 if isinstance(X, CSC) else X.shape[1]


def is_sparse(X: Any) -> bool:
    """Return whether it is a sparse matrix of SciPy, which is not imported for that."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def as_rows(X: Any) -> Rows:
    """Return validated input (dense, or any scipy CSR) in the library's dtypes.

    Arrays count as writable: see :func:`as_writable`.
    """
    check_real(X)
    if not is_sparse(X):
        return as_writable(np.ascontiguousarray(X, dtype=PARAM))
    matrix = cast("sp.csr_array | sp.csr_matrix", X)
    matrix.check_format(full_check=True)  # kernels follow its indices wherever they lead
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    rows = CSR(
        matrix.indptr.astype(offset_type(matrix.nnz), copy=False),
        matrix.indices.astype(INDEX, copy=False),
        matrix.data.astype(PARAM, copy=False),
        int(matrix.shape[1]),
    )
    return as_writable(rows)


def checked_rows(X: Any, feature_names: list[str] | None, n_features: int) -> Rows:
    """Return the input of a model as rows; ``ValueError`` if it cannot be that.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features), or CSR
        Of the last one nothing is checked.
    feature_names : list of str or None
        What the columns of a data frame must be called.
    n_features : int
    """
    if isinstance(X, CSR):  # checked already
        return X
    check_columns(X, feature_names)
    if not hasattr(X, "indptr"):
        with np.errstate(over="ignore"):  # infinity is found below
            X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
            check_real(X)
            if isinstance(X, np.ndarray) and _has_text(X):
                raise ValueError("this model takes rows of features, not texts")
            X = X if hasattr(X, "indptr") else X.astype(PARAM, copy=False)
    elif getattr(X, "format", "csr") != "csr":
        X = X.tocsr()
    if X.ndim != 2:
        raise ValueError(f"X must have two axes (rows, features), got shape {X.shape}")
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model expects {n_features}")
    with np.errstate(over="ignore"):
        rows = as_rows(X)
    if not np.all(np.isfinite(rows.data if isinstance(rows, CSR) else rows)):
        raise ValueError("X contains NaN or infinity, or is too large for float32")
    return rows


def _has_text(X: AnyArray) -> bool:
    return X.dtype.kind in "US" or (X.dtype.kind == "O" and X.size > 0 and type(X.flat[0]) is str)


def as_matrix(X: Rows) -> Any:
    """Return rows as NumPy and SciPy have them: an array, or a CSR matrix over the same memory."""
    if not isinstance(X, CSR):
        return X
    import scipy.sparse as sp

    shape = (X.indptr.size - 1, X.n_features)
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape)


def mean_square_norm(X: Rows) -> float:
    """Return the mean squared length of the rows: the scale that penalties go by."""
    values = X.data if isinstance(X, CSR) else X.ravel()
    n_rows = X.indptr.size - 1 if isinstance(X, CSR) else X.shape[0]
    return float(np.square(values, dtype=ACCUM).sum()) / max(n_rows, 1)


class _Alias:
    """The memory of an array, said to be writable."""

    def __init__(self, array: AnyArray) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}
        self._kept = array


def as_writable(rows: Rows) -> Rows:
    """Return rows whose arrays count as writable, as those of a memory-mapped file do not.

    Kernels only read rows, but would be compiled once more for read-only ones.
    """
    if isinstance(rows, CSR):
        return CSR(
            _writable(rows.indptr), _writable(rows.indices), _writable(rows.data), rows.n_features
        )
    return _writable(rows)


def _writable(array: AnyArray) -> AnyArray:
    return array if array.flags.writeable else np.asarray(_Alias(array))


# -- single samples -------------------------------------------------------------------------------


def dense_row(x: Any) -> AnyArray:
    """Return one dense sample as kernels take it."""
    check_real(x, "x")
    row = np.ascontiguousarray(x, dtype=PARAM)
    if row.ndim != 1:
        raise ValueError(f"a sample is a row of shape (n_features,), got shape {row.shape}")
    return row


def pairs(indices: Any, values: Any) -> tuple[AnyArray, AnyArray]:
    """Return indices and values of one sparse sample as kernels take them."""
    if not _is_plain(indices, _INT32):
        wide = np.ascontiguousarray(indices)
        if wide.ndim != 1 or (wide.size and wide.dtype.kind not in "iu"):
            raise ValueError("indices must be integers in one axis")
        # out of range stays so: the kernel says it
        indices = np.clip(wide, -1, np.iinfo(INDEX).max).astype(INDEX)
    if not _is_plain(values, _FLOAT32):
        values = dense_row(values)
    return indices, values


def _is_plain(array: Any, dtype: Any) -> bool:
    """Return whether an array is one that kernels take as it is.

    What kernels return that came from the cache has a type that is equal, but not the same object.
    """
    return (
        type(array) is np.ndarray
        and (array.dtype is dtype or array.dtype == dtype)
        and array.strides == _STEP
    )


def sample(x: Any, values: Any, n_features: int) -> tuple[AnyArray, AnyArray | None]:
    """Return one sample as kernels take it: a dense row and None, or indices and values.

    Parameters
    ----------
    x : array-like of shape (n_features,), or sparse matrix of one row
        With ``values``, indices.
    values : array-like, optional
    n_features : int
        Width that a sparse matrix must have; kernels check that of others.
    """
    if values is not None:
        return pairs(x, values)
    if not is_sparse(x):
        return dense_row(x), None
    check_real(x, "x")
    matrix = cast(Any, x)
    row = matrix.reshape((1, -1)).tocsr() if matrix.ndim == 1 else matrix.tocsr()
    if row.shape[0] != 1:
        raise ValueError(f"a sample is one row, but the sparse matrix has {row.shape[0]}")
    if row.shape[1] != n_features:
        raise ValueError(f"x has {row.shape[1]} features, but the model expects {n_features}")
    return pairs(row.indices, row.data)


def one_row(x: Any, values: Any, n_features: int) -> Rows:
    """Return one sample as rows whose indices are ascending and within ``n_features``."""
    x, values = sample(x, values, n_features)
    if values is None:
        if x.size != n_features:
            raise ValueError(f"x has {x.size} features, but the model expects {n_features}")
        dense: ParamArray = x[None]
        return dense
    if x.size != values.size or np.any((x < 0) | (x >= n_features)):
        raise ValueError(
            f"indices must lie in 0..{n_features - 1}, and there must be as many values"
        )
    import scipy.sparse as sp

    return as_rows(sp.csr_array((values, x, np.array([0, x.size])), shape=(1, n_features)))

"""From what users have to what kernels take."""

from __future__ import annotations

from numbers import Integral
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.kernels.hashing import hash_features
from thinleaf.kernels.rows import CSR, Rows

_FLOAT32 = np.dtype(PARAM)
_INT32 = np.dtype(INDEX)
_STEP = (_FLOAT32.itemsize,)


def as_rows(X: Any) -> Rows:
    """Return validated input (dense, or any scipy CSR) in the library's dtypes."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=PARAM)
    matrix = cast("sp.csr_array | sp.csr_matrix", X)
    matrix.check_format(full_check=True)  # kernels follow its indices wherever they lead
    if matrix.nnz > np.iinfo(INDEX).max:
        raise ValueError(
            f"X has {matrix.nnz} stored entries, more than 2^31 - 1: split it into batches of rows"
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return CSR(
        matrix.indptr.astype(INDEX, copy=False),
        matrix.indices.astype(INDEX, copy=False),
        matrix.data.astype(PARAM, copy=False),
        int(matrix.shape[1]),
    )


def as_matrix(X: Rows) -> Any:
    """Return rows as NumPy and SciPy have them: an array, or a CSR matrix over the same memory."""
    if not isinstance(X, CSR):
        return X
    shape = (X.indptr.size - 1, X.n_features)
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape)


def hashed(X: Rows, bits: int) -> CSR:
    """Return rows whose features are hashed to 2^bits ones; values that meet are added up."""
    assert isinstance(X, CSR)
    indices = hash_features(X.indices, bits)
    matrix = sp.csr_matrix((X.data, indices, X.indptr), shape=(X.indptr.size - 1, 1 << bits))
    rows = as_rows(matrix)
    assert isinstance(rows, CSR)
    return rows


def as_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> AccumArray:
    """Return one finite nonnegative weight a row."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=ACCUM)
    weight = np.asarray(sample_weight, dtype=ACCUM)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), got {weight.shape}")
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity")
    if np.any(weight < 0.0):
        raise ValueError("sample_weight contains negative weights; weights must be at least 0")
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight is zero for every row: nothing to learn from")
    return weight


def class_ids(classes: AnyArray, y: AnyArray) -> IndexArray:
    """Return the position of each label in the sorted ``classes``."""
    try:
        ids = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    except TypeError as error:
        raise ValueError(f"y has labels of another type than those seen in fit: {error}") from error
    unknown = classes[ids] != y
    if np.any(unknown):
        label = y[unknown].tolist()[0]
        raise ValueError(f"y has labels that were not seen in fit, such as {label!r}")
    return ids.astype(INDEX)


def ids_of_rows(classes: AnyArray, y: npt.ArrayLike, n_rows: int) -> IndexArray:
    """Return the class id of one known label a row."""
    ids = class_ids(classes, np.asarray(y))
    if ids.shape != (n_rows,):
        raise ValueError(f"y must have one label a row ({n_rows}), got {ids.shape}")
    return ids


def check_top_k(k: Any, n_classes: int) -> None:
    """Raise ``ValueError`` unless so many best classes can be asked for."""
    whole = isinstance(k, Integral) and not isinstance(k, bool)
    if not whole or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer in 1..{n_classes}, got {k!r}")


def mean_square_norm(X: Rows) -> float:
    """Return the mean squared length of the rows: the scale that penalties go by."""
    values = X.data if isinstance(X, CSR) else X.ravel()
    n_rows = X.indptr.size - 1 if isinstance(X, CSR) else X.shape[0]
    return float(np.square(values, dtype=ACCUM).sum()) / max(n_rows, 1)


# -- for the frozen predictor ---------------------------------------------------------------------


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


def dense_row(x: Any) -> AnyArray:
    """Return one dense sample as kernels take it."""
    row = np.ascontiguousarray(x, dtype=PARAM)
    if row.ndim != 1:
        raise ValueError(f"a sample is a row of shape (n_features,), got shape {row.shape}")
    return row


def pairs(indices: Any, values: Any) -> tuple[AnyArray, AnyArray]:
    """Return indices and values of one sparse sample as kernels take them."""
    if type(indices) is not np.ndarray or indices.dtype is not _INT32 or indices.strides != _STEP:
        wide = np.ascontiguousarray(indices)
        if wide.ndim != 1 or (wide.size and wide.dtype.kind not in "iu"):
            raise ValueError("indices must be integers in one axis")
        # out of range stays so: the kernel says it
        indices = np.clip(wide, -1, np.iinfo(INDEX).max).astype(INDEX)
    if type(values) is not np.ndarray or values.dtype is not _FLOAT32 or values.strides != _STEP:
        values = dense_row(values)
    return indices, values

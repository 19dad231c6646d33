"""From what users have to what kernels take."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.kernels.hashing import hash_features
from thinleaf.kernels.rows import CSR, Rows


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


def mean_square_norm(X: Rows) -> float:
    """Return the mean squared length of the rows: the scale that penalties go by."""
    values = X.data if isinstance(X, CSR) else X.ravel()
    n_rows = X.indptr.size - 1 if isinstance(X, CSR) else X.shape[0]
    return float(np.square(values, dtype=ACCUM).sum()) / max(n_rows, 1)

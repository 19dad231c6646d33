"""The labels of rows that may have several each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, AccumArray, AnyArray, IndexArray, OffsetArray


class Targets(NamedTuple):
    """Labels of each row: those of row i are ``labels[ptr[i]:ptr[i + 1]]``, one or more."""

    ptr: OffsetArray
    labels: IndexArray

    @classmethod
    def single(cls, y: IndexArray) -> Targets:
        """Return the targets of rows of one label each."""
        return cls(np.arange(y.size + 1, dtype=OFFSET), y)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.ptr.size - 1

    @property
    def rows(self) -> AnyArray:
        """The row of each pair of row and label."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.ptr))

    def drawn(self, rng: np.random.Generator) -> IndexArray:
        """Return a label of each row: of several, any of them, as fastText does in every epoch."""
        n_labels = np.diff(self.ptr)
        if np.all(n_labels == 1):
            return self.labels  # nothing is drawn: fits to one label do not depend on this
        which = (rng.random(self.n_rows) * n_labels).astype(OFFSET)
        drawn: IndexArray = self.labels[self.ptr[:-1] + np.minimum(which, n_labels - 1)]
        return drawn

    def frequency(self, n_labels: int, importance: AnyArray | None = None) -> AccumArray:
        """Return how many rows each label has; a row of several counts for each in part."""
        sizes = np.diff(self.ptr)
        weight = np.repeat((1.0 if importance is None else importance) / sizes, sizes)
        return np.bincount(self.labels, weight, minlength=n_labels).astype(ACCUM)

    def take(self, rows: AnyArray) -> Targets:
        """Return the targets of some rows."""
        sizes = np.diff(self.ptr)[rows]
        ptr: OffsetArray = np.zeros(rows.size + 1, dtype=OFFSET)
        np.cumsum(sizes, out=ptr[1:])
        within = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)
        return Targets(ptr, self.labels[np.repeat(self.ptr[:-1][rows], sizes) + within])


def is_indicator(Y: Any) -> bool:
    """Return whether labels are a matrix, of a row and a column for each row and label."""
    if sp.issparse(Y):
        return True
    return getattr(Y, "ndim", 1) == 2 and Y.shape[1] > 1


def indicator(Y: Any, n_rows: int) -> sp.csr_array:
    """Return such a matrix once it is checked: True or 1 where a row has a label.

    Raises
    ------
    ValueError
        If it has other numbers than 0 and 1, or not a row for each row.
    """
    matrix = sp.csr_array(Y)
    if matrix.shape[0] != n_rows:
        raise ValueError(f"there are {n_rows} rows, but Y has shape {matrix.shape}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.data.dtype.kind not in "biuf" or not np.all(matrix.data == 1):
        raise ValueError("Y must have 1 where a row has a label and 0 elsewhere, as sklearn's "
                         "MultiLabelBinarizer(sparse_output=True) makes it")  # fmt: skip
    return matrix


def targets_of(matrix: sp.csr_array) -> tuple[Targets, AnyArray]:
    """Return targets, and the columns that are labels: those of some row.

    Parameters
    ----------
    matrix : csr_array
        As of :func:`indicator`, of rows that have a label each.
    """
    columns, ids = np.unique(matrix.indices, return_inverse=True)
    return Targets(matrix.indptr.astype(OFFSET), ids.astype(INDEX)), columns.astype(np.int64)

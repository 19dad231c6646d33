"""Rows on disk: more than memory holds, written once and read chunk by chunk.

A store is one file in a directory for temporary files. A chunk of it holds classes and weights,
then row lengths, features and values of some rows, as plain arrays one after the other; where
chunks begin is kept in memory. Files are read and not mapped, so that what a process holds is what
it has asked for. Stores are of this process and its workers: there is no header.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
)
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR, Rows, as_matrix, n_features_of, n_rows_of, offset_type

_SPARE = 64 * 2**20
"""Bytes that are left free on a disk."""


class Chunk(NamedTuple):
    """Some rows, a number for the class of each, and weights."""

    X: Rows
    y: IndexArray
    weight: AccumArray


@dataclass(frozen=True, eq=False)
class RowStore:
    """Rows in a file.

    Attributes
    ----------
    path : Path
    sparse : bool
        Whether rows are stored without zeros.
    n_features : int
    chunk_rows, chunk_entries : ndarray of shape (n_chunks,)
        Rows and stored values of each chunk.
    as_dense : bool
        Whether sparse rows are to be dense when they are read.
    """

    path: Path
    sparse: bool
    n_features: int
    chunk_rows: OffsetArray
    chunk_entries: OffsetArray
    as_dense: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.chunk_rows.sum())

    @property
    def n_entries(self) -> int:
        """Number of stored values."""
        return int(self.chunk_entries.sum())

    @property
    def nbytes(self) -> int:
        """Bytes that all rows take in memory."""
        if self.as_dense:
            return bytes_of(self.n_rows, self.n_rows * self.n_features, sparse=False)
        return bytes_of(self.n_rows, self.n_entries, self.sparse)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield all chunks, in the order in which they were written."""
        if self.n_rows == 0:
            return
        with self.path.open("rb") as file:
            for n_rows, n_entries in zip(
                self.chunk_rows.tolist(), self.chunk_entries.tolist(), strict=True
            ):
                y = np.fromfile(file, INDEX, n_rows)
                weight = np.fromfile(file, ACCUM, n_rows)
                if not self.sparse:
                    X = np.fromfile(file, PARAM, n_entries).reshape(n_rows, self.n_features)
                    yield Chunk(X, y, weight)
                    continue
                indptr = offsets(np.fromfile(file, INDEX, n_rows), offset_type(n_entries))
                indices = np.fromfile(file, INDEX, n_entries)
                data = np.fromfile(file, PARAM, n_entries)
                rows: Rows = CSR(indptr, indices, data, self.n_features)
                yield Chunk(as_matrix(rows).toarray() if self.as_dense else rows, y, weight)

    def read(self) -> Chunk:
        """Return all rows at once."""
        return gathered([self])

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)


def gathered(stores: Sequence[RowStore]) -> Chunk:
    """Return the rows of several stores of one kind at once, in their order."""
    sparse = stores[0].sparse and not stores[0].as_dense
    n_features = max(store.n_features for store in stores)
    n_rows = sum(store.n_rows for store in stores)
    n_entries = n_rows * n_features
    if sparse:
        n_entries = sum(store.n_entries for store in stores)
    y, weight = np.empty(n_rows, dtype=INDEX), np.empty(n_rows, dtype=ACCUM)
    values = np.empty(n_entries, dtype=PARAM)
    indices = np.empty(n_entries if sparse else 0, dtype=INDEX)
    sizes = np.empty(n_rows if sparse else 0, dtype=INDEX)
    row = entry = 0
    for chunk in (chunk for store in stores for chunk in store):
        rows = slice(row, row + chunk.y.size)
        y[rows], weight[rows] = chunk.y, chunk.weight
        data = chunk.X.data if isinstance(chunk.X, CSR) else chunk.X.ravel()
        entries = slice(entry, entry + data.size)
        values[entries] = data
        if isinstance(chunk.X, CSR):
            indices[entries] = chunk.X.indices
            sizes[rows] = np.diff(chunk.X.indptr)
        row, entry = rows.stop, entries.stop
    if not sparse:
        return Chunk(values.reshape(n_rows, n_features), y, weight)
    indptr = offsets(sizes, offset_type(n_entries))
    return Chunk(CSR(indptr, indices, values, n_features), y, weight)


class StoreWriter:
    """Writes rows to a store; :meth:`store` returns what is written so far.

    Parameters
    ----------
    path : Path
        A new file, which is made with the first rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[int] = []
        self._entries: list[int] = []
        self._sparse = True
        self._n_features = 0

    def append(self, X: Rows, y: IndexArray, weight: AccumArray) -> None:
        """Add rows; all must be sparse, or all dense of one width.

        Raises
        ------
        OSError
            If the disk is full, or nearly so.
        """
        if y.size == 0:
            return
        self._sparse = isinstance(X, CSR)
        self._n_features = max(self._n_features, n_features_of(X))
        if isinstance(X, CSR):
            first, last = int(X.indptr[0]), int(X.indptr[-1])  # rows may be views of more
            sizes = np.diff(X.indptr).astype(INDEX)
            arrays: list[AnyArray] = [y, weight, sizes]
            arrays += [X.indices[first:last], X.data[first:last]]
            n_entries = last - first
        else:
            arrays, n_entries = [y, weight, np.ascontiguousarray(X)], X.size
        check_room(self._path.parent, sum(array.nbytes for array in arrays))
        with self._path.open("ab") as file:
            for array in arrays:
                array.tofile(file)
        self._rows.append(n_rows_of(X))
        self._entries.append(n_entries)

    def store(self, n_features: int | None = None) -> RowStore:
        """Return the rows; without a number of features, the largest that was seen."""
        return RowStore(
            self._path,
            self._sparse,
            self._n_features if n_features is None else n_features,
            np.array(self._rows, dtype=OFFSET),
            np.array(self._entries, dtype=OFFSET),
        )


def bytes_of(n_rows: int, n_entries: int, sparse: bool) -> int:
    """Return the bytes of rows in memory, with a class and a weight each."""
    row = INDEX().itemsize + ACCUM().itemsize + (INDEX().itemsize if sparse else 0)
    entry = PARAM().itemsize + (INDEX().itemsize if sparse else 0)
    return n_rows * row + n_entries * entry


def check_room(directory: Path, n_bytes: int) -> None:
    """Raise ``OSError`` unless so much more can be written to a directory."""
    free = shutil.disk_usage(directory).free
    if free < n_bytes + _SPARE:
        raise OSError(
            f"{os.fspath(directory)} has {free / 2**20:,.0f} MiB left, too little for rows on "
            f"disk ({n_bytes / 2**20:,.0f} MiB more): set TMPDIR to a directory with more room"
        )

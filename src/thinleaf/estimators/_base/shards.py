"""From shards of labelled rows, wherever they are, to rows on disk.

A shard is a data file, a pair of rows and labels, or an Arrow table. It is read chunk by chunk, by
one task; what comes back to the caller is where its rows are, and counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import as_weights
from thinleaf.arrays.row_store import Chunk, RowStore, StoreWriter
from thinleaf.arrays.rows import CSR, as_rows, is_sparse, n_rows_of, take_rows
from thinleaf.datasets import FeatureRows, label_array, open_examples
from thinleaf.estimators._base.training_rows import check_labels, check_magnitude, check_one_type

_CHUNK_BYTES = 8 * 2**20
_FILE_ROWS = 8192


class LabelledRows(NamedTuple):
    """Rows, labels, and weights if there are any."""

    X: Any
    y: Any
    weight: Any = None


@dataclass(frozen=True, eq=False)
class StoredShard:
    """What is known of a shard whose rows are on disk.

    Attributes
    ----------
    store : RowStore
        Its classes are positions in ``labels``.
    labels : list
        Distinct labels, as they came; of files, what is written there.
    mass : ndarray, aligned with ``labels``
        Weight of their rows.
    least : float
        The smallest positive weight of a row.
    sums, squares : ndarray of shape (n_features,)
        Of each feature over the rows.
    written : bool
        Whether labels are as a file has them.
    notes : tuple of str
        About lines that were left out.
    """

    store: RowStore
    labels: list[Any]
    mass: AccumArray
    least: float
    sums: AccumArray
    squares: AccumArray
    written: bool
    notes: tuple[str, ...] = ()


def as_shards(shards: Any, directory: Path) -> list[Any]:
    """Return shards as tasks take them: paths, and rows with labels.

    Arrow tables, and data sets of Ray, are written to files first; the latter by its own workers.
    """
    if hasattr(shards, "write_parquet"):
        folder = directory / "dataset"
        shards.write_parquet(os.fspath(folder))
        shards = sorted(folder.rglob("*.parquet"))
    if isinstance(shards, str | os.PathLike):
        shards = [shards]
    found = [_as_shard(shard, i, directory) for i, shard in enumerate(shards)]
    if not found:
        raise ValueError("there are no shards: give files, Arrow tables or pairs of X and y")
    return found


def _as_shard(shard: Any, number: int, directory: Path) -> Any:
    if isinstance(shard, str | os.PathLike):
        return os.fspath(shard)
    if hasattr(shard, "to_batches") and hasattr(shard, "schema"):
        from pyarrow import ipc

        path = directory / f"table{number}.arrow"
        with ipc.new_file(os.fspath(path), shard.schema) as file:
            file.write_table(shard)
        return os.fspath(path)
    if isinstance(shard, Sequence) and len(shard) in (2, 3):
        return LabelledRows(*shard)
    raise ValueError(
        f"shard {number} is a {type(shard).__name__}: give the name of a data file, an Arrow "
        "table, or rows with their labels as (X, y)"
    )


def store_shard(
    reader: Mapping[str, Any],
    item: tuple[Any, Path],
    count: Callable[[int], None] | None = None,
) -> StoredShard:
    """Write the rows of a shard to disk; this is the task that executors get.

    In this process, ``count`` is told of the rows of each chunk.
    """
    shard, path = item
    writer = StoreWriter(path)
    ids: dict[Any, int] = {}
    mass = np.zeros(0, dtype=ACCUM)
    moments = _Moments()
    least, notes = np.inf, list[str]()
    written = isinstance(shard, str)
    chunks = _file_chunks(shard, reader, notes) if written else _array_chunks(shard)
    for X, labels, weight in chunks:
        rows = as_rows(X)
        y = _numbers(ids, labels)
        mass = np.pad(mass, (0, len(ids) - mass.size))
        mass += np.bincount(y, weights=weight, minlength=mass.size)
        least = min(least, float(weight.min(where=weight > 0.0, initial=np.inf)))
        moments.add(rows)
        writer.append(rows, y, weight)
        if count is not None:
            count(y.size)
    store = writer.store()
    sums, squares = moments.of(store.n_features)
    return StoredShard(store, list(ids), mass, least, sums, squares, written, tuple(notes))


def classes_of(shards: Sequence[StoredShard]) -> tuple[AnyArray, list[IndexArray]]:
    """Return all classes, and of each shard the class of its labels.

    Raises
    ------
    ValueError
        If labels are not all integers or all strings.
    """
    labels = [label for shard in shards for label in shard.labels]
    if all(shard.written for shard in shards):
        values = label_array(labels)
    else:
        check_one_type(labels)
        values = np.asarray(labels)
    check_labels(values)
    classes, inverse = np.unique(values, return_inverse=True)
    ends = np.cumsum([len(shard.labels) for shard in shards])
    return classes, np.split(inverse.astype(INDEX), ends[:-1])


def draw_rows(
    given: tuple[float, np.random.SeedSequence], item: tuple[RowStore, IndexArray, int]
) -> Chunk:
    """Return a random share of the rows of a store, with their classes; a task."""
    (share, seed), (store, class_of, number) = given, item
    entropy = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
    rng = np.random.default_rng(entropy)
    found = []
    for X, y, weight in store:
        rows = np.flatnonzero(rng.random(y.size) < share)
        found.append(Chunk(take_rows(X, rows), class_of[y[rows]], weight[rows]))
    return joined(found)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Return chunks as one; all are sparse or all dense."""
    y = np.concatenate([chunk.y for chunk in chunks])
    weight = np.concatenate([chunk.weight for chunk in chunks])
    sparse = [chunk.X for chunk in chunks if isinstance(chunk.X, CSR)]
    if not sparse:
        dense = [chunk.X for chunk in chunks if not isinstance(chunk.X, CSR)]
        return Chunk(np.concatenate(dense), y, weight)
    sizes = np.concatenate([np.diff(X.indptr) for X in sparse])
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(INDEX)
    indices = np.concatenate([X.indices for X in sparse])
    data = np.concatenate([X.data for X in sparse])
    return Chunk(CSR(indptr, indices, data, max(X.n_features for X in sparse)), y, weight)


# -- reading ---------------------------------------------------------------------------------------


def _file_chunks(
    path: str, reader: Mapping[str, Any], notes: list[str]
) -> Iterator[tuple[Any, Sequence[Any], AccumArray]]:
    with open_examples(path, labels="required", batch_size=_FILE_ROWS, **reader) as examples:
        if examples.layout.has_texts:
            raise ValueError(
                f"{path} has texts: a fit out of core takes rows of features, so make these of "
                "them first, such as with TextFeatures, and write LIBSVM lines"
            )
        for batch in examples:
            assert isinstance(batch, FeatureRows)
            yield _checked(batch.to_csr()), batch.labels, batch.weights
    if examples.n_skipped:
        notes.append(f"{examples.n_skipped:,} lines were left out; {examples.skipped[0]}")


def _array_chunks(rows: LabelledRows) -> Iterator[tuple[Any, Sequence[Any], AccumArray]]:
    X = rows.X.tocsr() if is_sparse(rows.X) else rows.X
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    check_one_type(rows.y)
    y = np.asarray(rows.y)
    check_labels(y)
    n_rows = X.shape[0]
    if y.shape != (n_rows,):
        raise ValueError(f"y must have one label a row ({n_rows}), got {y.shape}")
    weight = as_weights(rows.weight, n_rows)
    n_bytes = 8 * X.nnz if is_sparse(X) else 4 * n_rows * X.shape[1]
    step = max(1, int(n_rows * _CHUNK_BYTES / max(n_bytes, 1)))
    for begin in range(0, n_rows, step):
        part = slice(begin, begin + step)
        yield _checked(X[part]), y[part].tolist(), weight[part]
        _let_go(X)


def _checked(X: Any) -> Any:
    X = check_array(X, accept_sparse="csr", dtype=PARAM)
    check_magnitude(X)
    return X


def _let_go(X: Any) -> None:
    """Let the system take back the pages of a file that is mapped for reading alone."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and getattr(X, "mode", None) == "r" and hasattr(mapped, "madvise"):
        from mmap import MADV_DONTNEED

        mapped.madvise(MADV_DONTNEED)


def _numbers(ids: dict[Any, int], labels: Sequence[Any]) -> IndexArray:
    """Return the number of each label, in the order in which they are first met."""
    return np.array([ids.setdefault(label, len(ids)) for label in labels], dtype=INDEX)


class _Moments:
    """Sums of features and of their squares, of rows whose width may grow."""

    def __init__(self) -> None:
        self._sums = self._squares = np.zeros(0, dtype=ACCUM)

    def add(self, X: Any) -> None:
        if isinstance(X, CSR):
            values = X.data.astype(ACCUM)
            sums = np.bincount(X.indices, values, self._sums.size)
            squares = np.bincount(X.indices, values**2, self._sums.size)
        elif n_rows_of(X):
            sums, squares = X.sum(axis=0, dtype=ACCUM), np.square(X, dtype=ACCUM).sum(axis=0)
        self._sums = _wider(self._sums, sums.size) + sums
        self._squares = _wider(self._squares, squares.size) + squares

    def of(self, n_features: int) -> tuple[AccumArray, AccumArray]:
        return _wider(self._sums, n_features), _wider(self._squares, n_features)


def _wider(values: AccumArray, size: int) -> AccumArray:
    return np.pad(values, (0, max(size - values.size, 0)))

"""Rows on disk: what is written is read again, chunk by chunk or at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from thinleaf.arrays import row_store
from thinleaf.arrays.row_store import StoreWriter, bytes_of, check_room, gathered
from thinleaf.arrays.rows import CSR, as_matrix, as_rows, rows_between


def labelled(n_rows=40, n_features=7, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, n_features)) < 0.4, rng.standard_normal((n_rows, 7)), 0.0)
    return X.astype(np.float32), rng.integers(0, 5, n_rows).astype(np.int32), rng.random(n_rows)


@pytest.mark.parametrize("sparse", [False, True])
def test_read_is_what_was_written(tmp_path, sparse):
    X, y, weight = labelled()
    rows = as_rows(sp.csr_matrix(X) if sparse else X)
    writer = StoreWriter(tmp_path / "rows")
    for begin, end in ((0, 13), (13, 13), (13, 40)):  # views of more rows
        part = rows_between(rows, begin, end)
        writer.append(part, y[begin:end], weight[begin:end])
    store = writer.store()
    assert store.n_rows == 40
    assert store.n_features == (7 if not sparse else rows.n_features)
    assert [chunk.y.size for chunk in store] == [13, 27]
    whole = store.read()
    assert isinstance(whole.X, CSR) == sparse
    found = as_matrix(whole.X)
    assert_array_equal(found.toarray() if sparse else found, X)
    assert_array_equal(whole.y, y)
    assert_array_equal(whole.weight, weight)
    n_entries = rows.data.size if sparse else X.size
    assert store.nbytes == bytes_of(40, n_entries, sparse)
    twice = gathered([store, store])
    assert_array_equal(twice.y, np.concatenate([y, y]))
    store.remove()
    assert not store.path.exists()


def test_sparse_rows_can_be_read_as_dense_ones(tmp_path):
    X, y, weight = labelled()
    writer = StoreWriter(tmp_path / "rows")
    writer.append(as_rows(sp.csr_matrix(X)), y, weight)
    store = replace(writer.store(), as_dense=True)
    assert_array_equal(store.read().X, X)
    assert store.nbytes == bytes_of(40, X.size, sparse=False)


def test_a_store_without_rows_is_empty(tmp_path):
    store = StoreWriter(tmp_path / "rows").store()
    assert store.n_rows == 0
    assert list(store) == []


def test_a_full_disk_is_said_before_it_is_full(tmp_path, monkeypatch):
    class Usage:
        free = 2**20

    monkeypatch.setattr(row_store.shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(OSError, match=r"1 MiB left, too little .* TMPDIR"):
        check_room(tmp_path, 10)

"""Inputs with 2^31 entries and more have wide offsets: here the line is drawn at a few entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.arrays import rows as rows_module
from thinleaf.arrays.rows import as_rows, offset_type, take_rows
from thinleaf.kernels.products import gather


@pytest.fixture
def narrow(monkeypatch):
    """Let 100 entries be too many for int32."""
    monkeypatch.setattr(rows_module, "_FEW_ENTRIES", 100)


def sparse_rows(n_rows=200, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, n_rows)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.2)
    X[np.arange(n_rows), y] += 2.0
    return sp.csr_matrix(X.astype(np.float32)), y


def test_offsets_are_wide_from_two_to_the_31_on():
    assert offset_type(2**31 - 1) is np.int32
    assert offset_type(2**31) is np.int64


def test_rows_and_local_problems_are_as_wide_as_they_need_to_be(narrow):
    X, _ = sparse_rows()
    rows = as_rows(X)
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == np.int32
    few = np.arange(5, dtype=np.int32)
    assert take_rows(rows, few).indptr.dtype == np.int32
    assert gather(rows, few)[0].indptr.dtype == np.int32
    every = np.arange(200, dtype=np.int32)
    local, features = gather(rows, every)
    assert rows.n_features < 16 * X.nnz  # not by sorting
    assert local.indptr.dtype == np.int64
    by_column = sp.csc_matrix(X)[:, features]
    assert_array_equal(local.indptr, by_column.indptr)
    assert_array_equal(local.data, by_column.data)


def test_offsets_that_int32_cannot_hold_are_kept():
    indptr = np.array([0, 2**31 + 5], dtype=np.int64)
    assert indptr.astype(offset_type(int(indptr[-1])))[-1] == 2**31 + 5


@pytest.mark.parametrize(
    "model",
    [
        SoftmaxTreeClassifier(depth=2, max_sweeps=2, random_state=0),
        AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0),
    ],
)
def test_wide_and_narrow_offsets_give_the_same_tree(model, monkeypatch):
    X, y = sparse_rows()
    before = model.fit(X, y).predict_proba(X)
    monkeypatch.setattr(rows_module, "_FEW_ENTRIES", 100)
    wide = X.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    assert_array_equal(model.fit(wide, y).predict_proba(wide), before)


@pytest.mark.parametrize("rows", [[], [3], [7, 2, 150, 9]])
def test_few_entries_are_gathered_by_sorting_as_others_are(rows, monkeypatch):
    X, _ = sparse_rows()
    wide = sp.csr_matrix((X.data, X.indices * 500, X.indptr), shape=(200, 15_000))
    rows = np.array(rows, dtype=np.int32)
    local, features = gather(as_rows(wide), rows)
    if rows.size == 0:
        assert features.size == 0
        assert_array_equal(local.indptr, [0])
        return
    monkeypatch.setattr("thinleaf.kernels.products._FEW_ENTRIES", np.inf)
    other, other_features = gather(as_rows(wide), rows)
    assert_array_equal(features, other_features)
    for a, b in zip(local[:3], other[:3], strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)

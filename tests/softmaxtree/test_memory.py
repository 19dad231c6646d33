"""What a model remembers: the same rows whatever their order and however they came."""

from __future__ import annotations

import numpy as np
import pytest

from tests.strategies import blobs, dense_of
from thinleaf._dtypes import INDEX
from thinleaf.softmaxtree.growth.memory import Memory

KINDS = pytest.mark.parametrize("kind", ["dense", "csr"])


def rows_of(memory: Memory) -> list[tuple[float, ...]]:
    wide = np.column_stack([memory.y, dense_of(memory.X)])
    return sorted(map(tuple, wide.tolist()))


@KINDS
def test_it_keeps_so_many_rows_of_each_class(kind):
    data = blobs(n_rows=90, n_features=4, n_classes=6, seed=0, kind=kind)
    memory = Memory.of(data, 5)
    assert np.bincount(memory.y).tolist() == [5] * 6
    assert memory.total.tolist() == [15.0] * 6
    # they stand for all rows
    np.testing.assert_allclose(np.bincount(memory.data.y, weights=memory.data.weight), 15.0)


@KINDS
def test_rows_that_come_in_parts_are_remembered_as_if_they_came_at_once(kind):
    data = blobs(n_rows=90, n_features=4, n_classes=6, seed=1, kind=kind)
    order = np.random.default_rng(0).permutation(90)
    whole = Memory.of(data, 4)
    parts = Memory.of(data.take(order[:50]), 4).with_rows(data.take(order[50:]))
    assert rows_of(parts) == rows_of(whole)
    assert parts.total.tolist() == whole.total.tolist()


@KINDS
def test_classes_and_features_move(kind):
    data = blobs(n_rows=30, n_features=3, n_classes=3, seed=2, kind=kind)
    memory = Memory.of(data, 2)
    moved = memory.with_classes(np.array([0, -1, 2], INDEX), 4)
    assert np.bincount(moved.y, minlength=4).tolist() == [2, 0, 2, 0]
    assert moved.total.tolist() == [10.0, 0.0, 10.0, 0.0]
    wide = memory.with_features(np.array([0, 2, 3], INDEX), 5)
    np.testing.assert_array_equal(dense_of(wide.X)[:, [0, 2, 3]], dense_of(memory.X))
    assert not dense_of(wide.X)[:, [1, 4]].any()


def test_auto_keeps_all_of_little_and_some_of_much():
    assert Memory.of(blobs(n_rows=90, n_features=4, n_classes=6, seed=0), "auto").n_rows == 90
    rng = np.random.default_rng(0)
    large = blobs(n_rows=60, n_features=4, n_classes=6, seed=0)
    wide = np.repeat(large.X, 50_000 // 4, axis=1) + rng.random(1).astype(np.float32)
    from dataclasses import replace

    assert np.bincount(Memory.of(replace(large, X=wide), "auto").y).tolist() == [4] * 6


@KINDS
def test_arrays_come_back(kind):
    memory = Memory.of(blobs(n_rows=30, n_features=3, n_classes=3, seed=3, kind=kind), 2)
    again = Memory.from_arrays(memory.to_arrays(), 3, 3)
    assert rows_of(again) == rows_of(memory)
    assert again.most == 2


@KINDS
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("y", lambda a: a + 5),
        ("weight", lambda a: -a),
        ("weight", lambda a: a[1:]),
        ("total", lambda a: a * np.nan),
        ("most", lambda a: a * 0),
        ("most", lambda a: a.astype(np.int32)),
        ("indices", lambda a: a[::-1]),
        ("indices", lambda a: a + 100),
        ("indptr", lambda a: a[::-1]),
        ("data", lambda a: a * np.inf),
        ("X", lambda a: a[:, 1:]),
        ("X", lambda a: a * np.nan),
    ],
)
def test_damaged_arrays_are_refused(kind, name, change):
    arrays = Memory.of(
        blobs(n_rows=30, n_features=3, n_classes=3, seed=3, kind=kind), 2
    ).to_arrays()
    if name not in arrays:
        pytest.skip("not of such rows")
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="memory"):
        Memory.from_arrays(arrays | {name: np.ascontiguousarray(change(arrays[name]))}, 3, 3)

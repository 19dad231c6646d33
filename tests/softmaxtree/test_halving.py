"""Halves of points: as many on either side, and the same for sparse points as for dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from thinleaf.softmaxtree.growth import halving
from thinleaf.softmaxtree.growth.halving import halve, used_columns


def some_points(n_points: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = np.where(rng.random((n_points, 30)) < 0.2, rng.random((n_points, 30)), 0.0)
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)


@given(st.integers(1, 40), st.integers(0, 2**16))
def test_halves_differ_by_one_at_most(n_points, seed):
    right = halve(some_points(n_points, seed), np.random.default_rng(seed))
    assert right.sum() == n_points // 2


@pytest.mark.parametrize("seed", range(5))
def test_sparse_points_are_halved_as_dense_ones(seed):
    points = some_points(60, seed)
    halves = [
        halve(given, np.random.default_rng(seed)) for given in (points, sp.csr_matrix(points))
    ]
    np.testing.assert_array_equal(*halves)


def test_two_groups_are_told_apart():
    points = np.repeat(np.eye(2), 10, axis=0)
    right = halve(sp.csr_matrix(points), np.random.default_rng(0))
    assert right[0] != right[-1]
    assert len(set(right[:10])) == len(set(right[10:])) == 1


def test_sums_and_products_are_those_of_scipy():
    points = sp.csr_matrix(some_points(50, 0))
    which = np.arange(50) % 3 == 0
    np.testing.assert_array_equal(halving._sum(points, which), points.T @ which.astype(float))
    axis = np.random.default_rng(0).standard_normal(30)
    np.testing.assert_array_equal(halving._project(points, axis), points @ axis)


def test_columns_without_a_value_go():
    points = sp.csr_matrix(some_points(3, 0))
    used = used_columns(points)
    kept = np.unique(points.indices)
    np.testing.assert_array_equal(used.toarray(), points.toarray()[:, kept])

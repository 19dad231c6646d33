"""Tops, parts and how they are joined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from thinleaf.arrays.rows import as_rows
from thinleaf.execution import SerialExecutor
from thinleaf.model.probability import Backoff
from thinleaf.model.routing import leaf_of_rows, route
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.parts.join import Branch, join, with_classes
from thinleaf.softmaxtree.parts.partition import (
    MOST_GUESTS,
    guest_floor,
    held_weight,
    part_rows,
    rows_of_parts,
    unseen_rows,
)
from thinleaf.softmaxtree.parts.top import cut, depth_for, top_tree
from thinleaf.softmaxtree.tao import Settings, TrainingData

SEED = np.random.SeedSequence(0)


def grouped(n_rows=600, n_classes=16, seed=0) -> TrainingData:
    """Return sparse rows whose classes stand in groups of four."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows).astype(np.int32)
    X = (rng.random((n_rows, 40)) < 0.05).astype(np.float32)
    X[np.arange(n_rows), y] = 1.0
    X[np.arange(n_rows), 20 + y // 4] = 2.0
    return TrainingData(as_rows(sp.csr_matrix(X)), y, np.ones(n_rows), n_classes)


def settings_of(data, limits):
    penalty = Penalty(ridge=0.1)
    return Settings(Objective("constant", 10.0, penalty, penalty), limits)


@pytest.fixture(scope="module")
def data():
    return grouped()


@pytest.fixture(scope="module")
def top(data):
    return top_tree(data, 2, "balanced_clusters", settings_of, SEED, SerialExecutor())


def test_depth_is_enough_for_parts_to_fit():
    assert [depth_for(n, 10.0) for n in (1.0, 10.0, 20.0, 21.0, 80.0)] == [1, 1, 1, 2, 3]


def test_a_top_keeps_classes_together(data, top):
    assert top.n_leaves == 2  # below, parts have samples of their own
    leaf = leaf_of_rows(top, route(top, data.X))
    shares = [np.bincount(leaf[data.y == c]).max() / np.sum(data.y == c) for c in range(16)]
    assert min(shares) > 0.9
    top.validate()


def test_a_top_of_dense_rows_is_cut_from_a_tree():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 400).astype(np.int32)
    X = (rng.standard_normal((400, 4)) + 4 * rng.standard_normal((6, 4))[y]).astype(np.float32)
    data = TrainingData(X, y, np.ones(400), 6)
    top = top_tree(data, 1, "pca_median", settings_of, SEED, SerialExecutor())
    assert top.depth == 1
    whole = initial_tree(data, 3, "pca_median", SEED).tree
    shallow = cut(whole, 2)
    shallow.validate()
    assert (shallow.depth, shallow.n_leaves) == (2, 4)
    at_cut = route(whole, X).sizes[np.flatnonzero(whole.node_depth == 2)]
    assert_array_equal(route(shallow, X).sizes[shallow.is_leaf], at_cut)


def test_parts_have_all_rows_once_and_guests_beside(data, top):
    alone = [rows for _, rows in rows_of_parts(top, data.X, None)]
    assert_array_equal(np.sort(np.concatenate(alone)), np.arange(data.n_rows))
    floor = guest_floor(top, data.X, 0.001)
    n_rows = 0
    for leaf, rows in rows_of_parts(top, data.X, floor):
        part = data.take(rows)
        found = part_rows(top, part.X, leaf, floor, np.zeros(rows.size, dtype=bool))
        own = leaf_of_rows(top, route(top, part.X)) == leaf
        assert_array_equal(found.own, own)
        assert found.share.min() >= floor
        n_rows += rows.size
    assert n_rows <= (1 + MOST_GUESTS) * data.n_rows + 1


def test_unseen_rows_are_told_by_the_rows_themselves(data):
    unseen = unseen_rows(data.X, 0.2, SEED)
    assert 0.1 < unseen.mean() < 0.3
    some = np.arange(0, data.n_rows, 3)
    assert_array_equal(unseen_rows(data.take(some).X, 0.2, SEED), unseen[some])
    assert not unseen_rows(data.X, None, SEED).any()


def test_own_rows_that_the_top_has_not_seen_judge(data, top):
    leaf, rows = next(rows_of_parts(top, data.X, None))
    part = data.take(rows)
    unseen = np.arange(rows.size) % 3 == 0
    found = part_rows(top, part.X, leaf, None, unseen)
    assert_array_equal(held_weight(part, found, 0.2), np.where(unseen, 1.0, 0.0))
    twice = replace(part, weight=np.where(np.arange(rows.size) % 2, 1.0, 2.0))
    assert_allclose(held_weight(twice, found, 0.2)[::2][twice.weight[::2] == 2.0].min(), 0.4)


def test_joined_branches_route_and_count_as_they_did(data, top, tmp_path):
    branches, leaves = [], np.flatnonzero(top.is_leaf)
    n_classes = data.n_classes
    for leaf, rows in rows_of_parts(top, data.X, None):
        part = data.take(rows)
        classes = np.unique(part.y)
        stump = initial_tree(part, 1, "pca_median", SEED).tree
        local = [Leaf.constant(0), Leaf.constant(min(1, classes.size - 1))]
        stump = stump.replace(dict(zip(np.flatnonzero(stump.is_leaf).tolist(), local, strict=True)))
        tree = with_classes(replace(stump, n_classes=classes.size), classes, n_classes)
        branch = Branch.of(tree, part)
        branch.write(tmp_path / str(leaf))
        branches.append(Branch.read(tmp_path / str(leaf)))
    assert len(branches) == leaves.size
    mass = np.bincount(data.y, minlength=n_classes).astype(float)
    whole = join(top, branches, mass)
    whole.tree.validate()
    whole.backoff.validate(whole.tree)
    reach = route(whole.tree, data.X)
    assert_array_equal(whole.weight, reach.sizes)
    expected = Backoff.estimate(whole.tree, reach, data.y, data.weight)
    for name in ("mass", "ptr", "ids", "counts", "prior"):
        assert_allclose(getattr(whole.backoff, name), getattr(expected, name))
    assert isinstance(whole.tree, Tree)

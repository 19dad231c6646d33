"""Initial trees: valid, repeatable, and split the way that each init promises."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.strategies import FORMATS, as_rows, blobs, dense_of
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.routing import leaf_of_rows, reach_of_assignment, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.initial_tree import (
    Init,
    from_routers,
    initial_tree,
    merge_order,
)
from thinleaf.softmaxtree.tao import TrainingData
from thinleaf.softmaxtree.tao.units import feature_spread

AXIS = ("axis_splits", "random_axis_splits")  # of dense rows
INITS = tuple(init for init in get_args(Init) if init not in AXIS)
CLUSTERS = tuple(init for init in INITS if init.endswith("clusters"))
ROUTERS = tuple(init for init in INITS if init not in CLUSTERS)
OF_CLASSES = tuple(init for init in CLUSTERS if init != "row_clusters")

formats = pytest.mark.parametrize("kind", FORMATS)
inits = pytest.mark.parametrize("init", INITS)


def degenerate(test):
    """Mark a test on data that k-means may warn of, but that must not divide by zero."""
    quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    return quiet(pytest.mark.filterwarnings("error::RuntimeWarning")(test))


def seed(value: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(value)


# -- all of them -----------------------------------------------------------------------------------


@formats
@inits
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_an_initial_tree_is_complete_and_valid(kind, init, depth):
    data = blobs(0, kind=kind)
    first = initial_tree(data, depth, init, seed())
    first.tree.validate()
    assert (first.tree.n_leaves, first.tree.depth) == (2**depth, depth)
    assert (first.tree.n_features, first.tree.n_classes) == (5, 6)
    assert first.assignment.dtype == INDEX
    assert first.assignment.shape == (data.n_rows,)
    assert np.all(first.tree.is_leaf[first.assignment])
    if init not in CLUSTERS:  # its routers say where rows go
        routed = leaf_of_rows(first.tree, route(first.tree, data.X))
        np.testing.assert_array_equal(first.assignment, routed)


@formats
@inits
def test_a_seed_gives_one_tree_and_the_data_stay(kind, init):
    data = blobs(1, kind=kind)
    before = dense_of(data.X).copy()
    state = seed(3)
    a, b = (initial_tree(data, 3, init, state) for _ in range(2))  # drawing leaves no trace
    c = initial_tree(data, 3, init, seed(3))
    for other in (b, c):
        for name in ("router_idx", "router_val", "bias", "class_ids"):
            np.testing.assert_array_equal(getattr(a.tree, name), getattr(other.tree, name))
        np.testing.assert_array_equal(a.assignment, other.assignment)
    np.testing.assert_array_equal(dense_of(data.X), before)


@pytest.mark.parametrize("init", ["random", "random_median"])
def test_another_seed_gives_another_tree(init):
    data = blobs(2)
    a, b = (initial_tree(data, 3, init, seed(s)).tree for s in (0, 1))
    assert not np.array_equal(a.router_val, b.router_val)


@inits
def test_leaves_start_with_the_class_of_most_weight(init):
    data = blobs(3)
    weight = np.where(data.y == 4, 5.0, 1.0)
    tree = initial_tree(replace(data, weight=weight), 2, init, seed()).tree
    assert all(tree.leaf(leaf).classes.tolist() == [4] for leaf in np.flatnonzero(tree.is_leaf))


@formats
@inits
@pytest.mark.parametrize(
    ("n_rows", "n_classes"), [(1, 1), (2, 1), (3, 3), (20, 2)], ids=lambda v: str(v)
)
def test_fewer_rows_or_classes_than_leaves(kind, init, n_rows, n_classes):
    data = blobs(4, n_rows=n_rows, n_classes=n_classes, kind=kind)
    first = initial_tree(data, 3, init, seed())
    first.tree.validate()
    assert np.all(first.tree.is_leaf[first.assignment])


@formats
@inits
@degenerate
def test_equal_rows(kind, init):
    X = np.ones((12, 3))
    data = TrainingData(as_rows(X, kind), np.arange(12, dtype=INDEX) % 4, np.ones(12), 4)
    initial_tree(data, 2, init, seed()).tree.validate()


@formats
@inits
@degenerate
def test_rows_of_zeros(kind, init):
    X = np.zeros((12, 3))
    data = TrainingData(as_rows(X, kind), np.arange(12, dtype=INDEX) % 4, np.ones(12), 4)
    initial_tree(data, 2, init, seed()).tree.validate()


@formats
@inits
def test_classes_without_rows(kind, init):
    data = replace(blobs(5, kind=kind), n_classes=20)
    first = initial_tree(data, 3, init, seed())
    first.tree.validate()
    assert first.tree.n_classes == 20


@formats
@inits
def test_rows_without_weight(kind, init):
    data = blobs(6, kind=kind)
    weight = np.where(data.y == 2, 0.0, 1.0)  # a class without weight, too
    first = initial_tree(replace(data, weight=weight), 2, init, seed())
    first.tree.validate()
    assert np.all(first.tree.is_leaf[first.assignment])


@formats
@inits
@degenerate
def test_few_rows_with_weight(kind, init):
    """Deep down, some nodes are reached by rows without weight alone."""
    data = blobs(6, kind=kind, n_rows=60)
    weight = np.where(np.arange(60) < 5, 1.0, 0.0)
    initial_tree(replace(data, weight=weight), 5, init, seed()).tree.validate()


@formats
@pytest.mark.parametrize("init", ROUTERS)
def test_rows_without_weight_do_not_move_the_routers_above_them(kind, init):
    data = blobs(6, kind=kind, n_rows=60)
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    some = data.take(np.arange(40))
    a = initial_tree(replace(data, weight=weight), 1, init, seed()).tree
    b = initial_tree(some, 1, init, seed()).tree
    np.testing.assert_allclose(a.router(0).weights, b.router(0).weights, atol=1e-4)
    sides = [[reference.side(tree.router(0), x) for x in dense_of(some.X)] for tree in (a, b)]
    assert np.mean(np.array(sides[0]) != np.array(sides[1])) <= 1 / 40


@formats
@pytest.mark.parametrize("init", ["random_median", "pca_median"])
def test_medians_halve_the_weight(kind, init):
    data = blobs(9, kind="dense", n_rows=60, weighted=True)
    data = replace(data, X=as_rows(dense_of(data.X), kind))
    tree = initial_tree(data, 2, init, seed()).tree
    reach = route(tree, data.X)
    for left, right in tree.children[~tree.is_leaf]:
        masses = [data.weight[reach.of(child)].sum() for child in (left, right)]
        assert abs(masses[0] - masses[1]) <= 2 * data.weight.max()


def test_an_unknown_init_is_rejected():
    with pytest.raises(ValueError, match="init"):
        initial_tree(blobs(7), 2, "magic", seed())


# -- hyperplanes -----------------------------------------------------------------------------------


def test_random_routers_have_unit_length_and_no_bias():
    tree = initial_tree(blobs(8), 3, "random", seed()).tree
    for node in np.flatnonzero(~tree.is_leaf):
        router = tree.router(node)
        assert np.linalg.norm(router.weights) == pytest.approx(1.0, abs=1e-6)
        assert router.bias == 0.0


@formats
@pytest.mark.parametrize("init", ["random_median", "pca_median"])
@pytest.mark.parametrize("n_rows", [64, 75])
def test_medians_halve_every_reach_set(kind, init, n_rows):
    data = blobs(9, kind="dense", n_rows=n_rows)
    data = replace(data, X=as_rows(dense_of(data.X), kind))
    tree = initial_tree(data, 4, init, seed()).tree
    reach = route(tree, data.X)
    for left, right in tree.children[~tree.is_leaf]:
        assert abs(int(reach.sizes[left]) - int(reach.sizes[right])) <= 1


@formats
def test_the_principal_direction_is_that_of_an_eigendecomposition(kind):
    rng = np.random.default_rng(10)
    X = rng.standard_normal((200, 4)) * [0.5, 3.0, 0.7, 0.2] + 5.0
    data = TrainingData(as_rows(X, kind), np.zeros(200, INDEX), np.ones(200), 1)
    router = initial_tree(data, 1, "pca_median", seed()).tree.router(0)
    weights = np.zeros(4)
    weights[router.features] = router.weights
    _, vectors = np.linalg.eigh(np.cov(X.T))
    cosine = abs(weights @ vectors[:, -1]) / np.linalg.norm(weights)
    assert cosine == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("init", ["random_median", "pca_median"])
def test_medians_in_units_of_the_features_do_not_depend_on_their_scale(init):
    data = blobs(11, kind="dense", n_rows=80, n_classes=4)
    factors = 2.0 ** np.random.default_rng(0).integers(-9, 10, data.X.shape[1])
    scaled = replace(data, X=as_rows(dense_of(data.X) * factors, "dense"))
    assigned = [
        initial_tree(each, 3, init, seed(), feature_spread(each.X)).assignment
        for each in (data, scaled)
    ]
    assert np.mean(assigned[0] != assigned[1]) < 0.05
    assert np.mean(initial_tree(scaled, 3, init, seed()).assignment != assigned[0]) > 0.05


# -- clusters --------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("init", OF_CLASSES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_class_is_in_one_leaf(kind, init, depth):
    data = blobs(11, kind=kind, n_classes=9)
    assignment = initial_tree(data, depth, init, seed()).assignment
    for label in range(9):
        assert np.unique(assignment[data.y == label]).size == 1


@formats
def test_balanced_clusters_hold_the_same_number_of_classes(kind):
    for n_classes in (8, 13):
        data = blobs(12, kind=kind, n_classes=n_classes, n_rows=130)
        first = initial_tree(data, 2, "balanced_clusters", seed())
        reach = reach_of_assignment(first.tree, first.assignment)
        leaves = np.flatnonzero(first.tree.is_leaf)
        sizes = [np.unique(data.y[reach.of(leaf)]).size for leaf in leaves]
        assert max(sizes) - min(sizes) <= 1


def far_groups(kind: str) -> TrainingData:
    """Return 8 tight classes: pairs near each other, pairs of pairs less so, and so on."""
    rng = np.random.default_rng(13)
    centres = np.array([[a, b, c] for a in (0, 100) for b in (0, 10) for c in (0, 1)], float) + 1.0
    y = np.arange(80, dtype=INDEX) % 8
    X = centres[y] + 0.01 * rng.standard_normal((80, 3))
    return TrainingData(as_rows(X, kind), y, np.ones(80), 8)


@formats
@pytest.mark.parametrize("init", ["class_clusters", "row_clusters"])
def test_near_clusters_are_near_in_the_tree(kind, init):
    data = far_groups(kind)
    first = initial_tree(data, 3, init, seed())
    leaf_of_class = [np.unique(first.assignment[data.y == label]) for label in range(8)]
    assert all(leaves.size == 1 for leaves in leaf_of_class)
    leaves = np.array([leaf[0] for leaf in leaf_of_class])
    assert np.unique(leaves).size == 8
    rank = leaves - leaves.min()
    for group in (2, 4):  # siblings, then cousins: the binary digits of the class say which
        for start in range(0, 8, group):
            assert np.unique(rank[start : start + group] // group).size == 1


@given(
    value=st.integers(0, 2**32 - 1),
    depth=st.integers(0, 4),
    n_features=st.integers(1, 5),
    offset=st.sampled_from([0.0, 100.0]),
)
def test_merge_order_is_algorithm_2(value, depth, n_features, offset):
    rng = np.random.default_rng(value)
    means = rng.standard_normal((2**depth, n_features)) + offset
    mass = rng.uniform(0.5, 5.0, 2**depth)
    leaf = merge_order(means, mass)
    assert sorted(leaf.tolist()) == list(range(2**depth))
    assert leaf.tolist() == reference.merge_order(means, mass)


def test_merging_far_from_the_origin():
    """Where the clusters lie does not matter, only how far apart they are."""
    rng = np.random.default_rng(14)
    means, mass = rng.standard_normal((16, 3)), np.ones(16)
    shifted = merge_order(means + 1e4, mass)
    assert shifted.tolist() == merge_order(means, mass).tolist()


def test_merging_clusters_without_mass():
    means, mass = np.zeros((4, 2)), np.array([1.0, 0.0, 0.0, 0.0])
    assert sorted(merge_order(means, mass).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", FORMATS)
def test_very_many_classes_are_halved_by_a_sample(kind, monkeypatch):
    monkeypatch.setattr("thinleaf.softmaxtree.growth.halving._MANY_POINTS", 20)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 2)
    X = rng.random((200, 12)) * 0.1
    X[np.arange(200), y // 50] += 3.0
    data = TrainingData(as_rows(X, kind), y.astype(INDEX), np.ones(200), 100)
    start = initial_tree(data, 1, "balanced_clusters", seed())
    assert len({*start.assignment[:100]}) == len({*start.assignment[100:]}) == 1
    assert start.assignment[0] != start.assignment[-1]


# -- splits by one feature -------------------------------------------------------------------------


def corners(n_rows: int = 600, n_features: int = 5) -> TrainingData:
    """Return rows whose class says which of three features are above a value of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(PARAM)
    y = (X[:, 1] > 0.3) * 4 + (X[:, 3] > -0.5) * 2 + (X[:, 4] > 0.1)
    return TrainingData(X, y.astype(INDEX), np.ones(n_rows), 8)


@pytest.mark.parametrize("init", AXIS)
def test_splits_by_one_feature_are_valid_and_repeatable(init):
    data = corners()
    first, again = (initial_tree(data, 3, init, seed(5)) for _ in range(2))
    first.tree.validate()
    assert (first.tree.n_leaves, first.tree.depth) == (8, 3)
    np.testing.assert_array_equal(first.assignment, again.assignment)
    routers = [first.tree.router(node) for node in np.flatnonzero(~first.tree.is_leaf).tolist()]
    assert all(router.features.size == 1 for router in routers)
    routed = leaf_of_rows(first.tree, route(first.tree, data.X))
    np.testing.assert_array_equal(first.assignment, routed)


def test_they_find_what_the_classes_are_about():
    data = corners()
    first = initial_tree(data, 3, "axis_splits", seed())
    used = {int(first.tree.router(n).features[0]) for n in np.flatnonzero(~first.tree.is_leaf)}
    assert used == {1, 3, 4}
    for leaf in np.flatnonzero(first.tree.is_leaf):
        rows = data.y[first.assignment == leaf]
        assert np.bincount(rows).max() >= 0.9 * rows.size


@pytest.mark.parametrize("init", AXIS)
def test_a_node_of_one_class_is_not_split(init):
    data = replace(corners(), y=np.zeros(600, dtype=INDEX))
    first = initial_tree(data, 2, init, seed())
    assert np.unique(first.assignment).size == 1


@pytest.mark.parametrize("init", AXIS)
def test_sparse_rows_have_no_such_splits(init):
    with pytest.raises(ValueError, match="dense rows"):
        initial_tree(blobs(0, kind="csr"), 2, init, seed())


def test_given_routers_lead_rows_as_before_and_small_nodes_are_leaves():
    x = np.arange(40, dtype=np.float32)[:, None]
    y = np.arange(40, dtype=np.int32) // 10

    def over(threshold: float) -> Router:
        return Router(np.zeros(1, np.int32), np.ones(1, np.float32), -threshold)

    leaf = (-1, -1)
    children = [(1, 2), (3, 4), (5, 6), leaf, leaf, leaf, (7, 8), leaf, leaf]
    thresholds = {0: 9.5, 1: 4.5, 2: -1.0, 6: 19.5}
    nodes = [
        over(thresholds[node]) if node in thresholds else Leaf.constant(0) for node in range(9)
    ]
    given = Tree.build(np.array(children), nodes, n_features=1, n_classes=4)
    start = from_routers(given, TrainingData(x, y, np.ones(40), 4), 20)
    # the left half of ten rows is a leaf; the node that sends all rows to one side is gone
    assert start.tree.n_leaves == 3
    _, first = np.unique(start.assignment, return_index=True)
    assert sorted(first) == [0, 10, 20]

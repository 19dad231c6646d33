"""Probabilities over all classes from leaves that hold a few: back-off, ε, and ragged softmax."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import as_rows, random_tree, trees_and_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.probability import Backoff, Outside, mean_log_loss, smoothed, tune_epsilon
from thinleaf.model.routing import route
from thinleaf.model.tree import Leaf, Tree

# -- the back-off ----------------------------------------------------------------------------------


def estimated(tree: Tree, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None):
    weight = np.ones(y.size) if weight is None else weight
    return Backoff.estimate(tree, route(tree, as_rows(X, "dense")), y, weight)


def single_leaf(held: int, n_classes: int) -> Tree:
    """Return a tree of one leaf with the first classes, all scores equal."""
    leaf = Leaf(
        np.arange(held, dtype=INDEX), np.empty(0, INDEX), np.empty((0, held), PARAM),
        np.zeros(held, PARAM),
    )  # fmt: skip
    return Tree.build(np.array([[-1, -1]]), [leaf], n_features=1, n_classes=n_classes)


def mass_of(labels: np.ndarray, held: int = 5, n_classes: int = 20) -> float:
    y = np.asarray(labels, dtype=INDEX)
    return float(estimated(single_leaf(held, n_classes), np.zeros((y.size, 1)), y).mass[0])


@given(case=trees_and_rows())
def test_masses_lie_between_zero_and_one(case):
    tree, X, y = case
    backoff = estimated(tree, X, y)
    for node in range(tree.n_nodes):
        full = not tree.is_leaf[node] or tree.leaf(node).classes.size == tree.n_classes
        assert backoff.mass[node] == 0.0 if full else 0.0 < backoff.mass[node] < 1.0


@given(case=trees_and_rows())
def test_the_distribution_is_over_the_classes_outside(case):
    tree, X, y = case
    backoff = estimated(tree, X, y)
    assert backoff.prior.sum() == pytest.approx(1.0)
    assert np.all(backoff.prior > 0.0)
    for node in np.flatnonzero(tree.is_leaf).tolist():
        q = backoff.distribution(tree, node)
        inside = np.isin(np.arange(tree.n_classes), tree.leaf(node).classes)
        assert np.all(q[inside] == 0.0)
        assert np.all(q[~inside] > 0.0)
        assert q.sum() == pytest.approx(0.0 if inside.all() else 1.0)
        np.testing.assert_array_equal(q, backoff.distribution(tree, node))


@given(case=trees_and_rows(), scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_the_top_of_a_leaf_stays_the_top_of_all(case, scale):
    """Even if the leaf cannot tell its classes apart."""
    tree, X, y = case
    backoff = estimated(tree, X, y).capped(tree, scale)
    for node in np.flatnonzero(tree.is_leaf).tolist():
        share = (1.0 - backoff.mass[node]) / tree.leaf(node).classes.size
        assert np.all(backoff.mass[node] * backoff.distribution(tree, node) < share)


def test_the_cap_binds_where_one_outside_class_would_win():
    """Nine of ten rows have one class that the leaf of five lacks."""
    y = np.repeat([0, 1, 2, 3, 4, 5], [2, 2, 2, 2, 2, 90])
    m = mass_of(y, held=5, n_classes=6)
    assert 0.15 < m < (1.0 - m) / 5.0


@pytest.mark.parametrize("held", [1, 5, 15])
def test_a_larger_share_outside_gives_a_larger_mass(held):
    masses = []
    for n_outside in range(0, 101, 5):
        inside = np.arange(200 - n_outside) % held
        outside = held + np.arange(n_outside) % (20 - held)
        masses.append(mass_of(np.concatenate([inside, outside]), held))
    assert np.all(np.diff(masses) >= -1e-12)
    assert masses[0] < 0.01
    assert masses[1] < masses[2] < masses[4]


def test_the_mass_is_the_share_outside_with_a_little_doubt():
    y = np.concatenate([np.arange(180) % 5, 5 + np.arange(20) % 15])
    assert mass_of(y) == pytest.approx(20.5 / 201.0)


def test_a_class_seen_once_counts_as_one_that_might_not_have_been():
    seen_often = np.arange(100) % 4
    assert mass_of(np.append(seen_often, 4)) > mass_of(np.append(seen_often, [4, 4]))


def test_more_rows_leave_less_doubt():
    assert mass_of(np.arange(50) % 5) > mass_of(np.arange(500) % 5) > 0.0


def test_what_was_seen_outside_is_likelier_than_what_was_not():
    y = np.concatenate([np.arange(100) % 5, [7, 7, 7, 9]]).astype(INDEX)
    tree = single_leaf(5, 20)
    q = estimated(tree, np.zeros((y.size, 1)), y).distribution(tree, 0)
    assert q.argmax() == 7
    assert q[7] > q[9] > q[10] == q[19]


@given(case=trees_and_rows(), seed=st.integers(0, 2**32 - 1))
def test_weights_are_repetition(case, seed):
    tree, X, y = case
    times = np.random.default_rng(seed).integers(0, 4, size=y.size)
    times[:1] = 1  # the smallest weight is what counts as one row
    many = np.repeat(np.arange(y.size), times)
    used = np.flatnonzero(times)
    weighted = estimated(tree, X[used], y[used], times[used].astype(float))
    repeated = estimated(tree, X[many], y[many])
    np.testing.assert_allclose(weighted.mass, repeated.mass)
    np.testing.assert_array_equal(weighted.ids, repeated.ids)
    np.testing.assert_array_equal(weighted.counts, repeated.counts)
    np.testing.assert_allclose(weighted.prior, repeated.prior)


def test_the_unit_of_weights_does_not_matter():
    tree = random_tree(np.random.default_rng(0), n_leaves=8, pure=0.0)
    X = np.random.default_rng(1).standard_normal((200, 5))
    y = np.random.default_rng(2).integers(6, size=200).astype(INDEX)
    weight = np.random.default_rng(3).integers(1, 4, size=200).astype(float)
    one, small = estimated(tree, X, y, weight), estimated(tree, X, y, weight / 1024)
    np.testing.assert_array_equal(one.mass, small.mass)
    np.testing.assert_array_equal(one.prior, small.prior)


def test_scaling_the_masses():
    tree = random_tree(np.random.default_rng(0), n_leaves=8, pure=0.0)
    X = np.random.default_rng(1).standard_normal((200, 5))
    y = np.random.default_rng(2).integers(6, size=200).astype(INDEX)
    backoff = estimated(tree, X, y)
    half, double = backoff.capped(tree, 0.5), backoff.capped(tree, 2.0)
    np.testing.assert_allclose(half.mass, 0.5 * backoff.mass)
    assert np.all(double.mass >= backoff.mass)
    assert np.all(double.mass <= 2.0 * backoff.mass)
    np.testing.assert_array_equal(backoff.capped(tree).mass, backoff.mass)


# -- over all classes ------------------------------------------------------------------------------


@given(case=trees_and_rows(), epsilon=st.sampled_from([0.0, 1e-9, 0.1, 2.0]))
def test_inside_and_outside_sum_to_one(case, epsilon):
    tree, X, y = case
    backoff = estimated(tree, X, y)
    for way in (None, backoff):
        part = Outside.of(tree, way, epsilon)
        assert np.all(np.diff(part.prior[part.rank]) <= 0.0)
        for node in np.flatnonzero(tree.is_leaf):
            q = part.prior.copy()
            at = slice(part.ptr[node], part.ptr[node + 1])
            q[part.ids[at]] += part.extra[at]
            q[tree.leaf(node).classes] = 0.0
            assert part.inside[node] > 0.0
            assert part.inside[node] + part.outside[node] * q.sum() == pytest.approx(1.0)
            if way is not None:
                expected = backoff.mass[node] * backoff.distribution(tree, node)
                np.testing.assert_allclose(part.outside[node] * q, expected, atol=1e-15)


def test_each_absent_class_gets_epsilon_before_renormalising():
    part = Outside.of(single_leaf(2, 5), None, 0.1)
    assert part.outside[0] == pytest.approx(0.1 / 1.3)
    assert part.inside[0] == pytest.approx(1.0 / 1.3)


# -- ε ---------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), zero=st.sampled_from([0.0, 0.1, 0.5, 0.95]))
def test_no_epsilon_of_a_grid_is_better(seed, zero):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 1.0, size=60)
    p[rng.random(60) < zero] = 0.0
    absent = rng.integers(1, 50, size=60).astype(float)
    chosen = tune_epsilon(p, absent)
    assert 1e-12 <= chosen <= 1.0
    least = mean_log_loss(smoothed(p, absent, chosen))
    for epsilon in np.geomspace(1e-12, 1.0, 241):
        assert least <= mean_log_loss(smoothed(p, absent, epsilon)) + 1e-12


@pytest.mark.parametrize("n_zero", [1, 10, 50])
def test_the_best_epsilon_is_known_if_leaves_are_alike(n_zero):
    """With m absent classes in each leaf: a / (m·(n - a)) for a of n rows that are not covered."""
    p = np.linspace(0.1, 1.0, 100)
    p[:n_zero] = 0.0
    expected = n_zero / (30.0 * (100.0 - n_zero))
    assert tune_epsilon(p, np.full(100, 30.0)) == pytest.approx(expected, rel=0.08)


def test_without_zeros_epsilon_is_as_small_as_can_be():
    assert tune_epsilon(np.full(10, 0.5), np.full(10, 3.0)) == pytest.approx(1e-12)


def test_smoothed_probabilities():
    p = smoothed(np.array([0.5, 0.0, 1.0]), np.array([4.0, 4.0, 0.0]), 0.1)
    np.testing.assert_allclose(p, [0.5 / 1.4, 0.1 / 1.4, 1.0])
    assert mean_log_loss(np.array([1.0, np.exp(-2.0)])) == pytest.approx(1.0)

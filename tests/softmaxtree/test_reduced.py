"""Reduced problems against brute force: child losses, care sets, and what solvers get from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests import reference
from tests.strategies import FORMATS, as_rows, dense_of, random_leaf, random_router, trees_and_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.execution import SerialExecutor
from thinleaf.model.routing import reach_of_assignment, route
from thinleaf.model.tree import Router
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.problem import NodeSolution
from thinleaf.softmaxtree.tao.reduced import (
    ChildLosses,
    TrainingData,
    as_leaf,
    as_router,
    canonical,
    care_set,
    child_losses,
    leaf_problem,
    router_problem,
    top_classes,
    warm_leaf,
    warm_router,
)

MODES = ("drop", "constant", "zero_one")

seeds = st.integers(0, 2**32 - 1)
modes = pytest.mark.parametrize("absent", MODES)
formats = pytest.mark.parametrize("kind", FORMATS)

# -- training data ---------------------------------------------------------------------------------


def repeating(seed: int, kind: str) -> TrainingData:
    """Return rows with few values, so that many are equal, with weights of any kind."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(0, 25))
    X = rng.integers(0, 2, size=(n_rows, 2)).astype(PARAM)
    weight = rng.choice([0.1, 0.2, 0.3, 0.7, 1.0], size=n_rows)
    return TrainingData(as_rows(X, kind), rng.integers(0, 2, n_rows).astype(INDEX), weight, 2)


def masses(data: TrainingData) -> dict[tuple, float]:
    """Return the weight of each pair of row and class."""
    out: Counter = Counter()
    for x, label, w in zip(dense_of(data.X), data.y, data.weight, strict=True):
        out[*x.tolist(), int(label)] += float(w)
    return out


@formats
@given(seed=seeds)
def test_canonical_data_hold_each_row_once_with_its_weight(kind, seed):
    data = repeating(seed, kind)
    merged = canonical(data)
    assert masses(merged) == pytest.approx(masses(data))
    assert merged.n_rows == len(masses(data))
    assert merged.n_classes == data.n_classes


@formats
@given(seed=seeds)
def test_canonical_data_do_not_depend_on_the_order_of_rows(kind, seed):
    data = repeating(seed, kind)
    shuffled = data.take(np.random.default_rng(seed).permutation(data.n_rows))
    a, b = canonical(data), canonical(shuffled)
    np.testing.assert_array_equal(dense_of(a.X), dense_of(b.X))
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.weight, b.weight)


@given(seed=seeds)
def test_canonical_data_do_not_depend_on_storage(seed):
    a, b = (canonical(repeating(seed, kind)) for kind in FORMATS)
    np.testing.assert_array_equal(dense_of(a.X), dense_of(b.X))
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.weight, b.weight)


@formats
@given(seed=seeds)
def test_repeating_a_row_is_weighting_it(kind, seed):
    data = repeating(seed, kind)
    count = np.random.default_rng(seed).integers(1, 4, size=data.n_rows)
    once = replace(data, weight=np.ones(data.n_rows))
    a = canonical(once.take(np.repeat(np.arange(data.n_rows), count)))
    b = canonical(replace(data, weight=count.astype(float)))
    np.testing.assert_array_equal(dense_of(a.X), dense_of(b.X))
    np.testing.assert_array_equal(a.weight, b.weight)


# -- child losses ----------------------------------------------------------------------------------


@formats
@modes
@given(case=trees_and_rows(), seed=seeds)
def test_child_losses_equal_both_subtrees_evaluated(kind, absent, case, seed):
    tree, X, y = case
    objective = Objective(absent=absent, beta=3.0)
    data = TrainingData(as_rows(X, kind), y, np.ones(len(X)), tree.n_classes)
    reach = route(tree, data.X)
    if seed % 2:  # rows may also be assigned to leaves that routers do not send them to
        rng = np.random.default_rng(seed)
        leaves = rng.choice(np.flatnonzero(tree.is_leaf), size=len(X)).astype(INDEX)
        reach = reach_of_assignment(tree, leaves)
    for node in np.flatnonzero(~tree.is_leaf):
        rows = reach.of(node)
        expected = np.empty((rows.size, 2))
        correct = np.empty((rows.size, 2), dtype=bool)
        for at, i in enumerate(rows):
            for side in (0, 1):
                child = int(tree.children[node, side])
                expected[at, side], correct[at, side] = reference.loss_from(
                    tree, child, X[i], int(y[i]), objective
                )
        in_left = np.isin(rows, reach.of(tree.children[node, 0]))
        went = np.where(in_left, 0, 1).astype(INDEX)
        at = np.arange(rows.size)
        known = expected[at, went], correct[at, went]
        found = child_losses(tree, int(node), data, rows, went, known, objective, SerialExecutor())
        np.testing.assert_allclose(found.loss, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found.correct, correct)
        chosen = np.random.default_rng(seed).integers(2, size=rows.size).astype(INDEX)
        loss, right = found.choose(chosen)
        np.testing.assert_array_equal(loss, found.loss[at, chosen])
        np.testing.assert_array_equal(right, correct[at, chosen])


# -- care sets -------------------------------------------------------------------------------------


loss_matrices = st.integers(0, 8).flatmap(
    lambda n: st.tuples(
        hnp.arrays(float, (n, 2), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 4.0, np.inf])),
        hnp.arrays(float, n, elements=st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    )
)


@given(loss_matrices)
def test_care_set(case):
    loss, weight = case
    care = care_set(ChildLosses(loss, np.zeros(loss.shape, bool)), weight)
    expected = [
        (i, int(right < left), w * abs(left - right))
        for i, ((left, right), w) in enumerate(zip(loss, weight, strict=True))
        if np.isfinite(left) and np.isfinite(right) and w * abs(left - right) > 0.0
    ]
    found = zip(care.positions, care.pseudolabel, care.weight, strict=True)
    assert [(int(i), int(side), float(w)) for i, side, w in found] == expected
    assert (care.positions.dtype, care.pseudolabel.dtype) == (INDEX, INDEX)


@given(loss_matrices)
def test_the_reduced_problem_is_the_loss_up_to_a_constant(case):
    """For every way to send the rows, Σ loss = Σ least loss + weight of the care set gone wrong."""
    loss, weight = case
    loss = np.where(np.isinf(loss), 7.0, loss)[:6]
    weight = weight[:6]
    care = care_set(ChildLosses(loss, np.zeros(loss.shape, bool)), weight)
    least = loss.min(axis=1, initial=np.inf) @ weight
    totals = []
    for choice in product((0, 1), repeat=len(loss)):
        sent = np.array(choice, dtype=int)
        total = sum(weight[i] * loss[i, side] for i, side in enumerate(choice))
        wrong = sent[care.positions] != care.pseudolabel
        assert total == pytest.approx(least + care.weight[wrong].sum())
        totals.append(total)
    assert min(totals) == pytest.approx(least)


def test_negligible_differences_are_not_cared_for():
    loss = np.array([[0.0, 1.0], [1e-9, 0.0], [1e-3, 0.0]])
    care = care_set(ChildLosses(loss, np.zeros((3, 2), bool)), np.ones(3))
    assert care.positions.tolist() == [0, 2]
    assert care.pseudolabel.tolist() == [0, 1]


# -- node problems ---------------------------------------------------------------------------------


@given(seed=seeds, limit=st.integers(1, 8), weighted=st.booleans())
def test_top_classes_are_the_most_frequent(seed, limit, weighted):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, size=rng.integers(1, 40)).astype(INDEX)
    weight = rng.uniform(0.5, 2.0, y.size) if weighted else np.ones(y.size)
    classes, positions, slots = top_classes(y, weight, limit)
    mass = Counter()
    for label, w in zip(y.tolist(), weight.tolist(), strict=True):
        mass[label] += w
    assert classes.size == min(limit, len(mass))
    assert np.all(np.diff(classes) > 0)
    inside, outside = set(classes.tolist()), set(mass) - set(classes.tolist())
    if outside:
        assert min(mass[c] for c in inside) >= max(mass[c] for c in outside)
    assert positions.tolist() == [i for i, label in enumerate(y) if label in inside]
    np.testing.assert_array_equal(classes[slots], y[positions])


def local_matrix(local, features: np.ndarray, n_rows: int, n_features: int) -> np.ndarray:
    """Return a local problem's rows over all features."""
    out = np.zeros((n_rows, n_features))
    for j, feature in enumerate(features):
        if isinstance(local, np.ndarray):
            out[:, feature] = local[:, j]
        else:
            at = slice(local.indptr[j], local.indptr[j + 1])
            out[local.indices[at], feature] = local.data[at]
    return out


@formats
@given(case=trees_and_rows())
def test_problems_hold_the_rows_that_they_are_about(kind, case):
    tree, X, y = case
    weight = np.arange(1.0, len(X) + 1.0)
    data = TrainingData(as_rows(X, kind), y, weight, tree.n_classes)
    assert data.n_rows == len(X)
    rows = np.arange(len(X), dtype=INDEX)[::-1].copy()
    penalty = Penalty(1.0, 2.0)
    loss = np.column_stack([y, np.ones(len(X))]).astype(float)[rows]
    care = care_set(ChildLosses(loss, np.zeros(loss.shape, bool)), weight[rows])
    problem, features = router_problem(data, rows, care, penalty)
    mine = rows[care.positions]
    found = local_matrix(problem.X, features, mine.size, tree.n_features)
    np.testing.assert_array_equal(found, dense_of(data.X)[mine])
    np.testing.assert_array_equal(problem.target, care.pseudolabel)
    np.testing.assert_array_equal(problem.weight, care.weight)
    assert (problem.n_targets, problem.penalty) == (2, penalty)

    trained = weight[rows] / 3.0  # a guest counts less than its own weight
    problem, features = leaf_problem(data, rows, y[rows], trained, tree.n_classes, penalty)
    found = local_matrix(problem.X, features, rows.size, tree.n_features)
    np.testing.assert_array_equal(found, dense_of(data.X)[rows])
    np.testing.assert_array_equal(problem.target, y[rows])
    np.testing.assert_array_equal(problem.weight, trained)
    assert problem.n_targets == tree.n_classes


@given(seeds)
def test_a_warm_router_scores_as_before_on_the_features_that_remain(seed):
    rng = np.random.default_rng(seed)
    router = random_router(rng, 7)
    features = np.flatnonzero(rng.random(7) < 0.6).astype(INDEX)
    weights, bias = warm_router(router, features)
    dense = np.zeros(7)
    dense[router.features] = router.weights
    np.testing.assert_array_equal(weights, dense[features])
    assert (weights.dtype, bias) == (PARAM, router.bias)


@given(seeds)
def test_a_warm_leaf_scores_as_before_on_what_remains(seed):
    rng = np.random.default_rng(seed)
    leaf = random_leaf(rng, 7, 6)
    features = np.flatnonzero(rng.random(7) < 0.6).astype(INDEX)
    classes = np.flatnonzero(rng.random(6) < 0.6).astype(INDEX)
    weights, bias = warm_leaf(leaf, features, classes)
    dense = np.zeros((7, 6))
    dense[np.ix_(leaf.features, leaf.classes)] = leaf.weights
    np.testing.assert_array_equal(weights, dense[np.ix_(features, classes)])
    known = np.isin(classes, leaf.classes)
    np.testing.assert_array_equal(bias[known], leaf.bias[np.isin(leaf.classes, classes)])
    assert np.all(bias[~known] <= leaf.bias.min())


@given(seeds)
def test_solutions_become_nodes_without_their_zeros(seed):
    rng = np.random.default_rng(seed)
    features = np.flatnonzero(rng.random(9) < 0.6).astype(INDEX)
    classes = np.array([1, 4, 5], INDEX)
    weights = rng.integers(-1, 2, size=(features.size, 3)).astype(PARAM)
    bias = rng.standard_normal(3).astype(PARAM)
    x = rng.integers(-3, 4, size=9).astype(float)

    leaf = as_leaf(NodeSolution(weights, bias, 0.0, 1, True), features, classes)
    assert np.all(leaf.weights.any(axis=1))
    np.testing.assert_array_equal(leaf.classes, classes)
    np.testing.assert_allclose(reference.leaf_scores(leaf, x), x[features] @ weights + bias)

    router = as_router(NodeSolution(weights[:, :1], bias[:1], 0.0, 1, True), features)
    assert np.all(router.weights != 0.0)
    score = x[features] @ weights[:, 0] + bias[0]
    assert reference.side(router, x) == int(score >= 0.0)


# -- objective -------------------------------------------------------------------------------------


@modes
@given(case=trees_and_rows())
def test_the_objective_is_losses_plus_penalties(absent, case):
    tree, X, y = case
    objective = Objective(absent, 4.0, Penalty(0.5, 0.25), Penalty(0.1, 2.0))
    weight = np.arange(len(X)) % 3 + 0.5
    losses, _ = reference.tree_losses(tree, X, y, objective)
    expected = reference.objective_of(tree, X, y, weight, objective)
    assert objective.total(losses, weight, tree) == pytest.approx(expected)
    parts = sum(objective.penalty(tree.node(i)) for i in range(tree.n_nodes))
    assert objective.total(np.zeros(len(X)), weight, tree) == pytest.approx(parts)


@modes
def test_row_losses(absent):
    objective = Objective(absent=absent, beta=4.0)
    cross_entropy = np.array([0.0, 0.3, 2.0, np.inf])
    correct = np.array([True, True, False, False])
    expected = [
        reference.row_loss(objective, e, c) for e, c in zip(cross_entropy, correct, strict=True)
    ]
    assert objective.row_losses(cross_entropy, correct).tolist() == expected


def test_biases_are_free():
    objective = Objective(routers=Penalty(1.0, 1.0))
    heavy = Router(np.empty(0, INDEX), np.empty(0, PARAM), 1e6)
    assert objective.penalty(heavy) == 0.0


@pytest.mark.parametrize("wrong", [{"absent": "never"}, {"beta": 0.0}, {"beta": float("nan")}])
def test_objectives_that_cannot_be_minimised_are_rejected(wrong):
    with pytest.raises(ValueError, match=r"absent|beta"):
        Objective(**wrong)

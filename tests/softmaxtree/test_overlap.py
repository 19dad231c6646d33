"""Overlap: who trains a node besides its reach set, how much they count, and what stays hard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.estimator_cases import adaptive, assert_same_model, assert_same_tree, problem, quick
from tests.strategies import FORMATS, as_rows, blobs, dense_of, trees_and_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.execution import SerialExecutor, executor_for
from thinleaf.model.routing import losses, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import Settings, TrainingData, optimise
from thinleaf.softmaxtree.tao.overlap import Overlap, find_overlap
from thinleaf.softmaxtree.tao.reduced import child_losses
from thinleaf.softmaxtree.tao.sweep import State, Visit, fit_leaf, fit_router, sweep

formats = pytest.mark.parametrize("kind", FORMATS)
floors = st.sampled_from([1e-6, 0.01, 0.05, 0.2, 0.5])


def overlap_of(tree: Tree, rows, floor: float, executor=None) -> dict[int, Overlap]:
    return find_overlap(tree, rows, route(tree, rows), floor, executor or SerialExecutor())


def trained(data: TrainingData, *, depth: int = 3, sweeps: int = 3) -> tuple[Tree, Settings]:
    """Return a tree whose routers are fitted, without overlap."""
    first = initial_tree(data, depth, "pca_median", np.random.SeedSequence(0))
    settings = Settings(
        Objective("constant", 5.0, Penalty(0.05, 0.5), Penalty(0.05, 0.1)),
        np.full(first.tree.n_nodes, 3, INDEX),
    )
    result = optimise(
        first.tree,
        data,
        settings,
        SerialExecutor(),
        max_sweeps=sweeps,
        assignment=first.assignment,
    )
    return result.tree, settings


def known_state(tree: Tree, data: TrainingData, settings: Settings) -> State:
    entropy, correct = losses(tree, data.X, data.y, route(tree, data.X))
    return State(settings.objective.row_losses(entropy, correct), correct)


# -- who trains a node -----------------------------------------------------------------------------


@formats
@given(case=trees_and_rows(), floor=floors)
def test_overlap_is_every_row_whose_path_probability_reaches_the_floor(kind, case, floor):
    tree, X, _ = case
    rows = as_rows(X, kind)
    found = overlap_of(tree, rows, floor)
    own = reference.reach_sets(tree, X)
    probability = [reference.path_probability(tree, x.astype(float), certain=True) for x in X]
    reach = route(tree, rows)
    assert set(found) == set(range(tree.n_nodes))
    for node in range(tree.n_nodes):
        here = found[node]
        p = {i: probability[i][node] for i in range(len(X))}
        expected = [max(p[i], floor) for i in reach.of(node)]
        np.testing.assert_allclose(here.share, expected, rtol=1e-5)
        guests = here.guests.tolist()
        assert len(set(guests)) == len(guests)
        assert not set(guests) & own[node]
        near = {i for i in p if i not in own[node] and p[i] >= floor * (1 + 1e-5)}
        far = {i for i in p if p[i] < floor * (1 - 1e-5)}
        assert near <= set(guests)
        assert not set(guests) & far
        np.testing.assert_allclose(here.guest_share, [p[i] for i in guests], rtol=1e-5)


@formats
@given(case=trees_and_rows(), floor=floors)
def test_everyone_is_trained_once_and_nobody_more_than_fully(kind, case, floor):
    tree, X, _ = case
    rows = as_rows(X, kind)
    weight = np.arange(1.0, len(X) + 1.0)
    reach = route(tree, rows)
    for node, here in overlap_of(tree, rows, floor).items():
        training_rows, trains = here.join(reach.of(node), weight)
        n_own = reach.sizes[node]
        np.testing.assert_array_equal(training_rows[:n_own], reach.of(node))
        assert np.unique(training_rows).size == training_rows.size
        assert np.all(trains >= floor * weight[training_rows])
        assert np.all(trains <= weight[training_rows])
    root = overlap_of(tree, rows, floor)[0]
    np.testing.assert_array_equal(root.share, np.ones(len(X)))
    assert root.guests.size == 0


@formats
def test_with_a_floor_of_one_half_only_ties_are_guests(kind):
    """A row on the hyperplane goes right, and is as near to the left."""
    X = np.array([[-2.0], [-1e-3], [0.0], [1e-3], [2.0]])
    split = Router(np.array([0], INDEX), np.array([1.0], PARAM), 0.0)
    children = np.array([[1, 2], [-1, -1], [-1, -1]])
    nodes = [split, Leaf.constant(0), Leaf.constant(1)]
    tree = Tree.build(children, nodes, n_features=1, n_classes=2)
    found = overlap_of(tree, as_rows(X, kind), 0.5)
    assert found[1].guests.tolist() == [2]
    assert found[1].guest_share.tolist() == [0.5]
    assert found[2].guests.size == 0
    data = blobs(0, kind=kind, spread=1.0)
    tree, _ = trained(data)
    found = overlap_of(tree, data.X, 0.5)
    assert all(here.guests.size == 0 for here in found.values())


def test_a_lower_floor_only_adds_guests():
    data = blobs(1, spread=1.0)
    tree, _ = trained(data)
    few, many = (overlap_of(tree, data.X, floor) for floor in (0.2, 0.02))
    for node in range(tree.n_nodes):
        assert set(few[node].guests) <= set(many[node].guests)
    assert sum(c.guests.size for c in few.values()) < sum(c.guests.size for c in many.values())


def test_a_router_without_weights_has_no_guests():
    """It is as sure as it can be: its rows count in full below it, and nobody nearly went away."""
    data = blobs(2, spread=1.0)
    tree, _ = trained(data)
    constant = tree.replace({0: Router.constant(1)})
    found = overlap_of(constant, data.X, 0.05)
    left, right = constant.children[0]
    assert found[int(left)].share.size == found[int(left)].guests.size == 0
    np.testing.assert_array_equal(found[int(right)].share, np.ones(data.n_rows))


def test_steep_routers_have_no_guests():
    """The limit of hard routing: every share is one."""
    data = blobs(2, spread=1.0)
    tree, _ = trained(data)
    steep = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        router = tree.router(node)
        steep[node] = Router(router.features, router.weights * 1e6, router.bias * 1e6)
    found = overlap_of(tree.replace(steep), data.X, 0.05)
    for here in found.values():
        assert here.guests.size == 0
        np.testing.assert_allclose(here.share, 1.0, atol=1e-6)


@formats
def test_workers_do_not_change_the_overlap(kind):
    data = blobs(3, kind=kind, spread=1.0)
    tree, _ = trained(data)
    serial = overlap_of(tree, data.X, 0.05)
    with executor_for(2) as executor:
        threaded = overlap_of(tree, data.X, 0.05, executor)
    for node, here in serial.items():
        for name in ("share", "guests", "guest_share"):
            np.testing.assert_array_equal(getattr(here, name), getattr(threaded[node], name))


# -- what they train -------------------------------------------------------------------------------


@formats
def test_a_leaf_minimises_the_problem_of_its_rows_and_guests(kind):
    data = blobs(4, kind=kind, spread=1.0, weighted=True)
    tree, settings = trained(data, depth=2)
    settings = replace(settings, precision=Precision(1e-7, 500))
    reach, found = route(tree, data.X), overlap_of(tree, data.X, 0.05)
    X = dense_of(data.X)
    for node in np.flatnonzero(tree.is_leaf & (reach.sizes > 0)).tolist():
        state = known_state(tree, data, settings)
        update = fit_leaf(tree, Visit.of(tree, node, reach, state, found[node]), data, settings)
        leaf = update.parameters
        mass = dict.fromkeys(range(6), 0.0)
        weights = {}
        probability = {i: reference.path_probability(tree, X[i])[node] for i in range(len(X))}
        for i in [*reach.of(node).tolist(), *found[node].guests.tolist()]:
            weights[i] = data.weight[i] * max(probability[i], 0.05)
            mass[int(data.y[i])] += weights[i]
        top = sorted(sorted(mass, key=lambda c: (-mass[c], c))[:3])
        assert leaf.classes.tolist() == [c for c in top if mass[c] > 0]
        inside = np.array([i for i in weights if data.y[i] in leaf.classes])
        target = np.searchsorted(leaf.classes, data.y[inside])
        weight = np.array([weights[i] for i in inside])
        least = reference.minimum(
            reference.softmax_loss, X[inside], target, weight, leaf.classes.size,
            settings.objective.leaves,
        )  # fmt: skip
        W = np.zeros((X.shape[1], leaf.classes.size))
        W[leaf.features] = leaf.weights
        loss, _, _ = reference.softmax_loss(X[inside], target, weight, W, leaf.bias)
        assert loss + settings.objective.penalty(leaf) == pytest.approx(least, rel=1e-4)


@formats
@given(case=trees_and_rows())
def test_guests_are_evaluated_down_both_children(kind, case):
    tree, X, y = case
    data = TrainingData(as_rows(X, kind), y, np.ones(len(X)), tree.n_classes)
    objective = Objective(beta=3.0)
    reach, found = route(tree, data.X), overlap_of(tree, data.X, 0.01)
    entropy, correct = losses(tree, data.X, y, reach)
    loss = objective.row_losses(entropy, correct)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows = reach.of(node)
        training_rows, _ = found[node].join(rows, data.weight)
        went = np.repeat([0, 1], reach.sizes[tree.children[node]]).astype(INDEX)
        known = (loss[rows], correct[rows])
        both = child_losses(
            tree, node, data, training_rows, went, known, objective, SerialExecutor()
        )
        for at, i in enumerate(training_rows):
            for side in (0, 1):
                child = int(tree.children[node, side])
                value, right = reference.loss_from(tree, child, X[i], int(y[i]), objective)
                assert both.loss[at, side] == pytest.approx(value, rel=1e-5, abs=1e-5)
                assert both.correct[at, side] == right


@formats
@pytest.mark.parametrize("absent", ["drop", "constant", "zero_one"])
def test_guests_have_no_part_in_the_losses_of_a_sweep(kind, absent):
    data = blobs(5, kind=kind, spread=1.0, weighted=True)
    tree, settings = trained(data)
    settings = replace(settings, objective=replace(settings.objective, absent=absent))
    state = known_state(tree, data, settings)
    for _ in range(3):
        near = overlap_of(tree, data.X, 0.05)
        assert any(here.guests.size for here in near.values())
        reach = route(tree, data.X)
        tree, _ = sweep(tree, data, reach, state, settings, SerialExecutor(), near)
        entropy, correct = losses(tree, data.X, data.y, route(tree, data.X))
        loss = settings.objective.row_losses(entropy, correct)
        np.testing.assert_allclose(state.loss, loss, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(state.correct, correct)
        expected = reference.objective_of(
            tree, dense_of(data.X), data.y, data.weight, settings.objective
        )
        total = settings.objective.total(state.loss, data.weight, tree)
        assert total == pytest.approx(expected, rel=1e-5)


def test_an_update_speaks_of_the_reach_set_alone():
    data = blobs(6, spread=1.0)
    tree, settings = trained(data)
    reach, near = route(tree, data.X), overlap_of(tree, data.X, 0.05)
    state = known_state(tree, data, settings)
    for node in np.flatnonzero(reach.sizes > 0).tolist():
        visit = Visit.of(tree, node, reach, state, near[node])
        if tree.is_leaf[node]:
            update = fit_leaf(tree, visit, data, settings)
        else:
            update = fit_router(tree, visit, data, settings, SerialExecutor())
        assert update.loss.size == update.correct.size == reach.sizes[node]


def test_the_first_sweep_of_an_assignment_has_no_guests():
    """The routers are yet to be fitted, so they do not say who is near."""
    data = blobs(7, spread=1.0)
    first = initial_tree(data, 2, "class_clusters", np.random.SeedSequence(0))
    _, settings = trained(data, depth=2)
    trees = [
        optimise(
            first.tree,
            data,
            replace(settings, overlap=overlap),
            SerialExecutor(),
            max_sweeps=1,
            assignment=first.assignment,
        ).tree
        for overlap in (None, 0.05)
    ]
    assert_same_tree(*trees)


# -- fits ------------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("make", [quick, adaptive], ids=["fixed", "adaptive"])
def test_overlap_trains_another_tree(kind, make):
    X, y = problem(8, kind=kind, spread=1.0)
    with_guests, without = make().fit(X, y), make(overlap=None).fit(X, y)
    assert not np.array_equal(with_guests.predict_proba(X), without.predict_proba(X))


@formats
def test_weights_of_guests_are_repetition(kind):
    X, y = problem(9, kind=kind, spread=1.0)
    times = np.random.default_rng(0).integers(1, 4, size=y.size)
    many = np.repeat(np.arange(y.size), times)
    a = quick(overlap=0.01).fit(X, y, sample_weight=times)
    assert_same_model(a, quick(overlap=0.01).fit(X[many], y[many]))


def test_with_overlap_the_last_iterate_is_kept_unless_there_is_validation():
    X, y = problem(10, spread=1.2, n_rows=300)
    last = quick(depth=3, max_sweeps=8).fit(X, y)
    objectives = [record["objective"] for record in last.history_]
    assert last.best_sweep_ == last.n_iter_ == 8
    assert min(objectives) < objectives[-1]
    held = quick(depth=3, max_sweeps=8, patience=8, validation_fraction=0.3).fit(X, y)
    errors = [record["validation_error"] for record in held.history_]
    assert held.best_sweep_ == int(np.argmin(errors)) + 1

"""Units of a node: features may be scaled and shifted, and no answer changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.node_cases import SOLVERS, TIGHT, make, solvers
from tests.strategies import blobs, node_problem
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.execution import SerialExecutor
from thinleaf.model.routing import all_rows, leaf_losses, losses, route
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.hinge import solve_hinge
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeSolution
from thinleaf.softmaxtree.tao import Settings, TrainingData, optimise
from thinleaf.softmaxtree.tao.sweep import train_leaf
from thinleaf.softmaxtree.tao.units import Units, feature_spread

LOCAL = Penalty(l1=0.05, ridge=0.5, in_node_units=True)
SCALES = {
    "features": 2.0 ** np.array([-6, 4, 0, 9, -2]),
    "rows": np.full(5, 2.0**-8),
    "by any factor": np.array([0.003, 17.0, 1.0, 900.0, 0.3]),
}
scales = pytest.mark.parametrize("scale", SCALES)


def settings_of(data: TrainingData, n_nodes: int = 1, **options) -> Settings:
    return Settings(
        Objective("constant", 5.0, LOCAL, LOCAL),
        np.full(n_nodes, 4, INDEX),
        precision=TIGHT,
        spread=feature_spread(data.X),
        **options,
    )


def moved(data: TrainingData, scale, shift=0.0) -> TrainingData:
    return replace(data, X=(data.X * scale + shift).astype(PARAM))


# -- what a unit is --------------------------------------------------------------------------------


def test_the_spread_of_a_feature():
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(PARAM)
    X[:, 1] = 7.0
    np.testing.assert_allclose(feature_spread(X), [X[:, 0].std(), 1.0, X[:, 2].std()], rtol=1e-5)
    np.testing.assert_allclose(feature_spread(X * 4)[[0, 2]], 4 * feature_spread(X)[[0, 2]])


def test_standardised_rows_are_in_units_of_the_root():
    """Penalties in units of the root are then penalties in those of the input."""
    case = make("softmax", "dense", Penalty(l1=0.5, ridge=0.5))
    X = ((case.X - case.X.mean(axis=0)) / case.X.std(axis=0)).astype(PARAM)
    problem = replace(case.problem, X=X)
    units = Units.of(problem, feature_spread(X))
    np.testing.assert_allclose(units.centre, 0.0, atol=1e-5)
    np.testing.assert_allclose(units.unit, 1.0, rtol=1e-5)
    inside = units.leave(solve_softmax(units.enter(problem), None, TIGHT))
    plain = solve_softmax(problem, None, TIGHT)
    assert inside.objective == pytest.approx(plain.objective, rel=1e-5)
    np.testing.assert_allclose(inside.weights, plain.weights, atol=1e-2)


@given(st.integers(0, 2**32 - 1))
def test_rows_in_units_of_a_node_have_no_mean_and_unit_spread(seed):
    """All features together: one that hardly varies at the node stays small."""
    rng = np.random.default_rng(seed)
    everywhere = rng.standard_normal((60, 4)) * 10.0 ** rng.uniform(-3, 3, 4)
    here = (everywhere[:20] * rng.uniform(0.01, 1.0, 4)).astype(PARAM)
    weight = rng.uniform(0.1, 2.0, 20)
    problem = node_problem(here, np.zeros(20, int), weight=weight)
    spread = feature_spread(everywhere.astype(PARAM))
    units = Units.of(problem, spread)
    X = units.enter(problem).X.astype(float)
    share = weight / weight.sum()
    np.testing.assert_allclose(share @ X, 0.0, atol=1e-4)
    assert (share @ X**2).mean() == pytest.approx(1.0, rel=1e-3)
    np.testing.assert_allclose(units.unit / spread, (units.unit / spread)[0])


def test_a_deep_node_pays_as_little_as_the_root():
    """The same rows, only closer together, have the same scores."""
    case = make("softmax", "dense", LOCAL)
    spread = feature_spread(case.problem.X)
    near = replace(case.problem, X=(case.problem.X / 64 + 3).astype(PARAM))
    scores = []
    for problem in (case.problem, near):
        units = Units.of(problem, spread)
        solution = units.leave(solve_softmax(units.enter(problem), None, TIGHT))
        scores.append(problem.X @ solution.weights + solution.bias)
    np.testing.assert_allclose(scores[0], scores[1], atol=0.05)


@pytest.mark.parametrize("n_rows", [1, 5])
def test_rows_that_are_all_equal(n_rows):
    problem = node_problem(np.full((n_rows, 3), 0.1), np.zeros(n_rows, int), penalty=LOCAL)
    units = Units.of(problem, np.ones(3))
    assert np.all(units.unit > 0.0)
    assert np.abs(units.enter(problem).X).max() < 1.0


# -- there and back --------------------------------------------------------------------------------


def random_units(rng: np.random.Generator, d: int) -> Units:
    return Units(rng.standard_normal(d), 10.0 ** rng.uniform(-2, 2, d))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_solution_scores_the_same_in_both_units(seed, k):
    rng = np.random.default_rng(seed)
    units = random_units(rng, 3)
    problem = node_problem(rng.standard_normal((8, 3)), np.zeros(8, int), penalty=LOCAL)
    W, b = rng.standard_normal((3, k)).astype(PARAM), rng.standard_normal(k).astype(PARAM)
    outside = units.leave(NodeSolution(W, b, 1.5, 3, True))
    np.testing.assert_allclose(
        problem.X.astype(float) @ outside.weights + outside.bias,
        units.enter(problem).X.astype(float) @ W + b,
        rtol=1e-3,
        atol=1e-2,
    )
    assert (outside.objective, outside.n_iter, outside.converged) == (1.5, 3, True)
    assert (outside.weights.dtype, outside.bias.dtype) == (PARAM, PARAM)
    back, bias = units.enter_start((outside.weights, outside.bias))
    np.testing.assert_allclose(back, W, rtol=1e-5)
    np.testing.assert_allclose(bias, b, rtol=1e-3, atol=1e-3)


def test_a_router_starts_from_a_vector_and_a_number():
    rng = np.random.default_rng(0)
    units = random_units(rng, 4)
    w, x = rng.standard_normal(4).astype(PARAM), rng.standard_normal(4)
    weights, bias = units.enter_start((w, 0.5))
    assert weights.shape == (4,)
    inside = ((x - units.centre) / units.unit) @ weights + bias
    assert inside == pytest.approx(x @ w + 0.5, rel=1e-4)
    assert units.enter_start(None) is None


@solvers
def test_a_solution_is_a_start_that_stays(solver):
    case = make(solver, "dense", LOCAL)
    units = Units.of(case.problem, feature_spread(case.problem.X))
    solve, inside = SOLVERS[solver].solve, units.enter(case.problem)
    first = units.leave(solve(inside, None, TIGHT))
    start = (first.weights, first.bias)
    if solver == "logistic":
        start = (first.weights[:, 0], float(first.bias[0]))
    again = solve(inside, units.enter_start(start), TIGHT)
    assert again.objective == pytest.approx(first.objective, rel=1e-4)
    assert again.n_iter < first.n_iter


# -- leaves and trees ------------------------------------------------------------------------------


@scales
@pytest.mark.parametrize("solve", [solve_softmax, solve_hinge])
def test_a_leaf_does_not_mind_other_units(scale, solve):
    data = blobs(0, n_classes=4, n_rows=80)
    entropies = []
    for shift in (0.0, 1.0):
        other = moved(data, SCALES[scale], shift * SCALES[scale])
        for one in (data, other):
            rows = all_rows(one.X)
            settings = settings_of(one, solve_leaf=solve)
            leaf, _ = train_leaf(one, rows, one.weight, 4, Leaf.constant(0), settings)
            entropies.append(leaf_losses(leaf, one.X, one.y, rows)[0])
    for entropy in entropies[1:]:
        np.testing.assert_allclose(entropy, entropies[0], atol=0.02)


@scales
def test_a_tree_does_not_mind_other_units(scale):
    data = blobs(1, n_classes=6, n_rows=150, spread=0.4)
    start = initial_tree(data, 2, "class_clusters", np.random.SeedSequence(0))
    correct = []
    for one in (data, moved(data, SCALES[scale], 2.0 * SCALES[scale])):
        settings = settings_of(one, start.tree.n_nodes)
        tree = optimise(
            start.tree, one, settings, SerialExecutor(), max_sweeps=1, assignment=start.assignment
        ).tree
        correct.append(losses(tree, one.X, one.y, route(tree, one.X))[1])
    assert np.mean(correct[0]) > 0.7
    assert np.mean(correct[0] == correct[1]) > 0.97


def test_penalties_of_the_input_do_not_become_those_of_nodes():
    """Given numbers mean what they meant, whatever the spread of the rows."""
    data = blobs(0, n_classes=4, n_rows=80)
    given_ones = Objective("constant", 5.0, Penalty(0.05, 0.5), Penalty(0.05, 0.5))
    leaves = []
    for spread in (None, feature_spread(data.X)):
        settings = replace(settings_of(data), objective=given_ones, spread=spread)
        rows = all_rows(data.X)
        leaves.append(train_leaf(data, rows, data.weight, 4, Leaf.constant(0), settings)[0])
    np.testing.assert_array_equal(leaves[0].weights, leaves[1].weights)
    np.testing.assert_array_equal(leaves[0].bias, leaves[1].bias)


def test_the_objective_counts_no_penalty_in_units_of_nodes():
    data = blobs(0, n_classes=4)
    rows = all_rows(data.X)
    leaf, _ = train_leaf(data, rows, data.weight, 4, Leaf.constant(0), settings_of(data))
    children = np.full((1, 2), -1)
    tree = Tree.build(children, [leaf], n_features=5, n_classes=4)
    entropy, _ = leaf_losses(leaf, data.X, data.y, rows)
    objective = Objective("constant", 5.0, LOCAL, LOCAL)
    assert objective.penalty(leaf) == 0.0
    assert objective.total(entropy, data.weight, tree) == pytest.approx(entropy @ data.weight)
    plain = replace(objective, leaves=replace(LOCAL, in_node_units=False))
    assert plain.penalty(leaf) > 0.0

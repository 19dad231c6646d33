"""One sweep: what it says of the tree it returns is true, and it does what Algorithm 1 says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests import reference
from tests.strategies import FORMATS, as_rows, blobs, dense_of
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.execution import SerialExecutor, executor_for
from thinleaf.model.routing import losses, reach_of_assignment, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao.reduced import TrainingData
from thinleaf.softmaxtree.tao.sweep import Settings, State, Visit, fit_router, sweep

MODES = ("drop", "constant", "zero_one")
INITS = ("random", "random_median", "pca_median", "class_clusters", "row_clusters")

formats = pytest.mark.parametrize("kind", FORMATS)
modes = pytest.mark.parametrize("absent", MODES)
inits = pytest.mark.parametrize("init", INITS)


def start(data: TrainingData, init: str, depth: int = 3, seed: int = 0):
    """Return an initial tree with its reach sets."""
    first = initial_tree(data, depth, init, np.random.SeedSequence(seed))
    return first.tree, reach_of_assignment(first.tree, first.assignment)


def settings_for(tree: Tree, absent: str = "constant", limit: int = 3, **options) -> Settings:
    objective = Objective(absent, 5.0, Penalty(0.05, 0.5), Penalty(0.05, 0.1))
    return Settings(objective, np.full(tree.n_nodes, limit, INDEX), **options)


def run(tree, data, reach, settings, n_sweeps=1, executor=None, state=None):
    """Sweep a few times; return the last tree, the state and the number of solves of each sweep."""
    state = state or State.empty(data.n_rows)
    n_solved = []
    for _ in range(n_sweeps):
        tree, n = sweep(tree, data, reach, state, settings, executor or SerialExecutor())
        reach = route(tree, data.X)
        n_solved.append(n)
    return tree, state, n_solved


def assert_state_is_true(tree: Tree, data: TrainingData, state: State, settings: Settings) -> None:
    loss, correct = losses(tree, data.X, data.y, route(tree, data.X))
    loss = settings.objective.row_losses(loss, correct)
    np.testing.assert_allclose(state.loss, loss, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state.correct, correct)


def assert_same_tree(a: Tree, b: Tree) -> None:
    for name, value in vars(a).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(b, name))


# -- the state after a sweep -----------------------------------------------------------------------


@formats
@modes
@inits
def test_the_losses_of_a_sweep_are_those_of_its_tree(kind, absent, init):
    data = blobs(0, kind=kind, weighted=True)
    tree, reach = start(data, init)
    settings = settings_for(tree, absent)
    state = State.empty(data.n_rows)
    for _ in range(3):
        tree, _ = sweep(tree, data, reach, state, settings, SerialExecutor())
        tree.validate()
        assert_state_is_true(tree, data, state, settings)
        reach = route(tree, data.X)


@formats
@modes
def test_the_objective_of_a_sweep_is_that_of_the_reference(kind, absent):
    data = blobs(1, kind=kind, weighted=True)
    tree, reach = start(data, "pca_median")
    settings = settings_for(tree, absent)
    tree, state, _ = run(tree, data, reach, settings, 2)
    expected = reference.objective_of(
        tree, dense_of(data.X), data.y, data.weight, settings.objective
    )
    assert settings.objective.total(state.loss, data.weight, tree) == pytest.approx(
        expected, rel=1e-5
    )


def test_the_structure_stays():
    data = blobs(2)
    tree, reach = start(data, "random")
    after, _, _ = run(tree, data, reach, settings_for(tree), 3)
    np.testing.assert_array_equal(after.children, tree.children)


# -- leaves ----------------------------------------------------------------------------------------


@formats
def test_leaves_hold_the_most_frequent_classes_of_their_reach_sets(kind):
    data = blobs(3, kind=kind, weighted=True)
    tree, reach = start(data, "random", depth=2)
    limits = np.arange(tree.n_nodes, dtype=INDEX) % 3 + 2
    settings = replace(settings_for(tree), leaf_limits=limits)
    after, _, _ = run(tree, data, reach, settings)
    for node in np.flatnonzero(tree.is_leaf):
        rows = reach.of(node)
        if rows.size == 0:
            continue
        mass = Counter()
        for i in rows:
            mass[int(data.y[i])] += data.weight[i]
        held = after.leaf(node).classes.tolist()
        assert len(held) == min(len(mass), limits[node])
        absent = set(mass) - set(held)
        if absent:
            assert min(mass[c] for c in held) >= max(mass[c] for c in absent)


@formats
def test_a_leaf_minimises_its_own_problem(kind):
    data = blobs(4, kind=kind)
    tree, reach = start(data, "random_median", depth=1)
    settings = settings_for(tree, limit=3, precision=Precision(1e-7, 500))
    after, _, _ = run(tree, data, reach, settings)
    X = dense_of(data.X)
    for node in (1, 2):
        leaf = after.leaf(node)
        rows = np.array([i for i in reach.of(node) if data.y[i] in leaf.classes])
        target = np.searchsorted(leaf.classes, data.y[rows])
        least = reference.minimum(
            reference.softmax_loss, X[rows], target, data.weight[rows], leaf.classes.size,
            settings.objective.leaves,
        )  # fmt: skip
        W = np.zeros((X.shape[1], leaf.classes.size))
        W[leaf.features] = leaf.weights
        loss, _, _ = reference.softmax_loss(X[rows], target, data.weight[rows], W, leaf.bias)
        assert loss + settings.objective.penalty(leaf) == pytest.approx(least, rel=1e-4)


def test_pure_leaves_are_constant_and_empty_ones_are_left():
    X = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    data = TrainingData(as_rows(X, "dense"), np.array([0, 0, 1, 1], INDEX), np.ones(4), 3)
    children = np.array([[1, 2], [3, 4], [5, 6], [-1, -1], [-1, -1], [-1, -1], [-1, -1]])
    split = Router(np.array([0], INDEX), np.array([1.0], PARAM), 0.0)
    leaves = [Leaf.constant(2) for _ in range(4)]
    nodes = [split, Router.constant(0), Router.constant(1), *leaves]
    tree = Tree.build(children, nodes, n_features=1, n_classes=3)
    settings = settings_for(tree)
    after, state, _ = run(tree, data, route(tree, data.X), settings)
    assert after.leaf(3).classes.tolist() == [0]
    assert after.leaf(6).classes.tolist() == [1]
    assert (after.leaf(3).features.size, after.leaf(6).features.size) == (0, 0)
    for empty in (4, 5):
        assert after.leaf(empty).classes.tolist() == [2]
    assert state.correct.all()
    assert_state_is_true(after, data, state, settings)


def test_rows_without_weight_have_no_say():
    data = blobs(5, n_rows=90)
    weight = np.where(np.arange(90) < 60, 1.0, 0.0)
    some = TrainingData(data.X[:60], data.y[:60], np.ones(60), data.n_classes)
    tree, _ = start(data, "random")
    settings = settings_for(tree, precision=Precision(1e-7, 500))
    weighted = replace(data, weight=weight)
    a, state, _ = run(tree, weighted, route(tree, data.X), settings)
    b, other, _ = run(tree, some, route(tree, some.X), settings)
    assert settings.objective.total(state.loss, weight, a) == pytest.approx(
        settings.objective.total(other.loss, some.weight, b), rel=1e-3
    )


@pytest.mark.parametrize("absent", MODES)
def test_no_weight_at_all_is_survived(absent):
    data = replace(blobs(5, n_rows=30), weight=np.zeros(30))
    tree, reach = start(data, "random")
    after, _, _ = run(tree, data, reach, settings_for(tree, absent), 2)
    after.validate()


# -- routers ---------------------------------------------------------------------------------------


def stump(data: TrainingData, left: Leaf, right: Leaf) -> Tree:
    router = Router(np.array([0], INDEX), np.array([1.0], PARAM), 0.0)
    nodes = [router, left, right]
    children = np.array([[1, 2], [-1, -1], [-1, -1]])
    return Tree.build(children, nodes, n_features=data.X.shape[1], n_classes=data.n_classes)


@pytest.mark.parametrize("absent", ["constant", "zero_one"])
@pytest.mark.parametrize("seed", range(6))
def test_a_router_against_every_threshold(absent, seed):
    """On one feature all routers can be listed: none has a lower loss than the best of them."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.standard_normal(9)).astype(PARAM)
    y = rng.integers(2, size=9).astype(INDEX)
    if seed < 3:
        y = (np.arange(9) >= seed + 2).astype(INDEX)  # a threshold separates these
    data = TrainingData(x[:, None].copy(), y, rng.integers(1, 4, size=9).astype(float), 2)
    tree = stump(data, Leaf.constant(0), Leaf.constant(1))
    settings = Settings(Objective(absent, 2.0), np.ones(3, INDEX), Precision(1e-7, 500))
    state = State.empty(9)
    reach = route(tree, data.X)
    state.loss[:], state.correct[:] = reference.tree_losses(tree, x[:, None], y, settings.objective)
    visit = Visit.of(tree, 0, reach, state)
    update = fit_router(tree, visit, data, settings, SerialExecutor())
    router = update.parameters or tree.router(0)
    rows = reach.of(0)
    value = float(update.loss @ data.weight[rows])

    sent = np.array([reference.side(router, data.X[i]) for i in range(9)])
    unit = settings.objective.beta if absent == "constant" else 1.0
    assert value == pytest.approx(unit * data.weight[sent != y].sum())
    cuts = [np.arange(9) >= cut for cut in range(10)]
    every = [unit * data.weight[cut != (y == 1)].sum() for cut in [*cuts, *(~c for c in cuts)]]
    assert value >= min(every) - 1e-9
    assert value <= max(every)
    if seed < 3:
        assert value == 0.0


def test_a_router_goes_where_the_cheaper_child_is():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)).astype(PARAM)
    y = (X[:, 1] >= 0.1).astype(INDEX)
    data = TrainingData(X, y, np.ones(60), 2)
    tree = stump(data, Leaf.constant(0), Leaf.constant(1))
    assignment = (y + 1).astype(INDEX)
    settings = Settings(Objective("zero_one"), np.ones(3, INDEX), Precision(1e-7, 500))
    after, state, _ = run(tree, data, reach_of_assignment(tree, assignment), settings)
    assert state.correct.all()
    assert [reference.side(after.router(0), x) for x in X] == y.tolist()


@modes
def test_a_router_without_a_care_set_is_kept(absent):
    """Both children hold the same leaf: nothing to choose between."""
    data = blobs(6, n_rows=40, n_classes=2)
    leaf = Leaf(
        np.array([0, 1], INDEX), np.array([0], INDEX), np.ones((1, 2), PARAM), np.zeros(2, PARAM)
    )
    tree = stump(data, leaf, leaf)
    settings = settings_for(tree, absent)
    state, reach = State.empty(40), route(tree, data.X)
    cross_entropy, state.correct[:] = losses(tree, data.X, data.y, reach)
    state.loss[:] = settings.objective.row_losses(cross_entropy, state.correct)
    visit = Visit.of(tree, 0, reach, state)
    update = fit_router(tree, visit, data, settings, SerialExecutor())
    assert update.parameters is None
    assert not update.was_solved


@modes
def test_classes_that_live_on_one_side_are_sent_there(absent):
    """An assignment without shared classes: routers must learn it, whatever absence costs.

    Under ``"drop"`` every row is infinite on one side, so no router has a care set and the
    assignment cannot be learned; the losses that are reported must then be the tree's own.
    """
    data = blobs(7, spread=0.05)
    tree, reach = start(data, "class_clusters", depth=2)
    settings = settings_for(tree, absent)
    tree, state, _ = run(tree, data, reach, settings)
    assert_state_is_true(tree, data, state, settings)
    if absent != "drop":
        assert state.correct.mean() > 0.9


# -- what is not done ------------------------------------------------------------------------------


class Counting:
    """A solver that counts its calls."""

    def __init__(self, solve):
        self.solve, self.n_calls = solve, 0

    def __call__(self, problem, warm_start=None, precision=None):
        self.n_calls += 1
        return self.solve(problem, warm_start, precision)


@formats
def test_unchanged_nodes_are_not_solved_again(kind):
    data = blobs(8, kind=kind, spread=0.1, n_classes=4)
    tree, reach = start(data, "class_clusters", depth=2)
    settings = settings_for(tree)
    tree, state, n_solved = run(tree, data, reach, settings, 12)
    assert n_solved[0] > 0
    assert n_solved[-1] == 0
    routers, leaves = Counting(solve_logistic), Counting(solve_softmax)
    counting = replace(settings, solve_router=routers, solve_leaf=leaves)
    before = state.loss.copy()
    again, state, _ = run(tree, data, route(tree, data.X), counting, 1, state=state)
    assert (routers.n_calls, leaves.n_calls) == (0, 0)
    assert_same_tree(tree, again)
    np.testing.assert_array_equal(state.loss, before)
    assert_state_is_true(again, data, state, settings)


def test_a_problem_that_was_not_finished_is_solved_again():
    data = blobs(9, spread=1.5)
    tree, reach = start(data, "pca_median", depth=1)
    settings = settings_for(tree, precision=Precision(1e-12, 1))
    _, _, n_solved = run(tree, data, reach, settings, 4)
    assert n_solved[-1] > 0


def test_solvers_can_be_exchanged():
    data = blobs(10)
    tree, reach = start(data, "pca_median")
    routers, leaves = Counting(solve_logistic), Counting(solve_softmax)
    settings = settings_for(tree, solve_router=routers, solve_leaf=leaves)
    _, _, n_solved = run(tree, data, reach, settings)
    pure = n_solved[0] - routers.n_calls - leaves.n_calls
    assert routers.n_calls > 0
    assert leaves.n_calls > 0
    assert pure >= 0


# -- executors -------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("init", ["random_median", "class_clusters"])
def test_threads_equal_serial_bit_for_bit(kind, init):
    data = blobs(11, kind=kind, n_rows=200, spread=1.0, weighted=True)
    tree, reach = start(data, init)
    settings = settings_for(tree)
    outcomes = []
    for n_jobs in (1, 2, 3):
        with executor_for(n_jobs) as executor:
            outcomes.append(run(tree, data, reach, settings, 3, executor))
    for other, state, n_solved in outcomes[1:]:
        assert_same_tree(outcomes[0][0], other)
        np.testing.assert_array_equal(outcomes[0][1].loss, state.loss)
        assert outcomes[0][2] == n_solved


def test_dense_and_sparse_rows_train_the_same_tree():
    data = blobs(12, kind="csr", spread=0.3)
    dense = replace(data, X=dense_of(data.X).astype(PARAM))
    settings = None
    values = []
    for each in (data, dense):
        tree, reach = start(each, "class_clusters", depth=2)
        settings = settings_for(tree, precision=Precision(1e-7, 500))
        tree, state, _ = run(tree, each, reach, settings)
        values.append(settings.objective.total(state.loss, each.weight, tree))
    assert values[0] == pytest.approx(values[1], rel=1e-2)

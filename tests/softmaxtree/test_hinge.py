"""Margins: what they reach is the optimum of the squared hinge, and answers are what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from tests import reference
from tests.node_cases import case_of, formats, make
from tests.strategies import node_problem
from thinleaf._dtypes import PARAM
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers import hinge
from thinleaf.softmaxtree.solvers.hinge import solve_hinge, solve_hinge_router
from thinleaf.softmaxtree.solvers.problem import NodeProblem, Precision

LONG = Precision(max_iter=2000)


@pytest.fixture
def exact(monkeypatch):
    """Solve to the optimum, and leave out no weight."""
    monkeypatch.setattr(hinge, "_ENOUGH", 2e-5)
    monkeypatch.setattr(hinge, "_LEAST_GAIN", 0.0)
    monkeypatch.setattr(hinge, "_LEAST_WEIGHT", 0.0)


def case(kind: str = "dense", *, weighted: bool = False, n_rows: int = 40, ridge: float = 1.0):
    """Return rows as a float64 matrix, and a problem of four classes."""
    made = make("softmax", kind, Penalty(ridge=ridge), n_rows=n_rows, weighted=weighted)
    return made.X, made.problem


def margins(problem: NodeProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and biases as the loss has them."""
    solution = solve_hinge(problem, None, LONG)
    assert solution.converged
    assert (solution.weights.dtype, solution.bias.dtype) == (PARAM, PARAM)
    return solution.weights / hinge._SHARPNESS, solution.bias / hinge._SHARPNESS


def objective(X: np.ndarray, p: NodeProblem, W: np.ndarray, b: np.ndarray) -> float:
    return reference.squared_hinge_objective(X, p.target, p.weight, p.penalty.ridge, W, b)


# -- the optimum -----------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_its_readable_twin(exact, kind, weighted):
    X, p = case(kind, weighted=weighted, n_rows=25, ridge=5.0)
    W, b = margins(p)
    own_W, own_b, _ = reference.squared_hinge(X, p.target, p.weight, 4, p.penalty.ridge)
    np.testing.assert_allclose(W, own_W, atol=2e-4)
    np.testing.assert_allclose(b, own_b, atol=2e-4)


@formats
@pytest.mark.parametrize("ridge", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_liblinear(exact, kind, ridge, weighted):
    """scikit-learn's bias is penalised likewise, as a feature of ``intercept_scaling``."""
    X, p = case(kind, weighted=weighted, ridge=ridge, n_rows=80)
    W, b = margins(p)
    length = np.sqrt(p.weight @ (X**2).sum(axis=1) / p.weight.sum())
    svc = LinearSVC(
        C=1.0 / ridge, dual=True, intercept_scaling=length, tol=1e-7, max_iter=100_000
    ).fit(X, p.target, sample_weight=p.weight)
    scale = np.abs(svc.coef_).max()
    np.testing.assert_allclose(W, svc.coef_.T, atol=1e-3 * scale)
    np.testing.assert_allclose(b, svc.intercept_, atol=1e-3 * max(np.abs(b).max(), 1.0))


@formats
def test_it_reports_the_objective_that_it_reaches(exact, kind):
    """No duality gap: the value of the dual, which is reported, is that of the primal."""
    X, p = case(kind, weighted=True)
    W, b = margins(p)
    assert solve_hinge(p, None, LONG).objective == pytest.approx(objective(X, p, W, b), rel=1e-4)


@formats
def test_the_dual_never_promises_more_than_the_primal_has(kind):
    """Also far from the optimum: the gap has a sign."""
    X, p = case(kind, weighted=True)
    for n_steps in (1, 2, 5):
        solution = solve_hinge(p, None, Precision(max_iter=n_steps))
        W, b = solution.weights / hinge._SHARPNESS, solution.bias / hinge._SHARPNESS
        assert solution.objective <= objective(X, p, W, b) * (1 + 1e-5)


@formats
def test_optimality_conditions(exact, kind):
    """Weights are the sum of the rows within the margin, by how much they miss it."""
    X, p = case(kind, weighted=True)
    W, b = margins(p)
    y = np.where(p.target[:, None] == np.arange(4), 1.0, -1.0)
    missing = np.maximum(1.0 - y * (X @ W + b), 0.0)
    alpha = 2.0 * p.weight[:, None] * missing / p.penalty.ridge
    np.testing.assert_allclose(W, X.T @ (alpha * y), atol=5e-3)
    mean_square = p.weight @ (X**2).sum(axis=1) / p.weight.sum()
    np.testing.assert_allclose(b, mean_square * (alpha * y).sum(axis=0), atol=5e-3)


@formats
def test_as_it_is_used_it_is_near_the_optimum(kind, monkeypatch):
    """Loose, so that it is quick: but the answers are those of the optimum for nearly all rows."""
    X, p = case(kind, n_rows=150, ridge=10.0)
    loose = solve_hinge(p)
    monkeypatch.setattr(hinge, "_ENOUGH", 1e-4)
    monkeypatch.setattr(hinge, "_LEAST_GAIN", 0.0)
    tight = solve_hinge(p, None, LONG)
    assert loose.n_iter < tight.n_iter
    answers = [(X @ s.weights + s.bias).argmax(axis=1) for s in (loose, tight)]
    assert np.mean(answers[0] == answers[1]) > 0.9


def test_dense_and_sparse_columns_have_one_solution(exact):
    X, p = case("csr", weighted=True)
    dense = case_of("softmax", "dense", X, p.target, p.weight, p.penalty).problem
    for a, b in zip(margins(p), margins(dense), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


# -- weights, targets, ends ------------------------------------------------------------------------


@formats
def test_a_weight_is_a_repetition(exact, kind):
    X, p = case(kind)
    times = np.random.default_rng(0).integers(1, 4, size=p.target.size)
    weighted = replace(p, weight=times.astype(float))
    repeated = node_problem(
        np.repeat(X, times, axis=0), np.repeat(p.target, times), n_targets=4, kind=kind,
        penalty=p.penalty,
    )  # fmt: skip
    for a, b in zip(margins(weighted), margins(repeated), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@formats
@pytest.mark.parametrize("solve", [solve_hinge, solve_hinge_router])
def test_rows_without_weight_change_nothing(exact, kind, solve):
    X, p = case(kind, weighted=True)
    target = p.target % 2 if solve is solve_hinge_router else p.target
    n_targets = 2 if solve is solve_hinge_router else 4
    ghosts = 5.0 * np.random.default_rng(1).standard_normal((10, X.shape[1]))
    options = {"n_targets": n_targets, "penalty": p.penalty, "kind": kind}
    alone = node_problem(X, target, weight=p.weight, **options)
    among = node_problem(
        np.vstack([ghosts, X]),
        np.concatenate([np.zeros(10, int), target]),
        weight=np.concatenate([np.zeros(10), p.weight]),
        **options,
    )
    a, b = (solve(problem, None, LONG) for problem in (alone, among))
    np.testing.assert_allclose(a.weights, b.weights, atol=2e-3)
    np.testing.assert_allclose(a.bias, b.bias, atol=2e-3)
    assert a.objective == pytest.approx(b.objective, rel=1e-3)


@formats
def test_weights_and_ridge_are_on_one_scale(exact, kind):
    _, p = case(kind, weighted=True)
    scaled = replace(p, weight=p.weight * 7.0, penalty=Penalty(ridge=p.penalty.ridge * 7.0))
    for a, b in zip(margins(p), margins(scaled), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_more_ridge_gives_smaller_weights(exact):
    norms = [np.linalg.norm(margins(case(ridge=ridge)[1])[0]) for ridge in (0.5, 5.0, 50.0, 1e3)]
    assert norms == sorted(norms, reverse=True)


def test_small_weights_are_left_out(monkeypatch):
    """Those that move the score of a usual row by less than a share of the margin."""
    X, p = case()
    monkeypatch.setattr(hinge, "_LEAST_WEIGHT", 0.0)
    every = solve_hinge(p).weights
    monkeypatch.setattr(hinge, "_LEAST_WEIGHT", 0.5)
    kept = solve_hinge(p).weights
    length = np.sqrt((X**2).sum(axis=1).mean())
    small = np.abs(every) * length < 0.5 * hinge._SHARPNESS
    assert small.any()
    assert not small.all()
    np.testing.assert_array_equal(kept, np.where(small, 0.0, every))


@formats
def test_deterministic_and_without_side_effects(kind):
    X, p = case(kind, weighted=True)
    before = p.weight.copy()
    a, b = solve_hinge(p), solve_hinge(p, (np.ones((X.shape[1], 4), PARAM), np.ones(4, PARAM)))
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.bias, b.bias)
    np.testing.assert_array_equal(p.weight, before)


@formats
def test_nothing_to_tell_apart(kind):
    X, p = case(kind)
    for problem in (
        replace(p, target=np.zeros_like(p.target), n_targets=1),
        replace(p, weight=np.zeros_like(p.weight)),
    ):
        solution = solve_hinge(problem)
        assert solution.weights.shape == (X.shape[1], problem.n_targets)
        assert not solution.weights.any()
        assert not solution.bias.any()
        assert solution.converged


@formats
def test_rows_of_zeros(kind):
    """All that can be learnt is which class is the most frequent."""
    target = np.array([0, 1, 1, 1, 2, 1])
    problem = node_problem(
        np.zeros((6, 3)), target, n_targets=3, penalty=Penalty(ridge=1.0), kind=kind
    )
    solution = solve_hinge(problem)
    assert np.isfinite(solution.bias).all()
    assert not solution.weights.any()


def test_without_ridge_it_ends(exact):
    """A bias and weights that separate the rows are found all the same."""
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    problem = node_problem(X, np.array([0, 0, 1, 1]), penalty=Penalty())
    W, b = margins(problem)
    np.testing.assert_array_equal((X @ W + b).argmax(axis=1), problem.target)


def test_passes_are_limited():
    """Solving it again would give the same: the dual starts from nothing."""
    _, p = case(n_rows=150, ridge=1e-3)
    solution = solve_hinge(p, None, Precision(max_iter=1))
    assert solution.converged
    assert solution.n_iter == math.ceil(hinge._PASSES)


def test_passes_end_where_they_gain_little(monkeypatch):
    """A loss that is near its optimum is not brought nearer."""
    X, p = case(n_rows=150, ridge=0.1)
    monkeypatch.setattr(hinge, "_ENOUGH", 0.0)
    passes, reached = [], []
    for least in (0.3, 0.003, 0.0):
        monkeypatch.setattr(hinge, "_LEAST_GAIN", least)
        passes.append(solve_hinge(p, None, Precision(max_iter=100)).n_iter)
        reached.append(objective(X, p, *margins(p)))
    assert passes[0] < passes[1] < passes[2]
    assert reached[0] > reached[1] >= reached[2] > 0.0


# -- routers ---------------------------------------------------------------------------------------


def router_case(kind: str, seed: int = 0):
    made = make("logistic", kind, Penalty(ridge=1.0), n_rows=60, seed=seed, weighted=True)
    return made.X, made.problem


@formats
def test_a_router_is_the_leaf_of_two_classes(exact, kind):
    """Positive scores are those of the right child; the other class has the opposite margins."""
    X, p = router_case(kind)
    relative = replace(p, weight=p.weight / p.weight.mean())
    router, leaf = solve_hinge_router(p, None, LONG), solve_hinge(relative, None, LONG)
    assert router.weights.shape == (X.shape[1], 1)
    np.testing.assert_allclose(router.weights[:, 0], leaf.weights[:, 1], atol=2e-3)
    np.testing.assert_allclose(leaf.weights[:, 0], -leaf.weights[:, 1], atol=2e-3)
    np.testing.assert_allclose(leaf.bias[0], -leaf.bias[1], atol=2e-3)
    right = X @ router.weights[:, 0] + router.bias[0] > 0.0
    assert p.weight[right == (p.target == 1)].sum() > 0.7 * p.weight.sum()


@formats
def test_left_and_right_are_alike(exact, kind):
    _, p = router_case(kind)
    a = solve_hinge_router(p, None, LONG)
    b = solve_hinge_router(replace(p, target=1 - p.target), None, LONG)
    np.testing.assert_allclose(a.weights, -b.weights, atol=2e-3)
    np.testing.assert_allclose(a.bias, -b.bias, atol=2e-3)


@formats
def test_how_much_all_rows_lose_does_not_matter(kind):
    _, p = router_case(kind)
    a = solve_hinge_router(p)
    b = solve_hinge_router(replace(p, weight=p.weight * 2.0**-10))
    np.testing.assert_array_equal(a.weights, b.weights)


@formats
@pytest.mark.parametrize("child", [0, 1])
def test_a_router_of_rows_that_all_go_one_way(kind, child):
    X, p = router_case(kind)
    weight = np.where(p.target == child, p.weight, 0.0)
    solution = solve_hinge_router(replace(p, weight=weight))
    scores = X @ solution.weights[:, 0] + solution.bias[0]
    assert np.all((scores >= 0.0) == bool(child))

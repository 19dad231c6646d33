"""Problems with an offset: solutions are what is added to scores that rows have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.strategies import node_problem
from thinleaf._dtypes import PARAM
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers import hinge
from thinleaf.softmaxtree.solvers.hinge import solve_hinge, solve_hinge_router
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic

KINDS = pytest.mark.parametrize("kind", ["dense", "csr"])
FINE = Precision(1e-7, 200)


def problem_of(kind: str, k: int):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.7)
    target = rng.permutation(np.arange(60) % k)
    problem = node_problem(X, target, n_targets=k, penalty=Penalty(ridge=1.0), kind=kind)
    return X, problem


@KINDS
@pytest.mark.parametrize(
    ("solve", "k"),
    [(solve_softmax, 3), (solve_logistic, 2), (solve_hinge, 3), (solve_hinge_router, 2)],
)
def test_no_offset_is_an_offset_of_zero(monkeypatch, kind, solve, k):
    monkeypatch.setattr(hinge, "_LEAST_WEIGHT", 0.0)
    _, problem = problem_of(kind, k)
    outputs = 1 if k == 2 else k
    zero = replace(problem, offset=np.zeros((60, outputs), PARAM))
    plain, added = solve(problem, None, FINE), solve(zero, None, FINE)
    np.testing.assert_allclose(added.weights, plain.weights, atol=2e-3)


@KINDS
def test_a_softmax_added_to_scores_is_the_best_one(kind):
    X, problem = problem_of(kind, 3)
    offset = np.random.default_rng(1).standard_normal((60, 3))
    solution = solve_softmax(replace(problem, offset=offset.astype(PARAM)), None, FINE)

    def objective(W, b):
        scores = offset + X @ W + b
        top = scores.max(axis=1)
        log_sum = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        return (log_sum - scores[np.arange(60), problem.target]).sum() + 0.5 * (W**2).sum()

    best = objective(solution.weights.astype(float), solution.bias.astype(float))
    assert solution.objective == pytest.approx(best, rel=1e-3)
    rng = np.random.default_rng(2)
    for _ in range(20):
        step = 0.05 * rng.standard_normal(solution.weights.shape)
        assert objective(solution.weights + step, solution.bias) >= best - 1e-3


@KINDS
def test_a_router_added_to_scores_is_the_best_one(kind):
    X, problem = problem_of(kind, 2)
    offset = np.random.default_rng(1).standard_normal(60)
    solution = solve_logistic(replace(problem, offset=offset[:, None].astype(PARAM)), None, FINE)
    side = 2.0 * problem.target - 1.0

    def objective(w, b):
        return np.log1p(np.exp(-side * (offset + X @ w + b))).sum() + 0.5 * (w**2).sum()

    w, b = solution.weights[:, 0].astype(float), float(solution.bias[0])
    best = objective(w, b)
    rng = np.random.default_rng(2)
    for _ in range(20):
        assert objective(w + 0.05 * rng.standard_normal(w.shape), b) >= best - 1e-4


@KINDS
def test_margins_that_are_there_need_nothing(kind):
    _, problem = problem_of(kind, 3)
    offset = np.full((60, 3), -8.0, PARAM)  # scores are margins, sharpened
    offset[np.arange(60), problem.target] = 8.0
    solution = solve_hinge(replace(problem, offset=offset), None, FINE)
    assert not solution.weights.any()


@KINDS
@pytest.mark.parametrize("solve", [solve_softmax, solve_hinge])
def test_what_is_held_moves_less(kind, solve):
    _, problem = problem_of(kind, 3)
    if kind == "csr" and solve is solve_softmax:
        pytest.skip("softmaxes of sparse rows hold all classes alike")
    zero = replace(problem, offset=np.zeros((60, 3), PARAM))
    free = solve(zero, None, FINE).weights
    held = solve(replace(zero, hold=np.array([100.0, 1.0, 1.0], PARAM)), None, FINE).weights
    assert np.abs(held[:, 0]).sum() < 0.5 * np.abs(free[:, 0]).sum()

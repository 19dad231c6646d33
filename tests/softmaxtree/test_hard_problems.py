"""Node solvers on data and weights that break solvers: always finite, never worse than nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests import reference
from tests.node_cases import (
    PENALTIES,
    SOLVERS,
    TIGHT,
    assert_sane,
    case_of,
    formats,
    make,
    solvers,
)
from tests.strategies import node_problem
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import Precision


def separable(solver: str) -> tuple[np.ndarray, np.ndarray]:
    k = SOLVERS[solver].n_targets
    rng = np.random.default_rng(8)
    target = np.arange(40) % k
    X = rng.standard_normal((40, 5))
    X[:, :k] += 20.0 * np.eye(k)[target]
    return X, target


def constant_column(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    X[:, 0] = 7.0
    return X, target


def zero_column(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    X[:, 0] = 0.0
    return X, target


def equal_columns(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    X[:, 1] = X[:, 2] = X[:, 0]
    return X, target


def equal_rows(solver: str) -> tuple[np.ndarray, np.ndarray]:
    _, target = separable(solver)
    return np.ones((40, 5)), target


def huge_values(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    X[:, 0] *= 1e6
    return X, target


def huge_values_everywhere(solver: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    return 1e6 * rng.standard_normal((40, 5)), np.arange(40) % SOLVERS[solver].n_targets


def tiny_values(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    return 1e-6 * X, target


def no_features(solver: str) -> tuple[np.ndarray, np.ndarray]:
    X, target = separable(solver)
    return X[:, :0], target


def more_features_than_rows(solver: str) -> tuple[np.ndarray, np.ndarray]:
    k = SOLVERS[solver].n_targets
    return np.random.default_rng(10).standard_normal((k, 30)), np.arange(k)


HARD = (
    separable,
    constant_column,
    zero_column,
    equal_columns,
    equal_rows,
    huge_values,
    huge_values_everywhere,
    tiny_values,
    no_features,
    more_features_than_rows,
)


@solvers
@formats
@pytest.mark.parametrize("data", HARD, ids=lambda f: f.__name__)
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(l1=0.01), Penalty(l1=0.01, ridge=1.0)])
def test_hard_data(solver, kind, data, penalty):
    case = case_of(solver, kind, *data(solver), penalty=penalty)
    for precision in (Precision(), Precision(tol=1e-7, max_iter=100)):
        solution = case.solve(precision=precision)
        assert_sane(case, solution)
        reached = case.objective(solution.weights, solution.bias)
        total = case.problem.weight.sum()
        assert solution.objective == pytest.approx(reached, rel=1e-3, abs=1e-3 * total)


@solvers
@formats
def test_separable_data_without_penalty_is_learned(solver, kind):
    case = case_of(solver, kind, *separable(solver))
    solution = case.solve()
    assert_sane(case, solution)
    assert solution.objective < 1e-2 * case.null()
    scores = case.X @ solution.weights + solution.bias
    predicted = scores.argmax(axis=1) if solver == "softmax" else (scores[:, 0] >= 0.0).astype(int)
    np.testing.assert_array_equal(predicted, case.problem.target)


@solvers
@formats
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(l1=0.1, ridge=0.1)])
@pytest.mark.parametrize(
    "weight",
    [
        np.geomspace(1e-12, 1e12, 60),
        np.where(np.arange(60) < 20, 1e12, 1.0),
        np.where(np.arange(60) < 20, 1e-12, 1.0),
        np.where(np.arange(60) % 3 == 0, 0.0, 1.0),
        np.full(60, 1e12),
        np.full(60, 1e-12),
    ],
    ids=["all magnitudes", "some huge", "some tiny", "some zero", "all huge", "all tiny"],
)
def test_weights_of_any_magnitude(solver, kind, penalty, weight):
    case = make(solver, kind, penalty, n_rows=60)
    case = case_of(solver, kind, case.X, case.problem.target, weight, penalty)
    for precision in (Precision(), TIGHT):
        solution = case.solve(precision=precision)
        assert_sane(case, solution)


@solvers
@formats
def test_rows_without_weight_do_not_matter(solver, kind):
    case = make(solver, kind, PENALTIES["elastic net"], n_rows=90)
    p = case.problem
    weight = np.ones(90)
    weight[60:] = 0.0
    a = case_of(solver, kind, case.X, p.target, weight, p.penalty).solve()
    b = case_of(solver, kind, case.X[:60], p.target[:60], None, p.penalty).solve()
    assert a.objective == pytest.approx(b.objective, rel=2e-5)
    np.testing.assert_allclose(a.weights, b.weights, atol=2e-2)


@formats
@pytest.mark.parametrize("present", [0, 1])
def test_router_of_one_class_is_constant(kind, present):
    X = np.random.default_rng(11).standard_normal((10, 3))
    for weight in (None, np.full(10, 1e-12)):
        case = case_of("logistic", kind, X, np.full(10, present), weight)
        solution = case.solve()
        assert not solution.weights.any()
        assert (solution.bias[0] >= 0.0) == (present == 1)
        assert solution.converged


@formats
def test_router_whose_other_class_has_no_weight_is_constant(kind):
    X = np.random.default_rng(12).standard_normal((10, 3))
    target = np.arange(10) % 2
    solution = case_of("logistic", kind, X, target, 1.0 - target).solve()
    assert not solution.weights.any()
    assert solution.bias[0] < 0.0


@formats
def test_leaf_of_one_class_is_zero(kind):
    X = np.random.default_rng(13).standard_normal((10, 3))
    problem = node_problem(X, np.zeros(10), n_targets=1, kind=kind)
    solution = solve_softmax(problem, None, TIGHT)
    assert solution.weights.shape == (3, 1)
    assert not solution.weights.any()
    assert (solution.objective, solution.converged) == (0.0, True)


@formats
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(l1=0.1, ridge=0.1)])
def test_leaf_with_a_class_that_has_no_weight(kind, penalty):
    case = make("softmax", kind, penalty)
    p = case.problem
    case = case_of("softmax", kind, case.X, p.target, (p.target != 2).astype(float), penalty)
    solution = case.solve()
    assert_sane(case, solution)
    probabilities = [reference.softmax(x @ solution.weights + solution.bias) for x in case.X]
    assert np.mean(probabilities, axis=0)[2] < 1e-2


@formats
def test_leaf_where_one_class_has_all_the_weight(kind):
    case = make("softmax", kind, Penalty(l1=0.1))
    p = case.problem
    case = case_of("softmax", kind, case.X, p.target, (p.target == 1).astype(float), p.penalty)
    solution = case.solve()
    assert_sane(case, solution)
    assert np.all((case.X @ solution.weights + solution.bias).argmax(axis=1) == 1)


@solvers
@formats
def test_no_weight_at_all(solver, kind):
    case = make(solver, kind, Penalty(l1=0.1), n_rows=12)
    case = case_of(solver, kind, case.X, case.problem.target, np.zeros(12), Penalty(l1=0.1))
    solution = case.solve()
    assert_sane(case, solution)
    assert not solution.weights.any()


@solvers
@formats
def test_one_row(solver, kind):
    for target in range(SOLVERS[solver].n_targets):
        solution = (case := case_of(solver, kind, [[1.0, -2.0]], [target])).solve()
        if solver == "softmax":
            assert_sane(case, solution)
            assert (case.X @ solution.weights + solution.bias).argmax() == target
        else:
            assert (solution.bias[0] >= 0.0) == (target == 1)

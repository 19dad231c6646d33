"""Node solvers: what they reach is what they report, and it is the optimum.

Both solvers are held to the same contract on dense and on sparse rows. The yardstick is a float64
minimiser of the same objective, and scikit-learn where it has the penalty.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

from tests import reference
from tests.node_cases import (
    PENALTIES,
    SOLVERS,
    TIGHT,
    Case,
    assert_sane,
    case_of,
    formats,
    make,
    penalties,
    solvers,
)
from thinleaf._dtypes import PARAM
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers import router
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import Precision

# -- the optimum -----------------------------------------------------------------------------------


@solvers
@formats
@penalties
@pytest.mark.parametrize("weighted", [False, True])
def test_reaches_the_minimum_and_says_so(solver, kind, penalty, weighted):
    case = make(solver, kind, PENALTIES[penalty], weighted=weighted)
    solution = case.solve()
    assert_sane(case, solution)
    assert solution.converged
    reached = case.objective(solution.weights, solution.bias)
    assert solution.objective == pytest.approx(reached, rel=1e-5)
    assert reached == pytest.approx(case.minimum(), rel=2e-5)


@solvers
@formats
@penalties
def test_optimality_conditions(solver, kind, penalty):
    """0 lies in the subdifferential: exact zeros where ℓ₁ wins, no slope elsewhere."""
    case = make(solver, kind, PENALTIES[penalty], seed=1)
    solution = case.solve()
    p = case.problem
    W, b = solution.weights.astype(float), solution.bias.astype(float)
    _, slope, slope_b = case.solver.loss(case.X, p.target, p.weight, W, b)
    slope = slope + p.penalty.ridge * W
    excess = np.where(
        W == 0.0,
        np.maximum(np.abs(slope) - p.penalty.l1, 0.0),
        np.abs(slope + p.penalty.l1 * np.sign(W)),
    )
    _, at_zero, _ = case.solver.loss(case.X, p.target, p.weight, np.zeros_like(W), np.zeros_like(b))
    scale = np.abs(at_zero).max()
    assert excess.max() <= 5e-3 * scale
    assert np.abs(slope_b).max() <= 5e-3 * scale


@solvers
@formats
def test_a_penalty_beyond_every_slope_gives_no_weights(solver, kind):
    case = make(solver, kind, Penalty(l1=1e4))
    solution = case.solve()
    assert not solution.weights.any()
    assert case.objective(solution.weights, solution.bias) == pytest.approx(case.null(), rel=1e-5)


@solvers
@pytest.mark.parametrize("penalty", ["l1", "ridge", "elastic net"])
def test_dense_and_sparse_columns_have_one_solution(solver, penalty):
    dense = make(solver, "csr", PENALTIES[penalty])
    X, p = dense.X, dense.problem
    a = case_of(solver, "dense", X, p.target, p.weight, p.penalty)
    b = case_of(solver, "csr", X, p.target, p.weight, p.penalty)
    first, second = a.solve(), b.solve()
    assert first.objective == pytest.approx(second.objective, rel=2e-5)
    if solver == "logistic" or PENALTIES[penalty].ridge:  # else the optimum need not be one point
        np.testing.assert_allclose(first.weights, second.weights, atol=2e-2)


def test_dense_columns_beyond_the_hessian_limit():
    """Problems with more features than fit an explicit Hessian give the same answer."""
    case = make("logistic", "dense", Penalty(l1=0.5, ridge=0.5), n_rows=40, n_features=1100)
    solution = case.solve()
    assert_sane(case, solution)
    sparse = case_of(
        "logistic", "csr", case.X, case.problem.target, penalty=case.problem.penalty
    ).solve()
    assert solution.objective == pytest.approx(sparse.objective, rel=1e-4)
    assert solution.objective == pytest.approx(
        case.objective(solution.weights, solution.bias), rel=1e-5
    )


def test_dense_rows_of_more_cells_than_can_be_numbered(monkeypatch):
    """They are solved as a softmax of two classes, with the same answer."""
    case = make("logistic", "dense", Penalty(l1=0.5, ridge=0.5), n_rows=40, n_features=1100)
    usual = case.solve()
    monkeypatch.setattr(router, "_MOST_CELLS", 1000)
    solution = case.solve()
    assert case.objective(solution.weights, solution.bias) == pytest.approx(
        case.objective(usual.weights, usual.bias), rel=1e-3
    )
    again = case.solve((solution.weights[:, 0], float(solution.bias[0])))
    assert again.objective == pytest.approx(solution.objective, rel=1e-3)


@formats
def test_rows_of_huge_weight_do_not_hide_what_the_others_lose(kind):
    """Once the heavy rows are right, the others are still solved."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4)).astype(PARAM)
    target = (X[:, 0] + 0.3 * rng.standard_normal(300) > 0.0).astype(np.int32)
    heavy = np.abs(X[:, 0]) > 1.5
    target[heavy] = X[heavy, 0] > 0.0
    weight = np.where(heavy, 1e7, 1.0)
    case = case_of("logistic", kind, X, target, weight=weight, penalty=Penalty(0.0, 1e-3))
    usual, tight = (case.solve(None, Precision(tol, 400)) for tol in (1e-4, 1e-10))
    reached, least = (case.objective(s.weights, s.bias) for s in (usual, tight))
    assert reached <= 1.1 * least


# -- scikit-learn ----------------------------------------------------------------------------------


def fit_sklearn(case: Case, l1_ratio: float = 0.0, **options) -> LogisticRegression:
    """Fit scikit-learn's model; since 1.8, ``l1_ratio`` alone chooses the penalty."""
    if l1_ratio and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        options["penalty"] = "l1" if options["solver"] == "liblinear" else "elasticnet"
    if l1_ratio and options.get("penalty") != "l1":
        options["l1_ratio"] = l1_ratio
    model = LogisticRegression(tol=1e-10, max_iter=20000, **options)
    return model.fit(case.X, case.problem.target, sample_weight=case.problem.weight)


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_router_is_no_worse_than_liblinear(kind, weighted):
    case = make("logistic", kind, Penalty(l1=1.5), weighted=weighted)
    # liblinear penalises its intercept, so that is made a small weight on a large constant
    theirs = fit_sklearn(
        case, 1.0, solver="liblinear", C=1 / 1.5, intercept_scaling=1e4, random_state=0
    )
    value = case.objective(theirs.coef_.T, theirs.intercept_)
    ours = case.solve()
    reached = case.objective(ours.weights, ours.bias)
    assert reached <= value * (1.0 + 1e-5)
    assert reached == pytest.approx(value, rel=1e-3)


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_router_with_ridge_equals_lbfgs(kind, weighted):
    case = make("logistic", kind, Penalty(ridge=2.0), weighted=weighted)
    theirs = fit_sklearn(case, C=0.5)
    ours = case.solve()
    reached = case.objective(ours.weights, ours.bias)
    assert reached == pytest.approx(case.objective(theirs.coef_.T, theirs.intercept_), rel=1e-5)
    score = case.X @ ours.weights[:, 0] + ours.bias[0]
    np.testing.assert_allclose(score, theirs.decision_function(case.X), atol=2e-2)


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_with_ridge_has_the_probabilities_of_lbfgs(kind, weighted):
    case = make("softmax", kind, Penalty(ridge=2.0), weighted=weighted)
    theirs = fit_sklearn(case, C=0.5)
    ours = case.solve()
    reached = case.objective(ours.weights, ours.bias)
    assert reached == pytest.approx(case.objective(theirs.coef_.T, theirs.intercept_), rel=1e-5)
    probabilities = [reference.softmax(x @ ours.weights + ours.bias) for x in case.X]
    np.testing.assert_allclose(probabilities, theirs.predict_proba(case.X), atol=5e-3)


@formats
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_leaf_is_no_worse_than_saga(kind, l1_ratio):
    case = make("softmax", kind, Penalty(l1=l1_ratio, ridge=1.0 - l1_ratio), n_rows=100)
    theirs = fit_sklearn(case, l1_ratio, solver="saga", C=1.0, random_state=0)
    value = case.objective(theirs.coef_.T, theirs.intercept_)
    ours = case.solve()
    reached = case.objective(ours.weights, ours.bias)
    assert reached <= value * (1.0 + 1e-5)
    assert reached == pytest.approx(value, rel=1e-3)


# -- weights, warm starts, precision, determinism --------------------------------------------------


@solvers
@formats
def test_a_weight_is_a_repetition(solver, kind):
    rng = np.random.default_rng(3)
    case = make(solver, kind, PENALTIES["elastic net"], n_rows=80)
    count = rng.integers(0, 4, size=80)
    count[: SOLVERS[solver].n_targets] = 1
    p = case.problem
    weighted = case_of(solver, kind, case.X, p.target, count.astype(float), p.penalty)
    repeated = case_of(
        solver, kind, case.X.repeat(count, axis=0), p.target.repeat(count), penalty=p.penalty
    )
    a, b = weighted.solve(), repeated.solve()
    assert a.objective == pytest.approx(b.objective, rel=2e-5)
    np.testing.assert_allclose(a.weights, b.weights, atol=2e-2)


@solvers
@formats
@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e12])
def test_scaling_weights_and_penalties_together_changes_nothing(solver, kind, factor):
    penalty = PENALTIES["elastic net"]
    case = make(solver, kind, penalty)
    p = case.problem
    scaled = case_of(
        solver,
        kind,
        case.X,
        p.target,
        p.weight * factor,
        Penalty(penalty.l1 * factor, penalty.ridge * factor),
    )
    a, b = case.solve(), scaled.solve()
    assert b.objective == pytest.approx(a.objective * factor, rel=2e-5)
    np.testing.assert_allclose(a.weights, b.weights, atol=2e-2)


@solvers
@formats
@penalties
def test_a_warm_start_at_the_optimum_stays(solver, kind, penalty):
    case = make(solver, kind, PENALTIES[penalty], seed=2)
    first = case.solve()
    bias = first.bias if solver == "softmax" else float(first.bias[0])
    weights = first.weights if solver == "softmax" else first.weights[:, 0]
    before = weights.copy()
    again = case.solve((weights, bias))
    np.testing.assert_array_equal(weights, before)
    assert again.converged
    assert again.n_iter <= (10 if solver == "softmax" else 2)
    assert again.objective <= first.objective * (1.0 + 1e-6)
    np.testing.assert_allclose(again.weights, first.weights, atol=2e-2)


@solvers
@formats
def test_a_warm_start_anywhere_leads_to_the_optimum(solver, kind):
    case = make(solver, kind, PENALTIES["elastic net"])
    rng = np.random.default_rng(4)
    start = 3.0 * rng.standard_normal((case.X.shape[1], case.solver.n_outputs)).astype(PARAM)
    bias = np.full(case.solver.n_outputs, -2.0, PARAM)
    warm = (start, bias) if solver == "softmax" else (start[:, 0], float(bias[0]))
    assert case.solve(warm).objective == pytest.approx(case.solve().objective, rel=2e-5)


@solvers
@formats
@pytest.mark.parametrize("scale", [10.0, 100.0, 1e4])
def test_a_misleading_warm_start_is_no_worse_than_none(solver, kind, scale):
    """A node's problem may have turned around since its old weights were learned."""
    for seed in range(8):
        case = make(solver, kind, Penalty(0.01, 0.01), seed=seed, n_rows=60)
        rng = np.random.default_rng(seed)
        start = (scale * rng.standard_normal((6, case.solver.n_outputs))).astype(PARAM)
        bias = np.zeros(case.solver.n_outputs, PARAM)
        warm = (start, bias) if solver == "softmax" else (start[:, 0], 0.0)
        assert_sane(case, case.solve(warm, Precision()))


@solvers
@formats
def test_more_iterations_never_hurt(solver, kind):
    case = make(solver, kind, PENALTIES["weak l1"])
    values = [
        case.solve(precision=Precision(tol=1e-9, max_iter=n)).objective for n in (1, 2, 4, 8, 16)
    ]
    assert values[0] <= case.null() * (1.0 + 1e-6)
    assert all(later <= earlier * (1.0 + 1e-6) for earlier, later in pairwise(values))


@solvers
@formats
def test_running_out_of_iterations_is_reported(solver, kind):
    case = make(solver, kind, PENALTIES["weak l1"])
    solution = case.solve(precision=Precision(tol=1e-12, max_iter=1))
    assert not solution.converged
    assert solution.n_iter == (10 if (solver, kind) == ("softmax", "dense") else 1)


@solvers
@formats
@pytest.mark.parametrize("penalty", ["l1", "elastic net"])
def test_stops_when_rounding_leaves_nothing_to_gain(solver, kind, penalty):
    """Steps that change nothing are not taken until ``max_iter``."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        case = make(
            solver,
            kind,
            PENALTIES[penalty],
            seed=seed,
            n_rows=int(rng.integers(8, 150)),
            n_features=int(rng.integers(1, 8)),
            weighted=bool(seed % 2),
            noise=float(rng.uniform(0.1, 2.0)),
        )
        assert case.solve().converged, f"seed {seed}"


@solvers
@formats
def test_deterministic_and_without_side_effects(solver, kind):
    case = make(solver, kind, PENALTIES["elastic net"], weighted=True)
    p = case.problem
    copies = [np.copy(a) for a in (p.target, p.weight, np.asarray(p.X[0]))]
    a, b = case.solve(), case.solve()
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.bias, b.bias)
    assert (a.objective, a.n_iter) == (b.objective, b.n_iter)
    for before, after in zip(copies, (p.target, p.weight, p.X[0]), strict=True):
        np.testing.assert_array_equal(before, after)


@formats
def test_softmax_of_two_classes_is_logistic_with_twice_the_ridge(kind):
    """W = ±w/2, so the ridge on W is half that on w."""
    case = make("logistic", kind, Penalty(ridge=1.0))
    p = replace(case.problem, penalty=Penalty(ridge=2.0))
    two = solve_softmax(p, None, TIGHT)
    one = case.solve()
    assert two.objective == pytest.approx(one.objective, rel=2e-5)
    np.testing.assert_allclose(two.weights[:, 1] - two.weights[:, 0], one.weights[:, 0], atol=2e-2)


# -- the dual, to a rough precision ----------------------------------------------------------------

ROUGH = Precision(tol=1e-3, max_iter=50)


@pytest.mark.parametrize("penalty", ["ridge", "elastic net"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_is_near_the_minimum(penalty, weighted, seed):
    case = make("softmax", "csr", PENALTIES[penalty], weighted=weighted, seed=seed)
    solution = case.solve(precision=ROUGH)
    assert_sane(case, solution)
    assert solution.converged
    reached = case.objective(solution.weights, solution.bias)
    assert solution.objective == pytest.approx(reached, rel=1e-5)
    assert case.minimum() <= reached * (1 + 1e-6)
    assert reached <= case.minimum() + 2e-3 * case.null()


def test_the_dual_goes_on_from_a_solution():
    case = make("softmax", "csr", PENALTIES["elastic net"])
    first = case.solve()
    again = case.solve((first.weights, first.bias), precision=ROUGH)
    assert again.n_iter <= 2
    assert again.objective == pytest.approx(first.objective, rel=1e-3)


def test_the_dual_corrects_what_is_known():
    """With scores to start from, it finds what a Newton method finds."""
    case = make("softmax", "csr", PENALTIES["ridge"])
    p = case.problem
    offset = np.random.default_rng(0).normal(size=(p.target.size, p.n_targets)).astype(PARAM)
    known = replace(p, offset=offset)
    rough, tight = (solve_softmax(known, None, precision) for precision in (ROUGH, TIGHT))
    assert tight.objective * (1 - 1e-5) <= rough.objective <= tight.objective * 1.01

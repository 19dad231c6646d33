"""Node problems beside their float64 twins, for both solvers on dense and sparse rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests import reference
from tests.strategies import FORMATS, node_problem
from thinleaf._dtypes import PARAM
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic

TIGHT = Precision(tol=1e-7, max_iter=500)

PENALTIES = {
    "l1": Penalty(l1=1.0),
    "ridge": Penalty(ridge=1.0),
    "elastic net": Penalty(l1=0.5, ridge=0.5),
    "weak l1": Penalty(l1=0.01),
    "strong l1": Penalty(l1=20.0),
}


@dataclass(frozen=True)
class Kind:
    """A solver with its reference loss."""

    solve: object
    loss: object
    n_targets: int

    @property
    def n_outputs(self) -> int:
        return 1 if self.n_targets == 2 else self.n_targets


SOLVERS = {
    "logistic": Kind(solve_logistic, reference.logistic_loss, 2),
    "softmax": Kind(solve_softmax, reference.softmax_loss, 4),
}

solvers = pytest.mark.parametrize("solver", SOLVERS)
formats = pytest.mark.parametrize("kind", FORMATS)
penalties = pytest.mark.parametrize("penalty", PENALTIES)


@dataclass(frozen=True)
class Case:
    """A node problem beside its rows as a float64 matrix."""

    solver: Kind
    X: np.ndarray
    problem: NodeProblem

    def solve(self, warm_start=None, precision: Precision = TIGHT) -> NodeSolution:
        return self.solver.solve(self.problem, warm_start, precision)

    def objective(self, W: np.ndarray, b: np.ndarray) -> float:
        """Return the penalised loss at some weights, in float64."""
        loss, _, _ = self.solver.loss(
            self.X, self.problem.target, self.problem.weight, W.astype(float), b.astype(float)
        )
        return loss + reference.penalty_of(self.problem.penalty, W)

    def null(self) -> float:
        """Return the objective of the best constant model."""
        mass = np.bincount(
            self.problem.target, weights=self.problem.weight, minlength=self.problem.n_targets
        )
        mass = mass[mass > 0.0]
        return float(-(mass * np.log(mass / mass.sum())).sum())

    def minimum(self) -> float:
        p = self.problem
        n_outputs = self.solver.n_outputs
        return reference.minimum(self.solver.loss, self.X, p.target, p.weight, n_outputs, p.penalty)


def make(
    solver: str,
    kind: str,
    penalty: Penalty,
    *,
    seed: int = 0,
    n_rows: int = 150,
    n_features: int = 6,
    weighted: bool = False,
    noise: float = 1.0,
) -> Case:
    """Return a problem that no hyperplane separates, with columns of different scales."""
    rng = np.random.default_rng(seed)
    k = SOLVERS[solver].n_targets
    X = rng.standard_normal((n_rows, n_features)) * np.geomspace(0.3, 3.0, n_features)
    if kind == "csr":
        X[rng.random(X.shape) < 0.5] = 0.0
    X = X.astype(PARAM)
    truth = rng.standard_normal((n_features, k))
    target = (X @ truth + noise * rng.gumbel(size=(n_rows, k))).argmax(axis=1)
    target[:k] = np.arange(k)
    weight = rng.uniform(0.1, 3.0, n_rows) if weighted else np.ones(n_rows)
    return case_of(solver, kind, X, target, weight, penalty)


def case_of(solver, kind, X, target, weight=None, penalty=None) -> Case:
    X = np.asarray(X, dtype=PARAM)
    problem = node_problem(
        X,
        target,
        weight=weight,
        n_targets=SOLVERS[solver].n_targets,
        penalty=penalty,
        kind=kind,
    )
    return Case(SOLVERS[solver], X.astype(float), problem)


def assert_sane(case: Case, solution: NodeSolution) -> None:
    """Finite, of the right shape, and not worse than predicting the frequencies."""
    n_features = case.X.shape[1]
    assert solution.weights.shape == (n_features, case.solver.n_outputs)
    assert solution.bias.shape == (case.solver.n_outputs,)
    assert (solution.weights.dtype, solution.bias.dtype) == (PARAM, PARAM)
    assert np.all(np.isfinite(solution.weights))
    assert np.all(np.isfinite(solution.bias))
    assert np.isfinite(solution.objective)
    total = case.problem.weight.sum()
    assert case.objective(solution.weights, solution.bias) <= case.null() + 1e-5 * total

"""The papers' node solvers, scikit-learn's LIBLINEAR and SAGA, behind our solver interface."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from thinleaf.arrays.rows import CSC
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision

INTERCEPT_SCALING = 100.0
"""LIBLINEAR penalises the bias; scaled like this, next to nothing."""


def rows_of(problem: NodeProblem):
    """Return the rows of a problem as scikit-learn takes them."""
    X = problem.X
    if isinstance(X, CSC):
        shape = (X.n_rows, X.indptr.size - 1)
        return sp.csc_matrix((X.data, X.indices, X.indptr), shape=shape).tocsr()
    return X


def objective(problem: NodeProblem, weights: np.ndarray, bias: np.ndarray) -> float:
    """Return the objective of a solution, in float64, for either kind of problem."""
    W = weights.astype(np.float64)
    scores = rows_of(problem).astype(np.float64) @ W + bias
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    top = scores.max(axis=1)
    loss = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    loss -= scores[np.arange(len(scores)), problem.target]
    penalty = problem.penalty.l1 * np.abs(W).sum() + problem.penalty.ridge / 2 * (W**2).sum()
    return float(problem.weight @ loss + penalty)


def _fit(model: LogisticRegression, problem: NodeProblem) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return model.fit(rows_of(problem), problem.target, sample_weight=problem.weight)


def liblinear(problem: NodeProblem, *, tol: float = 1e-4, max_iter: int = 100) -> NodeSolution:
    """Solve a router with LIBLINEAR: ℓ₁ if that is all there is, else ridge.

    LIBLINEAR has no elastic net: with both terms, it takes the ridge, which dominates here.
    """
    l1, ridge = problem.penalty.l1, problem.penalty.ridge
    model = LogisticRegression(
        solver="liblinear",
        l1_ratio=1.0 if ridge == 0 else 0.0,
        C=1.0 / max(l1 if ridge == 0 else ridge, 1e-12),
        tol=tol,
        max_iter=max_iter,
        intercept_scaling=INTERCEPT_SCALING,
    )
    return _solution(_fit(model, problem))


def saga(problem: NodeProblem, *, tol: float = 1e-4, max_iter: int = 100) -> NodeSolution:
    """Solve a leaf with SAGA: elastic net.

    Of two classes scikit-learn fits one weight vector w; the softmax that equals it is (-w/2, w/2),
    whose ridge term is half as large.
    """
    pair = problem.n_targets == 2
    l1, ridge = problem.penalty.l1, problem.penalty.ridge / (2.0 if pair else 1.0)
    model = LogisticRegression(
        solver="saga",
        l1_ratio=l1 / (l1 + ridge),
        C=1.0 / (l1 + ridge),
        tol=tol,
        max_iter=max_iter,
        random_state=0,
    )
    solution = _solution(_fit(model, problem))
    if not pair:
        return solution
    half, bias = solution.weights / 2, solution.bias / 2
    return NodeSolution(
        np.ascontiguousarray(np.column_stack([-half, half])),
        np.concatenate([-bias, bias]),
        solution.objective,
        solution.n_iter,
        True,
    )


def _solution(model: LogisticRegression) -> NodeSolution:
    weights = np.ascontiguousarray(model.coef_.T, dtype=np.float32)
    bias = np.asarray(model.intercept_, dtype=np.float32)
    return NodeSolution(weights, bias, float("nan"), int(np.max(model.n_iter_)), True)


def router_solver(problem: NodeProblem, warm_start: object, precision: Precision) -> NodeSolution:
    """Solve as the papers do: LIBLINEAR, 100 iterations at the most."""
    del warm_start, precision
    if np.unique(problem.target).size < 2:
        side = 1.0 if problem.target[0] == 1 else -1.0
        zeros = np.zeros((rows_of(problem).shape[1], 1), np.float32)
        return NodeSolution(zeros, np.array([side], np.float32), 0.0, 0, True)
    return liblinear(problem)


def leaf_solver(problem: NodeProblem, warm_start: object, precision: Precision) -> NodeSolution:
    """Solve as the papers do: SAGA, 100 iterations at the most."""
    del warm_start, precision
    return saga(problem)

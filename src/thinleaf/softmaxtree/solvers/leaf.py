"""Leaf solver: k-class softmax regression with ℓ₁ and ridge penalties, sample weights, free biases.

One objective, three algorithms: where rows are sparse, ascent in the dual, if there is a ridge, and
Newton steps by coordinate descent, if there is none or more precision is wanted; where they are
dense, a quasi-Newton method at the speed of matrix products.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import OFFSET, PARAM, ParamArray
from thinleaf.arrays.rows import CSC, n_local_features
from thinleaf.softmaxtree.solvers.by_row import by_row
from thinleaf.softmaxtree.solvers.leaf_descent import newton_descent
from thinleaf.softmaxtree.solvers.leaf_dual import dual_ascent
from thinleaf.softmaxtree.solvers.leaf_quasi_newton import quasi_newton
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision

_LEAST_RIDGE = 1e-3
"""In mean squared lengths of rows: what the dual needs to be solved in few passes."""

_ROUGH = 1e-3
"""The least ``Precision.tol`` that the dual reaches quickly; for more, Newton steps follow it."""

_QUASI_STEPS = 10
"""Quasi-Newton iterations that count as one Newton step of ``Precision.max_iter``."""


def solve_softmax(
    problem: NodeProblem,
    warm_start: tuple[ParamArray, ParamArray] | None = None,
    precision: Precision | None = None,
) -> NodeSolution:
    """Minimise Σ sᵢ (log Σ_c exp(w_c·xᵢ + b_c) - w_y·xᵢ - b_y) + l1·‖W‖₁ + ridge/2·‖W‖².

    Parameters
    ----------
    problem : NodeProblem
    warm_start : tuple of (weights of shape (n_features, k), bias of shape (k,)), optional
    precision : Precision, optional

    Returns
    -------
    NodeSolution
        With ``weights`` of shape (n_features, k). A one-class problem has no weights to learn: its
        solution is zero.
    """
    precision = precision or Precision()
    X, k = problem.X, problem.n_targets
    n_features = n_local_features(X)
    mass = np.bincount(problem.target, weights=problem.weight, minlength=k)
    W = np.zeros((n_features, k), dtype=PARAM)
    if k == 1 or mass.sum() <= 0.0:
        return NodeSolution(W, np.zeros(k, PARAM), 0.0, 0, True)
    share = mass / mass.sum()
    # a class without weight gets a small finite start; the free bias then falls as it should
    first_bias = np.log(np.maximum(share, 1e-6)).astype(PARAM)
    b = first_bias.copy()
    if problem.offset is not None:
        b[:] = 0.0
    if warm_start is not None:
        W[:], b[:] = warm_start
    # weights of any magnitude: solve the problem scaled to mean weight one
    scale = problem.weight.size / mass.sum()
    occurring = share[share > 0.0]
    null = max(-float(problem.weight.size * (occurring @ np.log(occurring))), 1e-6)
    weight = (problem.weight * scale).astype(PARAM)
    l1, ridge = problem.penalty.l1 * scale, problem.penalty.ridge * scale
    enough, n_steps = precision.tol * null, precision.max_iter
    if isinstance(X, CSC):
        if problem.hold is not None:
            ridge *= float(problem.hold.mean())
        rough, warm = precision.tol >= _ROUGH, warm_start is not None
        indptr, indices, data, square = by_row(X, weight.size)
        quick = 0.0 < _LEAST_RIDGE * float(weight @ square) <= ridge * weight.size
        if quick and (rough or not warm):
            objective, n_iter, converged = dual_ascent(
                indptr.astype(OFFSET), indices, data, problem.target, weight, l1, ridge, W, b, warm,
                max(precision.tol, _ROUGH) * null, n_steps, problem.offset,
            )  # fmt: skip
            if objective > null and problem.offset is None:  # as of rows that are all alike
                quick, W[:], b[:] = False, 0.0, first_bias
        if not (quick and rough):
            objective, n_iter, converged = newton_descent(
                X, problem.target, weight, l1, ridge, W, b, enough, n_steps, problem.offset
            )
    else:
        theta = np.concatenate([W.T.ravel(), b])
        objective, n_iter, converged = quasi_newton(
            X, problem.target, weight, l1, ridge, theta, k, enough, _QUASI_STEPS * n_steps,
            problem.offset, problem.hold,
        )  # fmt: skip
        W = np.ascontiguousarray(theta[: W.size].reshape(k, n_features).T)
        b = theta[W.size :]
    if warm_start is not None and objective > null:  # it led nowhere
        return solve_softmax(problem, None, precision)
    return NodeSolution(W, b, float(objective / scale), n_iter, converged)

"""Router solver: weighted binary logistic regression with ℓ₁ and ridge penalties, free bias.

Proximal Newton: each step minimises the second-order model of the loss plus the exact penalty by
coordinate descent, then takes the largest fraction of it that decreases the objective enough. This
is the scheme of Yuan, Ho & Lin (2012) that LIBLINEAR uses, with three differences: a ridge term and
an unpenalised bias; a warm start; and, for dense data, an explicit Hessian, which makes a pass of
coordinate descent independent of the number of rows. It serves two steps (Shamanskii's variant).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import CSC, n_local_features
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import exp32, log1p_unit
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.columns import (
    column_add,
    column_add_scaled,
    column_dot,
    column_dots,
)
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision

_MAX_HESSIAN = 1024
"""Dense problems with more features are solved as sparse ones: the Hessian would cost too much."""

_MOST_CELLS = np.iinfo(INDEX).max
"""Of such a problem: more cannot be numbered."""

_BLOCK = 2048
"""Rows whose share of the Hessian is one matrix product."""

_LEAST_SHARE = 1e-3
"""Of the loss of the best constant model: what is left of it is not to be told apart from nothing.
Above that, precision is relative to the objective reached: a few rows of huge weight, once they are
right, do not hide what the others lose."""

_MAX_PASSES = 20
_MAX_HESSIAN_PASSES = 50
_INNER_TOL = 0.2
_HESSIAN_TOL = 1e-2
_SUFFICIENT = 0.01
_MIN_CURVATURE = 1e-10


def solve_logistic(
    problem: NodeProblem,
    warm_start: tuple[ParamArray, float] | None = None,
    precision: Precision | None = None,
) -> NodeSolution:
    """Minimise Σ cᵢ log(1 + exp(-ỹᵢ(w·xᵢ + b))) + l1·‖w‖₁ + ridge/2·‖w‖², with ỹ = ±1.

    Parameters
    ----------
    problem : NodeProblem
        With ``n_targets == 2``; target 1 is the positive class.
    warm_start : tuple of (weights of shape (n_features,), bias), optional
    precision : Precision, optional

    Returns
    -------
    NodeSolution
        With ``weights`` of shape (n_features, 1). If only one target has weight, the constant
        router that chooses it.
    """
    precision = precision or Precision()
    X = problem.X
    if not isinstance(X, CSC) and X.shape[1] > _MAX_HESSIAN:
        if X.size > _MOST_CELLS:
            return _as_softmax(problem, warm_start, precision)
        X = _as_csc(X)
    n_features = n_local_features(X)
    mass = np.bincount(problem.target, weights=problem.weight, minlength=2)
    if mass.min() <= 0.0:
        side = 1.0 if mass[1] >= mass[0] else -1.0
        loss = float(mass.sum()) * math.log1p(math.exp(-1.0))
        return NodeSolution(
            np.zeros((n_features, 1), PARAM), np.array([side], PARAM), loss, 0, True
        )
    w = np.zeros(n_features, dtype=ACCUM)
    b = math.log(mass[1] / mass[0]) if problem.offset is None else 0.0
    if warm_start is not None:
        w[:], b = warm_start
    # weights of any magnitude: solve the problem scaled to mean weight one
    scale = problem.weight.size / mass.sum()
    share = mass / mass.sum()
    null = -float(problem.weight.size * (share @ np.log(share)))
    b, objective, n_iter, converged = _newton(
        None if isinstance(X, CSC) else X,
        X if isinstance(X, CSC) else None,
        problem.target,
        problem.weight * scale,
        problem.penalty.l1 * scale,
        problem.penalty.ridge * scale,
        w,
        b,
        precision.tol,
        _LEAST_SHARE * null,
        precision.max_iter,
        None if problem.offset is None else problem.offset[:, 0].astype(ACCUM),
    )
    if warm_start is not None and objective > null:  # it led nowhere
        return solve_logistic(problem, None, precision)
    return NodeSolution(
        w.astype(PARAM)[:, None], np.array([b], PARAM), float(objective / scale), n_iter, converged
    )


def _as_csc(dense: ParamArray) -> CSC:
    n_rows, n_features = dense.shape
    indptr = np.arange(n_features + 1, dtype=INDEX) * INDEX(n_rows)
    indices = np.tile(np.arange(n_rows, dtype=INDEX), n_features)
    return CSC(indptr, indices, dense.T.ravel(), n_rows)


def _as_softmax(
    problem: NodeProblem, warm_start: tuple[ParamArray, float] | None, precision: Precision
) -> NodeSolution:
    """Solve a problem that is too large for sparse columns as a softmax of two classes.

    Its weights are ±w/2 at the optimum, so twice the ridge is the same penalty.
    """
    l1, ridge = problem.penalty.l1, 2.0 * problem.penalty.ridge
    start = None
    if warm_start is not None:
        w, b = warm_start[0].astype(PARAM), float(warm_start[1])
        halves = np.stack([-w, w], axis=1) * PARAM(0.5)
        start = halves, np.array([-0.5 * b, 0.5 * b], PARAM)
    offset = None if problem.offset is None else problem.offset * np.array([-0.5, 0.5], PARAM)
    halved = replace(problem, penalty=Penalty(l1, ridge), offset=offset)
    both = solve_softmax(halved, start, precision)
    return replace(
        both,
        weights=np.ascontiguousarray(both.weights[:, 1:] - both.weights[:, :1]),
        bias=both.bias[1:] - both.bias[:1],
    )


@inlined
def soft_threshold(x: float, threshold: float) -> float:
    """Return the proximal point of ``threshold``·|x|."""
    if x > threshold:
        return x - threshold
    if x < -threshold:
        return x + threshold
    return 0.0


@inlined
def _loss(score: AccumArray, target: IndexArray, weight: AccumArray) -> float:
    total = 0.0
    for i in range(score.size):
        margin = score[i] if target[i] == 1 else -score[i]
        total += weight[i] * (max(-margin, 0.0) + log1p_unit(exp32(-abs(margin))))
    return total


@inlined
def _penalty(w: AccumArray, l1: float, ridge: float) -> float:
    total = 0.0
    for j in range(w.size):
        total += l1 * abs(w[j]) + 0.5 * ridge * w[j] * w[j]
    return total


@kernel
def _newton(
    X: ParamArray | None,
    columns: CSC | None,
    target: IndexArray,
    weight: AccumArray,
    l1: float,
    ridge: float,
    w: AccumArray,
    b: float,
    tol: float,
    least: float,
    max_iter: int,
    offset: AccumArray | None,
) -> tuple[float, float, int, bool]:
    """Minimise over dense rows or over sparse columns, whichever is given; add to ``offset``.

    The other one is None: numba drops its branches before it compiles them. Arrays are filled in
    loops: an assignment to a slice would compile the text of its error message, too.
    """
    n = target.size
    score = np.empty(n)
    residual = np.empty(n)
    curvature = np.empty(n)
    slope = np.empty(n)
    change = np.empty(n)
    trial = np.empty(n)
    delta = np.empty(w.size)
    moved_w = np.empty(w.size)
    if X is not None:
        hessian = np.empty((w.size + 1, w.size + 1))
    # first a step from zero to the start, so that what steps are made of is compiled once
    for i in range(n):
        score[i] = 0.0
        if offset is not None:
            score[i] = offset[i]
        slope[i] = 0.0
    for j in range(w.size):
        delta[j] = w[j]
        w[j] = 0.0
    delta_b = b
    b = 0.0
    objective = np.inf
    for step in range(-1, max_iter):
        fresh = True
        if step >= 0:
            for i in range(n):
                e = exp32(-abs(score[i]))
                p = (1.0 if score[i] >= 0.0 else e) / (1.0 + e)
                r = p - target[i]
                residual[i] = weight[i] * r
                # confidently wrong rows have almost no curvature: their steps would explode
                curvature[i] = weight[i] * max(p * (1.0 - p), 0.1 * r * r) + _MIN_CURVATURE
            for i in range(n):
                slope[i] = residual[i]
            for j in range(w.size):
                delta[j] = 0.0
            if X is not None:
                # a step with a Hessian from before may be short for that reason alone
                fresh = step % 2 == 0 or w.size == 0
                if step % 2 == 0:
                    _fill_hessian(X, curvature, ridge, hessian)
                delta_b = _direction_by_hessian(X, residual, hessian, l1, ridge, w, delta)
            if columns is not None:
                delta_b = _direction_by_columns(columns, residual, curvature, l1, ridge, w, delta)
        if X is not None:
            _row_scores(X, delta, delta_b, change)
        if columns is not None:
            _column_scores(columns, delta, delta_b, change)
        promised = 0.0
        for i in range(n):
            promised += slope[i] * change[i]
        for j in range(w.size):
            moved = w[j] + delta[j]
            promised += ridge * w[j] * delta[j] + l1 * (abs(moved) - abs(w[j]))
        if step >= 0 and -promised <= 0.1 * tol * max(objective, least):
            return b, objective, step, True
        fraction = 1.0
        accepted = False
        for _ in range(40):
            for i in range(n):
                trial[i] = score[i] + fraction * change[i]
            for j in range(w.size):
                moved_w[j] = w[j] + fraction * delta[j]
            value = _loss(trial, target, weight) + _penalty(moved_w, l1, ridge)
            if step < 0 or value <= objective + _SUFFICIENT * fraction * promised:
                accepted = True
                break
            fraction *= 0.5
        if not accepted:  # rounding decides: this is as low as it gets
            return b, objective, step, True
        for j in range(w.size):
            w[j] += fraction * delta[j]
        b += fraction * delta_b
        for i in range(n):
            score[i] = trial[i]
        decrease = objective - value
        objective = value
        if (
            decrease <= 0.0 or (decrease <= tol * max(objective, least) and fraction == 1.0)
        ) and fresh:
            return b, objective, step + 1, True
    return b, objective, max_iter, False


@inlined
def _row_scores(X: ParamArray, w: AccumArray, b: float, out: AccumArray) -> None:
    """Fill ``out`` with Xw + b."""
    narrow = np.empty(w.size, dtype=np.float32)
    for j in range(w.size):
        narrow[j] = w[j]
    product = np.empty(out.size, dtype=np.float32)
    np.dot(X, narrow, product)
    for i in range(out.size):
        out[i] = product[i] + b


@inlined
def _column_scores(X: CSC, w: AccumArray, b: float, out: AccumArray) -> None:
    """Fill ``out`` with Xw + b."""
    for i in range(out.size):
        out[i] = b
    for j in range(w.size):
        if w[j] != 0.0:
            column_add(X, j, w[j], out)


@inlined
def _fill_hessian(X: ParamArray, curvature: AccumArray, ridge: float, hessian: AccumArray) -> None:
    """Fill in XᵀCX + ridge, the bias as a last column of ones."""
    n, d = X.shape
    scaled = np.empty((min(n, _BLOCK), d), dtype=np.float32)
    product = np.empty((d, d), dtype=np.float32)
    for j in range(d + 1):
        for m in range(d + 1):
            hessian[j, m] = 0.0
    for start in range(0, n, _BLOCK):
        block = X[start : start + _BLOCK]
        for i in range(block.shape[0]):
            c = np.float32(curvature[start + i])
            for j in range(d):
                scaled[i, j] = c * block[i, j]
                hessian[d, j] += scaled[i, j]
        np.dot(block.T, scaled[: block.shape[0]], product)
        for j in range(d):
            for m in range(d):
                hessian[j, m] += product[j, m]
    for j in range(d):
        hessian[j, d] = hessian[d, j]
        hessian[j, j] += ridge + _MIN_CURVATURE
    hessian[d, d] = curvature.sum()


@inlined
def _direction_by_columns(
    X: CSC,
    residual: AccumArray,
    curvature: AccumArray,
    l1: float,
    ridge: float,
    w: AccumArray,
    delta: AccumArray,
) -> float:
    """Fill ``delta`` with the (inexact) proximal Newton direction; return that of the bias.

    ``residual`` is used as scratch.
    """
    d = w.size
    diagonal = np.empty(d)
    active = np.empty(d, dtype=np.int64)
    for j in range(d):
        active[j] = j
    n_active = d
    total_curvature: float = curvature.sum()
    delta_b = 0.0
    first = 0.0
    for sweep in range(_MAX_PASSES):
        moved = -residual.sum() / total_curvature
        delta_b += moved
        for i in range(residual.size):
            residual[i] += moved * curvature[i]
        decrease = moved * moved * total_curvature
        kept = 0
        for a in range(n_active):
            j = active[a]
            at = w[j] + delta[j]
            if sweep == 0:
                gradient, square = column_dots(X, j, residual, curvature)
                diagonal[j] = square + ridge + _MIN_CURVATURE
            else:
                gradient = column_dot(X, j, residual)
            gradient += ridge * at
            moved = soft_threshold(at - gradient / diagonal[j], l1 / diagonal[j]) - at
            if moved != 0.0:
                delta[j] += moved
                column_add_scaled(X, j, moved, curvature, residual)
                decrease += moved * moved * diagonal[j]
                active[kept] = j
                kept += 1
            elif at != 0.0 or abs(gradient) > 0.9 * l1:
                active[kept] = j
                kept += 1
        n_active = kept
        if sweep == 0:
            first = decrease
        elif decrease <= _INNER_TOL * first:
            break
    return delta_b


@inlined
def _direction_by_hessian(
    X: ParamArray,
    residual: AccumArray,
    hessian: AccumArray,
    l1: float,
    ridge: float,
    w: AccumArray,
    delta: AccumArray,
) -> float:
    """Fill ``delta`` with the proximal Newton direction; return that of the bias."""
    d = X.shape[1]
    gradient = np.empty(d + 1)
    product = np.empty(d, dtype=np.float32)
    slope = np.empty(residual.size, dtype=np.float32)
    for i in range(residual.size):
        slope[i] = residual[i]
    for j in range(d):
        gradient[j] = 0.0
    for start in range(0, X.shape[0], _BLOCK):
        np.dot(slope[start : start + _BLOCK], X[start : start + _BLOCK], product)
        for j in range(d):
            gradient[j] += product[j]
    pull = np.empty(d)
    for j in range(d):
        pull[j] = ridge * w[j]
    for j in range(d):
        gradient[j] += pull[j]
    gradient[d] = residual.sum()
    delta_b = 0.0
    first = 0.0
    for sweep in range(_MAX_HESSIAN_PASSES):
        decrease = 0.0
        for j in range(d + 1):
            if j < d:
                at = w[j] + delta[j]
                diagonal = hessian[j, j]
                moved = soft_threshold(at - gradient[j] / diagonal, l1 / diagonal) - at
                delta[j] += moved
            else:
                moved = float(-gradient[d] / hessian[d, d])
                delta_b += moved
            if moved != 0.0:
                decrease += moved * moved * hessian[j, j]
                for m in range(d + 1):
                    gradient[m] += moved * hessian[j, m]
        if sweep == 0:
            first = decrease
        elif decrease <= _HESSIAN_TOL * first:
            break
    return delta_b

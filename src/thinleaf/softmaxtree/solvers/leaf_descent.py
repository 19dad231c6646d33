"""Softmax regression on sparse columns: proximal Newton with coordinate descent inside.

The scheme of :mod:`thinleaf.softmaxtree.solvers.router`, with the full softmax Hessian. A
coordinate of the inner descent is the block of all k weights of one feature. Its k×k curvature is
bounded by a diagonal, so the block step is k soft-thresholds, and every inner loop runs over
contiguous classes.
Text has thousands of nearly uncorrelated columns: there, few passes are enough.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import IndexArray, ParamArray
from thinleaf.arrays.rows import CSC
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import log_sum_exp, softmax_row
from thinleaf.softmaxtree.solvers.columns import (
    block_add,
    block_add_softmax,
    block_dot,
    block_square_dot,
)

_MAX_PASSES = 10
_INNER_TOL = 0.1
_SUFFICIENT = 0.01
_MIN_CURVATURE = 1e-8


@inlined
def _loss(scores: ParamArray, target: IndexArray, weight: ParamArray) -> float:
    total = 0.0
    for i in range(target.size):
        total += weight[i] * max(log_sum_exp(scores[i]) - scores[i, target[i]], 0.0)
    return total


@inlined
def _penalty(W: ParamArray, l1: float, ridge: float) -> float:
    total = 0.0
    for j in range(W.shape[0]):
        absolute = np.float32(0.0)
        square = np.float32(0.0)
        for c in range(W.shape[1]):
            absolute += abs(W[j, c])
            square += W[j, c] * W[j, c]
        total += l1 * absolute + 0.5 * ridge * square
    return total


@inlined
def _block_step(
    at: ParamArray,
    gradient: ParamArray,
    diagonal: ParamArray,
    l1: float,
    ridge: float,
    step: ParamArray,
) -> np.float32:
    """Fill ``step`` with the minimiser of the separable bound; return what it moves, squared."""
    threshold = np.float32(l1)
    shrink = np.float32(ridge)
    moved = np.float32(0.0)
    for c in range(at.size):
        target = at[c] - (gradient[c] + shrink * at[c]) / diagonal[c]
        limit = threshold / diagonal[c]
        new = max(target - limit, np.float32(0.0)) + min(target + limit, np.float32(0.0))
        step[c] = new - at[c]
    for c in range(at.size):
        moved += step[c] * step[c] * diagonal[c]
    return moved


@kernel
def newton_descent(
    X: CSC,
    target: IndexArray,
    weight: ParamArray,
    l1: float,
    ridge: float,
    W: ParamArray,
    b: ParamArray,
    min_decrease: float,
    max_iter: int,
    offset: ParamArray | None,
) -> tuple[float, int, bool]:
    """Minimise in place over ``W`` of shape (n_features, k) and ``b``; scores start at ``offset``.

    Returns the objective, the Newton steps, and whether another one promises, or the last one gave,
    a decrease below ``min_decrease``.
    """
    n = target.size
    d, k = W.shape
    scores = np.empty((n, k), dtype=np.float32)
    for i in range(n):
        for c in range(k):
            scores[i, c] = b[c]
            if offset is not None:
                scores[i, c] += offset[i, c]
    for j in range(d):
        any_weight = False
        for c in range(k):
            any_weight = any_weight or W[j, c] != 0.0
        if any_weight:
            block_add(X, j, W[j], scores)
    P = np.empty((n, k), dtype=np.float32)
    residual = np.empty((n, k), dtype=np.float32)
    bound = np.empty((n, k), dtype=np.float32)
    change = np.empty((n, k), dtype=np.float32)
    moved_W = np.empty((d, k), dtype=np.float32)
    moved_b = np.empty(k, dtype=np.float32)
    objective = _loss(scores, target, weight) + _penalty(W, l1, ridge)
    for iteration in range(max_iter):
        for i in range(n):
            softmax_row(scores[i], P[i])
            _bound_curvature(P[i], target[i], weight[i], residual[i], bound[i])
        promised = _direction(
            X, P, weight, residual, bound, l1, ridge, W, b, moved_W, moved_b, change, target
        )
        if -promised <= 0.1 * min_decrease:
            return objective, iteration, True
        fraction = np.float32(1.0)
        accepted = False
        value = objective
        for _ in range(30):
            value = 0.0
            for i in range(n):
                for c in range(k):
                    residual[i, c] = scores[i, c] + fraction * change[i, c]
                row = residual[i]
                value += weight[i] * max(log_sum_exp(row) - row[target[i]], 0.0)
            for j in range(d):
                absolute = np.float32(0.0)
                square = np.float32(0.0)
                for c in range(k):
                    new = W[j, c] + fraction * (moved_W[j, c] - W[j, c])
                    absolute += abs(new)
                    square += new * new
                value += l1 * absolute + 0.5 * ridge * square
            if value <= objective + _SUFFICIENT * fraction * promised:
                accepted = True
                break
            fraction *= np.float32(0.5)
        if not accepted:  # rounding decides: this is as low as it gets
            return objective, iteration, True
        for j in range(d):
            for c in range(k):
                if fraction == 1.0:
                    W[j, c] = moved_W[j, c]
                else:
                    W[j, c] += fraction * (moved_W[j, c] - W[j, c])
        for c in range(k):
            b[c] += fraction * (moved_b[c] - b[c])
        scores, residual = residual, scores
        decrease = objective - value
        objective = value
        if decrease <= 0.0 or (decrease <= min_decrease and fraction == 1.0):
            return objective, iteration + 1, True
    return objective, max_iter, False


@inlined
def _bound_curvature(
    p: ParamArray, target: int, weight: float, residual: ParamArray, bound: ParamArray
) -> None:
    """Fill weight·(p - y), and a diagonal that bounds weight·(diag(p) - ppᵀ).

    The matrix is below diag(p); it is also below 2·diag(p(1 - p)) (Gershgorin), which is the
    tighter bound once a class dominates.
    """
    largest = np.max(p)
    for c in range(p.size):
        residual[c] = weight * p[c]
        if largest <= 0.5:
            bound[c] = weight * p[c]
        else:
            bound[c] = weight * np.float32(2.0) * p[c] * (np.float32(1.0) - p[c])
    residual[target] -= weight
    # a confidently wrong row has almost no curvature; without a floor its steps explode
    floor = np.float32(0.1) * weight * (np.float32(1.0) - p[target]) ** 2
    for c in range(p.size):
        bound[c] = max(bound[c], floor * p[c])
    bound[target] = max(bound[target], floor)


@inlined
def _direction(
    X: CSC,
    P: ParamArray,
    weight: ParamArray,
    residual: ParamArray,
    bound: ParamArray,
    l1: float,
    ridge: float,
    W: ParamArray,
    b: ParamArray,
    moved_W: ParamArray,
    moved_b: ParamArray,
    change: ParamArray,
    target: IndexArray,
) -> float:
    """Fill the moved parameters and the change of scores; return the promised decrease (< 0)."""
    n, k = P.shape
    d = W.shape[0]
    diagonal = np.empty((d, k), dtype=np.float32)
    diagonal_b = np.zeros(k, dtype=np.float32)
    for i in range(n):
        for c in range(k):
            diagonal_b[c] += bound[i, c]
    for c in range(k):
        diagonal_b[c] += np.float32(_MIN_CURVATURE)
        moved_b[c] = b[c]
    for j in range(d):
        for c in range(k):
            moved_W[j, c] = W[j, c]
    gradient = np.empty(k, dtype=np.float32)
    step = np.empty(k, dtype=np.float32)
    active = np.arange(d)
    n_active = d
    first = 0.0
    for sweep in range(_MAX_PASSES):
        for c in range(k):
            gradient[c] = 0.0
        for i in range(n):
            for c in range(k):
                gradient[c] += residual[i, c]
        decrease = _block_step(moved_b, gradient, diagonal_b, 0.0, 0.0, step)
        for c in range(k):
            moved_b[c] += step[c]
        for i in range(n):
            mean = P[i, 0] * step[0]
            for c in range(1, k):
                mean += P[i, c] * step[c]
            for c in range(k):
                residual[i, c] += weight[i] * P[i, c] * (step[c] - mean)
        kept = 0
        for a in range(n_active):
            j = active[a]
            if sweep == 0:
                block_square_dot(X, j, bound, diagonal[j])
                for c in range(k):
                    diagonal[j, c] += np.float32(ridge + _MIN_CURVATURE)
            block_dot(X, j, residual, gradient)
            moved = _block_step(moved_W[j], gradient, diagonal[j], l1, ridge, step)
            if moved > 0.0:
                for c in range(k):
                    moved_W[j, c] += step[c]
                block_add_softmax(X, j, step, P, weight, residual)
                decrease += moved
                active[kept] = j
                kept += 1
        n_active = kept
        if sweep == 0:
            first = decrease
        elif decrease <= _INNER_TOL * first:
            break
    promised = 0.0
    for c in range(k):
        step[c] = moved_b[c] - b[c]
    for i in range(n):
        for c in range(k):
            change[i, c] = step[c]
    for j in range(d):
        any_moved = False
        for c in range(k):
            step[c] = moved_W[j, c] - W[j, c]
            any_moved = any_moved or step[c] != 0.0
        for c in range(k):
            promised += l1 * (abs(moved_W[j, c]) - abs(W[j, c])) + ridge * W[j, c] * step[c]
        if any_moved:
            block_add(X, j, step, change)
    for i in range(n):
        total = np.float32(0.0)
        for c in range(k):
            total += P[i, c] * change[i, c]
        promised += weight[i] * (total - change[i, target[i]])
    return promised

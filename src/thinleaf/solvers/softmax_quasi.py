"""Softmax regression on dense rows: orthant-wise limited-memory quasi-Newton (OWL-QN).

Andrew & Gao (2007): L-BFGS on the smooth part, its direction confined to the orthant that the ℓ₁
subgradient points into, with projected backtracking. An iteration is two matrix products at the
speed of BLAS, and curvature along correlated features, on which coordinate descent crawls, is
learned from the steps themselves. Without ℓ₁ it is plain L-BFGS.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import softmax_row

_MEMORY = 10
_WINDOW = 5
_SUFFICIENT = 1e-4


@inlined
def _smooth(
    X: ParamArray,
    target: IndexArray,
    weight: ParamArray,
    ridge: float,
    theta: ParamArray,
    scores: ParamArray,
    gradient: ParamArray,
) -> float:
    """Return loss + ridge at ``theta`` (weights, then a last row of biases); fill its gradient."""
    d = theta.shape[0] - 1
    n, k = scores.shape
    np.dot(X, theta[:d], scores)
    value = 0.0
    bias_gradient = np.zeros(k)
    for i in range(n):
        row = scores[i]
        for c in range(k):
            row[c] += theta[d, c]
        own = row[target[i]]
        value += weight[i] * max(softmax_row(row, row) - own, 0.0)
        for c in range(k):
            row[c] *= weight[i]
        row[target[i]] -= weight[i]
        for c in range(k):
            bias_gradient[c] += row[c]
    np.dot(X.T, scores, gradient[:d])
    shrink = np.float32(ridge)
    for j in range(d):
        square = np.float32(0.0)
        for c in range(k):
            gradient[j, c] += shrink * theta[j, c]
            square += theta[j, c] * theta[j, c]
        value += 0.5 * ridge * square
    for c in range(k):
        gradient[d, c] = bias_gradient[c]
    return value


@inlined
def _l1_norm(theta: ParamArray) -> float:
    total = 0.0
    for j in range(theta.shape[0] - 1):
        row = np.float32(0.0)
        for c in range(theta.shape[1]):
            row += abs(theta[j, c])
        total += row
    return total


@inlined
def _pseudo_gradient(theta: ParamArray, gradient: ParamArray, l1: float, out: ParamArray) -> None:
    """Fill ``out`` with the subgradient of least norm; the last row, the biases, has no penalty."""
    d = theta.shape[0] - 1
    limit = np.float32(l1)
    zero = np.float32(0.0)
    for j in range(d):
        for c in range(theta.shape[1]):
            g = gradient[j, c]
            if theta[j, c] > zero:
                out[j, c] = g + limit
            elif theta[j, c] < zero:
                out[j, c] = g - limit
            else:
                out[j, c] = min(g + limit, zero) + max(g - limit, zero)
    out[d] = gradient[d]


@inlined
def _dot(a: ParamArray, b: ParamArray) -> float:
    total = 0.0
    for j in range(a.shape[0]):
        row = np.float32(0.0)
        for c in range(a.shape[1]):
            row += a[j, c] * b[j, c]
        total += row
    return total


@inlined
def _add(a: ParamArray, factor: float, out: ParamArray) -> None:
    scale = np.float32(factor)
    for j in range(a.shape[0]):
        for c in range(a.shape[1]):
            out[j, c] += scale * a[j, c]


@inlined
def _apply_inverse_hessian(
    steps: ParamArray, changes: ParamArray, rho: AccumArray, newest: int, held: int, v: ParamArray
) -> None:
    """Multiply ``v`` by the L-BFGS approximation (two-loop recursion), in place."""
    alpha = np.empty(held)
    for m in range(held):
        at = (newest - m) % _MEMORY
        alpha[m] = _dot(steps[at], v) / rho[at]
        _add(changes[at], -alpha[m], v)
    if held > 0:
        scale = np.float32(rho[newest] / _dot(changes[newest], changes[newest]))
        for j in range(v.shape[0]):
            for c in range(v.shape[1]):
                v[j, c] *= scale
    for m in range(held - 1, -1, -1):
        at = (newest - m) % _MEMORY
        beta = _dot(changes[at], v) / rho[at]
        _add(steps[at], alpha[m] - beta, v)


@kernel
def quasi_newton(
    X: ParamArray,
    target: IndexArray,
    weight: ParamArray,
    l1: float,
    ridge: float,
    W: ParamArray,
    b: ParamArray,
    min_decrease: float,
    max_iter: int,
) -> tuple[float, int, bool]:
    """Minimise in place over ``W`` of shape (n_features, k) and ``b``.

    Returns the objective, the iterations, and whether the last :data:`_WINDOW` of them together
    decreased it by less than ``min_decrease``.
    """
    d, k = W.shape
    n = target.size
    theta = np.empty((d + 1, k), dtype=np.float32)
    theta[:d] = W
    theta[d] = b
    scores = np.empty((n, k), dtype=np.float32)
    gradient = np.empty_like(theta)
    value = _smooth(X, target, weight, ridge, theta, scores, gradient) + l1 * _l1_norm(theta)
    pseudo = np.empty_like(theta)
    direction = np.empty_like(theta)
    trial = np.empty_like(theta)
    trial_gradient = np.empty_like(theta)
    steps = np.empty((_MEMORY, d + 1, k), dtype=np.float32)
    changes = np.empty((_MEMORY, d + 1, k), dtype=np.float32)
    rho = np.empty(_MEMORY)
    recent = np.full(_WINDOW, np.inf)
    newest = -1
    held = 0
    n_iter = 0
    converged = False
    while n_iter < max_iter:
        _pseudo_gradient(theta, gradient, l1, pseudo)
        norm = math.sqrt(_dot(pseudo, pseudo))
        if norm == 0.0:
            converged = True
            break
        direction[:] = pseudo
        _apply_inverse_hessian(steps, changes, rho, newest, held, direction)
        for j in range(d + 1):
            for c in range(k):
                aligned = direction[j, c] * pseudo[j, c] > 0.0 or j == d or l1 == 0.0
                direction[j, c] = -direction[j, c] if aligned else np.float32(0.0)
        slope = _dot(direction, pseudo)
        if not slope < 0.0:
            if held == 0:
                converged = True
                break
            held = 0  # the memory misleads: start again from the gradient
            continue
        fraction = 1.0 if held > 0 else min(1.0, 1.0 / norm)
        accepted = False
        new_value = value
        for _ in range(40):
            scale = np.float32(fraction)
            for j in range(d + 1):
                for c in range(k):
                    moved = theta[j, c] + scale * direction[j, c]
                    if l1 > 0.0 and j < d:
                        side = theta[j, c] if theta[j, c] != 0.0 else -pseudo[j, c]
                        if moved * side <= 0.0:
                            moved = np.float32(0.0)
                    trial[j, c] = moved
            promised = 0.0
            for j in range(d + 1):
                row = np.float32(0.0)
                for c in range(k):
                    row += pseudo[j, c] * (trial[j, c] - theta[j, c])
                promised += row
            new_value = _smooth(X, target, weight, ridge, trial, scores, trial_gradient)
            new_value += l1 * _l1_norm(trial)
            if new_value <= value + _SUFFICIENT * promised:
                accepted = True
                break
            fraction *= 0.5 if held > 0 else 0.25
        if not accepted:
            if held == 0:
                converged = True  # rounding decides: this is as low as it gets
                break
            held = 0
            continue
        n_iter += 1
        slot = (newest + 1) % _MEMORY
        curved = 0.0
        square = 0.0
        for j in range(d + 1):
            for c in range(k):
                step = trial[j, c] - theta[j, c]
                curved += step * (trial_gradient[j, c] - gradient[j, c])
                square += step * step
        if curved > 1e-12 * square:
            for j in range(d + 1):
                for c in range(k):
                    steps[slot, j, c] = trial[j, c] - theta[j, c]
                    changes[slot, j, c] = trial_gradient[j, c] - gradient[j, c]
            rho[slot] = curved
            newest = slot
            held = min(held + 1, _MEMORY)
        recent[n_iter % _WINDOW] = value - new_value
        theta, trial = trial, theta
        gradient, trial_gradient = trial_gradient, gradient
        value = new_value
        if recent.sum() <= min_decrease:
            converged = True
            break
    W[:] = theta[:d]
    b[:] = theta[d]
    return value, n_iter, converged

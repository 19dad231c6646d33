"""Softmax regression on dense rows: orthant-wise limited-memory quasi-Newton (OWL-QN).

Andrew & Gao (2007): L-BFGS on the smooth part, its direction confined to the orthant that the ℓ₁
subgradient points into, with projected backtracking. An iteration is two matrix products at the
speed of BLAS, and curvature along correlated features, on which coordinate descent crawls, is
learned from the steps themselves. Without ℓ₁ it is plain L-BFGS.

Parameters are one vector: the weights, class by class, then the biases. Scores are made for a block
of rows at a time, with the row axis contiguous, so that few classes use vector instructions, too.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import exp32

_MEMORY = 10
_WINDOW = 5
_SUFFICIENT = 1e-4
_BLOCK = 512


@inlined
def _smooth(
    X: ParamArray,
    target: IndexArray,
    weight: ParamArray,
    ridge: float,
    theta: ParamArray,
    k: int,
    gradient: ParamArray,
    offset: ParamArray | None,
    hold: ParamArray | None,
) -> float:
    """Return loss + ridge at ``theta``; fill its gradient."""
    n, d = X.shape
    W = theta[: k * d].reshape((k, d))
    b = theta[k * d :]
    W_gradient = gradient[: k * d].reshape((k, d))
    b_gradient = gradient[k * d :]
    square = 0.0
    for j in range(k * d):
        square += np.float64(theta[j]) * theta[j]
    for j in range(k * d):
        gradient[j] = np.float32(ridge) * theta[j]
    for c in range(k):
        b_gradient[c] = 0.0
    value = 0.5 * ridge * square
    if hold is not None:
        for c in range(k):
            more = ridge * (hold[c] - 1.0)
            for f in range(d):
                value += 0.5 * more * np.float64(W[c, f]) * W[c, f]
            for f in range(d):
                W_gradient[c, f] += np.float32(more) * W[c, f]
    top = np.empty(_BLOCK, dtype=np.float32)
    own = np.empty(_BLOCK, dtype=np.float32)
    total = np.empty(_BLOCK, dtype=np.float32)
    product = np.empty((k, d), dtype=np.float32)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        rows = X[start : start + size]
        scores = np.empty((k, size), dtype=np.float32)
        np.dot(W, rows.T, scores)
        if offset is not None:
            for i in range(size):
                for c in range(k):
                    scores[c, i] += offset[start + i, c]
        for i in range(size):
            top[i] = -np.inf
            total[i] = 0.0
            own[i] = scores[target[start + i], i] + b[target[start + i]]
        for c in range(k):
            for i in range(size):
                scores[c, i] += b[c]
                top[i] = max(top[i], scores[c, i])
        for c in range(k):
            for i in range(size):
                scores[c, i] = exp32(scores[c, i] - top[i])
                total[i] += scores[c, i]
        for i in range(size):
            value += weight[start + i] * max(top[i] - own[i] + math.log(total[i]), 0.0)
        for i in range(size):
            total[i] = weight[start + i] / total[i]
        for c in range(k):
            for i in range(size):
                scores[c, i] *= total[i]
        for i in range(size):
            scores[target[start + i], i] -= weight[start + i]
        for c in range(k):
            slope = np.float32(0.0)
            for i in range(size):
                slope += scores[c, i]
            b_gradient[c] += slope
        np.dot(scores, rows, product)
        for c in range(k):
            for f in range(d):
                W_gradient[c, f] += product[c, f]
    return value


@inlined
def _pseudo_gradient(
    theta: ParamArray, gradient: ParamArray, l1: float, n_weights: int, out: ParamArray
) -> None:
    """Fill ``out`` with the subgradient of least norm; the biases have no penalty."""
    limit = np.float32(l1)
    zero = np.float32(0.0)
    for j in range(n_weights):
        g = gradient[j]
        if theta[j] > zero:
            out[j] = g + limit
        elif theta[j] < zero:
            out[j] = g - limit
        else:
            out[j] = min(g + limit, zero) + max(g - limit, zero)
    for j in range(n_weights, theta.size):
        out[j] = gradient[j]


@inlined
def _l1_norm(theta: ParamArray, n_weights: int) -> float:
    total = 0.0
    for j in range(n_weights):
        total += np.float64(abs(theta[j]))
    return total


@inlined
def _dot(a: ParamArray, b: ParamArray) -> float:
    total = 0.0
    for j in range(a.size):
        total += np.float64(a[j]) * b[j]
    return total


@inlined
def _add(a: ParamArray, factor: float, out: ParamArray) -> None:
    scale = np.float32(factor)
    for j in range(a.size):
        out[j] += scale * a[j]


@inlined
def _fill_scale(X: ParamArray, weight: ParamArray, ridge: float, k: int, scale: ParamArray) -> None:
    """Fill the inverse of a typical curvature of each parameter, which L-BFGS starts from.

    With it, the units that features are measured in do not matter.
    """
    n, d = X.shape
    square = np.empty(d)
    for f in range(d):
        square[f] = 0.0
    mass = 0.0
    for i in range(n):
        mass += weight[i]
        for f in range(d):
            square[f] += weight[i] * X[i, f] * X[i, f]
    for c in range(k):
        for f in range(d):
            scale[c * d + f] = 1.0 / (square[f] / k + ridge + 1e-6 * mass)
        scale[k * d + c] = k / mass


@inlined
def _apply_inverse_hessian(
    steps: ParamArray,
    changes: ParamArray,
    rho: AccumArray,
    newest: int,
    held: int,
    scale: ParamArray,
    v: ParamArray,
) -> None:
    """Multiply ``v`` by the L-BFGS approximation (two-loop recursion), in place."""
    alpha = np.empty(_MEMORY)
    for m in range(held):
        at = (newest - m) % _MEMORY
        alpha[m] = _dot(steps[at], v) / rho[at]
        _add(changes[at], -alpha[m], v)
    factor = 1.0
    if held > 0:
        curved = 0.0
        for j in range(v.size):
            curved += np.float64(changes[newest, j]) * changes[newest, j] * scale[j]
        factor = rho[newest] / curved
    for j in range(v.size):
        v[j] *= np.float32(factor) * scale[j]
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
    theta: ParamArray,
    k: int,
    min_decrease: float,
    max_iter: int,
    offset: ParamArray | None,
    hold: ParamArray | None,
) -> tuple[float, int, bool]:
    """Minimise in place over ``theta``; scores start at ``offset``.

    Returns the objective, the iterations, and whether the last :data:`_WINDOW` of them together
    decreased it by less than ``min_decrease``.
    """
    size = theta.size
    n_weights = k * X.shape[1]
    scale = np.empty(size, dtype=np.float32)
    _fill_scale(X, weight, ridge, k, scale)
    if hold is not None:
        for j in range(n_weights):
            more = ridge * (hold[j // X.shape[1]] - 1.0)
            scale[j] = np.float32(1.0) / (np.float32(1.0) / scale[j] + np.float32(more))
    gradient = np.empty(size, dtype=np.float32)
    pseudo = np.empty(size, dtype=np.float32)
    direction = np.empty(size, dtype=np.float32)
    trial = np.empty(size, dtype=np.float32)
    trial_gradient = np.empty(size, dtype=np.float32)
    steps = np.empty((_MEMORY, size), dtype=np.float32)
    changes = np.empty((_MEMORY, size), dtype=np.float32)
    rho = np.empty(_MEMORY)
    recent = np.empty(_WINDOW)
    for m in range(_WINDOW):
        recent[m] = np.inf
    for j in range(size):
        trial[j] = theta[j]
        gradient[j] = 0.0
    newest = -1
    held = 0
    value = np.inf
    n_iter = -1  # the first trial is the start itself, so that `_smooth` is compiled once
    converged = False
    while n_iter < max_iter:
        if n_iter >= 0:
            _pseudo_gradient(theta, gradient, l1, n_weights, pseudo)
            for j in range(size):
                direction[j] = pseudo[j]
            _apply_inverse_hessian(steps, changes, rho, newest, held, scale, direction)
            for j in range(size):
                aligned = direction[j] * pseudo[j] > 0.0 or j >= n_weights or l1 == 0.0
                direction[j] = -direction[j] if aligned else np.float32(0.0)
            slope = _dot(direction, pseudo)
            if not slope < 0.0:
                if held == 0:
                    converged = True
                    break
                held = 0  # the memory misleads: start again from the gradient
                continue
        fraction = 1.0
        accepted = False
        new_value = value
        for _ in range(40):
            promised = 0.0
            if n_iter >= 0:
                for j in range(size):
                    moved = theta[j] + np.float32(fraction) * direction[j]
                    if l1 > 0.0 and j < n_weights:
                        side = theta[j] if theta[j] != 0.0 else -pseudo[j]
                        moved = moved if moved * side > 0.0 else np.float32(0.0)
                    trial[j] = moved
                for j in range(size):
                    promised += np.float64(pseudo[j]) * (trial[j] - theta[j])
            new_value = _smooth(X, target, weight, ridge, trial, k, trial_gradient, offset, hold)
            new_value += l1 * _l1_norm(trial, n_weights)
            if n_iter < 0 or new_value <= value + _SUFFICIENT * promised:
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
        for j in range(size):
            step = trial[j] - theta[j]
            curved += np.float64(step) * (trial_gradient[j] - gradient[j])
            square += np.float64(step) * step
        if curved > 1e-12 * square:
            for j in range(size):
                steps[slot, j] = trial[j] - theta[j]
                changes[slot, j] = trial_gradient[j] - gradient[j]
            rho[slot] = curved
            newest = slot
            held = min(held + 1, _MEMORY)
        recent[n_iter % _WINDOW] = value - new_value
        for j in range(size):
            theta[j] = trial[j]
            gradient[j] = trial_gradient[j]
        value = new_value
        if recent.sum() <= min_decrease:
            converged = True
            break
    return value, n_iter, converged

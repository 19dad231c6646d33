"""Softmax regression on sparse rows with a ridge: coordinate ascent in the dual.

The dual of the softmax's loss has a distribution αᵢ over the classes for each row, and the weights
are those of the rows' residuals: with V = Σ sᵢ xᵢ(yᵢ - αᵢ)ᵀ they are V, its entries brought nearer
to zero by ℓ₁, over the ridge (Shalev-Shwartz & Zhang, 2013, who prove what such steps reach). A row
at a time moves its αᵢ towards what the softmax says of it, by a share that balances the gain in
entropy against the ridge. All classes of a row are one vector to the processor, a pass costs as
much as two predictions, and some ten of them are enough where the ridge is not small.
Biases are free: they are multipliers of Σ sᵢ(yᵢ - αᵢ) = 0, moved after every pass.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import log32, softmax_row

_BIAS = 0.1
"""What a bias counts as a feature, in lengths of a usual row, between the moves of multipliers."""

_TINY = 1e-12

_FIRST_DOUBT = 0.1
"""Of a distribution αᵢ to start from, the part that is that of all rows; the rest is its class."""


@inlined
def _add_row(
    V: ParamArray,
    indices: IndexArray,
    data: ParamArray,
    begin: int,
    end: int,
    factor: float,
    values: ParamArray,
) -> None:
    """Add the outer product of a row, times a factor, and some values of its classes."""
    for t in range(begin, end):
        v, x = V[indices[t]], np.float32(factor) * data[t]
        for c in range(values.size):
            v[c] += x * values[c]


@inlined
def _fill_scores(
    V: ParamArray,
    indices: IndexArray,
    data: ParamArray,
    begin: int,
    end: int,
    l1: float,
    inverse: np.float32,
    scores: ParamArray,
) -> None:
    """Add to a row's scores what its features give."""
    limit, zero = np.float32(l1), np.float32(0.0)
    for t in range(begin, end):
        v, x = V[indices[t]], data[t] * inverse
        for c in range(scores.size):
            scores[c] += x * (max(v[c] - limit, zero) + min(v[c] + limit, zero))


@kernel
def dual_ascent(
    indptr: AnyArray,
    indices: IndexArray,
    data: ParamArray,
    target: IndexArray,
    weight: ParamArray,
    l1: float,
    ridge: float,
    W: ParamArray,
    b: ParamArray,
    warm: bool,
    enough: float,
    max_passes: int,
    offset: ParamArray | None,
) -> tuple[float, int, bool]:
    """Minimise in place over ``W`` of shape (n_features, k) and ``b``; scores start at ``offset``.

    Returns the objective, the passes, and whether the rows' duality gaps, as met in the last pass,
    sum up to less than ``enough``.
    """
    n = target.size
    d, k = W.shape
    zero, inverse = np.float32(0.0), np.float32(1.0 / ridge)
    alpha = np.empty((n, k), dtype=np.float32)
    square = np.empty(n, dtype=np.float32)
    p = np.empty(k, dtype=np.float32)
    scores = np.empty(k, dtype=np.float32)
    mean, mass = 0.0, 0.0
    for i in range(n):
        total = zero
        for t in range(indptr[i], indptr[i + 1]):
            total += data[t] * data[t]
        square[i] = total
        mean += weight[i] * total
        mass += weight[i]
    size = np.float32(_BIAS * math.sqrt(mean / mass))
    softmax_row(b, p)
    for i in range(n):
        if warm:
            for c in range(k):
                scores[c] = b[c]
                if offset is not None:
                    scores[c] += offset[i, c]
            for t in range(indptr[i], indptr[i + 1]):
                j, x = indices[t], data[t]
                for c in range(k):
                    scores[c] += x * W[j, c]
            softmax_row(scores, alpha[i])
        else:
            for c in range(k):
                alpha[i, c] = np.float32(_FIRST_DOUBT) * p[c]
            alpha[i, target[i]] += np.float32(1.0 - _FIRST_DOUBT)
    V = W
    for j in range(d):
        for c in range(k):
            V[j, c] = 0.0
    bias = np.zeros(k, dtype=np.float32)
    for i in range(n):
        for c in range(k):
            p[c] = -alpha[i, c]
        p[target[i]] += np.float32(1.0)
        _add_row(V, indices, data, indptr[i], indptr[i + 1], weight[i], p)
        for c in range(k):
            bias[c] += weight[i] * size * p[c]
    order = np.arange(n)
    state = np.uint64(88172645463325252)
    n_passes, gap = 0, np.inf
    while n_passes < max_passes and gap > enough:
        n_passes += 1
        for s in range(n - 1, 0, -1):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            at = np.int64(state % np.uint64(s + 1))
            order[s], order[at] = order[at], order[s]
        gap = 0.0
        for s in range(n):
            i = order[s]
            a = alpha[i]
            for c in range(k):
                scores[c] = b[c] + size * inverse * bias[c]
                if offset is not None:
                    scores[c] += offset[i, c]
            _fill_scores(V, indices, data, indptr[i], indptr[i + 1], l1, inverse, scores)
            log_total = np.float32(softmax_row(scores, p))
            gain, lost, moved = zero, zero, zero
            for c in range(k):
                scores[c] -= log_total + log32(a[c] + np.float32(_TINY))
                p[c] -= a[c]
            for c in range(k):
                gain += p[c] * scores[c]
                lost -= a[c] * scores[c]
                moved += p[c] * p[c]
            gap += weight[i] * max(lost, zero)
            cost = weight[i] * (square[i] + size * size) * inverse * moved
            if gain <= zero:
                continue
            share = gain / (gain + cost)
            for c in range(k):
                p[c] *= share
                a[c] += p[c]
            _add_row(V, indices, data, indptr[i], indptr[i + 1], -weight[i], p)
            for c in range(k):
                bias[c] -= weight[i] * size * p[c]
        for c in range(k):
            b[c] += size * inverse * bias[c]
    objective = 0.0
    limit = np.float32(l1)
    for i in range(n):
        for c in range(k):
            scores[c] = b[c]
            if offset is not None:
                scores[c] += offset[i, c]
        _fill_scores(V, indices, data, indptr[i], indptr[i + 1], l1, inverse, scores)
        own = scores[target[i]]
        objective += weight[i] * max(softmax_row(scores, p) - own, 0.0)
    for j in range(d):
        for c in range(k):
            W[j, c] = inverse * (max(V[j, c] - limit, zero) + min(V[j, c] + limit, zero))
        for c in range(k):
            objective += l1 * abs(W[j, c]) + 0.5 * ridge * W[j, c] * W[j, c]
    return objective, n_passes, gap <= enough

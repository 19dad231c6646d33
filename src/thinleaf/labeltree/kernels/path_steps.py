"""Gradient steps along the paths of labels (paper 004, algorithm 1).

A node of a binary tree has one output, the score of its second child over its first, as in
fastText's hierarchical softmax; a node of a wider tree has one for each child. Several threads may
run these kernels on the same arrays: they do not lock, and an update may be lost.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import exp32
from thinleaf.labeltree.kernels.embedding import embed_row, step_row

_DAMPING = np.float32(0.25)
"""A step is divided by 1 + rate · ‖w‖² / 4, as much as a logistic loss may curve along it: long
representations do not overshoot, and training does not diverge at rates that suit short ones."""

_NEGLIGIBLE = np.float32(3.35e-4)
_NEGLIGIBLE_MASS = np.float32(0.01)
"""Children whose probability is off by less are left alone, as long as all of a node's together are
off by less than a hundredth: of a wide node, that is most of them, and what threads do not write
they need not exchange. It is σ(-8), where fastText's binary nodes stop as well."""


@inlined
def node_probas(
    w: ParamArray, n: int, weights: ParamArray, bias: ParamArray, p: ParamArray
) -> None:
    """Fill ``p`` with g_n(w), the node's distribution over its children."""
    if weights.shape[1] == 1:
        score = bias[n, 0]
        for t in range(w.size):
            score += weights[n, 0, t] * w[t]
        p[1] = np.float32(1.0) / (np.float32(1.0) + exp32(-score))
        p[0] = np.float32(1.0) - p[1]
    else:
        top = np.float32(-np.inf)
        for j in range(p.size):
            score = bias[n, j]
            for t in range(w.size):
                score += weights[n, j, t] * w[t]
            p[j] = score
            top = max(top, score)
        total = np.float32(0.0)
        for j in range(p.size):
            p[j] = exp32(p[j] - top)
        for j in range(p.size):
            total += p[j]
        inverse = np.float32(1.0) / total
        for j in range(p.size):
            p[j] *= inverse


@inlined
def node_step(
    w: ParamArray,
    n: int,
    target: int,
    p: ParamArray,
    rate: float,
    weights: ParamArray,
    bias: ParamArray,
    delta: ParamArray,
) -> None:
    """Take a gradient step in a node's parameters; add the step for w to ``delta``."""
    n_outputs = weights.shape[1]
    negligible = min(_NEGLIGIBLE, _NEGLIGIBLE_MASS / np.float32(n_outputs))
    for b in range(n_outputs):
        j = b if n_outputs > 1 else 1
        error = -p[j]
        if j == target:
            error += np.float32(1.0)
        if abs(error) < negligible:
            continue
        g = rate * error
        for t in range(w.size):
            delta[t] += g * weights[n, b, t]
            weights[n, b, t] += g * w[t]
        bias[n, b] += g


@kernel
def train_rows(
    X: Rows,
    scale: float,
    y: IndexArray,
    importance: ParamArray,
    rows: IndexArray,
    rates: ParamArray,
    log_likelihood: bool,
    collect: bool,
    U: ParamArray,
    weights: ParamArray,
    bias: ParamArray,
    path_ptr: OffsetArray,
    path_nodes: IndexArray,
    path_branches: IndexArray,
    sum_probas: ParamArray,
    counts: ParamArray,
    label_sums: ParamArray,
    label_counts: ParamArray,
) -> float:
    """Take one step for each of ``rows``; return the sum of their losses.

    Parameters
    ----------
    importance : ndarray of shape (n_rows,) or (0,)
        What a row's step is multiplied by, and what it counts in sums; none is one each.
    rates : ndarray of shape (2,)
        The learning rate at the first and after the last of the rows, linear in between.
    log_likelihood : bool
        Whether to ascend log p_target (section 6) or p_target (algorithm 1) at each node.
    collect : bool
        Whether to add to the statistics.
    """
    dim = U.shape[1]
    factor = np.float32(scale)
    w = np.empty(dim, dtype=np.float32)
    delta = np.empty(dim, dtype=np.float32)
    p = np.empty(sum_probas.shape[1], dtype=np.float32)
    total = 0.0
    for r in range(rows.size):
        row = rows[r]
        label = y[row]
        weight = importance[row] if importance.size > 0 else np.float32(1.0)
        rate = weight * (rates[0] + (rates[1] - rates[0]) * np.float32(r / rows.size))
        embed_row(X, row, factor, U, w)
        delta[:] = np.float32(0.0)
        square = np.float32(0.0)
        for t in range(dim):
            square += w[t] * w[t]
        rate /= np.float32(1.0) + _DAMPING * rate * square
        for e in range(path_ptr[label], path_ptr[label + 1]):
            n, target = path_nodes[e], path_branches[e]
            node_probas(w, n, weights, bias, p)
            if collect:
                counts[e] += weight
                for j in range(p.size):
                    sum_probas[e, j] += weight * p[j]
            total -= weight * math.log(max(p[target], np.float32(1e-30)))
            step = rate if log_likelihood else rate * p[target]
            node_step(w, n, target, p, step, weights, bias, delta)
        if collect:
            label_counts[label] += weight
            for t in range(dim):
                label_sums[label, t] += weight * w[t]
        step_row(X, row, factor, delta, U)
    return total


@kernel
def collect_rows(
    X: Rows,
    scale: float,
    y: IndexArray,
    U: ParamArray,
    weights: ParamArray,
    bias: ParamArray,
    path_ptr: OffsetArray,
    path_nodes: IndexArray,
    sum_probas: ParamArray,
    counts: ParamArray,
) -> None:
    """Add all rows to SumProbas and Counts, without learning from them."""
    factor = np.float32(scale)
    w = np.empty(U.shape[1], dtype=np.float32)
    p = np.empty(sum_probas.shape[1], dtype=np.float32)
    for row in range(y.size):
        embed_row(X, row, factor, U, w)
        for e in range(path_ptr[y[row]], path_ptr[y[row] + 1]):
            node_probas(w, path_nodes[e], weights, bias, p)
            counts[e] += np.float32(1.0)
            for j in range(p.size):
                sum_probas[e, j] += p[j]

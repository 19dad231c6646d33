"""Adagrad: steps divided by the root of the sum of squared gradients, entry by entry."""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.labeltree.kernels.path_steps import node_probas

_EPS = np.float32(1e-10)


@inlined
def adagrad_entry(x: float, g: float, total: float, rate: float) -> float:
    """Return an entry after its ascent step; ``total`` already counts this gradient."""
    return x + rate * g / np.sqrt(total + _EPS)


@kernel
def ascend(x: ParamArray, g: ParamArray, squares: ParamArray, rate: float) -> None:
    """Take a step in every entry of a matrix."""
    step = np.float32(rate)
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            squares[i, t] += g[i, t] * g[i, t]
            x[i, t] = adagrad_entry(x[i, t], g[i, t], squares[i, t], step)


@kernel
def ascend_rows(
    x: ParamArray, ids: IndexArray, g: ParamArray, squares: ParamArray, rate: float
) -> None:
    """Take a step in row ``ids[i]`` with row i of ``g``, one after the other."""
    step = np.float32(rate)
    for i in range(ids.size):
        r = ids[i]
        for t in range(x.shape[1]):
            squares[r, t] += g[i, t] * g[i, t]
            x[r, t] = adagrad_entry(x[r, t], g[i, t], squares[r, t], step)


@kernel
def train_batch(
    R: ParamArray,
    y: IndexArray,
    rate: float,
    collect: bool,
    weights: ParamArray,
    bias: ParamArray,
    weight_squares: ParamArray,
    bias_squares: ParamArray,
    path_ptr: OffsetArray,
    path_nodes: IndexArray,
    path_branches: IndexArray,
    sum_probas: ParamArray,
    counts: ParamArray,
    label_sums: ParamArray,
    label_counts: ParamArray,
    delta: ParamArray,
) -> float:
    """Take one step in the nodes on the paths of a batch; return the sum of losses.

    Gradients are of the mean log-likelihood of the batch. ``delta`` becomes that with respect to
    the representations ``R``. Examples are visited node by node, so a node steps once.
    """
    n_examples, dim = R.shape
    n_outputs = weights.shape[1]
    factor, step = np.float32(1.0 / n_examples), np.float32(rate)
    n_pairs = 0
    for b in range(n_examples):
        n_pairs += path_ptr[y[b] + 1] - path_ptr[y[b]]
    owner = np.empty(n_pairs, dtype=np.int32)
    entry = np.empty(n_pairs, dtype=np.int64)
    node = np.empty(n_pairs, dtype=np.int32)
    at = 0
    for b in range(n_examples):
        delta[b, :] = np.float32(0.0)
        if collect:
            label_counts[y[b]] += np.float32(1.0)
            for t in range(dim):
                label_sums[y[b], t] += R[b, t]
        for e in range(path_ptr[y[b]], path_ptr[y[b] + 1]):
            owner[at], entry[at], node[at] = b, e, path_nodes[e]
            at += 1
    order = np.argsort(node, kind="mergesort")
    p = np.empty(sum_probas.shape[1], dtype=np.float32)
    G = np.empty((n_outputs, dim), dtype=np.float32)
    g_bias = np.empty(n_outputs, dtype=np.float32)
    total = 0.0
    first = 0
    while first < n_pairs:
        n = node[order[first]]
        last = first
        G[:] = np.float32(0.0)
        g_bias[:] = np.float32(0.0)
        while last < n_pairs and node[order[last]] == n:
            b, e = owner[order[last]], entry[order[last]]
            last += 1
            node_probas(R[b], n, weights, bias, p)
            target = path_branches[e]
            total -= math.log(max(p[target], np.float32(1e-30)))
            if collect:
                counts[e] += np.float32(1.0)
                for j in range(p.size):
                    sum_probas[e, j] += p[j]
            for o in range(n_outputs):
                j = o if n_outputs > 1 else 1
                g = -factor * p[j]
                if j == target:
                    g += factor
                g_bias[o] += g
                for t in range(dim):
                    delta[b, t] += g * weights[n, o, t]
                    G[o, t] += g * R[b, t]
        for o in range(n_outputs):
            bias_squares[n, o] += g_bias[o] * g_bias[o]
            bias[n, o] = adagrad_entry(bias[n, o], g_bias[o], bias_squares[n, o], step)
            for t in range(dim):
                weight_squares[n, o, t] += G[o, t] * G[o, t]
                weights[n, o, t] = adagrad_entry(
                    weights[n, o, t], G[o, t], weight_squares[n, o, t], step
                )
        first = last
    return total

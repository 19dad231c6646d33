"""The most probable labels of a representation: branch and bound, greedy descent, all of them.

Paper 004, section 11.1: a depth-first search that leaves out a node whose score is below that of
the k-th best label found. Scores are logarithms of probabilities and never rise on the way down, so
the result is exact.

Rows ``X`` are embedded by ``U``; where that is None they are representations already.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import exp32
from thinleaf.labeltree.kernels.embedding import embed_row

_NONE = np.float32(-np.inf)


@inlined
def log_probas(
    w: ParamArray, n: int, weights: ParamArray, bias: ParamArray, out: ParamArray
) -> None:
    """Fill ``out`` with log g_n(w)."""
    if weights.shape[1] == 1:
        score = bias[n, 0]
        for t in range(w.size):
            score += weights[n, 0, t] * w[t]
        smaller = -np.float32(math.log(np.float32(1.0) + exp32(-abs(score))))
        out[0] = smaller - max(score, np.float32(0.0))
        out[1] = smaller + min(score, np.float32(0.0))
    else:
        top = _NONE
        for j in range(out.size):
            score = bias[n, j]
            for t in range(w.size):
                score += weights[n, j, t] * w[t]
            out[j] = score
            top = max(top, score)
        total = np.float32(0.0)
        for j in range(out.size):
            total += exp32(out[j] - top)
        norm = top + np.float32(math.log(total))
        for j in range(out.size):
            out[j] = min(out[j] - norm, np.float32(0.0))


@inlined
def search(
    w: ParamArray,
    weights: ParamArray,
    bias: ParamArray,
    children: IndexArray,
    logp: ParamArray,
    stack: IndexArray,
    stack_score: ParamArray,
    labels: IndexArray,
    scores: ParamArray,
) -> int:
    """Fill the best labels, best first, and their scores; return how many nodes were visited."""
    n_nodes, arity = children.shape
    k = labels.size
    scores[:] = _NONE
    labels[:] = 0
    stack[0] = 0
    stack_score[0] = np.float32(0.0)
    top = 1
    n_visited = 0
    if n_nodes == 0:
        scores[0] = np.float32(0.0)
        top = 0
    while top > 0:
        top -= 1
        n, score = stack[top], stack_score[top]
        if score <= scores[k - 1]:
            continue
        if n >= n_nodes:
            at = k - 1
            while at > 0 and scores[at - 1] < score:
                scores[at], labels[at] = scores[at - 1], labels[at - 1]
                at -= 1
            scores[at], labels[at] = score, n - n_nodes
            continue
        n_visited += 1
        log_probas(w, n, weights, bias, logp)
        first = top
        for j in range(arity):
            s = score + logp[j]
            if children[n, j] < 0 or s <= scores[k - 1]:
                continue
            at = top
            while at > first and stack_score[at - 1] > s:
                stack[at], stack_score[at] = stack[at - 1], stack_score[at - 1]
                at -= 1
            stack[at], stack_score[at] = children[n, j], s
            top += 1
    return n_visited


@inlined
def descend(
    w: ParamArray, weights: ParamArray, bias: ParamArray, children: IndexArray, logp: ParamArray
) -> int:
    """Return the label where the most probable child of each node leads."""
    n_nodes, arity = children.shape
    n = 0
    if n_nodes == 0:
        return 0
    while n < n_nodes:
        log_probas(w, n, weights, bias, logp)
        best = -1
        for j in range(arity):
            if children[n, j] >= 0 and (best < 0 or logp[j] > logp[best]):
                best = j
        n = children[n, best]
    return n - n_nodes


@kernel
def topk_rows(
    X: Rows,
    scale: float,
    U: ParamArray | None,
    weights: ParamArray,
    bias: ParamArray,
    children: IndexArray,
    depth: int,
    labels: IndexArray,
    scores: ParamArray,
) -> int:
    """Fill the k most probable labels of each row and their log-probabilities."""
    factor = np.float32(scale)
    arity = children.shape[1]
    w = np.empty(weights.shape[2], dtype=np.float32)
    logp = np.empty(arity, dtype=np.float32)
    stack = np.empty(depth * (arity - 1) + 2, dtype=np.int32)
    stack_score = np.empty(stack.size, dtype=np.float32)
    n_visited = 0
    for row in range(labels.shape[0]):
        embed_row(X, row, factor, U, w)
        n_visited += search(
            w, weights, bias, children, logp, stack, stack_score, labels[row], scores[row]
        )
    return n_visited


@kernel
def descend_rows(
    X: Rows,
    scale: float,
    U: ParamArray | None,
    weights: ParamArray,
    bias: ParamArray,
    children: IndexArray,
    labels: IndexArray,
) -> None:
    """Fill the label at the end of each row's greedy path."""
    factor = np.float32(scale)
    w = np.empty(weights.shape[2], dtype=np.float32)
    logp = np.empty(children.shape[1], dtype=np.float32)
    for row in range(labels.size):
        embed_row(X, row, factor, U, w)
        labels[row] = descend(w, weights, bias, children, logp)


@kernel
def node_scores(
    X: Rows,
    scale: float,
    U: ParamArray | None,
    weights: ParamArray,
    bias: ParamArray,
    nodes: IndexArray,
    out: ParamArray,
) -> None:
    """Fill the scores of some nodes for the first row, of shape (n, n_outputs)."""
    w = np.empty(weights.shape[2], dtype=np.float32)
    embed_row(X, 0, np.float32(scale), U, w)
    for i in range(nodes.size):
        for j in range(out.shape[1]):
            score = bias[nodes[i], j]
            for t in range(w.size):
                score += weights[nodes[i], j, t] * w[t]
            out[i, j] = score


@kernel
def proba_rows(
    X: Rows,
    scale: float,
    U: ParamArray | None,
    weights: ParamArray,
    bias: ParamArray,
    children: IndexArray,
    out: ParamArray,
) -> None:
    """Fill the log-probability of every label."""
    factor = np.float32(scale)
    n_nodes, arity = children.shape
    w = np.empty(weights.shape[2], dtype=np.float32)
    logp = np.empty(arity, dtype=np.float32)
    score = np.zeros(n_nodes, dtype=np.float32)
    if n_nodes == 0:
        out[:] = np.float32(0.0)
        return
    for row in range(out.shape[0]):
        embed_row(X, row, factor, U, w)
        for n in range(n_nodes):
            log_probas(w, n, weights, bias, logp)
            for j in range(arity):
                child = children[n, j]
                if child >= n_nodes:
                    out[row, child - n_nodes] = score[n] + logp[j]
                elif child >= 0:
                    score[child] = score[n] + logp[j]


@kernel
def label_logp_rows(
    X: Rows,
    scale: float,
    y: IndexArray,
    U: ParamArray | None,
    weights: ParamArray,
    bias: ParamArray,
    path_ptr: OffsetArray,
    path_nodes: IndexArray,
    path_branches: IndexArray,
    arity: int,
    out: ParamArray,
) -> None:
    """Fill the log-probability of one label of each row (equation 5)."""
    factor = np.float32(scale)
    w = np.empty(weights.shape[2], dtype=np.float32)
    logp = np.empty(arity, dtype=np.float32)
    for row in range(out.size):
        embed_row(X, row, factor, U, w)
        total = np.float32(0.0)
        for e in range(path_ptr[y[row]], path_ptr[y[row] + 1]):
            log_probas(w, path_nodes[e], weights, bias, logp)
            total += logp[path_branches[e]]
        out[row] = total

"""What is known of labels when they are assigned: where examples of each label go at a node.

Statistics of examples, with the node's softmax at the mean representation of a label as a prior.
Nodes of which nothing new is known are kept. Compiled strictly, since kernels here call each other.
"""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import AccumArray, BoolArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import strict_kernel
from thinleaf.kernels.softmax import exp32

NO_ROOM = -1
_PRIOR = 10.0
"""How many examples the distribution at a label's mean representation counts as."""
_NOWHERE = -1e29
"""A bias below belongs to a branch that leads nowhere."""
_SMALL = 8
"""Up to so many scores are summed here: to call a matrix product takes longer."""


@strict_kernel
def _at_means(weights: ParamArray, bias: ParamArray, means: ParamArray, p: ParamArray) -> None:
    """Fill a node's distribution over its children at the mean representation of each label."""
    n_labels, arity = p.shape
    n_outputs, dim = weights.shape
    if n_labels * n_outputs > _SMALL:
        scores = np.dot(means, weights.T)
    else:
        scores = np.zeros((n_labels, n_outputs), dtype=np.float32)
        for i in range(n_labels):
            for b in range(n_outputs):
                for t in range(dim):
                    scores[i, b] += means[i, t] * weights[b, t]
    for i in range(n_labels):
        if n_outputs < arity:  # binary: the score of the second child over the first
            p[i, 0] = np.float32(0.0)
            p[i, 1] = scores[i, 0] + bias[0]
        else:
            for j in range(arity):
                p[i, j] = scores[i, j] + bias[j]
        top = p[i, 0]
        for j in range(1, arity):
            top = max(top, p[i, j])
        for j in range(arity):
            p[i, j] = exp32(p[i, j] - top)
        total = np.float32(0.0)
        for j in range(arity):
            if n_outputs == arity and bias[j] < _NOWHERE:
                p[i, j] = np.float32(0.0)
            total += p[i, j]
        for j in range(arity):
            p[i, j] /= total


class Known(NamedTuple):
    """The old tree, its parameters, and what is known of its labels."""

    children: IndexArray
    path_ptr: OffsetArray
    path_nodes: IndexArray
    path_branches: IndexArray
    sum_probas: ParamArray
    counts: ParamArray
    label_sums: ParamArray
    label_counts: ParamArray
    top_children: IndexArray
    """Which children sums are of; empty if they are of all."""
    weights: ParamArray
    bias: ParamArray
    moved: BoolArray
    """Which labels have had examples since the last assignment; empty if all are to be assigned."""
    n_below: IndexArray
    """How many labels each node has."""


class Rule(NamedTuple):
    """How labels are assigned. With ``max_depth`` 0 this is algorithm 2, else algorithm 3."""

    log_likelihood: bool
    inertia: float
    max_share: float
    max_depth: int


@strict_kernel
def mean_representations(known: Known, labels: IndexArray, means: ParamArray) -> None:
    """Fill the mean representation of each label that has examples."""
    for i in range(means.shape[0]):
        count = known.label_counts[labels[i]]
        share = np.float32(1.0 / count) if count > 0.0 else np.float32(0.0)
        for t in range(means.shape[1]):
            means[i, t] = known.label_sums[labels[i], t] * share


@strict_kernel
def _add_top(known: Known, e: int, n_prior: float, p: ParamArray) -> None:
    """Add the sums of some children to a prior; what is missing to all is spread as the prior."""
    missing, others = known.counts[e], np.float32(0.0)
    for j in range(p.size):
        others += p[j]
    for t in range(known.top_children.shape[1]):
        missing -= known.sum_probas[e, t]
        others -= p[known.top_children[e, t]]
    share = n_prior
    if missing > 0.0 and others > 1e-6:
        share += missing / others
    inverse = np.float32(1.0) / (known.counts[e] + n_prior)
    for t in range(known.top_children.shape[1]):
        j = known.top_children[e, t]
        # what follows multiplies all by share
        p[j] = (known.sum_probas[e, t] + n_prior * p[j]) / max(share, np.float32(1e-30))
    for j in range(p.size):
        p[j] *= share * inverse


@strict_kernel
def is_kept(known: Known, labels: IndexArray, old: int, depth: int) -> bool:
    """Return whether a node has the labels that it had, none of which had an example since."""
    if known.moved.size == 0 or old < 0 or known.n_below[old] != labels.size:
        return False
    for i in range(labels.size):
        e = known.path_ptr[labels[i]] + depth
        if known.moved[labels[i]] or e >= known.path_ptr[labels[i] + 1]:
            return False
        if known.path_nodes[e] != old:
            return False
    return True


@strict_kernel
def keep(
    known: Known, labels: IndexArray, depth: int, step: int, most: int, child: IndexArray
) -> bool:
    """Fill the child that each label is at; fillers make well-formed children of them.

    Returns False if that is no assignment of the wanted form, as of a tree that was given.
    """
    n_labels, arity = known.path_ptr.size - 1, known.children.shape[1]
    size = np.zeros(arity, dtype=np.int64)
    n_real = 0
    while n_real < labels.size and labels[n_real] < n_labels:
        child[n_real] = known.path_branches[known.path_ptr[labels[n_real]] + depth]
        size[child[n_real]] += 1
        n_real += 1
    at = n_real
    for j in range(arity):
        wanted = 1
        while wanted < size[j]:
            wanted += step
        if size[j] > most:
            return False
        while step > 1 and size[j] < wanted:
            if at == labels.size:
                return False
            child[at] = j
            size[j] += 1
            at += 1
    return at == labels.size


@strict_kernel
def distributions(
    known: Known,
    labels: IndexArray,
    means: ParamArray,
    old: int,
    depth: int,
    p: ParamArray,
    q: AccumArray,
    current: IndexArray,
) -> None:
    """Fill p_j|i and q_i of a node that continues node ``old``, and the child each label is at."""
    n_real, arity = p.shape
    p[:] = np.float32(0.0)
    total = 0.0
    for i in range(n_real):
        q[i] = known.label_counts[labels[i]]
        current[i] = NO_ROOM
        total += q[i]
    if old >= 0:
        _at_means(known.weights[old], known.bias[old], means, p)
        for i in range(n_real):
            e = known.path_ptr[labels[i]] + depth
            if q[i] == 0.0:
                p[i] = np.float32(0.0)
            if e >= known.path_ptr[labels[i] + 1] or known.path_nodes[e] != old:
                continue
            current[i] = known.path_branches[e]
            if known.counts[e] > 0:
                n_prior = np.float32(_PRIOR) if q[i] > 0.0 else np.float32(0.0)
                inverse = np.float32(1.0) / (known.counts[e] + n_prior)
                if known.top_children.shape[0] > 0:
                    _add_top(known, e, n_prior, p[i])
                    continue
                for j in range(arity):
                    p[i, j] = (known.sum_probas[e, j] + n_prior * p[i, j]) * inverse
    for i in range(n_real):
        q[i] /= max(total, 1e-30)


@strict_kernel
def carry_over(
    old_ptr: OffsetArray,
    old_nodes: IndexArray,
    old_sum_probas: ParamArray,
    old_counts: ParamArray,
    old_top: IndexArray,
    path_ptr: OffsetArray,
    path_nodes: IndexArray,
    origin: IndexArray,
    sum_probas: ParamArray,
    counts: ParamArray,
    top: IndexArray,
) -> None:
    """Fill the statistics of pairs of node and label that the old tree had too."""
    for label in range(path_ptr.size - 1):
        n_common = min(path_ptr[label + 1] - path_ptr[label], old_ptr[label + 1] - old_ptr[label])
        for d in range(n_common):
            e, o = path_ptr[label] + d, old_ptr[label] + d
            if origin[path_nodes[e]] == old_nodes[o]:
                counts[e] = old_counts[o]
                for j in range(sum_probas.shape[1]):
                    sum_probas[e, j] = old_sum_probas[o, j]
                for t in range(top.shape[1]):
                    top[e, t] = old_top[o, t]

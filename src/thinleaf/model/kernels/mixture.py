"""Where a row's paths end, and the mixture of the leaves there.

One path is the papers' way; a beam follows the most probable ones, and the paths of all trees of a
forest count alike. Either way, the probabilities of all classes are those of a few, the classes
that the leaves hold or have seen, and a prior for the rest.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray
from thinleaf.kernels._jit import strict_part
from thinleaf.kernels.softmax import exp32
from thinleaf.model.kernels.addresses import float64_at, int32_at, int64_at
from thinleaf.model.kernels.leaf_checks import leaf_is_ready
from thinleaf.model.kernels.packed import (
    BAD_LEAF,
    BEAM,
    CHILD,
    CLASS_IDS,
    CLASS_PTR,
    EXTRA,
    EXTRA_IDS,
    EXTRA_PTR,
    INSIDE,
    N_CLASSES,
    N_TREES,
    OK,
    OUTSIDE,
    PRIOR,
    RANK,
    SHARPNESS,
    argmax,
    descend,
    router_score,
    score_leaf,
)

# -- paths -----------------------------------------------------------------------------------------


@strict_part
def beam_search(table, row, root, leaves, weights):
    """Fill in the leaves of the most probable paths and their probabilities; return how many.

    A beam: all paths go down a level together, and the ``leaves.size`` most probable ones live on.
    The probabilities are scaled to sum to one.
    """
    child = int32_at(table[CHILD])
    beam, sharpness = leaves.size, float64_at(table[SHARPNESS])[0]
    nodes = np.full(2 * beam, root, dtype=np.int64)
    logs = np.zeros(2 * beam, dtype=np.float64)
    n = 1
    going = child[root] >= 0
    while going:
        total = n
        for p in range(n):
            left = child[nodes[p]]
            if left >= 0:
                score = sharpness * np.float64(router_score(table, row, nodes[p]))
                soft = np.log1p(np.exp(-abs(score)))  # log σ(s) is min(s, 0) - soft, of any s
                nodes[total] = left
                logs[total] = logs[p] + (min(-score, 0.0) - soft)
                nodes[p] = left + 1
                logs[p] += min(score, 0.0) - soft
                total += 1
        # the best come first, by insertion: where few paths still go on, few have to move
        for p in range(1, total):
            node, log = nodes[p], logs[p]
            at = p
            while at > 0 and logs[at - 1] < log:
                nodes[at], logs[at] = nodes[at - 1], logs[at - 1]
                at -= 1
            nodes[at], logs[at] = node, log
        n = min(beam, total)
        going = False
        for p in range(n):
            going |= child[nodes[p]] >= 0
    mass = 0.0
    for p in range(n):
        leaves[p] = -1 - child[nodes[p]]
        weights[p] = np.exp(logs[p] - logs[0])
        mass += weights[p]
    for p in range(n):
        weights[p] /= mass
    return n


# -- mixtures --------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """The classes that some leaves hold or have seen, with their probabilities."""

    ids: IndexArray
    p: AccumArray
    lookup: IndexArray  # open addressing: position + 1 of an id, or 0
    rest: float  # what the prior of every other class is multiplied by


@strict_part
def slot_of(lookup, ids, wanted):
    """Return where an id stands in a hash table: at its entry, or where it would go."""
    mask = lookup.size - 1
    at = (np.int64(wanted) * 40503) & mask
    while lookup[at] != 0 and ids[lookup[at] - 1] != wanted:
        at = (at + 1) & mask
    return at


@strict_part
def _softmax(scores, p):
    """Fill in the softmax of scores."""
    top = np.float64(scores[argmax(scores)])
    total = 0.0
    for c in range(scores.size):
        p[c] = np.exp(np.float64(scores[c]) - top)
        total += p[c]
    for c in range(scores.size):
        p[c] /= total


@strict_part
def paths_of(table, row):
    """Return the leaves that a row's paths end in, and the paths' weights, which sum to one."""
    beam, n_trees = table[BEAM], table[N_TREES]
    leaves = np.empty(beam * n_trees, dtype=np.int64)
    weights = np.full(leaves.size, 1.0 / n_trees, dtype=np.float64)
    if beam == 1:
        for root in range(n_trees):
            leaves[root] = descend(table, row, root)
        return leaves, weights
    n = 0
    for root in range(n_trees):
        own = weights[n : n + beam]
        n_own = beam_search(table, row, root, leaves[n : n + beam], own)
        for p in range(n_own):
            own[p] /= n_trees
        n += n_own
    return leaves[:n], weights[:n]


@strict_part
def mixture_of(table, row, smooth):
    """Return the mixture of the leaves at the ends of a row's paths, and OK or an error.

    Without ``smooth``, classes outside a leaf get nothing. The classes that leaves hold come first,
    in the order of the leaves; then those that they have only seen.
    """
    leaves, weights = paths_of(table, row)
    class_ptr, class_ids = int64_at(table[CLASS_PTR]), int32_at(table[CLASS_IDS])
    extra_ptr, extra_ids = int64_at(table[EXTRA_PTR]), int32_at(table[EXTRA_IDS])
    inside, outside = float64_at(table[INSIDE]), float64_at(table[OUTSIDE])
    prior = float64_at(table[PRIOR])
    status = OK
    bound = 0
    rest = 0.0
    for i in range(leaves.size):
        leaf = leaves[i]
        if not leaf_is_ready(table, leaf):
            status = BAD_LEAF
        bound += class_ptr[leaf + 1] - class_ptr[leaf] + extra_ptr[leaf + 1] - extra_ptr[leaf]
        rest += weights[i] * outside[leaf] if smooth else 0.0
    size = 1
    while size < 2 * bound:
        size *= 2
    lookup = np.zeros(size, dtype=np.int32)
    ids = np.empty(bound, dtype=np.int32)
    p = np.empty(bound, dtype=np.float64)
    n = 0
    for i in range(leaves.size if status == OK else 0):
        leaf = leaves[i]
        share = weights[i] * (inside[leaf] if smooth else 1.0)
        missing = weights[i] * outside[leaf] if smooth else 0.0
        first = class_ptr[leaf]
        scores = np.empty(class_ptr[leaf + 1] - first, dtype=np.float32)
        own = np.empty(scores.size, dtype=np.float64)
        score_leaf(table, row, leaf, scores)
        _softmax(scores, own)
        for c in range(scores.size):
            class_id = class_ids[first + c]
            at = slot_of(lookup, ids, class_id)
            if lookup[at] == 0:
                ids[n] = class_id
                p[n] = rest * prior[class_id]
                n += 1
                lookup[at] = n
            # instead of what a leaf gives to a class that it does not hold
            p[lookup[at] - 1] -= missing * prior[class_id]
            p[lookup[at] - 1] += share * own[c]
    extra = float64_at(table[EXTRA])
    for i in range(leaves.size if smooth and status == OK else 0):
        leaf = leaves[i]
        for t in range(extra_ptr[leaf], extra_ptr[leaf + 1]):
            class_id = extra_ids[t]
            at = slot_of(lookup, ids, class_id)
            if lookup[at] == 0:
                ids[n] = class_id
                p[n] = rest * prior[class_id]
                n += 1
                lookup[at] = n
            p[lookup[at] - 1] += weights[i] * outside[leaf] * extra[t]
    for c in range(n):  # what is left of a difference can be just below zero
        p[c] = max(p[c], 0.0)
    return Mixture(ids[:n], p[:n], lookup, rest), status


@strict_part
def _insert(ids, p, n, class_id, value):
    """Insert a class into the best so far, after those of equal probability; return their number.

    When the arrays are full, the last one drops out: the class must be better than that.
    """
    at = min(n, ids.size - 1)
    while at > 0 and p[at - 1] < value:
        p[at] = p[at - 1]
        ids[at] = ids[at - 1]
        at -= 1
    p[at] = value
    ids[at] = class_id
    return min(n + 1, ids.size)


@strict_part
def best_of(table, mixture, ids, p):
    """Fill in the most probable classes of a mixture, best first."""
    mixed, mixed_p, lookup, rest = mixture
    n = 0
    for c in range(mixed.size):
        if n < ids.size or mixed_p[c] > p[n - 1]:
            n = _insert(ids, p, n, mixed[c], mixed_p[c])
    rank, prior = int32_at(table[RANK]), float64_at(table[PRIOR])
    for r in range(table[N_CLASSES]):
        value = rest * prior[rank[r]]
        if n == ids.size and value <= p[n - 1]:
            break
        if lookup[slot_of(lookup, mixed, rank[r])] == 0:
            n = _insert(ids, p, n, rank[r], value)


# -- the most probable class of several paths -----------------------------------------------------

UNDECIDED = -100
_MAX_VOTED = 2048  # classes that can be voted for before a row counts as undecided
_FAINT = 0.01  # a class may lack this many votes, in small ones that are left out
_SLACK = 1e-5  # far above what rounding does to a sum of votes


@strict_part
def _votes(scores):
    """Replace scores by their softmax, in float32 and vectorised."""
    top = scores[argmax(scores)]
    for c in range(scores.size):
        scores[c] = exp32(scores[c] - top)
    total = 0.0
    for c in range(scores.size):
        total += np.float64(scores[c])
    inverse = np.float32(1.0 / total)
    for c in range(scores.size):
        scores[c] *= inverse


@strict_part
def _leads(p, margin):
    """Return which of some classes is ahead of every other by more than a margin, or -1."""
    best, second = 0, 0.0
    for c in range(1, p.size):
        if p[c] > p[best]:
            second = p[best]
            best = c
        else:
            second = max(second, p[c])
    return best if p[best] > second + margin else -1


@strict_part
def vote(table, row):
    """Return the class that the paths' leaves alone make the most probable; UNDECIDED; an error.

    It ends as soon as neither the leaves that have not been asked nor what leaves give to a class
    outside them could change the result: often after half of the trees, or a few paths of a beam.
    """
    beam, n_trees = table[BEAM], table[N_TREES]
    class_ptr, class_ids = int64_at(table[CLASS_PTR]), int32_at(table[CLASS_IDS])
    extra_ptr, extra_ids = int64_at(table[EXTRA_PTR]), int32_at(table[EXTRA_IDS])
    inside, outside = float64_at(table[INSIDE]), float64_at(table[OUTSIDE])
    prior, extra = float64_at(table[PRIOR]), float64_at(table[EXTRA])
    top_prior = prior[int32_at(table[RANK])[0]]
    size = 2
    while size < 2 * min(table[N_CLASSES], _MAX_VOTED):
        size *= 2
    lookup = np.zeros(size, dtype=np.int32)
    ids = np.empty(size // 2, dtype=np.int32)
    p = np.empty(ids.size, dtype=np.float64)
    scores = np.empty(ids.size, dtype=np.float32)
    leaves, weights = np.empty(0, dtype=np.int64), np.full(n_trees, 1.0 / n_trees)
    if beam > 1:
        leaves, weights = paths_of(table, row)
        heaviest_first = np.argsort(-weights, kind="mergesort")
        leaves, weights = leaves[heaviest_first], weights[heaviest_first]
    n = 0
    unasked = 1.0
    faint = _FAINT / weights.size
    beside = 0.0  # the most that a class can get beside its votes
    for i in range(weights.size):
        leaf = leaves[i] if beam > 1 else descend(table, row, i)
        if not leaf_is_ready(table, leaf):
            return np.int64(BAD_LEAF)
        first = class_ptr[leaf]
        k = class_ptr[leaf + 1] - first
        if k > scores.size:
            return np.int64(UNDECIDED)
        score_leaf(table, row, leaf, scores[:k])
        _votes(scores[:k])
        share = weights[i] * inside[leaf]
        for c in range(k):
            if share * scores[c] < faint:
                continue
            at = slot_of(lookup, ids, class_ids[first + c])
            if lookup[at] == 0:
                if n == ids.size:
                    return np.int64(UNDECIDED)
                ids[n] = class_ids[first + c]
                p[n] = 0.0
                n += 1
                lookup[at] = n
            p[lookup[at] - 1] += share * scores[c]
        most, e = top_prior, extra_ptr[leaf]
        if e < extra_ptr[leaf + 1]:  # the first is the most probable
            most = max(most, prior[extra_ids[e]] + extra[e])
        beside += max(weights[i] * outside[leaf] * most, min(share, faint))
        unasked -= weights[i]
        if unasked < 0.5 and n > 0:
            leader = _leads(p[:n], beside + unasked + _SLACK)
            if leader >= 0:
                return np.int64(ids[leader])
    return np.int64(UNDECIDED)

"""The Recall Tree of paper 002: algorithms 1 to 4, for one example after the other.

A tree of routers leads an example to a node whose F most frequent labels are its candidates; a
regressor for each of them picks the label. Nodes are made when they are first reached. A router
that is positive leads left, as in the paper.

State and its growth are in :mod:`thinleaf.online.recall_model`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from thinleaf._dtypes import NO_CHILD, AccumArray, IndexArray, OffsetArray
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.histogram import (
    BOUND,
    HELD,
    MOST_CANDIDATES,
    SHARED,
    TOTAL,
    Histograms,
    entropy_gain,
    recall_bound,
    refill_candidates,
    update_candidates,
)
from thinleaf.online.linear_models import Learning, Models, Scratch, learn, score
from thinleaf.online.scaled_rows import Row, Scales, Stream, observe, prepare
from thinleaf.online.tables import COUNT, EMPTY, USED, find, log_size_for
from thinleaf.online.weights import n_slots, slots_needed

ROOT: Final = 0
LEFT: Final = 0
RIGHT: Final = 1
DEPTH: Final = 2

N_NODES: Final = 0
N_CANDIDATES: Final = 1
AGE: Final = 2
"""Places in ``RecallTree.sizes``: nodes in use, F, and examples since counts had their worth."""

_ROUTERS_PER_CLASS = 16
_MOST_HALVES = 40
"""Half-lives after which all counts are divided by what an example counts."""


class RecallTree(NamedTuple):
    """Figure 2 of the paper, as arrays."""

    nodes: IndexArray
    """Columns ``LEFT``, ``RIGHT`` and ``DEPTH``, of shape (n_nodes, 3)."""
    histograms: Histograms
    routers: Models
    """One for each node with children: see :func:`router_of`."""
    regressors: Models
    """One for each class; their extra features are the nodes of the path."""
    scales: Scales
    sizes: OffsetArray
    most_labels: OffsetArray
    """Labels of the node with most of them, by depth: what bounds the room for one more."""


class Settings(NamedTuple):
    """What users choose."""

    max_depth: int
    max_routers: int
    """0: 16 for each class so far."""
    max_candidates: int
    """0: four times log₂ of the number of classes so far."""
    multiplier: float
    path_features: bool
    entropy_weight: bool
    """Whether routers learn an example with weight ``|ΔH|``, or with its own."""
    own_recall: bool
    """Whether rows stop by the recall of their own side of a node, or by that of all its rows."""
    two_paths: bool
    """Whether regressors also learn the candidates of the second best path."""
    half_life: float
    """Examples after which a count is worth half; 0: counts keep their worth."""
    router: Learning
    regressor: Learning


# -- Algorithm 1 -----------------------------------------------------------------------------------


@bare_part
def descend(tree: RecallTree, row: Row, node: int, settings: Settings, scratch: Scratch) -> int:
    """Return the node whose candidates are to be scored; ``row.extra`` takes the path."""
    while tree.nodes[node, LEFT] != NO_CHILD:
        side = _side(route(tree, row, node, scratch))
        child = tree.nodes[node, side]
        if stops(tree, node, child, settings):
            break
        node = child
        row.extra[tree.nodes[node, DEPTH] - 1] = node
    return node


@bare_part
def stops(tree: RecallTree, node: int, child: int, settings: Settings) -> bool:
    """Whether an example stops at a node, rather than go on to a child.

    The paper compares the recall of both nodes, each of its own examples. Where a router sends the
    frequent labels to one side, that keeps the examples of the other side at the node, which has
    none of their labels. ``own_recall`` compares both nodes' candidates on the child's examples.
    """
    stats = tree.histograms.stats
    bound = bound_now(tree, child, settings)
    if settings.own_recall and stats[child, TOTAL] > 0.0:
        return bool(stats[child, SHARED] > bound * stats[child, TOTAL])
    return bool(bound_now(tree, node, settings) > bound)


@bare_kernel
def bound_now(tree: RecallTree, node: int, settings: Settings) -> float:
    """Return the lower bound on a node's recall, which falls while labels are forgotten."""
    stats = tree.histograms.stats
    if settings.half_life <= 0.0:
        return float(stats[node, BOUND])
    unit = unit_of(tree, settings)
    return recall_bound(stats[node, HELD] / unit, stats[node, TOTAL] / unit, settings.multiplier)


@bare_part
def route(tree: RecallTree, row: Row, node: int, scratch: Scratch) -> float:
    """Return f(x) of a node's router."""
    scratch.models[0] = router_of(tree.nodes[node, LEFT])
    score(tree.routers, without_path(row), scratch.models, 1, scratch)
    return float(scratch.score[0])


@bare_part
def router_of(left: int) -> int:
    """Return the number of a node's router, given its left child: nodes get children in pairs."""
    return (left - 1) // 2


@bare_part
def _side(f: float) -> int:
    return LEFT if f > 0.0 else RIGHT


@bare_part
def with_path(tree: RecallTree, row: Row, node: int, settings: Settings) -> Row:
    """Return the row with the features of a path that ends at ``node``."""
    n_path = tree.nodes[node, DEPTH] if settings.path_features else 0
    return Row(row.idx, row.val, row.n, row.extra, np.int64(n_path))


@bare_part
def without_path(row: Row) -> Row:
    """Return the row without path features: to a router they are all the same."""
    return Row(row.idx, row.val, row.n, row.extra, np.int64(0))


@bare_part
def best_candidate(candidates: IndexArray, n: int, scores: AccumArray) -> int:
    """Return the candidate with the highest score, of equal ones the oldest class."""
    best = 0
    for c in range(1, n):
        tie = scores[c] == scores[best] and candidates[c] < candidates[best]
        if scores[c] > scores[best] or tie:
            best = c
    return candidates[best] if n > 0 else EMPTY


# -- Algorithm 2 -----------------------------------------------------------------------------------


@bare_part
def train(
    tree: RecallTree, row: Row, label: int, weight: float, settings: Settings, scratch: Scratch
) -> int:
    """Descend with an example of known label while the tree learns; return the last node."""
    shared = count(tree, ROOT, label, weight, False, settings)
    node = ROOT
    scratch.runner_up[0], closest = EMPTY, math.inf
    while tree.nodes[node, DEPTH] < settings.max_depth:
        if tree.nodes[node, LEFT] == NO_CHILD:
            if not may_split(tree, settings):
                break
            add_children(tree, node)
        f = update_router(tree, row, label, weight, node, settings, scratch)
        child = tree.nodes[node, _side(f)]
        if abs(f) < closest:
            closest = abs(f)
            scratch.runner_up[0] = tree.nodes[node, 1 - _side(f)]
        shared = count(tree, child, label, weight, shared, settings)
        if stops(tree, node, child, settings):
            break
        node = child
        row.extra[tree.nodes[node, DEPTH] - 1] = node
    return node


@bare_part
def count(
    tree: RecallTree, node: int, label: int, weight: float, shared: bool, settings: Settings
) -> bool:
    """Count a label at a node; ``shared``: its parent's candidate. Return whether it is one now."""
    n_candidates, multiplier = tree.sizes[N_CANDIDATES], settings.multiplier
    unit = unit_of(tree, settings)
    weight *= unit
    held = tree.histograms
    is_one = update_candidates(held, node, label, weight, n_candidates, multiplier, unit)
    if shared:
        held.stats[node, SHARED] += weight
    depth, n_labels = tree.nodes[node, DEPTH], held.counts.owners[node, COUNT]
    tree.most_labels[depth] = max(tree.most_labels[depth], n_labels)
    return is_one


@bare_part
def unit_of(tree: RecallTree, settings: Settings) -> float:
    """Return the count of an example that comes now: the old ones are worth less by its growth."""
    if settings.half_life <= 0.0:
        return 1.0
    return float(2.0 ** (tree.sizes[AGE] / settings.half_life))


@bare_part
def may_split(tree: RecallTree, settings: Settings) -> bool:
    """Whether there may be one more router."""
    limit = settings.max_routers
    if limit == 0:
        limit = _ROUTERS_PER_CLASS * tree.most_labels[0]
    return bool(tree.sizes[N_NODES] // 2 < limit)


@bare_part
def add_children(tree: RecallTree, node: int) -> None:
    """Turn a leaf into an inner node with two empty leaves."""
    first = tree.sizes[N_NODES]
    tree.sizes[N_NODES] = first + 2
    for side in range(2):
        tree.nodes[node, side] = first + side
        tree.nodes[first + side, DEPTH] = tree.nodes[node, DEPTH] + 1


# -- Algorithm 3 -----------------------------------------------------------------------------------


@bare_part
def update_router(
    tree: RecallTree,
    row: Row,
    label: int,
    weight: float,
    node: int,
    settings: Settings,
    scratch: Scratch,
) -> float:
    """Teach a router to send an example where labels get purer; return its new f(x)."""
    f = route(tree, row, node, scratch)
    unit = unit_of(tree, settings)
    difference = entropy_difference(tree, label, weight * unit, node) / unit
    if difference == 0.0:
        return f
    importance = abs(difference) if settings.entropy_weight else weight
    positive = 0 if difference < 0.0 else EMPTY
    learn(
        tree.routers,
        without_path(row),
        scratch.models,
        1,
        positive,
        importance,
        settings.router,
        tree.scales,
        scratch,
    )
    return float(scratch.score[0])


@bare_part
def entropy_difference(tree: RecallTree, label: int, weight: float, node: int) -> float:
    """Return ΔH times the examples at a node: bits that its children gain if an example goes left.

    These are the bits of all labels of both children, less those if it goes right.
    """
    left, right = tree.nodes[node, LEFT], tree.nodes[node, RIGHT]
    gain_left = entropy_gain(tree.histograms, left, label, weight)
    gain_right = entropy_gain(tree.histograms, right, label, weight)
    return gain_left - gain_right


# -- Algorithm 4 -----------------------------------------------------------------------------------


@bare_part
def update_regressors(
    tree: RecallTree,
    row: Row,
    label: int,
    weight: float,
    candidates: IndexArray,
    n: int,
    settings: Settings,
    scratch: Scratch,
) -> None:
    """Teach the candidates' regressors, which have just scored the row, if one is of the label."""
    for positive in range(n):
        if candidates[positive] == label:
            learning = settings.regressor
            regressors, scales = tree.regressors, tree.scales
            learn(regressors, row, candidates, n, positive, weight, learning, scales, scratch)
            return


# -- the stream ------------------------------------------------------------------------------------


@bare_kernel
def learn_rows(
    tree: RecallTree,
    stream: Stream,
    first: int,
    settings: Settings,
    scratch: Scratch,
    predicted: IndexArray,
    needed: OffsetArray,
) -> int:
    """Predict each row, then learn it; return the first place that there was no room for."""
    for place in range(first, stream.order.size):
        i = stream.order[place]
        length = observe(stream.X, i, tree.scales)
        n = prepare(stream.X, i, tree.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        if not has_room(tree, row, settings, needed):
            return place
        label, weight = stream.labels[i], stream.weights[i]
        predicted[place] = learn_row(tree, row, length, label, weight, settings, scratch)
    return stream.order.size


@bare_part
def learn_row(
    tree: RecallTree,
    row: Row,
    length: float,
    label: int,
    weight: float,
    settings: Settings,
    scratch: Scratch,
) -> int:
    """Learn an example; return what was predicted before.

    The scores behind the prediction serve to learn, if both are of the same candidates.
    """
    histograms = tree.histograms
    node = descend(tree, row, ROOT, settings, scratch)
    seen = with_path(tree, row, node, settings)
    n_seen = histograms.n_candidates[node]
    for c in range(n_seen):
        scratch.seen[c] = histograms.candidates[node, c]

    tree.scales.norm[0] += weight
    tree.scales.norm[1] += weight * length
    update_n_candidates(tree, label, settings)
    path = Row(row.idx, row.val, row.n, scratch.train_path, np.int64(0))
    end = train(tree, path, label, weight, settings, scratch)
    candidates, n = histograms.candidates[end], histograms.n_candidates[end]
    same = end == node and n == n_seen and _equal(candidates, scratch.seen, n)
    predicted = EMPTY
    if not same:
        score(tree.regressors, seen, scratch.seen, n_seen, scratch)
        predicted = best_candidate(scratch.seen, n_seen, scratch.score)
    path = with_path(tree, path, end, settings)
    score(tree.regressors, path, candidates, n, scratch)
    if same:
        predicted = best_candidate(candidates, n, scratch.score)
    if settings.two_paths and scratch.runner_up[0] != EMPTY and may_join(settings):
        candidates = scratch.models
        n = union(tree, path, end, settings, scratch)
        score(tree.regressors, path, candidates, n, scratch)
    update_regressors(tree, path, label, weight, candidates, n, settings, scratch)
    tree.sizes[AGE] += 1
    if settings.half_life > 0.0 and tree.sizes[AGE] > _MOST_HALVES * settings.half_life:
        renew_units(tree, settings)
    return predicted


@bare_part
def renew_units(tree: RecallTree, settings: Settings) -> None:
    """Let an example of now be counted as one again, before counts get too large."""
    unit, held = unit_of(tree, settings), tree.histograms
    for slot in range(held.counts.heads[USED]):
        held.counts.values[slot, 0] /= unit
    for node in range(tree.sizes[N_NODES]):
        held.stats[node, TOTAL] /= unit
        held.stats[node, HELD] /= unit
        held.stats[node, SHARED] /= unit
        for c in range(held.n_candidates[node]):
            held.candidate_counts[node, c] /= unit
    tree.sizes[AGE] = 0


@bare_part
def may_join(settings: Settings) -> bool:
    """Whether candidates of another path can learn: they must not get weights of this path."""
    return settings.regressor.known_only or not settings.path_features


@bare_part
def union(tree: RecallTree, row: Row, end: int, settings: Settings, scratch: Scratch) -> int:
    """Fill ``scratch.models`` with the candidates of two paths' ends; return their number."""
    held = tree.histograms
    aside = Row(row.idx, row.val, row.n, scratch.path, np.int64(0))  # another path's nodes
    other = descend(tree, aside, scratch.runner_up[0], settings, scratch)
    n = int(held.n_candidates[end])
    for c in range(n):
        scratch.models[c] = held.candidates[end, c]
    total = n
    for c in range(held.n_candidates[other]):
        label = held.candidates[other, c]
        is_new = True
        for d in range(n):
            is_new &= scratch.models[d] != label
        if is_new:
            scratch.models[total] = label
            total += 1
    return total


@bare_part
def _equal(a: IndexArray, b: IndexArray, n: int) -> bool:
    equal = True
    for c in range(n):
        equal &= a[c] == b[c]
    return equal


@bare_part
def update_n_candidates(tree: RecallTree, label: int, settings: Settings) -> None:
    """Let F follow the number of classes, unless it is given."""
    if settings.max_candidates > 0:
        tree.sizes[N_CANDIDATES] = settings.max_candidates
        return
    counts = tree.histograms.counts
    n_classes = counts.owners[ROOT, COUNT] + (find(counts, ROOT, label) == EMPTY)
    wanted = min(max(4 * math.ceil(math.log2(n_classes)), 2), MOST_CANDIDATES)
    if wanted > tree.sizes[N_CANDIDATES]:
        tree.sizes[N_CANDIDATES] = wanted
        for node in range(tree.sizes[N_NODES]):
            unit = unit_of(tree, settings)
            refill_candidates(tree.histograms, node, wanted, settings.multiplier, unit)


@bare_part
def has_room(tree: RecallTree, row: Row, settings: Settings, needed: OffsetArray) -> bool:
    """Whether arrays are large enough for what one example may add; fill in what is needed.

    A node has path weights of labels alone that have reached it, so both tables have one bound.
    """
    counts, paths = tree.histograms.counts, tree.regressors.extra
    depth = settings.max_depth
    tables = 0
    for level in range(depth + 1):
        tables += 2 << log_size_for(tree.most_labels[level] + 1)
    needed[0] = tree.sizes[N_NODES] + 2 * depth
    needed[1] = counts.heads[USED] + tables
    needed[2] = paths.heads[USED] + tables
    needed[3] = slots_needed(tree.regressors.weights, row, 2 * MOST_CANDIDATES)
    needed[4] = slots_needed(tree.routers.weights, row, depth)
    return bool(
        needed[0] <= tree.nodes.shape[0]
        and needed[1] <= counts.keys.size
        and needed[2] <= paths.keys.size
        and needed[3] <= n_slots(tree.regressors.weights)
        and needed[4] <= n_slots(tree.routers.weights)
    )

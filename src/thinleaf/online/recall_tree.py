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

from thinleaf._dtypes import NO_CHILD, AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.histogram import (
    BOUND,
    MOST_CANDIDATES,
    Histograms,
    entropy_gain,
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
"""Places in ``RecallTree.sizes``: nodes in use, and F."""

_ROUTERS_PER_CLASS = 16


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
    router: Learning
    regressor: Learning


# -- Algorithm 1 -----------------------------------------------------------------------------------


@bare_part
def descend(tree: RecallTree, row: Row, settings: Settings, scratch: Scratch) -> int:
    """Return the node whose candidates are to be scored; ``row.extra`` takes the path."""
    node = ROOT
    while tree.nodes[node, LEFT] != NO_CHILD:
        side = _side(route(tree, row, node, scratch))
        child = tree.nodes[node, side]
        if tree.histograms.stats[node, BOUND] > tree.histograms.stats[child, BOUND]:
            break
        node = child
        row.extra[tree.nodes[node, DEPTH] - 1] = node
    return node


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
    histograms = tree.histograms
    count(tree, ROOT, label, weight, settings)
    node = ROOT
    while tree.nodes[node, DEPTH] < settings.max_depth:
        if tree.nodes[node, LEFT] == NO_CHILD:
            if not may_split(tree, settings):
                break
            add_children(tree, node)
        f = update_router(tree, row, label, weight, node, settings, scratch)
        child = tree.nodes[node, _side(f)]
        count(tree, child, label, weight, settings)
        if histograms.stats[node, BOUND] > histograms.stats[child, BOUND]:
            break
        node = child
        row.extra[tree.nodes[node, DEPTH] - 1] = node
    return node


@bare_part
def count(tree: RecallTree, node: int, label: int, weight: float, settings: Settings) -> None:
    """Count a label at a node."""
    n_candidates, multiplier = tree.sizes[N_CANDIDATES], settings.multiplier
    update_candidates(tree.histograms, node, label, weight, n_candidates, multiplier)
    depth, n_labels = tree.nodes[node, DEPTH], tree.histograms.counts.owners[node, COUNT]
    tree.most_labels[depth] = max(tree.most_labels[depth], n_labels)


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
    difference = entropy_difference(tree, label, weight, node)
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
    node = descend(tree, row, settings, scratch)
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
    update_regressors(tree, path, label, weight, candidates, n, settings, scratch)
    return predicted


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
            refill_candidates(tree.histograms, node, wanted, settings.multiplier)


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
    needed[3] = slots_needed(tree.regressors.weights, row, MOST_CANDIDATES)
    needed[4] = slots_needed(tree.routers.weights, row, depth)
    return bool(
        needed[0] <= tree.nodes.shape[0]
        and needed[1] <= counts.keys.size
        and needed[2] <= paths.keys.size
        and needed[3] <= n_slots(tree.regressors.weights)
        and needed[4] <= n_slots(tree.routers.weights)
    )


@bare_kernel
def predict_rows(
    tree: RecallTree, X: Rows, settings: Settings, scratch: Scratch, best: IndexArray
) -> None:
    """Fill in the best candidate of each row."""
    for i in range(best.size):
        node = score_row(tree, X, i, settings, scratch)
        candidates, n = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
        best[i] = best_candidate(candidates, n, scratch.score)


@bare_kernel
def score_rows(
    tree: RecallTree,
    X: Rows,
    settings: Settings,
    scratch: Scratch,
    nodes: IndexArray,
    scores: AccumArray,
) -> None:
    """Fill in the node that each row reaches and the scores of its candidates."""
    for i in range(nodes.size):
        nodes[i] = score_row(tree, X, i, settings, scratch)
        for c in range(tree.histograms.n_candidates[nodes[i]]):
            scores[i, c] = scratch.score[c]


@bare_part
def score_row(tree: RecallTree, X: Rows, i: int, settings: Settings, scratch: Scratch) -> int:
    """Score the candidates of a row; return the node whose they are."""
    n = prepare(X, i, tree.scales, scratch.idx, scratch.val)
    row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
    node = descend(tree, row, settings, scratch)
    candidates, n = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
    score(tree.regressors, with_path(tree, row, node, settings), candidates, n, scratch)
    return node


@bare_kernel
def candidate_biases(
    tree: RecallTree,
    nodes: IndexArray,
    parents: IndexArray,
    path_features: bool,
    bias: ParamArray,
) -> None:
    """Fill in the biases of nodes' candidates, with the weights of the path to the node."""
    regressors = tree.regressors
    for i in range(nodes.size):
        for c in range(tree.histograms.n_candidates[nodes[i]]):
            label = tree.histograms.candidates[nodes[i], c]
            total = float(regressors.bias[label, 0])
            node = nodes[i] if path_features else ROOT
            while node != ROOT:
                slot = find(regressors.extra, node, label)
                if slot != EMPTY:
                    total += regressors.extra.values[slot, 0]
                node = parents[node]
            bias[i, c] = total

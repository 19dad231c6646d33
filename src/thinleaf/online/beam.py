"""Several paths of a row through a Recall Tree, and the mixture of the candidates at their ends.

Paths go down together, level by level, and the most probable ones live on; a router's output is the
log-odds of its left side. The same as what a frozen tree does with a beam
(:mod:`thinleaf.model.kernels.mixture`), for a tree that goes on learning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, AccumArray, IndexArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.histogram import HELD, MOST_CANDIDATES, TOTAL
from thinleaf.online.linear_models import Scratch, score
from thinleaf.online.recall_tree import (
    DEPTH,
    LEFT,
    RIGHT,
    ROOT,
    RecallTree,
    Settings,
    route,
    stops,
    unit_of,
)
from thinleaf.online.scaled_rows import Row, prepare


class Prior(NamedTuple):
    """What classes that are no candidates share the rest by."""

    share: AccumArray
    """Of each class, of shape (n_classes,); the sum is 1."""
    first: IndexArray
    """The most frequent classes, best first: one more than a row can have candidates, or all."""


class Paths(NamedTuple):
    """Memory for the paths of a row and their mixture."""

    nodes: IndexArray
    logs: AccumArray
    ended: IndexArray
    slot: IndexArray
    """Which row of ``passed`` belongs to a path: a permutation."""
    passed: IndexArray
    """Nodes on the way, of shape (2 * beam, max_depth + 2)."""
    weights: AccumArray
    ids: IndexArray
    """Classes of the mixture."""
    p: AccumArray
    at: IndexArray
    """Place of a class in the mixture and 1, or 0; of shape (n_classes,)."""


class Mixtures(NamedTuple):
    """The classes that are candidates of some path, of several rows."""

    n: IndexArray
    ids: IndexArray
    p: AccumArray
    rest: AccumArray
    """What the share of every other class is multiplied by."""


def new_prior(counts: AccumArray, beam: int) -> Prior:
    """Return the shares of classes that have occurred so often; half a label is added to each."""
    share = (counts + 1.0) / (counts + 1.0).sum()
    n_first = min(beam * MOST_CANDIDATES + 1, counts.size)
    first = np.argpartition(-share, n_first - 1)[:n_first]
    order = np.lexsort((first, -share[first]))
    return Prior(share, first[order].astype(INDEX))


def new_paths(beam: int, max_depth: int, n_classes: int) -> Paths:
    """Return memory for one row."""
    return Paths(
        np.zeros(2 * beam, dtype=INDEX),
        np.zeros(2 * beam, dtype=ACCUM),
        np.zeros(2 * beam, dtype=INDEX),
        np.arange(2 * beam, dtype=INDEX),
        np.zeros((2 * beam, max_depth + 2), dtype=INDEX),
        np.zeros(2 * beam, dtype=ACCUM),
        np.zeros(beam * MOST_CANDIDATES, dtype=INDEX),
        np.zeros(beam * MOST_CANDIDATES, dtype=ACCUM),
        np.zeros(n_classes, dtype=INDEX),
    )


def new_mixtures(n_rows: int, beam: int) -> Mixtures:
    """Return room for the mixtures of rows."""
    width = beam * MOST_CANDIDATES
    return Mixtures(
        np.zeros(n_rows, dtype=INDEX),
        np.zeros((n_rows, width), dtype=INDEX),
        np.zeros((n_rows, width), dtype=ACCUM),
        np.zeros(n_rows, dtype=ACCUM),
    )


@bare_part
def search(
    tree: RecallTree, row: Row, sharpness: float, settings: Settings, scratch: Scratch, paths: Paths
) -> int:
    """Fill in where the most probable paths end and their weights; return how many there are."""
    beam = paths.nodes.size // 2
    paths.nodes[0], paths.logs[0], paths.ended[0] = ROOT, 0.0, 0
    n, going = 1, True
    while going:
        total = n
        for p in range(n):
            if paths.ended[p] == 0:
                total = _split(tree, row, p, total, sharpness, settings, scratch, paths)
        _sort(paths, total)
        n = min(beam, total)
        going = False
        for p in range(n):
            going |= paths.ended[p] == 0
    mass = 0.0
    for p in range(n):
        paths.weights[p] = math.exp(paths.logs[p] - paths.logs[0])
        mass += paths.weights[p]
    for p in range(n):
        paths.weights[p] /= mass
    return n


@bare_part
def _split(
    tree: RecallTree,
    row: Row,
    p: int,
    total: int,
    sharpness: float,
    settings: Settings,
    scratch: Scratch,
    paths: Paths,
) -> int:
    """Let a path go on: right, and left as a new one; return the number of paths."""
    node = paths.nodes[p]
    left, right = tree.nodes[node, LEFT], tree.nodes[node, RIGHT]
    if left == NO_CHILD:
        paths.ended[p] = 1
        return total
    stops_left = stops(tree, node, left, settings)
    stops_right = stops(tree, node, right, settings)
    if stops_left and stops_right:
        paths.ended[p] = 1
        return total
    f = sharpness * route(tree, row, node, scratch)
    soft = math.log1p(math.exp(-abs(f)))
    depth = tree.nodes[node, DEPTH]
    own, new = paths.passed[paths.slot[p]], paths.passed[paths.slot[total]]
    for d in range(depth):
        new[d] = own[d]
    _enter(paths, total, node, left, stops_left, depth, paths.logs[p] + min(f, 0.0) - soft)
    _enter(paths, p, node, right, stops_right, depth, paths.logs[p] + min(-f, 0.0) - soft)
    return total + 1


@bare_part
def _enter(paths: Paths, p: int, node: int, child: int, stop: bool, depth: int, log: float) -> None:
    paths.nodes[p] = node if stop else child
    paths.ended[p] = 1 if stop else 0
    paths.logs[p] = log
    if not stop:
        paths.passed[paths.slot[p], depth] = child


@bare_part
def _sort(paths: Paths, total: int) -> None:
    """Put the most probable paths first; those of equal probability keep their order."""
    for p in range(1, total):
        node, log, ended, slot = paths.nodes[p], paths.logs[p], paths.ended[p], paths.slot[p]
        at = p
        while at > 0 and paths.logs[at - 1] < log:
            paths.nodes[at], paths.logs[at] = paths.nodes[at - 1], paths.logs[at - 1]
            paths.ended[at], paths.slot[at] = paths.ended[at - 1], paths.slot[at - 1]
            at -= 1
        paths.nodes[at], paths.logs[at] = node, log
        paths.ended[at], paths.slot[at] = ended, slot


@bare_part
def mix(
    tree: RecallTree,
    row: Row,
    n_paths: int,
    smooth: bool,
    prior: Prior,
    settings: Settings,
    scratch: Scratch,
    paths: Paths,
) -> tuple[int, float]:
    """Fill in the classes of the paths' ends and their probabilities.

    Without ``smooth``, classes that are no candidates get nothing.

    Returns their number, and what the share of every other class is multiplied by.
    """
    n, rest = 0, 0.0
    for path in range(n_paths):
        node, weight = paths.nodes[path], paths.weights[path]
        candidates, k = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
        n_extra = tree.nodes[node, DEPTH] if settings.path_features else 0
        extra = paths.passed[paths.slot[path]]
        seen = Row(row.idx, row.val, row.n, extra, np.int64(n_extra))
        score(tree.regressors, seen, candidates, k, scratch)
        mass, missing = 0.0, 0.0
        if smooth:
            mass, missing = _outside(tree, node, prior, settings)
        missing *= weight
        best = -math.inf
        for c in range(k):
            best = max(best, scratch.score[c])
        total = 0.0
        for c in range(k):
            scratch.score[c] = math.exp(scratch.score[c] - best)
            total += scratch.score[c]
        for c in range(k):
            label = candidates[c]
            if paths.at[label] == 0:
                paths.ids[n] = label
                paths.p[n] = rest * prior.share[label]
                n += 1
                paths.at[label] = n
            own = weight * (1.0 - mass) * scratch.score[c] / total
            paths.p[paths.at[label] - 1] += own - missing * prior.share[label]
        for c in range(n):
            paths.p[c] += missing * prior.share[paths.ids[c]]
        rest += missing
    for c in range(n):
        paths.p[c] = max(paths.p[c], 0.0)
    return n, rest


@bare_part
def _outside(tree: RecallTree, node: int, prior: Prior, settings: Settings) -> tuple[float, float]:
    """Return what classes outside a node's candidates get, and the factor of their shares."""
    held = tree.histograms
    candidates, k = held.candidates[node], held.n_candidates[node]
    if k == prior.share.size:
        return 0.0, 0.0
    inside = 0.0
    for c in range(k):
        inside += prior.share[candidates[c]]
    others = 1.0 - inside
    most = 0.0
    for r in range(prior.first.size):
        is_candidate = False
        for c in range(k):
            is_candidate |= candidates[c] == prior.first[r]
        if not is_candidate:
            most = prior.share[prior.first[r]] / others
            break
    mass = outside_mass(tree, node, settings)
    mass = min(mass, 0.999 / (1.0 + k * most))
    return mass, mass / others


@bare_kernel
def outside_mass(tree: RecallTree, node: int, settings: Settings) -> float:
    """Return the share of labels at a node that are no candidates, half a label added."""
    unit = unit_of(tree, settings)
    total = tree.histograms.stats[node, TOTAL] / unit
    held = tree.histograms.stats[node, HELD] / unit
    return float((max(total - held, 0.0) + 0.5) / (total + 1.0))


@bare_kernel
def mix_rows(
    tree: RecallTree,
    X: Rows,
    first: int,
    smooth: bool,
    sharpness: float,
    prior: Prior,
    settings: Settings,
    scratch: Scratch,
    paths: Paths,
    mixtures: Mixtures,
) -> None:
    """Fill in the mixtures of rows from ``first`` on."""
    for i in range(mixtures.n.size):
        n = prepare(X, first + i, tree.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        n_paths = search(tree, row, sharpness, settings, scratch, paths)
        n_mixed, rest = mix(tree, row, n_paths, smooth, prior, settings, scratch, paths)
        mixtures.n[i], mixtures.rest[i] = n_mixed, rest
        for c in range(n_mixed):
            mixtures.ids[i, c], mixtures.p[i, c] = paths.ids[c], paths.p[c]
            paths.at[paths.ids[c]] = 0


@bare_kernel
def mixed_classes(
    tree: RecallTree,
    X: Rows,
    sharpness: float,
    prior: Prior,
    settings: Settings,
    scratch: Scratch,
    paths: Paths,
    best: IndexArray,
) -> None:
    """Fill in the most probable class of each row."""
    for i in range(best.size):
        n = prepare(X, i, tree.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        n_paths = search(tree, row, sharpness, settings, scratch, paths)
        n_mixed, rest = mix(tree, row, n_paths, True, prior, settings, scratch, paths)
        winner, p = np.int64(prior.first[0]), -1.0
        for c in range(n_mixed):
            tie = paths.p[c] == p and paths.ids[c] < winner
            if paths.p[c] > p or tie:
                winner, p = np.int64(paths.ids[c]), paths.p[c]
        for r in range(prior.first.size):
            if paths.at[prior.first[r]] == 0:
                if rest * prior.share[prior.first[r]] > p:
                    winner = np.int64(prior.first[r])
                break
        for c in range(n_mixed):
            paths.at[paths.ids[c]] = 0
        best[i] = winner

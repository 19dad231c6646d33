"""The way to another class in a packed tree: where it parts from a sample's, what leads there."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM, AnyArray, IndexArray
from thinleaf.model.explanation.explainer import sigmoid
from thinleaf.model.explanation.values import Candidate, Change, Contribution, Route, Score, Step
from thinleaf.model.kernels import explanation as kernels
from thinleaf.model.packed_weights import leaf_columns

if TYPE_CHECKING:
    from thinleaf.model.explanation.packed_trees import PackedExplainer, Walk

_N_ADDED = 5


def routes_to(explainer: PackedExplainer, walk: Walk, class_id: int) -> tuple[Route, ...]:
    """Return a way to a class in each tree that holds it, the likeliest first.

    Where a path of the sample ends in a leaf that holds the class, that is the way; else the most
    probable one.
    """
    from thinleaf.model.explanation.packed_trees import Walk

    packed = explainer.packed
    places = np.flatnonzero(packed.class_ids == class_id)
    leaves = (np.searchsorted(packed.class_ptr, places, side="right") - 1).tolist()
    if not leaves:
        return ()
    best: dict[int, tuple[bool, float, int]] = {}
    held: dict[int, int] = {}
    reached = set(walk.leaves)
    for leaf, p in zip(leaves, _ways(explainer, walk, leaves), strict=True):
        tree = explainer.trail(leaf)[0]
        held[tree] = held.get(tree, 0) + 1
        best[tree] = max(best.get(tree, (False, -1.0, 0)), (leaf in reached, p, -leaf))
    ends = [-leaf for _, _, leaf in best.values()]
    there = Walk(explainer, walk.sample, ends, [0.0] * len(ends), walk.shown)
    routes = [
        _route(explainer, walk, there, i, p, held[tree], class_id)
        for i, (tree, (_, p, _)) in enumerate(best.items())
    ]
    return tuple(sorted(routes, key=lambda route: -route.probability))


def _ways(explainer: PackedExplainer, walk: Walk, leaves: list[int]) -> list[float]:
    """Return how probable the ways to some leaves are, by all of their routers."""
    packed, trails = explainer.packed, [explainer.trail(leaf) for leaf in leaves]
    nodes = np.array(sorted({node for trail in trails for node in trail[:-1]}), dtype=INDEX)
    scores = np.empty(nodes.size, dtype=PARAM)
    kernels.scores_of_row(
        explainer.predictor.table, walk.sample.rows, nodes, scores, np.empty(0, INDEX),
        np.zeros(1, OFFSET), np.empty(0, PARAM),
    )  # fmt: skip
    right = sigmoid(scores.astype(ACCUM) / explainer.temperature)
    left = sigmoid(-scores.astype(ACCUM) / explainer.temperature)
    sides = {
        node: (p, q)
        for node, p, q in zip(nodes.tolist(), left.tolist(), right.tolist(), strict=True)
    }
    first = packed.child
    return [
        math.prod(sides[node][below - int(first[node])] for node, below in pairwise(trail))
        for trail in trails
    ]


def _route(
    explainer: PackedExplainer, walk: Walk, there: Walk, i: int, p: float, n_leaves: int,
    class_id: int,
) -> Route:  # fmt: skip
    leaf, steps = there.leaves[i], there.steps(i)
    trail = explainer.trail(leaf)
    reached = leaf in walk.leaves
    fork = None
    if not reached:
        # of the sample's paths in this tree, the weightiest: those come first
        own = next(t for t in map(explainer.trail, walk.leaves) if t[0] == trail[0])
        fork = next(d for d in range(len(steps)) if own[d + 1] != trail[d + 1])
    ranked = there.ranked(i)
    slot = int(np.searchsorted(there.classes(i), class_id))
    best = int(ranked[0]) if ranked[0] != slot else int(ranked[1]) if ranked.size > 1 else -1
    changes = [_turned(explainer, step) for step in steps if step.margin.total < 0.0]
    candidate, rival = _two(there, i, slot, best)
    if best >= 0:
        lead = there.lead(i, best, slot)
        if lead.total > 0.0:
            features, weights = leaf_columns(explainer.packed, leaf, (slot, best))
            added = _added(lead, features, weights[:, 0] - weights[:, 1])
            changes.append(Change(None, lead, lead.enough(lead.total), added))
    return Route(
        trail[0], leaf, explainer.leaf_nodes[leaf], n_leaves, p, reached, fork, steps, candidate,
        rival, tuple(changes),
    )  # fmt: skip


def _two(there: Walk, i: int, slot: int, best: int) -> tuple[Candidate, Candidate | None]:
    slots = np.array([slot] if best < 0 else [slot, best])
    found = there.some_candidates(i, slots)
    return found[0], found[1] if best >= 0 else None


def _turned(explainer: PackedExplainer, step: Step) -> Change:
    """Return what would make a router take the branch that it does not."""
    lead = step.margin.reversed()
    router = explainer.routers[step.node]
    toward = router.weights if step.branch == 1 else -router.weights
    return Change(step, lead, lead.enough(lead.total), _added(lead, router.features, toward))


def _added(lead: Score, features: IndexArray, toward: AnyArray) -> tuple[Contribution, ...]:
    """Return features that the sample lacks, with the values that would make up for a lead."""
    n_known = lead.features.size
    if toward.size > 4 * (n_known + _N_ADDED):  # most can be left out: those in front are enough
        first = np.argpartition(-toward, n_known + _N_ADDED)[: n_known + _N_ADDED]
        first = np.flatnonzero(toward >= toward[first].min())
        features, toward = features[first], toward[first]
    missing = ~np.isin(features, lead.features) & (toward > 0.0)
    features, toward = features[missing], toward[missing]
    order = np.argsort(-toward, kind="stable")[:_N_ADDED].tolist()
    return tuple(
        Contribution(
            int(features[t]),
            lead.names.name(int(features[t])),
            lead.total / float(toward[t]),
            lead.total,
        )
        for t in order
    )

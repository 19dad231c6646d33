"""The way to another class in a packed tree: where it parts from a sample's, what leads there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray
from thinleaf.model.explanation.values import Candidate, Change, Contribution, Route, Score, Step

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
    there = Walk(explainer, walk.sample, leaves, [0.0] * len(leaves), walk.shown)
    best: dict[int, tuple[bool, float, int]] = {}
    held: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        tree = explainer.trail(leaf)[0]
        held[tree] = held.get(tree, 0) + 1
        p = float(np.prod([step.probability for step in there.steps(i)]))
        best[tree] = max(best.get(tree, (False, -1.0, 0)), (leaf in walk.leaves, p, i))
    routes = [
        _route(explainer, walk, there, i, p, held[tree], class_id)
        for tree, (_, p, i) in best.items()
    ]
    return tuple(sorted(routes, key=lambda route: -route.probability))


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
            leaf_view = explainer.packed.leaf(leaf)
            toward = leaf_view.weights[:, slot] - leaf_view.weights[:, best]
            added = _added(lead, leaf_view.features, toward)
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

"""Overlap: a row trains not only the nodes on its path, but also those that it nearly reaches.

Not in the papers. Routers are logistic, so the product of their probabilities along a path says how
nearly a row goes there. A node learns from the rows that reach it and from *guests*, whose path
probability is at least a floor, each weighted by that probability: the subtree below a router knows
what to do with rows that end up on the wrong side of it. Routing stays hard, for rows in training
too: guests have no part in the objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, AccumArray, IndexArray
from thinleaf.arrays.rows import Rows
from thinleaf.execution import Executor
from thinleaf.model.routing import Reach, router_scores
from thinleaf.model.tree import Tree


@dataclass(frozen=True)
class Overlap:
    """The rows that train a node besides its reach set, and how much each counts.

    Attributes
    ----------
    share : ndarray
        Path probability of the rows of the reach set, in its order; at least the floor.
    guests : ndarray
        Ids of other rows.
    guest_share : ndarray
        Their path probabilities.
    """

    share: AccumArray
    guests: IndexArray
    guest_share: AccumArray

    def join(self, rows: IndexArray, weight: AccumArray) -> tuple[IndexArray, AccumArray]:
        """Return the reach set and the guests after it, with the weights that they train with."""
        training_rows = np.concatenate([rows, self.guests])
        return training_rows, weight[training_rows] * np.concatenate([self.share, self.guest_share])


def find_overlap(
    tree: Tree, X: Rows, reach: Reach, floor: float, executor: Executor
) -> dict[int, Overlap]:
    """Return the overlap of every node, by following rows down to all nodes that they nearly reach.

    Parameters
    ----------
    reach : Reach
        Of ``tree`` for all rows of ``X``.
    floor : float
        The smallest path probability of a guest.
    """
    found = {0: Overlap(np.ones(reach.rows.size), np.empty(0, INDEX), np.empty(0, ACCUM))}

    def divide(node: int) -> tuple[Overlap, Overlap]:
        here = found[node]
        rows = np.concatenate([reach.of(node), here.guests])
        share = np.concatenate([here.share, here.guest_share])
        right = expit(router_scores(tree.router(node), X, rows).astype(ACCUM))
        n_left = int(reach.sizes[tree.children[node, 0]])
        n_own = here.share.size
        own = (slice(0, n_left), slice(n_left, n_own))
        foreign = (slice(n_left, rows.size), np.r_[0:n_left, n_own : rows.size])
        if not tree.router(node).weights.any():  # all rows go one way, and none nearly the other
            right = (right >= 0.5).astype(ACCUM)
        sides = (share * (1.0 - right), share * right)
        parts = []
        for mine, others, p in zip(own, foreign, sides, strict=True):
            near = p[others] >= floor
            parts.append(Overlap(np.maximum(p[mine], floor), rows[others][near], p[others][near]))
        return parts[0], parts[1]

    for level in tree.levels():
        routers = [int(i) for i in level if tree.children[i, 0] != NO_CHILD]
        divided = executor.local.map(divide, routers, [float(found[i].share.size) for i in routers])
        for node, parts in zip(routers, divided, strict=True):
            for child, part in zip(tree.children[node], parts, strict=True):
                found[int(child)] = part
    return found

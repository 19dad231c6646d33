"""From the scores of a few candidates to probabilities of all classes.

Candidates share a softmax; the classes outside share the mass that the node has seen outside, in
proportion to their overall frequency, but none gets as much as the best candidate. The same as what
:class:`thinleaf.model.probability.Backoff` gives to leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.model.probability import most_outside
from thinleaf.online.growable import OnlineModel


@dataclass(frozen=True)
class Shortlists:
    """The rows that share a node, and their probabilities."""

    rows: AnyArray
    candidates: IndexArray
    inside: AccumArray
    """Of the candidates, of shape (n_rows, n_candidates)."""
    outside: AccumArray
    """Of each class that is none, the same for all rows, of shape (n_classes,)."""

    def best_others(self, k: int) -> IndexArray:
        """Return the k most probable classes that are no candidates."""
        others = np.flatnonzero(~np.isin(np.arange(self.outside.size), self.candidates))
        order = np.argsort(-self.outside[others], kind="stable")[:k]
        return others[order].astype(INDEX)


def spread(
    model: OnlineModel, nodes: IndexArray, scores: AccumArray, counts: AccumArray
) -> Iterator[Shortlists]:
    """Return the probabilities of rows, node by node.

    Parameters
    ----------
    model : OnlineModel
    nodes : ndarray of shape (n_rows,)
    scores : ndarray of shape (n_rows, width)
    counts : ndarray of shape (n_classes,)
        How often each class has occurred.
    """
    by_node = np.argsort(nodes, kind="stable")
    starts = np.flatnonzero(np.diff(nodes[by_node], prepend=-1))
    for rows in np.split(by_node, starts[1:]) if nodes.size else []:
        node = int(nodes[rows[0]])
        candidates = model.candidates(node)
        inside = _softmax(scores[rows, : candidates.size])
        share = counts + 1.0
        share[candidates] = 0.0
        mass = 0.0
        if candidates.size < counts.size:
            share /= share.sum()
            mass = min(model.outside(node), most_outside(candidates.size, float(share.max())))
        yield Shortlists(rows, candidates, (1.0 - mass) * inside, mass * share)


def _softmax(scores: AccumArray) -> AccumArray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: AccumArray = e / e.sum(axis=1, keepdims=True)
    return out

"""From leaf scores to probabilities over all classes.

A leaf gives exact zero to the classes that it does not hold. Three ways to deal with that: leave
the zeros and report coverage; paper 001's ε for each of them, renormalised; or ours, a back-off:
each leaf sets aside the mass of classes outside it and spreads it over them by what was seen there
and by the class frequencies, so that probabilities sum to one over all classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.inference import Reach
from thinleaf.tree import Tree

_PRIOR_STRENGTH = 1.0
"""How many rows' worth of evidence the class frequencies count for beside a leaf's own counts."""


@dataclass(frozen=True)
class Backoff:
    """What each leaf knows of the classes outside it.

    Attributes
    ----------
    mass : ndarray of shape (n_nodes,)
        Estimated probability that a row of this leaf has a class outside it.
    ptr, ids, counts : ragged
        Classes outside the leaf that its training rows had, with their weight.
    prior : ndarray of shape (n_classes,)
        Smoothed class frequencies, positive.
    """

    mass: AccumArray
    ptr: OffsetArray
    ids: IndexArray
    counts: AccumArray
    prior: AccumArray

    @classmethod
    def estimate(cls, tree: Tree, reach: Reach, y: IndexArray, weight: AccumArray) -> Backoff:
        """Count the classes outside each leaf's softmax among the rows that reach it.

        The mass is a leave-one-out estimate in the manner of Good and Turing: a row counts as
        outside if its class is, or if it is the only one of its class in the leaf. A row has the
        smallest weight that occurs; multiplying all weights changes nothing.
        """
        weight = weight / weight.min(where=weight > 0.0, initial=weight.max(initial=1.0))
        frequencies = np.bincount(y, weights=weight, minlength=tree.n_classes) + 0.5
        prior = frequencies / frequencies.sum()
        mass = np.zeros(tree.n_nodes, dtype=ACCUM)
        sizes = np.zeros(tree.n_nodes, dtype=OFFSET)
        ids, counts = [], []
        for node in np.flatnonzero(tree.is_leaf).tolist():
            rows = reach.of(node)
            seen, inverse = np.unique(y[rows], return_inverse=True)
            held = np.bincount(inverse, weights=weight[rows], minlength=seen.size)
            inside = np.isin(seen, tree.leaf(node).classes, assume_unique=True)
            outside = held[~inside].sum() + held[inside & (held <= 1.0)].sum()
            mass[node] = (outside + 0.5) / (held.sum() + 1.0)
            sizes[node] = np.count_nonzero(~inside)
            ids.append(seen[~inside])
            counts.append(held[~inside])
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)
        backoff = cls(mass, ptr, np.concatenate(ids).astype(INDEX), np.concatenate(counts), prior)
        return backoff.capped(tree)

    def distribution(self, tree: Tree, node: int) -> AccumArray:
        """Return the distribution over classes outside a leaf, of shape (n_classes,)."""
        q = _PRIOR_STRENGTH * self.prior
        at = slice(self.ptr[node], self.ptr[node + 1])
        q[self.ids[at]] += self.counts[at]
        q[tree.leaf(node).classes] = 0.0
        total = q.sum()
        return q / total if total > 0.0 else q

    def capped(self, tree: Tree, scale: float = 1.0) -> Backoff:
        """Scale the masses, as far as the leaf's top class stays the most probable of all.

        The top of k classes has at least 1/k of the inside mass, so m·max(q) ≤ (1 - m)/k is enough.
        It holds by itself for raw frequencies, because a leaf holds the most frequent classes.
        """
        mass = self.mass * scale
        for node in np.flatnonzero(tree.is_leaf).tolist():
            top = self.distribution(tree, node).max()
            k = tree.leaf(node).classes.size
            mass[node] = min(mass[node], 0.999 / (1.0 + k * top)) if top > 0.0 else 0.0
        return Backoff(mass, self.ptr, self.ids, self.counts, self.prior)


def spread(
    tree: Tree, leaves: IndexArray, backoff: Backoff | None, epsilon: float
) -> Iterator[tuple[int, float, AccumArray]]:
    """Yield each leaf in ``leaves`` with its inside mass and the probabilities outside it.

    With a back-off, that; else each outside class gets ``epsilon`` before renormalising.
    """
    for node in np.unique(leaves).tolist():
        if backoff is not None:
            mass = float(backoff.mass[node])
            yield node, 1.0 - mass, mass * backoff.distribution(tree, node)
        else:
            classes = tree.leaf(node).classes
            # the top of k classes has at least 1/k: it stays the most probable
            outside = np.full(tree.n_classes, min(epsilon, 0.999 / classes.size), dtype=ACCUM)
            outside[classes] = 0.0
            total = 1.0 + outside.sum()
            yield node, 1.0 / total, outside / total


def ragged_softmax(ptr: OffsetArray, scores: ParamArray) -> AccumArray:
    """Return the softmax of each row of ragged scores."""
    starts = ptr[:-1]
    sizes = np.diff(ptr)
    top = np.maximum.reduceat(scores, starts).astype(ACCUM)
    out: AccumArray = np.exp(scores - np.repeat(top, sizes))
    out /= np.repeat(np.add.reduceat(out, starts), sizes)
    return out


def ragged_argmax(ptr: OffsetArray, scores: ParamArray) -> OffsetArray:
    """Return where in ``scores`` the first largest of each row stands."""
    sizes = np.diff(ptr)
    is_top = scores == np.repeat(np.maximum.reduceat(scores, ptr[:-1]), sizes)
    at = np.flatnonzero(is_top)
    first = np.searchsorted(at, ptr[:-1])
    return at[first]


def tune_epsilon(
    probability: AccumArray, n_absent: AccumArray, weight: AccumArray | None = None
) -> float:
    """Return the ε with the lowest smoothed perplexity.

    Parameters
    ----------
    probability : ndarray of shape (n_rows,)
        Of the true class, zero where the leaf lacks it.
    n_absent : ndarray of shape (n_rows,)
        How many classes the leaf lacks.
    weight : ndarray of shape (n_rows,), optional
    """
    probability = np.asarray(probability, dtype=ACCUM)
    n_absent = np.asarray(n_absent, dtype=ACCUM)
    grid = np.geomspace(1e-12, 1.0, 241)
    values = [mean_log_loss(smoothed(probability, n_absent, epsilon), weight) for epsilon in grid]
    return float(grid[int(np.argmin(values))])


def smoothed(probability: AccumArray, n_absent: AccumArray, epsilon: float) -> AccumArray:
    """Return probabilities of the true class after ε-smoothing and renormalisation."""
    out: AccumArray = np.where(probability > 0.0, probability, epsilon)
    return out / (1.0 + n_absent * epsilon)


def mean_log_loss(probability: AccumArray, weight: AccumArray | None = None) -> float:
    """Return the (weighted) mean of -log p."""
    return float(-np.average(np.log(probability), weights=weight))

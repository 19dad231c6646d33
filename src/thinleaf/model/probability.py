"""From leaf scores to probabilities over all classes.

A leaf gives exact zero to the classes that it does not hold. Three ways to deal with that: leave
the zeros and report coverage; paper 001's ε for each of them, renormalised; or ours, a back-off:
each leaf sets aside the mass of classes outside it and spreads it over them by what was seen there
and by the class frequencies, so that probabilities sum to one over all classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, AccumArray, AnyArray, IndexArray, OffsetArray
from thinleaf.arrays.ragged import offsets, ranges
from thinleaf.model.routing import Reach
from thinleaf.model.tree import Nodes, Tree

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
        return cls.counted(tree, reach, y, weight).capped(tree)

    @classmethod
    def counted(cls, tree: Tree, reach: Reach, y: IndexArray, weight: AccumArray) -> Backoff:
        """Return the same of weights in rows, and before masses are capped."""
        frequencies = np.bincount(y, weights=weight, minlength=tree.n_classes) + 0.5
        prior = frequencies / frequencies.sum()
        mass = np.zeros(tree.n_nodes, dtype=ACCUM)
        sizes = np.zeros(tree.n_nodes, dtype=OFFSET)
        ids, counts = [], []
        for node in np.flatnonzero(tree.is_leaf).tolist():
            rows = reach.of(node)
            seen, inverse = np.unique(y[rows], return_inverse=True)
            held = np.bincount(inverse, weights=weight[rows], minlength=seen.size)
            inside = np.isin(seen, tree.classes_of(node), assume_unique=True)
            outside = held[~inside].sum() + held[inside & (held <= 1.0)].sum()
            mass[node] = (outside + 0.5) / (held.sum() + 1.0)
            sizes[node] = np.count_nonzero(~inside)
            ids.append(seen[~inside])
            counts.append(held[~inside])
        ptr = offsets(sizes)
        return cls(mass, ptr, np.concatenate(ids).astype(INDEX), np.concatenate(counts), prior)

    def validate(self, tree: Nodes) -> None:
        """Raise ``ValueError`` unless the arrays fit the tree."""
        n, n_ids = tree.n_nodes, self.ids.size
        dtypes = {"mass": ACCUM, "ptr": OFFSET, "ids": INDEX, "counts": ACCUM, "prior": ACCUM}
        fits = (
            all(getattr(self, name).dtype == dtype for name, dtype in dtypes.items())
            and self.mass.shape == (n,)
            and self.prior.shape == (tree.n_classes,)
            and self.ptr.shape == (n + 1,)
            and self.ids.shape == self.counts.shape == (n_ids,)
            and self.ptr[0] == 0
            and self.ptr[-1] == n_ids
            and bool(np.all(self.ptr[:-1] <= self.ptr[1:]))
            and bool(np.all((self.ids >= 0) & (self.ids < tree.n_classes)))
            and bool(np.all((self.mass >= 0.0) & (self.mass < 1.0)))
            and bool(np.all(np.isfinite(self.counts) & (self.counts >= 0.0)))
            and bool(np.all(np.isfinite(self.prior) & (self.prior > 0.0)))
        )
        if not fits:
            raise ValueError("the back-off does not fit the tree")

    def distribution(self, tree: Nodes, node: int) -> AccumArray:
        """Return the distribution over classes outside a leaf, of shape (n_classes,)."""
        q = _PRIOR_STRENGTH * self.prior
        at = slice(self.ptr[node], self.ptr[node + 1])
        q[self.ids[at]] += self.counts[at]
        q[tree.classes_of(node)] = 0.0
        total = q.sum()
        return q / total if total > 0.0 else q

    def with_classes(self, new_id: IndexArray, n_classes: int) -> Backoff:
        """Return the back-off with class ``new_id[i]`` in place of class i; -1 is forgotten.

        Classes that are new are as rare as the rarest that is known.
        """
        prior = np.full(n_classes, self.prior.min(), dtype=ACCUM)
        prior[new_id[new_id >= 0]] = self.prior[new_id >= 0]
        ids = new_id[self.ids]
        kept = ids >= 0
        ptr = np.concatenate([[0], np.cumsum(kept)])[self.ptr].astype(OFFSET)
        return Backoff(
            self.mass, ptr, ids[kept].astype(INDEX), self.counts[kept],
            prior / prior.sum(),
        )  # fmt: skip

    def with_rows(
        self, tree: Tree, reach: Reach, y: IndexArray, weight: AccumArray, before: AccumArray
    ) -> Backoff:
        """Return the back-off after a tree, whose leaves may have more classes, has learned rows.

        Rows that were learned do not say how often others will be outside, so masses only rise: by
        the rows whose classes are outside all the same.

        Parameters
        ----------
        tree : Tree
        reach : Reach
            Of the rows.
        y, weight : ndarray of shape (n_rows,)
        before : ndarray of shape (n_nodes,)
            Weight of the rows that had reached each node before.
        """
        n_classes = self.prior.size
        frequencies = np.maximum(self.prior * (before[0] + 0.5 * n_classes) - 0.5, 0.0)
        frequencies += np.bincount(y, weights=weight, minlength=n_classes) + 0.5
        mass, sizes = self.mass.copy(), np.diff(self.ptr)
        ids: list[AnyArray] = []
        counts: list[AnyArray] = []
        for node in np.flatnonzero(tree.is_leaf).tolist():
            at, rows = slice(self.ptr[node], self.ptr[node + 1]), reach.of(node)
            if rows.size == 0:
                ids.append(self.ids[at])
                counts.append(self.counts[at])
                continue
            seen, inverse = np.unique(np.concatenate([self.ids[at], y[rows]]), return_inverse=True)
            added = np.concatenate([self.counts[at], weight[rows]])
            held = np.bincount(inverse, weights=added, minlength=seen.size)
            outside = ~np.isin(seen, tree.classes_of(node))
            new_outside = weight[rows][~np.isin(y[rows], tree.classes_of(node))].sum()
            mass[node] += new_outside / (before[node] + weight[rows].sum() + 1.0)
            sizes[node] = np.count_nonzero(outside)
            ids.append(seen[outside])
            counts.append(held[outside])
        backoff = Backoff(
            np.minimum(mass, 0.999), offsets(sizes), np.concatenate(ids).astype(INDEX),
            np.concatenate(counts).astype(ACCUM), frequencies / frequencies.sum(),
        )  # fmt: skip
        return backoff.capped(tree)

    def of_nodes(self, kept: IndexArray) -> Backoff:
        """Return the back-off of some nodes, in the order given."""
        sizes = np.diff(self.ptr)[kept]
        at = ranges(self.ptr[kept], sizes)
        return Backoff(self.mass[kept], offsets(sizes), self.ids[at], self.counts[at], self.prior)

    def capped(self, tree: Nodes, scale: float = 1.0) -> Backoff:
        """Scale the masses, as far as the leaf's top class stays the most probable of all.

        It holds by itself for raw frequencies, because a leaf holds the most frequent classes.
        """
        mass = self.mass * scale
        prior = _PRIOR_STRENGTH * self.prior
        rank = np.argsort(-prior, kind="stable")
        everything = prior.sum()
        for node in np.flatnonzero(tree.is_leaf).tolist():
            classes, at = tree.classes_of(node), slice(self.ptr[node], self.ptr[node + 1])
            ids, counts = self.ids[at], self.counts[at]
            if classes.size == tree.n_classes:
                mass[node] = 0.0
                continue
            # the likeliest class outside: one that was seen there, or the first by frequency
            first = rank[: classes.size + 1]
            top = prior[first[~np.isin(first, classes)][0]]
            top = max(top, float((prior[ids] + counts).max(initial=0.0)))
            total = everything - prior[classes].sum() + counts.sum()
            mass[node] = min(mass[node], most_outside(classes.size, float(top / total)))
        return Backoff(mass, self.ptr, self.ids, self.counts, self.prior)


def most_outside(k: int, top: float) -> float:
    """Return how much mass may be outside k classes so that the best of them is the best of all.

    It has at least 1/k of the inside mass, and the best outside the share ``top`` of the mass m
    there, so m·top ≤ (1 - m)/k is enough.
    """
    return 0.999 / (1.0 + k * top)


@dataclass(frozen=True)
class Outside:
    """What predictors give to classes outside a leaf: ``outside[leaf]·(prior + extra)``.

    Attributes
    ----------
    inside : ndarray of shape (n_nodes,)
        Probability that a leaf leaves to its own classes.
    outside : ndarray of shape (n_nodes,)
    prior, rank : ndarray of shape (n_classes,)
        The same for all leaves; classes in the order in which they come when a leaf lacks them.
    ptr, ids, extra : ragged
        Classes that a leaf has seen though it does not hold them, the most probable first.
    """

    inside: AccumArray
    outside: AccumArray
    prior: AccumArray
    rank: IndexArray
    ptr: OffsetArray
    ids: IndexArray
    extra: AccumArray

    @classmethod
    def of(cls, tree: Nodes, backoff: Backoff | None, epsilon: float) -> Outside:
        """Return a back-off in this form; without one, each outside class gets ``epsilon``."""
        return cls._backoff(tree, backoff) if backoff else cls._epsilon(tree, epsilon)

    @classmethod
    def _backoff(cls, tree: Nodes, backoff: Backoff) -> Outside:
        prior = _PRIOR_STRENGTH * backoff.prior
        outside = np.zeros(tree.n_nodes, dtype=ACCUM)
        order = np.arange(backoff.ids.size)
        everything = prior.sum()
        for node in np.flatnonzero(tree.is_leaf).tolist():
            begin, end = backoff.ptr[node], backoff.ptr[node + 1]
            ids, counts = backoff.ids[begin:end], backoff.counts[begin:end]
            classes = tree.classes_of(node)
            if classes.size < tree.n_classes:
                total = everything - prior[classes].sum() + counts.sum()
                outside[node] = backoff.mass[node] / total
            order[begin:end] = begin + np.lexsort((ids, -prior[ids], -(prior[ids] + counts)))
        rank = np.lexsort((np.arange(prior.size), -prior)).astype(INDEX)
        return cls(
            1.0 - backoff.mass, outside, prior, rank,
            backoff.ptr, backoff.ids[order], backoff.counts[order],
        )  # fmt: skip

    @classmethod
    def _epsilon(cls, tree: Nodes, epsilon: float) -> Outside:
        leaves = np.flatnonzero(tree.is_leaf)
        held = [tree.classes_of(node) for node in leaves.tolist()]
        sizes = np.ones(tree.n_nodes, dtype=ACCUM)
        sizes[leaves] = [classes.size for classes in held]
        # the top of k classes has at least 1/k: it stays the most probable
        each = np.minimum(epsilon, 0.999 / sizes)
        total: AccumArray = 1.0 + each * (tree.n_classes - sizes)
        frequency = np.bincount(np.concatenate(held), minlength=tree.n_classes)
        rank = np.lexsort((np.arange(tree.n_classes), -frequency)).astype(INDEX)
        return cls(
            1.0 / total,
            each / total,
            np.ones(tree.n_classes, dtype=ACCUM),
            rank,
            np.zeros(tree.n_nodes + 1, dtype=OFFSET),
            np.empty(0, INDEX),
            np.empty(0, ACCUM),
        )

    def of_leaves(self, leaves: AnyArray) -> dict[str, AnyArray]:
        """Return the arrays with an entry for each of some leaves, ascending, instead of nodes."""
        sizes = np.diff(self.ptr)[leaves]
        return {
            "inside": self.inside[leaves],
            "outside": self.outside[leaves],
            "prior": self.prior,
            "rank": self.rank,
            "extra_ptr": offsets(sizes),
            "extra_ids": self.ids,
            "extra": self.extra,
        }


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

"""Labels that reached each node: counts, entropy, the F most frequent ones, and their recall.

All of paper 002's figure 2 that is not structure, kept up to date in O(F) for each label; and the
recall bound of its equation 1. Slots of candidates are stable: a label keeps its place until a more
frequent one takes it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, AccumArray, IndexArray, OffsetArray
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.tables import (
    COUNT,
    EMPTY,
    LOG_SIZE,
    START,
    Tables,
    enlarged,
    find,
    find_or_insert,
    new_tables,
    padded,
)

MOST_CANDIDATES: Final = 64


class Histograms(NamedTuple):
    """One histogram for each node; counts are sums of example weights."""

    counts: Tables
    """Of each node, its labels with their counts."""
    stats: AccumArray
    """Columns ``TOTAL``, ``HELD``, ``BOUND`` and ``SHARED``, of shape (n_nodes, 4)."""
    candidates: IndexArray
    """The most frequent labels, of shape (n_nodes, F)."""
    candidate_counts: AccumArray
    n_candidates: OffsetArray


TOTAL: Final = 0
"""Sum of the counts."""
HELD: Final = 1
"""Sum of the candidates' counts."""
BOUND: Final = 2
"""Lower bound on recall, -∞ before the first label."""
SHARED: Final = 3
"""Sum of the counts of labels that were candidates of the node's parent when they came."""


def new_histograms(n_nodes: int, max_candidates: int) -> Histograms:
    """Return empty histograms."""
    return Histograms(
        new_tables(n_nodes, 1, ACCUM),
        _new_stats(n_nodes),
        np.full((n_nodes, max_candidates), EMPTY, dtype=INDEX),
        np.zeros((n_nodes, max_candidates), dtype=ACCUM),
        np.zeros(n_nodes, dtype=OFFSET),
    )


def _new_stats(n_nodes: int) -> AccumArray:
    stats = np.zeros((n_nodes, 4), dtype=ACCUM)
    stats[:, BOUND] = -np.inf
    return stats


def enlarged_histograms(histograms: Histograms, n_nodes: int, n_slots: int) -> Histograms:
    """Return histograms of ``n_nodes`` nodes, and at least ``n_slots`` slots for counts."""
    counts = enlarged(histograms.counts, n_nodes, n_slots)
    more = n_nodes - histograms.n_candidates.size
    if more <= 0:
        return histograms._replace(counts=counts)
    return Histograms(
        counts,
        np.concatenate([histograms.stats, _new_stats(more)]),
        padded(histograms.candidates, n_nodes, EMPTY),
        padded(histograms.candidate_counts, n_nodes, 0),
        padded(histograms.n_candidates, n_nodes, 0),
    )


@bare_part
def xlog2x(x: float) -> float:
    """Return x·log₂ x, 0 at 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


@bare_part
def count_of(histograms: Histograms, node: int, label: int) -> float:
    """Return how often a label has reached a node."""
    at = find(histograms.counts, node, label)
    return histograms.counts.values[at, 0] if at != EMPTY else 0.0


@bare_kernel
def entropy_gain(histograms: Histograms, node: int, label: int, weight: float) -> float:
    """Return how much one more label adds to the entropy of a node's labels, summed over them.

    Of labels with counts c that is Σ c·log₂(total/c) bits: the total times their mean entropy H.
    """
    total = histograms.stats[node, TOTAL]
    count = count_of(histograms, node, label)
    of_total = xlog2x(total + weight) - xlog2x(total)
    return of_total - (xlog2x(count + weight) - xlog2x(count))


@bare_kernel
def recall_bound(held: float, total: float, multiplier: float) -> float:
    """Return the empirical Bernstein lower bound on recall, equation 1, with λ as multiplier."""
    if total <= 0.0:
        return -math.inf
    recall = min(held / total, 1.0)
    deviation = math.sqrt(multiplier * recall * (1.0 - recall) / total)
    return recall - deviation - multiplier / total


@bare_kernel
def update_candidates(
    histograms: Histograms,
    node: int,
    label: int,
    weight: float,
    max_candidates: int,
    multiplier: float,
    unit: float,
) -> bool:
    """Count a label at a node, and keep its most frequent labels and recall bound.

    A count of ``unit`` is one example: more than 1 if what came before is to be forgotten. Returns
    whether the label is a candidate now.
    """
    at = find_or_insert(histograms.counts, node, label)
    after = histograms.counts.values[at, 0] + weight
    histograms.counts.values[at, 0] = after
    histograms.stats[node, TOTAL] += weight
    slot = _slot_for(histograms, node, label, after, max_candidates)
    if slot != EMPTY:
        histograms.stats[node, HELD] += after - histograms.candidate_counts[node, slot]
        histograms.candidate_counts[node, slot] = after
        histograms.candidates[node, slot] = label
    held, total = histograms.stats[node, HELD], histograms.stats[node, TOTAL]
    histograms.stats[node, BOUND] = recall_bound(held / unit, total / unit, multiplier)
    return slot != EMPTY


@bare_part
def _slot_for(
    histograms: Histograms, node: int, label: int, count: float, max_candidates: int
) -> int:
    """Return the candidate slot that a label has or may take."""
    n = int(histograms.n_candidates[node])
    candidates = histograms.candidates[node]
    for slot in range(n):
        if candidates[slot] == label:
            return slot
    if n < max_candidates:
        histograms.n_candidates[node] = n + 1
        histograms.candidate_counts[node, n] = 0.0
        return n
    least = 0
    for slot in range(1, n):
        if histograms.candidate_counts[node, slot] < histograms.candidate_counts[node, least]:
            least = slot
    return least if count > histograms.candidate_counts[node, least] else EMPTY


@bare_kernel
def refill_candidates(
    histograms: Histograms, node: int, max_candidates: int, multiplier: float, unit: float
) -> None:
    """Fill free candidate slots with the most frequent other labels, after F has grown."""
    counts = histograms.counts
    start = counts.owners[node, START]
    size = 1 << counts.owners[node, LOG_SIZE] if start != EMPTY else 0
    while histograms.n_candidates[node] < min(max_candidates, counts.owners[node, COUNT]):
        best = EMPTY
        for at in range(start, start + size):
            if counts.keys[at] == EMPTY or _is_candidate(histograms, node, counts.keys[at]):
                continue
            if best == EMPTY or _comes_first(counts, at, best):
                best = at
        slot = histograms.n_candidates[node]
        histograms.n_candidates[node] = slot + 1
        histograms.candidates[node, slot] = counts.keys[best]
        histograms.candidate_counts[node, slot] = counts.values[best, 0]
        histograms.stats[node, HELD] += counts.values[best, 0]
    held, total = histograms.stats[node, HELD], histograms.stats[node, TOTAL]
    histograms.stats[node, BOUND] = recall_bound(held / unit, total / unit, multiplier)


@bare_part
def _comes_first(counts: Tables, a: int, b: int) -> bool:
    """Whether the label of slot ``a`` is the more frequent one; of equal ones, the older label."""
    if counts.values[a, 0] != counts.values[b, 0]:
        return bool(counts.values[a, 0] > counts.values[b, 0])
    return bool(counts.keys[a] < counts.keys[b])


@bare_part
def _is_candidate(histograms: Histograms, node: int, label: int) -> bool:
    found = False
    for slot in range(histograms.n_candidates[node]):
        found |= histograms.candidates[node, slot] == label
    return found

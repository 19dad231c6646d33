"""How far a fitted tree can be trusted: what rows that were not fitted say of it.

How sure its leaves may be, how often a class is outside its leaf, how many paths to follow, and
which of its weights nobody would miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from thinleaf._dtypes import PARAM
from thinleaf.arrays.rows import CSR
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.predictor import Predictor
from thinleaf.model.probability import Backoff, Outside
from thinleaf.model.routing import leaf_of_rows, losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.thin import Least, feature_sizes, find_least
from thinleaf.softmaxtree.tao import TrainingData

_USUAL_BEAM = 4
_OTHER_BEAMS = (2, 8, 16)
_TEMPERATURES = (0.5, 1.0, 2.0, 4.0)
_AS_GOOD = 1.02
LEAST_JUDGES = 20
"""Fewer held-out rows decide nothing."""

BEAM_ROWS = 3000
"""Held-out rows that choose a beam."""

_THIN_ROWS = 10_000
_SHARPNESS_ROWS = 20_000
_SHARPNESS = tuple(2.0 ** (i / 4) for i in range(-16, 9))


@dataclass(frozen=True)
class Trust:
    """What rows that were not fitted say of a tree's probabilities.

    Attributes
    ----------
    outside_scale : float
        How many times more often than fitted rows say is a class outside its leaf.
    beam : int
    temperature : float
        Of the paths to follow. A beam has the fewest errors; of temperatures with about as few,
        it has the one that makes the labels most likely.
    errors : tuple of (beam, temperature, error)
        Of the judge's rows.
    """

    outside_scale: float = 1.0
    beam: int = 1
    temperature: float = 1.0
    errors: tuple[tuple[int, float, float], ...] = ()


def with_sharpness(tree: Tree, factor: float) -> Tree:
    """Return a tree with the scores of its leaves multiplied: no leaf changes its mind."""
    return replace(
        tree,
        block_val=tree.block_val * PARAM(factor),
        entry_val=tree.entry_val * PARAM(factor),
        leaf_bias=tree.leaf_bias * PARAM(factor),
    )


def sharpened(tree: Tree, judge: TrainingData) -> tuple[Tree, float]:
    """Return a tree whose leaves are as sure as the judge's rows say, and the factor."""
    rows = _some(judge, _SHARPNESS_ROWS)
    reach = route(tree, rows.X)

    @cache
    def loss(at: int) -> float:
        entropy, _ = losses(tree, rows.X, rows.y, reach, _SHARPNESS[at])
        inside = np.isfinite(entropy)
        return float(entropy[inside] @ rows.weight[inside])

    # it is convex in the factor
    low, high = 0, len(_SHARPNESS) - 1
    while low < high:
        middle = (low + high) // 2
        if loss(middle) < loss(middle + 1):
            high = middle
        else:
            low = middle + 1
    best = _SHARPNESS[low] if loss(low) < loss(_SHARPNESS.index(1.0)) else 1.0
    return with_sharpness(tree, best), best


def _some(data: TrainingData, n_rows: int) -> TrainingData:
    """Return about as many rows, evenly spread."""
    return data.take(np.arange(0, data.n_rows, max(1, data.n_rows // n_rows)))


def find_trust(tree: Tree, data: TrainingData, judge: TrainingData) -> Trust:
    """Return what the judge's rows say of a tree that is fitted to others."""
    backoff = Backoff.estimate(tree, route(tree, data.X), data.y, data.weight)
    reach = route(tree, judge.X)
    entropy, _ = losses(tree, judge.X, judge.y, reach)
    expected = judge.weight @ backoff.mass[leaf_of_rows(tree, reach)]
    observed = judge.weight[np.isinf(entropy)].sum() + 0.5 * judge.weight.mean()
    scale = float(observed / max(expected, 1e-12))
    if tree.n_leaves == 1:
        return Trust(scale)
    return replace(find_beam(tree, backoff.capped(tree, scale), judge), outside_scale=scale)


def find_beam(tree: Tree, backoff: Backoff, judge: TrainingData) -> Trust:
    """Return how many paths the judge's rows had better take, and at which temperature."""
    rows = _some(judge, BEAM_ROWS)
    _, correct = losses(tree, rows.X, rows.y, route(tree, rows.X))
    total = rows.weight.sum()
    outside = Outside.of(tree, backoff, 0.0)
    packed = pack(tree, outside, sparse=isinstance(judge.X, CSR))
    model = FrozenTree(packed, np.arange(tree.n_classes))
    single = 1.0 - float(rows.weight[correct].sum() / total)
    errors = {(1, 1.0): single}

    def deployed(beam: int, temperature: float) -> Predictor:
        return model.with_beam(beam, temperature=temperature)._predictor

    def error(beam: int, temperature: float) -> float:
        right = deployed(beam, temperature).top_class(rows.X) == rows.y
        errors[beam, temperature] = 1.0 - float(rows.weight[right].sum() / total)
        return errors[beam, temperature]

    def loss(temperature: float) -> float:
        p = deployed(_USUAL_BEAM, temperature).probability_of(rows.X, rows.y)
        return float(-np.log(np.maximum(p, 1e-12)) @ rows.weight)

    least = min(error(_USUAL_BEAM, temperature) for temperature in _TEMPERATURES)
    as_good = [t for t in _TEMPERATURES if errors[_USUAL_BEAM, t] <= _AS_GOOD * least]
    usual = as_good[0] if len(as_good) == 1 else min(as_good, key=loss)
    for beam in _OTHER_BEAMS:
        error(beam, usual)
    widths = [(1, 1.0), (_USUAL_BEAM, usual), *((beam, usual) for beam in _OTHER_BEAMS)]
    beam, temperature = min(widths, key=lambda choice: (errors[choice], choice))
    return Trust(1.0, beam, temperature, tuple((*choice, e) for choice, e in errors.items()))


def least_weight(
    tree: Tree, X: CSR, judge: TrainingData, trust: Trust, most_errors: float
) -> Least:
    """Return how much a weight must matter for the judge's rows, on one path and in the beam."""
    rows = _some(judge, _THIN_ROWS)

    def errors(tree: Tree) -> Iterator[float]:
        packed = pack(tree, Outside.of(tree, None, 0.0), sparse=True)
        one = FrozenTree(packed, np.arange(tree.n_classes))
        yield error_of(one)
        if trust.beam > 1:
            yield error_of(one.with_beam(trust.beam, temperature=trust.temperature))

    def error_of(model: FrozenTree) -> float:
        return float(rows.weight[model.predictor.top_class(rows.X) != rows.y].sum())

    return find_least(tree, feature_sizes(X), errors, most_errors)

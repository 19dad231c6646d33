"""A tree that adapts itself: trial, growth, calibration and a last fit, decided by held-out rows.

Paper 000 decides by the rows that it fits, and its penalties are set by hand. Here some rows of
every class are held out, the *judge*: they choose the leaves' loss and ridge, how deep to start,
which expansions to keep and when to stop, and they say how sure the tree may be. Then the tree that
came of it is optimised once more on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray
from thinleaf.arrays.rows import CSR, Rows
from thinleaf.execution import Executor
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.candidates import Candidates, SettingsOf
from thinleaf.softmaxtree.growth.expand import Grown, Growth
from thinleaf.softmaxtree.growth.first_tree import Wishes, first_limits, first_tree, way_of
from thinleaf.softmaxtree.growth.initial_tree import (
    node_seed,
)
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.growth.round_record import best_round
from thinleaf.softmaxtree.growth.thin import (
    ALL_WEIGHTS,
    Least,
    feature_sizes,
    thinned,
)
from thinleaf.softmaxtree.growth.trial import (
    LeafKind,
)
from thinleaf.softmaxtree.growth.trust import (
    Trust,
    find_trust,
    least_weight,
    sharpened,
    with_sharpness,
)
from thinleaf.softmaxtree.tao import Settings, TaoResult, TrainingData, fit_leaves, optimise

_CUT_SHORT = ("interrupted", "rounds", "seconds")
"""Ends of growth after which nothing else is tried."""


@dataclass(frozen=True)
class Recipe:
    """What was found for a tree that did not grow: enough to train another one like it.

    Attributes
    ----------
    first, kind : LeafKind
        Of the first sweep, and of others, in which leaves have guests.
    depth, n_sweeps : int
    sharpness : float
        What scores of its leaves are multiplied by.
    trust : Trust
    least : Least
        Weights that it keeps, at that sharpness.
    """

    first: LeafKind
    kind: LeafKind
    depth: int
    n_sweeps: int
    sharpness: float
    trust: Trust
    least: Least = ALL_WEIGHTS


@dataclass(frozen=True)
class Adapted:
    """A tree that is fitted to all rows, and how it came to be.

    Attributes
    ----------
    tree : Tree
    grown : Grown
        Without the judge's rows.
    recipe : Recipe
        Also of a tree that grew; its depth and sweeps are then those of the first one.
    """

    tree: Tree
    grown: Grown
    recipe: Recipe


def hold_out(data: TrainingData, share: float, seed: np.random.SeedSequence) -> AccumArray:
    """Return the weight that rows have as judges: about the same share of every class.

    No class is held out as a whole. A row that stands for several equal ones takes part on both
    sides, as its copies would: else the judge would be of rows that are new, where those to be
    predicted are often known.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(data.n_rows)
    order = order[np.argsort(data.y[order], kind="stable")]
    counts = np.bincount(data.y, minlength=data.n_classes)
    begins = np.cumsum(counts) - counts
    rank = np.arange(data.n_rows) - np.repeat(begins, counts)
    shifted = rank + np.repeat(rng.random(data.n_classes) / share, counts)
    taken = (np.floor((shifted + 1.0) * share) > np.floor(shifted * share)) & (rank > 0)
    held = np.zeros(data.n_rows, dtype=ACCUM)
    held[order] = np.where(taken, data.weight[order], 0.0)
    least = np.full(data.n_classes, np.inf)
    np.minimum.at(least, data.y, data.weight)
    copies = data.weight / least[data.y]
    several = (copies >= 2.0 - 1e-6) & (np.abs(copies - np.round(copies)) < 1e-6)
    return np.where(several, share * data.weight, held)


def adapt(
    data: TrainingData,
    held: AccumArray,
    wishes: Wishes,
    settings_of: SettingsOf,
    growth: Growth,
    executor: Executor,
    seed: np.random.SeedSequence,
    *,
    saved: Grown | None = None,
    kind: LeafKind | None = None,
    share: AccumArray | None = None,
    after: Callable[[Grown], None] | None = None,
) -> Adapted:
    """Fit a tree whose shape and penalties the data choose.

    Parameters
    ----------
    held : ndarray of shape (n_rows,)
        The weight that each row has to decide by; the rest is fitted.
    settings_of : callable
        From rows, kind of leaves and the most classes of each leaf to settings.
    saved : Grown, optional
        What an earlier run had reached.
    kind : LeafKind, optional
        What that run, or another tree of the same data, had found.
    share : ndarray of shape (n_rows,), optional
        How much a row counts where it is fitted, but not where it decides.
    after : callable, optional
        Called after each sweep over the whole tree, and after each round.
    """
    rest = data.weight - held
    judge = replace(data, weight=held).take(np.flatnonzero(held))
    if share is not None:
        data, rest = replace(data, weight=data.weight * share), rest * share
    fitted = replace(data, weight=rest).take(np.flatnonzero(rest > 0.0))
    work = Candidates(fitted, judge, wishes, settings_of, growth, executor, seed, after)
    start, flat = work.first_trees(kind)
    grown = work.grow(start, saved)
    if flat is not None and work.prefers(flat, grown) and grown.ended != "interrupted":
        try:
            start = work.best_flat(flat)
            # a fit that goes on from a checkpoint goes on with the tree, and comes here again
            grown = replace(work, after=None).grow(start, None)
        except KeyboardInterrupt:
            grown = replace(grown, ended="interrupted")
    elif kind is None and start.depth > 0 and grown.ended not in _CUT_SHORT:
        try:
            start, grown = work.or_decision_tree(start, grown)
        except KeyboardInterrupt:
            grown = replace(grown, ended="interrupted")
    assert grown.best is not None
    unsure = Recipe(start.first, start.kind, start.depth, 1, 1.0, Trust())
    if grown.ended == "interrupted":
        return Adapted(grown.best, grown, unsure)
    try:
        tree, sharpness = sharpened(grown.best, judge)
        n_sweeps = 1 + best_sweep(grown)
        trust = find_trust(tree, fitted, judge)
        recipe = Recipe(start.first, start.kind, start.depth, n_sweeps, sharpness, trust)
        if isinstance(fitted.X, CSR) and tree.n_nonzero > wishes.thin_above:
            recipe = replace(
                recipe, least=least_weight(tree, fitted.X, judge, trust, wishes.thin_errors)
            )
        if len(grown.history) == 1 and start.depth > 0 and not start.kind.deep:
            tree = follow(recipe, data, wishes, settings_of, executor, seed)
        else:
            overlap = grown.history[best_round(grown.history)].overlap
            tree = _refit(grown.best, data, wishes, settings_of, start.kind, overlap, executor)
            tree = _thin(with_sharpness(tree, sharpness), recipe.least, data.X)
    except KeyboardInterrupt:
        return Adapted(grown.best, replace(grown, ended="interrupted"), unsure)
    return Adapted(tree, grown, recipe)


def follow(
    recipe: Recipe,
    data: TrainingData,
    wishes: Wishes,
    settings_of: SettingsOf,
    executor: Executor,
    seed: np.random.SeedSequence,
) -> Tree:
    """Train a tree on all rows, from the start, as one that did not grow was trained.

    It is what the judge has seen, with more rows: what was found of its probabilities holds.
    """
    way = way_of(wishes.init, axis=recipe.kind.axis)
    initial = first_tree(data, recipe.depth, way, node_seed(seed, 0))
    limits = first_limits(initial.tree, wishes)
    first, later = (settings_of(data, kind, limits) for kind in (recipe.first, recipe.kind))
    result = optimise(
        initial.tree, data, first, executor, max_sweeps=1, assignment=initial.assignment
    )
    if recipe.n_sweeps > 1 and result.ended != "interrupted":
        result = optimise(result.tree, data, later, executor, max_sweeps=recipe.n_sweeps - 1)
        result = _with_last_leaves(result, data, later, executor)
    return _thin(with_sharpness(_complete(result, data), recipe.sharpness), recipe.least, data.X)


def _with_last_leaves(
    result: TaoResult, data: TrainingData, settings: Settings, executor: Executor
) -> TaoResult:
    """Return a tree of sparse rows whose leaves are fitted to the rows that reach them in the end.

    Sweeps are few on sparse rows: routers move after the leaves were fitted.
    """
    if not isinstance(data.X, CSR) or result.tree.n_leaves == 1 or result.ended == "interrupted":
        return result
    return replace(result, tree=fit_leaves(result.tree, data, settings, executor))


def _complete(result: TaoResult, data: TrainingData) -> Tree:
    """Return the pruned tree of a run of sweeps that was not interrupted."""
    if result.ended == "interrupted":
        raise KeyboardInterrupt
    return prune(result.tree, route(result.tree, data.X).sizes > 0)[0]


def _refit(
    tree: Tree,
    data: TrainingData,
    wishes: Wishes,
    settings_of: SettingsOf,
    kind: LeafKind,
    overlap: float | None,
    executor: Executor,
) -> Tree:
    """Optimise a tree on all rows; leaves may take in a few classes of the judge's rows."""
    limits = np.maximum(np.diff(tree.class_ptr) * 9 // 8, 1).astype(INDEX)
    if tree.n_leaves == 1:
        limits[:] = tree.n_classes
    settings = replace(settings_of(data, kind, limits), overlap=overlap)
    result = optimise(tree, data, settings, executor, max_sweeps=wishes.refit_sweeps)
    return _complete(_with_last_leaves(result, data, settings, executor), data)


def best_sweep(grown: Grown) -> int:
    """Return how many sweeps over the first tree its judge has liked."""
    errors = [record.validation_error for record in grown.history[0].sweeps]
    final = grown.history[0].validation_error
    return 1 + errors.index(final) if final in errors else 0


def _thin(tree: Tree, least: Least, X: Rows) -> Tree:
    return thinned(tree, least, feature_sizes(X)) if isinstance(X, CSR) else tree

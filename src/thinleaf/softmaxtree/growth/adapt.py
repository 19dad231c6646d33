"""A tree that adapts itself: trial, growth, calibration and a last fit, decided by held-out rows.

Paper 000 decides by the rows that it fits, and its penalties are set by hand. Here some rows of
every class are held out, the *judge*: they choose the leaves' loss and ridge, how deep to start,
which expansions to keep and when to stop, and they say how sure the tree may be. Then the tree that
came of it is optimised once more on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, IndexArray
from thinleaf.arrays.rows import CSR, Rows, n_features_of
from thinleaf.execution import Executor
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.decision_tree import DEEPEST, decision_tree
from thinleaf.softmaxtree.growth.expand import Grown, Growth, grow
from thinleaf.softmaxtree.growth.initial_tree import (
    SOME_FEATURES,
    InitialTree,
    Way,
    initial_tree,
    node_seed,
)
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.growth.round_record import best_round
from thinleaf.softmaxtree.growth.thin import (
    ALL_WEIGHTS,
    AS_GOOD,
    Least,
    feature_sizes,
    thinned,
)
from thinleaf.softmaxtree.growth.trial import (
    FIRST_STRENGTH,
    LeafKind,
    LeafLoss,
    Start,
    choose_leaf_kind,
    fit_once,
    look_again,
    search,
)
from thinleaf.softmaxtree.growth.trust import (
    Trust,
    find_trust,
    least_weight,
    sharpened,
    with_sharpness,
)
from thinleaf.softmaxtree.tao import Settings, TaoResult, TrainingData, Validation, optimise
from thinleaf.softmaxtree.tao.units import feature_spread

SettingsOf: TypeAlias = Callable[[TrainingData, LeafKind, IndexArray], Settings]

SPARSE_WORK = 5e7
DENSE_WORK = 4e10
"""Multiplications of one pass over the rows by all classes up to which one flat leaf is tried."""

_FEW_CLASSES = 600
_MOST_SPARSE_WORK = 2e9
_MOST_WEIGHTS = 1.5e8
"""Sparse rows of so few classes have such a trial up to more work, as far as a block of weights is
no larger: with guests and some shares of the classes, leaves of a tree take about as much."""

_SEARCHED_WORK = 1.5e10
_WORTH_SEARCHING = 1.3
"""Up to so much work, a flat leaf of dense rows has the loss and ridge that suit it before it is
compared, unless it has more than this many times the errors of a tree after one sweep."""

_WORTH_COMPARING = 1.05
"""How many times the errors of the best flat leaf another loss may have to have its ridge found."""

_CLASSES_PER_FEATURE = 16
"""Dense features that are fewer than classes by more than this are not tried with one flat leaf."""

DENSE_STRENGTH = 0.005
"""Ridge of leaves of a dense tree that is to grow. The leaves of the first tree do not say what
suits those that come of them."""

FLAT_STRENGTH: dict[LeafLoss, float] = {"softmax": DENSE_STRENGTH, "hinge": 0.7}
"""Ridge of one flat leaf of dense rows at which the search for it begins."""

_TABLE = 64
_CLEARLY = 0.7
"""Dense features up to which splits by one of them are tried and a tree need not be surely better
than a flat leaf, and the share of the errors of a tree without such splits that they may have."""

_WORTH_FITTING = 1.4
"""How many times the errors of the tree that has grown a decision tree may have to be fitted."""

_CUT_SHORT = ("interrupted", "rounds", "seconds")
"""Ends of growth after which nothing else is tried."""

_MORE_SWEEPS = 3
_MAY_CATCH_UP = 1.1
"""A dense tree with up to this many times the errors of a flat leaf, after some sweeps, is grown
all the same."""

CLASSES_PER_LEAF = 50
"""The largest fair share of a leaf of the first tree."""

_FAIR_SHARES = 4


@dataclass(frozen=True)
class Wishes:
    """What a user has fixed; the rest is found.

    Attributes
    ----------
    depth : int, optional
        Of the tree to start from.
    deepest : int
        That it may have.
    contraction : float
        α.
    first_share : float, optional
        α₀: the share of all classes that a leaf of the first tree may hold.
    leaf_losses, flat_losses : sequence of {"softmax", "hinge"}
        Of leaves of a tree, and of one flat leaf of dense rows.
    search : bool
        Look for the ridge of leaves.
    init : Way
    axis : bool
        Also try to start from splits by one feature.
    refit_sweeps : int
    thin_above, thin_errors : float
        Sparse rows: a tree of more weights loses those that the judge does not miss, whose errors
        may be so many times more.
    """

    depth: int | None
    deepest: int
    contraction: float
    first_share: float | None
    leaf_losses: Sequence[LeafLoss]
    flat_losses: Sequence[LeafLoss]
    search: bool
    init: Way
    axis: bool
    refit_sweeps: int
    thin_above: float = math.inf
    thin_errors: float = AS_GOOD


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
    work = _Work(fitted, judge, wishes, settings_of, growth, executor, seed, after)
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
    initial = _first_tree(data, recipe.depth, way, node_seed(seed, 0))
    limits = first_limits(initial.tree, wishes)
    first, later = (settings_of(data, kind, limits) for kind in (recipe.first, recipe.kind))
    result = optimise(
        initial.tree, data, first, executor, max_sweeps=1, assignment=initial.assignment
    )
    if recipe.n_sweeps > 1 and result.ended != "interrupted":
        result = optimise(result.tree, data, later, executor, max_sweeps=recipe.n_sweeps - 1)
    return _thin(with_sharpness(_complete(result, data), recipe.sharpness), recipe.least, data.X)


def _complete(result: TaoResult, data: TrainingData) -> Tree:
    """Return the pruned tree of a run of sweeps that was not interrupted."""
    if result.ended == "interrupted":
        raise KeyboardInterrupt
    return prune(result.tree, route(result.tree, data.X).sizes > 0)[0]


def _error_of(start: Start) -> float:
    return start.error


def _judged_error(grown: Grown) -> float:
    error = grown.history[best_round(grown.history)].validation_error
    assert error is not None
    return error


# -- trials and growth -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """What trials and growth have in common."""

    data: TrainingData
    judge: TrainingData
    wishes: Wishes
    settings_of: SettingsOf
    growth: Growth
    executor: Executor
    seed: np.random.SeedSequence
    after: Callable[[Grown], None] | None
    initial: dict[tuple[int, bool], InitialTree] = field(default_factory=dict)
    flats: dict[LeafKind, Start] = field(default_factory=dict)

    def first_trees(self, kind: LeafKind | None) -> tuple[Start, Start | None]:
        """Return the tree to grow, and a flat one that it has yet to beat, if there is one."""
        wishes, sparse = self.wishes, isinstance(self.data.X, CSR)
        depth = wishes.depth
        if depth is None:
            depth = min(usual_depth(self.data.n_classes), wishes.deepest)
        kinds = self._kinds(depth) if kind is None else [kind]
        if kinds[0].deep:
            depth = self._decision_tree()[0]
        deep = self._fitted(depth, kinds[0])
        if kind is None and wishes.axis and depth > 0:
            split = self._fitted(depth, replace(kinds[0], axis=True))
            deep = split if split.error < _CLEARLY * deep.error else deep
        again = kinds if kind is None and sparse and wishes.search and depth > 0 else []
        affordable = flat_is_affordable(self.data.X, self.data.n_classes)
        if wishes.depth is not None or depth == 0 or not affordable:
            return self._with_guests(deep, again), None
        flat = min(map(self._flat, self._flat_kinds(kinds)), key=_error_of)
        if kind is None and self._is_worth_searching(flat, deep):
            flat = self.best_flat(flat)
        noise = self._noise(flat.error, deep.error) if sparse else 0.0
        if flat.error > deep.error - noise:  # else it is surely better, and the tree need not grow
            return self._with_guests(deep, again), flat
        if not sparse:
            deep = self._swept(deep)
            if deep.error <= _MAY_CATCH_UP * flat.error:
                return deep, flat
        return self.best_flat(flat), None

    def _flat_kinds(self, kinds: Sequence[LeafKind]) -> Sequence[LeafKind]:
        """Return the kinds of one flat leaf to try: the quick one alone, if they take long."""
        X = self.data.X
        if not isinstance(X, CSR) or X.data.size * float(self.data.n_classes) <= SPARSE_WORK:
            return kinds
        return [kind for kind in kinds if kind.loss == "hinge"] or kinds[:1]

    def _is_worth_searching(self, flat: Start, deep: Start) -> bool:
        """Return whether a flat leaf of dense rows may turn out to be better than a tree."""
        X = self.data.X
        if isinstance(X, CSR) or X.size * float(self.data.n_classes) > _SEARCHED_WORK:
            return False
        return flat.error <= _WORTH_SEARCHING * deep.error

    def best_flat(self, flat: Start) -> Start:
        """Return a flat leaf of dense rows with the loss and the ridge that suit it.

        One of sparse rows has them.
        """
        X = self.data.X
        if isinstance(X, CSR) or not self.wishes.search:
            return flat
        large = X.size * float(self.data.n_classes) > _SEARCHED_WORK
        losses = [flat.kind.loss] if large else self.wishes.flat_losses
        kinds = [LeafKind(loss, FLAT_STRENGTH[loss], flat.kind.axis) for loss in losses]
        best = flat
        for first in sorted(map(self._flat, kinds), key=_error_of):
            if first.error > _WORTH_COMPARING * best.error:
                break
            _, strength = search(partial(self._flat_error, first.kind), first.kind.strength)
            best = min(best, self._flat(replace(first.kind, strength=strength)), key=_error_of)
        return best

    def _flat(self, kind: LeafKind) -> Start:
        """Return one leaf of all classes; what was fitted is kept."""
        if kind not in self.flats:
            self.flats[kind] = self._fitted(0, kind)
        return self.flats[kind]

    def _flat_error(self, kind: LeafKind, strength: float) -> float:
        return self._flat(replace(kind, strength=strength)).error

    def prefers(self, flat: Start, grown: Grown) -> bool:
        """Return whether a flat leaf is as good as the tree that has grown.

        It is the simpler model of the two, and the tree is the best of several, so the tree must be
        better by more than a standard error; but not where features are few: a flat leaf can say
        little of them.
        """
        reached, X = _judged_error(grown), self.data.X
        noise = 0.0 if few_features(X) else self._noise(flat.error, reached)
        return flat.error <= reached + noise

    def _noise(self, error: float, other: float) -> float:
        """Return the standard error of the difference of two errors on the judge's rows, about."""
        return math.sqrt(0.5 * (error + other) / self.judge.n_rows)

    def or_decision_tree(self, start: Start, grown: Grown) -> tuple[Start, Grown]:
        """Return a tree, or one that began as a decision tree if the judge prefers that.

        It is fitted where it is not far behind before.
        """
        if not self.wishes.axis or self.wishes.depth is not None:
            return start, grown
        reached = _judged_error(grown)
        depth, error = self._decision_tree()
        if depth == 0 or error > _WORTH_FITTING * reached:
            return start, grown
        other = self._fitted(depth, replace(start.kind, axis=True, deep=True))
        # a fit that goes on from a checkpoint goes on with the tree, and comes here again
        again = replace(self, after=None).grow(other, None)
        better = again.ended != "interrupted" and _judged_error(again) < reached
        return (other, again) if better else (start, grown)

    def _decision_tree(self) -> tuple[int, float]:
        """Make a decision tree; return its depth, and its error on the judge's rows."""
        way, seed = way_of(self.wishes.init, axis=True), node_seed(self.seed, 5)
        share = SOME_FEATURES if way == "random_axis_splits" else 1.0
        limited = self.growth.max_depth is not None or self.growth.max_leaves is not None
        deepest = self.wishes.deepest if limited else DEEPEST
        made, error = decision_tree(self.data, self.judge, seed, share=share, deepest=deepest)
        self.initial[made.tree.depth, True] = made
        return made.tree.depth, error

    def grow(self, start: Start, saved: Grown | None) -> Grown:
        """Grow a tree; a flat leaf that was chosen does not grow: a tree was tried."""
        growth = replace(self.growth, init=way_of(self.growth.init, axis=start.kind.axis))
        if start.depth == 0 and self.wishes.depth is None:
            growth = replace(growth, max_rounds=0)
        return grow(
            Grown(start.tree, start.leaf_limits, start.solved) if saved is None else saved,
            self.data,
            self.settings_of(self.data, start.kind, start.leaf_limits),
            growth,
            self.executor,
            node_seed(self.seed, 2),
            validation=self.judge,
            after_round=self.after,
            after_sweep=self.after,
        )

    def _kinds(self, depth: int) -> list[LeafKind]:
        """Return the kinds of leaves to try, the most promising first."""
        wishes, data = self.wishes, self.data
        if not isinstance(data.X, CSR):
            axis = wishes.init == "axis_splits"
            return [LeafKind(loss, DENSE_STRENGTH, axis) for loss in wishes.leaf_losses]
        if not wishes.search:
            return [LeafKind(loss, FIRST_STRENGTH[loss]) for loss in wishes.leaf_losses]
        start = self._initial(depth, axis=False)
        return choose_leaf_kind(
            start,
            data,
            self.judge,
            lambda kind, limits: self.settings_of(data, kind, limits),
            wishes.leaf_losses,
            first_limits(start.tree, wishes),
            node_seed(self.seed, 3),
            self.executor,
        )

    def _initial(self, depth: int, *, axis: bool) -> InitialTree:
        if (depth, axis) not in self.initial:
            way, seed = way_of(self.wishes.init, axis=axis), node_seed(self.seed, 0)
            self.initial[depth, axis] = _first_tree(self.data, depth, way, seed)
        return self.initial[depth, axis]

    def _fitted(self, depth: int, kind: LeafKind) -> Start:
        data, start = self.data, self._initial(depth, axis=kind.axis)
        limits = first_limits(start.tree, self.wishes)
        if kind.deep:  # few rows reach a leaf, and so do few classes
            limits = np.full(start.tree.n_nodes, data.n_classes, dtype=INDEX)
        settings = self.settings_of(data, kind, limits)
        return fit_once(start, depth, data, self.judge, settings, kind, self.executor)

    def _with_guests(self, start: Start, kinds: Sequence[LeafKind]) -> Start:
        """Return a tree with the kind of leaves that suits it from now on, if there is a choice."""
        if not kinds:
            return start
        again = look_again(
            start.tree,
            self.data,
            self.judge,
            lambda kind, limits: self.settings_of(self.data, kind, limits),
            kinds,
            start.leaf_limits,
            node_seed(self.seed, 4),
            self.executor,
        )
        return replace(start, kind=again)

    def _swept(self, start: Start) -> Start:
        """Return a tree after some more sweeps."""
        settings = self.settings_of(self.data, start.kind, start.leaf_limits)
        validation = Validation(self.judge, patience=_MORE_SWEEPS)
        result = optimise(
            start.tree,
            self.data,
            settings,
            self.executor,
            max_sweeps=_MORE_SWEEPS,
            validation=validation,
        )
        if result.ended == "interrupted":
            raise KeyboardInterrupt
        errors = [r.validation_error for r in result.history if r.validation_error is not None]
        least = min([start.error, *errors])
        return replace(start, tree=result.tree, solved=result.solved, error=least)


def way_of(init: Way, *, axis: bool) -> Way:
    """Return how trees start, if it may be from splits by one feature."""
    if not axis:
        return init
    return "random_axis_splits" if init == "random_median" else "axis_splits"


def _first_tree(
    data: TrainingData, depth: int, way: Way, seed: np.random.SeedSequence
) -> InitialTree:
    spread = None if isinstance(data.X, CSR) else feature_spread(data.X)
    return initial_tree(data, depth, way, seed, spread)


def usual_depth(n_classes: int) -> int:
    """Return the depth at which a leaf's fair share of the classes is small."""
    return max(2, math.ceil(math.log2(max(n_classes, 2) / CLASSES_PER_LEAF)))


def flat_is_affordable(X: Rows, n_classes: int) -> bool:
    """Return whether one leaf of all classes is worth a trial."""
    if isinstance(X, CSR):
        return sparse_flat_is_affordable(X.data.size, X.n_features, n_classes)
    few = n_classes > _CLASSES_PER_FEATURE * n_features_of(X)
    return not few and X.size * float(n_classes) <= DENSE_WORK


def sparse_flat_is_affordable(n_values: float, n_features: float, n_classes: int) -> bool:
    """Return the same of sparse rows with so many values that are not zero."""
    work = n_values * n_classes
    few = n_classes <= _FEW_CLASSES and n_features * n_classes <= _MOST_WEIGHTS
    return work <= SPARSE_WORK or (few and work <= _MOST_SPARSE_WORK)


def few_features(X: Rows) -> bool:
    """Return whether splits by one feature are worth a trial."""
    return not isinstance(X, CSR) and 1 < n_features_of(X) <= _TABLE


def first_limits(tree: Tree, wishes: Wishes) -> IndexArray:
    """Return k₀ for every leaf of the initial tree."""
    if tree.n_leaves == 1 and wishes.first_share is None:
        return np.full(tree.n_nodes, tree.n_classes, dtype=INDEX)
    return usual_limits(tree, wishes.contraction, wishes.first_share)


def usual_limits(tree: Tree, contraction: float, first_share: float | None) -> IndexArray:
    """Return the same: the share of all classes that is given, or some fair shares of a leaf."""
    share = contraction if first_share is None else first_share
    limit = math.floor(share * tree.n_classes + 1e-9)
    if first_share is None:
        limit = min(limit, _FAIR_SHARES * math.ceil(tree.n_classes / tree.n_leaves))
    return np.full(tree.n_nodes, max(limit, 1), dtype=INDEX)


# -- the last fit ----------------------------------------------------------------------------------


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
    return _complete(result, data)


def best_sweep(grown: Grown) -> int:
    """Return how many sweeps over the first tree its judge has liked."""
    errors = [record.validation_error for record in grown.history[0].sweeps]
    final = grown.history[0].validation_error
    return 1 + errors.index(final) if final in errors else 0


def _thin(tree: Tree, least: Least, X: Rows) -> Tree:
    return thinned(tree, least, feature_sizes(X)) if isinstance(X, CSR) else tree

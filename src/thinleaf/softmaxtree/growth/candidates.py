"""The trees among which held-out rows choose: a deep one, a flat leaf, one cut by single features.

Each is tried by one sweep, or one leaf after the other; what is promising is grown. Which of them
may be worth a trial follows from the rows (:mod:`thinleaf.softmaxtree.growth.first_tree`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, IndexArray
from thinleaf.arrays.rows import CSR
from thinleaf.execution import Executor
from thinleaf.softmaxtree.growth.decision_tree import DEEPEST, decision_tree
from thinleaf.softmaxtree.growth.expand import Grown, Growth, grow
from thinleaf.softmaxtree.growth.first_tree import (
    SPARSE_WORK,
    Wishes,
    few_features,
    first_limits,
    first_tree,
    flat_is_affordable,
    usual_depth,
    way_of,
)
from thinleaf.softmaxtree.growth.initial_tree import SOME_FEATURES, InitialTree, node_seed
from thinleaf.softmaxtree.growth.round_record import best_round
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
from thinleaf.softmaxtree.tao import Settings, TrainingData, Validation, optimise

SettingsOf: TypeAlias = Callable[[TrainingData, LeafKind, IndexArray], Settings]

_SEARCHED_WORK = 1.5e10
_WORTH_SEARCHING = 1.3
"""Up to so much work, a flat leaf of dense rows has the loss and ridge that suit it before it is
compared, unless it has more than this many times the errors of a tree after one sweep."""

_WORTH_COMPARING = 1.05
"""How many times the errors of the best flat leaf another loss may have to have its ridge found."""

DENSE_STRENGTH = 0.005
"""Ridge of leaves of a dense tree that is to grow. The leaves of the first tree do not say what
suits those that come of them."""

FLAT_STRENGTH: dict[LeafLoss, float] = {"softmax": DENSE_STRENGTH, "hinge": 0.7}
"""Ridge of one flat leaf of dense rows at which the search for it begins."""

_CLEARLY = 0.7
"""The share of the errors of a tree without splits by one feature that one with them may have."""

_WORTH_FITTING, _LARGE_WORTH_FITTING = 2.0, 1.4
"""How many times the errors of the tree that has grown a decision tree may have to be fitted."""

_MANY_ROWS = 50_000
"""From so many rows on, the second tree takes long, and must promise more."""

_MORE_SWEEPS = 3
_MAY_CATCH_UP = 1.1
"""A dense tree with up to this many times the errors of a flat leaf, after some sweeps, is grown
all the same."""


def _error_of(start: Start) -> float:
    return start.error


def judged_error(grown: Grown) -> float:
    """Return the held-out error of the round whose tree was kept."""
    error = grown.history[best_round(grown.history)].validation_error
    assert error is not None
    return error


@dataclass(frozen=True)
class Candidates:
    """Trees that are tried on the same rows, and grown.

    Attributes
    ----------
    data, judge : TrainingData
        Rows to fit, and rows to decide by.
    initial, flats : dict
        What was made: trees to start from, and flat leaves that were fitted.
    """

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
        reached, X = judged_error(grown), self.data.X
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
        reached = judged_error(grown)
        depth, error = self._decision_tree()
        worth = _WORTH_FITTING if self.data.n_rows < _MANY_ROWS else _LARGE_WORTH_FITTING
        if depth == 0 or error > worth * reached:
            return start, grown
        other = self._fitted(depth, replace(start.kind, axis=True, deep=True))
        # a fit that goes on from a checkpoint goes on with the tree, and comes here again
        again = replace(self, after=None).grow(other, None)
        better = again.ended != "interrupted" and judged_error(again) < reached
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
            self.initial[depth, axis] = first_tree(self.data, depth, way, seed)
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

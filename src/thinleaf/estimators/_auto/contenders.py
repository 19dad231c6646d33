"""The few models that are trained: a default tree, others like it, and a forest of them.

The default tree holds some rows out, as it always does; all others are trained without the same
rows, to be judged by them, and on all rows only if they are chosen. That the default tree has
decided by these rows is in its favour: whoever is to replace it must be better all the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.rows import CSR, as_matrix
from thinleaf.estimators._auto.deadline import Clock, Deadline
from thinleaf.estimators._auto.raw_texts import (
    LABEL_TREE,
    Form,
    fitted_label_tree,
    n_trees_of,
)
from thinleaf.estimators._base.out_of_bag import WeightedRows
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import training_summary
from thinleaf.estimators.adaptive_tree import (
    JUDGES,
    AdaptiveSoftmaxTreeClassifier,
    Watch,
)
from thinleaf.estimators.forest import SoftmaxForestClassifier, tree_seeds
from thinleaf.execution import executor_for
from thinleaf.softmaxtree.growth.adapt import hold_out
from thinleaf.softmaxtree.growth.first_tree import DENSE_WORK, SPARSE_WORK, flat_is_affordable
from thinleaf.softmaxtree.growth.initial_tree import node_seed
from thinleaf.softmaxtree.growth.trust import LEAST_JUDGES
from thinleaf.softmaxtree.tao import TrainingData

_MORE_WORK = 20.0
"""Of one flat leaf, beside what the default tree takes for affordable without being asked."""

_OTHER_DEPTHS = 2
_RUNG = 0.25
"""Share of the rows that others than the default tree are trained on at first."""

_LEAST_RUNG = 2000
_LIKE_IT = 0.3
"""What a tree takes beside the default one if it need not look for how to train."""

_FEW = 0.03


@dataclass(eq=False)
class Contender:
    """A trained model.

    Attributes
    ----------
    source : str
        What it is called: "tree", "round 3", "flat", "depth 4", "label tree" or "forest".
    judged : estimator
        Fitted without the held-out rows.
    final : estimator or None
        Fitted to all rows.
    build : callable
        From a number of trees to ``final``.
    refit_seconds : float
        That building takes, as far as is known; of a forest, that of as many trees as threads.
    fit_seconds : float
        From the start of the fit until it was trained.
    """

    source: str
    judged: Any
    final: Any
    build: Callable[[int], Any]
    refit_seconds: float
    fit_seconds: float

    @property
    def form(self) -> Form:
        """What is judged."""
        form: Form = self.judged._frozen_form()
        return form

    @property
    def n_trees(self) -> int:
        """How many trees that has."""
        return n_trees_of(self.form)

    @property
    def final_form(self) -> Form | None:
        """What would be deployed, if it is there."""
        form: Form | None = None if self.final is None else self.final._frozen_form()
        return form

    def has_all_rows(self, n_trees: int) -> bool:
        """Return whether so many trees are there that are fitted to all rows."""
        form = self.final_form
        return form is not None and n_trees_of(form) >= n_trees


class Trainer:
    """Trains contenders.

    Parameters
    ----------
    X, y, sample_weight
        Of ``fit``.
    data : TrainingData
        The same.
    classes : ndarray of shape (n_classes,)
    seed : int
    n_jobs : int or None
    clock : Clock
    texts : ndarray of shape (n_rows,), optional
        Of the rows of ``data``, for a label tree.
    """

    def __init__(
        self,
        given: tuple[Any, Any, Any],
        data: TrainingData,
        classes: AnyArray,
        seed: int,
        n_jobs: int | None,
        clock: Clock,
        texts: AnyArray | None = None,
    ) -> None:
        self._given, self.data, self.classes = given, data, classes
        self._seed, self._n_jobs, self.clock = seed, n_jobs, clock
        held = hold_out(data, JUDGES, node_seed(seed_sequence(seed), 1))
        self.honest = bool(np.count_nonzero(held) >= LEAST_JUDGES)
        if not self.honest:
            held = data.weight / 2
        fitted, judged = np.flatnonzero(held < data.weight), np.flatnonzero(held)
        self.part = replace(data, weight=data.weight - held).take(fitted)
        self.judging = replace(data, weight=held).take(judged)
        self._texts = texts
        self._part_texts = None if texts is None else texts[fitted]
        self.judging_texts = None if texts is None else texts[judged]
        self._watch = Watch()
        self._trees: list[AdaptiveSoftmaxTreeClassifier] = []
        self._last: list[AdaptiveSoftmaxTreeClassifier] = []
        self._wave_seconds = 0.0
        self._tree: Contender

    # -- trees -------------------------------------------------------------------------------------

    def tree(self) -> tuple[Contender, bool]:
        """Return the default tree, and whether it was cut short."""
        model = self._new()
        model._watch = self._watch
        began = self.clock.elapsed
        deadline = Deadline(0.9 * self.clock.left)
        try:
            with warnings.catch_warnings(), deadline:
                warnings.filterwarnings("ignore", "interrupted", UserWarning)
                model.fit(*self._given)
        except KeyboardInterrupt:
            if not deadline.fired:
                raise
            model = self._least_tree()
        model.__dict__.pop("_watch", None)
        judged = model
        if self._watch.judged is not None:
            judged = model._with_tree(self._watch.judged, self.part)
        seconds = self.clock.elapsed - began
        self._tree = Contender("tree", judged, model, lambda _: model, 0.0, self.clock.elapsed)
        self._tree_seconds = seconds
        short = deadline.fired
        if model.ended_ == "interrupted" and not short:
            raise KeyboardInterrupt
        return self._tree, short

    def _least_tree(self) -> AdaptiveSoftmaxTreeClassifier:
        """Return a tree of a few rows: when time was up, there was none, and there must be one."""
        left_out = hold_out(self.part, 1.0 - _FEW, node_seed(seed_sequence(self._seed), 13))
        rows = self.part.take(np.flatnonzero(left_out < self.part.weight))
        model = self._new(max_rounds=0)
        return model.fit(as_matrix(rows.X), self.classes[rows.y], rows.weight)

    @property
    def first(self) -> Contender:
        """The default tree."""
        return self._tree

    def rounds(self) -> list[Contender]:
        """Return the trees of some earlier rounds of growth: smaller, with more errors."""
        rounds = self._watch.rounds
        if self._watch.judged is None or len(rounds) < 3:
            return []
        model = self._tree.final
        best = model.best_round_
        out = []
        for at in sorted({0, best // 3, (2 * best) // 3} - {best}):
            judged = model._with_tree(rounds[at][0], self.part)
            share = (at + 1) / len(rounds)
            out.append(
                Contender(
                    f"round {at}",
                    judged,
                    None,
                    partial(self._grown, at),
                    share * self._tree_seconds,
                    self.clock.elapsed,
                )
            )
        return out

    def _grown(self, rounds: int, n_trees: int) -> Any:
        return self._new(max_rounds=rounds).fit(*self._given)

    def others(self, *, fast: bool) -> list[str]:
        """Return the names of trees of other depth, or of labels, that may be worth a trial.

        Parameters
        ----------
        fast : bool
            Whether deeper ones, which are faster, are wanted.
        """
        model = self._tree.final
        found = getattr(model, "_found", None)
        X, n_classes = self.data.X, self.data.n_classes
        if found is None or not self.honest:
            return []
        names = []
        depth = found.depth
        if depth > 0 and self._flat_may_be():
            names.append("flat")
        if isinstance(X, CSR) and depth > 0 and len(model.history_) < 2:
            names += [f"depth {depth - _OTHER_DEPTHS}"] if depth > _OTHER_DEPTHS else []
        if fast and depth > 0 and n_classes > 2 ** (depth + _OTHER_DEPTHS):
            names.append(f"depth {depth + _OTHER_DEPTHS}")
        return names if self._texts is None else [*names, LABEL_TREE]

    def _flat_may_be(self) -> bool:
        X, n_classes = self.data.X, self.data.n_classes
        if isinstance(X, CSR):
            return X.data.size * float(n_classes) <= _MORE_WORK * SPARSE_WORK
        return flat_is_affordable(X, n_classes) and X.size * float(n_classes) <= DENSE_WORK

    def promising(
        self, names: Sequence[str], judge: Callable[[Any], float], *, short: bool
    ) -> list[str]:
        """Return those that are not beaten when all have a quarter of the rows.

        Time that is not there leaves out, too.

        Parameters
        ----------
        names : sequence of str
        judge : callable
            From a model to its error; infinite if it cannot be deployed.
        short : bool
            Whether the default tree takes too long for the budget: who has more errors may stay.
        """
        if not names or self.part.n_rows < _LEAST_RUNG:
            return list(names)
        chosen = hold_out(self.part, 1.0 - _RUNG, node_seed(seed_sequence(self._seed), 11))
        at = np.flatnonzero(chosen < self.part.weight)
        some = self.part.take(at)
        texts = None if self._part_texts is None else self._part_texts[at]
        depth = self._tree.final._found.depth
        reference = judge(self._of_depth(depth, some)._frozen_form())
        kept = []
        for name in names:
            began = self.clock.elapsed
            model = self._of(name, some, texts)
            seconds = self.clock.elapsed - began
            faster = short if name == LABEL_TREE else _depth(name) > depth
            error = judge(model._frozen_form())
            good = error <= reference or (faster and error < np.inf)
            if good and 2.5 * seconds / _RUNG < self.clock.left:
                kept.append(name)
        return kept

    def of_name(self, name: str) -> Contender:
        """Train a tree of another depth, or of labels."""
        if name.startswith("round "):
            return next(found for found in self.rounds() if found.source == name)
        began = self.clock.elapsed
        judged = self._of(name, self.part, self._part_texts)
        seconds = self.clock.elapsed - began

        def build(n_trees: int) -> Any:
            if name == LABEL_TREE:
                return self._of(name, self.data, self._texts)
            model = clone(judged)
            model._recipe = judged._found
            return model.fit(*self._given)

        return Contender(name, judged, None, build, seconds / (1 - JUDGES), self.clock.elapsed)

    def _of(self, name: str, rows: TrainingData, texts: AnyArray | None) -> Any:
        if name != LABEL_TREE:
            return self._of_depth(_depth(name), rows)
        assert texts is not None
        return fitted_label_tree(texts, rows, self.classes, self._seed)

    def _of_depth(self, depth: int, rows: TrainingData) -> AdaptiveSoftmaxTreeClassifier:
        model = self._new(initial_depth=depth, max_rounds=0)
        model._known_kind = self._tree.final._found.kind
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted", UserWarning)
            model.fit(as_matrix(rows.X), self.classes[rows.y], rows.weight)
        if model.ended_ == "interrupted":
            raise KeyboardInterrupt
        return model

    def _new(self, **options: Any) -> AdaptiveSoftmaxTreeClassifier:
        return AdaptiveSoftmaxTreeClassifier(
            random_state=self._seed, n_jobs=self._n_jobs, **options
        )

    # -- forests -----------------------------------------------------------------------------------

    def forest(self, n_trees: int) -> Contender:
        """Return a forest of so many trees; those that are there are kept."""
        began, n_before = self.clock.elapsed, len(self._trees)
        self._add(self._trees, self.part, n_trees - 1, self._tree.judged)
        n_new = len(self._trees) - n_before
        self._wave_seconds = (self.clock.elapsed - began) / self.waves(n_new)
        return self._forest(n_trees)

    def forest_so_far(self) -> Contender | None:
        """Return the forest of all trees that are there; None if there is none."""
        return self._forest(1 + len(self._trees)) if self._trees else None

    def _forest(self, n_trees: int) -> Contender:
        judged = self._forest_of([self._tree.judged, *self._trees[: n_trees - 1]])
        seconds = self._wave_seconds / (1 - JUDGES)
        return Contender("forest", judged, None, self._last_forest, seconds, self.clock.elapsed)

    def _last_forest(self, n_trees: int) -> SoftmaxForestClassifier:
        self._add(self._last, self.data, n_trees - 1, self._tree.final)
        return self.done()

    def done(self) -> SoftmaxForestClassifier:
        """Return the forest of the trees that are fitted to all rows so far."""
        return self._forest_of([self._tree.final, *self._last])

    def mixed(self, n_trees: int, n_last: int | None = None) -> SoftmaxForestClassifier:
        """Return a forest whose first trees are fitted to all rows, as far as these are there.

        Parameters
        ----------
        n_trees : int
        n_last : int, optional
            Trees of all rows at the most.
        """
        last = [self._tree.final, *self._last][:n_last]
        return self._forest_of([*last, *self._trees[len(last) - 1 :]][:n_trees])

    def known_wave_seconds(self) -> float:
        """Return what the threads take for a tree each, as far as is known."""
        if self._trees:
            return self._wave_seconds
        known = self._tree.judged._like_this()[0] is not None
        return max((_LIKE_IT if known else 1.0) * self._tree_seconds, 1e-3)

    def waves(self, n_trees: int) -> int:
        """Return how often all threads have a tree to train, for so many trees; at least once."""
        return max(-(-n_trees // self.workers), 1)

    @property
    def workers(self) -> int:
        """How many trees are trained at a time."""
        with executor_for(self._n_jobs) as executor:
            return executor.n_workers

    def _add(self, trees: list[Any], data: TrainingData, n_trees: int, first: Any) -> None:
        """Train trees of a forest beside the first one until there are so many, or a few more.

        All threads have one at a time, and what is there stays there when Ctrl-C comes.
        """
        while len(trees) < n_trees:
            begin = len(trees)
            trees += self._more(data, begin, begin + self.workers, first)

    def _more(self, data: TrainingData, begin: int, end: int, first: Any) -> list[Any]:
        rows = WeightedRows(as_matrix(data.X), data.y, data.weight)
        seeds = tree_seeds(self._seed, end + 1)[1 + begin :]
        forest = SoftmaxForestClassifier()
        fit = partial(forest._fit_tree, rows, self.classes, first._like_this())
        with executor_for(self._n_jobs) as executor, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted", UserWarning)
            trees = executor.map(fit, seeds)
        if any(tree.ended_ == "interrupted" for tree in trees):
            raise KeyboardInterrupt
        return list(trees)

    def _forest_of(self, trees: list[Any]) -> SoftmaxForestClassifier:
        forest = SoftmaxForestClassifier(
            n_estimators=len(trees), random_state=self._seed, n_jobs=self._n_jobs
        )
        forest.classes_, forest.estimators_, forest.history_ = self.classes, trees, []
        forest.sparse_input_ = isinstance(self.data.X, CSR)
        forest.n_features_in_ = trees[0].n_features_in_
        forest.drawn_from_ = {
            "n_rows": self.data.n_rows, "bootstrap": False, "validation_fraction": None
        }  # fmt: skip
        forest._trained_with = training_summary(forest)
        return forest


def _depth(name: str) -> int:
    return 0 if name == "flat" else int(name.removeprefix("depth "))

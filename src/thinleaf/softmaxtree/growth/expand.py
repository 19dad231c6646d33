"""Adaptive growth: leaf expansions between runs of TAO (paper 000, figure 1, right).

A round tries to replace every leaf by a small tree with thinner leaves, fitted on the rows that
reach the leaf; keeps those that err hardly more there; and optimises the whole tree again. The
paper asks the rows that were fitted whether a replacement errs more; by default we ask rows that
were not (:class:`Judge`), since fitted ones have no errors left to compare.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, BoolArray, IndexArray
from thinleaf.arrays.rows import CSR
from thinleaf.execution import Executor, SerialExecutor, Shared
from thinleaf.model.patched_tree import PatchedTree
from thinleaf.model.routing import (
    Reach,
    all_rows,
    leaf_losses,
    route,
)
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.initial_tree import InitialTree, Way, initial_tree, node_seed
from thinleaf.softmaxtree.growth.judge import (
    Expansion,
    Judge,
    promising,
    worth_a_round,
    worth_keeping,
)
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.growth.round_record import (
    Effort,
    RoundRecord,
    best_round,
    last_gain,
    measure,
)
from thinleaf.softmaxtree.tao import (
    Settings,
    Sweeps,
    TaoResult,
    TrainingData,
    Validation,
    error,
    optimise,
)
from thinleaf.softmaxtree.tao.overlap import Overlap, find_overlap

_NO_NEW_ROUND = ("interrupted", "seconds", "no leaf expands", "depth")
"""What leaves the last round incomplete, or is found after it."""

_OVERFITTED = 1.5
"""How many times the errors of fitted rows others must make for overlap to be tried."""

_PROBES = 16
_SHARE_OF_PROBES = 0.25
"""Leaves to expand before all of them, at the most and of sparse rows: on text, hardly any gains by
it."""


@dataclass(frozen=True)
class Growth:
    """How a tree grows, and when it stops.

    Attributes
    ----------
    contraction : float
        α: a leaf of k classes is replaced by leaves of αk.
    tolerance : float
        ρ: how many times the leaf's errors its replacement may make; without meaning if nodes may
        not raise the objective.
    depth : int
        Of a replacement.
    init : Way
        How a replacement starts.
    local_sweeps, sweeps : int
        At the most, over a replacement and over the whole tree in each round.
    max_rounds, max_depth, max_leaves : int, optional
    max_seconds : float, optional
    patience : int
        Rounds without a lower validation error, if there is one.
    judged : bool
        Replacements are kept, and sweeps go on, if that lowers the loss of the validation rows;
        ``tolerance`` then means nothing.
    doubt : float
        How many standard errors the loss of a leaf's validation rows may rise by a replacement.
    sweep_patience : int
        Sweeps without a lower validation error that end a round, if it is judged.
    """

    contraction: float
    tolerance: float
    depth: int
    init: Way
    local_sweeps: int
    sweeps: int
    max_rounds: int | None = None
    max_depth: int | None = None
    max_leaves: int | None = None
    max_seconds: float | None = None
    patience: int = 3
    judged: bool = False
    doubt: float = 2.0
    sweep_patience: int = 1


@dataclass(frozen=True)
class Grown:
    """A tree between two rounds, and all that the next one needs to know.

    Attributes
    ----------
    tree : Tree
    leaf_limits : ndarray of shape (n_nodes,)
        The most classes that each leaf may hold.
    solved, refused : dict
        Fingerprints: of the problem that a node's parameters solve, and of that at which a leaf
        could not grow. It is tried again when the two differ.
    history : tuple of RoundRecord
        Round 0 is the initial tree.
    best : Tree, optional
        Of the round with the lowest validation error, else of the last one.
    ended : str, optional
        Why there is no further round.
    sweeps : Sweeps, optional
        If the last round is not complete, how far TAO has come in it; ``tree`` is its.
    effort : tuple of (accepted, tried, seconds)
        What that round did before TAO.
    """

    tree: Tree
    leaf_limits: IndexArray
    solved: dict[int, bytes] = field(default_factory=dict)
    refused: dict[int, bytes] = field(default_factory=dict)
    history: tuple[RoundRecord, ...] = ()
    best: Tree | None = None
    ended: str | None = None
    sweeps: Sweeps | None = None
    effort: tuple[int, int, float] = (0, 0, 0.0)


def grow(
    start: InitialTree | Grown,
    data: TrainingData,
    settings: Settings,
    growth: Growth,
    executor: Executor,
    seed: np.random.SeedSequence,
    *,
    validation: TrainingData | None = None,
    after_round: Callable[[Grown], None] | None = None,
    after_sweep: Callable[[Grown], None] | None = None,
) -> Grown:
    """Fit a tree, then grow it until no leaf expands, a limit is reached, or Ctrl-C.

    Parameters
    ----------
    start : InitialTree or Grown
        What to fit first, with ``settings.leaf_limits``; or what an earlier run had reached; or
        without a history, a tree whose nodes were fitted before.
    seed : SeedSequence
        The randomness of a replacement depends on it, the round and the leaf.
    validation : TrainingData, optional
        Rows by whose error the best round is kept.
    after_round : callable, optional
        Called with the outcome of each complete round, the initial fit included.
    after_sweep : callable, optional
        Called after each sweep over the whole tree with what the next one needs to know. The result
        of going on from there is that of going on at once, to the bit.
    """
    work = _Work(data, settings, growth, executor, validation, after_sweep)
    if isinstance(start, InitialTree):
        grown = work.reoptimise(Grown(start.tree, settings.leaf_limits), start.assignment)
    elif not start.history and start.sweeps is None:
        grown = work.reoptimise(start)
    else:
        grown = work.resume(start)
    n_told = 0
    while True:
        try:
            new = len(grown.history) > n_told and grown.ended not in _NO_NEW_ROUND
            if new and after_round is not None:
                after_round(grown)
            n_told = len(grown.history)
            if grown.ended is not None:
                return grown
            grown = work.one_round(grown, node_seed(seed, len(grown.history)))
        except KeyboardInterrupt:
            return replace(grown, ended="interrupted")


@dataclass
class _Work:
    """What stays the same from round to round."""

    data: TrainingData
    settings: Settings
    growth: Growth
    executor: Executor
    validation: TrainingData | None
    after_sweep: Callable[[Grown], None] | None
    began: float = field(default_factory=time.perf_counter)

    def one_round(self, grown: Grown, seed: np.random.SeedSequence) -> Grown:
        """Try to replace every leaf, and optimise the tree if some could be."""
        started = time.perf_counter()
        tree, growth = grown.tree, self.growth
        reach = route(tree, self.data.X)
        judge, near, erring = None, None, None
        if self.validation is not None and growth.judged:
            judge = Judge(self.validation, route(tree, self.validation.X))
            erring = judge.erring_leaves(tree) | Judge(self.data, reach).erring_leaves(tree)
            overlap = self._overlap(grown)
            if overlap is not None:
                near = find_overlap(tree, self.data.X, reach, overlap, self.executor)
        leaves = growing_leaves(grown, reach, growth, erring)
        settings = replace(self.settings, overlap=self._overlap(grown))
        judges, judged = (None, None) if judge is None else (judge.data, judge.reach)
        given = (tree, self.data, judges, (reach, settings, growth, seed, judged))
        expand = partial(self._expand, [self.executor.share(g) for g in given], reach, near)
        first = judge is not None and len(grown.history) == 1
        if first and not self._promising(expand, leaves):
            return replace(grown, ended="no leaf expands")
        tried = expand(leaves)
        if self._out_of_time():  # some leaves have not been tried
            return replace(grown, ended="seconds")
        expansions = {j: e for j, e in zip(leaves, tried, strict=True) if e is not None}
        gains = [e.gain for e in expansions.values()]
        if first and isinstance(self.data.X, CSR) and not worth_a_round(gains):
            return replace(grown, ended="no leaf expands")
        found = {j: e.subtree for j, e in expansions.items()}
        if growth.judged:
            found = worth_keeping(expansions, growth.doubt)
        accepted = within_limit(tree, found, reach, growth)
        if found and not accepted:
            return replace(grown, ended="leaves")
        if not accepted:
            others = growing_leaves(grown, reach, replace(growth, max_depth=None), erring)
            return replace(grown, ended="no leaf expands" if others == leaves else "depth")
        refused = {j: grown.solved[j] for j in leaves if j in grown.solved and j not in found}
        expanded = accept(grown, accepted, refused, growth)
        effort = (len(accepted), len(leaves), time.perf_counter() - started)
        return self.reoptimise(replace(expanded, effort=effort))

    def reoptimise(self, grown: Grown, assignment: IndexArray | None = None) -> Grown:
        """Run TAO over the whole tree, cut what no row needs, and write the round down."""
        started = time.perf_counter() - _seconds(grown.sweeps)

        def after_sweep(sweeps: Sweeps) -> None:
            if self.after_sweep is not None:
                self.after_sweep(replace(grown, tree=sweeps.tree, sweeps=sweeps))

        overlap = self._overlap(grown)
        settings = replace(self.settings, leaf_limits=grown.leaf_limits)
        sweeping = partial(
            optimise,
            data=self.data,
            executor=self.executor,
            max_sweeps=self.growth.sweeps,
            validation=self._sweep_judge(),
            stop=self._out_of_time,
        )
        result = sweeping(
            grown.tree,
            settings=replace(settings, overlap=overlap),
            assignment=assignment,
            solved=grown.solved,
            after_sweep=after_sweep,
            resume=grown.sweeps,
        )
        if overlap != self.settings.overlap and self._overfits(result):
            near = sweeping(result.tree, settings=settings, solved=result.solved)
            if near.best_sweep > 0:
                sweeps = [*result.history, *near.history]
                result = replace(near, history=sweeps)
                overlap = self.settings.overlap
            result = replace(result, ended=near.ended)
        tree, kept = prune(result.tree, route(result.tree, self.data.X).sizes > 0)
        renumbered = {int(old): new for new, old in enumerate(kept)}
        now = time.perf_counter()
        record = measure(
            tree,
            self.data,
            self.validation,
            self.settings.objective,
            Effort(
                len(grown.history),
                *grown.effort,
                now - started,
                now - self.began,
                result.history,
                overlap,
            ),
        )
        after = Grown(
            tree,
            grown.leaf_limits[kept],
            {renumbered[i]: f for i, f in result.solved.items() if i in renumbered},
            {renumbered[i]: f for i, f in grown.refused.items() if i in renumbered},
            (*grown.history, record),
        )
        best = tree if best_round(after.history) == record.round else grown.best
        return replace(after, best=best, ended=self._ended(after, result.ended))

    def _expand(
        self,
        shared: Sequence[Shared[Any]],
        reach: Reach,
        near: Mapping[int, Overlap] | None,
        leaves: list[int],
    ) -> list[Expansion | None]:
        """Try to expand leaves, all at the same time, as long as there is time."""
        guests = [None if near is None else near[leaf] for leaf in leaves]
        return self.executor.map(
            _attempt,
            list(zip(leaves, guests, strict=True)),
            [float(reach.sizes[leaf]) for leaf in leaves],
            shared=shared,
            coarse=True,
            stop=self._out_of_time,
        )

    def _promising(
        self, expand: Callable[[list[int]], list[Expansion | None]], leaves: list[int]
    ) -> bool:
        """Return whether some leaves of a tree that has not grown yet gain by it, all in all."""
        n_probes = _PROBES
        if isinstance(self.data.X, CSR):
            n_probes = min(n_probes, math.ceil(_SHARE_OF_PROBES * len(leaves)))
        if len(leaves) <= n_probes:
            return True
        probes = leaves[:: max(1, len(leaves) // n_probes)][:n_probes]
        found = [e for e in expand(probes) if e is not None]
        return promising([e.gain for e in found], self.growth.doubt)

    def _overlap(self, grown: Grown) -> float | None:
        """Return the overlap to begin a round with: of dense rows, none until it has helped.

        As long as a tree does not fit its rows, those of other nodes only stand in the way.
        """
        waits = self.growth.judged and not isinstance(self.data.X, CSR)
        helped = any(record.overlap is not None for record in grown.history)
        return None if waits and not helped else self.settings.overlap

    def _overfits(self, result: TaoResult) -> bool:
        """Return whether rows that are not fitted err far more often than those that are."""
        if self.validation is None:
            return False
        fitted = error(result.tree, self.data)
        return error(result.tree, self.validation) > _OVERFITTED * fitted

    def _sweep_judge(self) -> Validation | None:
        """Return what says when to end the sweeps of a round, if it is not the objective."""
        if self.validation is None or not self.growth.judged:
            return None
        return Validation(self.validation, patience=self.growth.sweep_patience)

    def resume(self, grown: Grown) -> Grown:
        """Go on from an earlier run, under today's limits."""
        self.began -= grown.history[-1].seconds if grown.history else 0.0
        if grown.sweeps is not None:
            self.began -= grown.effort[-1] + _seconds(grown.sweeps)
            return self.reoptimise(grown)
        return replace(grown, ended=self._ended(grown, "sweeps"))

    def _out_of_time(self) -> bool:
        limit = self.growth.max_seconds
        return limit is not None and time.perf_counter() - self.began >= limit

    def _ended(self, grown: Grown, sweeps_ended: str) -> str | None:
        """Return the limit that the tree has reached."""
        growth, n_rounds = self.growth, len(grown.history) - 1
        if sweeps_ended == "interrupted":
            return "interrupted"
        if self._out_of_time():
            return "seconds"
        if growth.max_rounds is not None and n_rounds >= growth.max_rounds:
            return "rounds"
        if growth.max_leaves is not None and grown.tree.n_leaves >= growth.max_leaves:
            return "leaves"
        if self.validation is not None:
            last = last_gain(grown.history) if growth.judged else best_round(grown.history)
            if n_rounds - last >= growth.patience:
                return "patience"
        return None


def _seconds(sweeps: Sweeps | None) -> float:
    return 0.0 if sweeps is None else sweeps.best.history[-1].seconds


def growing_leaves(
    grown: Grown, reach: Reach, growth: Growth, erring: BoolArray | None = None
) -> list[int]:
    """Return the leaves with more than one class that may go deeper and were not just refused."""
    tree = grown.tree
    wide = tree.is_leaf & (np.diff(tree.class_ptr) > 1) & (reach.sizes > 1)
    if erring is not None:
        wide &= erring
    if growth.max_depth is not None:
        wide &= tree.node_depth + growth.depth <= growth.max_depth
    return [
        j
        for j in np.flatnonzero(wide).tolist()
        if j not in grown.refused or grown.refused[j] != grown.solved.get(j)
    ]


def _attempt(
    tree: Tree | PatchedTree,
    data: TrainingData,
    judges: TrainingData | None,
    given: tuple[Reach, Settings, Growth, np.random.SeedSequence, Reach | None],
    item: tuple[int, Overlap | None],
) -> Expansion | None:
    """Try to expand a leaf; this is the task that executors get."""
    (reach, settings, growth, seed, judged), (leaf, guests) = given, item
    judge = None if judges is None or judged is None else Judge(judges, judged)
    near = None if guests is None else {leaf: guests}
    return expand_leaf(tree, data, reach, settings, growth, seed, leaf, judge=judge, near=near)


def expand_leaf(
    tree: Tree | PatchedTree,
    data: TrainingData,
    reach: Reach,
    settings: Settings,
    growth: Growth,
    seed: np.random.SeedSequence,
    leaf: int,
    *,
    judge: Judge | None = None,
    near: Mapping[int, Overlap] | None = None,
) -> Expansion | None:
    """Return a small tree to replace a leaf by, or None if there is none.

    Without a judge, it must err within the tolerance on the rows that reach the leaf, or if nodes
    may not raise the objective, must not raise it (paper 000, section 5). With one, it is also
    fitted to the leaf's guests, as the leaf itself was, and others decide.
    """
    local = data.take(reach.of(leaf))
    n_classes = np.unique(local.y).size
    if near is not None:
        rows, weight = near[leaf].join(reach.of(leaf), data.weight)
        local = replace(data.take(rows), weight=weight)
    old = tree.leaf(leaf)
    start = initial_tree(local, growth.depth, growth.init, node_seed(seed, leaf), settings.spread)
    # its leaves start from the rows of the old one, and keep those of their classes
    subtree = start.tree.replace({int(i): old for i in np.flatnonzero(start.tree.is_leaf)})
    limit = contracted(n_classes if judge is not None else old.classes.size, growth.contraction)
    result = optimise(
        subtree,
        local,
        replace(settings, leaf_limits=np.full(subtree.n_nodes, limit, dtype=INDEX)),
        SerialExecutor(),
        max_sweeps=growth.local_sweeps,
        assignment=start.assignment,
    )
    if result.ended == "interrupted":  # optimise would end with a usable tree: here growth must end
        raise KeyboardInterrupt
    if judge is None and not _tolerable(old, result, local, settings, growth):
        return None
    pruned, _ = prune(result.tree, route(result.tree, local.X).sizes > 0)
    if pruned.n_leaves == 1:
        return None
    if judge is None:
        return Expansion(pruned)
    return Expansion(pruned, judge.gain(settings.objective, leaf, old, pruned))


def _tolerable(
    old: Leaf, result: TaoResult, data: TrainingData, settings: Settings, growth: Growth
) -> bool:
    """Return whether a replacement errs within the tolerance, or does not raise a monotone E."""
    entropy, correct = leaf_losses(old, data.X, data.y, all_rows(data.X))
    after = result.history[result.best_sweep - 1]
    if settings.monotone:
        loss = settings.objective.row_losses(entropy, correct)
        return after.objective <= float(loss @ data.weight) + settings.objective.penalty(old)
    error_before = 1.0 - data.weight[correct].sum() / data.weight.sum()
    return bool(after.train_error <= growth.tolerance * error_before + 1e-12)


def contracted(n_classes: int, contraction: float) -> int:
    """Return αk, at least 1 and below k."""
    return max(1, min(n_classes - 1, math.floor(contraction * n_classes + 1e-9)))


def within_limit(
    tree: Tree, found: dict[int, Tree], reach: Reach, growth: Growth
) -> dict[int, Tree]:
    """Return the replacements; if that would be too many leaves, those of the most rows."""
    if growth.max_leaves is None:
        return found
    room = growth.max_leaves - tree.n_leaves
    chosen = {}
    for leaf in sorted(found, key=lambda leaf: (-int(reach.sizes[leaf]), leaf)):
        if found[leaf].n_leaves - 1 <= room:
            room -= found[leaf].n_leaves - 1
            chosen[leaf] = found[leaf]
    return chosen


def accept(
    grown: Grown, subtrees: dict[int, Tree], refused: dict[int, bytes], growth: Growth
) -> Grown:
    """Return the tree with its accepted expansions."""
    limits, new_limits = grown.leaf_limits.copy(), []
    for leaf, subtree in sorted(subtrees.items()):
        # the old leaf's too, should its subtree be pruned to a leaf again
        limits[leaf] = max(
            int(subtree.leaf_sizes.max()),
            contracted(grown.tree.leaf(leaf).classes.size, growth.contraction),
        )
        new_limits.append(np.full(subtree.n_nodes - 1, limits[leaf]))
    return replace(
        grown,
        tree=grown.tree.graft(subtrees),
        leaf_limits=np.concatenate([limits, *new_limits]).astype(INDEX),
        solved={i: f for i, f in grown.solved.items() if i not in subtrees},
        refused={i: f for i, f in (grown.refused | refused).items() if i not in subtrees},
    )

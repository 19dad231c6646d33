"""Fits to more rows than memory may hold: shards to disk, a top, parts, and one tree of them all.

1. Each shard is written to disk as rows (:mod:`~thinleaf.estimators._base.shards`).
2. A sample that fits trains the top of the tree (:mod:`~thinleaf.softmaxtree.parts.top`).
3. Rows go to the part that the top sends them to, on disk.
4. The estimator trains a subtree on each part, as it would train a tree.
5. The subtrees are joined under the top (:mod:`~thinleaf.softmaxtree.parts.join`).

On threads all this happens one after the other; on a cluster each step is a task for each shard or
part, rows go from worker to worker through files, and the caller sees samples and trees alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, AccumArray, AnyArray, BoolArray, IndexArray
from thinleaf.arrays.row_store import Chunk, RowStore, StoreWriter, check_room, gathered
from thinleaf.arrays.rows import Rows, take_rows
from thinleaf.estimators._base.memory import PROCESS, give_back, room_for_rows, used_beside_rows
from thinleaf.estimators._base.shards import StoredShard, draw_rows, joined
from thinleaf.execution import Executor
from thinleaf.model.cost import summarize
from thinleaf.model.nodes import Leaf
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.initial_tree import Way, node_seed
from thinleaf.softmaxtree.growth.round_record import RoundRecord
from thinleaf.softmaxtree.growth.trust import BEAM_ROWS, LEAST_JUDGES, Trust, find_beam
from thinleaf.softmaxtree.parts.join import Branch, join, with_classes
from thinleaf.softmaxtree.parts.partition import (
    PartRows,
    guest_floor,
    part_rows,
    rows_of_parts,
    unseen_rows,
)
from thinleaf.softmaxtree.parts.top import depth_for, top_tree
from thinleaf.softmaxtree.tao import Settings, TrainingData, canonical

_GUESTS = 1.4
"""How many times the rows of a part, with its guests, are expected to be."""

_TOO_LARGE = 1.0
"""A part of more than this many times what fits is split again; with 1.5 the limit is exceeded."""

_MOST_SPLITS = 20
_JUDGED_ROWS = 1.5
"""A class with fewer rows in all does not judge: else no tree would know it before the last fit."""

_ENOUGH = 100
"""Rows that say how many guests there will be."""

R = TypeVar("R")


@dataclass(frozen=True)
class PartTree:
    """What an estimator has made of a part.

    Attributes
    ----------
    tree : Tree
    judged : Tree or None
        The same before it was fitted to rows that had decided, with ``held`` their weights.
    held : ndarray of shape (n_rows,), optional
    outside_scale : float
        How many times more often than fitted rows say is a class outside its leaf.
    record : dict
        Of the round or sweep that was kept.
    found : dict
        Attributes of the estimator that say what was found.
    """

    tree: Tree
    judged: Tree | None
    held: AccumArray | None
    outside_scale: float
    record: dict[str, Any]
    found: dict[str, Any] = field(default_factory=dict)


class Trainer(Protocol):
    """What is asked of an estimator."""

    def _init(self, data: TrainingData) -> Way: ...

    def _top_settings(self, data: TrainingData, leaf_limits: IndexArray) -> Settings: ...

    def _part_floor(self, X: Rows) -> float | None:
        """Return the smallest path probability of guests of a part, or None."""

    def _held_share(self) -> float | None:
        """Return the share of rows that decide, or None."""

    def _for_part(self, depth: int, share: float, classes: AnyArray, n_classes: int) -> Any:
        """Return an estimator for a part of the rows that begins at some depth."""

    def _train_part(
        self, data: TrainingData, rows: PartRows, seed: np.random.SeedSequence
    ) -> PartTree:
        """Train a subtree on the rows of a part, whose classes are numbered by themselves."""


@dataclass(frozen=True)
class Plan:
    """What every task of a fit knows.

    Attributes
    ----------
    trainer : estimator
        Unfitted.
    classes : ndarray of shape (n_classes,)
    factor : ndarray of shape (n_classes,)
        What weights of rows are multiplied by.
    unit : float
        The smallest weight of a row.
    counts : ndarray of shape (n_classes,)
        Weight of each class, in rows.
    seed : SeedSequence
    room : int
        Bytes of rows that a part may have.
    n_rows : int
        Of all shards.
    """

    trainer: Any
    classes: AnyArray
    factor: AccumArray
    unit: float
    counts: AccumArray
    seed: np.random.SeedSequence
    room: int
    n_rows: int

    def unseen(self, X: Rows) -> BoolArray:
        """Return which rows are kept from the top."""
        return unseen_rows(X, self.trainer._held_share(), node_seed(self.seed, 1))

    def sample(self, chunk: Chunk) -> TrainingData:
        """Return the rows of a sample that the top is trained on."""
        data = self.data(chunk)
        return data.take(np.flatnonzero(~self.unseen(data.X)))

    def data(self, chunk: Chunk) -> TrainingData:
        """Return rows as they are trained on."""
        weight = chunk.weight * self.factor[chunk.y]
        data = TrainingData(chunk.X, chunk.y, weight, self.classes.size)
        if not np.all(weight > 0.0):
            data = data.take(np.flatnonzero(weight > 0.0))
        return canonical(data)


@dataclass(frozen=True)
class FittedPart:
    """What comes back of a part: where its trees are, and what held-out rows said.

    Attributes
    ----------
    final, judged : Path
    judge : TrainingData or None
        Some rows that the judged tree was not fitted to.
    weight, covered : float
        Of its rows, and of those whose class is in their leaf.
    record, found : dict
    """

    final: Path
    judged: Path
    judge: TrainingData | None
    weight: float
    covered: float
    record: dict[str, Any]
    found: dict[str, Any]


@dataclass(frozen=True)
class JoinedFit:
    """A tree of all parts.

    Attributes
    ----------
    branch : Branch
        The tree, the weight that reaches its nodes, and its back-off.
    parts : list of FittedPart
    trust : Trust or None
        The beam that held-out rows of all parts have chosen.
    """

    branch: Branch
    parts: list[FittedPart]
    trust: Trust | None


def each(
    executor: Executor,
    function: Callable[..., R],
    items: Sequence[Any],
    *shared: Any,
    costs: Sequence[float] | None = None,
) -> list[R]:
    """Apply a function to items: on a cluster as tasks, in this process one after the other."""
    if executor.local is executor:
        return [function(*shared, item) for item in items]
    handles = [executor.share(value) for value in shared]
    return executor.map(function, items, costs, shared=handles, coarse=True)


def room_in(max_memory: int, executor: Executor) -> int:
    """Return the bytes of rows that a process may train on."""
    used = used_beside_rows() if executor.local is executor else PROCESS
    return room_for_rows(max_memory, used)


@dataclass
class PartFit:
    """A fit part by part.

    Attributes
    ----------
    plan : Plan
    shards : list of StoredShard
    class_of : list of ndarray
        For each shard, the class of its labels.
    executor : Executor
    directory : Path
        For temporary files; whoever made it removes it.
    say : callable, optional
        Gets lines of progress.
    """

    plan: Plan
    shards: list[StoredShard]
    class_of: list[IndexArray]
    executor: Executor
    directory: Path
    say: Callable[[str], None] | None = None

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of all rows in memory."""
        return sum(shard.store.nbytes for shard in self.shards)

    def run(self, mass: AccumArray) -> JoinedFit:
        """Return the tree of all rows; ``mass`` is the weight of each class, in rows."""
        check_room(self.directory, int(_GUESTS * self.n_bytes))
        top, floor, parts = self._split_all()
        with_guests = sum(store.n_rows for own in parts.values() for store in own)
        more = with_guests - self.plan.n_rows
        guests = f", and {more:,} guests that nearly reach a part" if more else ""
        self._tell(f"{len(parts)} parts of {self.plan.n_rows:,} rows{guests}")
        leaves = sorted(parts)
        items = [(i, leaf, parts[leaf], self.directory) for i, leaf in enumerate(leaves)]
        costs = [float(sum(store.nbytes for store in parts[leaf])) for leaf in leaves]
        fitted = self._fit_parts(items, costs, top, floor)
        give_back()
        trust = self._trust(top, fitted, mass)  # first: there is one tree at a time
        give_back()
        whole = join(top, [Branch.read(part.final) for part in fitted], mass)
        return JoinedFit(whole, fitted, trust)

    def _trust(self, top: Tree, fitted: list[FittedPart], mass: AccumArray) -> Trust | None:
        """Return the beam that held-out rows choose, for the tree before it was fitted to them."""
        judges = [part.judge for part in fitted if part.judge is not None]
        if sum(judge.n_rows for judge in judges) < LEAST_JUDGES:
            return None
        rows = joined([Chunk(j.X, j.y, j.weight) for j in judges])
        judge = TrainingData(rows.X, rows.y, rows.weight, self.plan.classes.size)
        before = join(top, [Branch.read(part.judged) for part in fitted], mass)
        give_back()
        return find_beam(before.tree, before.backoff, judge)

    def _fit_parts(
        self, items: list[Any], costs: list[float], top: Tree, floor: float | None
    ) -> list[FittedPart]:
        if self.executor.local is not self.executor:
            return each(self.executor, fit_part, items, self.plan, top, floor, costs=costs)
        fitted = []
        for item in items:
            fitted.append(fit_part(self.plan, top, floor, item))
            self._tell(f"part {len(fitted)}/{len(items)}  {_errors(fitted[-1].record)}")
        return fitted

    def _tell(self, text: str) -> None:
        if self.say is not None:
            self.say(text)

    # -- rows to parts -----------------------------------------------------------------------------

    def _split_all(self) -> tuple[Tree, float | None, dict[int, list[RowStore]]]:
        """Return the top, the smallest path probability of guests, and the rows of its leaves."""
        plan, share = self.plan, min(1.0, self.plan.room / self.n_bytes)
        shards = enumerate(zip(self.shards, self.class_of, strict=True))
        items = [(shard.store, class_of, i) for i, (shard, class_of) in shards]
        drawn = each(self.executor, draw_rows, items, (share, node_seed(plan.seed, 3)))
        data = plan.data(joined(drawn))
        unseen = plan.unseen(data.X)
        sample, others = (data.take(np.flatnonzero(mask)) for mask in (~unseen, unseen))
        self._tell(f"{sample.n_rows:,} rows train the first router")
        top = self._top(sample, self.n_bytes, node_seed(plan.seed, 4))
        floor = plan.trainer._part_floor(sample.X)
        # of rows that no router was trained on, more are near a border
        near = (others if others.n_rows >= _ENOUGH else sample).X
        if floor is not None:
            floor = guest_floor(top, near, floor)
        del drawn, data, sample, others
        give_back()
        sources = [
            (shard.store, class_of, 0, self.directory / f"rows{i}-")
            for i, (shard, class_of) in enumerate(zip(self.shards, self.class_of, strict=True))
        ]
        parts = self._partition(top, floor, sources)
        whole: set[int] = set()  # parts that do not get any smaller
        for number in range(_MOST_SPLITS):
            sizes = {leaf: sum(store.nbytes for store in own) for leaf, own in parts.items()}
            most = _TOO_LARGE * plan.room
            large = sorted(at for at, n in sizes.items() if n > most and at not in whole)
            below = {leaf: self._below(leaf, parts[leaf], sizes[leaf]) for leaf in large}
            whole |= {leaf for leaf, tree in below.items() if tree.n_leaves == 1}
            below = {leaf: tree for leaf, tree in below.items() if leaf not in whole}
            if not below:
                break
            n_nodes = top.n_nodes
            top = replace(top, n_classes=max(2, *(t.n_classes for t in below.values()))).graft(
                below
            )
            if floor is not None:
                floor = guest_floor(top, near, floor)
            for leaf, tree in below.items():
                new = {leaf, *range(n_nodes, n_nodes + tree.n_nodes - 1)}
                n_nodes += tree.n_nodes - 1
                name = self.directory / f"again{number}-{leaf}-"
                sources = [
                    (store, self._same, i, Path(f"{name}{i}-"))
                    for i, store in enumerate(parts.pop(leaf))
                ]
                found = self._partition(top, floor, sources)
                parts |= {at: own for at, own in found.items() if at in new}
        return top, floor, parts

    @cached_property
    def _same(self) -> IndexArray:
        """All classes: of rows that have their class already."""
        return np.arange(self.plan.classes.size, dtype=INDEX)

    def _top(self, sample: TrainingData, n_bytes: int, seed: np.random.SeedSequence) -> Tree:
        trainer = self.plan.trainer
        times = 1.0 if trainer._part_floor(sample.X) is None else _GUESTS
        depth = depth_for(times * n_bytes, self.plan.room)
        init = trainer._init(sample)
        return top_tree(sample, depth, init, trainer._top_settings, seed, self.executor.local)

    def _below(self, leaf: int, stores: list[RowStore], n_bytes: int) -> Tree:
        """Return a tree that divides a part that is too large, by a sample of its own rows."""
        seed = node_seed(node_seed(self.plan.seed, 5), leaf)
        items = [(store, self._same, i) for i, store in enumerate(stores)]
        share = min(1.0, self.plan.room / n_bytes)
        drawn = each(self.executor, draw_rows, items, (share, node_seed(seed, 0)))
        tree = self._top(self.plan.sample(joined(drawn)), n_bytes, node_seed(seed, 1))
        del drawn
        give_back()
        return tree

    def _partition(
        self, top: Tree, floor: float | None, sources: list[Any]
    ) -> dict[int, list[RowStore]]:
        """Send the rows of stores, which are then removed, to the parts of a top."""
        parts: dict[int, list[RowStore]] = {}
        for found in each(self.executor, partition_store, sources, top, floor):
            for leaf, store in found.items():
                parts.setdefault(leaf, []).append(store)
        return parts


def partition_store(
    top: Tree, floor: float | None, item: tuple[RowStore, IndexArray, int, Path]
) -> dict[int, RowStore]:
    """Write the rows of a store to a file for each part, and remove the store; a task."""
    store, class_of, _, name = item
    writers: dict[int, StoreWriter] = {}
    for X, y, weight in store:
        for leaf, rows in rows_of_parts(top, X, floor):
            if leaf not in writers:
                writers[leaf] = StoreWriter(Path(f"{name}{leaf}"))
            writers[leaf].append(take_rows(X, rows), class_of[y[rows]], weight[rows])
    store.remove()
    return {leaf: writer.store(store.n_features) for leaf, writer in writers.items()}


def fit_part(
    plan: Plan, top: Tree, floor: float | None, item: tuple[int, int, list[RowStore], Path]
) -> FittedPart:
    """Train the subtree of a part, write it to files, and remove the rows; a task."""
    number, leaf, stores, directory = item
    n_bytes = sum(store.nbytes for store in stores)
    seed = node_seed(node_seed(plan.seed, 6), number)
    if n_bytes > _TOO_LARGE * plan.room:  # it cannot be divided: some of its rows have to do
        chunk = _some_rows(stores, plan.room / n_bytes, node_seed(seed, 9))
    else:
        chunk = gathered(stores)
    for store in stores:
        store.remove()
    data = plan.data(chunk)
    del chunk
    unseen = plan.unseen(data.X) & (plan.counts[data.y] >= _JUDGED_ROWS)
    rows = part_rows(top, data.X, leaf, floor, unseen)
    present, local = np.unique(data.y, return_inverse=True)
    classes, n_classes = present.astype(INDEX), plan.classes.size
    own = data.take(np.flatnonzero(rows.own))
    own = replace(own, weight=own.weight / plan.unit)
    if classes.size == 1:
        tree = Tree.build(
            np.full((1, 2), NO_CHILD), [Leaf.constant(int(classes[0]))], n_features=top.n_features,
            n_classes=n_classes,
        )  # fmt: skip
        part = PartTree(tree, None, None, 1.0, {"train_error": 0.0, "validation_error": None})
    else:
        trainer = plan.trainer._for_part(
            int(top.node_depth[leaf]),
            float(own.n_rows / plan.n_rows),
            plan.classes[classes],
            n_classes,
        )
        own_classes = replace(data, y=local.astype(INDEX), n_classes=int(classes.size))
        part = trainer._train_part(own_classes, rows, seed)
        part = replace(part, tree=with_classes(part.tree, classes, n_classes))
        if part.judged is not None:
            part = replace(part, judged=with_classes(part.judged, classes, n_classes))
    final, judged = directory / f"tree{number}", directory / f"judged{number}"
    branch = Branch.of(part.tree, own, part.outside_scale)
    branch.write(final)
    if part.judged is None:
        judged = final
    else:
        Branch.of(part.judged, own, part.outside_scale).write(judged)
    outside = float(branch.backoff.counts.sum())
    weight = float(own.weight.sum())
    judge = _judges(data, part.held, rows.own, plan.n_rows)
    give_back()
    return FittedPart(final, judged, judge, weight, weight - outside, part.record, part.found)


def _judges(
    data: TrainingData, held: AccumArray | None, own: BoolArray, n_rows: int
) -> TrainingData | None:
    """Return a fair share of the rows that choose a beam."""
    if held is None or not np.any(held):
        return None
    judges = np.flatnonzero(held)
    n_wanted = max(1, round(BEAM_ROWS * np.count_nonzero(own) / n_rows))
    return replace(data, weight=held).take(judges[:: max(1, judges.size // n_wanted)])


def _some_rows(stores: Sequence[RowStore], share: float, seed: np.random.SeedSequence) -> Chunk:
    rng = np.random.default_rng(seed)
    found = []
    for store in stores:
        for X, y, weight in store:
            rows = np.flatnonzero(rng.random(y.size) < share)
            found.append(Chunk(take_rows(X, rows), y[rows], weight[rows]))
    return joined(found)


def _errors(record: dict[str, Any]) -> str:
    held = record.get("validation_error")
    text = f"train error {100 * record['train_error']:.2f} %"
    return text if held is None else f"{text}  validation error {100 * held:.2f} %"


def error_of_parts(parts: Sequence[FittedPart], name: str) -> float | None:
    """Return the mean of an error over all parts that have it."""
    known = [
        (part.weight, part.record[name]) for part in parts if part.record.get(name) is not None
    ]
    if not known:
        return None
    weights, values = zip(*known, strict=True)
    return float(np.average(values, weights=weights))


def sum_of_parts(parts: Sequence[FittedPart], name: str) -> Any:
    """Return the sum of a value of the records."""
    return sum(part.record.get(name, 0) for part in parts)


def round_of_parts(fit: JoinedFit, coverage: float) -> dict[str, Any]:
    """Return the one entry of the history of an adaptive tree."""
    parts, shape = fit.parts, summarize(fit.branch.tree)
    train, held = (error_of_parts(parts, f"{name}_error") for name in ("train", "validation"))
    record = RoundRecord(
        0,
        sum_of_parts(parts, "accepted"),
        sum_of_parts(parts, "tried"),
        float(train or 0.0),
        held,
        float(sum_of_parts(parts, "objective")),
        coverage,
        shape.n_leaves,
        shape.depth,
        shape.mean_depth,
        shape.mean_leaf_classes,
        int(fit.branch.tree.leaf_sizes.max()),
        float(error_of_parts(parts, "flops") or 0.0),
        sum_of_parts(parts, "expansion_seconds"),
        sum_of_parts(parts, "sweep_seconds"),
        sum_of_parts(parts, "seconds"),
        [],
    )
    return asdict(record)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a new directory for rows, where ``TMPDIR`` says; it ends with its context."""
    return tempfile.TemporaryDirectory(prefix="thinleaf-", ignore_cleanup_errors=True)

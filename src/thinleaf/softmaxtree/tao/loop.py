"""Repeating sweeps: when to stop, which iterate to keep, and the record of how it went."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import IndexArray
from thinleaf.execution import Executor
from thinleaf.model.routing import (
    Reach,
    all_rows,
    leaf_of_rows,
    losses,
    reach_of_assignment,
    route,
)
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.tao.overlap import Overlap, find_overlap
from thinleaf.softmaxtree.tao.reduced import TrainingData
from thinleaf.softmaxtree.tao.sweep import Settings, State, sweep


@dataclass(frozen=True)
class SweepRecord:
    """One line of the history.

    Attributes
    ----------
    sweep : int
        From 1.
    objective : float
    train_error : float
        Weighted 0/1 error on the training rows.
    validation_error : float or None
    n_solved : int
        Node problems that had changed and were solved.
    seconds : float
        Since the first sweep began.
    """

    sweep: int
    objective: float
    train_error: float
    validation_error: float | None
    n_solved: int
    seconds: float


Progress: TypeAlias = Callable[[SweepRecord], None]
Ended: TypeAlias = Literal["converged", "patience", "sweeps", "stopped", "interrupted"]


@dataclass(frozen=True)
class Validation:
    """Rows held out to choose the iterate.

    Attributes
    ----------
    data : TrainingData
    patience : int
        Stop after this many sweeps without a lower error.
    """

    data: TrainingData
    patience: int


@dataclass(frozen=True)
class TaoResult:
    """The best iterate and how training went.

    Attributes
    ----------
    tree : Tree
    history : list of SweepRecord
    best_sweep : int
        The sweep that made ``tree``; 0 if it is the tree that was given.
    solved : dict
        For each node of ``tree``, a fingerprint of the problem that its parameters solve.
    ended : {"converged", "patience", "sweeps", "stopped", "interrupted"}
        Why there was no further sweep.
    """

    tree: Tree
    history: list[SweepRecord]
    best_sweep: int
    solved: dict[int, bytes]
    ended: Ended


@dataclass(frozen=True)
class Sweeps:
    """A run of sweeps that has not ended: all that the next sweep needs to know.

    Attributes
    ----------
    tree : Tree
        After the last sweep.
    state : State
    best : TaoResult
        The best iterate so far, and the history.
    best_value : float
        What another one must get below.
    """

    tree: Tree
    state: State
    best: TaoResult
    best_value: float


def optimise(
    tree: Tree,
    data: TrainingData,
    settings: Settings,
    executor: Executor,
    *,
    max_sweeps: int,
    assignment: IndexArray | None = None,
    solved: dict[int, bytes] | None = None,
    validation: Validation | None = None,
    progress: Progress | None = None,
    after_sweep: Callable[[Sweeps], None] | None = None,
    stop: Callable[[], bool] | None = None,
    resume: Sweeps | None = None,
) -> TaoResult:
    """Sweep until nothing changes, patience runs out, or ``max_sweeps`` is reached.

    Ctrl-C ends it too, with the best iterate, once a sweep is complete.

    Parameters
    ----------
    tree : Tree
        Structure and first parameters.
    assignment : ndarray of shape (n_rows,), optional
        The leaf of each row for the first sweep; by default, where ``tree`` routes it.
    solved : dict, optional
        Of a result whose tree this is, or has become part of: what need not be solved again.
    validation : Validation, optional
        If given, the iterate with the lowest validation error is kept, else that with the lowest
        objective, or with overlap, the last.
    progress : callable, optional
        Called after each sweep with its record.
    after_sweep : callable, optional
        Called after each sweep with all that is needed to go on from there. What it is given
        changes with the next sweep.
    stop : callable, optional
        Asked after each sweep whether to end.
    resume : Sweeps, optional
        What an earlier run with the same arguments had reached; the result is that of one run.
    """
    started = time.perf_counter()
    if resume is None:
        state, best_value = _start(tree, data, settings, assignment, solved, validation)
        best = TaoResult(tree, [], 0, dict(state.solved), "sweeps")
    else:
        tree, state, best, best_value = resume.tree, resume.state, resume.best, resume.best_value
        started -= best.history[-1].seconds
    history = best.history
    # guests have no part in the objective, so it does not say which iterate is best
    keep_last = settings.overlap is not None and validation is None
    ended = _ended(best, validation)
    while ended is None and len(history) < max_sweeps:
        number = len(history) + 1
        leaves = assignment if number == 1 else None
        try:
            reach = reach_of_assignment(
                tree, _route(tree, data, executor) if leaves is None else leaves
            )
            # rows say nothing of routers that are yet to be fitted
            near = _near(tree, data, reach, settings, executor) if leaves is None else None
            tree, n_solved = sweep(tree, data, reach, state, settings, executor, near)
            record = _record(number, tree, data, state, settings, validation, n_solved, started)
            history.append(record)
            value = record.objective if validation is None else record.validation_error
            if value is not None and (keep_last or value < best_value):
                best_value = value
                best = TaoResult(tree, history, number, dict(state.solved), "sweeps")
            if after_sweep is not None:
                after_sweep(Sweeps(tree, state, best, best_value))
            if progress is not None:
                progress(record)
            ended = _ended(best, validation)
            if ended is None and stop is not None and stop():
                ended = "stopped"
        except KeyboardInterrupt:
            if best_value == np.inf:
                raise
            ended = "interrupted"
    return replace(best, ended=ended or "sweeps")


def fit_leaves(tree: Tree, data: TrainingData, settings: Settings, executor: Executor) -> Tree:
    """Fit every leaf once more, to the rows that reach it now and to its guests.

    A sweep fits leaves before routers, so that rows may reach others in the end than it fitted.
    """
    reach = reach_of_assignment(tree, _route(tree, data, executor))
    near = _near(tree, data, reach, settings, executor)
    state = State.empty(data.n_rows)
    return sweep(tree, data, reach, state, settings, executor, near, leaves_only=True)[0]


def _near(
    tree: Tree, data: TrainingData, reach: Reach, settings: Settings, executor: Executor
) -> dict[int, Overlap] | None:
    if settings.overlap is None:
        return None
    return find_overlap(tree, data.X, reach, settings.overlap, executor)


def _ended(best: TaoResult, validation: Validation | None) -> Ended | None:
    """Return why there is nothing to be gained from another sweep."""
    if best.history and best.history[-1].n_solved == 0:
        return "converged"
    if validation is not None and len(best.history) - best.best_sweep >= validation.patience:
        return "patience"
    return None


def _start(
    tree: Tree,
    data: TrainingData,
    settings: Settings,
    assignment: IndexArray | None,
    solved: dict[int, bytes] | None,
    validation: Validation | None,
) -> tuple[State, float]:
    """Return what is known before the first sweep, and what the best iterate must get below."""
    if assignment is not None:  # the routers do not say yet where rows go: there is nothing to keep
        return State.empty(data.n_rows), np.inf
    objective = settings.objective
    entropy, correct = losses(tree, data.X, data.y, route(tree, data.X))
    state = State(objective.row_losses(entropy, correct), correct, dict(solved or {}))
    if validation is not None:
        return state, error(tree, validation.data)
    return state, objective.total(state.loss, data.weight, tree)


def _route(tree: Tree, data: TrainingData, executor: Executor) -> IndexArray:
    """Return the leaf that each row reaches, routed in as many parts as there are threads."""
    local = executor.local

    def leaves_of(rows: IndexArray) -> IndexArray:
        return leaf_of_rows(tree, route(tree, data.X, rows))

    return np.concatenate(local.map(leaves_of, np.array_split(all_rows(data.X), local.n_workers)))


def error(tree: Tree, data: TrainingData) -> float:
    """Return the weighted 0/1 error on some rows."""
    _, correct = losses(tree, data.X, data.y, route(tree, data.X))
    return float(1.0 - data.weight[correct].sum() / data.weight.sum())


def _record(
    number: int,
    tree: Tree,
    data: TrainingData,
    state: State,
    settings: Settings,
    validation: Validation | None,
    n_solved: int,
    started: float,
) -> SweepRecord:
    return SweepRecord(
        number,
        settings.objective.total(state.loss, data.weight, tree),
        float(1.0 - data.weight[state.correct].sum() / data.weight.sum()),
        None if validation is None else error(tree, validation.data),
        n_solved,
        time.perf_counter() - started,
    )

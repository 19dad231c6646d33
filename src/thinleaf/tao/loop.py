"""Repeating sweeps: when to stop, which iterate to keep, and the record of how it went."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from thinleaf._dtypes import IndexArray
from thinleaf.execution import Executor
from thinleaf.inference import all_rows, leaf_of_rows, losses, reach_of_assignment, route
from thinleaf.tao.reduced import TrainingData
from thinleaf.tao.sweep import Settings, State, sweep
from thinleaf.tree import Tree


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
    """The best iterate and how training went."""

    tree: Tree
    history: list[SweepRecord]
    best_sweep: int
    converged: bool


def optimize(
    tree: Tree,
    data: TrainingData,
    settings: Settings,
    executor: Executor,
    *,
    max_sweeps: int,
    assignment: IndexArray | None = None,
    validation: Validation | None = None,
    progress: Progress | None = None,
) -> TaoResult:
    """Sweep until nothing changes, patience runs out, or ``max_sweeps`` is reached.

    Parameters
    ----------
    tree : Tree
        Structure and first parameters.
    assignment : ndarray of shape (n_rows,), optional
        The leaf of each row for the first sweep; by default, where ``tree`` routes it.
    validation : Validation, optional
        If given, the iterate with the lowest validation error is kept, else that with the lowest
        objective.
    progress : callable, optional
        Called after each sweep.
    """
    started = time.perf_counter()
    state = State.empty(data.n_rows)
    history: list[SweepRecord] = []
    best, best_sweep = tree, 0
    # an assignment means that the routers do not say yet where rows go: there is nothing to keep
    best_value = np.inf if assignment is not None else _value(tree, data, settings, validation)
    converged = False
    for number in range(1, max_sweeps + 1):
        leaves = assignment if number == 1 else None
        reach = reach_of_assignment(
            tree, _route(tree, data, executor) if leaves is None else leaves
        )
        tree, n_solved = sweep(tree, data, reach, state, settings, executor)
        record = _record(number, tree, data, state, settings, validation, n_solved, started)
        history.append(record)
        value = record.objective if validation is None else record.validation_error
        if value is not None and value < best_value:
            best, best_value, best_sweep = tree, value, number
        if progress is not None:
            progress(record)
        converged = n_solved == 0
        if converged or (validation is not None and number - best_sweep >= validation.patience):
            break
    return TaoResult(best, history, best_sweep, converged)


def _route(tree: Tree, data: TrainingData, executor: Executor) -> IndexArray:
    """Return the leaf that each row reaches, routed in as many parts as there are workers."""

    def leaves_of(rows: IndexArray) -> IndexArray:
        return leaf_of_rows(tree, route(tree, data.X, rows))

    return np.concatenate(
        executor.map(leaves_of, np.array_split(all_rows(data.X), executor.n_workers))
    )


def _error(tree: Tree, data: TrainingData) -> float:
    """Return the weighted 0/1 error on some rows."""
    _, correct = losses(tree, data.X, data.y, route(tree, data.X))
    return float(1.0 - data.weight[correct].sum() / data.weight.sum())


def _value(
    tree: Tree, data: TrainingData, settings: Settings, validation: Validation | None
) -> float:
    """Return what the best iterate has least of."""
    if validation is not None:
        return _error(tree, validation.data)
    objective = settings.objective
    row_losses = objective.row_losses(*losses(tree, data.X, data.y, route(tree, data.X)))
    return objective.total(row_losses, data.weight, tree)


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
        None if validation is None else _error(tree, validation.data),
        n_solved,
        time.perf_counter() - started,
    )

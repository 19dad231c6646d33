"""Algorithm 1 of paper 004: the tree and the representation are learned together.

Rows are visited in random order. While the tree is learned, for the first half of training, the
rate is constant and AssignLabels is called at regular intervals; then, or from the start if the
tree is fixed, it decreases linearly to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, IndexArray, ParamArray
from thinleaf.arrays.rows import Rows, n_rows_of
from thinleaf.execution import Executor
from thinleaf.labeltree.assign import Criterion, assign_labels
from thinleaf.labeltree.kernels.path_steps import train_rows
from thinleaf.labeltree.model import LabelTreeModel
from thinleaf.labeltree.statistics import Statistics
from thinleaf.labeltree.targets import Targets

_SLICE = 20_000
"""Rows between two looks at the clock and at the keyboard."""


@dataclass(frozen=True)
class Schedule:
    """When what happens.

    Attributes
    ----------
    epochs : int
    learning_rate : float
    n_assignments : int
        How often AssignLabels is called; 0 leaves the tree as it is.
    learned_fraction : float
        The part of training in which the tree is learned and the rate constant.
    still_fraction : float
        The part of training before which no label moves: nodes must have learned something to
        say where.
    """

    epochs: int = 5
    learning_rate: float = 0.5
    n_assignments: int = 0
    learned_fraction: float = 0.5
    still_fraction: float = 1 / 32

    def rate(self, progress: float) -> float:
        """Return the learning rate at a progress between 0 and 1."""
        constant = self.learned_fraction if self.n_assignments else 0.0
        return self.learning_rate * min(1.0, (1.0 - progress) / (1.0 - constant))

    def assignments(self, n_steps: int) -> list[int]:
        """Return after which steps, of ``n_steps`` in all, AssignLabels is called."""
        first, last = self.still_fraction * n_steps, self.learned_fraction * n_steps
        shares = [(i + 1) / self.n_assignments for i in range(self.n_assignments)]
        steps = {round(first + (last - first) * share) for share in shares}
        return sorted(step for step in steps if 0 < step < n_steps)


@dataclass(frozen=True)
class Assigning:
    """How labels are re-assigned, and which gradient is taken."""

    criterion: Criterion = "log_likelihood"
    max_depth: int | None = None
    max_share: float | None = None
    decay: float = 0.8
    log_gradient: bool = True


class EpochRecord(NamedTuple):
    """What is known after an epoch."""

    epoch: int
    loss: float
    """Mean negative log-likelihood of the rows, each before its own step."""
    depth: int
    mean_depth: float
    n_assigned: int
    """How often the tree has been re-assigned."""


class Trained(NamedTuple):
    """The result of training; statistics are those of the last epoch."""

    model: LabelTreeModel
    statistics: Statistics
    history: list[EpochRecord]


def train(
    model: LabelTreeModel,
    X: Rows,
    targets: Targets,
    schedule: Schedule,
    assigning: Assigning,
    rng: np.random.Generator,
    executor: Executor,
    progress: Callable[[EpochRecord], None] | None = None,
    importance: ParamArray | None = None,
) -> Trained:
    """Train a model; its arrays are changed in place.

    Parameters
    ----------
    model : LabelTreeModel
    X : Rows
    targets : Targets
        Labels; in each epoch, a row of several is an example of one of them.
    schedule : Schedule
    assigning : Assigning
    rng : numpy.random.Generator
    executor : Executor
        With one worker the result is determined by ``rng``. More workers update the same arrays
        without locks, as in Hogwild: bits differ from run to run.
    progress : callable, optional
        Called after each epoch.
    importance : ndarray of shape (n_rows,), optional
        What a row's step is multiplied by, and what it counts in statistics; of mean one.

    Returns
    -------
    trained : Trained
    """
    n_rows = n_rows_of(X)
    n_steps = schedule.epochs * n_rows
    assignments = schedule.assignments(n_steps)
    statistics = Statistics.zeros(model.tree, model.U.shape[1])
    history: list[EpochRecord] = []
    n_assigned = 0
    weight: ParamArray = np.empty(0, dtype=PARAM) if importance is None else importance
    frequency = targets.frequency(model.tree.n_labels, importance)
    for epoch in range(schedule.epochs):
        order = rng.permutation(n_rows).astype(INDEX)
        y = targets.drawn(rng)
        last = epoch == schedule.epochs - 1
        if last:
            statistics.reset()
        loss = 0.0
        for begin, end in _slices(epoch * n_rows, (epoch + 1) * n_rows, assignments):
            rows = order[begin - epoch * n_rows : end - epoch * n_rows]
            rates = (schedule.rate(begin / n_steps), schedule.rate(end / n_steps))
            collect = last or n_assigned < len(assignments)
            gradient = assigning.log_gradient
            loss += _steps(
                model, X, y, weight, rows, rates, gradient, collect, statistics, executor
            )
            if n_assigned < len(assignments) and end == assignments[n_assigned]:
                tree, origin, statistics = assign_labels(
                    model.tree,
                    statistics,
                    model.weights,
                    model.bias,
                    criterion=assigning.criterion,
                    max_depth=assigning.max_depth,
                    max_share=assigning.max_share,
                    decay=assigning.decay,
                    executor=executor,
                )
                model = model.rebuilt(tree, origin)
                n_assigned += 1
        tree = model.tree
        record = EpochRecord(
            epoch + 1,
            loss / n_rows,
            tree.depth,
            tree.mean_depth(frequency),
            n_assigned,
        )
        history.append(record)
        if progress is not None:
            progress(record)
    return Trained(model, statistics, history)


def _slices(begin: int, end: int, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield parts of a range that end at each cut, and are not long."""
    for stop in [*(cut for cut in cuts if begin < cut < end), end]:
        while begin < stop:
            yield begin, min(begin + _SLICE, stop)
            begin = min(begin + _SLICE, stop)


def _steps(
    model: LabelTreeModel,
    X: Rows,
    y: IndexArray,
    importance: ParamArray,
    rows: IndexArray,
    rates: tuple[float, float],
    log_gradient: bool,
    collect: bool,
    statistics: Statistics,
    executor: Executor,
) -> float:
    """Take a step for each row, in as many threads as there are workers."""
    tree = model.tree
    pair: ParamArray = np.array(rates, dtype=PARAM)

    def run(part: IndexArray) -> float:
        return train_rows(
            X, model.scale, y, importance, part, pair, log_gradient, collect,
            model.U, model.weights, model.bias,
            tree.path_ptr, tree.path_nodes, tree.path_branches,
            statistics.sum_probas, statistics.counts,
            statistics.label_sums, statistics.label_counts,
        )  # fmt: skip

    return sum(executor.map(run, np.array_split(rows, min(executor.n_workers, rows.size))))

"""What is written down after each round of growth: the data of figures 2, 3, 5 and 6."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thinleaf.model.cost import mean_flops, summarize
from thinleaf.model.routing import losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.objective import Objective
from thinleaf.softmaxtree.tao import SweepRecord, TrainingData, error


@dataclass(frozen=True)
class RoundRecord:
    """One line of the history.

    Attributes
    ----------
    round : int
        0 is the initial tree.
    accepted, tried : int
        Leaves that were replaced, of those that were tried.
    train_error : float
        Weighted 0/1 error on the training rows.
    validation_error : float or None
    objective : float
    coverage : float
        Share of training weight whose class is in the leaf that the row reaches.
    n_leaves, depth : int
    mean_depth : float
        Of the leaves.
    mean_leaf_classes, max_leaf_classes : float, int
    flops : float
        Mean multiplications of a prediction, over the training rows.
    expansion_seconds, sweep_seconds : float
        Spent on replacements, and on the whole tree.
    seconds : float
        Since the fit began, without interruptions.
    sweeps : list of SweepRecord
        Of the whole tree in this round.
    overlap : float or None
        That its last sweeps had.
    """

    round: int
    accepted: int
    tried: int
    train_error: float
    validation_error: float | None
    objective: float
    coverage: float
    n_leaves: int
    depth: int
    mean_depth: float
    mean_leaf_classes: float
    max_leaf_classes: int
    flops: float
    expansion_seconds: float
    sweep_seconds: float
    seconds: float
    sweeps: list[SweepRecord]
    overlap: float | None = None


@dataclass(frozen=True)
class Effort:
    """What a round took: the part of its record that cannot be seen from the tree."""

    round: int
    accepted: int
    tried: int
    expansion_seconds: float
    sweep_seconds: float
    seconds: float
    sweeps: list[SweepRecord]
    overlap: float | None = None


def measure(
    tree: Tree,
    data: TrainingData,
    validation: TrainingData | None,
    objective: Objective,
    effort: Effort,
) -> RoundRecord:
    """Return the record of a round that ended with ``tree``."""
    reach = route(tree, data.X)
    entropy, correct = losses(tree, data.X, data.y, reach)
    total = data.weight.sum()
    shape = summarize(tree)
    return RoundRecord(
        **vars(effort),
        train_error=float(1.0 - data.weight[correct].sum() / total),
        validation_error=None if validation is None else error(tree, validation),
        objective=objective.total(objective.row_losses(entropy, correct), data.weight, tree),
        coverage=float(data.weight[np.isfinite(entropy)].sum() / total),
        n_leaves=shape.n_leaves,
        depth=shape.depth,
        mean_depth=shape.mean_depth,
        mean_leaf_classes=shape.mean_leaf_classes,
        max_leaf_classes=int(tree.leaf_sizes.max()),
        flops=mean_flops(tree, data.X, reach),
    )


def best_round(history: Sequence[RoundRecord]) -> int:
    """Return the round with the lowest validation error, or the last if none was measured."""
    errors = [math.inf if r.validation_error is None else r.validation_error for r in history]
    return int(np.argmin(errors)) if math.isfinite(errors[-1]) else len(history) - 1


def last_gain(history: Sequence[RoundRecord]) -> int:
    """Return the last round that lowered the validation error by more than a hundredth of it."""
    last, least = 0, math.inf
    for record in history:
        if record.validation_error is not None and record.validation_error < 0.99 * least:
            last, least = record.round, record.validation_error
    return last

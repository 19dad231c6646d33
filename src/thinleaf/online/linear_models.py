"""Many online linear models with adaptive, normalised, importance-aware updates.

A weight w of a scaled entry x moves by η·√(t/N)·x/√G times the gradient, where G is the weighted
sum of its squared gradients (AdaGrad) and N/t the mean squared length of scaled rows (algorithm NAG
of Ross, Mineiro & Langford 2013). How far along that direction an example of importance h leads is
the matter of :mod:`thinleaf.online.importance`.

Models are the regressors of classes or the routers of nodes: some of them score and learn one
example together. Where their weights stand is the matter of :mod:`thinleaf.online.weights`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.kernels._jit import bare_part
from thinleaf.online.importance import flow, slope
from thinleaf.online.scaled_rows import Row, Scales
from thinleaf.online.tables import Tables, new_tables
from thinleaf.online.weights import (
    EVERY,
    REACH,
    SQUARE,
    STEP,
    Weights,
    adapt_feature,
    adapt_weights,
    move_feature,
    move_weights,
    score_feature,
    score_weights,
)

MOST_MODELS: Final = 128
"""Models that score and learn an example together, at the most."""


class Models(NamedTuple):
    """Linear models; each weight has its sum of squared gradients beside it."""

    bias: ParamArray
    """Of shape (n_models, 2)."""
    weights: Weights
    """Of shape (n_models, 2, n_features), or tables of features with models as keys."""
    extra: Tables
    """Weights of indicator features: tables of these, with models as keys."""


class Learning(NamedTuple):
    """How models learn."""

    loss: int
    rate: float
    known_only: bool
    """Whether only positive examples give a model weights of new features: of dense rows, of
    indicator features alone."""


class Scratch(NamedTuple):
    """Memory for one example."""

    idx: IndexArray
    val: ParamArray
    path: IndexArray
    train_path: IndexArray
    models: IndexArray
    seen: IndexArray
    runner_up: IndexArray
    """The node where the second best path leaves the best one."""
    slots: OffsetArray
    """Where weights stand in tables: first of the entries, then of the path, by model."""
    rates: ParamArray
    """How far they move in a unit step."""
    block_rates: ParamArray
    """The same for dense weights, by model and feature."""
    score: AccumArray
    update: AccumArray
    """Rows ``SQUARE``, ``REACH`` and ``STEP``, by model."""


def new_models(n_models: int, n_features: int, n_extra: int, *, dense: bool) -> Models:
    """Return models that score everything zero."""
    weights: Weights = new_tables(n_features, 2, PARAM)
    if dense:
        weights = np.zeros((n_models, 2, n_features), dtype=PARAM)
    return Models(np.zeros((n_models, 2), dtype=PARAM), weights, new_tables(n_extra, 2, PARAM))


def new_scratch(n_entries: int, n_path: int, *, dense: bool) -> Scratch:
    """Return memory for rows of so many entries and paths of so many nodes."""
    n_entries, n_path = max(n_entries, 1), n_path + 2
    n_slots = n_path if dense else n_entries + n_path
    return Scratch(
        np.zeros(n_entries, dtype=INDEX),
        np.zeros(n_entries, dtype=PARAM),
        np.zeros(n_path, dtype=INDEX),
        np.zeros(n_path, dtype=INDEX),
        np.zeros(MOST_MODELS, dtype=INDEX),
        np.zeros(MOST_MODELS, dtype=INDEX),
        np.zeros(1, dtype=INDEX),
        np.zeros((n_slots, MOST_MODELS), dtype=OFFSET),
        np.zeros((n_slots, MOST_MODELS), dtype=PARAM),
        np.zeros((MOST_MODELS, n_entries if dense else 1), dtype=PARAM),
        np.zeros(MOST_MODELS, dtype=ACCUM),
        np.zeros((3, MOST_MODELS), dtype=ACCUM),
    )


# -- scoring and learning with some models ---------------------------------------------------------


@bare_part
def score(models: Models, row: Row, some: IndexArray, n: int, scratch: Scratch) -> None:
    """Fill ``scratch.score`` with the predictions of the first ``n`` models of ``some``."""
    for c in range(n):
        scratch.score[c] = models.bias[some[c], 0]
    first = score_weights(models.weights, row, some, n, scratch)
    for e in range(row.n_extra):
        at = first + e
        score_feature(models.extra, row.extra[e], 1.0, some, n, at, scratch.slots, scratch.score)


@bare_part
def learn(
    models: Models,
    row: Row,
    some: IndexArray,
    n: int,
    positive: int,
    importance: float,
    learning: Learning,
    scales: Scales,
    scratch: Scratch,
) -> None:
    """Update models that have just scored the row: the label of ``positive`` is +1, others' -1.

    ``scratch.score`` holds the new predictions thereafter.
    """
    bias, update = models.bias, scratch.update
    for c in range(n):
        gradient = slope(learning.loss, scratch.score[c], 1.0 if c == positive else -1.0)
        square = importance * gradient * gradient
        squares = bias[some[c], 1] + np.float32(square)
        bias[some[c], 1] = squares
        update[SQUARE, c] = square
        update[REACH, c] = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
    adding = positive if learning.known_only else EVERY
    first = adapt_weights(models.weights, row, some, n, adding, scratch)
    for e in range(row.n_extra):
        adapt_feature(
            models.extra,
            row.extra[e],
            1.0,
            some,
            n,
            adding,
            first + e,
            scratch.slots,
            scratch.rates,
            update,
        )
    # the mean squared length of rows, and what indicator features add to it
    length = scales.norm[1] / scales.norm[0] + row.n_extra
    rate = learning.rate / math.sqrt(length)
    for c in range(n):
        reach = update[REACH, c]
        update[STEP, c] = 0.0
        if reach > 0.0:
            label = 1.0 if c == positive else -1.0
            after = flow(learning.loss, scratch.score[c], label, importance * rate * reach)
            update[STEP, c] = (after - scratch.score[c]) / reach
            scratch.score[c] = after
            bias[some[c], 0] += np.float32(update[STEP, c] / math.sqrt(bias[some[c], 1]))
    move_weights(models.weights, row, some, n, scratch)
    for e in range(row.n_extra):
        move_feature(models.extra.values, n, first + e, scratch.slots, scratch.rates, update)

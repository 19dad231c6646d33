"""Many online linear models with adaptive, normalised, importance-aware updates.

A weight w of a scaled entry x moves by η·√(t/N)·x/√G times the gradient, where G is the weighted
sum of its squared gradients (AdaGrad) and N/t the mean squared length of scaled rows (algorithm NAG
of Ross, Mineiro & Langford 2013). How far along that direction an example of importance h leads is
the matter of :mod:`thinleaf.online.flow`.

Models are the regressors of classes or the routers of nodes: some of them score and learn one
example together. The weights of dense rows are a block for each model, those of sparse rows a table
for each feature (:mod:`thinleaf.online.tables`), so that candidates find theirs side by side.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

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
from thinleaf.kernels._jit import bare_kernel
from thinleaf.online.flow import flow, slope
from thinleaf.online.rows import Row, Scales
from thinleaf.online.tables import (
    EMPTY,
    START,
    USED,
    Tables,
    find,
    grow,
    insert,
    new_tables,
    room_for,
)

EVERY: Final = -2
"""In place of a model: all of them."""

MOST_MODELS: Final = 64
"""Models that score and learn an example together, at the most."""

Weights: TypeAlias = ParamArray | Tables


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
    """Whether only positive examples give a model weights of new features."""


class Scratch(NamedTuple):
    """Memory for one example."""

    idx: IndexArray
    val: ParamArray
    path: IndexArray
    train_path: IndexArray
    models: IndexArray
    seen: IndexArray
    slots: OffsetArray
    """Where weights stand in tables: first of the entries, then of the path, by model."""
    rates: ParamArray
    """How far they move in a unit step."""
    block_rates: ParamArray
    """The same for dense weights, by model and feature."""
    score: AccumArray
    update: AccumArray
    """Rows ``SQUARE``, ``REACH`` and ``STEP``, by model."""


SQUARE: Final = 0
"""Squared slope of the loss times importance."""
REACH: Final = 1
"""How far the prediction moves in a unit step."""
STEP: Final = 2


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
        np.zeros((n_slots, MOST_MODELS), dtype=OFFSET),
        np.zeros((n_slots, MOST_MODELS), dtype=PARAM),
        np.zeros((MOST_MODELS, n_entries if dense else 1), dtype=PARAM),
        np.zeros(MOST_MODELS, dtype=ACCUM),
        np.zeros((3, MOST_MODELS), dtype=ACCUM),
    )


# -- scoring and learning with some models ---------------------------------------------------------


@bare_kernel
def score(models: Models, row: Row, some: IndexArray, n: int, scratch: Scratch) -> None:
    """Fill ``scratch.score`` with the predictions of the first ``n`` models of ``some``."""
    for c in range(n):
        scratch.score[c] = models.bias[some[c], 0]
    first = _score_weights(models.weights, row, some, n, scratch)
    for e in range(row.n_extra):
        at = first + e
        _score_feature(models.extra, row.extra[e], 1.0, some, n, at, scratch.slots, scratch.score)


@bare_kernel
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
    first = _adapt_weights(models.weights, row, some, n, adding, scratch)
    for e in range(row.n_extra):
        _adapt_feature(
            models.extra,
            row.extra[e],
            1.0,
            some,
            n,
            EVERY,
            first + e,
            scratch.slots,
            scratch.rates,
            update,
        )
    rate = learning.rate * math.sqrt(scales.norm[0] / scales.norm[1])
    for c in range(n):
        reach = update[REACH, c]
        update[STEP, c] = 0.0
        if reach > 0.0:
            label = 1.0 if c == positive else -1.0
            after = flow(learning.loss, scratch.score[c], label, importance * rate * reach)
            update[STEP, c] = (after - scratch.score[c]) / reach
            scratch.score[c] = after
            bias[some[c], 0] += np.float32(update[STEP, c] / math.sqrt(bias[some[c], 1]))
    _move_weights(models.weights, row, some, n, scratch)
    for e in range(row.n_extra):
        _move_feature(models.extra.values, n, first + e, scratch.slots, scratch.rates, update)


# -- tables of features ----------------------------------------------------------------------------


@bare_kernel
def _score_feature(
    tables: Tables,
    feature: int,
    x: float,
    some: IndexArray,
    n: int,
    at: int,
    slots: OffsetArray,
    scores: AccumArray,
) -> None:
    """Add what a feature contributes to each model's score, and note where its weights stand."""
    if tables.owners[feature, START] == EMPTY:
        for c in range(n):
            slots[at, c] = EMPTY
        return
    for c in range(n):
        slot = find(tables, feature, some[c])
        slots[at, c] = slot
        if slot != EMPTY:
            scores[c] += x * tables.values[slot, 0]


@bare_kernel
def _adapt_feature(
    tables: Tables,
    feature: int,
    x: float,
    some: IndexArray,
    n: int,
    adding: int,
    at: int,
    slots: OffsetArray,
    rates: ParamArray,
    update: AccumArray,
) -> None:
    """Add an example to the squared gradients of a feature's weights, and set their rates.

    Model ``adding``, or ``EVERY`` one, gets a weight if it has none yet.
    """
    missing = 0
    for c in range(n):
        missing += slots[at, c] == EMPTY and _adds(adding, c)
    if missing > 0:
        if grow(tables, feature, missing):
            for c in range(n):
                if slots[at, c] != EMPTY:
                    slots[at, c] = find(tables, feature, some[c])
        for c in range(n):
            if slots[at, c] == EMPTY and _adds(adding, c):
                slots[at, c] = insert(tables, feature, some[c])
    values = tables.values
    entry = np.float32(x)
    for c in range(n):
        slot = slots[at, c]
        if slot == EMPTY:
            continue
        squares = values[slot, 1] + np.float32(update[SQUARE, c]) * entry * entry
        values[slot, 1] = squares
        rate = entry / np.sqrt(squares) if squares > np.float32(0.0) else np.float32(0.0)
        rates[at, c] = rate
        update[REACH, c] += entry * rate


@bare_kernel
def _adds(adding: int, c: int) -> bool:
    return c == adding or adding == EVERY


@bare_kernel
def _move_feature(
    values: ParamArray, n: int, at: int, slots: OffsetArray, rates: ParamArray, update: AccumArray
) -> None:
    for c in range(n):
        if slots[at, c] != EMPTY:
            values[slots[at, c], 0] += np.float32(update[STEP, c]) * rates[at, c]


# -- dense blocks ----------------------------------------------------------------------------------


@bare_kernel
def _dot(a: ParamArray, b: ParamArray) -> float:
    """Return a·b, summed in eight lanes."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0.0)
    n = a.size // 8
    for j in range(n):
        i = 8 * j
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    for i in range(8 * n, a.size):
        s0 += a[i] * b[i]
    return float(((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)))


@bare_kernel
def _adapt_block(squares: ParamArray, x: ParamArray, square: float, rates: ParamArray) -> None:
    factor = np.float32(square)
    for f in range(x.size):
        total = squares[f] + factor * x[f] * x[f]
        squares[f] = total
        rates[f] = x[f] / np.sqrt(total) if total > np.float32(0.0) else np.float32(0.0)


@bare_kernel
def _move_block(weights: ParamArray, rates: ParamArray, step: float) -> None:
    factor = np.float32(step)
    for f in range(rates.size):
        weights[f] += factor * rates[f]


# -- which of the two ------------------------------------------------------------------------------


def _score_weights(weights: Weights, row: Row, some: IndexArray, n: int, scratch: Scratch) -> int:
    """Add what a row contributes to scores; return which slots come next."""
    raise TypeError("only called from kernels")


@overload(_score_weights)
def _score_weights_of(weights, row, some, n, scratch):
    if isinstance(weights, types.Array):

        def dense(weights, row, some, n, scratch):
            x = row.val[: row.n]
            for c in range(n):
                scratch.score[c] += _dot(weights[some[c], 0], x)
            return 0

        return dense

    def sparse(weights, row, some, n, scratch):
        for t in range(row.n):
            f, x = row.idx[t], row.val[t]
            _score_feature(weights, f, x, some, n, t, scratch.slots, scratch.score)
        return row.n

    return sparse


def _adapt_weights(
    weights: Weights, row: Row, some: IndexArray, n: int, adding: int, scratch: Scratch
) -> int:
    """Prepare an update of the weights of a row; return which slots come next."""
    raise TypeError("only called from kernels")


@overload(_adapt_weights)
def _adapt_weights_of(weights, row, some, n, adding, scratch):
    if isinstance(weights, types.Array):

        def dense(weights, row, some, n, adding, scratch):
            x = row.val[: row.n]
            for c in range(n):
                rates = scratch.block_rates[c]
                _adapt_block(weights[some[c], 1], x, scratch.update[SQUARE, c], rates)
                scratch.update[REACH, c] += _dot(rates, x)
            return 0

        return dense

    def sparse(weights, row, some, n, adding, scratch):
        for t in range(row.n):
            f, x = row.idx[t], row.val[t]
            slots, rates, update = scratch.slots, scratch.rates, scratch.update
            _adapt_feature(weights, f, x, some, n, adding, t, slots, rates, update)
        return row.n

    return sparse


def _move_weights(weights: Weights, row: Row, some: IndexArray, n: int, scratch: Scratch) -> None:
    raise TypeError("only called from kernels")


@overload(_move_weights)
def _move_weights_of(weights, row, some, n, scratch):
    if isinstance(weights, types.Array):

        def dense(weights, row, some, n, scratch):
            for c in range(n):
                _move_block(weights[some[c], 0], scratch.block_rates[c], scratch.update[STEP, c])

        return dense

    def sparse(weights, row, some, n, scratch):
        for t in range(row.n):
            _move_feature(weights.values, n, t, scratch.slots, scratch.rates, scratch.update)

    return sparse


def slots_needed(weights: Weights, row: Row, n_models: int) -> int:
    """Return the slots that weights may use once ``n_models`` models have learned a row."""
    raise TypeError("only called from kernels")


@overload(slots_needed)
def _slots_needed(weights, row, n_models):
    if isinstance(weights, types.Array):
        return lambda weights, row, n_models: np.int64(0)

    def sparse(weights, row, n_models):
        needed = weights.heads[USED]
        for t in range(row.n):
            needed += room_for(weights, row.idx[t], n_models)
        return needed

    return sparse


def n_slots(weights: Weights) -> int:
    """Return the slots that weights have."""
    raise TypeError("only called from kernels")


@overload(n_slots)
def _n_slots(weights):
    if isinstance(weights, types.Array):
        return lambda weights: np.int64(0)
    return lambda weights: np.int64(weights.keys.size)

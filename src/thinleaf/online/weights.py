"""The weights of many linear models: how they are scored, adapted and moved in their two layouts.

The weights of dense rows are a block for each model, those of sparse rows a table for each feature
(:mod:`thinleaf.online.tables`), so that candidates find theirs side by side. Each weight has its
sum of squared gradients beside it. What a step is, is the matter of
:mod:`thinleaf.online.linear_models`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import bare_part
from thinleaf.online.scaled_rows import Row
from thinleaf.online.tables import EMPTY, START, USED, Tables, find, grow, insert, room_for

if TYPE_CHECKING:
    from thinleaf.online.linear_models import Scratch

Weights: TypeAlias = ParamArray | Tables

EVERY: Final = -2
"""In place of a model: all of them."""

SQUARE: Final = 0
"""Squared slope of the loss times importance."""
REACH: Final = 1
"""How far the prediction moves in a unit step."""
STEP: Final = 2
"""Rows of ``Scratch.update``."""


# -- tables of features ----------------------------------------------------------------------------


@bare_part
def score_feature(
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


@bare_part
def adapt_feature(
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


@bare_part
def _adds(adding: int, c: int) -> bool:
    return c == adding or adding == EVERY


@bare_part
def move_feature(
    values: ParamArray, n: int, at: int, slots: OffsetArray, rates: ParamArray, update: AccumArray
) -> None:
    """Move the weights of a feature by each model's step."""
    for c in range(n):
        if slots[at, c] != EMPTY:
            values[slots[at, c], 0] += np.float32(update[STEP, c]) * rates[at, c]


# -- dense blocks ----------------------------------------------------------------------------------


@bare_part
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


@bare_part
def _adapt_block(squares: ParamArray, x: ParamArray, square: float, rates: ParamArray) -> None:
    factor = np.float32(square)
    for f in range(x.size):
        total = squares[f] + factor * x[f] * x[f]
        squares[f] = total
        rates[f] = x[f] / np.sqrt(total) if total > np.float32(0.0) else np.float32(0.0)


@bare_part
def _move_block(weights: ParamArray, rates: ParamArray, step: float) -> None:
    factor = np.float32(step)
    for f in range(rates.size):
        weights[f] += factor * rates[f]


# -- which of the two ------------------------------------------------------------------------------


def score_weights(weights: Weights, row: Row, some: IndexArray, n: int, scratch: Scratch) -> int:
    """Add what a row contributes to scores; return which slots come next."""
    raise TypeError("only called from kernels")


@overload(score_weights)
def _score_either(weights, row, some, n, scratch):
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
            score_feature(weights, f, x, some, n, t, scratch.slots, scratch.score)
        return row.n

    return sparse


def adapt_weights(
    weights: Weights, row: Row, some: IndexArray, n: int, adding: int, scratch: Scratch
) -> int:
    """Prepare an update of the weights of a row; return which slots come next."""
    raise TypeError("only called from kernels")


@overload(adapt_weights)
def _adapt_either(weights, row, some, n, adding, scratch):
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
            adapt_feature(weights, f, x, some, n, adding, t, slots, rates, update)
        return row.n

    return sparse


def move_weights(weights: Weights, row: Row, some: IndexArray, n: int, scratch: Scratch) -> None:
    """Move the weights of a row by each model's step."""
    raise TypeError("only called from kernels")


@overload(move_weights)
def _move_either(weights, row, some, n, scratch):
    if isinstance(weights, types.Array):

        def dense(weights, row, some, n, scratch):
            for c in range(n):
                _move_block(weights[some[c], 0], scratch.block_rates[c], scratch.update[STEP, c])

        return dense

    def sparse(weights, row, some, n, scratch):
        for t in range(row.n):
            move_feature(weights.values, n, t, scratch.slots, scratch.rates, scratch.update)

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

"""From what a model says of a text to how sure its label is; one text and many run the same code.

A rejection arrives as a table: the number of knots, and the addresses of its arrays, which are
named in :mod:`thinleaf.text.kernels.sureness_table`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import float64_at
from thinleaf.text.kernels.sureness_table import (
    LEAST,
    N_KNOTS,
    PRECISION,
    PROBABILITY,
    SCORES,
    TINY,
    WEIGHTS,
)


@inlined
def signs_of(top, alone, n_known, n_terms):
    """Return the five signs of a text; ``alone`` is the probability within its leaves."""
    outside = 1.0
    if alone > 0.0:
        outside = 1.0 - top / max(alone, TINY)
    p = min(max(top, LEAST), 1.0 - LEAST)
    n_unknown = n_terms - n_known
    return (
        np.log(p / (1.0 - p)),
        np.log(min(max(outside, LEAST), 1.0)),
        n_unknown / max(n_terms, 1.0),
        np.log1p(n_unknown),
        1.0 / (1.0 + n_known),
    )


@strict_part
def _between(table, which, x):
    """Return the value of a table of knots at a score; beyond the knots, that of the last one."""
    n, knots, values = table[N_KNOTS], float64_at(table[SCORES]), float64_at(table[which])
    if x < knots[0]:
        return values[0]
    if x >= knots[n - 1]:
        return values[n - 1]
    low, high = 0, n - 1  # knots[low] <= x < knots[high]
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= x:
            low = middle
        else:
            high = middle
    slope = (values[high] - values[low]) / (knots[high] - knots[low])
    return values[low] + slope * (x - knots[low])


@inlined
def judged(table, a, b, c, d, e):
    """Return what the tables say of signs: probability and precision."""
    w = float64_at(table[WEIGHTS])
    score = a * w[0] + b * w[1] + c * w[2] + d * w[3] + e * w[4] + w[5]
    return _between(table, PROBABILITY, score), _between(table, PRECISION, score)


@strict_kernel
def signs_of_rows(
    top: AccumArray,
    alone: AccumArray,
    n_known: AccumArray,
    n_terms: AccumArray,
    out: AccumArray,
) -> None:
    """Fill in the signs of some texts."""
    for i in range(top.size):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = signs_of(
            top[i], alone[i], n_known[i], n_terms[i]
        )


@strict_kernel
def judged_rows(
    table: OffsetArray, S: AccumArray, probability: AccumArray, precision: AccumArray
) -> None:
    """Fill in what the tables say of some texts' signs."""
    for i in range(S.shape[0]):
        probability[i], precision[i] = judged(table, S[i, 0], S[i, 1], S[i, 2], S[i, 3], S[i, 4])

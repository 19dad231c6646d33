"""The class of the full layer, always, without reading all of its weights.

The best class that the tree keeps is a threshold. All rows are read in 8 bits, and those whose
bound (``byte_rows.py``) is below it cannot win. The few others are scored by the layer's own
weights in double precision.

The full layer's class is the largest of its logits as the layer itself computes them for the state
alone, ties going to the lowest class. A sum of d products in floating point is off by at most
γ·Σ|wⱼhⱼ| with γ = d·u / (1 - d·u), in whatever order it is taken; layers of 16 bits round the sum
once more. Where the lead of the best class is larger than that of both logits together, every order
gives it; otherwise the layer itself is asked. So it is where a sum may be infinite or no number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AnyArray, IndexArray, ParamArray
from thinleaf.torch.heads.kernels.byte_rows import in_double, may_win, round_state

_UNIT = 2.0**-24
_LEAST = 2.0**-126
"""Products below it may be zero."""

_MOST = 2.0**120
"""Sums below it are finite, in whatever order they are taken."""

_BYTES_A_THREAD = 4 * 2**20
"""Fewer are read sooner by one thread than another one wakes up."""


class Rounding(NamedTuple):
    """What becomes of a layer's sums at their end.

    Attributes
    ----------
    unit : float
        By how much of itself a logit is off; 0 in single precision.
    least : float
        By how much it is off, however small it is.
    most : float
        Larger ones are infinite.
    """

    unit: float
    least: float
    most: float


@dataclass
class ExactCounts:
    """What the exact mode did.

    Attributes
    ----------
    n_states : int
    n_certified : int
        No class but the tree's best could win.
    n_rescored : int
        Classes that were scored since bounds did not rule them out.
    n_full : int
        States for which the full layer was asked: two logits were too close, or too large.
    """

    n_states: int = 0
    n_certified: int = 0
    n_rescored: int = 0
    n_full: int = 0


@cache
def _helpers(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="thinleaf-head")


def survivors(
    state: ParamArray,
    least: float,
    rows: tuple[AnyArray, ParamArray, ParamArray, ParamArray, ParamArray],
    bias: ParamArray,
    n_threads: int = 1,
) -> IndexArray:
    """Return the classes whose logit may be ``least`` or more, ascending.

    Parameters
    ----------
    state : ndarray of shape (in_features,)
    least : float
    rows : tuple
        As of ``ByteRows.arrays``.
    bias : ndarray of shape (n_classes,) or (0,)
    n_threads : int
        They share the rows; the result is the same.
    """
    numbers, scale, error, centre, norms = rows
    n_classes = len(numbers)
    whole = np.empty(state.size, dtype=np.int16)
    step, base, length, slack = round_state(state, centre, norms, whole)
    least -= base + slack + 1e-9 * (abs(least) + abs(base))
    n_parts = int(max(1, min(n_threads, numbers.size // _BYTES_A_THREAD)))
    edges = np.linspace(0, n_classes, n_parts + 1).astype(int).tolist()

    def scan(i: int) -> IndexArray:
        out = np.empty(edges[i + 1] - edges[i], dtype=INDEX)
        given = (whole, step, length, least, numbers, scale, error, bias)
        return out[: may_win(*given, edges[i], edges[i + 1], out)]

    if n_parts == 1:
        return scan(0)
    others = [_helpers(n_parts - 1).submit(scan, i) for i in range(1, n_parts)]
    first = scan(0)
    return np.concatenate([first, *(part.result() for part in others)])


def winner(
    state: ParamArray,
    guess: int,
    rows: tuple[AnyArray, ParamArray, ParamArray, ParamArray, ParamArray],
    own: AnyArray,
    bias: ParamArray,
    rounding: Rounding,
    ask: Callable[[], tuple[int, float]],
    counts: ExactCounts,
    n_threads: int = 1,
) -> tuple[int, float]:
    """Return the full layer's best class of a state, and its logit.

    Parameters
    ----------
    state : ndarray of shape (in_features,)
    guess : int
        Some class; the better it is, the fewer are scored.
    rows : tuple
        As of ``ByteRows.arrays``.
    own : ndarray of shape (n_classes, in_features)
        The layer's own rows, as kernels take them.
    bias : ndarray of shape (n_classes,) or (0,)
    rounding : Rounding
        Of the layer's logits.
    ask : callable
        Returns what the full layer says.
    counts : ExactCounts
        Added to.
    n_threads : int
    """
    counts.n_states += 1
    longest = float(rows[4][1]) * float(np.linalg.norm(state.astype(ACCUM)))
    largest = float(np.abs(bias).max(initial=0.0))
    if not longest + largest < _MOST:
        counts.n_full += 1
        return ask()
    logits, sizes = _scored(state, np.array([guess], dtype=INDEX), own, bias)
    gamma = (state.size + 2) * _UNIT / (1.0 - (state.size + 2) * _UNIT)
    least = (state.size + 2) * _LEAST + rounding.least
    close = 1.001 * (gamma * (sizes[0] + longest + largest)) + 2.0 * least
    close += 2.02 * rounding.unit * (abs(logits[0]) + close)
    classes = survivors(state, float(logits[0] - close), rows, bias, n_threads)
    if not (classes != guess).any() and logits[0] + close < rounding.most:
        counts.n_certified += 1
        return guess, float(logits[0])
    counts.n_rescored += classes.size - 1
    logits, sizes = _scored(state, classes, own, bias)
    place = int(logits.argmax())
    off = 1.001 * gamma * sizes + least
    off += rounding.unit * (np.abs(logits) + off)
    near = logits + off >= logits[place] - off[place]
    near[place] = False
    if near.any() or not logits[place] + off[place] < rounding.most:
        counts.n_full += 1
        return ask()
    return int(classes[place]), float(logits[place])


def _scored(
    state: ParamArray, classes: IndexArray, own: AnyArray, bias: ParamArray
) -> tuple[AnyArray, AnyArray]:
    logits, sizes = np.empty(classes.size, ACCUM), np.empty(classes.size, ACCUM)
    in_double(state, classes, own, bias, logits, sizes)
    return logits, sizes

"""Compiled loops over rows of 8 bits: scores of kept rows, and a scan of all with bounds.

Sums of products of whole numbers are without rounding, whatever their order; the few operations
on top of them are in double precision. ``thinleaf.torch.heads.byte_rows`` has the inequality.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.torch.heads.kernels.kept_rows import element, kept_of

_INT32_MAX = 2147483647.0


@inlined
def _rounded(
    state: ParamArray, centre: ParamArray, norms: ParamArray, whole: AnyArray
) -> tuple[float, float, float, float]:
    """Fill in a state as whole numbers.

    Returns
    -------
    step : float
        The state is about ``step * whole``.
    base : float
        centre · state.
    length : float
        The state's norm.
    slack : float
        What a bound must allow for, beside the error of the row times ``length``.
    """
    largest, square, base = 0.0, 0.0, 0.0
    for j in range(state.size):
        value = np.float64(state[j])
        largest = max(largest, abs(value))
        square += value * value
        base += value * np.float64(centre[j])
    most = min(32767.0, np.floor(_INT32_MAX / (127.0 * state.size)))  # so that no sum overflows
    step = max(largest / most, 1e-300)
    rest = 0.0
    for j in range(state.size):
        whole[j] = np.int16(np.rint(np.float64(state[j]) / step))
    for j in range(state.size):
        left = np.float64(state[j]) - step * np.float64(whole[j])
        rest += left * left
    length = np.sqrt(square)
    slack = np.float64(norms[0]) * np.sqrt(rest) + 1e-6 * np.float64(norms[1]) * length
    return step, base, length, slack


@inlined
def _sum_of(rows: AnyArray, at: int, whole: AnyArray) -> float:
    total = np.int32(0)
    for j in range(whole.size):
        total = np.int32(total + np.int32(rows[at, j]) * np.int32(whole[j]))
    return np.float64(total)


@kernel
def score_bytes(
    state: ParamArray,
    weights: ParamArray,
    router_bias: ParamArray,
    n_paths: int,
    common: IndexArray,
    ptr: OffsetArray,
    classes: IndexArray,
    rows: AnyArray,
    scale: ParamArray,
    error: ParamArray,
    centre: ParamArray,
    norms: ParamArray,
    own: AnyArray,
    bias: ParamArray,
    kept: IndexArray,
    scores: ParamArray,
) -> int:
    """Route a state and score the classes that it keeps, the best ones by the layer's own rows.

    As :func:`kept_rows.score_kept`, but rows of 8 bits are read, and only those that may have the
    largest logit are scored again.

    Parameters
    ----------
    rows, scale, error, centre, norms : ndarray
        As of ``ByteRows``.
    own : ndarray of shape (n_classes, in_features)
        The layer's own rows.
    """
    n = kept_of(state, weights, router_bias, n_paths, common, ptr, classes, kept)
    whole = np.empty(state.size, dtype=np.int16)
    step, base, length, slack = _rounded(state, centre, norms, whole)
    least = -np.inf
    for k in range(n):
        at = kept[k]
        value = base + np.float64(scale[at]) * step * _sum_of(rows, at, whole)
        if bias.size:
            value += np.float64(bias[at])
        scores[k] = np.float32(value)
        least = max(least, value - np.float64(error[at]) * length)
    least -= 2.0 * slack + 1e-6 * abs(least)
    for k in range(n):
        at = kept[k]
        if np.float64(scores[k]) + np.float64(error[at]) * length >= least:
            total = np.float32(0.0)
            for j in range(state.size):
                total += element(own, at, j) * state[j]
            if bias.size:
                total += bias[at]
            scores[k] = total
    return n


@kernel
def round_state(
    state: ParamArray, centre: ParamArray, norms: ParamArray, whole: AnyArray
) -> tuple[float, float, float, float]:
    """Fill in a state as whole numbers; see :func:`_rounded`."""
    return _rounded(state, centre, norms, whole)


@kernel
def may_win(
    whole: AnyArray,
    step: float,
    length: float,
    least: float,
    rows: AnyArray,
    scale: ParamArray,
    error: ParamArray,
    bias: ParamArray,
    begin: int,
    end: int,
    out: IndexArray,
) -> int:
    """Fill in the classes from ``begin`` to ``end`` whose bound is not below ``least``.

    Parameters
    ----------
    whole, step, length
        As of :func:`round_state`.
    least : float
        Less what is the same for all rows: the centre's part and the slack.
    rows, scale, error : ndarray
        As of ``ByteRows``.
    bias : ndarray of shape (n_classes,) or (0,)
    begin, end : int
    out : ndarray
        Filled from its beginning; as many places as there are classes are enough.

    Returns
    -------
    n : int
        How many there are.
    """
    n = 0
    for c in range(begin, end):
        bound = np.float64(scale[c]) * step * _sum_of(rows, c, whole)
        bound += np.float64(error[c]) * length
        if bias.size:
            bound += np.float64(bias[c])
        if bound >= least:
            out[n] = c
            n += 1
    return n


@kernel
def in_double(
    state: ParamArray,
    kept: IndexArray,
    rows: AnyArray,
    bias: ParamArray,
    logits: AccumArray,
    sizes: AccumArray,
) -> None:
    """Fill in logits of some classes in double precision, and sums of the sizes of their terms."""
    for k in range(kept.size):
        at = kept[k]
        total, size = 0.0, 0.0
        for j in range(state.size):
            term = np.float64(element(rows, at, j)) * np.float64(state[j])
            total += term
            size += abs(term)
        if bias.size:
            total += np.float64(bias[at])
            size += abs(np.float64(bias[at]))
        logits[k] = total
        sizes[k] = size

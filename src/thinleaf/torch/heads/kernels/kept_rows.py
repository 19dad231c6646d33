"""Compiled loops of heads: routing, the scores of kept rows, sums over all logits.

Rows are float32, float16 (given as int16), bfloat16 (as uint16) or int8: what an element is, is
chosen by the type of the array.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import inlined, kernel
from thinleaf.kernels.softmax import exp32

_HALF_TO_SINGLE = np.float32(2.0**112)


@kernel
def log_sum_exp(scores: ParamArray, top: ParamArray) -> ParamArray:
    """Return log Σ exp of each row, whose largest score is known."""
    out = np.empty(top.size, dtype=PARAM)
    for i in range(top.size):
        row = scores[i]
        total = np.float32(0.0)
        for c in range(row.size):
            total += exp32(row[c] - top[i])
        out[i] = top[i] + np.log(total)
    return out


def element(rows: AnyArray, at: int, feature: int) -> float:
    """Return a weight as float32."""
    raise NotImplementedError  # compiled code has the overload


@overload(element, inline="always")
def _element(rows, at, feature) -> Any:
    kind = rows.dtype
    if kind == types.int16:

        def from_half(rows, at, feature):
            bits = np.int32(rows[at, feature])
            size = ((bits & np.int32(0x7FFF)) << np.int32(13)) | (bits & np.int32(-2147483648))
            return np.int32(size).view(np.float32) * _HALF_TO_SINGLE

        return from_half
    if kind == types.uint16:

        def from_bfloat(rows, at, feature):
            return np.int32(np.int32(rows[at, feature]) << np.int32(16)).view(np.float32)

        return from_bfloat

    def plain(rows, at, feature):
        return np.float32(rows[at, feature])

    return plain


@inlined
def _leaf_of(state: ParamArray, weights: ParamArray, bias: ParamArray) -> int:
    """Return the leaf of a complete tree whose routers stand in the order of a heap."""
    node = 0
    while node < bias.size:
        total = bias[node]
        for j in range(state.size):
            total += weights[node, j] * state[j]
        node = 2 * node + (2 if total > np.float32(0.0) else 1)
    return node - bias.size


@kernel
def leaves_of(states: ParamArray, weights: ParamArray, bias: ParamArray) -> IndexArray:
    """Return the leaf of each state."""
    out = np.empty(len(states), dtype=INDEX)
    for i in range(len(states)):
        out[i] = _leaf_of(states[i], weights, bias)
    return out


@inlined
def _other_leaf(state: ParamArray, weights: ParamArray, bias: ParamArray) -> int:
    """Return the leaf that the state reaches if the least sure router of its path errs."""
    node, turned, least, right = 0, 0, np.float32(np.inf), False
    while node < bias.size:
        total = bias[node]
        for j in range(state.size):
            total += weights[node, j] * state[j]
        goes = total > np.float32(0.0)
        if abs(total) < least:
            least = abs(total)
            turned, right = node, goes
        node = 2 * node + (2 if goes else 1)
    node = 2 * turned + (1 if right else 2)
    while node < bias.size:
        total = bias[node]
        for j in range(state.size):
            total += weights[node, j] * state[j]
        node = 2 * node + (2 if total > np.float32(0.0) else 1)
    return node - bias.size


@kernel
def other_leaves_of(states: ParamArray, weights: ParamArray, bias: ParamArray) -> IndexArray:
    """Return the leaf of each state on its second path; there is a router or more."""
    out = np.empty(len(states), dtype=INDEX)
    for i in range(len(states)):
        out[i] = _other_leaf(states[i], weights, bias)
    return out


@inlined
def _logit(rows: AnyArray, scale: ParamArray, bias: ParamArray, at: int, state: ParamArray) -> Any:
    total = np.float32(0.0)
    for j in range(state.size):
        total += element(rows, at, j) * state[j]
    if scale.size:
        total *= scale[at]
    if bias.size:
        total += bias[at]
    return total


@kernel
def fill_logits(
    states: ParamArray,
    leaf: IndexArray,
    common: IndexArray,
    ptr: OffsetArray,
    classes: IndexArray,
    rows: AnyArray,
    scale: ParamArray,
    bias: ParamArray,
    clear: bool,
    out: ParamArray,
) -> None:
    """Fill rows of all classes: logits of those that the leaf of each state keeps, -inf elsewhere.

    Parameters
    ----------
    states : ndarray of shape (n, in_features)
    leaf : ndarray of shape (n,)
    common, ptr, classes : ndarray
        As of ``LeafSets``.
    rows : ndarray of shape (n_classes, in_features)
    scale, bias : ndarray of shape (n_classes,) or (0,)
    clear : bool
        Begin with -inf and the common classes; otherwise add the leaf's own to what there is.
    out : ndarray of shape (n, n_classes)
    """
    for i in range(len(states)):
        state, target = states[i], out[i]
        if clear:
            for c in range(target.size):
                target[c] = np.float32(-np.inf)
            for k in range(common.size):
                at = common[k]
                target[at] = _logit(rows, scale, bias, at, state)
        for k in range(ptr[leaf[i]], ptr[leaf[i] + 1]):
            at = classes[k]
            target[at] = _logit(rows, scale, bias, at, state)


@kernel
def fill_kept(
    states: ParamArray,
    out_ptr: OffsetArray,
    kept: IndexArray,
    rows: AnyArray,
    scale: ParamArray,
    bias: ParamArray,
    out: ParamArray,
) -> None:
    """Fill in the logits of the classes ``kept[out_ptr[i]:out_ptr[i + 1]]`` of each state."""
    for i in range(len(states)):
        state = states[i]
        for k in range(out_ptr[i], out_ptr[i + 1]):
            out[k] = _logit(rows, scale, bias, kept[k], state)


@kernel
def best_kept(
    states: ParamArray,
    leaf: IndexArray,
    common: IndexArray,
    ptr: OffsetArray,
    classes: IndexArray,
    rows: AnyArray,
    scale: ParamArray,
    bias: ParamArray,
    best: IndexArray,
    top: ParamArray,
) -> None:
    """Fill in the class of the largest kept logit of each state, and that logit.

    ``top`` is -inf at first, or what was found on another path.
    """
    for i in range(len(states)):
        state = states[i]
        value = top[i]
        for k in range(common.size):
            at = common[k]
            found = _logit(rows, scale, bias, at, state)
            if found > value or (found == value and at < best[i]):
                value = found
                best[i] = at
        for k in range(ptr[leaf[i]], ptr[leaf[i] + 1]):
            at = classes[k]
            found = _logit(rows, scale, bias, at, state)
            if found > value or (found == value and at < best[i]):
                value = found
                best[i] = at
        top[i] = value


@kernel
def survivors_of(
    state: ParamArray,
    norms: ParamArray,
    steps: IndexArray,
    rows: AnyArray,
    numbers: ParamArray,
    bias: ParamArray,
    least: float,
    out: IndexArray,
) -> tuple[int, int]:
    """Fill in the classes whose bound is not below ``least`` (``exact.Bounds``).

    Parameters
    ----------
    state : ndarray of shape (in_features,)
        Turned.
    norms : ndarray of shape (3, 2)
        Of what was read of it after each step, and of the rest.
    steps, rows, numbers, bias : ndarray
    least : float
    out : ndarray of shape (n_classes,)

    Returns
    -------
    n : int
        How many there are.
    n_read : int
        Weights that were looked at.
    """
    n, n_read = 0, 0
    for c in range(len(rows)):
        offset = bias[c] if bias.size else np.float32(0.0)
        total = np.float32(0.0)
        begin = 0
        lives = True
        for step in range(3):
            end = steps[step]
            part = np.float32(0.0)
            for j in range(begin, end):
                part += np.float32(rows[c, j]) * state[j]
            total += numbers[c, 3 * step] * part
            n_read += end - begin
            begin = end
            bound = total + numbers[c, 3 * step + 1] * norms[step, 0]
            bound += numbers[c, 3 * step + 2] * norms[step, 1] + offset
            if bound < least:
                lives = False
                break
        if lives:
            out[n] = c
            n += 1
    return n, n_read

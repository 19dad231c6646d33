"""Compiled loops of heads: routing, the scores of kept rows, sums over all logits.

Rows are float32, float16 (given as int16) or bfloat16 (as uint16): what an element is, is chosen by
the type of the array. Those of 8 bits are in ``byte_rows.py``.
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
def kept_of(
    state: ParamArray,
    weights: ParamArray,
    router_bias: ParamArray,
    n_paths: int,
    common: IndexArray,
    ptr: OffsetArray,
    classes: IndexArray,
    kept: IndexArray,
) -> int:
    """Fill in the classes that a state keeps, and return their number; some may be there twice."""
    n = 0
    for k in range(common.size):
        kept[n] = common[k]
        n += 1
    leaf = _leaf_of(state, weights, router_bias)
    for path in range(n_paths):
        if path == 1:
            leaf = _other_leaf(state, weights, router_bias)
        for k in range(ptr[leaf], ptr[leaf + 1]):
            kept[n] = classes[k]
            n += 1
    return n


@kernel
def score_kept(
    state: ParamArray,
    weights: ParamArray,
    router_bias: ParamArray,
    n_paths: int,
    common: IndexArray,
    ptr: OffsetArray,
    classes: IndexArray,
    rows: AnyArray,
    bias: ParamArray,
    kept: IndexArray,
    scores: ParamArray,
) -> int:
    """Route a state and score the classes that it keeps.

    Parameters
    ----------
    state : ndarray of shape (in_features,)
    weights, router_bias : ndarray
        As of ``Routers``.
    n_paths : {1, 2}
    common, ptr, classes : ndarray
        As of ``LeafSets``.
    rows : ndarray of shape (n_classes, in_features)
    bias : ndarray of shape (n_classes,) or (0,)
    kept, scores : ndarray
        Filled with classes and their logits; they must be large enough.

    Returns
    -------
    n : int
        How many there are.
    """
    n = kept_of(state, weights, router_bias, n_paths, common, ptr, classes, kept)
    for k in range(n):
        at = kept[k]
        total = np.float32(0.0)
        for j in range(state.size):
            total += element(rows, at, j) * state[j]
        if bias.size:
            total += bias[at]
        scores[k] = total
    return n


@kernel
def scatter(kept: IndexArray, scores: ParamArray, out: ParamArray) -> None:
    """Fill a row of all classes: scores where there are some, -inf elsewhere."""
    for c in range(out.size):
        out[c] = np.float32(-np.inf)
    for k in range(kept.size):
        out[kept[k]] = scores[k]


@kernel
def best_of(kept: IndexArray, scores: ParamArray) -> int:
    """Return the class of the largest score, the lowest one of several."""
    best, value = kept[0], scores[0]
    for k in range(1, kept.size):
        if scores[k] > value or (scores[k] == value and kept[k] < best):
            best, value = kept[k], scores[k]
    return int(best)

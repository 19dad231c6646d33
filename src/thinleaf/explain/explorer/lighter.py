"""Models that are lighter than those they stand for, so that a page can hold them.

A weight matters by what it moves: its size times how much its feature varies. Those that matter
least are left out, and the others are rounded: in leaves to int8, in routers to float16. The tree
stays as it is. How often such a model says the same, rows tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import Rows, n_rows_of
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.narrow import is_narrow, widened
from thinleaf.model.packing import PackedTree
from thinleaf.model.quantization import class_of_weights, quantize, without_zeros

Model = TypeVar("Model", bound=FrozenTree)

_ROUTER_SHARE = 2.5
"""A router decides for all that is below: so many times the share of leaves stays."""

_N_LOOKED_AT = 1_000_000
"""Weights among which the threshold is found."""


def lighter(model: Model, spread: AnyArray, share: float) -> Model:
    """Return a model with those weights that matter most, rounded.

    Parameters
    ----------
    model : FrozenTree
    spread : ndarray of shape (n_features,)
        How much features vary.
    share : float
        Of the weights of leaves that are to stay; of those of routers, more do.
    """
    packed = model.packed
    if is_narrow(packed):
        packed = widened(packed)
    spread = spread.astype(PARAM)
    packed = _fewer_in_leaves(packed, spread, share)
    packed = _fewer_in_routers(packed, spread, min(1.0, _ROUTER_SHARE * share))
    packed = quantize(packed, "int8") if packed.weights == "float32" else without_zeros(packed)
    return model.replaced(packed=packed)


def _fewer_in_leaves(packed: PackedTree, spread: AnyArray, share: float) -> PackedTree:
    if share >= 1.0:
        return packed
    entries = np.abs(packed.entry).astype(PARAM)
    entries *= np.repeat(spread[packed.feat_idx], np.diff(packed.row_ptr))
    blocks = np.abs(packed.block).astype(PARAM) * _spread_of_blocks(packed, spread)
    if packed.weights == "int8":
        at_block, at_entry = class_of_weights(packed)
        entries *= packed.scale[at_entry]
        blocks *= packed.scale[at_block]
    least = _threshold([entries, blocks[blocks > 0.0]], share)
    zero = packed.entry.dtype.type(0)
    return replace(
        packed,
        entry=np.where(entries >= least, packed.entry, zero),
        block=np.where(blocks >= least, packed.block, zero),
    )


def _spread_of_blocks(packed: PackedTree, spread: AnyArray) -> AnyArray:
    """Return how much the feature of each weight of a block varies."""
    parts = [np.empty(0, PARAM)]
    for i in np.flatnonzero(np.diff(packed.block_ptr)).tolist():
        own = packed.feat_idx[slice(*packed.feat_ptr[i : i + 2])]
        n_classes = int(packed.class_ptr[i + 1] - packed.class_ptr[i])
        parts.append(np.repeat(spread[own] if own.size else spread, n_classes))
    return np.concatenate(parts)


def _fewer_in_routers(packed: PackedTree, spread: AnyArray, share: float) -> PackedTree:
    n_lists = packed.router_ptr.size - 1
    own = np.repeat(np.arange(n_lists), np.diff(packed.router_ptr))
    lists = np.abs(packed.router_val).astype(PARAM)
    lists *= spread[own if packed.sparse else packed.router_idx]
    dense = np.abs(packed.dense_val).reshape(-1, max(packed.n_features, 1)) * spread
    least = _threshold([lists, dense[dense > 0.0]], share)
    kept = lists >= least
    return replace(
        packed,
        dense_val=_halved(np.where(dense >= least, packed.dense_val.reshape(dense.shape), 0.0)),
        router_ptr=offsets(np.bincount(own[kept], minlength=n_lists)),
        router_idx=packed.router_idx[kept],
        router_val=_halved(packed.router_val[kept]),
    )


def _threshold(effects: list[AnyArray], share: float) -> float:
    """Return how much a weight matters that stays, if so large a share does."""
    every = np.concatenate(effects)
    if share >= 1.0 or every.size == 0:
        return 0.0
    if share <= 0.0:
        return np.inf
    step = max(every.size // _N_LOOKED_AT, 1)
    return float(np.quantile(every[::step], 1.0 - share))


def _halved(weights: AnyArray) -> AnyArray:
    limit = np.finfo(np.float16).max
    halves: AnyArray = np.clip(weights, -limit, limit).astype(np.float16).astype(PARAM)
    return halves.ravel()


@dataclass(frozen=True)
class Agreement:
    """How often two models say the same.

    Attributes
    ----------
    n_rows : int
    same : float
        Share of the rows that get the same label from both.
    difference : float
        Between the probabilities that they give to the label of the first, on average.
    """

    n_rows: int
    same: float
    difference: float


def agreement(model: FrozenTree, other: FrozenTree, rows: Rows) -> Agreement:
    """Compare two models of the same classes on rows."""
    classes, p = model.predictor.top_k(rows, 1)
    p_other = other.predictor.probability_of(rows, classes[:, 0])
    same = float(np.mean(other.predictor.top_class(rows) == classes[:, 0]))
    return Agreement(n_rows_of(rows), same, float(np.mean(np.abs(p_other - p[:, 0]))))

"""Packed trees with leaf weights of fewer bytes, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import PARAM, AnyArray
from thinleaf.arrays.ragged import offsets
from thinleaf.model.narrow import is_narrow, narrowed, widened, with_half_routers
from thinleaf.model.packing import WEIGHT_CODES, PackedTree, WeightType

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree


def quantize(packed: PackedTree, weights: WeightType) -> PackedTree:
    """Return the tree with leaf weights of a smaller type.

    ``"int8"`` has a scale for each class of each leaf: its largest weight is 127. In a
    narrow tree, weights of routers become float16.
    """
    if packed.weights != "float32":
        raise ValueError(f"the weights are {packed.weights} already: start from float32 ones")
    if weights not in WEIGHT_CODES:
        raise ValueError(f"weights must be one of {', '.join(WEIGHT_CODES)}, got {weights!r}")
    if weights == "float32":
        return packed
    if is_narrow(packed):
        return with_half_routers(narrowed(_quantized(widened(packed), weights)))
    return _quantized(packed, weights)


def _quantized(packed: PackedTree, weights: WeightType) -> PackedTree:
    limit = np.finfo(np.float16).max
    if weights == "float16":
        halved = replace(
            packed,
            weights=weights,
            block=np.clip(packed.block, -limit, limit).astype(np.float16),
            entry=np.clip(packed.entry, -limit, limit).astype(np.float16),
        )
        return without_zeros(halved)
    at_block, at_entry = class_of_weights(packed)
    top = np.zeros(packed.class_ids.size, dtype=PARAM)
    np.maximum.at(top, at_block, np.abs(packed.block))
    np.maximum.at(top, at_entry, np.abs(packed.entry))
    # weights too small for a scale that is a normal number become zero
    scale = np.where(top > 127.0 * np.finfo(PARAM).tiny, top / 127.0, 1.0).astype(PARAM)
    quantized = replace(
        packed,
        weights=weights,
        block=np.rint(packed.block / scale[at_block]).astype(np.int8),
        entry=np.rint(packed.entry / scale[at_entry]).astype(np.int8),
        scale=scale,
    )
    return without_zeros(quantized)


def report(model: FrozenTree, X: Any, y: npt.ArrayLike) -> list[dict[str, Any]]:
    """Return error and size of a model with each type of leaf weights.

    See :meth:`thinleaf.FrozenTree.quantization_report`.
    """
    models = [model.quantized(weights) for weights in WEIGHT_CODES]
    return [
        {
            "weights": other.packed.weights,
            "error": float(np.mean(other.predict(X) != np.asarray(y))),
            "nbytes": other.nbytes,
        }
        for other in models
    ]


def class_of_weights(packed: PackedTree) -> tuple[AnyArray, AnyArray]:
    """Return the position in ``class_ids`` that each weight of blocks and of rows belongs to."""
    k = np.diff(packed.class_ptr)
    sizes = np.diff(packed.block_ptr)
    first = np.repeat(packed.class_ptr[:-1], sizes)
    within = np.arange(packed.block.size) - np.repeat(packed.block_ptr[:-1], sizes)
    at_block = first + within % np.repeat(k, sizes)
    leaf_of_row = np.repeat(np.arange(packed.n_leaves), np.diff(packed.feat_ptr))
    leaf_of_entry = np.repeat(leaf_of_row, np.diff(packed.row_ptr))
    return at_block, packed.class_ptr[leaf_of_entry] + packed.slot


def without_zeros(packed: PackedTree) -> PackedTree:
    """Drop entries of sparse rows that have become zero, and rows that have become empty."""
    kept = packed.entry != 0
    row_of_entry = np.repeat(np.arange(packed.feat_idx.size), np.diff(packed.row_ptr))[kept]
    row_sizes = np.bincount(row_of_entry, minlength=packed.feat_idx.size)
    leaf_of_row = np.repeat(np.arange(packed.n_leaves), np.diff(packed.feat_ptr))
    is_block = (np.diff(packed.block_ptr) > 0)[leaf_of_row]
    kept_rows = is_block | (row_sizes > 0)
    return replace(
        packed,
        feat_ptr=offsets(np.bincount(leaf_of_row[kept_rows], minlength=packed.n_leaves)),
        feat_idx=packed.feat_idx[kept_rows],
        row_ptr=offsets(row_sizes[kept_rows]),
        slot=packed.slot[kept],
        entry=packed.entry[kept],
    )

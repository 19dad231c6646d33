"""Packed trees without small weights of leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thinleaf._dtypes import PARAM
from thinleaf.model.narrow import is_narrow, narrowed, widened, with_half_routers
from thinleaf.model.packing import PackedTree
from thinleaf.model.quantization import class_of_weights, without_zeros


def thinned(packed: PackedTree, share: float) -> PackedTree:
    """Return the tree without weights that are small beside the largest of their class and leaf.

    See :meth:`thinleaf.FrozenTree.thinned`.
    """
    if not 0.0 <= share < 1.0:
        raise ValueError(f"share must be in [0, 1), got {share!r}")
    if packed.weights != "float32":
        raise ValueError(f"the weights are {packed.weights} already: start from float32 ones")
    if share == 0.0 or packed.entry.size == 0:
        return packed
    if is_narrow(packed):
        out = narrowed(_thinned(widened(packed), share))
        return with_half_routers(out) if packed.router_val.dtype == np.float16 else out
    return _thinned(packed, share)


def _thinned(packed: PackedTree, share: float) -> PackedTree:
    at_entry = class_of_weights(packed)[1]
    size = np.abs(packed.entry)
    top = np.zeros(packed.class_ids.size, dtype=PARAM)
    np.maximum.at(top, at_entry, size)
    kept = np.where(size < share * top[at_entry], PARAM(0), packed.entry)
    return without_zeros(replace(packed, entry=kept))

"""Rows of the output layer as kernels read them: the layer's own, or narrower ones.

``"float32"``, ``"float16"`` and ``"bfloat16"`` are the layer's numbers, rounded once if they are
wider. ``"int8"`` is in ``byte_rows.py``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from thinleaf._dtypes import AnyArray

RowKind: TypeAlias = Literal["float32", "float16", "bfloat16", "int8"]

_TORCH = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int8": torch.int8,
}


def kind_of(rows: Tensor) -> RowKind:
    """Return the name of the type of some rows."""
    for name in get_args(RowKind):
        if rows.dtype == _TORCH[name]:
            kind: RowKind = name
            return kind
    raise ValueError(f"the layer must be of float32, float16 or bfloat16, is of {rows.dtype}")


def narrowed(weight: Tensor, kind: RowKind) -> Tensor:
    """Return rows of a floating-point type.

    Parameters
    ----------
    weight : Tensor of shape (n_classes, in_features)
    kind : {"float32", "float16", "bfloat16"}
    """
    if kind not in get_args(RowKind):
        raise ValueError(f"rows must be one of {get_args(RowKind)}, got {kind!r}")
    return weight.to(_TORCH[kind])


def as_array(rows: Tensor) -> AnyArray:
    """Return rows on a CPU as the array that kernels take, without a copy."""
    rows = rows.detach().contiguous()
    if rows.dtype == torch.bfloat16:
        return rows.view(torch.int16).numpy().view(np.uint16)
    if rows.dtype == torch.float16:
        return rows.view(torch.int16).numpy()
    return rows.numpy()

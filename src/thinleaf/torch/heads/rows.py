"""Rows of the output layer as kernels read them: the layer's own, or narrower ones.

``"float32"``, ``"float16"`` and ``"bfloat16"`` are the layer's numbers, rounded once if they are
wider. ``"int8"`` has one scale a row, so that its largest weight is ±127.
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
    raise ValueError(f"rows must be one of {get_args(RowKind)}, got {rows.dtype}")


def packed(weight: Tensor, kind: RowKind) -> tuple[Tensor, Tensor]:
    """Return rows of a type, and their scales; none, but for int8.

    Parameters
    ----------
    weight : Tensor of shape (n_classes, in_features)
    kind : {"float32", "float16", "bfloat16", "int8"}
    """
    if kind not in get_args(RowKind):
        raise ValueError(f"rows must be one of {get_args(RowKind)}, got {kind!r}")
    if kind != "int8":
        return weight.to(_TORCH[kind]), torch.empty(0, device=weight.device)
    scale = weight.abs().amax(dim=1).float().clamp(min=1e-30) / 127.0
    rows = torch.empty(weight.shape, dtype=torch.int8, device=weight.device)
    for part, target, by in zip(
        *(torch.split(tensor, 4096) for tensor in (weight, rows, scale)), strict=True
    ):
        target.copy_((part.float() / by[:, None]).round_())
    return rows, scale


def unpacked(rows: Tensor, scale: Tensor, classes: Tensor | slice) -> Tensor:
    """Return some rows as numbers that can be multiplied with states."""
    chosen = rows[classes]
    return chosen.float() * scale[classes][:, None] if scale.numel() else chosen


def as_array(rows: Tensor) -> AnyArray:
    """Return rows on a CPU as the array that kernels take, without a copy."""
    rows = rows.detach().contiguous()
    if rows.dtype == torch.bfloat16:
        return rows.view(torch.int16).numpy().view(np.uint16)
    if rows.dtype == torch.float16:
        return rows.view(torch.int16).numpy()
    return rows.numpy()

"""Slots of a layer's parameters: how many there are, and whether those of a state make a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.arrays.checks import is_whole
from thinleaf.labeltree.fixed_trees import n_fillers
from thinleaf.labeltree.label_tree import LabelTree


def most_slots(n_classes: int, arity: int, max_depth: int | None, n_fixed: int) -> int:
    """Return the most nodes that the tree may ever have."""
    if n_fixed:
        return n_fixed
    if arity >= n_classes:
        return 1
    if max_depth is None:
        return (n_classes + n_fillers(n_classes, arity) - 1) // (arity - 1)
    full: int = sum(arity**depth for depth in range(max_depth))
    return min(n_classes - 1, full)


def check_integer(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Raise unless a parameter is an integer of at least ``least``, or None if it may be."""
    if optional and value is None:
        return
    if not is_whole(value) or int(value) < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")


def array(values: Tensor) -> AnyArray:
    """Return values as an array of single or double precision."""
    values = values.detach().cpu()
    return (values if values.dtype == torch.float64 else values.float()).numpy()


def checked(children: Tensor, slots: Tensor, n_classes: int) -> tuple[LabelTree, IndexArray]:
    """Return the tree of a state and the slot of each of its nodes."""
    every = slots.cpu().numpy().astype(np.int64)
    n_nodes = int(np.count_nonzero(every >= 0))
    used = every[:n_nodes]
    tree = LabelTree.build(children[:n_nodes].cpu().numpy(), n_classes)
    in_range = used.min() == used[0] == 0 and used.max() < children.shape[0]
    if not in_range or np.unique(used).size != n_nodes:
        raise ValueError("slots of a state must be distinct and in range, and the first one 0")
    return tree, used.astype(INDEX)

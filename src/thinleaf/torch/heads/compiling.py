"""What heads compile, for ``thinleaf warmup --heads``: a tree of two leaves, in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from thinleaf._dtypes import INDEX, PARAM
from thinleaf.torch.heads.leaf_sets import LeafSets
from thinleaf.torch.heads.routers import Routers
from thinleaf.torch.heads.rows import RowKind
from thinleaf.torch.heads.targets import full_answers
from thinleaf.torch.heads.tree_head import TreeHead


def head_steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what compiles the kernels of heads, by name: layers and rows of each type."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        yield f"heads: layers of {name}", partial(_answer, dtype)
    yield "heads: asking the full layer", _ask


@torch.no_grad()
def _answer(dtype: torch.dtype) -> None:
    layer, states = nn.Linear(4, 6, dtype=dtype), torch.eye(3, 4)
    routers = Routers(np.ones((1, 4), PARAM), np.zeros(1, PARAM))
    lists = [np.array([2], INDEX), np.array([3, 4], INDEX)]
    sets = LeafSets.of_lists(np.arange(2, dtype=INDEX), lists, np.arange(3, dtype=INDEX))
    kinds: tuple[RowKind | None, ...] = (None, "int8")
    for rows in kinds:
        head = TreeHead(layer.weight, layer.bias, routers, sets, rows=rows, n_paths=2)
        head.leaves_of(states)
        for exact in (False, True):
            head.exact = exact
            head(states)
            head.predict(states)


def _ask() -> None:
    full_answers(np.eye(3, 4, dtype=PARAM), torch.ones(6, 4), None, 2)

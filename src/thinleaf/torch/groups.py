"""Scores of the nodes that rows visit: one matrix product for each node, and its gradient.

The gradient with respect to the parameters is zero but for the slots that a batch visits. It is
dense, in memory that is only touched there, or sparse: a row for each of these slots.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor


def grouped_scores(
    rows: Tensor, weight: Tensor, bias: Tensor, slot: Tensor, *, sparse: bool = False
) -> Tensor:
    """Return weight[slot] · row + bias[slot] of each row.

    Parameters
    ----------
    rows : Tensor of shape (n, in_features)
    weight : Tensor of shape (n_slots, arity, in_features)
    bias : Tensor of shape (n_slots, arity)
    slot : Tensor of shape (n,)
        Ascending, so that rows of a node are together.
    sparse : bool
        Whether the gradients of weight and bias are sparse tensors, over slots.

    Returns
    -------
    scores : Tensor of shape (n, arity)
    """
    return cast(Tensor, _GroupedScores.apply(rows, weight, bias, slot, sparse))


class _GroupedScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias, slot, sparse):
        used, sizes = torch.unique_consecutive(slot, return_counts=True)
        ctx.groups = list(zip(used.tolist(), sizes.tolist(), strict=True))
        ctx.sparse = sparse
        ctx.save_for_backward(rows, weight, slot, used, sizes)
        scores = bias[slot]
        begin = 0
        for n, size in ctx.groups:
            part = slice(begin, begin + size)
            scores[part].addmm_(rows[part], weight[n].T)
            begin += size
        return scores

    @staticmethod
    def backward(ctx, grad):
        rows, weight, slot, used, sizes = ctx.saved_tensors
        grad = grad.contiguous()
        to_rows = torch.empty_like(rows)
        n_slots, arity, dim = weight.shape
        n_kept = len(ctx.groups) if ctx.sparse else n_slots
        to_weight = untouched((n_kept, arity, dim), weight, zero=not ctx.sparse)
        begin = 0
        for place, (n, size) in enumerate(ctx.groups):
            part = slice(begin, begin + size)
            torch.mm(grad[part], weight[n], out=to_rows[part])
            torch.mm(grad[part].T, rows[part], out=to_weight[place if ctx.sparse else n])
            begin += size
        at = slot
        if ctx.sparse:
            at = torch.repeat_interleave(torch.arange(n_kept, device=slot.device), sizes)
        to_bias = weight.new_zeros(n_kept, arity).index_add_(0, at, grad)
        if ctx.sparse:
            to_weight = _over_slots(used, to_weight, weight.shape)
            to_bias = _over_slots(used, to_bias, weight.shape[:2])
        return to_rows, to_weight, to_bias, None, None


def untouched(shape: Sequence[int], like: Tensor, *, zero: bool) -> Tensor:
    """Return a tensor of zeros, or of anything, that costs nothing until it is used.

    On a CPU the memory is NumPy's, which asks for large pages and has zeros from the system: at
    half a million classes, to fill them takes longer than all else in a step.
    """
    if like.device.type != "cpu" or 0 in shape:
        make: Any = torch.zeros if zero else torch.empty
        return cast(Tensor, make(tuple(shape), dtype=like.dtype, device=like.device))
    n_bytes = math.prod(shape) * like.element_size()
    memory = np.zeros(n_bytes, dtype=np.uint8) if zero else np.empty(n_bytes, dtype=np.uint8)
    return torch.from_numpy(memory).view(like.dtype).reshape(tuple(shape))


def _over_slots(used: Tensor, values: Tensor, shape: torch.Size) -> Tensor:
    return torch.sparse_coo_tensor(
        used[None], values, shape, is_coalesced=True, check_invariants=False
    )

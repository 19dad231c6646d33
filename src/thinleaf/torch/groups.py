"""Scores of the nodes that rows visit: one matrix product for each node, and its gradient."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor


def grouped_scores(rows: Tensor, weight: Tensor, bias: Tensor, slot: Tensor) -> Tensor:
    """Return weight[slot] · row + bias[slot] of each row.

    Parameters
    ----------
    rows : Tensor of shape (n, in_features)
    weight : Tensor of shape (n_slots, arity, in_features)
    bias : Tensor of shape (n_slots, arity)
    slot : Tensor of shape (n,)
        Ascending, so that rows of a node are together.

    Returns
    -------
    scores : Tensor of shape (n, arity)
    """
    return cast(Tensor, _GroupedScores.apply(rows, weight, bias, slot))


class _GroupedScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias, slot):
        used, sizes = torch.unique_consecutive(slot, return_counts=True)
        ctx.groups = list(zip(used.tolist(), sizes.tolist(), strict=True))
        ctx.save_for_backward(rows, weight, slot)
        scores = bias[slot]
        begin = 0
        for n, size in ctx.groups:
            part = slice(begin, begin + size)
            scores[part].addmm_(rows[part], weight[n].T)
            begin += size
        return scores

    @staticmethod
    def backward(ctx, grad):
        rows, weight, slot = ctx.saved_tensors
        grad = grad.contiguous()
        to_rows, to_weight = torch.empty_like(rows), torch.zeros_like(weight)
        begin = 0
        for n, size in ctx.groups:
            part = slice(begin, begin + size)
            torch.mm(grad[part], weight[n], out=to_rows[part])
            torch.mm(grad[part].T, rows[part], out=to_weight[n])
            begin += size
        to_bias = torch.zeros_like(weight[:, :, 0]).index_add_(0, slot, grad)
        return to_rows, to_weight, to_bias, None

"""Leaves of states on the device where they are: all routers at once, then down the tree.

A GPU scores some hundred routers as quickly as one, and nothing has to leave it. On a CPU, compiled
loops (``kernels/kept_rows.py``) score those of a path alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


@torch.no_grad()
def leaves_on_device(states: Tensor, weight: Tensor, bias: Tensor, n_paths: int) -> Tensor:
    """Return the leaf of each state; with two paths, also the one if the least sure router errs.

    Parameters
    ----------
    states : Tensor of shape (n, in_features)
    weight : Tensor of shape (n_routers, in_features)
        Of a complete tree, in the order of a heap.
    bias : Tensor of shape (n_routers,)
    n_paths : {1, 2}

    Returns
    -------
    leaves : Tensor of shape (n, n_paths)
    """
    with torch.autocast(states.device.type, enabled=False):
        scores = nn.functional.linear(states.float(), weight, bias)
    n_leaves = scores.shape[1] + 1
    root = torch.zeros(len(states), dtype=torch.long, device=states.device)
    first = _leaves_below(scores, root)
    if n_paths == 1:
        return first[:, None]
    levels = torch.arange(n_leaves.bit_length() - 1, 0, -1, device=states.device)
    path = ((first + n_leaves)[:, None] >> levels) - 1
    of_path = scores.gather(1, path)
    least = of_path.abs().argmin(dim=1, keepdim=True)
    turned = 2 * path.gather(1, least) + 2 - (of_path.gather(1, least) > 0).long()
    return torch.stack([first, _leaves_below(scores, turned[:, 0])], dim=1)


def _leaves_below(scores: Tensor, node: Tensor) -> Tensor:
    """Return the leaf that each state reaches from a node."""
    n_routers = scores.shape[1]
    for _ in range(n_routers.bit_length()):
        at = node.clamp(max=n_routers - 1)[:, None]
        below = 2 * node + 1 + (scores.gather(1, at)[:, 0] > 0).long()
        node = torch.where(node < n_routers, below, node)
    return node - n_routers

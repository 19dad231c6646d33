"""The k most probable labels of a tree, found on the device where the parameters are.

Exact, as the compiled search: a first pass follows the best nodes of each level and finds k labels;
a second one visits every node whose probability is not below that of the worst of them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from thinleaf.torch.groups import grouped_scores

_WIDTH = 4
"""How many nodes of a level the first pass follows, or k if that is more."""


class SlotTree(NamedTuple):
    """A tree by slots, with its parameters."""

    weight: Tensor
    """Of shape (n_slots, arity, dim)."""
    bias: Tensor
    """Of shape (n_slots, arity); minus infinity where a branch leads nowhere."""
    children: Tensor
    """Of shape (n_slots, arity): slots, ``n_slots`` + label for leaves, -1 for nothing."""
    n_labels: int


class _Best(NamedTuple):
    """The best labels of each row so far, of shape (n, k)."""

    labels: Tensor
    scores: Tensor

    def with_more(self, row: Tensor, labels: Tensor, scores: Tensor) -> _Best:
        """Return the best of these and of others: (n_visits, m) of them, rows ascending."""
        n, k = self.labels.shape
        if row.numel() == 0:
            return self
        width = min(k, scores.shape[1])
        scores, at = scores.topk(width, dim=1)
        labels = labels.gather(1, at)
        n_visits = torch.bincount(row, minlength=n)
        nth = torch.arange(row.numel(), device=row.device) - (n_visits.cumsum(0) - n_visits)[row]
        shape = (n, int(n_visits.max()), width)
        every_score = scores.new_full(shape, -torch.inf)
        every_label = labels.new_zeros(shape)
        every_score[row, nth], every_label[row, nth] = scores, labels
        both = torch.cat([self.scores, every_score.reshape(n, -1)], dim=1)
        best, at = both.topk(k, dim=1)
        every = torch.cat([self.labels, every_label.reshape(n, -1)], dim=1)
        return _Best(every.gather(1, at), best)


@torch.no_grad()
def topk_on_device(rows: Tensor, tree: SlotTree, k: int) -> tuple[Tensor, Tensor]:
    """Return labels and log-probabilities, best first, both of shape (n, k).

    Parameters
    ----------
    rows : Tensor of shape (n, dim)
    tree : SlotTree
        Slot 0 is the root's.
    k : int
        No more than there are labels.
    """
    n = rows.shape[0]
    none = _Best(
        torch.zeros((n, k), dtype=torch.long, device=rows.device),
        rows.new_full((n, k), -torch.inf),
    )
    if n == 0:
        return none
    least = rows.new_full((n,), -torch.inf)
    found = _descend(rows, tree, none, least, max(k, _WIDTH))
    # what was found is found again, so the bound alone goes on
    return _descend(rows, tree, none, found.scores[:, -1], None)


def _descend(rows: Tensor, tree: SlotTree, best: _Best, least: Tensor, width: int | None) -> _Best:
    """Go down level by level, to nodes of at least a log-probability, the best of each row."""
    n_slots = tree.weight.shape[0]
    row = torch.arange(rows.shape[0], device=rows.device)
    slot, above = torch.zeros_like(row), rows.new_zeros(rows.shape[0])
    while row.numel():
        order = torch.argsort(slot, stable=True)
        visited = slot[order]
        scores = torch.empty((row.numel(), tree.bias.shape[1]), device=rows.device)
        scores[order] = grouped_scores(rows[row[order]], tree.weight, tree.bias, visited)
        logp = torch.log_softmax(scores, dim=1) + above[:, None]
        below = tree.children[slot].long()
        leaf = below >= n_slots
        best = best.with_more(
            row, (below - n_slots).clamp(min=0), logp.masked_fill(~leaf, -torch.inf)
        )
        go_on = (below >= 0) & ~leaf & (logp >= least[row, None])
        at, branch = torch.nonzero(go_on, as_tuple=True)
        row, slot, above = row[at], below[at, branch], logp[at, branch]
        if width is not None and row.numel():
            kept = _first_of_rows(row, above, width)
            row, slot, above = row[kept], slot[kept], above[kept]
    return best


def _first_of_rows(row: Tensor, scores: Tensor, width: int) -> Tensor:
    """Return the places of the best scores of each row, rows ascending."""
    by_score = torch.argsort(scores, descending=True, stable=True)
    order = by_score[torch.argsort(row[by_score], stable=True)]
    n_each = torch.bincount(row)
    first = (n_each.cumsum(0) - n_each)[row[order]]
    nth = torch.arange(order.numel(), device=row.device) - first
    return order[nth < width]

"""A head's classes as the short list of a drafter in speculative decoding.

What a drafter proposes is checked by the full network, so nothing is lost but proposals: a class
that is not on the list is never proposed. So what counts is how many proposals in a row are
accepted, beside a fixed list of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from thinleaf._dtypes import AccumArray, AnyArray
from thinleaf.arrays.checks import is_whole
from thinleaf.torch.heads.collect import as_states
from thinleaf.torch.heads.targets import full_answers
from thinleaf.torch.heads.tree_head import TreeHead

_BLOCK = 512


class DraftMapping(NamedTuple):
    """Ids of a drafter's classes and of the network's, as EAGLE-3 drafters take them.

    ``d2t[i]`` is what is added to the drafter's id i for the network's id; ``t2d[v]`` is whether
    the network's class v is on the list.
    """

    d2t: Tensor
    t2d: Tensor


def draft_mapping(head: TreeHead, leaf: int | None = None) -> DraftMapping:
    """Return the mapping of a leaf's classes, or of the fixed list of as many.

    Parameters
    ----------
    head : TreeHead
    leaf : int, optional
        Whose classes; by default, the most frequent ones over all states, for drafters that take
        one list.
    """
    if leaf is None:
        classes = np.sort(head.sets.frequent)
    elif is_whole(leaf) and 0 <= leaf < head.n_leaves:
        classes = head.sets.of(leaf)
    else:
        raise ValueError(f"leaf must be from 0 to {head.n_leaves - 1}, got {leaf}")
    ids = torch.from_numpy(classes.astype(np.int64))
    on_list = torch.zeros(head.out_features, dtype=torch.bool)
    on_list[ids] = True
    return DraftMapping(ids - torch.arange(ids.numel()), on_list)


@dataclass(frozen=True)
class DraftReport:
    """Accepted proposals in a row, of ``n_draft`` at the most.

    Attributes
    ----------
    n_draft : int
    size : float
        Classes on the lists, in the mean.
    tree, fixed : float
        Accepted length with the head's classes, and with the most frequent ones.
    full : float
        With all classes.
    """

    n_draft: int
    size: float
    tree: float
    fixed: float
    full: float


@torch.no_grad()
def draft_report(
    head: TreeHead,
    states: Any,
    *,
    n_draft: int = 5,
    greedy: bool = True,
    drafter: float = 1.0,
) -> DraftReport:
    """Return how many proposals in a row are accepted, in expectation.

    Parameters
    ----------
    head : TreeHead
    states : Tensor or ndarray of shape (n_sequences, length, in_features)
        Hidden states in the order of the text.
    n_draft : int
        Proposals that are checked at a time.
    greedy : bool
        A proposal is accepted if it is the network's best class, so that must be on the list.
        Otherwise by sampling: then as often as the list's probability.
    drafter : float
        How often a drafter with all classes is right; 1 shows what lists alone cost.
    """
    if np.ndim(states) != 3:
        raise ValueError(f"states must have shape (n_sequences, length, …), got {np.shape(states)}")
    states = states if isinstance(states, Tensor) else np.asarray(states)
    if not is_whole(n_draft) or not 1 <= n_draft <= states.shape[1]:
        raise ValueError(f"n_draft must be from 1 to the length, {states.shape[1]}, got {n_draft}")
    if not 0.0 < drafter <= 1.0:
        raise ValueError(f"drafter must be above 0 and at most 1, got {drafter}")
    n_sequences, length = int(states.shape[0]), int(states.shape[1])
    rows = as_states(states, head.in_features)
    bias = None if head.bias is None else head.bias.detach()
    full = full_answers(rows, head.weight.detach(), bias, 1)
    leaf = head.leaves_of(torch.from_numpy(rows)).reshape(len(rows), -1).numpy()
    size = float(np.mean(head.sets.sizes[leaf]))
    fixed = head.sets.frequent[: round(size)]
    if greedy:
        kept = np.zeros(len(rows), dtype=np.bool_)
        for path in leaf.T:
            kept |= head.sets.keeps(path, full.classes, head.out_features)[:, 0]
        accepts = kept.astype(float), np.isin(full.best, fixed).astype(float)
    else:
        accepts = _masses(head, rows, fixed, full.log_norm)
    lengths = [
        accepted_length(drafter * part.reshape(n_sequences, length), n_draft)
        for part in (*accepts, np.ones(len(rows)))
    ]
    return DraftReport(n_draft, size, *lengths)


def _masses(
    head: TreeHead, rows: AnyArray, fixed: AnyArray, log_norm: AnyArray
) -> tuple[AccumArray, AccumArray]:
    """Return the full layer's probability of each state's kept classes, and of the fixed list."""
    out = np.empty((2, len(rows)))
    classes = torch.from_numpy(fixed.astype(np.int64)).to(head.weight.device)
    weight = head.weight[classes]
    bias = None if head.bias is None else head.bias[classes]
    for begin in range(0, len(rows), _BLOCK):
        part = slice(begin, min(begin + _BLOCK, len(rows)))
        block = torch.from_numpy(rows[part]).to(weight.device)
        own = torch.logsumexp(head(block).float(), dim=1)
        listed = torch.nn.functional.linear(block.to(weight.dtype), weight, bias).float()
        both = torch.stack([own, torch.logsumexp(listed, dim=1)]).cpu().numpy()
        out[:, part] = np.exp(np.minimum(both - log_norm[part], 0.0))
    return out[0], out[1]


def accepted_length(accepts: AnyArray, n_draft: int) -> float:
    """Return the mean number of proposals that are accepted before one is not.

    Parameters
    ----------
    accepts : ndarray of shape (n_sequences, length)
        Probability that the proposal at each place is accepted, given that those before were.
    n_draft : int
    """
    n_starts = accepts.shape[1] - n_draft + 1
    expected = np.zeros((accepts.shape[0], n_starts))
    for step in reversed(range(n_draft)):
        expected = accepts[:, step : step + n_starts] * (1.0 + expected)
    return float(expected.mean())

"""What the full output layer says of hidden states: its best classes, and its probabilities.

That is all that training and measuring a head need of it, so it is asked once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thinleaf._dtypes import INDEX, PARAM, AccumArray, AnyArray, IndexArray, ParamArray
from thinleaf.torch.heads.kernels.kept_rows import log_sum_exp

N_BEST = 32
"""Classes of each state that are kept: what they leave out is a small share of probability."""

_CELLS = 2**24
"""Logits that exist at a time."""


@dataclass(frozen=True)
class FullAnswers:
    """The best classes of each state, by falling logit.

    Attributes
    ----------
    classes : ndarray of shape (n, n_best)
    logits : ndarray of shape (n, n_best)
    log_norm : ndarray of shape (n,)
        The logarithm of the sum of exp(logit) over all classes.
    log_proba : ndarray of shape (n,), optional
        Of the class that followed, where that is known.
    """

    classes: IndexArray
    logits: ParamArray
    log_norm: ParamArray
    log_proba: ParamArray | None = None

    @property
    def best(self) -> IndexArray:
        """The class of each state that the full layer chooses."""
        return np.ascontiguousarray(self.classes[:, 0])

    @property
    def probabilities(self) -> AccumArray:
        """Of the classes; what is missing to one is that of all others."""
        shifted = self.logits.astype(np.float64) - self.log_norm[:, None]
        return np.exp(np.minimum(shifted, 0.0))

    def take(self, rows: AnyArray) -> FullAnswers:
        """Return the answers to some of the states."""
        followed = None if self.log_proba is None else self.log_proba[rows]
        return FullAnswers(self.classes[rows], self.logits[rows], self.log_norm[rows], followed)


@torch.no_grad()
def full_answers(
    states: ParamArray,
    weight: Tensor,
    bias: Tensor | None,
    n_best: int = N_BEST,
    followed: AnyArray | None = None,
) -> FullAnswers:
    """Ask the full layer, a block of states at a time.

    Parameters
    ----------
    states : ndarray of shape (n, in_features)
    weight : Tensor of shape (n_classes, in_features)
    bias : Tensor of shape (n_classes,), optional
    n_best : int
        Classes of each state to keep; not more than there are.
    followed : ndarray of shape (n,), optional
        The class that followed each state, such as the next word; -1 if none did.
    """
    n, n_classes = len(states), weight.shape[0]
    n_best = min(n_best, n_classes)
    classes, logits = np.empty((n, n_best), INDEX), np.empty((n, n_best), PARAM)
    log_norm = np.empty(n, PARAM)
    log_proba = None if followed is None else np.full(n, np.nan, PARAM)
    size = max(1, min(1024, _CELLS // n_classes))
    for begin in range(0, n, size):
        part = slice(begin, min(begin + size, n))
        block = torch.from_numpy(np.array(states[part], dtype=PARAM)).to(weight.device)
        scores = torch.nn.functional.linear(block.to(weight.dtype), weight, bias).float()
        top = scores.topk(n_best, dim=1)
        values = top.values.cpu().numpy()
        classes[part], logits[part] = top.indices.cpu().numpy(), values
        everything = scores.cpu().numpy()
        log_norm[part] = log_sum_exp(everything, values[:, 0].copy())
        if followed is not None and log_proba is not None:
            known = np.flatnonzero(np.asarray(followed[part]) >= 0)
            of_known = everything[known, np.asarray(followed[part])[known]]
            log_proba[begin + known] = of_known - log_norm[begin + known]
    return FullAnswers(classes, logits, log_norm, log_proba)

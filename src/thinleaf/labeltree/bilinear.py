"""The log-bilinear language model (paper 004, section 6): contexts, and what is trained of them.

A context of T words is represented by r = Σ_k R_k U_w(t-k). What comes after it is the business of
an output layer: ``output_layers``' ``TreeOutput`` or ``FlatOutput``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, IndexArray, ParamArray
from thinleaf.labeltree.kernels.batch_steps import ascend, ascend_rows


@dataclass(frozen=True, eq=False)
class Contexts:
    """Words in their context.

    Attributes
    ----------
    words : ndarray of shape (n, T)
        Column k - 1 holds the word k places before; ``n_words`` where there is none.
    next : ndarray of shape (n,)
        The word that follows.
    """

    words: IndexArray
    next: IndexArray

    @classmethod
    def of(cls, sequences: list[IndexArray], n_context: int, n_words: int) -> Contexts:
        """Return every word of some sequences with the words before it.

        Parameters
        ----------
        sequences : list of ndarray
            Word ids. Negative ids are unknown: not to be predicted, and no context.
        n_context : int
            T.
        n_words : int
            Id of what stands before the first word.
        """
        pad = np.full(n_context, n_words, dtype=INDEX)
        stream = np.concatenate([part for ids in sequences for part in (pad, ids)] or [pad])
        starts = np.cumsum([0] + [n_context + len(ids) for ids in sequences])[:-1]
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        at = np.repeat(starts + n_context - np.cumsum(np.r_[0, lengths])[:-1], lengths)
        at = at + np.arange(lengths.sum())
        at = at[stream[at] >= 0]
        known = np.where(stream < 0, n_words, stream).astype(INDEX)
        words = np.stack([known[at - k] for k in range(1, n_context + 1)], axis=1)
        return cls(np.ascontiguousarray(words), known[at])

    def __len__(self) -> int:
        return self.next.size


class LogBilinear:
    """U and R_k, with the sums of squared gradients of Adagrad.

    Parameters
    ----------
    U : ndarray of shape (n_words + 1, dim)
        The last row stands for what is before the first word.
    R : ndarray of shape (n_context, dim, dim)
    """

    def __init__(self, U: ParamArray, R: ParamArray) -> None:
        self.U, self.R = U, R
        self.U_squares: ParamArray = np.zeros_like(U)
        self.R_squares: ParamArray = np.zeros_like(R)

    @classmethod
    def start(cls, n_words: int, n_context: int, dim: int, rng: np.random.Generator) -> LogBilinear:
        """Return what training starts from."""
        U: ParamArray = rng.normal(0.0, 0.1, (n_words + 1, dim)).astype(PARAM)
        U[n_words] = 0.0
        near = 1.0 / np.arange(1, n_context + 1)
        noise = rng.normal(0.0, 0.01, (n_context, dim, dim))
        return cls(U, (near[:, None, None] * np.eye(dim) + noise).astype(PARAM))

    def represent(self, words: IndexArray) -> ParamArray:
        """Return r of each context, of shape (n, dim)."""
        out: ParamArray = self.U[words[:, 0]] @ self.R[0].T
        for k in range(1, words.shape[1]):
            out += self.U[words[:, k]] @ self.R[k].T
        return out

    def step(self, words: IndexArray, delta: ParamArray, rate: float) -> None:
        """Take a gradient step, given the gradient with respect to r."""
        for k in range(words.shape[1]):
            ids = np.ascontiguousarray(words[:, k])
            E = self.U[ids]
            back = delta @ self.R[k]
            ascend(self.R[k], delta.T @ E, self.R_squares[k], rate)
            ascend_rows(self.U, ids, back, self.U_squares, rate)

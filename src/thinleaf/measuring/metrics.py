"""Figures that the papers report: errors, perplexities with coverage, FLOPs, size.

Functions of arrays and trees; latency is measured in ``benchmarks/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM
from thinleaf.model.cost import TreeSummary, frozen_mean_flops, mean_flops, summarize
from thinleaf.model.probability import mean_log_loss, smoothed, tune_epsilon

__all__ = [
    "Perplexity",
    "TreeSummary",
    "frozen_mean_flops",
    "mean_flops",
    "perplexity",
    "precision_at_k",
    "recall_at_k",
    "smoothed_perplexity",
    "summarize",
    "top_k_error",
    "tune_epsilon",
]


def top_k_error(y_true: npt.ArrayLike, y_top: npt.ArrayLike) -> float:
    """Return the share of rows whose label is not among their top k.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
    y_top : array-like of shape (n_rows, k)
        As from ``predict_topk``.

    Examples
    --------
    >>> top_k_error(["a", "b"], [["a", "c"], ["c", "d"]])
    0.5
    """
    truth, top = np.asarray(y_true), np.asarray(y_top)
    if top.ndim != 2 or truth.shape != top.shape[:1]:
        raise ValueError(
            f"y_top must have shape (n_rows, k) with {truth.shape[0]} rows, got {top.shape}"
        )
    return float(1.0 - (truth[:, None] == top).any(axis=1).mean())


def precision_at_k(Y: Any, y_top: npt.ArrayLike) -> float:
    """Return the share of the top k labels that rows have: P@k, of rows of several labels.

    Parameters
    ----------
    Y : {sparse matrix, array} of shape (n_rows, n_labels)
        1 where a row has a label.
    y_top : array-like of shape (n_rows, k)
        Columns, as from ``predict_topk`` of a model that was fitted to such a matrix.

    Examples
    --------
    >>> precision_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [2, 1]])
    0.5
    """
    hits, top = _n_right(Y, y_top)
    return hits / max(top.size, 1)


def recall_at_k(Y: Any, y_top: npt.ArrayLike) -> float:
    """Return the share of all rows' labels that are among their top k.

    It is fastText's recall, and that of paper 004, table 3: labels count, not rows.

    Parameters
    ----------
    Y, y_top
        As of :func:`precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[1, 1, 0], [0, 0, 1]], [[0], [1]])
    0.3333333333333333
    """
    return _n_right(Y, y_top)[0] / max(int(sp.csr_array(Y).count_nonzero()), 1)


def _n_right(Y: Any, y_top: npt.ArrayLike) -> tuple[int, npt.NDArray[Any]]:
    matrix, top = sp.csr_array(Y), np.asarray(y_top)
    if top.ndim != 2 or top.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"y_top must have shape (n_rows, k) with {matrix.shape[0]} rows, got {top.shape}"
        )
    if top.dtype.kind not in "iu" or (
        top.size and not 0 <= top.min() <= top.max() < matrix.shape[1]
    ):
        raise ValueError(f"y_top must be columns of Y, integers in 0..{matrix.shape[1] - 1}")
    rows = np.repeat(np.arange(top.shape[0]), top.shape[1])
    return int(np.count_nonzero(matrix[rows, top.ravel()])), top


@dataclass(frozen=True)
class Perplexity:
    """Perplexity over the rows with positive probability, and their share."""

    value: float
    coverage: float


def perplexity(probability: npt.ArrayLike) -> Perplexity:
    """Return exp of the mean -log p over covered rows (paper 000, section 6.4).

    Parameters
    ----------
    probability : array-like of shape (n_rows,)
        Of the true class, as from ``label_proba``; zero where the leaf lacks it.

    Examples
    --------
    >>> perplexity([0.5, 0.5, 0.0, 0.5])
    Perplexity(value=2.0, coverage=0.75)
    """
    p = np.asarray(probability, dtype=ACCUM)
    covered = p[p > 0.0]
    value = float(np.exp(mean_log_loss(covered))) if covered.size else float("inf")
    return Perplexity(value, covered.size / max(p.size, 1))


def smoothed_perplexity(
    probability: npt.ArrayLike, n_absent: npt.ArrayLike, epsilon: float
) -> float:
    """Return the perplexity over all rows when each absent class gets ε and all is renormalised.

    Parameters
    ----------
    probability : array-like of shape (n_rows,)
        Of the true class, zero where the leaf lacks it.
    n_absent : array-like of shape (n_rows,)
        How many classes the leaf that a row reaches lacks.
    epsilon : float
        As from :func:`tune_epsilon` on validation rows.
    """
    if not epsilon > 0.0:
        raise ValueError(f"epsilon must be positive, got {epsilon!r}")
    p, absent = np.asarray(probability, dtype=ACCUM), np.asarray(n_absent, dtype=ACCUM)
    return float(np.exp(mean_log_loss(smoothed(p, absent, epsilon))))

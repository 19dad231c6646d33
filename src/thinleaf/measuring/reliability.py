"""Whether probabilities are what they say: 80 of 100 rows at 80 % should be right.

Counted in bins of the probability of the label that is given, the top-label confidence, so that
memory does not depend on rows. Two tables come of it: reliability with the expected calibration
error (Guo et al., 2017), and what error is left if only sure answers are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, OFFSET, AccumArray, BoolArray, OffsetArray

N_BINS = 15
"""Bins of a reliability table, as in the paper."""

_FINE = 1000
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Least probabilities whose share and error are in records."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """Confidence beside accuracy, in bins of equal width from 0 to 1.

    Attributes
    ----------
    count : ndarray of shape (n_bins,)
        Rows whose confidence is in a bin.
    confidence : ndarray of shape (n_bins,)
        Their mean confidence; NaN without rows.
    accuracy : ndarray of shape (n_bins,)
        The share of them that is right; NaN without rows.
    brier : float
        Mean squared difference between confidence and being right (0 or 1).
    """

    count: OffsetArray
    confidence: AccumArray
    accuracy: AccumArray
    brier: float

    @property
    def edges(self) -> AccumArray:
        """Where bins begin and end, of shape (n_bins + 1,)."""
        return np.linspace(0.0, 1.0, self.count.size + 1)

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean gap of confidence and accuracy, by rows."""
        filled = self.count > 0
        gaps = np.abs(self.confidence[filled] - self.accuracy[filled])
        return float(np.sum(gaps * self.count[filled]) / max(self.count.sum(), 1))

    @property
    def mce(self) -> float:
        """Maximum calibration error: the largest gap of a bin."""
        gaps = np.abs(self.confidence - self.accuracy)[self.count > 0]
        return float(gaps.max()) if gaps.size else 0.0

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the figures of each bin by name, as JSON holds them."""
        for i, count in enumerate(self.count.tolist()):
            yield {
                "from": float(self.edges[i]),
                "to": float(self.edges[i + 1]),
                "rows": count,
                "confidence": float(self.confidence[i]) if count else None,
                "accuracy": float(self.accuracy[i]) if count else None,
            }


@dataclass(frozen=True, eq=False)
class Selection:
    """What is left to err if only answers with a least confidence are taken.

    Attributes
    ----------
    threshold : ndarray of shape (n_thresholds,)
        Least confidences, ascending in thousandths.
    share : ndarray of shape (n_thresholds,)
        Rows whose confidence is not below.
    error : ndarray of shape (n_thresholds,)
        The share of them that is wrong; NaN without rows.
    """

    threshold: AccumArray
    share: AccumArray
    error: AccumArray

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield some thresholds with their shares and errors, as JSON holds them."""
        for threshold in THRESHOLDS:
            i = round(threshold * _FINE)
            share, error = float(self.share[i]), float(self.error[i])
            yield {"at_least": threshold, "share": share, "error": error if share else None}

    def curve(self, n_points: int = 200) -> list[tuple[float, float]]:
        """Return (share, error) from the surest rows to all of them, thinned to so many points."""
        filled = np.flatnonzero(np.diff(self.share, append=0.0))[::-1]
        if filled.size > n_points:
            filled = filled[np.linspace(0, filled.size - 1, n_points).round().astype(int)]
        return list(zip(self.share[filled].tolist(), self.error[filled].tolist(), strict=True))


class ConfidenceCounts:
    """Adds up confidences and whether they were right, batch by batch.

    Parameters
    ----------
    n_bins : int
        Of the reliability table.
    """

    def __init__(self, n_bins: int = N_BINS) -> None:
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins}")
        self._n_bins = n_bins
        self._count = np.zeros(n_bins, dtype=OFFSET)
        self._right = np.zeros(n_bins, dtype=OFFSET)
        self._sum = np.zeros(n_bins, dtype=ACCUM)
        self._fine = np.zeros((_FINE, 2), dtype=OFFSET)
        self._squares = 0.0

    def add(self, confidence: AccumArray, right: BoolArray) -> None:
        """Count rows.

        Parameters
        ----------
        confidence : ndarray of shape (n_rows,)
            In 0..1; NaN counts as 0.
        right : ndarray of shape (n_rows,)
        """
        p = np.clip(np.nan_to_num(confidence, nan=0.0), 0.0, 1.0).astype(ACCUM)
        n = self._n_bins
        at = np.minimum((p * n).astype(np.int64), n - 1)
        self._count += np.bincount(at, minlength=n)
        self._right += np.bincount(at[right], minlength=n)
        self._sum += np.bincount(at, p, minlength=n)
        # 0.29 * 1000 is below 290
        fine = np.minimum((p * _FINE + 1e-9).astype(np.int64), _FINE - 1)
        self._fine[:, 0] += np.bincount(fine, minlength=_FINE)
        self._fine[:, 1] += np.bincount(fine[right], minlength=_FINE)
        self._squares += float(np.sum((p - right) ** 2))

    def reliability(self) -> Reliability:
        """Return the table so far."""
        with np.errstate(invalid="ignore"):
            confidence, accuracy = self._sum / self._count, self._right / self._count
        brier = self._squares / max(int(self._count.sum()), 1)
        return Reliability(self._count.copy(), confidence, accuracy, brier)

    def selection(self) -> Selection:
        """Return shares and errors at each threshold so far."""
        kept, right = np.cumsum(self._fine[::-1], axis=0)[::-1].T
        with np.errstate(invalid="ignore"):
            error = 1.0 - right / kept
        share = kept / max(int(kept[0]), 1)
        return Selection(np.arange(_FINE) / _FINE, share, error)

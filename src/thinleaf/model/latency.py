"""How long things take: the clock of budgets, the demo, the command line and the benchmarks.

What "µs a prediction" means wherever this project says it:

- The model is the one that is deployed: ``freeze()``, then ``predict_one``. Other libraries are
  called in the fastest way that their Python interface has.
- The row is prepared: a dense array, or indices and values. Making it from a text is not in it.
- The Python call is in it: a loop over many rows, one call each, on one thread.
- Code is compiled and warm: some calls come before those that count.
- A few rows at a time are timed together: reading the clock around each call would add a part of
  what a tree takes, and long runs would count what else the machine does. All of them are timed in
  several passes; of each few rows the median of the passes is taken, and these are added up and
  divided by the rows.

Of a batch, the figure is the median of several calls with all rows, divided by the rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray
from thinleaf.kernels._jit import compiled_signatures

N_SINGLE = 1000
"""Rows that single predictions are timed on, at the most."""

N_PASSES = 25
"""Times that all of them are predicted, if that does not take long."""

N_BATCHES = 7
"""Times that a batch is predicted, if that does not take long."""

MOST_SECONDS = 2.0
"""After this, no further pass is begun."""

_N_WARM = 50
_FEW_SECONDS = 2e-4
_MOST_FEW = 20


class Stopwatch:
    """Wall-clock seconds of a ``with`` block, which may run several times.

    Examples
    --------
    >>> from thinleaf.model.latency import Stopwatch
    >>> with Stopwatch() as watch:
    ...     total = sum(range(100))
    >>> watch.seconds > 0.0
    True
    """

    def __init__(self) -> None:
        self.runs: list[float] = []

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.runs.append(time.perf_counter() - self._started)

    @property
    def seconds(self) -> float:
        """Of all runs."""
        return sum(self.runs)

    @property
    def median(self) -> float:
        """Of a run; NaN without one."""
        return float(np.median(self.runs)) if self.runs else math.nan


def seconds_of(call: Callable[..., object], *arguments: Any) -> float:
    """Return the wall-clock seconds of a call."""
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


def repeated(
    n_times: int, call: Callable[[], object], most_seconds: float = math.inf
) -> AccumArray:
    """Return the seconds of several calls; none is begun after so many seconds but the first."""
    seconds: list[float] = []
    while len(seconds) < n_times and (not seconds or sum(seconds) < most_seconds):
        seconds.append(seconds_of(call))
    return np.array(seconds, dtype=ACCUM)


def best_of(n_times: int, call: Callable[[], object]) -> float:
    """Return the seconds of the shortest of several calls."""
    return float(repeated(n_times, call).min())


@dataclass(frozen=True)
class Latency:
    """Microseconds of a prediction.

    Attributes
    ----------
    median, best : float
        Of the passes over all rows.
    p99 : float
        99 of 100 single calls take no longer, each timed alone; or of the batches.
    """

    median: float
    best: float
    p99: float


def single_latency(
    one: Callable[..., Any],
    samples: Sequence[tuple[Any, ...]],
    n_passes: int | None = None,
    most_seconds: float | None = None,
) -> Latency:
    """Return the latency of a call with one row.

    Parameters
    ----------
    one : callable
        Such as ``predict_one`` of a frozen model.
    samples : sequence of tuple
        The arguments of each call, as from :func:`prepared_rows`.
    n_passes : int, optional
        Times that all of them are predicted at the most; by default ``N_PASSES``.
    most_seconds : float, optional
        After this, no further pass is begun; by default ``MOST_SECONDS``.
    """
    n_passes = N_PASSES if n_passes is None else n_passes
    most_seconds = MOST_SECONDS if most_seconds is None else most_seconds
    for sample in samples[:_N_WARM]:
        one(*sample)
    calls = np.array([seconds_of(one, *sample) for sample in samples], dtype=ACCUM)
    n_few = int(np.clip(_FEW_SECONDS / max(float(np.median(calls)), 1e-9), 1, _MOST_FEW))
    few = [samples[i : i + n_few] for i in range(0, len(samples), n_few)]
    passes: list[AccumArray] = []
    if calls.sum() >= most_seconds:  # too slow for another pass, and for the clock to matter
        passes.append(calls)
    while len(passes) < n_passes and np.sum(passes) < most_seconds:
        passes.append(_pass(one, few))
    to_us = 1e6 / len(samples)
    median = to_us * float(np.median(passes, axis=0).sum())
    p99 = 1e6 * float(np.percentile(calls, 99))
    # measured apart: where all calls take the same, noise may put it below the median
    return Latency(median, to_us * float(np.min(passes, axis=0).sum()), max(median, p99))


def _pass(one: Callable[..., Any], parts: Sequence[Sequence[tuple[Any, ...]]]) -> AccumArray:
    """Return the seconds of each part of the rows."""

    def call_all(samples: Sequence[tuple[Any, ...]]) -> None:
        for sample in samples:
            one(*sample)

    return np.array([seconds_of(call_all, part) for part in parts], dtype=ACCUM)


def batch_latency(
    predict: Callable[[], Any],
    n_rows: int,
    n_times: int = N_BATCHES,
    most_seconds: float = MOST_SECONDS,
) -> Latency:
    """Return the latency of a row when a call predicts that many.

    Parameters
    ----------
    predict : callable
        Predicts all rows.
    n_rows : int
    n_times : int
        How often it is called at the most; the median does not mind if the first one is slow.
    most_seconds : float
        After this, it is not called again.
    """
    batches = 1e6 / n_rows * repeated(n_times, predict, most_seconds)
    p99 = np.percentile(batches, 99)
    return Latency(float(np.median(batches)), float(batches.min()), float(p99))


def model_latencies(model: Any, X: Any) -> tuple[Latency, Latency]:
    """Return the latencies of a deployed model: of single rows, and of all of them as a batch.

    Parameters
    ----------
    model : FrozenTree
        Or what has the same ``predict_one`` and ``predict``.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    """
    n_rows = X.shape[0]
    single = single_latency(model.predict_one, prepared_rows(X, min(N_SINGLE, n_rows)))
    return single, batch_latency(lambda: model.predict(X), n_rows)


def prepared_rows(X: Any, n_rows: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``predict_one`` for the first rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (at least n_rows, n_features)
    n_rows : int

    Returns
    -------
    samples : list of tuple
        A dense row, or the indices and values of a sparse one; each in memory of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from thinleaf.model.latency import prepared_rows
    >>> X = np.array([[0.0, 2.5], [1.0, 0.0]], dtype="float32")
    >>> prepared_rows(X, 1)
    [(array([0. , 2.5], dtype=float32),)]
    >>> prepared_rows(sp.csr_matrix(X), 1)
    [(array([1], dtype=int32), array([2.5], dtype=float32))]
    """
    if not hasattr(X, "indptr"):
        return [(np.array(X[i]),) for i in range(n_rows)]
    parts = [slice(X.indptr[i], X.indptr[i + 1]) for i in range(n_rows)]
    return [(X.indices[part].astype(INDEX), X.data[part].copy()) for part in parts]


def compiled_so_far() -> tuple[int, int]:
    """Return how many kernels this process has compiled and loaded: if it changes, time again."""
    return compiled_signatures()

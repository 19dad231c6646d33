"""What a fit will cost, found out by fits to a few rows."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from thinleaf._dtypes import AnyArray
from thinleaf.estimators._auto.deadline import Deadline
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.model.latency import Stopwatch, compiled_so_far
from thinleaf.softmaxtree.growth.first_tree import (
    flat_is_affordable,
    sparse_flat_is_affordable,
    usual_depth,
)

_FIRST_ROWS = 500
_MORE = 3.0
"""How many times more rows the next probe has."""

_LONGEST = 2.0
"""Times the seconds of probing, after which a probe that goes on growing is ended."""

_ALL_CLASSES, _MORE_CLASSES = (0.5, 1.0), (1.0, 1.5)
"""How seconds of a round of growth may grow with rows that are dense: where samples have all
classes, and where more rows have more classes."""

_SPARSE_POWER = 0.5
"""The same of sparse rows and texts, of which large sets have a bounded sample to look for how to
train: the mean of this and of what is seen, which is at most one."""

_BYTES_POWERS = {True: (0.0, 1.1), False: (0.9, 1.1)}
"""The same of bytes, of dense and of other rows: more of these have more features."""

_AUTO_TIMES = 5.0
"""What a fit to a budget takes beside its default tree, without a limit."""

_MANY_ROWS = 50
"""Of a class: then some of them will do."""

_TERMS, _FEATURES = 15, 100_000
"""Of a text and of many, about."""

_STATM = Path("/proc/self/statm")
_UNLIMITED = ("max_us", "max_bytes", "max_fit_seconds")


@dataclass(frozen=True)
class Probe:
    """A fit to some rows.

    Attributes
    ----------
    n_rows : int
    seconds : float
    peak_bytes : int or None
        Most memory of the process in it; None where that cannot be seen.
    model_bytes : int or None
        Of the model file; None if it cannot be saved.
    n_rounds : int
        Of growth.
    """

    n_rows: int
    seconds: float
    peak_bytes: int | None
    model_bytes: int | None
    n_rounds: int = 1


@dataclass(frozen=True)
class CostEstimate:
    """What a fit is expected to cost.

    Attributes
    ----------
    n_rows : int
    seconds : float
    peak_bytes : int or None
        Most memory of this process in the fit, with what it holds now; None where the system does
        not say, which is all but Linux.
    model_bytes : int or None
        Of the model file; None if the model cannot be saved.
    probes : tuple of Probe
        What was measured.
    """

    n_rows: int
    seconds: float
    peak_bytes: int | None
    model_bytes: int | None
    probes: tuple[Probe, ...]

    def __str__(self) -> str:
        memory = "" if self.peak_bytes is None else f", {self.peak_bytes / 1e6:,.0f} MB of memory"
        model = "" if self.model_bytes is None else f", a model of {self.model_bytes / 1e6:,.2f} MB"
        return f"{self.n_rows:,} rows: about {self.seconds:,.1f} s{memory}{model}"


def estimate_cost(
    X: Any,
    y: npt.ArrayLike,
    model: Any = None,
    *,
    probe_seconds: float = 5.0,
    random_state: int = 0,
) -> CostEstimate:
    """Return what a fit would cost: seconds, memory, bytes of the model.

    The model is fitted to 500 rows, to three times as many, and so on, until that has taken some
    seconds. The shape of the data does the rest: seconds and bytes go on growing as they did, and
    memory grows with the rows.

    Parameters
    ----------
    X, y
        What ``fit`` takes.
    model : estimator, optional
        By default an :class:`AdaptiveSoftmaxTreeClassifier`. A budget that it has is left out of
        the probes, but for ``max_fit_seconds``, which bounds the seconds; a fit to a budget is
        told by its default tree, and takes about five times as long.
    probe_seconds : float
        After this, no larger probe is begun; one that goes on growing is ended after twice as many.
    random_state : int
        Of the rows that are drawn.

    Returns
    -------
    estimate : CostEstimate

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import estimate_cost
    >>> estimate = estimate_cost(*load_digits(return_X_y=True), probe_seconds=0.2)
    >>> estimate.n_rows, estimate.seconds > 0
    (1797, True)
    """
    model = AdaptiveSoftmaxTreeClassifier() if model is None else model
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size != _n_samples(X) or labels.size == 0:
        raise ValueError(
            f"there must be one label a sample: there are {_n_samples(X)} samples, but y has shape "
            f"{labels.shape}"
        )
    if not probe_seconds > 0:
        raise ValueError(f"probe_seconds must be above 0, got {probe_seconds!r}")
    known = model.get_params(deep=False)
    limit = known.get("max_fit_seconds")
    inner = model.get_params(deep=True)
    without = {k: None for k, v in inner.items() if k.split("__")[-1] in _UNLIMITED and v}
    quiet = {name: 0 for name in inner if name.split("__")[-1] == "verbose"}
    fresh = clone(model).set_params(**without, **quiet)
    times = _AUTO_TIMES if _is_auto(fresh) else 1.0
    fresh = _at_scale(fresh, X, labels)
    probes = _probes(fresh, X, labels, None, probe_seconds, random_state)
    dense = isinstance(X, np.ndarray) and X.ndim == 2
    every = _in_each_sample(labels)
    seconds = times * _seconds(probes, labels.size, dense, every)
    if limit is not None:
        seconds = min(seconds, float(limit))
    return CostEstimate(
        labels.size,
        seconds,
        _peak(probes, labels.size),
        _model_bytes(probes, labels.size, dense),
        tuple(probes),
    )


def seconds_of_rows(
    model: Any, X: Any, y: AnyArray, weight: AnyArray, probe_seconds: float, seed: int
) -> float:
    """Return the seconds that a fit will take, found out in about so many."""
    model = _at_scale(model, X, y)
    probes = _probes(model, X, y, weight, probe_seconds, seed)
    return _seconds(probes, y.size, not hasattr(X, "nnz"), _in_each_sample(y))


def _is_auto(model: Any) -> bool:
    """Return whether a model is, or has in it, a fit to a budget."""
    if hasattr(model, "rejection"):  # of texts: it has the parameters of a budget in any case
        model = model.model
    return hasattr(model, "max_fit_seconds") or (isinstance(model, str) and model == "auto")


def _at_scale(model: Any, X: Any, y: AnyArray) -> Any:
    """Return a model that does with a few rows what the given one would do with all of them.

    Of few rows, one flat leaf may be affordable which is not of all: it is not tried where the
    depth to start from is given. A fit to a budget is told by its default tree.
    """
    if hasattr(model, "features") and hasattr(model, "rejection"):  # of texts
        if isinstance(model.model, str) or model.model is None:
            tree: Any = AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=model.n_jobs)
        else:
            tree = model.model
        return clone(model).set_params(model=_at_scale(tree, X, y))
    if hasattr(model, "max_fit_seconds"):
        model = AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=model.n_jobs)
    if not isinstance(model, AdaptiveSoftmaxTreeClassifier) or model.initial_depth is not None:
        return model
    n_classes = np.unique(y).size
    if _flat_is_tried(X, n_classes):
        return model
    return clone(model).set_params(initial_depth=usual_depth(n_classes))


def _of_depth(model: Any, n_classes: int) -> Any:
    """Return a model that starts from no deeper tree than it would with so many classes."""
    inner: Any = model.model if hasattr(model, "rejection") else model
    if getattr(inner, "initial_depth", None) is not None:
        inner.set_params(initial_depth=min(inner.initial_depth, usual_depth(n_classes)))
    return model


def _flat_is_tried(X: Any, n_classes: int) -> bool:
    """Return whether all rows allow one flat leaf, as ``flat_is_affordable`` says of rows."""
    if hasattr(X, "nnz"):
        return sparse_flat_is_affordable(X.nnz, X.shape[1], n_classes)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiu":
        return flat_is_affordable(X, n_classes)
    return sparse_flat_is_affordable(_n_samples(X) * _TERMS, _FEATURES, n_classes)


def _n_samples(X: Any) -> int:
    if isinstance(X, Mapping):
        return len(next(iter(X.values()), ()))
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _probes(
    model: Any, X: Any, y: AnyArray, weight: AnyArray | None, probe_seconds: float, seed: int
) -> list[Probe]:
    order = _order(y, seed)
    base = _resident()
    probes: list[Probe] = []
    n_rows, spent = min(_FIRST_ROWS, y.size), 0.0
    while True:
        some = np.sort(order[:n_rows])
        if np.unique(y[some]).size < 2 and n_rows < y.size:
            n_rows = min(round(_MORE * n_rows), y.size)
            continue
        limit = max(_LONGEST * probe_seconds - spent, 0.0) if probes else math.inf
        probe = _probe(model, X, y, weight, some, base, limit)
        if probe is None:
            return probes
        probes.append(probe)
        spent += probe.seconds
        after = spent + _MORE / 2 * probe.seconds
        if n_rows == y.size or (len(probes) > 2 and after > probe_seconds):
            return probes
        if spent > probe_seconds:
            return probes
        n_rows = min(round(_MORE * n_rows), y.size)


def _order(y: AnyArray, seed: int) -> AnyArray:
    """Return the rows in an order whose beginnings are like all of them.

    Where classes have few rows, a part of the rows would have next to none of each: these are whole
    classes then.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    classes, ids = np.unique(y, return_inverse=True)
    if _in_each_sample(y):
        return order
    rank = rng.permutation(classes.size)
    return order[np.argsort(rank[ids[order]], kind="stable")]


def _in_each_sample(y: AnyArray) -> bool:
    """Return whether samples of rows have all classes."""
    return bool(y.size >= _MANY_ROWS * np.unique(y).size)


def _probe(
    model: Any,
    X: Any,
    y: AnyArray,
    weight: AnyArray | None,
    some: AnyArray,
    base: int | None,
    limit: float,
) -> Probe | None:
    """Return what a fit to some rows costs; None if it has given nothing within the limit."""
    known = compiled_so_far()
    fitted = _of_depth(clone(model), np.unique(y[some]).size)
    more = {} if weight is None else {"sample_weight": weight[some]}
    rows, deadline = _rows(X, some), Deadline(limit)
    try:
        with warnings.catch_warnings(), _Resident() as memory, Stopwatch() as watch, deadline:
            warnings.simplefilter("ignore")
            fitted.fit(rows, y[some], **more)
    except KeyboardInterrupt:
        if not deadline.fired:
            raise
        return None
    ended = getattr(getattr(fitted, "model_", fitted), "ended_", None)
    if ended == "interrupted" and not deadline.fired:  # what a fit on Ctrl-C keeps is no estimate
        raise KeyboardInterrupt
    if compiled_so_far() != known:  # once on a machine, or once in a process: not of the fit
        return _probe(model, X, y, weight, some, base, limit)
    n_bytes = None
    if hasattr(fitted, "freeze"):
        n_bytes = getattr(fitted.freeze(), "file_bytes", None)
    peak = None if base is None or memory.peak is None else memory.peak
    return Probe(int(some.size), watch.seconds, peak, n_bytes, _n_rounds(fitted))


def _n_rounds(model: Any) -> int:
    """Return how many rounds of growth a fit had, where it grows."""
    inner = getattr(model, "model_", model)
    grows = isinstance(inner, AdaptiveSoftmaxTreeClassifier)
    return max(len(inner.history_), 1) if grows else 1


def _rows(X: Any, some: AnyArray) -> Any:
    """Return some samples, whatever holds them."""
    if isinstance(X, Mapping):
        return {name: _rows(column, some) for name, column in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[some]
    if hasattr(X, "to_pylist"):
        X = X.to_pylist()
    if isinstance(X, Sequence):
        return [X[i] for i in some.tolist()]
    return X[some]


def _seconds(probes: Sequence[Probe], n_rows: int, dense: bool, every: bool) -> float:
    """Return the seconds of a fit: those of a round grow with rows, and rounds are as many as now.

    How many rounds help differs from one sample to the next, so that the last two are averaged.
    """
    last = probes[-1]
    if last.n_rows == n_rows:
        return last.seconds
    seen = 1.0
    if len(probes) > 2:
        before = probes[-2]
        times = [max(p.seconds, 1e-9) / p.n_rounds for p in (before, last)]
        seen = math.log(times[1] / times[0]) / math.log(last.n_rows / before.n_rows)
    if dense:
        power = float(np.clip(seen, *(_ALL_CLASSES if every else _MORE_CLASSES)))
    else:
        power = (float(np.clip(seen, *_ALL_CLASSES)) + _SPARSE_POWER) / 2
    rounds = float(np.mean([p.n_rounds for p in probes[-2:]]))
    return last.seconds * rounds / last.n_rounds * float((n_rows / last.n_rows) ** power)


def _model_bytes(probes: Sequence[Probe], n_rows: int, dense: bool) -> int | None:
    known = [(p.n_rows, float(p.model_bytes)) for p in probes if p.model_bytes is not None]
    return round(_further(known, n_rows, _BYTES_POWERS[dense])) if known else None


def _further(known: Sequence[tuple[int, float]], n_rows: int, powers: tuple[float, float]) -> float:
    """Return what a value that grows by a power of the rows will be; the first fit warms up."""
    n, value = known[-1]
    if n == n_rows:
        return value
    power = 1.0
    if len(known) > 2:
        n_before, before = known[-2]
        power = math.log(max(value, 1e-9) / max(before, 1e-9)) / math.log(n / n_before)
    return value * float((n_rows / n) ** float(np.clip(power, *powers)))


def _peak(probes: Sequence[Probe], n_rows: int) -> int | None:
    """Return the most memory, which grows with the rows."""
    known = [(p.n_rows, p.peak_bytes) for p in probes if p.peak_bytes is not None]
    if not known:
        return None
    n, peak = known[-1]
    if len(known) < 2 or n == n_rows:
        return peak
    n_before, before = known[-2]
    return round(peak + max(peak - before, 0) / (n - n_before) * (n_rows - n))


# -- memory ----------------------------------------------------------------------------------------


def _resident() -> int | None:
    """Return the bytes of memory that this process holds; None if the system does not say."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


class _Resident:
    """Looks at the memory of this process while a block runs."""

    def __init__(self) -> None:
        self.peak = _resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._done.wait(0.005):
            now = _resident()
            if now is not None and self.peak is not None:
                self.peak = max(self.peak, now)

    def __enter__(self) -> _Resident:
        if self.peak is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self.peak is not None:
            self._thread.join()

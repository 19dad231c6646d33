"""How models are judged: by rows that they were not fitted to, and as they are deployed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.rows import as_matrix
from thinleaf.estimators._auto.raw_texts import Form
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.latency import N_SINGLE, batch_latency, prepared_rows, single_latency
from thinleaf.model.model_file import load
from thinleaf.softmaxtree.tao import TrainingData

Metric: TypeAlias = str | Callable[[AnyArray, AnyArray], float]

MOST_ROWS = 8000
"""Held-out rows that a model is judged by, at the most."""

_TIMED_ROWS = N_SINGLE
_QUICK_PASSES, _QUICK_SECONDS = 3, 0.3
_CAREFUL_PASSES, _CAREFUL_SECONDS = 25, 1.0
_TOP = re.compile(r"top([1-9]\d*)_error")


def check_metric(metric: Any) -> None:
    """Raise ``ValueError`` unless a metric is known."""
    if callable(metric) or metric in ("error", "log_loss"):
        return
    if not isinstance(metric, str) or _TOP.fullmatch(metric) is None:
        raise ValueError(
            "metric must be 'error', 'top5_error' or with another number, 'log_loss', or a "
            f"callable of labels and predicted labels, got {metric!r}"
        )


def _number(value: Any) -> float:
    """Return what a callable says; ``ValueError`` unless that is a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        raise ValueError(f"metric must return a number, the lower the better, got {value!r}")
    return number


@dataclass(frozen=True, eq=False)
class Score:
    """What held-out rows say of a model.

    Attributes
    ----------
    value : float
        Less is better.
    losses : ndarray of shape (n_rows,), or None
        Of each row, if the metric is a mean over rows.
    """

    value: float
    losses: AccumArray | None


class Judge:
    """Held-out rows and a metric.

    Parameters
    ----------
    data : TrainingData
        Rows, class ids, and the weight that each has.
    classes : ndarray of shape (n_classes,)
        The labels of the class ids.
    metric : str or callable
    n_jobs : int
    texts : ndarray of shape (n_rows,), optional
        Of the rows, for a label tree.
    """

    def __init__(
        self,
        data: TrainingData,
        classes: AnyArray,
        metric: Metric,
        n_jobs: int,
        texts: AnyArray | None = None,
    ) -> None:
        some = np.arange(0, data.n_rows, max(1, -(-data.n_rows // MOST_ROWS)))
        self.rows = data.take(some)
        self._texts = None if texts is None else texts[some].tolist()
        self._labels = classes[self.rows.y]
        self._metric, self._n_jobs = metric, n_jobs
        self._classes = classes

    def __call__(self, model: Form) -> Score:
        """Return the score of a model."""
        if callable(self._metric):
            ids = model._predictor.top_class(self._input(model), self._n_jobs)
            return Score(_number(self._metric(self._labels, model.labels[ids])), None)
        losses = self._losses(model)
        weight = self.rows.weight
        return Score(float(losses @ weight / weight.sum()), losses)

    def _input(self, model: Form) -> Any:
        return self._texts if isinstance(model, FrozenLabelTree) else self.rows.X

    def _losses(self, model: Form) -> AccumArray:
        ids = self._ids(model)
        X, predictor = self._input(model), model._predictor
        if self._metric == "error":
            wrong: AccumArray = (predictor.top_class(X, self._n_jobs) != ids).astype(ACCUM)
            return wrong
        if self._metric == "log_loss":
            p = predictor.probability_of(X, np.maximum(ids, 0), n_jobs=self._n_jobs)
            loss: AccumArray = -np.log(np.maximum(np.where(ids < 0, 0.0, p), 1e-15))
            return loss
        matched = _TOP.fullmatch(str(self._metric))
        assert matched is not None
        k = min(int(matched[1]), model.n_classes)
        top = predictor.top_k(X, k, self._n_jobs)[0]
        missed: AccumArray = (~np.any(top == ids[:, None], axis=1)).astype(ACCUM)
        return missed

    def _ids(self, model: Form) -> IndexArray:
        """Return the rows' classes as a model numbers them; -1 if it does not know one."""
        if model.n_classes == self._classes.size:
            return self.rows.y
        at = np.minimum(np.searchsorted(model.labels, self._labels), model.n_classes - 1)
        known: IndexArray = np.where(model.labels[at] == self._labels, at, -1)
        return known

    def surely_less(self, score: Score, other: Score, errors: float) -> bool:
        """Return whether a score is lower by so many standard errors of the difference."""
        if score.losses is None or other.losses is None:
            return score.value < other.value
        weight = self.rows.weight
        gain = other.losses - score.losses
        mean = float(gain @ weight / weight.sum())
        spread = float(np.sqrt(np.square(gain) @ np.square(weight)) / weight.sum())
        return mean > errors * spread


def file_bytes(deployed: Any) -> int:
    """Return the bytes of the file of a model; that of a label tree is written to be known."""
    if not isinstance(deployed, FrozenLabelTree):
        return int(deployed.file_bytes)
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            deployed.save(Path(folder, "model"))
            return Path(folder, "model").stat().st_size
    except OSError:  # there is no room for a file
        return deployed.nbytes


class Deployment:
    """What is deployed of a model, and what that costs.

    Parameters
    ----------
    rows : TrainingData
        To time predictions on.
    batch : bool
        Time batches instead of single rows.
    wrap : callable, optional
        From a model of rows to the one that is deployed, such as one of texts.
    samples : sequence, optional
        What that one takes, such as texts; by default rows.
    n_jobs : int
    """

    def __init__(
        self,
        rows: TrainingData,
        *,
        batch: bool,
        wrap: Callable[[Form], Any] | None = None,
        samples: Sequence[Any] | None = None,
        n_jobs: int = 1,
    ) -> None:
        self._wrap = wrap
        self._n_jobs = n_jobs
        self._is_batch = batch
        matrix = as_matrix(rows.X)
        n_rows = min(_TIMED_ROWS, rows.n_rows)
        some = np.unique(np.linspace(0, rows.n_rows - 1, n_rows).astype(int))
        if samples is None:
            self._batch: Any = matrix
            self._single = prepared_rows(matrix[some], some.size)
        else:
            self._batch = list(samples)
            self._single = [(sample,) for sample in samples[:_TIMED_ROWS]]

    def model(self, model: Form) -> Any:
        """Return what is deployed."""
        return model if self._wrap is None else self._wrap(model)

    def n_bytes(self, model: Form) -> int:
        """Return the bytes of its file."""
        return file_bytes(self.model(model))

    def us(self, model: Form, *, careful: bool = False) -> float:
        """Return the microseconds of a prediction.

        With care: in more passes, and by a model that was opened from its file, as others will.
        """
        deployed = self.model(model)
        if not careful or getattr(getattr(deployed, "input", None), "encoder", None) is not None:
            return self._us(deployed, careful)
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                deployed.save(Path(folder, "model"))
                return self._us(load(Path(folder, "model")), careful)
        except OSError:  # there is no room for a file
            return self._us(deployed, careful)

    def _us(self, deployed: Any, careful: bool) -> float:
        if self._is_batch:
            n_rows = len(self._batch) if isinstance(self._batch, list) else self._batch.shape[0]
            predict = lambda: deployed.predict(self._batch, n_jobs=self._n_jobs)  # noqa: E731
            return batch_latency(predict, n_rows, 7 if careful else 3, _CAREFUL_SECONDS).median
        passes = _CAREFUL_PASSES if careful else _QUICK_PASSES
        seconds = _CAREFUL_SECONDS if careful else _QUICK_SECONDS
        return single_latency(deployed.predict_one, self._single, passes, seconds).median

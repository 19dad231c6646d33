"""What the tables say of a fitted tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import Dataset
from benchmarks._report import best_of, stopwatch
from thinleaf.measuring import metrics

COLUMNS = [
    "train error %",
    "test error %",
    "top-5 error %",
    "depth",
    "leaves",
    "mean k",
    "FLOPs",
    "µs a row",
    "MB",
    "fit s",
]
SHORT = ["train error %", "test error %", "depth", "leaves", "mean k", "FLOPs", "µs a row", "fit s"]


def fit(model: Any, data: Dataset) -> tuple[Any, float]:
    """Fit a model on the training part; return it and the seconds that took."""
    with stopwatch() as watch:
        model.fit(data.X_train, data.y_train)
    return model, watch.seconds


def fit_figures(model: Any, data: Dataset) -> dict[str, float]:
    """Fit a model, and return its figures by column."""
    return figures(*fit(model, data), data)


def figures(model: Any, seconds: float, data: Dataset) -> dict[str, float]:
    """Return the figures of a fitted tree by column; µs are of a batch on one thread."""
    size = metrics.summarize(model.tree_)
    top, _ = model.predict_topk(data.X_test, min(5, model.classes_.size))
    train = np.mean(model.predict(data.X_train) != data.y_train)
    batch = best_of(3, lambda: model.predict(data.X_test)) / len(data.y_test)
    values = [
        100 * train,
        100 * np.mean(model.predict(data.X_test) != data.y_test),
        100 * metrics.top_k_error(data.y_test, top),
        size.depth,
        size.n_leaves,
        size.mean_leaf_classes,
        model.mean_flops(data.X_test),
        1e6 * batch,
        model.freeze().nbytes / 1e6,
        seconds,
    ]
    return dict(zip(COLUMNS, values, strict=True))


def mean(runs: list[dict[str, float]], columns: list[str]) -> list[float]:
    """Return the means of some columns over runs."""
    return [float(np.mean([run[column] for run in runs])) for column in columns]


def warm_up(data: Dataset, model: Any) -> None:
    """Compile before anything is timed."""
    few = np.flatnonzero(np.isin(data.y_train, np.unique(data.y_train)[:8]))[:400]
    model.fit(data.X_train[few], data.y_train[few]).predict(data.X_train[few[:2]])

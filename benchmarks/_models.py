"""What the tables say of a tree, as the library measures it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import Dataset, as_split
from thinleaf.measuring.measure import measure
from thinleaf.measuring.systems import Ours

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


def fit_figures(model: Any, data: Dataset) -> dict[str, float]:
    """Fit a model, and return its figures by column; µs are of a batch on one thread."""
    split = as_split(data)
    found = measure(Ours("", model), split)
    values = [
        100 * np.mean(model.predict(split.X_train) != split.y_train),
        100 * found.error,
        100 * found.top_k_error,
        found.depth,
        found.leaves,
        found.mean_leaf_classes,
        found.flops,
        found.batch_us,
        found.bytes / 1e6,
        found.train_seconds,
    ]
    return dict(zip(COLUMNS, values, strict=True))


def mean(runs: list[dict[str, float]], columns: list[str]) -> list[float]:
    """Return the means of some columns over runs."""
    return [float(np.mean([run[column] for run in runs])) for column in columns]


def warm_up(data: Dataset, model: Any) -> None:
    """Compile before anything is timed."""
    few = np.flatnonzero(np.isin(data.y_train, np.unique(data.y_train)[:8]))[:400]
    model.fit(data.X_train[few], data.y_train[few]).predict(data.X_train[few[:2]])

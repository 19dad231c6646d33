"""Rows and labels as users have them: counted, and in words that can be pasted into the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX
from thinleaf.explain.explorer.counts import NodeCounts
from thinleaf.model.frozen import FrozenModel

_MOST_COLUMNS = 100
_MOST_ENTRIES = 40


def count_all(counts: NodeCounts, model: FrozenModel, X: Any, y: Any) -> None:
    """Count rows that a user gives, with or without labels."""
    labels = None if y is None else _listed(y)
    shown = rows_in_words(model, X)
    ids = None
    if labels is not None:
        known = {label: i for i, label in enumerate(model.labels.tolist())}
        ids = np.array([known.get(label, -1) for label in labels], dtype=INDEX)
    counts.add(X, ids, labels, shown)


def _listed(y: Any) -> list[Any]:
    labels: list[Any] = np.asarray(y.to_pylist() if hasattr(y, "to_pylist") else y).tolist()
    return labels


def rows_in_words(
    model: FrozenModel, X: Any, name: Callable[[int], str] | None = None
) -> Sequence[str | Sequence[str] | None] | None:
    """Return how a page shows rows, so that they can be pasted; None of those that are too long.

    Of tables, the cells of each row. None of all if there is no way to show them.

    Parameters
    ----------
    model : FrozenModel
    X : whatever the model takes
    name : callable, optional
        Names features; by default the model's names, or numbers.
    """
    if hasattr(X, "indptr") or hasattr(X, "tocsr"):
        names = model.feature_names
        own = str if names is None else names.__getitem__
        return _sparse_rows(X.tocsr(), name or own)
    if model.takes_texts:
        made = getattr(model, "input", None)
        cells = None if made is None else made.cells(X)
        if cells is not None:
            return list(zip(*cells, strict=True))
        if hasattr(X, "columns") or hasattr(X, "column_names") or isinstance(X, dict):
            return None
        listed = X.to_pylist() if hasattr(X, "to_pylist") else list(X)
        return [sample if isinstance(sample, str) else None for sample in listed]
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or array.shape[1] > _MOST_COLUMNS:
        return [None] * len(array)
    return [", ".join(f"{value:.9g}" for value in row) for row in array.tolist()]


def _sparse_rows(X: Any, name: Callable[[int], str]) -> list[str | None]:
    """Return the entries of each row by name."""
    out: list[str | None] = []
    for begin, end in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        if end - begin > _MOST_ENTRIES:
            out.append(None)
            continue
        pairs = zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True)
        out.append(", ".join(f"{name(i)}:{value:.9g}" for i, value in pairs))
    return out

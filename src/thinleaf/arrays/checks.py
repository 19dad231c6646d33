"""Checks of what users give beside rows: weights, labels, numbers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray


def as_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> AccumArray:
    """Return one finite nonnegative weight a row."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=ACCUM)
    weight = np.asarray(sample_weight, dtype=ACCUM)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), got {weight.shape}")
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity")
    if np.any(weight < 0.0):
        raise ValueError("sample_weight contains negative weights; weights must be at least 0")
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight is zero for every row: nothing to learn from")
    return weight


def class_ids(classes: AnyArray, y: AnyArray) -> IndexArray:
    """Return the position of each label in the sorted ``classes``."""
    try:
        ids = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    except TypeError as error:
        raise ValueError(f"y has labels of another type than those seen in fit: {error}") from error
    unknown = classes[ids] != y
    if np.any(unknown):
        label = y[unknown].tolist()[0]
        raise ValueError(f"y has labels that were not seen in fit, such as {label!r}")
    return ids.astype(INDEX)


def ids_of_rows(classes: AnyArray, y: npt.ArrayLike, n_rows: int) -> IndexArray:
    """Return the class id of one known label a row."""
    ids = class_ids(classes, np.asarray(y))
    if ids.shape != (n_rows,):
        raise ValueError(f"y must have one label a row ({n_rows}), got {ids.shape}")
    return ids


def check_top_k(k: Any, n_classes: int) -> None:
    """Raise ``ValueError`` unless so many best classes can be asked for."""
    whole = isinstance(k, Integral) and not isinstance(k, bool)
    if not whole or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer in 1..{n_classes}, got {k!r}")

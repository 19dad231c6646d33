"""Checks of what users give: weights, labels, numbers, columns; and of what files hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray


def require(condition: bool, message: str, error: type[Exception] = ValueError) -> None:
    """Raise an error unless a condition holds."""
    if not condition:
        raise error(message)


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_real(values: Any, name: str = "X") -> None:
    """Raise ``ValueError`` if an array, a sparse matrix or a list has complex numbers."""
    if isinstance(values, list | tuple):
        with suppress(ValueError):  # ragged: others say so
            values = np.asarray(values)
    if getattr(getattr(values, "dtype", None), "kind", None) == "c":
        raise ValueError(f"Complex data not supported: {name} has complex numbers, give real ones")


def check_columns(X: Any, names: Sequence[str] | None) -> None:
    """Raise ``ValueError`` unless the columns of a data frame are those of the training.

    Anything with ``columns`` that are all strings is a data frame; other input has no names.
    """
    columns = getattr(X, "columns", None)
    if names is None or columns is None:
        return
    given = list(columns)
    if given == names or not all(isinstance(name, str) for name in given):
        return
    missing, unknown = _without(names, given), _without(given, names)
    problems = [f"missing: {_listed(missing)}"] if missing else []
    problems += [f"unknown: {_listed(unknown)}"] if unknown else []
    if not problems and len(given) != len(names):
        problems = [f"there are {len(given)}, not {len(names)}"]
    elif not problems:
        at = next(i for i, name in enumerate(given) if name != names[i])
        problems = [f"in another order: column {at} is {given[at]!r}, and was {names[at]!r}"]
    raise ValueError(
        "the columns of X must have the feature names of the training, in their order; "
        + "; ".join(problems)
    )


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def _listed(names: list[str]) -> str:
    more = ", …" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more


def as_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> AccumArray:
    """Return one finite nonnegative weight a row."""
    if sample_weight is None:
        return np.ones(n_rows, dtype=ACCUM)
    check_real(sample_weight, "sample_weight")
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
    if not is_whole(k) or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer in 1..{n_classes}, got {k!r}")

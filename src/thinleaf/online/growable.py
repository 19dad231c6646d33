"""Models that learn: arrays that grow when kernels ask for room, and that can be stored.

Kernels fill arrays; the classes of this package own them. A class holds one nested tuple of arrays,
its ``state``, and everything that learning changes is in there: two models with equal states go on
alike. States become flat dictionaries of arrays to be stored, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AccumArray, AnyArray, IndexArray, OffsetArray
from thinleaf.arrays.rows import Rows
from thinleaf.online.linear_models import Models
from thinleaf.online.scaled_rows import Scales, Stream
from thinleaf.online.softmax_form import Unrolled
from thinleaf.online.tables import (
    EMPTY,
    Contents,
    Tables,
    contents,
    enlarged,
    first_owners,
    padded,
    tables_of,
)

State = TypeVar("State")


class OnlineModel(Protocol):
    """What estimators need of a model."""

    state: Any

    def trimmed(self, n_classes: int) -> Any:
        """Return the state without room for what is to come."""

    def check(self, n_classes: int) -> None:
        """Raise ``ValueError`` unless kernels may work with a state that was stored."""

    def unrolled(self, n_classes: int) -> Unrolled:
        """Return the tree that predicts as this model does now."""

    def learn(self, stream: Stream, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned."""

    def predict(self, X: Rows) -> IndexArray:
        """Return the class of each row."""

    def shortlists(self, X: Rows) -> tuple[IndexArray, AccumArray]:
        """Return the node that each row reaches, and the scores of the node's candidates."""

    def candidates(self, node: int) -> IndexArray:
        """Return the classes that a node's scores are of."""

    def outside(self, node: int) -> float:
        """Return the estimated probability that the class is none of the candidates."""


def learn_in_pieces(
    step: Callable[[int, IndexArray, OffsetArray], int],
    enlarge: Callable[..., None],
    n_rows: int,
    n_needs: int,
) -> IndexArray:
    """Let a kernel learn rows, and make room whenever it stops for want of it.

    Parameters
    ----------
    step : callable
        Learns from a place on; fills in predictions and what it needs; returns where it stopped.
    enlarge : callable
        Makes room: takes the ``n_needs`` numbers that ``step`` has filled in.
    """
    predicted = np.empty(n_rows, dtype=INDEX)
    needed = np.zeros(n_needs, dtype=OFFSET)
    done = 0
    while True:
        done = step(done, predicted, needed)
        if done == n_rows:
            return predicted
        enlarge(*needed.tolist())


def with_models(models: Models, n_models: int) -> Models:
    """Return at least so many models; new ones score everything zero."""
    if n_models <= models.bias.shape[0]:
        return models
    n_models = max(n_models, 2 * models.bias.shape[0])
    models = models._replace(bias=padded(models.bias, n_models, 0))
    if not isinstance(models.weights, Tables):
        models = models._replace(weights=padded(models.weights, n_models, 0))
    return models


def with_slots(models: Models, n_slots: int, n_extra: int = 0, extra_slots: int = 0) -> Models:
    """Return models with room for weights, and for those of extra features."""
    weights = models.weights
    if isinstance(weights, Tables):
        weights = enlarged(weights, 0, n_slots)
    return models._replace(weights=weights, extra=enlarged(models.extra, n_extra, extra_slots))


def first_models(models: Models, n_models: int, n_extra: int) -> Models:
    """Return a copy without models, and owners of extra features, beyond these numbers."""
    weights = models.weights
    if not isinstance(weights, Tables):
        weights = weights[:n_models]
    return Models(models.bias[:n_models], weights, first_owners(models.extra, n_extra))


# -- storing ---------------------------------------------------------------------------------------


def flattened(state: Any, prefix: str = "") -> dict[str, AnyArray]:
    """Return the arrays of a nested tuple by dotted name, and the contents of its tables."""
    out: dict[str, AnyArray] = {}
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray):
            out[prefix + name] = value.copy()
        else:
            if isinstance(value, Tables):
                value = contents(value, value.owners.shape[0])
            out |= flattened(value, f"{prefix}{name}.")
    return out


def restored(like: State, arrays: Mapping[str, AnyArray], prefix: str = "") -> State:
    """Return a nested tuple like ``like``, with the arrays that :func:`flattened` has made.

    Types and numbers of axes are checked here; sizes and values are the model's to check.
    """
    parts: dict[str, Any] = {}
    for name, value in like._asdict().items():  # type: ignore[attr-defined]
        if isinstance(value, np.ndarray):
            parts[name] = checked(prefix + name, value, arrays)
        elif isinstance(value, Tables):
            held = restored(contents(value, 0), arrays, f"{prefix}{name}.")
            check_contents(f"{prefix}{name}", held, value.values.shape[1])
            parts[name] = tables_of(held)
        else:
            parts[name] = restored(value, arrays, f"{prefix}{name}.")
    return like._replace(**parts)  # type: ignore[attr-defined, no-any-return]


def checked(name: str, like: AnyArray, arrays: Mapping[str, AnyArray]) -> AnyArray:
    """Return a copy of a stored array, which must have the type and the axes of ``like``."""
    if name not in arrays:
        raise ValueError(f"the stored state lacks the array {name!r}")
    array = arrays[name]
    if array.dtype != like.dtype or array.ndim != like.ndim:
        raise ValueError(
            f"the stored array {name!r} is {array.dtype} with {array.ndim} dimensions, "
            f"not {like.dtype} with {like.ndim}"
        )
    return np.array(array, order="C")


def check_contents(name: str, held: Contents, width: int) -> None:
    """Raise ``ValueError`` unless tables can be made of some contents."""
    ptr, keys = held.ptr, held.keys
    require(ptr.size > 0 and ptr[0] == 0 and ptr[-1] == keys.size, f"{name} does not fit its keys")
    require(bool(np.all(ptr[:-1] <= ptr[1:])), f"{name}.ptr must rise")
    require(held.values.shape == (keys.size, width), f"{name}.values does not fit its keys")
    rises = np.diff(keys) > 0
    starts = ptr[1:-1]
    rises[starts[(starts > 0) & (starts < keys.size)] - 1] = True
    require(bool(np.all(keys >= 0) and np.all(rises)), f"{name}.keys must rise")


def check_tables(name: str, tables: Tables, n_owners: int, n_keys: int) -> None:
    """Raise ``ValueError`` unless there are so many owners, whose keys are below ``n_keys``."""
    require(tables.owners.shape[0] == n_owners, f"{name} must have {n_owners} owners")
    require(int(tables.keys.max(initial=EMPTY)) < n_keys, f"a key of {name} is out of range")


def check_models(name: str, models: Models, n_models: int, n_features: int, n_extra: int) -> None:
    """Raise ``ValueError`` unless models have these sizes."""
    require(models.bias.shape == (n_models, 2), f"{name} must be {n_models} models")
    if isinstance(models.weights, Tables):
        check_tables(f"{name}.weights", models.weights, n_features, n_models)
    else:
        fits = models.weights.shape == (n_models, 2, n_features)
        require(fits, f"{name}.weights must be of {n_features} features")
    check_tables(f"{name}.extra", models.extra, n_extra, n_models)


def check_scales(scales: Scales, n_features: int) -> None:
    """Raise ``ValueError`` unless scales are those of so many features."""
    require(scales.largest.shape == (n_features,), f"scales must be of {n_features} features")
    require(scales.norm.shape == (2,), "scales.norm must have two entries")


def require(condition: bool, message: str) -> None:
    """Raise ``ValueError`` unless a condition of stored states holds."""
    if not condition:
        raise ValueError(f"the stored state is damaged: {message}")

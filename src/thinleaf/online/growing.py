"""Models that learn: arrays that grow when kernels ask for room, and that can be stored.

Kernels fill arrays; the classes of this package own them. A class holds one nested tuple of arrays,
its ``state``, and everything that learning changes is in there: two models with equal states go on
alike. States become flat dictionaries of arrays to be stored, and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from thinleaf._dtypes import AccumArray, AnyArray, IndexArray
from thinleaf.kernels.rows import Rows
from thinleaf.online.linear import Models
from thinleaf.online.rows import Stream
from thinleaf.online.tables import Tables, enlarged, padded

State = TypeVar("State")


class OnlineModel(Protocol):
    """What estimators need of a model."""

    state: Any

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


def flattened(state: Any, prefix: str = "") -> dict[str, AnyArray]:
    """Return copies of the arrays of a nested tuple, by dotted name."""
    out: dict[str, AnyArray] = {}
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray):
            out[prefix + name] = value.copy()
        else:
            out |= flattened(value, f"{prefix}{name}.")
    return out


def restored(like: State, arrays: Mapping[str, AnyArray], prefix: str = "") -> State:
    """Return a nested tuple like ``like``, with the arrays that :func:`flattened` has made."""
    parts = {}
    for name, value in like._asdict().items():  # type: ignore[attr-defined]
        if isinstance(value, np.ndarray):
            parts[name] = _checked(prefix + name, value, arrays)
        else:
            parts[name] = restored(value, arrays, f"{prefix}{name}.")
    return like._replace(**parts)  # type: ignore[attr-defined, no-any-return]


def _checked(name: str, like: AnyArray, arrays: Mapping[str, AnyArray]) -> AnyArray:
    if name not in arrays:
        raise ValueError(f"the stored state lacks the array {name!r}")
    array = np.ascontiguousarray(arrays[name])
    if array.dtype != like.dtype or array.ndim != like.ndim:
        raise ValueError(
            f"the stored array {name!r} is {array.dtype} with {array.ndim} dimensions, "
            f"not {like.dtype} with {like.ndim}"
        )
    return array.copy() if array is arrays[name] else array

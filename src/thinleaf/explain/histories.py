"""What figures are drawn from: histories, trees and parameters of models, however they came.

Models are known by their attributes alone: this package does not import the estimators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from thinleaf._dtypes import AccumArray
from thinleaf.model.tree import Tree

History: TypeAlias = Sequence[Mapping[str, Any]]


class HasHistory(Protocol):
    """A fitted model that wrote down its rounds or its sweeps."""

    @property
    def history_(self) -> History:
        """One entry a round, or one a sweep."""


class AdaptiveTree(HasHistory, Protocol):
    """A fitted :class:`~thinleaf.AdaptiveSoftmaxTreeClassifier`, or what looks like one."""

    @property
    def tree_(self) -> Tree:
        """The tree that was kept."""

    @property
    def contraction(self) -> float:
        """α."""

    @property
    def tolerance(self) -> float:
        """ρ."""

    @property
    def leaf_l1(self) -> float | None:
        """μ."""

    @property
    def initial_contraction(self) -> float | None:
        """α₀."""

    @property
    def initial_depth(self) -> int | None:
        """Δ₀."""

    @property
    def expansion_depth(self) -> int:
        """Of a replacement."""


Models: TypeAlias = HasHistory | History | Mapping[str, HasHistory | History]


@dataclass(frozen=True)
class Course:
    """How a training went, sweep by sweep.

    Attributes
    ----------
    train : list of float
        Error of each sweep.
    held : list of (int, float)
        Sweeps after which the validation error was measured, from 1.
    expansions : list of (int, int)
        The last sweep before each expansion, with the number of leaves that were replaced.
    """

    train: list[float]
    held: list[tuple[int, float]]
    expansions: list[tuple[int, int]]


def course_of(history: History) -> Course:
    """Return the sweeps of a history, be it of rounds or of sweeps."""
    course = Course([], [], [])
    for entry in history:
        if entry.get("accepted"):
            course.expansions.append((len(course.train), entry["accepted"]))
        # an entry of a fixed tree is itself a sweep
        course.train.extend(sweep["train_error"] for sweep in entry.get("sweeps", [entry]))
        if entry["validation_error"] is not None:
            course.held.append((len(course.train), entry["validation_error"]))
    return course


def histories_of(models: Models) -> dict[str, History]:
    """Return the histories by label; a single one has the empty label."""
    named = models if isinstance(models, Mapping) else {"": models}
    if not named:
        raise ValueError("there is nothing to draw: give at least one fitted model")
    return {label: _history(label, model) for label, model in named.items()}


def _history(label: str, model: HasHistory | History) -> History:
    history = getattr(model, "history_", model)
    if not isinstance(history, Sequence):
        raise ValueError(f"{_name(label)} is not fitted: it has no history_")
    if not history:
        raise ValueError(f"the history of {_name(label)} is empty")
    if not isinstance(history[0], Mapping):
        raise ValueError("give several models as a dict of label and model")
    return history


def require_rounds(label: str, history: History) -> None:
    """Raise ValueError unless the history is an adaptive tree's."""
    if "sweeps" not in history[0]:
        raise ValueError(
            f"the history of {_name(label)} is one of sweeps: only an adaptive tree has rounds"
        )


def require_validation(held: Mapping[str, bool]) -> None:
    """Raise ValueError unless every model has a validation error."""
    for label, has_validation in held.items():
        if not has_validation:
            raise ValueError(
                f"{_name(label)} has no validation error: fit it with validation_fraction, or pass "
                "validation=False"
            )


def tree_of(model: AdaptiveTree) -> Tree:
    """Return the tree of a model, or raise ValueError if it is not fitted."""
    tree: Tree | None = getattr(model, "tree_", None)
    if tree is None:
        raise ValueError(f"{type(model).__name__} is not fitted: it has no tree_")
    return tree


def most_classes(model: AdaptiveTree, depths: AccumArray) -> AccumArray:
    """Return how many classes a leaf may hold at some depths.

    Pruning only lifts leaves, so one at depth d was expanded at least ⌈(d - Δ₀)/Δ̂⌉ times.
    """
    history = _history("", model)
    require_rounds("", history)
    widest = float(max(entry["max_leaf_classes"] for entry in history))
    if model.initial_contraction is not None:
        widest = max(1.0, float(np.floor(model.initial_contraction * model.tree_.n_classes + 1e-9)))
    first = history[0]["depth"] if model.initial_depth is None else model.initial_depth
    n_expansions = np.ceil(np.maximum(depths - first, 0) / model.expansion_depth)
    limits: AccumArray = np.maximum(widest * model.contraction**n_expansions, 1.0)
    return limits


def _name(label: str) -> str:
    return repr(label) if label else "the model"

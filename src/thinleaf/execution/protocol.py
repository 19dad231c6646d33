"""The executor protocol, and its simplest implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Applies a pure function to independent items.

    The result must not depend on the executor: no shared random state, no order of completion. A
    single item runs in the calling thread, so the function may itself call ``map``.
    """

    n_workers: int

    def map(
        self, function: Callable[[T], R], items: Sequence[T], costs: Sequence[float] | None = None
    ) -> list[R]:
        """Return ``[function(item) for item in items]``; costly items may start first."""
        ...


class SerialExecutor:
    """Runs everything in the calling thread."""

    n_workers = 1

    def map(
        self, function: Callable[[T], R], items: Sequence[T], costs: Sequence[float] | None = None
    ) -> list[R]:
        """Apply ``function`` to each item in turn."""
        return [function(item) for item in items]

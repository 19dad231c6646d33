"""The executor protocol, and its simplest implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Shared(Generic[T]):
    """A handle of something that many tasks read; this one is the thing itself.

    Attributes
    ----------
    value : object
        What is shared. Nobody may change it in place.
    """

    value: T

    def changed(self, value: T, patch: Callable[[T, list[Any]], Any], change: Any) -> Shared[T]:
        """Return the handle of what has become of the value by a small change.

        Parameters
        ----------
        value : object
            The new value.
        patch : callable
            A function of a module. Where the old value already is, only the change is sent, and
            tasks get ``patch(old value, [change, ...])``, with all changes since the old value was
            sent; so that must serve them as the new value does.
        change : object
        """
        return Shared(value)


class Executor(Protocol):
    """Applies a pure function to independent items.

    The result must not depend on the executor: no shared random state, no order of completion.

    Attributes
    ----------
    n_workers : int
        Items that run at the same time.
    local : Executor
        The workers of this process, for work that is cheaper than sending it. Any function will do
        for its ``map``, and tasks may write to arrays of the caller.
    """

    @property
    def n_workers(self) -> int:
        """Items that run at the same time."""

    @property
    def local(self) -> Executor:
        """The workers of this process."""

    def share(self, value: T) -> Shared[T]:
        """Return a handle of something that many tasks read.

        It is sent once, however often it is shared, and forgotten when it is no longer used.
        """

    def map(
        self,
        function: Callable[..., R],
        items: Sequence[Any],
        costs: Sequence[float] | None = None,
        *,
        shared: Sequence[Shared[Any]] = (),
        coarse: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> list[R]:
        """Return ``[function(*values of shared, item) for item in items]``.

        A single item runs in the calling thread.

        Parameters
        ----------
        function : callable
            A function of a module, or a ``partial`` of one with small arguments; it may run in
            another process.
        items : sequence
            Small values.
        costs : sequence of float, optional
            Costly items start first.
        shared : sequence of Shared
            What every item reads.
        coarse : bool
            Whether an item is much work, such as a tree, so that it may go anywhere.
        stop : callable, optional
            Asked before items begin. Once it is true, none does: the result is None.
        """


class SerialExecutor:
    """Runs everything in the calling thread."""

    n_workers = 1

    @property
    def local(self) -> Executor:
        """Itself."""
        return self

    def share(self, value: T) -> Shared[T]:
        """Return a handle: nothing is sent."""
        return Shared(value)

    def map(
        self,
        function: Callable[..., R],
        items: Sequence[Any],
        costs: Sequence[float] | None = None,
        *,
        shared: Sequence[Shared[Any]] = (),
        coarse: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> list[R]:
        """Apply ``function`` to each item in turn."""
        values = [handle.value for handle in shared]
        if stop is not None:
            nothing: Any = None
            return [nothing if stop() else function(*values, item) for item in items]
        return [function(*values, item) for item in items]

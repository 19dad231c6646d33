"""Threads: the kernels release the GIL, so node problems share the data without copies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from thinleaf.execution.protocol import Executor, SerialExecutor, Shared

R = TypeVar("R")
T = TypeVar("T")


class ThreadedExecutor:
    """Runs items in a pool of threads, the most costly first."""

    def __init__(self, pool: ThreadPoolExecutor, n_workers: int) -> None:
        self._pool = pool
        self.n_workers = n_workers

    @property
    def local(self) -> Executor:
        """Itself."""
        return self

    def share(self, value: T) -> Shared[T]:
        """Return a handle: threads have the same memory."""
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
        """Apply ``function`` to all items; results come back in the order of the items."""
        if len(items) < 2:
            return SerialExecutor().map(function, items, shared=shared, stop=stop)
        values = [handle.value for handle in shared]

        def run(item: Any) -> Any:
            return None if stop is not None and stop() else function(*values, item)

        order = sorted(range(len(items)), key=lambda i: -costs[i]) if costs else range(len(items))
        futures = {i: self._pool.submit(run, items[i]) for i in order}
        try:
            return [futures[i].result() for i in range(len(items))]
        except BaseException:  # an error or Ctrl-C: what has not begun need not
            for future in futures.values():
                future.cancel()
            raise


def n_workers_of(n_jobs: int | None) -> int:
    """Return the workers that scikit-learn's ``n_jobs`` means: None is 1, -1 is all cores."""
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: use 1 for one core, -1 for all")
    cores = os.cpu_count() or 1
    return 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@contextmanager
def threads(n_workers: int) -> Iterator[Executor]:
    """Yield an executor of this process, which ends with the block."""
    if n_workers == 1:
        yield SerialExecutor()
        return
    with ThreadPoolExecutor(n_workers, thread_name_prefix="thinleaf") as pool:
        yield ThreadedExecutor(pool, n_workers)

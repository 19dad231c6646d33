"""Threads: the kernels release the GIL, so node problems share the data without copies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_limits

from thinleaf.execution.protocol import Executor, SerialExecutor

T = TypeVar("T")
R = TypeVar("R")


class ThreadedExecutor:
    """Runs items in a pool of threads, the most costly first."""

    def __init__(self, pool: ThreadPoolExecutor, n_workers: int) -> None:
        self._pool = pool
        self.n_workers = n_workers

    def map(
        self, function: Callable[[T], R], items: Sequence[T], costs: Sequence[float] | None = None
    ) -> list[R]:
        """Apply ``function`` to all items; results come back in the order of the items."""
        if len(items) < 2:
            return [function(item) for item in items]
        order = sorted(range(len(items)), key=lambda i: -costs[i]) if costs else range(len(items))
        futures = {i: self._pool.submit(function, items[i]) for i in order}
        try:
            return [futures[i].result() for i in range(len(items))]
        except BaseException:  # an error or Ctrl-C: what has not begun need not
            for future in futures.values():
                future.cancel()
            raise


@contextmanager
def executor_for(n_jobs: int | None) -> Iterator[Executor]:
    """Yield the executor for scikit-learn's ``n_jobs``: None is 1, -1 is all cores.

    Linear algebra inside runs on one thread, whatever ``n_jobs`` is: parallelism comes from the
    nodes, and sums of matrix products do not depend on the number of workers.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: use 1 for one core, -1 for all")
    cores = os.cpu_count() or 1
    n_workers = 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
    with threadpool_limits(limits=1):
        if n_workers == 1:
            yield SerialExecutor()
            return
        with ThreadPoolExecutor(n_workers, thread_name_prefix="thinleaf") as pool:
            yield ThreadedExecutor(pool, n_workers)

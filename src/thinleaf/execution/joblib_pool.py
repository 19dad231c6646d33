"""joblib: processes of this machine, or whatever else its backends reach, such as Dask.

Each task carries all that it reads, so only coarse work goes there: trees of a forest, expansions.
The problems of single nodes stay with the threads of this process.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from thinleaf._version import __version__
from thinleaf.execution.batches import into_batches
from thinleaf.execution.parcels import Outcome, Parcel, pack, unpack, work
from thinleaf.execution.protocol import Executor, Shared
from thinleaf.execution.threads import n_workers_of, threads

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Joblib:
    """Opens executors on a backend of joblib.

    Parameters
    ----------
    backend : str, optional
        By default what ``joblib.parallel_config`` says, else ``"loky"``: processes.
    """

    backend: str | None = None

    @contextmanager
    def open(self, n_jobs: int | None) -> Iterator[Executor]:
        """Yield an executor; ``n_jobs=None`` is what ``joblib.parallel_config`` says, else 1."""
        import joblib

        if n_jobs is not None:
            n_workers_of(n_jobs)
        options = {} if self.backend is None else {"backend": self.backend}
        with joblib.parallel_config(**options):
            n_workers = max(1, int(joblib.effective_n_jobs(n_jobs)))
        with threads(min(n_workers, os.cpu_count() or 1)) as local:
            yield JoblibExecutor(n_workers, local, options)


class JoblibExecutor:
    """Runs coarse items in other processes, and all others in threads of this one.

    Attributes
    ----------
    n_workers : int
    local : Executor
    """

    def __init__(self, n_workers: int, local: Executor, options: dict[str, str]) -> None:
        self.n_workers = n_workers
        self.local = local
        self._options = options

    def __deepcopy__(self, memo: Any) -> JoblibExecutor:
        """Return itself: a copy of an estimator runs at the same place."""
        return self

    def share(self, value: T) -> Shared[T]:
        """Return a handle: what is shared goes with each task, large arrays as files."""
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
        if not coarse or self.n_workers == 1 or len(items) < 2:
            return self.local.map(function, items, costs, shared=shared, stop=stop)
        import joblib

        pickler = _pickler()
        parcels = [pack(handle.value, pickler) for handle in shared]
        batches = into_batches(len(items), costs, self.n_workers)
        begun: list[list[int]] = []

        def tasks() -> Iterator[Any]:
            for batch in batches:
                if stop is not None and stop():
                    return
                begun.append(batch)
                some = pack((function, [items[i] for i in batch]), pickler)
                yield joblib.delayed(work)(__version__, [1] * len(parcels), some, *parcels)

        pool = joblib.Parallel(self.n_workers, batch_size=1, **self._options)
        done: list[Parcel] = pool(tasks())
        results: list[Any] = [None] * len(items)
        for batch, parcel in zip(begun, done, strict=True):
            outcome: Outcome = unpack(parcel, copy=True)
            if outcome.failure is not None:
                outcome.failure.raise_here("a worker of joblib")
            for i, result in zip(batch, outcome.results, strict=True):
                results[i] = result
        return results


def _pickler() -> type[Any]:
    """Return what also pickles functions of no module; joblib has it within or beside it."""
    for module in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            found: type[Any] = import_module(module).Pickler
        except ImportError:
            continue
        return found
    return pickle.Pickler

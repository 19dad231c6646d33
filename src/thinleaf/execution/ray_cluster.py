"""Ray: tasks on the workers of a cluster, or of this machine; needs the extra ``ray``.

Tasks have no state, so a worker that dies costs its tasks and nothing else: Ray does them again.
Results are copied out of the object store and what is shared is forgotten with the last use of it,
so nothing stays there.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from thinleaf._version import __version__
from thinleaf.execution.batches import into_batches
from thinleaf.execution.parcels import Outcome, Parcel, n_bytes, pack, unpack, work
from thinleaf.execution.protocol import Executor, SerialExecutor, Shared
from thinleaf.execution.threads import n_workers_of, threads

R = TypeVar("R")
T = TypeVar("T")

_PENDING_PER_WORKER = 2
"""Tasks that are sent before others have ended: one that runs, and one that waits for it."""


@dataclass(frozen=True)
class Ray:
    """Opens executors on a Ray cluster.

    If the process is connected to Ray already, that connection is used and left as it is. Else it
    is opened with the fit and closed after it.

    Parameters
    ----------
    address : str, optional
        Of the cluster that this machine is part of, as ``ray.init`` takes it: ``"auto"``, or that
        of the head. By default the environment variable ``RAY_ADDRESS``, else Ray is
        started on this machine alone.
    retries : int
        How often a task is done again because its worker or its machine was lost.

    Examples
    --------
    ``SoftmaxTreeClassifier(executor=Ray("auto"))``; ``executor="ray"`` is ``Ray()``.
    """

    address: str | None = None
    retries: int = 20

    @contextmanager
    def open(self, n_jobs: int | None) -> Iterator[Executor]:
        """Yield an executor of ``n_jobs`` workers; None and -1 are all cores of the cluster."""
        try:
            import ray
        except ImportError as error:
            raise ModuleNotFoundError(
                "executor='ray' needs Ray: pip install 'thinleaf[ray]'", name="ray"
            ) from error
        wanted = None if n_jobs in (None, -1) else n_workers_of(n_jobs)
        opened = not ray.is_initialized()
        if opened:
            self._connect(ray, wanted)
        try:
            cores = int(ray.cluster_resources().get("CPU", 1))
            n_workers = wanted or max(cores, 1)
            with threads(min(n_workers, os.cpu_count() or 1)) as local:
                yield RayExecutor(ray, n_workers, local, self.retries)
        finally:
            if opened:
                ray.shutdown()

    def _connect(self, ray: Any, n_workers: int | None) -> None:
        address = self.address or os.environ.get("RAY_ADDRESS")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if address is not None:
            try:
                ray.init(address=address, **quiet)
            except ConnectionError as error:
                raise ConnectionError(
                    f"cannot connect to the Ray cluster at {address!r}, which wants "
                    f"RAY_AUTH_MODE=token if it was started with tokens: {error}"
                ) from error
        else:
            # more workers than cores are of use to nobody, but may be asked for
            ray.init(num_cpus=n_workers, include_dashboard=False, **quiet)


@dataclass
class Traffic:
    """What one ``map`` has sent, and how long it took.

    Attributes
    ----------
    function : str
    n_tasks : int
    shared_bytes : int
        Of values and changes that were sent since the map before.
    sent_bytes, returned_bytes : int
        With all tasks: items, and results.
    seconds : list of float
        Of each item, in its worker.
    elapsed : float
        Seconds from the first task to the last result.
    """

    function: str
    n_tasks: int
    shared_bytes: int = 0
    sent_bytes: int = 0
    returned_bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    elapsed: float = 0.0


@dataclass(frozen=True)
class _Sent:
    """Where a value is: it in one object, and changes to it in others."""

    objects: tuple[Any, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class _Handle(Shared[T]):
    """A value that is in the object store."""

    sent: _Sent
    executor: RayExecutor

    def changed(self, value: T, patch: Callable[[T, list[Any]], Any], change: Any) -> Shared[T]:
        """Send the change alone, as long as changes are less than the value."""
        return self.executor.share_change(self, value, patch, change)


class RayExecutor:
    """Runs items as tasks of Ray, small ones together, costly ones first.

    Attributes
    ----------
    n_workers : int
    local : Executor
        Threads of this process.
    traffic : list of Traffic
        Of the last maps, at the most ten thousand.
    """

    def __init__(self, ray: Any, n_workers: int, local: Executor, retries: int) -> None:
        self.n_workers = n_workers
        self.local = local
        self.traffic: deque[Traffic] = deque(maxlen=10_000)
        self._ray = ray
        self._task = ray.remote(num_cpus=1, max_retries=retries)(work)
        self._known: dict[int, tuple[weakref.ref[Any], _Sent]] = {}
        self._shared_bytes = 0

    def __deepcopy__(self, memo: Any) -> RayExecutor:
        """Return itself: a copy of an estimator runs at the same place."""
        return self

    def __reduce__(self) -> Any:
        """Refuse to leave the process."""
        raise TypeError(
            "an open RayExecutor stays in its process: give what leaves it executor='ray'"
        )

    # -- sharing -----------------------------------------------------------------------------------

    def share(self, value: T) -> Shared[T]:
        """Return a handle of a value that is in the object store as long as it is anywhere."""
        known = self._known.get(id(value))
        sent = self._put(value) if known is None else known[1]
        return self._keep(value, sent)

    def share_change(
        self,
        old: _Handle[T],
        value: T,
        patch: Callable[[T, list[Any]], Any],
        change: Any,
    ) -> Shared[T]:
        """Return a handle of a value that differs from another by a change."""
        parcel = pack((patch, change), self._ray.cloudpickle.Pickler)
        objects, sizes = old.sent.objects, (*old.sent.sizes, n_bytes(parcel))
        if sum(sizes[1:]) > sizes[0]:
            return self.share(value)
        self._shared_bytes += sizes[-1]
        return self._keep(value, _Sent((*objects, self._ray.put(parcel)), sizes))

    def _put(self, value: Any) -> _Sent:
        parcel = pack(value, self._ray.cloudpickle.Pickler)
        self._shared_bytes += n_bytes(parcel)
        return _Sent((self._ray.put(parcel),), (n_bytes(parcel),))

    def _keep(self, value: T, sent: _Sent) -> Shared[T]:
        """Remember where a value is, until it is gone."""
        key = id(value)
        try:
            here = weakref.ref(value, lambda _: self._known.pop(key, None))
        except TypeError:  # such as a tuple
            return _Handle(value, sent, self)
        self._known[key] = (here, sent)
        return _Handle(value, sent, self)

    # -- tasks -------------------------------------------------------------------------------------

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
        handles = [h if isinstance(h, _Handle) else self.share(h.value) for h in shared]
        counts = [len(handle.sent.objects) for handle in handles]  # type: ignore[attr-defined]
        objects = [o for handle in handles for o in handle.sent.objects]  # type: ignore[attr-defined]
        waiting = deque(into_batches(len(items), costs, self.n_workers))
        traffic = Traffic(_name(function), len(waiting), self._shared_bytes)
        self._shared_bytes = 0
        began = time.perf_counter()
        running: dict[Any, list[int]] = {}
        results: list[Any] = [None] * len(items)
        try:
            while waiting or running:
                if stop is not None and stop():
                    waiting.clear()
                while waiting and len(running) < _PENDING_PER_WORKER * self.n_workers:
                    batch = waiting.popleft()
                    some = [items[i] for i in batch]
                    parcel = pack((function, some), self._ray.cloudpickle.Pickler)
                    traffic.sent_bytes += n_bytes(parcel)
                    task = self._task.remote(__version__, counts, parcel, *objects)
                    running[task] = batch
                for task in self._ended(running):
                    batch = running.pop(task)
                    outcome = self._outcome(task, traffic)
                    for i, result in zip(batch, outcome.results, strict=True):
                        results[i] = result
        except BaseException:  # an error or Ctrl-C: nobody waits for the others to end
            for task in running:
                self._ray.cancel(task, force=True)
            raise
        traffic.elapsed = time.perf_counter() - began
        self.traffic.append(traffic)
        return results

    def _ended(self, running: dict[Any, list[int]]) -> list[Any]:
        """Wait until some tasks have ended, and return them."""
        if not running:
            return []
        tasks = list(running)
        first, others = self._ray.wait(tasks, num_returns=1)
        if not others:
            return list(first)
        more, _ = self._ray.wait(others, num_returns=len(others), timeout=0)
        return [*first, *more]

    def _outcome(self, task: Any, traffic: Traffic) -> Outcome:
        try:
            parcel: Parcel = self._ray.get(task)
        except (
            self._ray.exceptions.WorkerCrashedError,
            self._ray.exceptions.NodeDiedError,
            self._ray.exceptions.OutOfMemoryError,
            self._ray.exceptions.ObjectLostError,
        ) as error:
            raise ChildProcessError(
                "a task was lost again and again: its worker was killed, perhaps because memory "
                "ran out. Give each worker more of it: fewer workers a machine, or a smaller n_jobs"
            ) from error
        traffic.returned_bytes += n_bytes(parcel)
        outcome: Outcome = unpack(parcel, copy=True)
        if outcome.failure is not None:
            outcome.failure.raise_here("a worker of Ray")
        traffic.seconds += outcome.seconds
        return outcome


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of that which is called with some arguments given."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)

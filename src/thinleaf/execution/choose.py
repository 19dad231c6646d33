"""Which executor a fit gets, by the words of its estimator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol, TypeAlias

from threadpoolctl import threadpool_limits

from thinleaf.execution.joblib_pool import Joblib
from thinleaf.execution.protocol import Executor
from thinleaf.execution.ray_cluster import Ray
from thinleaf.execution.threads import n_workers_of, threads


class Engine(Protocol):
    """What opens an executor for the time of a fit, such as :class:`Ray`."""

    def open(self, n_jobs: int | None) -> AbstractContextManager[Executor]:
        """Return a context with the executor for scikit-learn's ``n_jobs``."""


EngineName: TypeAlias = Literal["threads", "ray", "joblib"]
ExecutorChoice: TypeAlias = EngineName | Engine | Executor
"""What the parameter ``executor`` of an estimator may be."""


@contextmanager
def executor_for(
    n_jobs: int | None, executor: ExecutorChoice | None = "threads"
) -> Iterator[Executor]:
    """Yield the executor that an estimator asks for; None is threads.

    Linear algebra inside runs on one thread, whatever ``n_jobs`` is: parallelism comes from the
    nodes, and sums of matrix products do not depend on the number of workers.
    """
    context: AbstractContextManager[Executor]
    with threadpool_limits(limits=1):
        if executor is None or executor == "threads":
            context = threads(n_workers_of(n_jobs))
        elif executor == "ray":
            context = Ray().open(n_jobs)
        elif executor == "joblib":
            context = Joblib().open(n_jobs)
        elif hasattr(executor, "open"):
            context = executor.open(n_jobs)
        elif hasattr(executor, "share") and hasattr(executor, "map"):
            yield executor
            return
        else:
            raise ValueError(
                "executor must be 'threads', 'ray', 'joblib', or an object with the methods of "
                f"thinleaf.execution.Executor, got {executor!r}"
            )
        with context as found:
            yield found

"""Where independent problems run: one protocol (share, map), interchangeable executors."""

from thinleaf.execution.choose import Engine, ExecutorChoice, executor_for
from thinleaf.execution.joblib_pool import Joblib
from thinleaf.execution.protocol import Executor, SerialExecutor, Shared
from thinleaf.execution.ray_cluster import Ray, RayExecutor, Traffic
from thinleaf.execution.threads import ThreadedExecutor

__all__ = [
    "Engine",
    "Executor",
    "ExecutorChoice",
    "Joblib",
    "Ray",
    "RayExecutor",
    "SerialExecutor",
    "Shared",
    "ThreadedExecutor",
    "Traffic",
    "executor_for",
]

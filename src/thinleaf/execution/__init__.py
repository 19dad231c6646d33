"""Where independent node problems run: one ``map`` protocol, interchangeable executors."""

from thinleaf.execution.protocol import Executor, SerialExecutor
from thinleaf.execution.threads import ThreadedExecutor, executor_for

__all__ = ["Executor", "SerialExecutor", "ThreadedExecutor", "executor_for"]

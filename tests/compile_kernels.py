"""Compile all kernels before tests run side by side: ``python -m tests.compile_kernels``.

Without it, each process that runs tests would compile what the other is just compiling. Code for
dense rows and code for sparse ones are different signatures, so two processes do one each. Where
the cache is warm, this takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import wraps
from multiprocessing import get_context
from typing import Any

from thinleaf.kernels._cache import KernelCache
from thinleaf.kernels._jit import compiled_signatures
from thinleaf.warmup import steps


def take_turns(lock: Any) -> None:
    """Let one process at a time use the cache.

    numba names a file in its index before it writes that file: two processes that save different
    signatures of one kernel at the same moment may take the same name.
    """
    for name in ("load_overload", "save_overload"):
        setattr(KernelCache, name, _locked(getattr(KernelCache, name), lock))


def _locked(method: Callable[..., Any], lock: Any) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any) -> Any:
        with lock:
            return method(*args)

    return call


def compile_for(dense: bool) -> int:
    """Do the steps of a warm-up for dense rows, or all others; return how much was compiled."""
    for name, call in steps(training=True):
        if name.startswith("dense") == dense:
            call()
    return compiled_signatures()[0]


def main() -> None:
    began = time.perf_counter()
    context = get_context("spawn")
    with ProcessPoolExecutor(2, context, take_turns, (context.RLock(),)) as pool:
        n_compiled = sum(pool.map(compile_for, (True, False)))
    print(f"{n_compiled} signatures of kernels compiled in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

"""Compile all kernels before tests run side by side: ``python -m tests.compile_kernels``.

Without it, each process that runs tests would compile what the other is just compiling. Code for
dense rows and code for sparse ones are different signatures, so two processes do one each. Where
the cache is warm, this takes seconds.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from thinleaf.kernels._jit import compiled_signatures
from thinleaf.warmup import steps


def compile_for(dense: bool) -> int:
    """Do the steps of a warm-up for dense rows, or all others; return how much was compiled."""
    for name, call in steps(training=True):
        if name.startswith("dense") == dense:
            call()
    return compiled_signatures()[0]


def main() -> None:
    began = time.perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        n_compiled = sum(pool.map(compile_for, (True, False)))
    print(f"{n_compiled} signatures of kernels compiled in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

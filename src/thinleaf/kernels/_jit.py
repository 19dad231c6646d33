"""How every kernel is compiled: one decorator, so that the rules stand in one place.

Lazy signatures (each kernel compiles once for dense and once for sparse input), an on-disk cache,
and no GIL while a kernel runs. Floating-point sums may be reassociated, which lets inner loops use
vector instructions; NaN and infinity keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.cpu import CPUTargetOptions

from thinleaf.kernels._cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}
_STRICT = _OPTIONS | {"fastmath": False}
_UNCOUNTED = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}
"""Not one of numba's public options: without it, code is slower, and otherwise the same."""


def kernel(function: F) -> F:
    """Compile ``function`` lazily, releasing the GIL, cached on disk where that can be written."""
    return _compile(function, _OPTIONS)


def inlined(function: F) -> F:
    """Make ``function`` part of every kernel that calls it.

    A kernel that is called by another one exists twice, alone and within the other, and the two
    copies may sum in a different order. Which one runs depends on whether code was just compiled or
    came from the cache: bits would, too. So what kernels share is inlined.
    """
    return cast(F, numba.njit(inline="always", **_OPTIONS)(function))


def exact_kernel(function: F) -> F:
    """Compile as :func:`kernel` does, but do every operation in the order written."""
    return _compile(function, _OPTIONS | {"fastmath": {"contract", "nsz"}})


def strict_kernel(function: F) -> F:
    """Compile as :func:`kernel` does, but with every operation as written, nothing fused.

    Such code has the same bits in every copy and on every machine, so strict kernels may call each
    other; for sums that should vectorise, write the lanes.
    """
    return _compile(function, _STRICT)


def bare_kernel(function: F) -> F:
    """Compile as :func:`strict_kernel` does, without counting references to arrays.

    For long-lived states of many arrays, where counting would take most of the time. Such a kernel
    cannot allocate: all arrays are the caller's.
    """
    return _compile(function, _STRICT | _UNCOUNTED)


def compiled_signatures() -> tuple[int, int]:
    """Return how many signatures of all kernels this process has compiled, and how many loaded."""
    stats = [kernel.stats for kernel in _KERNELS]
    compiled = sum(sum(stat.cache_misses.values()) for stat in stats)
    return compiled, sum(sum(stat.cache_hits.values()) for stat in stats)


def cache_directory() -> str | None:
    """Return where code is kept that this process compiles, or None if it is not."""
    return next((kernel._cache.cache_path for kernel in _KERNELS), None)


_KERNELS: list[Any] = []


def _compile(function: F, options: dict[str, Any]) -> F:
    dispatcher = numba.njit(**options)(function)
    if hasattr(dispatcher, "enable_caching"):  # not so if numba is told not to compile
        dispatcher._cache = KernelCache(function)
        _KERNELS.append(dispatcher)
    return cast(F, dispatcher)

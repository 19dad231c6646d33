"""How every kernel is compiled: seven decorators, so that the rules stand in one place.

All have lazy signatures (each kernel compiles once for dense and once for sparse input), a cache on
disk (but for :func:`inlined`), and no GIL while a kernel runs. They differ in what the compiler may
do with floating-point numbers, and in who calls the result.

================ =============================== =================================================
decorator        floating point                  called by
================ =============================== =================================================
`kernel`         sums in any order, fused        Python
`exact_kernel`   in the order written, fused     Python and kernels
`strict_kernel`  exactly as written              Python and kernels
`strict_part`    exactly as written              kernels alone
`bare_kernel`    exactly as written              Python and kernels; allocates nothing
`bare_part`      exactly as written              kernels alone; allocates nothing
`inlined`        as in the kernel that calls it  becomes part of that kernel
================ =============================== =================================================

Sums in any order let inner loops use vector instructions; NaN and infinity keep their meaning. A
loop that sums so must not store as well: the compiler would ask at run time whether arrays are near
each other in memory, and sum one by one if so, with other bits (``tests/kernels`` looks for such
loops).

What compiling costs, from the most to the least: a kernel that calls kernels is optimised again
with all that they call, at every level; an ``overload`` with ``inline="always"`` is compiled alone,
too; an assignment to a slice or an array expression is a function of its own, and some compile the
text of an error message; so is ``np.dot`` without ``out``, and ``np.zeros`` or ``np.full`` where a
loop would fill; a function that is inlined in two places is compiled twice. A branch on an argument
that is None is dropped before it is compiled: that is how one kernel serves two layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.cpu import CPUTargetOptions

from thinleaf.kernels._cache import KernelCache
from thinleaf.kernels._notice import NOTICE

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}
_STRICT = _OPTIONS | {"fastmath": False}
_NOT_FOR_PYTHON = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_UNCOUNTED = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}
"""Not one of numba's public options: without it, code is slower, and otherwise the same."""


def kernel(function: F) -> F:
    """Compile ``function`` lazily, releasing the GIL, cached on disk where that can be written."""
    return _compile(function, _OPTIONS)


def inlined(function: F) -> F:
    """Make ``function`` part of every kernel that calls it, and do as that kernel may.

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


def strict_part(function: F) -> F:
    """Compile as :func:`strict_kernel` does, for kernels to call: Python cannot.

    Without what passes arguments from Python and back there is less to compile.
    """
    return _compile(function, _STRICT | _NOT_FOR_PYTHON)


def bare_kernel(function: F) -> F:
    """Compile as :func:`strict_kernel` does, without counting references to arrays.

    For long-lived states of many arrays, where counting would take most of the time. Such a kernel
    cannot allocate: all arrays are the caller's.
    """
    return _compile(function, _STRICT | _UNCOUNTED)


def bare_part(function: F) -> F:
    """Compile as :func:`bare_kernel` does, for kernels to call: Python cannot."""
    return _compile(function, _STRICT | _UNCOUNTED | _NOT_FOR_PYTHON)


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
        dispatcher.get_call_template = partial(_resolve, dispatcher.get_call_template)
        dispatcher._cache = KernelCache(function)
        NOTICE.is_cached = dispatcher._cache.cache_path is not None
        _KERNELS.append(dispatcher)
    return cast(F, dispatcher)


def _resolve(resolve: Callable[..., Any], args: Any, kws: Any) -> Any:
    """Return what numba finds for a call of one kernel by another, with integers of one type.

    To numba, the constant 0, a row id of 32 bits and a counter are three types, and a kernel would
    be compiled for each. So kernels pass all signed integers as 64 bits.
    """
    wide = {name: _widened(kind) for name, kind in kws.items()}
    return resolve(tuple(map(_widened, args)), wide)


def _widened(kind: Any) -> Any:
    integer = getattr(kind, "literal_type", kind)
    return types.int64 if integer in types.signed_domain else kind

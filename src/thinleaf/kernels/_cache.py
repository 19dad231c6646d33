"""Where compiled code is kept: numba's cache on disk, which here may also be read-only or absent.

numba looks for one directory that can be written: ``NUMBA_CACHE_DIR``, else ``__pycache__`` beside
the source, else one of the user. It neither loads from a directory that cannot be written, such as
that of an image or of an install by root which was warmed up before, nor goes on if there is none
or if a disk is full. Here it does.

numba also takes code for fresh as long as the kernel's own file is unchanged. Kernels call each
other across files and have constants of others compiled in, so here it is fresh as long as the
whole package is, less what stands above all kernels and cannot be in them.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from thinleaf.kernels._turns import Turn

ABOVE_KERNELS = frozenset({
    "__init__.py", "__main__.py", "_version.py", "cli", "datasets", "demo.py", "estimators",
    "execution", "explain", "measuring", "text", "torch", "warmup.py",
})  # fmt: skip
"""What no kernel is written in and none can import, but for packages ``kernels`` within."""


def _read_only(locator: type) -> type:
    """Return numba's cache in the directory of one locator, as long as that exists."""

    def ensure_cache_path(self: Any) -> None:
        if not os.path.isdir(self.get_cache_path()):
            raise FileNotFoundError(self.get_cache_path())

    content = type("Locator", (locator,), {"ensure_cache_path": ensure_cache_path})
    impl = type("Impl", (CompileResultCacheImpl,), {"_locator_classes": [content]})
    return type("Cache", (FunctionCache,), {"_impl_class": impl})


_READ_ONLY = [_read_only(locator) for locator in CompileResultCacheImpl._locator_classes]


class KernelCache:
    """The cache of one kernel, with the methods that numba calls.

    Parameters
    ----------
    function : callable
        What is compiled.

    Attributes
    ----------
    cache_path : str or None
        The directory that is written to, if there is one.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._own = _or_none(FunctionCache, function)
        self.cache_path: str | None = None if self._own is None else self._own.cache_path
        found = (_or_none(cache, function) for cache in _READ_ONLY)
        existing = (cache for cache in found if cache is not None)
        # those that numba would have preferred, had they been writable
        self._others = list(takewhile(lambda c: c.cache_path != self.cache_path, existing))
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._turns: dict[str, Turn] = {}

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code of a signature from the first directory that has it, or None.

        None also means that it is this process's turn to compile it.
        """
        found = self._load(signature, target_context)
        if found is None and self.cache_path is not None:
            turn = self._turns.setdefault(
                str(signature), Turn(self.cache_path, f"{self._name}{signature}")
            )
            turn.take()
            found = self._load(signature, target_context)
            if found is not None:
                turn.give_back()
        return found

    def _load(self, signature: Any, target_context: Any) -> Any:
        own = [] if self._own is None else [self._own]
        for cache in self._others + own:
            try:
                found = cache.load_overload(signature, target_context)
            except (OSError, EOFError):  # unreadable, or cut short: compile
                continue
            if found is not None:
                return found
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Write the code of a signature, if that can be done."""
        if self._own is not None:
            try:
                self._own.save_overload(signature, data)
            except OSError:  # such as a full disk: the code runs all the same
                self._own = self.cache_path = None
        if str(signature) in self._turns:
            self._turns.pop(str(signature)).give_back()

    def flush(self) -> None:
        """Forget what was written."""
        if self._own is not None:
            self._own.flush()


class _SharedFiles(IndexDataCacheFile):
    """numba's files of one kernel, for processes that compile at the same time.

    numba numbers files of code, and puts the number into the index before the file is written. So
    two processes may write code of two signatures to one file, and a third may find there what is
    left of an older version: either would run the wrong code. Here a file is named after its
    signature and version, and stands in the index once it is complete, which one process at a time
    changes.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write code, then the index that names it."""
        identity = repr((key, self._source_stamp)).encode()
        name = self._data_name(int(sha256(identity).hexdigest()[:16], 16))
        self._save_data(name, data)
        with Turn(self._cache_path, self._index_name):
            self._save_index(self._load_index() | {key: name})


def _or_none(cache: type, function: Callable[..., Any]) -> Any:
    try:
        found = cache(function)
    except RuntimeError:  # no such directory
        return None
    stamp = (found._cache_file._source_stamp, _stamp_of_all())
    found._cache_file = _SharedFiles(found.cache_path, found._impl.filename_base, stamp)
    return found


@lru_cache
def _stamp_of_all() -> tuple[float, int]:
    """Return what changes when any file does that may be compiled in."""
    stats = [file.stat() for file in stamped_files()]
    return max(stat.st_mtime for stat in stats), sum(stat.st_size for stat in stats)


def stamped_files() -> list[Path]:
    """Return the files of the package that compiled code may depend on."""
    package = Path(__file__).parents[1]
    return [
        file
        for part in package.iterdir()
        for file in ([part] if part.suffix == ".py" else part.rglob("*.py"))
        if part.name not in ABOVE_KERNELS or file.parent.name == "kernels"
    ]

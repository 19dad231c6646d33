"""A word when code is being compiled, so that a first call does not look like one that hangs.

numba tells when it compiles, and nothing when code comes from the cache. What a call compiles is
many functions, one within the other, so how long it has taken is looked at whenever one begins or
ends.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

VARIABLE = "THINLEAF_SAY_COMPILING"
"""Environment variable; 0 means: say nothing."""

PATIENCE = 1.0
"""Seconds of compiling before it is said."""

_log = logging.getLogger("thinleaf")


class Notice(event.Listener):
    """Says once a process that it compiles, as a warning of the logger ``thinleaf``.

    Where logging is not set up, Python writes warnings to standard error.

    Attributes
    ----------
    is_silent : bool
        True once it has been said, or if it must not be.
    is_cached : bool
        Whether what is compiled can be written to a cache.
    """

    def __init__(self) -> None:
        self.is_silent = os.environ.get(VARIABLE) == "0"
        self.is_cached = True
        self._depth = 0
        self._began = 0.0
        self._seconds = 0.0

    @property
    def is_compiling(self) -> bool:
        """Whether one of our functions is being compiled; to be interrupted then can break it."""
        return self._depth > 0

    def on_start(self, event: event.Event) -> None:
        """Note that a function begins to be compiled, ours or one of the user's."""
        if self._depth == 0:
            module = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
            if module.split(".")[0] != "thinleaf":
                return
            self._began = time.perf_counter()
        self._depth += 1
        self._look()

    def on_end(self, event: event.Event) -> None:
        """Note that a function is compiled."""
        if self._depth == 0:
            return
        self._look()
        self._depth -= 1
        if self._depth == 0:
            self._seconds += time.perf_counter() - self._began

    def _look(self) -> None:
        so_far = self._seconds + time.perf_counter() - self._began
        if self.is_silent or so_far < PATIENCE:
            return
        self.is_silent = True
        later = "later runs use the cache (`thinleaf warmup` does it ahead)"
        if not self.is_cached:
            later = "no cache can be written: set NUMBA_CACHE_DIR to a directory that can be"
        _log.warning("thinleaf: compiling for this machine, up to a minute; %s", later)


NOTICE = Notice()
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]


@contextmanager
def silence() -> Iterator[None]:
    """Say nothing of what is compiled within."""
    before, NOTICE.is_silent = NOTICE.is_silent, True
    try:
        yield
    finally:
        NOTICE.is_silent = before

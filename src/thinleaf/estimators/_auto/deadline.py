"""An end to a part of a fit: Ctrl-C, pressed by a clock."""

from __future__ import annotations

import _thread
import contextlib
import math
import signal
import threading
import time
from types import TracebackType
from typing import Self

from thinleaf.kernels._notice import NOTICE
from thinleaf.model.latency import Stopwatch

_BEAT = 0.02
"""Seconds between looks at whether kernels are still being compiled."""


class Clock:
    """Seconds since a fit began, and how many may pass.

    Parameters
    ----------
    seconds : float or None
        That may pass in all.
    """

    def __init__(self, seconds: float | None) -> None:
        self._watch = Stopwatch()
        self._watch.__enter__()
        self.limit = math.inf if seconds is None else float(seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        self._watch.__exit__()
        return self._watch.runs.pop()

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return self.limit - self.elapsed


def _press() -> None:
    """Press Ctrl-C: by a signal where there is one, since only that ends waiting for a thread."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


class Deadline:
    """Raises ``KeyboardInterrupt`` in a ``with`` block that takes too long.

    Whatever a fit does on Ctrl-C it does then. Only the main thread can be interrupted; in others,
    nothing happens. While kernels are being compiled, it waits.

    Parameters
    ----------
    seconds : float
        Infinite for none.
    """

    def __init__(self, seconds: float) -> None:
        self.fired = False
        self._lock = threading.Lock()
        self._over = self._ignored = False
        self._timer: threading.Timer | None = None
        if math.isfinite(seconds) and threading.current_thread() is threading.main_thread():
            self._timer = threading.Timer(max(seconds, 0.0), self._fire)
            self._timer.daemon = True

    def _fire(self) -> None:
        while NOTICE.is_compiling and not self._over:  # the compiler would lose it, or break
            time.sleep(_BEAT)
        with self._lock:
            if not self._over:
                self.fired = True
                _press()

    def __enter__(self) -> Self:
        if self._timer is not None:
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs of a shell script
                self._ignored = True
                signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                with self._lock:  # it is not pressed before the clock runs
                    self._timer.start()
            except KeyboardInterrupt:
                self.__exit__(None, None, None)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is None:
            return
        with contextlib.suppress(KeyboardInterrupt):  # one that comes just now has come too late
            self._timer.cancel()
            with self._lock:
                self._over = True
        if self._ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

"""Taking turns to compile: of the processes of a machine, one compiles a kernel for all.

Workers that start with an empty cache would all compile the same kernels at the same time. Here the
first one locks a byte of a file beside the code, and the others wait for what it writes.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

try:
    import fcntl
except ImportError:  # Windows: each process compiles for itself
    fcntl = None  # type: ignore[assignment]

_FILE = "thinleaf.lock"
_PATIENCE = 120.0
"""Seconds to wait for another process: longer than any kernel takes."""

_STEP = 0.05


class Turn:
    """The right to make one thing; whatever goes wrong, nobody waits for ever.

    Parameters
    ----------
    directory : str
        That of the compiled code.
    name : str
        Of what is made there.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._byte = crc32(name.encode()) & 0x3FFFFFFF
        self._is_held = False

    def take(self) -> None:
        """Wait until no other process has it."""
        until = time.monotonic() + _PATIENCE
        while fcntl is not None and time.monotonic() < until:
            try:
                flags = fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(_opened(self._directory), flags, 1, self._byte)
            except (BlockingIOError, PermissionError):
                time.sleep(_STEP)
            except OSError:  # no file, or no locks on it
                break
            else:
                self._is_held = True
                break

    def give_back(self) -> None:
        """Let others have it."""
        if self._is_held and fcntl is not None:
            with suppress(OSError):
                fcntl.lockf(_opened(self._directory), fcntl.LOCK_UN, 1, self._byte)
            self._is_held = False

    def __enter__(self) -> Turn:
        """Take it for the time of a block."""
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.give_back()


@cache
def _opened(directory: str) -> int:
    """Return the lock file, which stays open: closing it would give back all turns."""
    return os.open(Path(directory) / _FILE, os.O_RDWR | os.O_CREAT, 0o666)

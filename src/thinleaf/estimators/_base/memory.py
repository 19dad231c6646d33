"""How much memory there is to be used, and what rows need."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

_STATM = Path("/proc/self/statm")
_PAGE = 4096
PROCESS = 500 * 2**20
"""Bytes of a process that has loaded what trains, and no rows."""

TIMES_ROWS = 12.0
"""How many times the bytes of its rows a fit takes: their copies, node problems, several trees."""

LEAST_ROOM = 16 * 2**20
"""Bytes of rows that a part must be allowed to have."""


def used_beside_rows() -> int:
    """Return the bytes of memory that this process has, or will have once it trains."""
    try:
        return max(int(_STATM.read_text().split()[1]) * _PAGE, PROCESS)
    except (OSError, ValueError, IndexError):
        return PROCESS


def rows_fit(n_bytes: int, max_memory: int) -> bool:
    """Return whether so many bytes of rows can be trained on at once."""
    return used_beside_rows() + TIMES_ROWS * n_bytes <= max_memory


def room_for_rows(max_memory: int, used: int) -> int:
    """Return how many bytes of rows can be trained on at a time.

    Raises
    ------
    ValueError
        If there is no room for any.
    """
    room = int((max_memory - used) / TIMES_ROWS)
    if room < LEAST_ROOM:
        least = used + TIMES_ROWS * LEAST_ROOM
        raise ValueError(
            f"max_memory is {max_memory / 2**20:,.0f} MiB, and a process that trains has "
            f"{used / 2**20:,.0f} beside its rows: give at least {least / 2**20:,.0f} MiB"
        )
    return room


def give_back() -> None:
    """Let the system have memory that arrays no longer use: some C libraries keep it for later."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim  # of glibc
    except (OSError, AttributeError, TypeError):
        return None

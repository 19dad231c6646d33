"""How much memory there is to be used, and what rows need."""

from __future__ import annotations

from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE = 4096
_USUAL = 400 * 2**20
"""Bytes of a process that has rows neither read nor trained on, where the system does not say."""

TIMES_ROWS = 7.0
"""How many times the bytes of its rows a fit takes: their copies, node problems, the tree."""

LEAST_ROOM = 16 * 2**20
"""Bytes of rows that a part must be allowed to have."""


def used_now() -> int:
    """Return the bytes of memory that this process has now."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return _USUAL


def room_for_rows(max_memory: int, used: int | None = None) -> int:
    """Return how many bytes of rows can be trained on at a time.

    Raises
    ------
    ValueError
        If there is no room for any.
    """
    used = used_now() if used is None else used
    room = int((max_memory - used) / TIMES_ROWS)
    if room < LEAST_ROOM:
        least = used + TIMES_ROWS * LEAST_ROOM
        raise ValueError(
            f"max_memory is {max_memory / 2**20:,.0f} MiB, of which the process has "
            f"{used / 2**20:,.0f} before training: give at least {least / 2**20:,.0f} MiB"
        )
    return room

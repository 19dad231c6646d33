"""How a command ends: its exit codes, and the one line that says what is wrong."""

from __future__ import annotations

import os
import sys
from typing import Final

WRONG: Final = 1
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141

EXPECTED: Final = (ValueError, OSError, MemoryError, ModuleNotFoundError)
"""What goes wrong with data, models and parameters."""


def message(error: Exception) -> str:
    """Return what is wrong on one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(str(error).split()) or type(error).__name__


def discard_output() -> None:
    """Send what is still to be written nowhere, so that the interpreter ends without a word."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file
        sys.stdout = None

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


_OPTIONS: Final = {
    "give a larger n_features, or unknown_features='drop'": "give a larger --n-features",
    "zero_based=True": "--zero-based",
    "hashed=True": "--hashed",
    "max_memory": "--memory",
}
"""Names in Python that are options of ``thinleaf train``."""

_OF_THE_MODEL: Final = {
    ", or from 0 with zero_based=True": ", as those that the model was trained on",
    "read the file with hashed=True": "the model was trained on rows without such names",
}
"""Elsewhere the model says how a file is read."""


def message(error: Exception, verb: str | None = None) -> str:
    """Return what is wrong on one line, by the names that the verb has for things."""
    text = _message(error)
    for name, other in (_OPTIONS if verb == "train" else _OF_THE_MODEL).items():
        text = text.replace(name, other)
    return text


def _message(error: Exception) -> str:
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

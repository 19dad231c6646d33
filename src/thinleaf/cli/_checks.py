"""What can be said of files and values before anything slow is imported, read or trained."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from thinleaf.arrays.replace import check_writable

STDIN = "-"
"""What stands for standard input in place of a data file."""


def check_inputs(*paths: str | None) -> None:
    """Raise ``OSError`` for the first path, but for standard input, that cannot be read."""
    for path in paths:
        if path is None or path == STDIN:
            continue
        os.stat(path)
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def check_output(what: str, path: str, others: Iterable[tuple[str, str | None]] = ()) -> None:
    """Complain before a long run about a file that cannot be written after it.

    Parameters
    ----------
    what : str
        What is written, such as "a model".
    path : str
    others : iterable of (str, str or None)
        What other files of the command are, and their paths: none of them may be the same file.
    """
    if path == STDIN:
        raise ValueError(f"{what} cannot be written to standard output: name a file")
    check_writable(path)
    for name, other in others:
        if other is not None and other != STDIN and _is_same(path, other):
            raise ValueError(f"{path} is {name}: give another name")


def check_figure(path: str) -> None:
    """Complain before a long run about a figure that cannot be drawn or written after it."""
    if os.path.splitext(path)[1] not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{path}: the name of a figure ends in .png, .svg or .pdf")
    check_output("a figure", path)
    try:
        import thinleaf.explain.frontier  # noqa: F401
    except ImportError as error:
        raise ValueError(str(error)) from error


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other) or (
        os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
    )


def check_between(name: str, value: float | None, most: float = float("inf")) -> None:
    """Refuse a parameter that is not above 0 and below a limit."""
    if value is not None and not 0.0 < value < most:
        limit = "" if most == float("inf") else f" and below {most:g}"
        raise ValueError(f"the {name!r} parameter must be above 0{limit}, got {value:g}")


def check_jobs(jobs: int) -> None:
    """Refuse 0 threads."""
    if jobs == 0:
        raise ValueError("--jobs must not be 0: use 1 for one core, -1 for all")

"""Where files are written: whole or not at all, and only where a regular file is or can be.

Whatever the library or its command line writes goes through :func:`replace_file`. Nothing heavy is
imported here, so that :func:`check_writable` can refuse a path before anything slow begins.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name of an empty file to write to, which then takes the place of ``path``.

    At any moment there is the old file or the new one. Links are followed: the file that they point
    to is replaced. A file keeps its mode and, where that is allowed, its owner; a new one gets
    those that any new file gets. If the block raises an error, nothing has changed.

    Parameters
    ----------
    path : path-like
        A regular file, or where there is nothing yet.

    Raises
    ------
    OSError
        If something else is there, or no file can be made.
    """
    target, before = _target(path)
    temporary = _new_file(path, target)
    try:
        mode = stat.S_IMODE(temporary.stat().st_mode)
        if before is not None:
            mode = stat.S_IMODE(before.st_mode)
            temporary.chmod(stat.S_IRUSR | stat.S_IWUSR)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if before is not None and hasattr(os, "chown"):
            with suppress(OSError):
                os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise ``OSError`` if :func:`replace_file` cannot write to a path.

    It is tried with an empty file beside it, which is removed again.
    """
    target, _ = _target(path)
    _new_file(path, target).unlink()


def _target(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """Return the path that links lead to, and what is known of the file if there is one."""
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        if not os.path.basename(path):  # "", or a directory that does not exist
            raise FileNotFoundError(f"{str(path)!r} is no name of a file") from error
        return Path(os.path.realpath(path)), None
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise OSError(f"{path} is {kind}: give the name of a file")
    return Path(os.path.realpath(path)), found


def _new_file(path: str | os.PathLike[str], target: Path) -> Path:
    import uuid  # slow to import

    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch(exist_ok=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"the directory of {path} does not exist: create it first"
        ) from error
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from error
    return temporary

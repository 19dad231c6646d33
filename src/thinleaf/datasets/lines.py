"""From a file or a stream to numbered lines: byte order marks, line ends, UTF-8.

What a line says is for ``formats``. An error that concerns one line is a :class:`BadLine`, which a
reader may skip; one that concerns what follows, such as a gzip file that is cut short, is a
:class:`DataFileError` at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, Final, TypeAlias, cast

from thinleaf.datasets.compressed import DamagedError, decompressed, open_bytes

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, or a file object of text or bytes that is open for reading."""

MAX_LINE: Final = 1 << 26
"""Characters or bytes of the longest line: whatever has longer ones is no file of examples."""

_AS_FILE: Final = "give the name of the file, instead of a stream"
_NO_TEXT: Final = {
    b"\xff\xfe": ("UTF-16", "save the file as UTF-8"),
    b"\xfe\xff": ("UTF-16", "save the file as UTF-8"),
    b"PAR1": ("Parquet", _AS_FILE),
    b"ARROW1": ("Arrow", _AS_FILE),
    b"PK\x03\x04": ("a zip archive or an Excel file", "save the table as CSV in UTF-8"),
    b"BZh": ("compressed by bzip2", "compress the file by gzip or zstd instead"),
    b"\xfd7zXZ": ("compressed by xz", "compress the file by gzip or zstd instead"),
}
"""First bytes of files that are no text, what they are, and what to do about it."""

_BOM = "\ufeff"
_EXCERPT = 60


class DataFileError(ValueError):
    """A data file cannot be read; the message says where, why, and what to do."""


class BadLine(ValueError):  # noqa: N818  - it becomes a DataFileError, or is counted
    """One line cannot be read.

    Parameters
    ----------
    problem : str
        What is wrong.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")


class Lines:
    """The numbered lines of a source, as they are stored: an iterator of (number, raw line).

    Parameters
    ----------
    source : path or file object
        It may be gzip or zstd, whatever its name. A file object is read from where it
        stands and not closed; one of bytes, such as ``sys.stdin.buffer``, does not depend on the
        locale.

    Attributes
    ----------
    name : str
        What messages call the source.
    """

    def __init__(self, source: Source) -> None:
        if isinstance(source, str | os.PathLike):
            self.name = os.fspath(source)
            self._file: Any = open_bytes(self.name)
            self._own = True
        else:
            name = getattr(source, "name", None)
            self.name = name if isinstance(name, str) else "<stream>"
            self._file = source
            self._own = False
        self._begun = self._own
        self._number = 0

    def __iter__(self) -> Iterator[tuple[int, str | bytes]]:
        return self

    def __next__(self) -> tuple[int, str | bytes]:
        line = self._read()
        if not line:
            raise StopIteration
        self._number += 1
        if len(line) > MAX_LINE:
            raise DataFileError(
                f"{self.name}:{self._number}: the line is longer than {MAX_LINE >> 20} MiB: "
                "is this a text file with one example a line?"
            )
        return self._number, line

    @property
    def idle(self) -> bool:
        """Whether the next line may be long in coming; see :mod:`thinleaf.datasets.live`."""
        return bool(getattr(self._file, "idle", False))

    def _read(self) -> str | bytes:
        try:
            if not self._begun:  # not before: it may have to wait
                self._begun, self._file = True, decompressed(self._file, self.name)
            return cast("str | bytes", self._file.readline(MAX_LINE + 1))
        except DamagedError as error:
            raise DataFileError(
                f"{self.name}:{self._number + 1}: {error}: fetch or compress the file again"
            ) from error
        except UnicodeDecodeError as error:
            raise DataFileError(
                f"{self.name}:{self._number + 1}: here or in the lines that follow the text stream "
                f"cannot be decoded ({error}): open it as bytes, or with the encoding that it has"
            ) from error

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._own:
            self._file.close()


class LinesAhead:
    """Lines of which the first have been taken already; a part of what reads a line at a time.

    Parameters
    ----------
    lines : Lines
    first_lines : list of (int, str or bytes)
        Those that were taken.

    Attributes
    ----------
    name : str
        What messages call the source.
    """

    def __init__(self, lines: Lines, first_lines: list[tuple[int, str | bytes]]) -> None:
        self.name = lines.name
        self._lines = lines
        self._first = first_lines
        self._number = 0

    @property
    def idle(self) -> bool:
        """Whether the next line may be long in coming."""
        n_first = self._first[-1][0] if self._first else 0
        return self._number >= n_first and self._lines.idle

    def __iter__(self) -> Iterator[tuple[int, str | bytes]]:
        for number, raw in chain(self._first, self._lines):
            self._number = number
            yield number, raw

    def shown(self, number: int, raw: str | bytes) -> str:
        """Return what a line looks like, for a message."""
        return f"the line is {excerpt(readable(number, raw))}"

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._lines.close()


def decode(number: int, raw: str | bytes) -> str:
    """Return a line as text, without its end and without a byte order mark.

    Raises
    ------
    BadLine
        If it is not UTF-8, or not text.
    """
    try:
        line = raw.decode() if isinstance(raw, bytes) else raw
        if not line.isascii():
            line.encode()  # what a lenient text stream could not decode is a lone surrogate
    except UnicodeError as error:
        if number == 1 and isinstance(raw, bytes):
            _refuse_known(raw)
        raise BadLine(
            f"not UTF-8 ({error})", "save the file as UTF-8, and decompress a stream"
        ) from error
    if "\0" in line:
        if number == 1 and isinstance(raw, bytes):
            _refuse_known(raw)
        raise BadLine("a NUL character", "save the file as UTF-8 text")
    return _strip(number, line)


def _refuse_known(raw: bytes) -> None:
    """Raise :class:`BadLine` if the first line of what is no text begins as well-known files do."""
    for start, (what, remedy) in _NO_TEXT.items():
        if raw.startswith(start):
            raise BadLine(f"not UTF-8 text, but {what}", remedy)


def readable(number: int, raw: str | bytes) -> str:
    """Return a line as text whatever it is, to look at."""
    return _strip(number, raw.decode(errors="replace") if isinstance(raw, bytes) else raw)


def _strip(number: int, line: str) -> str:
    if number == 1:
        line = line.removeprefix(_BOM)
    return line.removesuffix("\n").removesuffix("\r")


def excerpt(text: str) -> str:
    """Return the beginning of a text, quoted, for a message."""
    return repr(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")

"""Records of CSV files, through Python's own reader, as their lines arrive."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from thinleaf.datasets.formats import Labels, Layout
from thinleaf.datasets.lines import (
    MAX_LINE,
    BadLine,
    DataFileError,
    Lines,
    decode,
    excerpt,
    readable,
)
from thinleaf.datasets.tables.columns import Columns, Wanted, find_columns
from thinleaf.datasets.tables.dialect import find_dialect, has_header

_HEADER_LINES: Final = 100
_DOUBLE = 'double quotes within a quoted field ("" for "), and close it'
_PROBLEMS: Final = {
    "unexpected end": ("a quote that is not closed", _DOUBLE),
    "field larger": (f"a field of more than {MAX_LINE >> 20} MiB: is a quote not closed?", _DOUBLE),
    "expected after": ("text after the quote that ends a field", _DOUBLE),
    "new-line": ("a lone carriage return", "end lines with LF or CRLF, or quote the field"),
}
"""What Python's errors begin with or contain, and what we say."""


class CsvTable:
    """The records of a CSV file.

    Parameters
    ----------
    lines : Lines
    first_lines : list of (int, str or bytes)
        Those that have been taken already.
    wanted : Wanted
    labels : {"required", "optional", "none"}

    Attributes
    ----------
    name : str
    columns : Columns
    dialect : Dialect
    layout : Layout
    """

    def __init__(
        self,
        lines: Lines,
        first_lines: list[tuple[int, str | bytes]],
        wanted: Wanted,
        labels: Labels,
    ) -> None:
        self.name = lines.name
        self._lines = lines
        self._ended = False
        sample = [_text(number, raw) for number, raw in first_lines]
        self.dialect = find_dialect(sample, wanted.needed)
        while not self._has_record(sample):
            item = next(lines, None)
            if item is None:
                break
            first_lines.append(item)
            sample.append(_text(*item))
            self.dialect = find_dialect(sample, wanted.needed)
        self._pending = deque(first_lines)
        self._taken: list[tuple[int, str | bytes]] = []
        self._shown: tuple[int, str | bytes] = (0, "")
        self._problem: BadLine | None = None
        self._n_again = 0
        self._reader = self.dialect.reader(self._texts())
        self._first: list[tuple[int, list[str] | BadLine]] = []
        self.columns = self._find_columns(sample, wanted, labels)
        self.layout: Layout = self.columns.layout("csv")

    @property
    def idle(self) -> bool:
        """Whether the next record may be long in coming."""
        return not self._pending and not self._first and self._lines.idle

    def __iter__(self) -> Iterator[tuple[int, list[str] | BadLine]]:
        yield from self._first
        self._first = []
        while (found := self._next()) is not None:
            yield found

    def content(self, number: int, record: Any) -> list[str]:
        """Return the fields of a record."""
        if isinstance(record, BadLine):
            raise record
        fields: list[str] = record
        return fields

    def shown(self, number: int, record: Any) -> str:
        """Return what the last record looks like."""
        return f"the record begins {excerpt(readable(*self._shown))}"

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._lines.close()

    def _has_record(self, sample: list[str]) -> bool:
        """Return whether the first record is there."""
        if len(sample) > _HEADER_LINES:
            return True
        return next(self.dialect.sample(sample), None) is not None

    def _find_columns(self, sample: list[str], wanted: Wanted, labels: Labels) -> Columns:
        """Take the header, if there is one, and find the columns."""
        while True:
            found = self._next()
            if found is None:
                raise DataFileError(f"{self.name}: no example in the file: is it the right one?")
            number, first = found
            if isinstance(first, BadLine):
                raise DataFileError(f"{self.name}:{number}: {first}; {self.shown(*found)}")
            self._first.append(found)
            if first:
                break
        records = [r for r in self.dialect.sample(sample) if r is not None and len(r) == len(first)]
        names: list[Any] = list(range(1, len(first) + 1))
        headed = has_header(records or [first], wanted)
        if headed:
            names = [name.strip() for name in first]
            self._first.pop()
        try:
            return find_columns(names, records[headed:], wanted, labels)
        except BadLine as error:
            header = "give --no-header (in Python, header=False) if the first record is an example"
            guessed = headed and wanted.header == "auto" and not wanted.any
            about = f"; {header}" if guessed else ""
            raise DataFileError(f"{self.name}:{number}: {error}{about}") from error

    def _next(self) -> tuple[int, list[str] | BadLine] | None:
        """Return the number of the next record's first line, and its fields or what is wrong."""
        taken = self._taken
        taken.clear()
        self._problem = None
        try:
            fields: list[str] = next(self._reader)
        except StopIteration:
            return None
        except csv.Error as error:
            self._shown = taken[0]
            number, last = taken[0][0], taken[-1][0]
            several = last > number
            found = None if several else self._problem  # no text at all, such as UTF-16
            problem = found or _bad_record(error, last if several else None)
            self._read_again(number)
            return number, problem
        self._shown = taken[0]
        return taken[0][0], fields if self._problem is None else self._problem

    def _read_again(self, number: int) -> None:
        """Go on with the line after that which a bad record begins with."""
        self._pending.extendleft(reversed(self._taken[1:]))
        self._n_again += sum(len(raw) for _, raw in self._taken[1:])
        if self._n_again > MAX_LINE:
            raise DataFileError(
                f"{self.name}:{number}: quotes that are not closed, here or before: {_DOUBLE}"
            )
        self._reader = self.dialect.reader(self._texts())

    def _texts(self) -> Iterator[str]:
        """Yield lines as Python's reader takes them, and note what is taken."""
        pending, taken = self._pending, self._taken
        while True:
            if pending:
                item = pending.popleft()
            else:
                found = None if self._ended else next(self._lines, None)
                if found is None:
                    self._ended = True
                    return
                item = found
            taken.append(item)
            number, raw = item
            try:
                line = raw.decode() if isinstance(raw, bytes) else raw
                plain = number > 1 and "\0" not in line and (line.isascii() or line is not raw)
            except UnicodeDecodeError:
                plain = False
            yield line if plain else self._checked(number, raw)

    def _checked(self, number: int, raw: str | bytes) -> str:
        """Return a line, and note what is wrong with it."""
        try:
            decode(number, raw)
        except BadLine as error:
            self._problem = self._problem or error
        return _text(number, raw)


def _text(number: int, raw: str | bytes) -> str:
    """Return a line with its end as text, whatever it is."""
    line = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
    return line.removeprefix("\ufeff") if number == 1 else line


def _bad_record(error: csv.Error, last: int | None) -> BadLine:
    message = str(error)
    place = "" if last is None else f", by line {last}"
    for part, (problem, remedy) in _PROBLEMS.items():
        if part in message:
            return BadLine(problem + place, remedy)
    return BadLine(message + place, "write the record as RFC 4180 says")

"""Where a reader's examples come from: lines, or the records of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, Protocol, cast

from thinleaf.datasets.detect import Asked, find_format, find_layout, format_of_source
from thinleaf.datasets.first_lines import refuse_header, refuse_other_format
from thinleaf.datasets.formats import Layout, RowParser, TextParser, line_parser
from thinleaf.datasets.lines import Lines, LinesAhead, Source, decode, readable
from thinleaf.datasets.tables.arrow_file import BINARY_FORMATS, ArrowTable
from thinleaf.datasets.tables.columns import Columns
from thinleaf.datasets.tables.csv_file import CsvTable
from thinleaf.datasets.tables.fields import record_parser
from thinleaf.datasets.tables.jsonl_file import JsonlTable

_SAMPLE_LINES: Final = 1000
_CHECKED_LINES: Final = 20
_SAMPLE_LENGTH: Final = 1 << 22


class Feed(Protocol):
    """An iterable of what may hold an example, each with the number of its line.

    Attributes
    ----------
    name : str
        What messages call the file.
    layout : Layout
    """

    name: str
    layout: Layout

    @property
    def columns(self) -> Columns | None:
        """Of a table, the columns that are read."""
        ...

    @property
    def idle(self) -> bool:
        """Whether the next one may be long in coming."""
        ...

    def __iter__(self) -> Iterator[tuple[int, Any]]: ...

    def content(self, number: int, raw: Any) -> Any:
        """Return what a parser takes; raise ``BadLine`` if it cannot be read."""
        ...

    def shown(self, number: int, raw: Any) -> str:
        """Return what it looks like, for a message."""
        ...

    def close(self) -> None:
        """Close the file, unless it was given open."""
        ...


class LineFeed(LinesAhead):
    """Lines each of which is an example."""

    columns: Columns | None = None

    def __init__(
        self,
        lines: Lines,
        first_lines: list[tuple[int, str | bytes]],
        layout: Layout,
        check_header: bool,
    ) -> None:
        super().__init__(lines, first_lines)
        self.layout = layout
        self._check_header = check_header

    def content(self, number: int, raw: str | bytes) -> str:
        """Return a line as text."""
        line = decode(number, raw)
        if self._check_header and line.strip():
            self._check_header = False
            refuse_header(line, self.layout)
        return line


def open_feed(source: Source, asked: Asked) -> tuple[Feed, RowParser | TextParser]:
    """Return what a file gives, and what makes examples of it."""
    format = format_of_source(source) if asked.format == "auto" else asked.format
    if format in BINARY_FORMATS:
        binary = cast("Literal['parquet', 'arrow']", format)
        table = ArrowTable(source, binary, asked.wanted, asked.labels)
        return table, record_parser(table.columns, asked.labels)
    lines = Lines(source)
    try:
        return _open_lines(lines, asked)
    except BaseException:
        lines.close()
        raise


def _open_lines(lines: Lines, asked: Asked) -> tuple[Feed, RowParser | TextParser]:
    labels = asked.labels
    first: list[tuple[int, str | bytes]] = []
    if not asked.is_decided(lines.name):
        first = _first_lines(lines, _SAMPLE_LINES)
    elif asked.check_lines:
        # Of a table or plain texts, the first line that is not blank is waited for: it says which.
        open_yet = asked.default_format is not None and bool(asked.wanted.needed)
        first = _first_lines(lines, _CHECKED_LINES, wait=False, past_blank=open_yet)
    sample = [readable(number, raw) for number, raw in first]
    format = find_format(lines.name, sample, asked)
    if format in ("csv", "jsonl"):
        n_more = _SAMPLE_LINES - len(first)
        if n_more > 0 and not (first and lines.idle):
            first += _first_lines(lines, n_more, wait=False)
        kind = CsvTable if format == "csv" else JsonlTable
        table = kind(lines, first, asked.wanted, labels)
        return table, record_parser(table.columns, labels)
    layout = find_layout(format, sample, asked)
    if asked.check_lines:
        refuse_other_format(lines.name, sample[:_CHECKED_LINES], layout, labels)
    check_header = asked.check_lines and labels != "none"
    return LineFeed(lines, first, layout, check_header), line_parser(layout, labels)


def _first_lines(
    lines: Lines, limit: int, *, wait: bool = True, past_blank: bool = False
) -> list[tuple[int, str | bytes]]:
    """Return the first lines; of a live stream, without ``wait``, those that arrive together."""
    found = []
    length = 0
    for number, raw in lines:
        found.append((number, raw))
        length += len(raw)
        past_blank = past_blank and not raw.strip()
        enough = lines.idle and not wait and not past_blank
        if len(found) == limit or length > _SAMPLE_LENGTH or enough:
            break
    return found

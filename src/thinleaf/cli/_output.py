"""What a command writes: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

Advance: TypeAlias = Callable[[int], None]

_PLAIN_SECONDS = 10.0


@dataclass(frozen=True)
class Output:
    """How this command talks.

    Attributes
    ----------
    as_json : bool
        Results are JSON.
    quiet : bool
        Neither progress nor notes.
    """

    as_json: bool = False
    quiet: bool = False

    def note(self, line: str) -> None:
        """Say something that is no result."""
        if not self.quiet:
            _say(line, sys.stderr)

    def result(self, record: Any, text: str) -> None:
        """Write a result."""
        _say(to_json(record) if self.as_json else text, sys.stdout)

    def done(self, record: Any, text: str) -> None:
        """Write what was done, where the result itself is a file."""
        if self.as_json or not self.quiet:
            self.result(record, text)

    @contextmanager
    def progress(self, what: str, unit: str, total: int | None = None) -> Iterator[Advance]:
        """Show how far something has come.

        A bar on a terminal; elsewhere a line every ten seconds and one at the end.

        Parameters
        ----------
        what : str
        unit : str
            What is counted.
        total : int, optional
        """
        if self.quiet:
            yield lambda n: None
        elif sys.stderr.isatty():
            with _bar(what, unit, total) as advance:
                yield advance
        else:
            counter = _PlainProgress(what, unit)
            yield counter.advance
            counter.end()

    @contextmanager
    def status(self) -> Iterator[Callable[[str], None]]:
        """Show what is being done: beside a spinner on a terminal, elsewhere as lines."""
        if self.quiet or not sys.stderr.isatty():
            yield self.note
            return
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("") as spinner:
            yield lambda text: spinner.update(escape(text))


@contextmanager
def _bar(what: str, unit: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    count = "{task.completed:,.0f} " + (f"of {total:,} " if total else "") + unit
    name = TextColumn("{task.description}", markup=False)  # whatever a file is called
    columns = (name, BarColumn(), TextColumn(count), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda n: progress.advance(task, n)


class _PlainProgress:
    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._n = 0
        self._started = self._said = time.monotonic()

    def advance(self, n: int) -> None:
        self._n += n
        if time.monotonic() - self._said > _PLAIN_SECONDS:
            self.end()

    def end(self) -> None:
        self._said = time.monotonic()
        seconds = self._said - self._started
        _say(f"{self._what}: {self._n:,} {self._unit}, {seconds:.1f} s", sys.stderr)


def _say(line: str, stream: Any) -> None:
    """Write a line; a stream that is not there takes none."""
    if stream is not None:
        print(line, file=stream, flush=True)


def to_json(record: Any) -> str:
    """Return a value as one line of JSON; numbers that JSON lacks are null."""
    return json.dumps(_plain(record), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns, the first one left-aligned and the others right-aligned."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in (header, *rows):
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def percent(share: float | None) -> str:
    """Return a share as per cent."""
    return "–" if share is None else f"{100 * share:.2f} %"


def at_temperature(temperature: float) -> str:
    """Return what is said after a beam: nothing at a temperature of 1."""
    return "" if temperature == 1.0 else f" at temperature {temperature:g}"


def size(n_bytes: int) -> str:
    """Return a number of bytes for people."""
    for limit, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= limit:
            return f"{n_bytes / limit:.1f} {unit}"
    return f"{n_bytes} bytes"

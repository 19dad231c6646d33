"""Runs of an experiment, one at a time: what a result has is not run again.

A result ends with a table of all runs. A script asks for a run by what it is of, and runs what is
missing; so it can be stopped at any time, and goes on from there. Scripts whose report is written
at the end keep the rows that they have in a file beside it (:class:`Kept`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import RESULTS, Table, read, table

Record = dict[str, Any]

_BEGAN = time.monotonic()


def known(name: str) -> list[Record]:
    """Return the runs of a result; none if there is no such result."""
    if not (RESULTS / f"{name}.json").exists():
        return []
    part = read(name).tables[-1]
    return [dict(zip(part.headers, row, strict=True)) for row in part.rows]


def add_options(parser: argparse.ArgumentParser, n_seeds: int) -> None:
    """Let a user choose seeds, and when to pause."""
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(n_seeds)))
    parser.add_argument("--minutes", type=float, help="start no run after so many")


def missing(
    records: list[Record], wanted: Iterator[Record], minutes: float | None
) -> Iterator[Record]:
    """Yield the runs that are missing, until the script has run for some minutes."""
    for keys in wanted:
        if any(all(r[key] == value for key, value in keys.items()) for r in records):
            continue
        if minutes is not None and time.monotonic() - _BEGAN > 60 * minutes:
            print("time is up: run it again to go on")
            return
        yield keys


def means(
    records: list[Record], by: Sequence[str], columns: Sequence[str], errors: Sequence[str] = ()
) -> Table:
    """Return the mean of each column over seeds, and the standard error of some of them."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in by), []).append(record)
    headers = [*by, "seeds"]
    for column in columns:
        headers += [column, f"± seeds: {column}"] if column in errors else [column]
    rows = []
    for key, group in groups.items():
        row: list[Any] = [*key, len(group)]
        for column in columns:
            values = [r[column] for r in group if isinstance(r[column], int | float)]
            row.append(float(np.mean(values)) if values else "")
            if column in errors:
                row.append(standard_error(values))
        rows.append(row)
    return table(headers, rows)


def standard_error(values: Sequence[float]) -> float | str:
    """Return the standard error of a mean over seeds; nothing of one seed."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else ""


def all_runs(records: list[Record], columns: Sequence[str]) -> Table:
    """Return every run."""
    return table(columns, [[record.get(column, "") for column in columns] for record in records])


def merged(name: str, rows: list[list[Any]], order: Sequence[str]) -> list[list[Any]]:
    """Return the rows of the first table of a result, those of sets that were run again replaced.

    The first column of a table names the set; rows are in the order of the sets.
    """
    again = {row[0] for row in rows}
    before: list[list[Any]] = []
    if (RESULTS / f"{name}.json").exists():
        first = next(part for part in read(name).parts if isinstance(part, Table))
        before = [row for row in first.rows if row[0] not in again and row[0] in order]
    return sorted(before + rows, key=lambda row: order.index(row[0]))


class Kept:
    """Parts of a long run: those that a file has are not run again.

    Parameters
    ----------
    path : Path, optional
        A line of JSON for each part. Without it, nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._parts: dict[tuple[str, ...], list[Any]] = {}
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                with suppress(ValueError):  # a line that was cut off
                    key, rows = json.loads(line)
                    self._parts[tuple(key)] = rows

    @staticmethod
    def add_option(parser: argparse.ArgumentParser) -> None:
        """Let a user name the file."""
        parser.add_argument("--state", type=Path, help="file to go on from, if the run is stopped")

    def rows(self, key: Sequence[Any], make: Callable[..., Iterable[Any]], *args: Any) -> list[Any]:
        """Return the rows of a part, made of arguments if there are none; new ones are printed."""
        name = tuple(map(str, key))
        if name not in self._parts:
            rows = []
            for row in make(*args):
                print(row, flush=True)
                rows.append(row)
            text = json.dumps([name, rows], default=float)
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(f"\n{text}")
            self._parts[name] = json.loads(text)[1]
        return self._parts[name]

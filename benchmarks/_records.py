"""Runs of an experiment, one at a time: what a result has is not run again.

A result ends with a table of all runs. A script asks for a run by what it is of, and runs what is
missing; so it can be stopped at any time, and goes on from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
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

"""Tables: printed, and written to ``benchmarks/results`` with the command that made them.

A result is a Markdown file for readers and a JSON file of the same content for scripts: its parts
in order, texts and tables. :func:`read` also takes older results, which are Markdown alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn

RESULTS = Path(__file__).parent / "results"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="directory of data sets")
    return parser


class Table(str):
    """A Markdown table that knows its cells."""

    headers: list[str]
    rows: list[list[Any]]


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    lines += ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]
    text = Table("\n".join(lines))
    text.headers, text.rows = list(headers), [list(row) for row in rows]
    return text


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int | np.integer) else str(cell)


@dataclass(frozen=True)
class Result:
    """A report: what was run where, and its texts and tables in order."""

    title: str
    command: str
    machine: str
    parts: list[str]

    @property
    def tables(self) -> list[Table]:
        """Return the tables."""
        return [part for part in self.parts if isinstance(part, Table)]

    def markdown(self) -> str:
        """Return the report as a page."""
        head = f"# {self.title}\n\nCommand: `{self.command}`  \nMachine: {self.machine}"
        return "\n\n".join([head, *self.parts]) + "\n"

    def json(self) -> str:
        """Return the report for scripts."""
        parts = [
            {"headers": part.headers, "rows": part.rows} if isinstance(part, Table) else part
            for part in self.parts
        ]
        fields = {"title": self.title, "command": self.command, "machine": self.machine}
        lines = json.dumps(fields | {"parts": parts}, ensure_ascii=False, indent=1, default=_plain)
        return f"{lines}\n"


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as what JSON knows."""
    return value.item()


def write(name: str, title: str, *parts: str, suffix: str = "") -> None:
    """Print a report and write it to ``results/<name>.md`` and ``.json``."""
    options = " ".join(_placeholder(word) for word in sys.argv[1:])
    machine = (
        f"{os.cpu_count()} cores, {_processor()}; Python {platform.python_version()}, numpy "
        f"{np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, numba "
        f"{numba.__version__}; {time.strftime('%Y-%m-%d')}"
    )
    command = f"python -m benchmarks.{name} {options}".rstrip()
    result = Result(title, command, machine, list(parts))
    print(result.markdown())
    path = RESULTS / f"{name.replace('.', '_')}{'_' + suffix if suffix else ''}"
    RESULTS.mkdir(exist_ok=True)
    path.with_suffix(".md").write_text(result.markdown(), encoding="utf-8")
    path.with_suffix(".json").write_text(result.json(), encoding="utf-8")


def read(name: str) -> Result:
    """Return the result of that name; ``FileNotFoundError`` if there is none."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return _parsed(path.with_suffix(".md").read_text(encoding="utf-8"))
    fields = json.loads(path.read_text(encoding="utf-8"))
    parts = [part if isinstance(part, str) else table(**part) for part in fields.pop("parts")]
    return Result(**fields, parts=parts)


def _parsed(text: str) -> Result:
    """Return the content of a Markdown report."""
    title, head, *blocks = text.rstrip("\n").split("\n\n")
    command, machine = head.split("\n")
    parts = [_parsed_table(block) if block.startswith("|") else block for block in blocks]
    return Result(
        title.removeprefix("# "),
        command.removeprefix("Command: `").rstrip().removesuffix("`"),
        machine.removeprefix("Machine: "),
        parts,
    )


def _parsed_table(block: str) -> Table:
    headers, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in block.split("\n")
    )
    return table(headers, [[_parsed_cell(cell) for cell in row] for row in rows])


def _parsed_cell(cell: str) -> Any:
    plain = cell.replace(",", "")
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            pass
    return cell


def _placeholder(word: str) -> str:
    """Keep paths of the machine out of results."""
    return "DATA" if "/" in word else word


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"

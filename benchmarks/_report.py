"""Tables: printed, and written to ``benchmarks/results`` with the command that made them."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    lines += ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int | np.integer) else str(cell)


def write(name: str, title: str, *parts: str, suffix: str = "") -> None:
    """Print a report and write it to ``results/<name>.md``."""
    module = f"benchmarks.{name}"
    options = " ".join(_placeholder(word) for word in sys.argv[1:])
    machine = (
        f"{os.cpu_count()} cores, {_processor()}; Python {platform.python_version()}, numpy "
        f"{np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, numba "
        f"{numba.__version__}; {time.strftime('%Y-%m-%d')}"
    )
    head = f"# {title}\n\nCommand: `python -m {module} {options}`  \nMachine: {machine}"
    text = "\n\n".join([head, *parts]) + "\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}{'_' + suffix if suffix else ''}.md").write_text(text, encoding="utf-8")


def _placeholder(word: str) -> str:
    """Keep paths of the machine out of results."""
    return "DATA" if "/" in word else word


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


class Stopwatch:
    """Seconds of a ``with`` block."""

    seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure wall-clock seconds."""
    watch = Stopwatch()
    started = time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - started


def best_of(n_times: int, function: Callable[[], Any]) -> float:
    """Return the shortest of some timings, in seconds."""
    timings = []
    for _ in range(n_times):
        started = time.perf_counter()
        function()
        timings.append(time.perf_counter() - started)
    return min(timings)

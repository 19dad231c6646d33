"""Results as a table: aligned text, Markdown, or plain records for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from thinleaf.measuring.measure import FIGURES
from thinleaf.measuring.run import Result


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _megabytes(value: float) -> str:
    return _number(value / 1e6)


COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "train_seconds": ("train s", _number),
    "error": ("error %", _percent),
    "top_k_error": ("top-5 %", _percent),
    "perplexity": ("perpl.", _number),
    "coverage": ("cover. %", _percent),
    "depth": ("depth", _whole),
    "leaves": ("leaves", _whole),
    "mean_leaf_classes": ("mean k", _number),
    "flops": ("FLOPs", _whole),
    "single_us": ("one µs", _number),
    "batch_us": ("batch µs", _number),
    "bytes": ("MB", _megabytes),
    "peak_bytes": ("peak MB", _megabytes),
}
"""The figures that the table has, with their headings."""

NOTE = (
    "One thread. Top-5 is the error of five guesses; perplexity is over all classes, coverage the "
    "share of rows whose leaf holds their class; FLOPs are multiplications of a prediction; one µs "
    "is a call with one prepared row, batch µs a row of one call with all; peak MB is of the whole "
    "process with data and libraries. fastText and label trees read texts themselves. Nothing is "
    "tuned."
)


def to_text(results: Sequence[Result]) -> str:
    """Return aligned columns; a model that failed says why in its row."""
    header = ["", *(title for title, _ in COLUMNS.values())]
    rows = {result.name: _cells(result) for result in results if result.failed is None}
    name_width = max([len(result.name) for result in results], default=0)
    widths = [max(map(len, column)) for column in zip(header[1:], *rows.values(), strict=True)]
    lines = [_line("", header[1:], name_width, widths)]
    for result in results:
        if result.failed is not None:
            lines.append(f"{result.name.ljust(name_width)}  {result.failed}")
        else:
            lines.append(_line(result.name, rows[result.name], name_width, widths))
    return "\n".join(lines)


def to_markdown(results: Sequence[Result]) -> str:
    """Return a Markdown table; a model that failed says why in its row."""
    header = ["", *(title for title, _ in COLUMNS.values())]
    lines = [_markdown_row(header), "|---|" + "---:|" * len(COLUMNS)]
    for result in results:
        blank = [result.failed or "", *[""] * (len(COLUMNS) - 1)]
        lines.append(_markdown_row([result.name, *(blank if result.failed else _cells(result))]))
    return "\n".join(lines)


def to_records(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return a record of each result with all figures, those that are not in the table too."""
    names = (*FIGURES, "peak_bytes")
    return [
        {"name": result.name, "failed": result.failed}
        | {name: result.figures.get(name) for name in names}
        for result in results
    ]


def _cells(result: Result) -> list[str]:
    values = [(result.figures.get(name), show) for name, (_, show) in COLUMNS.items()]
    return ["–" if value is None else show(value) for value, show in values]


def _line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> str:
    padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join([name.ljust(name_width), *padded])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

"""Make the table of ``docs/when.md`` of the committed results: ours beside others, by size.

Run it with ``python -m benchmarks.when_page`` after a result of ``adapts``, ``peers`` or
``embedded`` has changed. What stands around the table is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks._report import RESULTS, Result, Table, read, table
from benchmarks.peers import is_ours

PAGE = Path(__file__).parents[1] / "docs" / "when.md"
BEGIN, END = "<!-- table: python -m benchmarks.when_page -->\n", "\n<!-- end of table -->"
DENSE = {"fontglyph1000", "geo_admin1", "letter", "omniglot"}
LEFT_OUT = {"ptb"}  # only Vowpal Wabbit was run there
HEADERS = [
    "data",
    "classes",
    "rows a class",
    "one tree",
    "µs",
    "forest",
    "µs",
    "the best other",
    "µs",
]


@dataclass(frozen=True)
class Row:
    """A model on a data set."""

    name: str
    error: float
    micros: float | None
    deviation: float | None = None

    def cells(self, *, named: bool, bold: bool) -> list[str]:
        """Return the error, with its standard error and the name, and the µs."""
        error = f"**{self.error:.1f}**" if bold else f"{self.error:.1f}"
        error += "" if self.deviation is None else f"\u00a0±\u00a0{self.deviation:.1f}"
        return [f"{error}, {self.name}" if named else error, _micros(self.micros)]


def _micros(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def rows_of(part: Table, micros: str) -> list[Row]:
    """Return the models of a table that have an error."""
    headers = ["system" if header == "" else header for header in part.headers]
    rows = [dict(zip(headers, row, strict=True)) for row in part.rows]
    return [
        Row(
            str(row["system"]),
            float(row["error %"]),
            _number(row[micros]),
            _number(row.get("± rows")),
        )
        for row in rows
        if _number(row["error %"]) is not None
    ]


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def sizes(result: Result) -> tuple[int, int]:
    """Return how many training rows and classes a result says that it had."""
    words = re.search(r"([\d,]+) (?:training|rows)", result.parts[0])
    classes = re.search(r"([\d,]+) classes", result.parts[0])
    assert words is not None
    assert classes is not None
    return int(words[1].replace(",", "")), int(classes[1].replace(",", ""))


def _read(name: str) -> Result | None:
    return read(name) if (RESULTS / f"{name}.json").exists() else None


@dataclass(frozen=True)
class Compared:
    """Models on a data set: a tree and a forest of ours, the best of the others."""

    label: str
    source: str
    sizes: tuple[int, int]
    tree: Row
    forest: Row | None
    other: Row

    def cells(self) -> list[str]:
        """Return a line of the table; in bold is the fewest errors."""
        n_rows, n_classes = self.sizes
        models = [row for row in (self.tree, self.forest, self.other) if row is not None]
        least = min(round(row.error, 1) for row in models)
        cells = [f"[{self.label}](../benchmarks/results/{self.source}.md)"]
        cells += [f"{n_classes:,}", f"{n_rows / n_classes:.0f}"]
        for row in (self.tree, self.forest, self.other):
            named = row is self.other or (row is self.tree and not row.name.startswith(TREES))
            cells += (
                ["", ""]
                if row is None
                else row.cells(named=named, bold=round(row.error, 1) == least)
            )
        return cells


TREES = ("AST", "thinleaf tree")


def _first(rows: list[Row], *beginnings: str) -> Row | None:
    """Return the first model of the first beginning that some name has."""
    named = (row for start in beginnings for row in rows if row.name.startswith(start))
    return next(named, None)


def _best(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: row.error)


def compared(name: str) -> Iterator[Compared]:
    """Yield what is known of a set.

    Where there is a result of ``adapts``, ours have nothing set and others are tuned; the others'
    µs are those of ``peers``. Elsewhere all is of ``peers``.
    """
    peers, adapts = _read(f"peers_{name}"), _read(f"adapts_{name}")
    measured = rows_of(peers.tables[0], "single µs") if peers else []
    others = [row for row in measured if not is_ours(row.name)]
    rows, source = measured, f"peers_{name}"
    if adapts is not None:
        rows, source = rows_of(adapts.tables[0], "single µs"), f"adapts_{name}"
        micros = {row.name: row.micros for row in others}
        tuned = [
            replace(row, micros=micros.get(row.name.removesuffix(", defaults")))
            for row in rows
            if not row.name.startswith(("AST", "forest"))
        ]
        known = {row.name for row in tuned}
        others = tuned + [row for row in others if row.name not in known]
    tree = _first(rows, "AST, its own beam", "AST", "Recall Tree")
    size = sizes(adapts or peers)
    if tree is not None:
        kind = "numbers" if name in DENSE else "text"
        forest = _first(rows, "forest")
        yield Compared(f"{name}, {kind}", source, size, tree, forest, _best(others))
    embedded = _read(f"embedded_{name}")
    if embedded is not None:
        rows = rows_of(embedded.tables[0], "one µs")
        tree = _first(rows, "thinleaf tree, beam", "thinleaf tree")
        assert tree is not None
        forest = _first(rows, "thinleaf forest")
        others = [row for row in rows if not row.name.startswith("thinleaf")]
        label = f"{name}, sentence embeddings"
        yield Compared(label, f"embedded_{name}", size, tree, forest, _best(others))


def comparison() -> Table:
    """Return the table, from few classes to many."""
    files = [path.stem for kind in ("adapts", "peers") for path in RESULTS.glob(f"{kind}_*.json")]
    names = sorted({name.partition("_")[2] for name in files} - LEFT_OUT)
    found = [entry for name in names for entry in compared(name)]
    return table(HEADERS, [entry.cells() for entry in sorted(found, key=lambda e: e.sizes[1])])


def page(text: str) -> str:
    """Return the page with the table of today's results."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{comparison()}\n{END}{after}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()

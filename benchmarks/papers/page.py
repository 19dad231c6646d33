"""Make ``docs/results.md`` of the results that are committed: nothing in it is written by hand.

Run it with ``python -m benchmarks.papers.page`` after a result has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from benchmarks._report import Result, Table, read, table
from benchmarks.papers import (
    paper000_figure2,
    paper000_figure3,
    paper000_figure5,
    paper000_figure6,
    paper000_table1,
    paper000_table2,
    paper000_table3,
    paper001_figure2,
    paper001_figure3,
    paper001_table1,
    paper001_table3,
    paper001_table4,
    paper002_figure4,
    paper002_figure5,
    paper004_table1,
    paper004_table2,
)
from benchmarks.papers._section import Section, number, results
from benchmarks.peers import SETS, is_ours
from thinleaf.explain.frontier import pareto_front

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
PAPERS: dict[str, tuple[ModuleType, ...]] = {
    "Paper 000: Adaptive Softmax Trees": (
        paper000_table1,
        paper000_table2,
        paper000_table3,
        paper000_figure2,
        paper000_figure3,
        paper000_figure5,
        paper000_figure6,
    ),
    "Paper 001: Softmax Trees": (
        paper001_table1,
        paper001_table3,
        paper001_table4,
        paper001_figure2,
        paper001_figure3,
    ),
    "Paper 002: Recall Trees": (paper002_figure4, paper002_figure5),
    "Paper 004: learned M-ary trees": (paper004_table1, paper004_table2),
}
HEAD = """# Results

The papers' tables and figures beside ours, and our models beside other libraries. This page is made
by `python -m benchmarks.papers.page` from the files in [benchmarks/results](../benchmarks/results),
each of which names its command and machine; `DATA` is a directory of data sets. Do not edit it.

- A verdict is a rule in code. A number of the paper is reproduced if ours is no worse; that is only
  asked where the data is the same. A claim that one model errs less than another is reproduced if
  the difference in our runs is larger than two standard errors of counting errors on test rows.
- Where the original data is not available, other data stands in. Then numbers do not compare, but
  claims do. fontglyph1000 has the shape of ALOI, but is not ALOI.
- Many of the papers' figures are curves without numbers; what the papers say of them is checked."""


def page() -> str:
    """Return the page."""
    sections = {
        paper: [(module, _section(module)) for module in modules]
        for paper, modules in PAPERS.items()
    }
    rows = []
    for paper, found in sections.items():
        for module, section in found:
            name = module.__name__.rsplit(".", 1)[1]
            if section is None:
                rows.append([paper, f"`{name}`", "not run yet"])
                continue
            n_held, n_claims = section.score
            rows.append([paper, section.title, f"{n_held} of {n_claims}"])
    parts = [HEAD, "## Summary", table(["paper", "table or figure", "claims reproduced"], rows)]
    parts += _fronts()
    for paper, found in sections.items():
        parts.append(f"## {paper}")
        for module, section in found:
            parts += _shown(module, section)
    return "\n\n".join(parts) + "\n"


def _section(module: ModuleType) -> Section | None:
    """Return what a script says, or None if its result is not there."""
    try:
        section: Section = module.section()
    except FileNotFoundError:
        return None
    return section if section.checks else None


def _shown(module: ModuleType, section: Section | None) -> Iterator[str]:
    if section is None:
        yield f"### `{module.__name__.rsplit('.', 1)[1]}`"
        yield "Not run yet: no result is committed."
        return
    yield f"### {section.title}"
    yield section.data
    yield "\n".join(f"- {_source(name)}" for name in section.sources)
    yield section.verdicts()
    yield "<details><summary>Numbers</summary>"
    yield from (_moved(part) for part in section.parts)
    yield "</details>"


def _source(name: str) -> str:
    return f"[{name}](../benchmarks/results/{name}.md): `{read(name).command}`"


def _moved(part: str) -> str:
    """Return a part of a result as it is to stand below a heading of the third level."""
    part = part.replace("![](", "![](../benchmarks/results/")
    return f"##{part}" if part.startswith("## ") else part


def _fronts() -> list[str]:
    """Return the part on other libraries: the front of each data set."""
    found = results([f"peers_{name}" for name in SETS])
    rows = []
    for name in SETS:
        result = found.get(f"peers_{name}")
        if result is None:
            rows.append([name, "not run", "", ""])
            continue
        ours, theirs = _on_front(result.tables[0])
        verdict = "yes" if ours else "**no: every model of ours is beaten**"
        rows.append([name, verdict, "; ".join(ours), "; ".join(theirs)])
    headers = ["set", "one of ours is on the front", "ours on the front", "others on the front"]
    return [
        "## Error against latency",
        "The front of each data set, of error in percent and µs of a single prediction, when the "
        "installed peers run beside ours, on one thread and near their defaults. Those that are "
        "left out for the time that training takes are named below.",
        table(headers, rows),
        "\n".join(f"- {_source(name)}{_left_out(result)}" for name, result in found.items()),
    ]


def _left_out(result: Result) -> str:
    """Return what a report on peers says of systems that were not run."""
    _, found, names = result.parts[0].partition(" Not run")
    return f". Not run{names}" if found else ""


def _on_front(part: Table) -> tuple[list[str], list[str]]:
    """Return our systems on the front of a table of peers, and the others."""
    error, single = part.headers.index("error %"), part.headers.index("single µs")
    ran = [row for row in part.rows if not isinstance(row[error], str)]
    rows = {row[0]: row for row in ran}
    texts = {
        name: f"{name} ({number(rows[name][error])} %, {number(rows[name][single])} µs)"
        for name in pareto_front({row[0]: (row[single], row[error]) for row in ran})
    }
    ours = [name for name in texts if is_ours(name)]
    return [texts[name] for name in ours], [texts[name] for name in texts if name not in ours]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()

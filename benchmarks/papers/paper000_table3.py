"""Paper 000, table 3: Penn Treebank with word vectors; the run is that of ``benchmarks.ptb``."""

from __future__ import annotations

from benchmarks._report import read, table
from benchmarks.papers._section import Check, Section, at_most, by_name, lower, results
from benchmarks.papers.paper001_table3 import RESULT as SOFTMAX_TREES

PAPER = {  # test error in percent, depth, µs, perplexity of covered rows, coverage in percent
    "HSM": (91.1, 18, 421, 575, 100),
    "one-vs-all": (87.5, 0, 705, 220, 100),
    "ST(k=50)": (86.5, 8, 58, 17, 44),
    "ST(k=100)": (86.5, 7, 58, 27, 51),
    "ST(k=400)": (86.4, 5, 64, 71, 67),
    "AST(α=0.3)": (86.4, 12, 17, 10, 37),
    "AST(α=0.4)": (86.1, 12, 18, 13, 44),
    "AST(α=0.5)": (86.2, 11, 19, 24, 51),
}


def section() -> Section:
    """Return the paper's numbers beside ours."""
    result = read("ptb")
    ours = {name: row["AST"] for name, row in by_name(result.tables[0]).items()}
    best = PAPER["AST(α=0.4)"]
    checks: list[Check] = [
        at_most("AST: test error", best[0], ours["test error %"]),
        at_most("AST: µs (ours of batches, on another machine)", best[2], ours["µs a row"], "",
                " µs"),
        Check("AST: coverage", f"{best[4]} %", f"{ours['coverage %']:.1f} %",
              ours["coverage %"] >= best[4]),
        at_most("AST: perplexity of covered rows", best[3], ours["perplexity of covered rows"],
                "more rows are covered, and the rarer words are the harder ones", ""),
    ]  # fmt: skip
    sources = ["ptb"]
    if SOFTMAX_TREES in results([SOFTMAX_TREES]):
        sources.append(SOFTMAX_TREES)
        trees = by_name(read(SOFTMAX_TREES).tables[0])
        rows = {name: row for name, row in trees.items() if name.startswith("ST")}
        error = min(row["top-1 error %"] for row in rows.values())
        checks += [
            lower("AST has fewer errors than ST", "86.1 against 86.4 %", ours["test error %"],
                  error, unit=" %"),
        ]  # fmt: skip
    headers = ["paper", "test error %", "depth", "µs", "perplexity of covered rows", "coverage %"]
    parts = [table(headers, [[label, *row] for label, row in PAPER.items()]), result.tables[0]]
    return Section(
        "Table 3: Penn Treebank with word vectors",
        sources,
        "The paper's text and nearly its rows (see the loader); vectors of 100 numbers instead of "
        "50, so errors are expected to be lower. One-vs-all and HSM were not run.",
        checks,
        parts,
    )


if __name__ == "__main__":
    print(section().verdicts())

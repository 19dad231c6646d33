"""Paper 004, table 2: perplexity and time of a log-bilinear language model with a learned tree.

The runs are those of ``benchmarks.language``. novels100 stands in for the Gutenberg corpus.
"""

from __future__ import annotations

from benchmarks._report import table
from benchmarks.papers._section import Check, Section, by_name, lower, results

PAPER = {  # perplexity, train and test ms a batch
    "clustering": (212, 2.0, 1.0),
    "random": (160, 1.9, 0.9),
    "flat": (149, 12.5, 6.9),
    "learned": (148, 4.5, 0.9),
}
SETS = ("novels100", "ptb")


def section() -> Section:
    """Return the paper's numbers beside ours."""
    found = results([f"language_{name}" for name in SETS])
    theirs = table(["paper: tree", "perplexity", "train ms a batch", "test ms a batch"],
                   [[label, *row] for label, row in PAPER.items()])  # fmt: skip
    parts: list[str] = [theirs]
    checks: list[Check] = []
    for name, result in found.items():
        data = name.removeprefix("language_")
        rows = by_name(result.tables[0])
        parts += [f"**{data}**: {result.parts[0]}", result.tables[0]]
        for other, paper in (("flat", "flat"), ("balanced", "random"),
                             ("clustering", "clustering")):  # fmt: skip
            if other in rows and "learned" in rows:
                checks.append(lower(
                    f"{data}: the learned tree's perplexity is below that of the {paper} "
                    f"{'softmax' if paper == 'flat' else 'tree'}",
                    f"{PAPER['learned'][0]} against {PAPER[paper][0]}",
                    rows["learned"]["test"], rows[other]["test"],
                    "both differences are below one percent" if other == "flat" else "",
                ))  # fmt: skip
        if {"flat", "learned"} <= rows.keys():
            for step, at in (("train", 1), ("test", 2)):
                column = f"{step} ms a batch"
                checks.append(lower(
                    f"{data}: the learned tree is faster than the flat softmax ({step})",
                    f"{PAPER['learned'][at]} against {PAPER['flat'][at]} ms",
                    rows["learned"][column], rows["flat"][column], unit=" ms",
                ))  # fmt: skip
        if {"balanced", "clustering"} <= rows.keys():
            checks.append(lower(
                f"{data}: the clustering tree is worse than the random one",
                f"{PAPER['random'][0]} against {PAPER['clustering'][0]}",
                rows["balanced"]["test"], rows["clustering"]["test"],
                "our clustering halves the words by their contexts, the paper's cuts them up",
            ))  # fmt: skip
    return Section(
        "Table 2: language models with a learned tree",
        list(found),
        "novels100 stands in for the Gutenberg corpus, with a part of its words and on a CPU: "
        "only claims compare. Our random tree is a balanced one.",
        checks,
        parts,
    )


if __name__ == "__main__":
    print(section().verdicts())

"""Paper 001, figure 3: initial trees. Random, clusters of class means, clusters of all rows.

Without overlap; and beside them our own defaults, ``pca_median`` for dense rows and
``balanced_clusters`` for sparse ones.
"""

from __future__ import annotations

from typing import Any

from benchmarks._data import available, load
from benchmarks._models import SHORT, fit_figures, mean, warm_up
from benchmarks._report import arguments, read, table, write
from benchmarks.papers._section import Check, Section, by_name, lower_error
from benchmarks.papers.paper001_table1 import N_SEEDS, N_TEST, SETTINGS
from thinleaf import SoftmaxTreeClassifier

RESULT = "papers_paper001_figure3"
INITS = {
    "random": "random",
    "class prototypes": "class_clusters",
    "whole data": "row_clusters",
    "our default": "auto",
}


def rows_of(directory: Any, name: str) -> list[list[Any]]:
    """Return a row for each initial tree: means of seeds."""
    data = load(directory, name)
    warm_up(data, SoftmaxTreeClassifier(depth=2, max_sweeps=2))
    rows = []
    for label, init in INITS.items():
        runs = []
        for seed in range(N_SEEDS[name]):
            fixed = {"init": init, "random_state": seed, "n_jobs": 1, "overlap": None}
            runs.append(fit_figures(SoftmaxTreeClassifier(**(SETTINGS[name] | fixed)), data))
        rows.append([label, *mean(runs, SHORT)])
        print(name, rows[-1], flush=True)
    return rows


def main() -> None:
    """Fit every initial tree on the sets that are there."""
    options = arguments(__doc__).parse_args()
    parts = []
    for name in SETTINGS:
        if available(options.data, name):
            rows = rows_of(options.data, name)
            parts += [f"## {name}, means of {N_SEEDS[name]} seeds", f"`{SETTINGS[name]}`",
                      table(["initial tree", *SHORT], rows)]  # fmt: skip
            write("papers.paper001_figure3", "Paper 001, figure 3: initial trees", *parts)


def section() -> Section:
    """Return the paper's claim beside ours."""
    result = read(RESULT)
    checks: list[Check] = []
    for name, part in zip(SETTINGS, result.tables, strict=False):
        errors = {label: row["test error %"] for label, row in by_name(part).items()}
        for init in ("class prototypes", "whole data"):
            pair = errors[init], errors["random"]
            why = "clusters are of unequal size: the largest lack room for their classes"
            text = f"{name}: {init} is better than random"
            checks.append(lower_error(text, "considerably", *pair, N_TEST[name], why))
    return Section(
        "Figure 3: initial trees",
        [RESULT],
        "Letter and fontglyph1000 stand in for ALOI, icd10cm for the texts. The paper's bars are "
        "not given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

"""Paper 001, figures 2 and 4: error and cost against depth Δ and leaf classes k.

Complete trees from random hyperplanes, without overlap. Letter stands in for ALOI, of which figure
4 is, and icd10cm for ODP; its hyperplanes are at the median, because on sparse rows others leave
most leaves empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import letter, text
from benchmarks._data import available, load
from benchmarks._models import figures, fit, warm_up
from benchmarks._report import Table, arguments, read, table, write
from benchmarks.papers._section import Check, Section, lower, lower_error
from thinleaf import SoftmaxTreeClassifier

RESULT = "papers_paper001_figure2"
GRID: dict[str, dict[str, Any]] = {
    "letter": {
        "depths": (1, 3, 5, 7, 9),
        "k": (2, 4, 7, 13, 26),
        "settings": letter.SETTINGS | {"init": "random", "max_sweeps": 30},
    },
    "icd10cm": {
        "depths": (2, 4, 6, 8),
        "k": (25, 100, 400),
        "settings": text.COMMON
        | text.SETTINGS["icd10cm"]
        | {"init": "random_median", "max_sweeps": 3},
    },
}
STANDS_IN = {"letter": "ALOI", "icd10cm": "ODP"}
N_TEST = {"letter": 4000, "icd10cm": 8864}
COLUMNS = ["test error %", "train error %", "FLOPs", "µs a row"]


def rows_of(directory: Any, name: str) -> list[list[Any]]:
    """Return a row for each depth and k."""
    data = load(directory, name)
    warm_up(data, SoftmaxTreeClassifier(depth=2, max_sweeps=2))
    grid, rows = GRID[name], []
    for depth in grid["depths"]:
        for k in grid["k"]:
            shape = {"depth": depth, "leaf_classes": k, "random_state": 0, "n_jobs": 1}
            model, seconds = fit(SoftmaxTreeClassifier(**(grid["settings"] | shape)), data)
            found = figures(model, seconds, data)
            rows.append([depth, k, *(found[column] for column in COLUMNS)])
            print(name, rows[-1], flush=True)
    return rows


def main() -> None:
    """Fit the grids of the sets that are there."""
    options = arguments(__doc__).parse_args()
    parts = []
    for name, original in STANDS_IN.items():
        if available(options.data, name):
            rows = rows_of(options.data, name)
            parts += [f"## {name} (paper: {original}), one seed", f"`{GRID[name]['settings']}`",
                      table(["depth", "k", *COLUMNS], rows)]  # fmt: skip
            title = "Paper 001, figures 2 and 4: depth and leaf classes"
            write("papers.paper001_figure2", title, *parts)


def _grid(part: Table, column: str) -> np.ndarray:
    """Return a column as a matrix of depths and k."""
    at = part.headers.index(column)
    n_depths = len({row[0] for row in part.rows})
    return np.array([row[at] for row in part.rows], dtype=float).reshape(n_depths, -1)


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    checks: list[Check] = []
    for name, part in zip(STANDS_IN, result.tables, strict=False):
        grid, n_test = GRID[name], N_TEST[name]
        errors, flops = _grid(part, "test error %"), _grid(part, "FLOPs")
        first, last = f"k = {grid['k'][0]}", f"k = {grid['k'][-1]}"
        means, middle = errors.mean(axis=0), len(grid["k"]) // 2
        curve = errors[:, middle]
        best = int(np.argmin(curve))
        depths, k = grid["depths"], grid["k"][middle]
        checks += [
            lower_error(f"{name}: more classes a leaf, fewer errors, mean of all depths ({last} "
                        f"and {first})", "so", means[-1], means[0], n_test),
            lower(f"{name}: and a slower prediction (FLOPs, {first} and {last})", "so",
                  flops.mean(axis=0)[0], flops.mean(axis=0)[-1]),
            lower_error(f"{name}: the tree should be deep enough (k = {k}, depth {depths[best]} and"
                        f" {depths[0]})", "so", curve[best], curve[0], n_test),
            lower_error(f"{name}: too deep a tree overfits (k = {k}, depth {depths[best]} and "
                        f"{depths[-1]})", "it may", curve[best], curve[-1], n_test),
        ]  # fmt: skip
    return Section(
        "Figures 2 and 4: depth Δ and leaf classes k",
        [RESULT],
        "icd10cm stands in for ODP (figure 2), Letter for ALOI (figure 4). The paper's curves are "
        "not given as numbers: what it says of them is checked.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

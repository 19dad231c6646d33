"""Paper 001, figures 2 and 4: error and cost against depth Δ and leaf classes k, on Letter.

Complete trees from random hyperplanes, without overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import letter
from benchmarks._data import Dataset, load
from benchmarks._models import fit_figures, warm_up
from benchmarks._report import Table, arguments, read, table, write
from benchmarks.papers._section import Check, Section, lower, lower_error, number
from thinleaf import SoftmaxTreeClassifier

RESULT = "papers_paper001_figure2"
DEPTHS = (1, 3, 5, 7, 9)
LEAF_CLASSES = (2, 4, 7, 13, 26)
SETTINGS = letter.SETTINGS | {"init": "random", "max_sweeps": 30}
N_TEST = 4000
COLUMNS = ["test error %", "train error %", "FLOPs", "µs a row"]


def rows_of(data: Dataset) -> Iterator[list[Any]]:
    """Yield a row for each depth and k."""
    for depth in DEPTHS:
        for k in LEAF_CLASSES:
            shape = {"depth": depth, "leaf_classes": k, "random_state": 0, "n_jobs": 1}
            found = fit_figures(SoftmaxTreeClassifier(**(SETTINGS | shape)), data)
            yield [depth, k, *(found[column] for column in COLUMNS)]


def main() -> None:
    """Fit the grid."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "letter")
    warm_up(data, SoftmaxTreeClassifier(depth=2, max_sweeps=2))
    write(
        "papers.paper001_figure2",
        "Paper 001, figures 2 and 4: depth and leaf classes, Letter",
        f"One seed. `{SETTINGS}`",
        table(["depth", "k", *COLUMNS], list(rows_of(data))),
    )


def _grid(part: Table, column: str) -> np.ndarray:
    """Return a column as a matrix of depths and k."""
    at = part.headers.index(column)
    n_depths = len({row[0] for row in part.rows})
    return np.array([row[at] for row in part.rows], dtype=float).reshape(n_depths, -1)


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    part = result.tables[0]
    errors, flops = _grid(part, "test error %"), _grid(part, "FLOPs")
    means, cost, middle = errors.mean(axis=0), flops.mean(axis=0), len(LEAF_CLASSES) // 2
    few, many, k = LEAF_CLASSES[0], LEAF_CLASSES[-1], LEAF_CLASSES[middle]
    curve = errors[:, middle]
    best = int(np.argmin(curve))
    pair = f"k = {k}, depth {DEPTHS[best]} and"
    checks = [
        lower_error(f"more classes a leaf, fewer errors (mean of depths, k = {many} and {few})",
                    "so", means[-1], means[0], N_TEST),
        lower(f"and a slower prediction (FLOPs, k = {few} and {many})", "so", cost[0], cost[-1]),
        Check("but hardly a slower one", "the difference is typically negligible",
              f"{number(cost[-1] / cost[0])} times", bool(cost[-1] < 1.1 * cost[0]),
              f"{many} classes are few enough for a leaf to hold them all"),
        lower_error(f"the tree should be deep enough ({pair} {DEPTHS[0]})", "so", curve[best],
                    curve[0], N_TEST),
        lower_error(f"too deep a tree overfits ({pair} {DEPTHS[-1]})", "it may", curve[best],
                    curve[-1], N_TEST),
    ]  # fmt: skip
    return Section(
        "Figures 2 and 4: depth Δ and leaf classes k",
        [RESULT],
        "Letter stands in for ODP (figure 2) and ALOI (figure 4). The paper's curves are not given "
        "as numbers: what it says of them is checked.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

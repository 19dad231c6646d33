"""Paper 002, figure 4: Recall Tree beside one-against-all and LOMTree, errors and time.

All ours, on one thread, in the same order of the same rows; vowpalwabbit's are in
``benchmarks.online``. fontglyph1000 stands in for ALOI, icd10cm for ODP.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks._data import available, load
from benchmarks._report import arguments, read, table, write
from benchmarks.online import COMPARISONS, HEADERS, our_row, shuffled
from benchmarks.papers._section import Check, Section, lower, lower_error
from thinleaf import OnlineOneVsAllClassifier

RESULT = "papers_paper002_figure4"
STANDS_IN = {"fontglyph1000": "ALOI", "icd10cm": "ODP"}
N_TEST = {"fontglyph1000": 11_000, "icd10cm": 8864}
NAMES = ("Recall Tree", "LOMTree", "one-against-all")


def rows_of(options: argparse.Namespace, name: str) -> list[list[Any]]:
    """Return a row for each system."""
    data = shuffled(load(options.data, name))
    comparison = COMPARISONS[name]
    models = [*comparison.ours, OnlineOneVsAllClassifier()]
    rows = []
    for label, model in zip(NAMES, models, strict=True):
        rows.append([label, *our_row(data, model, comparison.n_passes)])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure the sets that are there."""
    options = arguments(__doc__).parse_args()
    parts = []
    for name, original in STANDS_IN.items():
        if available(options.data, name):
            rows = rows_of(options, name)
            passes = COMPARISONS[name].n_passes
            note = f"## {name} (paper: {original}), {passes} passes"
            parts += [note, table(["", *HEADERS], rows)]
            title = "Paper 002, figure 4: Recall Tree, LOMTree, one-against-all"
            write("papers.paper002_figure4", title, *parts)


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    checks: list[Check] = []
    for name, part in zip(STANDS_IN, result.tables, strict=False):
        error, speed, single = (
            {row[0]: row[part.headers.index(column)] for row in part.rows}
            for column in ("test error %", "training examples/s", "one prediction µs")
        )
        tree, lom, flat = NAMES
        n = N_TEST[name]
        checks.append(lower_error(f"{name}: fewer errors than LOMTree", "fewer, or on par",
                                  error[tree], error[lom], n))  # fmt: skip
        if STANDS_IN[name] == "ALOI":
            checks.append(lower_error(f"{name}: fewer errors than one-against-all", "so on ALOI",
                                      error[tree], error[flat], n))  # fmt: skip
        else:
            checks.append(lower_error(f"{name}: more errors than one-against-all",
                                      "somewhat worse", error[flat], error[tree], n))  # fmt: skip
        checks += [
            lower(f"{name}: a prediction takes longer than LOMTree's", "typically", single[lom],
                  single[tree], "its paths are deeper, and ours are packed", " µs"),
        ]  # fmt: skip
        if STANDS_IN[name] == "ALOI":
            checks.append(lower(f"{name}: a prediction is slower than one-against-all's",
                                "slower on ALOI", single[flat], single[tree],
                                "ours is compiled and packed; one-against-all has a product for "
                                "every class", " µs"))  # fmt: skip
        else:
            checks += [
                lower(f"{name}: a prediction is faster than one-against-all's",
                      "about 300 times on ODP", single[tree], single[flat], unit=" µs"),
                lower(f"{name}: training is faster than one-against-all's (examples a second)",
                      "with many classes", speed[flat], speed[tree]),
            ]  # fmt: skip
    return Section(
        "Figure 4: Recall Tree, LOMTree, one-against-all",
        [RESULT],
        "fontglyph1000 stands in for ALOI, icd10cm for ODP; there is nothing like Imagenet here, "
        "and LTCB is in figure 5. The bars are not given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

"""Paper 001, table 3: softmax trees on Penn Treebank with word vectors.

On one of ``--every`` training rows; without overlap, as in the paper. ε is chosen on the validation
text. Vectors have 100 numbers, where the paper's have 50.
"""

from __future__ import annotations

from typing import Any

from benchmarks._data import load
from benchmarks._report import arguments, read, stopwatch, table, write
from benchmarks.papers._language import COLUMNS, language_figures
from benchmarks.papers._section import Check, Section, at_most, by_name, number
from thinleaf import SoftmaxTreeClassifier

RESULT = "papers_paper001_table3"
PAPER = {  # top-1, top-5 error in percent, perplexity, coverage in percent, smoothed, depth, ms
    "HSM": (91.1, 81.1, 575, 100, "–", 18, 0.421),
    "one-vs-all": (87.5, 80.2, 220, 100, "–", 0, 0.402),
    "softmax": (86.9, 79.6, 217, 100, "–", 0, 0.467),
    "ST(k=50)": (86.5, 72.5, 17, 44, 869, 8, 0.058),
    "ST(k=100)": (86.5, 71.5, 27, 51, 761, 7, 0.058),
    "ST(k=200)": (86.4, 70.6, 45, 58, 657, 6, 0.053),
    "ST(k=400)": (86.4, 69.7, 71, 67, 566, 5, 0.064),
    "ST(k=800)": (86.4, 68.4, 117, 77, 427, 4, 0.066),
}
SHAPES = {"ST(k=50)": (8, 50), "ST(k=200)": (6, 200), "ST(k=800)": (4, 800)}
SETTINGS: dict[str, Any] = {
    "init": "class_clusters",
    "max_sweeps": 2,
    "router_ridge": 100.0,
    "leaf_ridge": 70.0,
    "tol": 1e-3,
    "overlap": None,
    "random_state": 0,
    "n_jobs": 1,
}


def main() -> None:
    """Fit the trees; the report is written after each."""
    parser = arguments(__doc__)
    parser.add_argument("--every", type=int, default=4, help="take one of so many training rows")
    options = parser.parse_args()
    data = load(options.data, "ptb")
    X, y = data.X_train[:: options.every], data.y_train[:: options.every]
    rows = []
    for name, (depth, k) in SHAPES.items():
        with stopwatch() as watch:
            model = SoftmaxTreeClassifier(depth, k, **SETTINGS).fit(X, y)
        figures = language_figures(model, (data.X_valid, data.y_valid), (data.X_test, data.y_test))
        rows.append([name, *figures, watch.seconds])
        print(rows[-1], flush=True)
        write(
            "papers.paper001_table3",
            "Paper 001, table 3: softmax trees on Penn Treebank",
            f"{len(y):,} of {len(data.y_train):,} training rows, {len(data.y_test):,} test rows, "
            f"{X.shape[1]} features. µs of batches, one thread. `{SETTINGS}`",
            table(["", *COLUMNS, "fit s"], rows),
        )


def section() -> Section:
    """Return the paper's numbers beside ours."""
    result = read(RESULT)
    ours = by_name(result.tables[0])
    checks: list[Check] = []
    for name, row in ours.items():
        top1, top5, _, cover, smooth, _, ms = PAPER[name]
        why = "a part of the rows, and two sweeps only"
        checks += [
            at_most(f"{name}: top-1 error", top1, row["top-1 error %"], why),
            at_most(f"{name}: top-5 error", top5, row["top-5 error %"], why),
            at_most(f"{name}: smoothed perplexity", smooth, row["smoothed perplexity"], why, ""),
            Check(f"{name}: coverage", f"{cover} %", f"{row['coverage %']:.1f} %",
                  row["coverage %"] >= cover, why),
            at_most(f"{name}: µs (ours of batches, on another machine)", 1000 * ms,
                    row["µs a row"], "", " µs"),
        ]  # fmt: skip
    for column, what in (("coverage %", "coverage rises with k"),
                         ("perplexity of covered rows", "and so does its perplexity")):  # fmt: skip
        values = [row[column] for row in ours.values()]
        text = ", ".join(map(number, values))
        checks.append(Check(what, "so", text, values == sorted(values)))
    falling = [row["smoothed perplexity"] for row in ours.values()]
    checks.append(Check("smoothed perplexity falls with k", "869, 657, 427",
                        ", ".join(map(number, falling)),
                        falling == sorted(falling, reverse=True)))  # fmt: skip
    headers = ["paper", "top-1 error %", "top-5 error %", "perplexity of covered rows",
               "coverage %", "smoothed perplexity", "depth", "ms"]  # fmt: skip
    theirs = table(headers, [[label, *row] for label, row in PAPER.items()])
    return Section(
        "Table 3: Penn Treebank with word vectors",
        [RESULT],
        "Penn Treebank, nearly the paper's rows, of which a part is trained on; vectors of 100 "
        "numbers instead of 50. One-vs-all, softmax and HSM were not run.",
        checks,
        [theirs, *result.parts],
    )


if __name__ == "__main__":
    main()

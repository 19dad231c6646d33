"""Paper 001, table 3: softmax trees on Penn Treebank with word vectors.

On one of ``--every`` training rows, from random hyperplanes and without overlap, as in the paper. ε
is chosen on the validation text. Vectors have 100 numbers, where the paper's have 50, so numbers do
not compare, but claims do. An AST on the same rows is for table 3 of paper 000.
"""

from __future__ import annotations

from typing import Any

from benchmarks._data import load
from benchmarks._report import arguments, read, table, write
from benchmarks.papers._language import COLUMNS, language_figures
from benchmarks.papers._section import Check, Section, by_name, number
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

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
COMMON: dict[str, Any] = {
    "max_sweeps": 2,
    "router_ridge": 100.0,
    "leaf_ridge": 70.0,
    "tol": 1e-3,
    "overlap": None,
    "random_state": 0,
    "n_jobs": 1,
}
MODELS: dict[str, Any] = {
    "ST(k=50)": SoftmaxTreeClassifier(8, 50, init="random", **COMMON),
    "ST(k=200)": SoftmaxTreeClassifier(6, 200, init="random", **COMMON),
    "ST(k=800)": SoftmaxTreeClassifier(4, 800, init="random", **COMMON),
    "AST(α=0.4)": AdaptiveSoftmaxTreeClassifier(
        0.4, decisions="training", init="random", initial_depth=6, initial_contraction=0.05,
        max_rounds=2, expansion_sweeps=2, **COMMON,
    ),
}  # fmt: skip


def main() -> None:
    """Fit the trees; the report is written after each."""
    parser = arguments(__doc__)
    parser.add_argument("--every", type=int, default=4, help="take one of so many training rows")
    options = parser.parse_args()
    data = load(options.data, "ptb")
    X, y = data.X_train[:: options.every], data.y_train[:: options.every]
    rows = []
    for name, model in MODELS.items():
        with Stopwatch() as watch:
            model.fit(X, y)
        figures = language_figures(model, (data.X_valid, data.y_valid), (data.X_test, data.y_test))
        rows.append([name, *figures, watch.seconds])
        print(rows[-1], flush=True)
        write(
            "papers.paper001_table3",
            "Paper 001, table 3: softmax trees on Penn Treebank",
            f"{len(y):,} of {len(data.y_train):,} training rows, {len(data.y_test):,} test rows, "
            f"{X.shape[1]} features. µs of batches, one thread. `{COMMON}`",
            table(["", *COLUMNS, "fit s"], rows),
        )


def _rises(rows: dict[Any, Any], column: str, what: str, paper: str, sign: int = 1) -> Check:
    """Check that a column rises with k, or falls."""
    values = [row[column] for row in rows.values()]
    text = ", ".join(map(number, values))
    return Check(what, paper, text, values == sorted(values, key=lambda value: sign * value))


def section() -> Section:
    """Return the paper's numbers beside ours."""
    result = read(RESULT)
    ours = {name: row for name, row in by_name(result.tables[0]).items() if name in PAPER}
    checks = [
        _rises(ours, "coverage %", "coverage rises with k", "44, 58, 77 %"),
        _rises(ours, "perplexity of covered rows", "and so does its perplexity", "17, 45, 117"),
        _rises(ours, "smoothed perplexity", "smoothed perplexity falls with k", "869, 657, 427",
               -1),
        _rises(ours, "top-5 error %", "and so does the top-5 error", "72.5, 70.6, 68.4 %", -1),
    ]  # fmt: skip
    headers = ["paper", "top-1 error %", "top-5 error %", "perplexity of covered rows",
               "coverage %", "smoothed perplexity", "depth", "ms"]  # fmt: skip
    theirs = table(headers, [[label, *row] for label, row in PAPER.items()])
    return Section(
        "Table 3: Penn Treebank with word vectors",
        [RESULT],
        "Penn Treebank, nearly the paper's rows, of which a part is trained on; vectors of 100 "
        "numbers instead of 50, so only claims compare. One-vs-all, softmax and HSM were not run.",
        checks,
        [theirs, *result.parts],
    )


if __name__ == "__main__":
    main()

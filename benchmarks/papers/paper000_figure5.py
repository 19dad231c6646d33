"""Paper 000, figure 5: error, cost and coverage of an AST on Penn Treebank, for some α₀ and α.

On one of eight rows, of the 1,000 most frequent next words: all rows would take hours. Errors and
coverage are on the validation text. λ = μ = 1, splits at the median and no overlap, as in the
paper; but ρ = 1.1, because with 1 no leaf expands, and α₀ = 0.5, which takes less time than 0.75.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import load
from benchmarks._report import Table, arguments, read, table, write
from benchmarks.papers._section import Section, lower, lower_error
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring import metrics
from thinleaf.measuring.latency import batch_latency

RESULT = "papers_paper000_figure5"
N_WORDS, EVERY = 1000, 8
ROUNDS = 7
CONTRACTIONS = ((0.5, 0.2), (0.5, 0.4), (0.5, 0.7))
SETTINGS: dict[str, Any] = {
    "initial_depth": 3,
    "init": "pca_median",
    "tolerance": 1.1,
    "max_sweeps": 2,
    "expansion_sweeps": 2,
    "router_l1": 1.0,
    "leaf_l1": 1.0,
    "overlap": None,
}
HEADERS = ["round", "error %", "coverage %", "perplexity of covered rows", "FLOPs", "µs a row",
           "depth", "leaves", "mean k"]  # fmt: skip


def rounds(model: Any, train: tuple[Any, Any], held: tuple[Any, Any]) -> Iterator[list[Any]]:
    """Yield a row for each round: every fit goes on from the one before."""
    X, y = held
    with tempfile.TemporaryDirectory() as folder:
        model.set_params(checkpoint=Path(folder) / "growth")
        for n in range(ROUNDS + 1):
            model.set_params(max_rounds=n).fit(*train)
            if len(model.history_) <= n:
                return
            hard = metrics.perplexity(model.label_proba(X, y, smooth=False))
            shape = metrics.summarize(model.tree_)
            yield [
                n,
                100 * (1 - model.score(X, y)),
                100 * hard.coverage,
                hard.value,
                model.mean_flops(X),
                batch_latency(lambda: model.predict(X), y.size).median,
                shape.depth,
                shape.n_leaves,
                shape.mean_leaf_classes,
            ]


def main() -> None:
    """Fit and write; the report is written after each model."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "ptb")
    words, counts = np.unique(data.y_train, return_counts=True)
    frequent = words[np.argsort(-counts, kind="stable")[:N_WORDS]]
    rows = np.flatnonzero(np.isin(data.y_train, frequent))[::EVERY]
    known = np.isin(data.y_valid, frequent)
    train, held = (data.X_train[rows], data.y_train[rows]), (data.X_valid[known],
                                                             data.y_valid[known])  # fmt: skip
    parts = [f"{rows.size:,} training and {held[1].size} validation rows, {N_WORDS:,} words, one "
             f"seed. `{SETTINGS}`"]  # fmt: skip
    for first, contraction in CONTRACTIONS:
        model = AdaptiveSoftmaxTreeClassifier(
            contraction,
            decisions="training",
            initial_contraction=first,
            random_state=0,
            n_jobs=1,
            **SETTINGS,
        )
        found = table(HEADERS, list(rounds(model, train, held)))
        parts += [f"## α₀ = {first}, α = {contraction}", found]
        title = "Paper 000, figure 5: growth on Penn Treebank"
        write("papers.paper000_figure5", title, *parts)


def _column(part: Table, name: str) -> list[float]:
    at = part.headers.index(name)
    return [row[at] for row in part.rows]


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    parts = dict(zip(CONTRACTIONS, result.tables, strict=False))
    least, most = parts[CONTRACTIONS[0]], parts[CONTRACTIONS[-1]]
    times = _column(most, "µs a row")
    n_held = int(result.parts[0].split(" validation rows")[0].split()[-1])
    checks = [
        lower("α = 0.2 ends with less coverage than α = 0.7", "so",
              _column(least, "coverage %")[-1], _column(most, "coverage %")[-1],
              "α = 0.7 goes on growing after α = 0.2 has ended", " %"),
        lower_error("a small α does not generalise well: α = 0.7 against 0.2, last rounds", "so",
                    _column(most, "error %")[-1], _column(least, "error %")[-1], n_held),
        lower("a small α ends with the smaller tree (leaves)", "so", _column(least, "leaves")[-1],
              _column(most, "leaves")[-1]),
        lower("growth makes predictions faster (last and first round)", "so", times[-1], times[0],
              unit=" µs"),
        lower("but at some point slower again (fastest and last round)", "so", min(times),
              times[-1], "growth ends before paths cost as much as leaves", " µs"),
    ]  # fmt: skip
    return Section(
        "Figure 5: growth on Penn Treebank",
        [RESULT],
        "Penn Treebank, but one of eight rows, 1,000 words, and vectors of 100 numbers instead of "
        "50; ρ = 1.1 instead of 1, and α₀ = 0.5, where the paper names 0.75. The curves are not "
        "given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

"""Paper 000, figure 5: error, cost and coverage of an AST on Penn Treebank, for some α₀ and α.

On one of eight rows, of the 1,000 most frequent next words: all rows would take hours. A tenth of
them is held out for the error. λ = μ = ρ = 1 and no overlap, as in the paper. The picture needs the
``plot`` extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import load
from benchmarks._report import RESULTS, Table, arguments, read, table, write
from benchmarks.papers._section import Section, lower, lower_error
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.explain.plots import plot_growth

RESULT = "papers_paper000_figure5"
N_WORDS, EVERY = 1000, 8
CONTRACTIONS = ((0.5, 0.2), (0.5, 0.4), (0.5, 0.7), (0.25, 0.4))
SETTINGS: dict[str, Any] = {
    "initial_depth": 3,
    "init": "class_clusters",
    "tolerance": 1.0,
    "max_rounds": 6,
    "max_sweeps": 2,
    "expansion_sweeps": 2,
    "router_l1": 1.0,
    "leaf_l1": 1.0,
    "overlap": None,
    "validation_fraction": 0.1,
    "patience": 10**6,
}
KEYS = {
    "held-out error %": "validation_error",
    "coverage %": "coverage",
    "FLOPs": "flops",
    "depth": "depth",
    "leaves": "n_leaves",
    "mean k": "mean_leaf_classes",
}


def rows_of(model: Any) -> list[list[Any]]:
    """Return a row for each round."""
    return [
        [entry["round"], *(entry[key] * (100 if "%" in name else 1) for name, key in KEYS.items())]
        for entry in model.history_
    ]


def main() -> None:
    """Fit, draw and write; the report is written after each model."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "ptb")
    words, counts = np.unique(data.y_train, return_counts=True)
    frequent = words[np.argsort(-counts, kind="stable")[:N_WORDS]]
    rows = np.flatnonzero(np.isin(data.y_train, frequent))[::EVERY]
    X, y = data.X_train[rows], data.y_train[rows]
    picture = RESULTS / f"{RESULT}.svg"
    models: dict[str, Any] = {}
    parts = [f"{y.size:,} rows, {N_WORDS:,} words, one seed. `{SETTINGS}` ![]({picture.name})"]
    for first, contraction in CONTRACTIONS:
        name = f"α₀ = {first}, α = {contraction}"
        models[name] = AdaptiveSoftmaxTreeClassifier(
            contraction, initial_contraction=first, random_state=0, n_jobs=1, **SETTINGS
        ).fit(X, y)
        parts += [f"## {name}", table(["round", *KEYS], rows_of(models[name]))]
        plot_growth(models)[0].figure.savefig(picture, metadata={"Date": None})
        title = "Paper 000, figure 5: growth on Penn Treebank"
        write("papers.paper000_figure5", title, *parts)


def _column(part: Table, name: str) -> list[float]:
    at = part.headers.index(name)
    return [row[at] for row in part.rows]


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    parts = dict(zip(CONTRACTIONS, result.tables, strict=False))
    least, most = parts[0.5, 0.2], parts[0.5, 0.7]
    error, cover, flops = "held-out error %", "coverage %", "FLOPs"
    first = _column(most, flops)
    n_held = int(result.parts[0].split()[0].replace(",", "")) // 10
    checks = [
        lower("α = 0.2 ends with less coverage than α = 0.7", "so", _column(least, cover)[-1],
              _column(most, cover)[-1], unit=" %"),
        lower_error("a small α does not generalise well: α = 0.7 ends below 0.2", "so",
                    min(_column(most, error)), _column(least, error)[-1], n_held),
        lower("a small α ends with the smaller tree (depth)", "so", _column(least, "depth")[-1],
              _column(most, "depth")[-1]),
        lower("growth makes predictions cheaper (FLOPs, last and first round)", "so",
              first[-1], first[0]),
        lower("but at some point dearer again (FLOPs, cheapest and last round)", "so", min(first),
              first[-1], "growth ends before paths cost as much as leaves"),
    ]  # fmt: skip
    return Section(
        "Figure 5: growth on Penn Treebank",
        [RESULT],
        "Penn Treebank, but one of eight rows, 1,000 words, and vectors of 100 numbers instead of "
        "50; FLOPs instead of times. The curves are not given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

"""Paper 000, figure 6: average leaf depth against the leaves' penalty μ, for some ρ and α.

clinc150 stands in for the subset of WIKI-Small: texts of 150 instead of 200 classes, 120 rows each
instead of 100. The picture needs the ``plot`` extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import load
from benchmarks._report import RESULTS, arguments, read, table, write
from benchmarks.papers._section import Check, Section, number
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.explain.plots import plot_mean_depth

RESULT = "papers_paper000_figure6"
PENALTIES = (0.01, 0.1, 0.3, 1.0)
LINES = ((1.0, 0.4), (1.0, 0.7), (1.2, 0.4), (1.2, 0.7))  # ρ, α
N_SEEDS = 2
SMALLEST_SLOPE = 0.05
SETTINGS: dict[str, Any] = {
    "initial_contraction": 0.75,
    "max_rounds": 8,
    "max_sweeps": 3,
    "expansion_sweeps": 3,
    "router_l1": 0.01,
    "router_ridge": 0.0,
    "leaf_ridge": 0.0,
    "overlap": None,
}
HEADERS = ["ρ", "α", "μ", "mean depth", "depth", "leaves", "mean k", "train error %"]


def main() -> None:
    """Fit, draw and write; the report is written after each line."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "clinc150")
    models, rows = [], []
    picture = RESULTS / f"{RESULT}.svg"
    for tolerance, contraction in LINES:
        for mu in PENALTIES:
            entries = []
            for seed in range(N_SEEDS):
                model = AdaptiveSoftmaxTreeClassifier(
                    contraction,
                    tolerance,
                    decisions="training",
                    leaf_l1=mu,
                    random_state=seed,
                    n_jobs=1,
                    **SETTINGS,
                )
                models.append(model.fit(data.X_train, data.y_train))
                entries.append(model.history_[model.best_round_])
            keys = ("mean_depth", "depth", "n_leaves", "mean_leaf_classes", "train_error")
            cells = [float(np.mean([entry[key] for entry in entries])) for key in keys]
            cells[-1] *= 100
            rows.append([tolerance, contraction, mu, *cells])
            print(rows[-1], flush=True)
        plot_mean_depth(models).figure.savefig(picture, metadata={"Date": None})
        write(
            "papers.paper000_figure6",
            "Paper 000, figure 6: average depth against μ, clinc150",
            f"Means of {N_SEEDS} seeds. `{SETTINGS}` ![]({picture.name})",
            table(HEADERS, rows),
        )


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    part = result.tables[0]
    depth, deepest = part.headers.index("mean depth"), part.headers.index("depth")
    checks = []
    for tolerance, contraction in LINES:
        line = [row for row in part.rows if tuple(row[:2]) == (tolerance, contraction)]
        if not line:
            continue
        slope = float(np.polyfit(np.log10([row[2] for row in line]),
                                 [row[depth] for row in line], 1)[0].round(3))  # fmt: skip
        what = f"Δ_av rises with μ (levels per decade, ρ = {tolerance}, α = {contraction})"
        why = "perhaps because replacements are judged by 0/1 error, without the penalty"
        if max(row[depth] for row in line) == min(row[depth] for row in line):
            why = f"no leaf expands: two leaves of {contraction}·k classes hold fewer than k"
        checks.append(Check(what, "tends to", number(slope), slope > SMALLEST_SLOPE, why))
    by_penalty = [[row[deepest] for row in part.rows if row[2] == mu] for mu in PENALTIES]
    spread = float(np.mean(by_penalty[-1]) - np.mean(by_penalty[0]))
    what = "the maximum depth does not grow significantly (levels, largest and smallest μ)"
    checks.append(Check(what, "so", number(spread), spread < 1))
    return Section(
        "Figure 6: average depth against μ",
        [RESULT],
        "clinc150 stands in for the subset of WIKI-Small. The curves are not given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()

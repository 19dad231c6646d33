"""Letter: the adaptive tree's error, and its curve of error against FLOPs."""

from __future__ import annotations

from benchmarks._data import load
from benchmarks._models import SHORT, fit_figures, mean, warm_up
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier

BEST = {
    "contraction": 0.85,
    "initial_contraction": 1.0,
    "router_ridge": 1.0,
    "leaf_ridge": 0.1,
    "max_rounds": 8,
    "max_leaves": 384,
    "tol": 1e-4,
}
CURVE = {
    "α=0.85": {},
    "α=0.8": {"contraction": 0.8},
    "α=0.75": {"contraction": 0.75},
    "α=0.8, λ=μ=1": {"contraction": 0.8, "router_l1": 1.0, "leaf_l1": 1.0},
}


def letter_rows(data, n_seeds: int) -> tuple[list[list], list[list]]:
    """Return a row for each seed at the best setting, and one for each point of the curve."""
    seeds, curve = [], []
    for name, changes in CURVE.items():
        runs = []
        for seed in range(n_seeds):
            model = AdaptiveSoftmaxTreeClassifier(
                decisions="training", **(BEST | changes), random_state=seed, n_jobs=-1
            )
            runs.append(fit_figures(model, data))
            if not changes:
                seeds.append([seed, *(runs[-1][column] for column in SHORT)])
        curve.append([name, *mean(runs, SHORT)])
        print(curve[-1], flush=True)
    seeds.append(["mean", *curve[0][1:]])
    return seeds, curve


def main() -> None:
    """Run all parts."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    letter = load(options.data, "letter")
    warm_up(
        letter,
        AdaptiveSoftmaxTreeClassifier(decisions="training", max_rounds=2, max_sweeps=3, n_jobs=-1),
    )
    seeds, curve = letter_rows(letter, options.seeds)
    write(
        "adaptive",
        "Letter: adaptive softmax trees",
        f"Settings, chosen on a validation part of the training data: `{BEST}`, otherwise the "
        "defaults. The paper's best tree has 6.35 % test error with 384 leaves and 151 FLOPs.",
        table(["seed", *SHORT], seeds),
        f"Error against FLOPs: the same with other contractions and penalties, means of "
        f"{options.seeds} seeds:",
        table(["", *SHORT], curve),
    )


if __name__ == "__main__":
    main()

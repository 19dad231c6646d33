"""Letter: the adaptive tree's error, its curve of error against FLOPs, and where a fit's time goes.

The last part fits Letter and icd10cm at default settings.
"""

from __future__ import annotations

import numpy as np

from benchmarks._data import available, load
from benchmarks._models import SHORT, figures, fit, mean, warm_up
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier

BEST = {
    "contraction": 0.85,
    "initial_contraction": 1.0,
    "router_ridge": 1.0,
    "leaf_ridge": 0.1,
    "max_leaves": 384,
}
PHASES = ["set", "fit s", "initial tree", "expansions", "sweeps", "rest", "test error %", "leaves"]
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
            model = AdaptiveSoftmaxTreeClassifier(**(BEST | changes), random_state=seed, n_jobs=-1)
            runs.append(figures(*fit_with(model, data)))
            if not changes:
                seeds.append([seed, *(runs[-1][column] for column in SHORT)])
        curve.append([name, *mean(runs, SHORT)])
        print(curve[-1], flush=True)
    seeds.append(["mean", *curve[0][1:]])
    return seeds, curve


def fit_with(model, data):
    """Return what :func:`figures` takes."""
    fitted, seconds = fit(model, data)
    return fitted, data, seconds


def phases(data) -> list:
    """Return where the time of a fit at default settings goes."""
    model, seconds = fit(AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=-1), data)
    history = model.history_
    initial = history[0]["sweep_seconds"]
    expansion = sum(entry["expansion_seconds"] for entry in history)
    sweeps = sum(entry["sweep_seconds"] for entry in history[1:])
    rest = seconds - initial - expansion - sweeps
    error = 100 * np.mean(model.predict(data.X_test) != data.y_test)
    return [data.name, seconds, initial, expansion, sweeps, rest, error, model.tree_.n_leaves]


def main() -> None:
    """Run all parts."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    letter = load(options.data, "letter")
    warm_up(letter, AdaptiveSoftmaxTreeClassifier(max_rounds=2, max_sweeps=3, n_jobs=-1))
    seeds, curve = letter_rows(letter, options.seeds)
    times = [phases(letter)]
    if available(options.data, "icd10cm"):
        text = load(options.data, "icd10cm")
        warm_up(text, AdaptiveSoftmaxTreeClassifier(max_rounds=2, max_sweeps=3, n_jobs=-1))
        times.append(phases(text))
    write(
        "adaptive",
        "Letter: adaptive softmax trees",
        f"Settings, chosen on a validation part of the training data: `{BEST}`, otherwise the "
        "defaults. The paper's best tree has 6.35 % test error with 384 leaves and 151 FLOPs.",
        table(["seed", *SHORT], seeds),
        f"Error against FLOPs: the same with other contractions and penalties, means of "
        f"{options.seeds} seeds:",
        table(["", *SHORT], curve),
        "Fits at default settings, 2 threads, seconds by phase:",
        table(PHASES, times),
    )


if __name__ == "__main__":
    main()

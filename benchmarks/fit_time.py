"""Where the time of a fit at default settings goes, on Letter and icd10cm."""

from __future__ import annotations

import numpy as np

from benchmarks._data import available, load
from benchmarks._models import warm_up
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

PHASES = ["set", "fit s", "initial tree", "expansions", "sweeps", "rest", "test error %", "leaves"]


def phases(data) -> list:
    """Return where the time of a fit at default settings goes."""
    with Stopwatch() as watch:
        model = AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=-1)
        model.fit(data.X_train, data.y_train)
    history = model.history_
    initial = history[0]["sweep_seconds"]
    expansion = sum(entry["expansion_seconds"] for entry in history)
    sweeps = sum(entry["sweep_seconds"] for entry in history[1:])
    rest = watch.seconds - initial - expansion - sweeps
    error = 100 * np.mean(model.predict(data.X_test) != data.y_test)
    phase_seconds = [watch.seconds, initial, expansion, sweeps, rest]
    return [data.name, *phase_seconds, error, model.tree_.n_leaves]


def main() -> None:
    """Fit the sets that are there."""
    options = arguments(__doc__).parse_args()
    rows = []
    for name in ("letter", "icd10cm"):
        if not available(options.data, name):
            continue
        data = load(options.data, name)
        warm_up(data, AdaptiveSoftmaxTreeClassifier(max_rounds=2, max_sweeps=3, n_jobs=-1))
        rows.append(phases(data))
        print(rows[-1], flush=True)
    write(
        "fit_time",
        "Fits of the adaptive tree at default settings",
        "Two threads, kernels compiled before; seconds by phase:",
        table(PHASES, rows),
    )


if __name__ == "__main__":
    main()

"""fontglyph1000: a softmax tree beside a flat softmax, threads, and growth with the rows."""

from __future__ import annotations

import numpy as np

from benchmarks._data import load
from benchmarks._models import COLUMNS, fit_figures
from benchmarks._report import arguments, table, write
from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

SETTINGS = {
    "overlap": None,
    "depth": 6,
    "leaf_classes": 60,
    "router_ridge": 50.0,
    "leaf_ridge": 1.0,
    "beta": 10.0,
    "tol": 1e-3,
    "random_state": 0,
}
FLAT = {"depth": 0, "leaf_classes": 1000, "max_sweeps": 1, "max_newton": 12, "tol": 1e-4}
FLAT_RIDGES = (0.5, 2.5, 12.5)
SWEEPS = 20
THREAD_SWEEPS = 12
GROWTH_SWEEPS = 4
GROWTH = (8, 4, 2, 1)


def flat_ridge(data) -> float:
    """Choose the flat softmax's ridge on a fifth of the training rows, held out from another."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.y_train))
    train, held = np.split(order[: len(order) * 3 // 10], [len(order) // 5])
    errors = []
    for ridge in FLAT_RIDGES:
        clf = SoftmaxTreeClassifier(**FLAT, leaf_ridge=ridge / 5)
        clf.fit(data.X_train[train], data.y_train[train])
        errors.append(1 - clf.score(data.X_train[held], data.y_train[held]))
    return FLAT_RIDGES[int(np.argmin(errors))]


def fit_seconds(X, y, n_jobs: int, sweeps: int) -> float:
    """Return the seconds of a fit."""
    with Stopwatch() as watch:
        SoftmaxTreeClassifier(**SETTINGS, max_sweeps=sweeps, n_jobs=n_jobs).fit(X, y)
    return watch.seconds


def main() -> None:
    """Run all three parts."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "fontglyph1000")
    fit_seconds(data.X_train[:3000], data.y_train[:3000], 1, 2)  # compiles

    tree = SoftmaxTreeClassifier(**SETTINGS, max_sweeps=SWEEPS, n_jobs=-1)
    ridge = flat_ridge(data)
    flat = SoftmaxTreeClassifier(**FLAT, leaf_ridge=ridge)
    models = {"ST(k=60, depth 6)": tree, f"flat softmax, ridge {ridge}": flat}
    rows = [[name, *fit_figures(model, data).values()] for name, model in models.items()]
    quality = table(["model", *COLUMNS], rows)

    timings = []
    for _ in range(2):  # alternately, because machines drift
        one = fit_seconds(data.X_train, data.y_train, 1, THREAD_SWEEPS)
        two = fit_seconds(data.X_train, data.y_train, 2, THREAD_SWEEPS)
        timings.append([one, two, one / two])
    threads = table(["1 thread s", "2 threads s", "times"], timings)

    growth = []
    for part in GROWTH:
        X, y = data.X_train[::part], data.y_train[::part]
        growth.append([len(y), fit_seconds(X, y, 1, GROWTH_SWEEPS)])
    base = growth[0]
    growth = [[n, s, n / base[0], s / base[1], 1e6 * s / (n * GROWTH_SWEEPS)] for n, s in growth]
    scaling = table(["rows", "fit s", "rows ×", "time ×", "µs a row and sweep"], growth)
    write(
        "fontglyph",
        "fontglyph1000: 97,000 rows, 256 features, 1,000 classes",
        f"Settings: `{SETTINGS}`, {SWEEPS} sweeps; chosen on a validation part of the training "
        "data. The flat softmax is the same solver at depth 0; its ridge was the best of "
        f"{FLAT_RIDGES} on held-out training rows. µs are of a batch.",
        quality,
        f"Threads ({THREAD_SWEEPS} sweeps, whole fit with initialisation):",
        threads,
        f"Growth with the rows (one thread, {GROWTH_SWEEPS} sweeps, depth and k fixed):",
        scaling,
    )


if __name__ == "__main__":
    main()

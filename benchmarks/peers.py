"""Our trees beside other libraries: error, latency, size and training time, in one run.

Single: the fastest Python call for one sample, its input prepared. Batch: the whole test part. One
thread everywhere. Peers are near their default settings, not tuned; those that are not installed
are left out.
"""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np

from benchmarks._data import Dataset, available, load
from benchmarks._report import arguments, best_of, stopwatch, table, write
from benchmarks._systems import Ours, Pecos, System, peers
from thinleaf import AdaptiveSoftmaxTreeClassifier

N_SINGLE = 1000
COLUMNS = ["", "error %", "single µs", "batch µs", "bytes", "train s"]
TEXT = {"router_l1": 0.001, "leaf_l1": 0.001, "router_ridge": 0.01, "leaf_ridge": 0.01}
LETTER = {
    "router_ridge": 1.0, "leaf_ridge": 0.1, "tol": 1e-4, "initial_contraction": 1.0, "max_rounds": 8
}  # fmt: skip


def ours(name: str) -> list[Ours]:
    """Return our models for a set; settings as in the other benchmarks."""

    def ast(**settings: Any) -> AdaptiveSoftmaxTreeClassifier:
        return AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=1, **settings)

    if name == "letter":
        return [Ours("AST, defaults", ast()), Ours("AST, tuned", ast(**LETTER))]
    wide = TEXT | {"initial_depth": 4, "initial_contraction": 0.25, "max_sweeps": 5}
    return [
        Ours("AST, defaults", ast()),
        Ours("AST, wide", ast(**wide)),
        Ours("AST, 64 leaves", ast(**TEXT, max_sweeps=5)),
        Ours("AST, 64 leaves, beam 2", ast(**TEXT, max_sweeps=5), beam=2),
        Ours("AST, 64 leaves, beam 4", ast(**TEXT, max_sweeps=5), beam=4),
    ]


def measure(system: System, data: Dataset, y: np.ndarray, y_test: np.ndarray) -> list[Any]:
    """Return a row of the table."""
    with stopwatch() as watch:
        system.fit(data, y)
    predicted = system.predict(data)
    error = 100 * float(np.mean(predicted != y_test))
    if isinstance(system, Pecos):
        single, batch = (float(system.out[name]) for name in ("single", "batch"))
        return [system.name, error, 1e6 * single, 1e6 * batch, system.nbytes(), watch.seconds]
    samples = system.samples(data, min(N_SINGLE, len(y_test)))
    one = system.one()

    def singles() -> None:
        for sample in samples:
            one(sample)

    single = best_of(7, singles) / len(samples)
    batch = best_of(3, lambda: system.predict(data)) / len(y_test)
    return [system.name, error, 1e6 * single, 1e6 * batch, system.nbytes(), watch.seconds]


def main() -> None:
    """Run every system on a set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=["letter", "icd10cm"], required=True)
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    data = load(options.data, options.set)
    classes, y = np.unique(data.y_train, return_inverse=True)
    at = np.minimum(np.searchsorted(classes, data.y_test), classes.size - 1)
    y_test = np.where(classes[at] == data.y_test, at, -1)
    rows = []
    for system in [*ours(options.set), *peers(data)]:
        try:
            rows.append(measure(system, data, y, y_test))
        except Exception as error:  # a peer that fails is a row that says so
            traceback.print_exc()
            rows.append([system.name, f"failed: {type(error).__name__}", *[""] * 4])
        print(rows[-1], flush=True)
    write(
        "peers",
        f"Ours and other libraries on {options.set}",
        f"{len(data.y_train):,} rows, {data.n_classes:,} classes; one thread, one seed; single: "
        f"best of 7 passes over {N_SINGLE:,} test rows. Peers are near their defaults, not tuned.",
        table(COLUMNS, rows),
        suffix=options.set,
    )


if __name__ == "__main__":
    main()

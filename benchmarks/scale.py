"""Ten thousand, a hundred thousand, a million classes: what a fit and an answer cost.

The data are synthetic (:mod:`benchmarks._scale_data`). Each system runs in a process of its own,
which tells its peak memory; the online ones read chunk by chunk. Run it with more classes when
there is time: ``python -m benchmarks.scale --classes 10000 100000 1000000``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks._report import table, write
from benchmarks._scale_data import Scale
from thinleaf import AdaptiveSoftmaxTreeClassifier, LabelTreeClassifier, RecallTreeClassifier
from thinleaf.measuring.latency import Stopwatch

COLUMNS = [
    "classes", "rows", "system", "fit s", "peak GiB", "of it rows GiB", "error %", "single µs",
    "batch µs", "MB", "MB trained",
]  # fmt: skip
SYSTEMS = ("AST", "Recall Tree", "label tree")
N_TEST = 20_000
N_SINGLE = 1000


def _fitted(system: str, scale: Scale, n_jobs: int) -> Any:
    if system == "Recall Tree":
        model = RecallTreeClassifier(random_state=0)
        classes = np.arange(scale.n_classes)
        for X, y in scale.chunks():
            model.partial_fit(X, y, classes=classes)
        return model
    X, y = scale.whole()
    if system == "label tree":
        return LabelTreeClassifier(random_state=0, n_jobs=n_jobs).fit(X, y)
    return AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=n_jobs, beam="auto").fit(X, y)


def run(system: str, n_classes: int, rows_a_class: float, n_jobs: int) -> list:
    """Return one row of the table."""
    _fitted(system, Scale.of(300), n_jobs)  # compiles
    scale = Scale.of(n_classes, rows_a_class)
    X_test, y_test = scale.whole(1, N_TEST)
    n_bytes = 0
    if system != "Recall Tree":  # it never has them all
        X, _ = scale.whole()
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        del X
    with Stopwatch() as fit:
        model = _fitted(system, scale, n_jobs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    frozen = model.freeze()
    with Stopwatch() as batch:
        answers = frozen.predict(X_test)
    singles = [X_test[[i]] for i in range(N_SINGLE)]
    pairs = [(row.indices, row.data) for row in singles]
    single = min(_seconds(frozen, pairs) for _ in range(5))
    trained = model.tree_.nbytes / 1e6 if system == "AST" else "–"
    return [
        n_classes, scale.n_rows, system, fit.seconds, peak, n_bytes / 2**30,
        100.0 * float(np.mean(answers != y_test)), 1e6 * single / N_SINGLE,
        1e6 * batch.seconds / N_TEST, frozen.nbytes / 1e6, trained,
    ]  # fmt: skip


def _seconds(model: Any, pairs: list) -> float:
    with Stopwatch() as watch:
        for indices, values in pairs:
            model.predict_one(indices, values)
    return watch.seconds


def main() -> None:
    """Run what is asked for, and write the table anew after each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--rows-a-class", type=float, default=10.0)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", action="store_true", help="run in this process, print JSON")
    options = parser.parse_args()
    rows = []
    for n_classes in options.classes:
        for system in options.systems:
            if options.one:
                print(json.dumps(run(system, n_classes, options.rows_a_class, options.jobs)))
                continue
            command = [sys.executable, "-m", "benchmarks.scale", "--one", "--jobs"]
            command += [str(options.jobs), "--classes", str(n_classes), "--systems", system]
            command += ["--rows-a-class", str(options.rows_a_class)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            write(
                "scale",
                "Many classes, synthetic",
                "Labels by Zipf's law, classes in a hierarchy, short sparse rows, drawn at random "
                f"(`benchmarks/_scale_data.py`); {N_TEST:,} test rows. Default settings, AST with "
                f"the beam it finds; {options.jobs} threads. Peak memory is that of the process, "
                "with its rows; MB of the frozen model, and of the trained tree.",
                table(COLUMNS, rows),
                suffix="_".join(str(n) for n in options.classes),
            )


if __name__ == "__main__":
    main()

"""Sizes and errors of adaptive trees by how many of their small weights they keep.

Each fit is in a process of its own, so that its peak of memory is its own. ``small_weights`` is
chosen by held-out training rows; test rows are only counted here.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks._data import load
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

HEADERS = [
    "small_weights",
    "weights",
    "error %",
    "beam %",
    "trained MB",
    "packed MB",
    "float16 MB",
    "int8 MB",
    "int8 error %",
    "int8 beam %",
    "fit s",
    "peak GiB",
]


def _given(text: str) -> Any:
    return text if text in ("auto", "drop", "keep") else float(text)


def fit(options: argparse.Namespace) -> list[Any]:
    """Fit one tree in this process; return its row of the table."""
    data = load(options.data, options.set)
    model = AdaptiveSoftmaxTreeClassifier(
        random_state=0, n_jobs=options.jobs, small_weights=_given(options.fit), verbose=1
    )
    with Stopwatch() as watch:
        model.fit(data.X_train, data.y_train)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    def errors(weights: Any) -> list[float]:
        frozen = [model.freeze(weights=weights, beam=beam) for beam in (1, "auto")]
        return [100.0 * float(np.mean(one.predict(data.X_test) != data.y_test)) for one in frozen]

    sizes = [model.freeze(weights=weights).nbytes for weights in ("float32", "float16", "int8")]
    megabytes = [n_bytes / 1e6 for n_bytes in (model.tree_.nbytes, *sizes)]
    return [
        options.fit, model.tree_.n_nonzero, *errors("float32"), *megabytes, *errors("int8"),
        watch.seconds, peak,
    ]  # fmt: skip


def main() -> None:
    """Fit a tree for each choice."""
    parser = arguments(__doc__)
    parser.add_argument("--set", default="bible_verse")
    parser.add_argument("--keep", nargs="+", default=["keep", "auto", "drop", "1.1", "1.25"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        print(json.dumps(fit(options)))
        return
    rows = []
    for choice in options.keep:
        command = [sys.executable, "-m", "benchmarks.small_weights", "--data", str(options.data)]
        command += ["--set", options.set, "--jobs", str(options.jobs), "--fit", choice]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        write(
            "small_weights",
            f"Weights that hardly matter: {options.set}",
            f"Adaptive tree, default settings but for `small_weights`, {options.jobs} threads; "
            "MB are millions of bytes. A number is how many times the errors of the whole tree "
            "held-out rows may have.",
            table(HEADERS, rows),
            suffix=options.set,
        )


if __name__ == "__main__":
    main()

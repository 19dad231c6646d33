"""Rows beyond memory: a large file within ``--memory``, and rows in shards that never meet.

Two parts. ``file`` writes synthetic rows (:mod:`benchmarks._scale_data`) as a LIBSVM file, or takes
one that is there, and trains on it within ``max_memory`` in a process of its own; beside it, on a
smaller file of the same kind with and without a limit, which says how many times longer a row
takes and what it costs in error. ``shards`` divides a set into shards and compares a fit to them,
in which the caller has a limit, with one to all rows. All peaks are those of fresh processes.

The size that is asked for: ``python -m benchmarks.out_of_core file --gib 8 --memory 3G``, and
``python -m benchmarks.out_of_core shards --data DATA --memory 2G --on threads ray``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import table, write
from benchmarks._scale_data import Scale
from thinleaf.measuring.latency import Stopwatch

FILE = [
    "file",
    "GiB",
    "rows",
    "memory",
    "parts",
    "fit s",
    "µs a row",
    "peak GiB",
    "error %",
    "beam %",
]
SHARDS = ["set", "shards", "memory", "executor", "parts", "fit s", "peak GiB", "error %", "beam %"]
N_TEST = 20_000


def write_file(path: Path, n_classes: int, gib: float, part: int) -> None:
    """Write rows as LIBSVM lines until the file is as large as it shall be."""
    if path.exists() and path.stat().st_size >= gib * 2**30:
        return
    scale = Scale(n_classes, 2**60, int(1000 * np.sqrt(n_classes)), chunk=50_000)
    with path.open("w", encoding="ascii") as file:
        for X, y in scale.chunks(part):
            file.writelines(_lines(X, y))
            if file.tell() >= gib * 2**30:
                return


def _lines(X: Any, y: np.ndarray) -> list[str]:
    pairs = [f"{j}:{v:.4g}" for j, v in zip((X.indices + 1).tolist(), X.data.tolist(), strict=True)]
    ends = X.indptr.tolist()
    return [
        f"{label} {' '.join(pairs[ends[i] : ends[i + 1]])}\n" for i, label in enumerate(y.tolist())
    ]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _errors(model: Any, X: Any, y: np.ndarray) -> list[float]:
    frozen = [model.freeze(), model.freeze(beam="auto")]
    return [100.0 * float(np.mean(one.predict(X) != y)) for one in frozen]


def fit_file(options: argparse.Namespace) -> list[Any]:
    """Fit to a file in this process; return memory, parts and what it took."""
    from thinleaf import AdaptiveSoftmaxTreeClassifier

    memory = None if options.memory == "none" else options.memory
    model = AdaptiveSoftmaxTreeClassifier(
        random_state=0, n_jobs=options.jobs, max_memory=memory, verbose=1
    )
    n_features = int(1000 * np.sqrt(options.classes))
    with Stopwatch() as watch:
        model.fit_shards([options.fit], n_features=n_features, zero_based=False)
    peak, n_rows = _peak(), model._n_shard_rows
    scale = Scale(options.classes, N_TEST, n_features)
    X_test, y_test = scale.whole(1, N_TEST)
    size = Path(options.fit).stat().st_size / 2**30
    return [
        size, n_rows, options.memory, getattr(model, "n_parts_", 1), watch.seconds,
        1e6 * watch.seconds / n_rows, peak, *_errors(model, X_test, y_test),
    ]  # fmt: skip


def in_process(*arguments: Any) -> list[Any]:
    """Run this script in a fresh process, and return the row that it prints."""
    command = [sys.executable, "-m", "benchmarks.out_of_core", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def file_part(options: argparse.Namespace) -> None:
    """Compare a large file within a limit with a smaller one without."""
    folder = Path(options.folder or tempfile.mkdtemp(prefix="thinleaf-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    runs = [
        ("small", options.small_gib, "none"),
        ("small", options.small_gib, options.small_memory),
        ("large", options.gib, options.memory),
    ]
    for name, gib, memory in runs:
        path = folder / f"{name}.svm"
        write_file(path, options.classes, gib, 0)
        common = ["--classes", options.classes, "--jobs", options.jobs, "--memory", memory]
        rows.append([name, *in_process("file", "--fit", path, *common)])
        slower = rows[-1][6] / rows[0][6]
        write(
            "out_of_core",
            "Rows beyond memory",
            f"Synthetic rows of {options.classes:,} classes in LIBSVM files, default adaptive "
            f"tree, {options.jobs} threads. Seconds and peaks are of a fresh process and include "
            f"reading. The last run takes {slower:.2f} times as long for a row as the first.",
            table(FILE, rows),
        )
    if options.folder is None:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


# -- shards ----------------------------------------------------------------------------------------


def fit_shards(options: argparse.Namespace) -> list[Any]:
    """Fit to the shards of a folder, or to all rows; the test rows are beside them."""
    import scipy.sparse as sp

    from thinleaf import AdaptiveSoftmaxTreeClassifier

    folder = Path(options.fit)
    memory = None if options.memory == "none" else options.memory
    model = AdaptiveSoftmaxTreeClassifier(
        random_state=0, n_jobs=options.jobs, max_memory=memory, executor=options.executor, verbose=1
    )
    files = sorted(folder.glob("shard*.svm"))
    width = int((folder / "width").read_text())
    with Stopwatch() as watch:
        model.fit_shards(files, n_features=width, zero_based=False, rows="sparse")
    peak = _peak()
    X_test, y_test = sp.load_npz(folder / "test.npz"), np.load(folder / "test.npy")
    parts = getattr(model, "n_parts_", 1)
    found = [watch.seconds, peak, *_errors(model, X_test, y_test)]
    return [len(files), options.memory, options.executor, parts, *found]


def shards_part(options: argparse.Namespace) -> None:
    """Compare fits to shards with a fit to all rows."""
    import scipy.sparse as sp

    name, X, y, X_test, y_test = _set(options)
    rows = []
    with tempfile.TemporaryDirectory(prefix="thinleaf-bench-") as folder:
        for i in range(options.shards):
            with (Path(folder) / f"shard{i}.svm").open("w", encoding="ascii") as file:
                for begin in range(0, y[i :: options.shards].size, 10_000):
                    at = slice(i + begin * options.shards, None, options.shards)
                    file.writelines(_lines(X[at][:10_000], y[at][:10_000]))
        (Path(folder) / "width").write_text(str(X.shape[1]))
        sp.save_npz(Path(folder) / "test.npz", sp.csr_matrix(X_test))
        np.save(Path(folder) / "test.npy", y_test)
        for memory, executor in (("none", "threads"), *((options.memory, e) for e in options.on)):
            common = ["--jobs", options.jobs, "--memory", memory, "--executor", executor]
            rows.append([name, *in_process("shards", "--fit", folder, *common)])
            write(
                "out_of_core",
                "Rows in shards",
                f"Adaptive tree, default settings, {options.jobs} workers. Peak memory is that of "
                "the process that calls `fit_shards`; workers of Ray have their own.",
                table(SHARDS, rows),
                suffix="shards",
            )


def _set(options: argparse.Namespace) -> tuple[str, Any, np.ndarray, Any, np.ndarray]:
    if options.data is None:
        scale = Scale.of(options.classes)
        return ("synthetic", *scale.whole(), *scale.whole(1, N_TEST))
    from benchmarks._data import load

    data = load(options.data, options.set)
    classes, y = np.unique(data.y_train, return_inverse=True)
    at = np.minimum(np.searchsorted(classes, data.y_test), classes.size - 1)
    y_test = np.where(classes[at] == data.y_test, at, -1)  # a class that is not trained on
    return options.set, data.X_train, y, data.X_test, y_test


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("file", "shards"))
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--gib", type=float, default=8.0, help="of the large file")
    parser.add_argument("--small-gib", type=float, default=0.5)
    parser.add_argument("--memory", default="3G")
    parser.add_argument("--small-memory", default="1G")
    parser.add_argument("--folder", help="for the files, which are then kept")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, help="directory of data sets, for shards")
    parser.add_argument("--set", default="bible_verse")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--on", nargs="+", default=["threads"], help="executors, for shards")
    parser.add_argument("--executor", default="threads", help=argparse.SUPPRESS)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")
        print(json.dumps((fit_file if options.part == "file" else fit_shards)(options)))
    elif options.part == "file":
        file_part(options)
    else:
        shards_part(options)


if __name__ == "__main__":
    main()

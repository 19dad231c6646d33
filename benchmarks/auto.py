"""Fits to a budget: what each gives, whether it keeps its budget, and what others give.

For each set, seed and budget an ``AutoTreeClassifier`` is fitted with nothing else set. Its file is
opened by a fresh process, which times ``predict_one`` on test rows. Beside it: the best of all our
models in ``benchmarks/results`` that keep the budget, and with ``--peers`` other libraries that had
the same seconds. ``--cost`` holds ``estimate_cost`` against a fit of the default tree in a process
of its own; ``--figure`` draws the front of the first set.
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
import scipy.sparse as sp

from benchmarks._budget_peers import peers
from benchmarks._data import DENSE_SETS, TEXT_SETS, Dataset, as_split, available, load
from benchmarks._report import RESULTS, arguments, read, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier, AutoTreeClassifier, estimate_cost
from thinleaf import load as load_model
from thinleaf.explain.frontier import pareto_front, write_frontier
from thinleaf.measuring.latency import N_SINGLE, Stopwatch, prepared_rows, single_latency

SETS = (*DENSE_SETS, *TEXT_SETS)
BUDGETS: dict[str, dict[str, float]] = {
    "5 µs": {"max_us": 5.0},
    "20 µs": {"max_us": 20.0},
    "100 µs, 20 MB": {"max_us": 100.0, "max_bytes": 20e6},
}
SECONDS = 300.0
OURS = ("AST", "ST", "forest", "flat softmax, ours", "one-vs-all, ours")
COLUMNS = ("seed", "budget", "error %", "best known %", "fresh µs", "bytes", "fit s", "model")
PEER_COLUMNS = ("system", "error %", "single µs", "bytes", "fit s")


def fresh_us(model: Path, X: Any) -> float:
    """Return the single latency of a model file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.npz")
        some = X[: min(N_SINGLE, X.shape[0])]
        sp.save_npz(rows, some) if sp.issparse(some) else np.savez(rows, X=some)
        command = [sys.executable, "-m", "benchmarks.auto", "--measure", str(model), str(rows)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def measure(model: str, rows: str) -> None:
    """Print the microseconds of a model; what the fresh process does."""
    try:
        X: Any = sp.load_npz(rows).tocsr()
    except ValueError:
        X = np.load(rows)["X"]
    frozen = load_model(model)
    print(single_latency(frozen.predict_one, prepared_rows(X, X.shape[0])).median)


def cell(data: Dataset, seed: int, name: str, seconds: float, jobs: int) -> dict[str, Any]:
    """Return what a fit to a budget gives."""
    clf = AutoTreeClassifier(
        **BUDGETS[name], max_fit_seconds=seconds, random_state=seed, n_jobs=jobs
    )
    with Stopwatch() as watch:
        clf.fit(data.X_train, data.y_train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.thinleaf")
        clf.save(path)
        us, n_bytes = fresh_us(path, data.X_test), path.stat().st_size
    print(clf.why_, flush=True)
    return {
        "seed": seed,
        "budget": name,
        "error %": 100 * float(np.mean(clf.predict(data.X_test) != data.y_test)),
        "best known %": best_known(data.name, name),
        "fresh µs": us,
        "bytes": n_bytes,
        "fit s": watch.seconds,
        "model": clf.frontier_.chosen.name,
        "front": test_front(clf, data),
    }


def test_front(clf: AutoTreeClassifier, data: Dataset) -> dict[str, tuple[float, float]]:
    """Return µs and test error of the models on the front."""
    front = {}
    for point in clf.frontier_.front():
        judged, final = clf._searched[point.source]
        found = final if point.all_rows else judged
        model = point.variant.of(found._frozen_form())
        front[point.name] = (point.us, float(np.mean(model.predict(data.X_test) != data.y_test)))
    return front


def best_known(name: str, budget: str) -> Any:
    """Return the least error of our models in earlier results that keep a budget."""
    limits = BUDGETS[budget]
    found = []
    for path in RESULTS.glob(f"*_{name}.json"):
        for part in read(path.stem).tables if not path.stem.startswith("auto") else ():
            found += _kept(part, limits)
    return min(found, default="")


def _kept(part: Any, limits: dict[str, float]) -> list[float]:
    headers = part.headers
    if not {"error %", "single µs", "bytes"} <= set(headers):
        return []
    out = []
    for row in part.rows:
        cells = dict(zip(headers, row, strict=True))
        values = [cells[column] for column in ("error %", "single µs", "bytes")]
        ours = headers[0] == "trees" or str(row[0]).strip("*").startswith(OURS)
        if not ours or not all(isinstance(value, int | float) for value in values):
            continue
        error, us, n_bytes = values
        if us <= limits["max_us"] and n_bytes <= limits.get("max_bytes", np.inf):
            out.append(float(error))
    return out


def cost(data: Dataset) -> list[Any]:
    """Return estimated and measured seconds, memory and bytes of the default tree."""
    model = AdaptiveSoftmaxTreeClassifier(random_state=0)
    found = estimate_cost(data.X_train, data.y_train, model)
    with Stopwatch() as watch:
        model.fit(data.X_train, data.y_train)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n_bytes = model.freeze().file_bytes
    return [
        data.name, found.seconds, watch.seconds, (found.peak_bytes or 0) / 1e6, peak / 1e6,
        (found.model_bytes or 0) / 1e6, n_bytes / 1e6,
    ]  # fmt: skip


def run(name: str, options: argparse.Namespace) -> None:
    """Measure a set."""
    data = load(options.data, name)
    cells, others, front = [], [], {}
    for budget in options.budgets:
        for seed in options.seeds:
            found = cell(data, seed, budget, options.seconds, options.jobs)
            front = found.pop("front") | front
            cells.append(found)
            print(json.dumps({"set": name} | found, ensure_ascii=False), flush=True)
    if options.peers:
        others = list(peers(as_split(data), options.seconds))
    parts: list[Any] = [
        f"{data.X_train.shape[0]:,} training and {data.X_test.shape[0]:,} test rows, "
        f"{data.n_classes:,} classes; {options.seconds:g} s on {options.jobs} threads. Best known: "
        "of all our models in earlier results that keep the budget.",
        table(COLUMNS, [[found[column] for column in COLUMNS] for found in cells]),
    ]
    if others:
        parts += ["Others, with the same seconds:"]
        parts += [table(PEER_COLUMNS, [[peer[c] for c in PEER_COLUMNS] for peer in others])]
    write("auto", f"Fits to a budget: {name}", *parts, suffix=name)
    if options.figure is not None:
        points = few(front) | {
            peer["system"]: (peer["single µs"], peer["error %"] / 100) for peer in others
        }
        write_frontier(points, options.figure, f"{name}: error against latency")


def few(front: dict[str, tuple[float, float]], most: int = 8) -> dict[str, tuple[float, float]]:
    """Return some points of a front of error against latency, evenly spread."""
    names = pareto_front(front)
    some = np.unique(np.linspace(0, len(names) - 1, most).round().astype(int))
    return {names[i]: front[names[i]] for i in some}


def costs(options: argparse.Namespace) -> None:
    """Compare estimates of all sets, each in a process of its own."""
    rows = []
    for name in options.sets:
        command = [sys.executable, "-m", "benchmarks.auto", "--data", str(options.data)]
        done = subprocess.run(
            [*command, "--one-cost", name], check=True, capture_output=True, text=True
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    headers = ["set", "s, estimated", "s", "MB, estimated", "MB", "model MB, estimated", "model MB"]
    write("auto", "What a fit will cost", table(headers, rows), suffix="cost")


def main() -> None:
    """Measure the sets that the data directory holds."""
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
        return
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--budgets", nargs="+", choices=BUDGETS, default=list(BUDGETS))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--cost", action="store_true", help="only estimate_cost")
    parser.add_argument("--one-cost", choices=SETS, help=argparse.SUPPRESS)
    parser.add_argument("--figure", type=Path, help="draw the front of the first set")
    options = parser.parse_args()
    if options.one_cost:
        print(json.dumps(cost(load(options.data, options.one_cost))))
        return
    options.sets = [name for name in options.sets if available(options.data, name)]
    if options.cost:
        costs(options)
        return
    for name in options.sets:
        run(name, options)
        options.figure = None


if __name__ == "__main__":
    main()

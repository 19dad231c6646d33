"""Fits to a budget: what each gives, whether it keeps its budget, and what others give.

For each set and seed one ``AutoTreeClassifier`` is fitted, in a process of its own, to the widest
budget; ``at`` gives the models of all budgets. Each file is opened by a fresh process, which times
``predict_one`` on test rows. Beside it: the best of all our models in ``benchmarks/results`` that
keep the budget, and with ``--peers`` other libraries that had the same seconds. What a result file
has already, with the same seconds and threads, is not measured again, so that a run can go on where
it was stopped. ``--narrow`` fits to each budget alone. ``--cost`` holds ``estimate_cost`` against a
fit of the default tree in a process of its own; ``--figure`` draws the front of the first set.
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
WIDEST = 100.0
OURS = (
    "AST", "ST", "forest", "flat softmax", "one-vs-all", "label tree", "hierarchical softmax",
    "Recall Tree", "LOMTree", "MACH", "(π,κ)-DS",
)  # fmt: skip
COLUMNS = (
    "seed", "budget", "error %", "best known %", "fresh µs", "bytes", "fit s", "limit s",
    "fitted to", "model",
)  # fmt: skip
PEER_COLUMNS = ("system", "error %", "single µs", "bytes", "fit s", "limit s")
Cell = dict[str, Any]


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


def one_fit(data: Dataset, seed: int, options: argparse.Namespace) -> Cell:
    """Return what a fit gives at the budgets, and its front."""
    budget = BUDGETS[options.budgets[0]] if options.narrow else {"max_us": WIDEST}
    clf = AutoTreeClassifier(
        **budget, max_fit_seconds=options.seconds, random_state=seed, n_jobs=options.jobs, verbose=1
    )
    with Stopwatch() as watch:
        clf.fit(data.X_train, data.y_train)
    print(clf.why_, file=sys.stderr, flush=True)
    known = {
        "seed": seed,
        "fit s": watch.seconds,
        "limit s": options.seconds,
        "fitted to": options.budgets[0] if options.narrow else f"{WIDEST:g} µs",
    }
    cells = [answer(clf, data, name, options.narrow) | known for name in options.budgets]
    return {"cells": cells, "front": test_front(clf, data)}


def answer(clf: AutoTreeClassifier, data: Dataset, name: str, chosen: bool) -> Cell:
    """Return what the model of a budget does, measured by a fresh process."""
    found: Cell = {"budget": name, "error %": "", "fresh µs": "", "bytes": ""}
    try:
        model = clf.freeze() if chosen else clf.at(**BUDGETS[name])
    except ValueError as error:
        return found | {"model": f"none: {error}"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.thinleaf")
        model.save(path)
        us, n_bytes = fresh_us(path, data.X_test), path.stat().st_size
    return found | {
        "error %": 100 * float(np.mean(model.predict(data.X_test) != data.y_test)),
        "fresh µs": us,
        "bytes": n_bytes,
        "model": f"{model.shape}, {model.packed.weights}",
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
    stems = {path.stem for path in RESULTS.glob(f"*_{name}.*") if path.suffix in (".json", ".md")}
    for stem in sorted(stems):
        for part in read(stem).tables if not stem.startswith("auto") else ():
            found += _kept(part, limits)
    return min(found, default="")


def _kept(part: Any, limits: dict[str, float]) -> list[float]:
    headers = part.headers
    if not {"error %", "single µs", "bytes"} <= set(headers) or "seed" in headers:
        return []  # single seeds stand in another table as a mean
    out = []
    for row in part.rows:
        cells = dict(zip(headers, row, strict=True))
        values = [cells[column] for column in ("error %", "single µs", "bytes")]
        system = str(row[0]).strip("*")
        ours = headers[0] == "trees" or (system.startswith(OURS) and "NumPy" not in system)
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
    """Measure a set: what is not known yet."""
    cells, others = known_cells(name, options)
    data: Dataset | None = None
    front: dict[str, tuple[float, float]] = {}
    fits = [[budget] for budget in options.budgets] if options.narrow else [options.budgets]
    for seed in options.seeds:
        for budgets in fits:
            done = {found["budget"] for found in cells if found["seed"] == seed}
            if done >= set(budgets) and options.figure is None:
                continue
            found = in_a_process(name, seed, budgets, options)
            front = {k: tuple(v) for k, v in found["front"].items()} | front
            cells = [c for c in cells if c["seed"] != seed or c["budget"] not in budgets]
            cells += found["cells"]
            report(name, cells, others, options)
    if options.peers and not others:
        data = load(options.data, name)
        for peer in peers(as_split(data), options.seconds):
            others.append(peer | {"limit s": options.seconds})
            print(json.dumps(peer, ensure_ascii=False), flush=True)
    report(name, cells, others, options)
    if options.figure is not None:
        points = few(front) | {
            peer["system"]: (peer["single µs"], peer["error %"] / 100) for peer in others
        }
        write_frontier(points, options.figure, f"{name}: error against latency")


def known_cells(name: str, options: argparse.Namespace) -> tuple[list[Cell], list[Cell]]:
    """Return what an earlier run with the same seconds and threads has measured."""
    try:
        parts = read(f"auto_{name}").parts
    except FileNotFoundError:
        return [], []
    found: dict[tuple[str, ...], list[Cell]] = {COLUMNS: [], PEER_COLUMNS: []}
    if f"on {options.jobs} threads" not in parts[0]:
        return [], []
    for part in parts:
        headers = tuple(getattr(part, "headers", ()))
        for row in part.rows if headers in found else ():
            cell = dict(zip(headers, row, strict=True))
            if cell["limit s"] == options.seconds:
                found[headers].append(cell)
    alone = [c for c in found[COLUMNS] if (c["fitted to"] == c["budget"]) == options.narrow]
    return alone, found[PEER_COLUMNS]


def in_a_process(
    name: str, seed: int, budgets: list[str], options: argparse.Namespace
) -> dict[str, Any]:
    """Return what a fit in a fresh process gives."""
    command = [sys.executable, "-m", "benchmarks.auto", "--data", str(options.data)]
    command += ["--one-fit", name, "--seeds", str(seed), "--budgets", *budgets]
    command += ["--seconds", str(options.seconds), "--jobs", str(options.jobs)]
    command += ["--narrow"] * options.narrow
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(name: str, cells: list[Cell], others: list[Cell], options: argparse.Namespace) -> None:
    """Write what is known of a set."""
    for cell in cells:
        cell["best known %"] = best_known(name, cell["budget"])
    order = list(BUDGETS)
    cells.sort(key=lambda cell: (order.index(cell["budget"]), cell["seed"]))
    parts: list[Any] = [
        f"At most {options.seconds:g} s a fit, on {options.jobs} threads. Best known: of all our "
        "models in earlier results that keep the budget.",
        table(COLUMNS, [[cell[column] for column in COLUMNS] for cell in cells]),
    ]
    if others:
        parts += ["Others, with the same seconds:"]
        parts += [table(PEER_COLUMNS, [[peer[c] for c in PEER_COLUMNS] for peer in others])]
    write("auto", f"Fits to a budget: {name}", *parts, suffix=name)


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
    parser.add_argument("--one-fit", choices=SETS, help=argparse.SUPPRESS)
    parser.add_argument("--narrow", action="store_true", help="fit to each budget alone")
    parser.add_argument("--figure", type=Path, help="draw the front of the first set")
    options = parser.parse_args()
    if options.one_cost:
        print(json.dumps(cost(load(options.data, options.one_cost))))
        return
    if options.one_fit:
        data = load(options.data, options.one_fit)
        print(json.dumps(one_fit(data, options.seeds[0], options), ensure_ascii=False))
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

"""Serial, threads and Ray side by side: bits, time and bytes; and a model of clusters.

The model predicts the time of the same fit on many machines from what was measured here. It assumes
that cores are as fast as this one's, that the items of a map are dealt to free cores, the longest
first, that what the driver does between two maps stays on the driver, and that the network has the
given rate: items and results go through the driver's, and what is shared reaches all machines in
about log2 of their number steps, each machine handing it on.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._data import Dataset, available, load
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.execution import RayExecutor, Traffic, executor_for
from thinleaf.measuring.latency import Stopwatch
from thinleaf.model.tree import Tree, array_names

MACHINES = (1, 8, 32, 128)
CORES = 8
GIGABYTES_PER_SECOND = 1.25
"""A network of 10 Gbit/s."""

HEADERS = ["set", "model", "executor", "workers", "fit s", "× threads", "same bits"]
BYTES = [
    "set", "model", "workers", "maps", "tasks", "items", "MB shared", "MB items", "MB results",
    "MB a sweep", "s in items", "s on the driver",
]  # fmt: skip


def models(sweeps: int, rounds: int) -> dict[str, Any]:
    """Return what is fitted: a tree by sweeps alone, and one that grows."""
    return {
        "st": SoftmaxTreeClassifier(max_sweeps=sweeps, random_state=0),
        "ast": AdaptiveSoftmaxTreeClassifier(max_rounds=rounds, random_state=0),
    }


def same(a: Tree, b: Tree) -> bool:
    """Return whether two trees have the same bits."""
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in array_names())


def fitted(model: Any, data: Dataset, **parameters: Any) -> tuple[Tree, float]:
    """Return the tree and the seconds of a fit."""
    with Stopwatch() as watch:
        model.set_params(**parameters).fit(data.X_train, data.y_train)
    return model.tree_, watch.seconds


def on_ray(model: Any, data: Dataset, n_workers: int) -> tuple[Tree, float, list[Traffic]]:
    """Fit on a cluster of this machine that was started before, with what the fit has sent."""
    import ray

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    try:
        with executor_for(n_workers, "ray") as executor:
            assert isinstance(executor, RayExecutor)
            rows = np.random.default_rng(0).permutation(data.y_train.size)[:2000]
            small = data.X_train[rows], data.y_train[rows]  # workers import and load kernels
            model.set_params(executor=executor, n_jobs=None).fit(*small)
            executor.traffic.clear()
            tree, seconds = fitted(model, data)
            return tree, seconds, list(executor.traffic)
    finally:
        ray.shutdown()
        model.set_params(executor="threads")


def dealt(seconds: Sequence[float], n_workers: int) -> float:
    """Return when the last of some items ends, if free workers take the longest that is left."""
    free = [0.0] * min(n_workers, max(len(seconds), 1))
    for each in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free)


def modelled(
    traffic: Sequence[Traffic], fit_seconds: float, n_machines: int, task_seconds: float
) -> tuple[float, float, float]:
    """Return the seconds of a fit on some machines: in items, on the network, on the driver."""
    n_workers, rate = CORES * n_machines, 1e9 * GIGABYTES_PER_SECOND
    items = sum(dealt(entry.seconds, n_workers) for entry in traffic)
    hops = 0.0 if n_machines == 1 else math.log2(n_machines)
    moved = 0.0
    for entry in traffic if n_machines > 1 else []:
        moved += (entry.sent_bytes + entry.returned_bytes + hops * entry.shared_bytes) / rate
    n_tasks = sum(min(len(entry.seconds), 4 * n_workers) for entry in traffic)
    driver = fit_seconds - sum(entry.elapsed for entry in traffic) + n_tasks * task_seconds
    return items, moved, driver


def cost_of_a_task(n: int = 320) -> float:
    """Return the seconds for a task that does nothing, if two workers do many."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with executor_for(2, "ray") as executor:
            handle = executor.share(np.zeros(100_000))
            executor.map(_nothing, list(range(8)), shared=[handle])
            with Stopwatch() as watch:
                for _ in range(n // 8):
                    executor.map(_nothing, list(range(8)), shared=[handle])
        return watch.seconds / n
    finally:
        ray.shutdown()


def _nothing(shared: Any, item: int) -> int:
    return item


def main() -> None:
    """Fit each set by each executor."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=["letter", "fontglyph1000"])
    parser.add_argument("--models", nargs="+", default=["st", "ast"], choices=["st", "ast"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--rows", type=int, help="training rows, at the most; by default all")
    parser.add_argument("--sweeps", type=int, default=4, help="of the tree of fixed depth")
    parser.add_argument("--rounds", type=int, default=2, help="of the tree that grows")
    options = parser.parse_args()
    times, sizes, clusters = [], [], []
    per_task = cost_of_a_task()
    for name in options.sets:
        if not available(options.data, name):
            continue
        data = load(options.data, name)
        if options.rows is not None:
            rows = np.random.default_rng(0).permutation(data.y_train.size)[: options.rows]
            data = replace(data, X_train=data.X_train[rows], y_train=data.y_train[rows])
        for kind in options.models:
            model = models(options.sweeps, options.rounds)[kind]
            one, seconds = fitted(model, data, n_jobs=1)  # compiles what is not compiled
            one, seconds = fitted(model, data, n_jobs=1)
            two, threaded = fitted(model, data, n_jobs=2)
            times.append([name, kind, "serial", 1, seconds, seconds / threaded, "–"])
            times.append([name, kind, "threads", 2, threaded, 1.0, _word(same(one, two))])
            for n_workers in options.workers:
                tree, seconds, traffic = on_ray(model, data, n_workers)
                row = [name, kind, "ray", n_workers, seconds, seconds / threaded]
                times.append([*row, _word(same(one, tree))])
                print(times[-1], flush=True)
                sizes.append([name, kind, n_workers, *_sizes(traffic, seconds)])
                if n_workers == options.workers[-1]:
                    for n in MACHINES:
                        parts = modelled(traffic, seconds, n, per_task)
                        clusters.append([name, kind, n, n * CORES, *parts, sum(parts)])
    write(
        "executors",
        "Executors",
        f"Kernels compiled before, workers started before. Trees of fixed depth: {options.sweeps} "
        f"sweeps; adaptive trees: at most {options.rounds} rounds, else defaults.",
        table(HEADERS, times),
        "What Ray moves; a sweep's share is that of the maps of node problems:",
        table(BYTES, sizes),
        f"A model of clusters, not a measurement: machines of {CORES} cores such as these, "
        f"{GIGABYTES_PER_SECOND} GB/s, and {1e3 * per_task:.2f} ms of the driver for a task, as "
        "measured. Items of a map go to free cores, the longest first; items and results pass "
        "the driver's network once, and what is shared reaches n machines in log2 n steps; what "
        "the driver does between maps is as here.",
        table(
            ["set", "model", "machines", "cores", "items s", "network s", "driver s", "fit s"],
            clusters,
        ),
        suffix="_".join(options.sets) if options.sets != parser.get_default("sets") else "",
    )


def _sizes(traffic: Sequence[Traffic], seconds: float) -> list[Any]:
    nodes = [entry for entry in traffic if entry.function == "fit_node"]
    shared, items, results = (
        sum(getattr(entry, f"{what}_bytes") for entry in traffic) / 1e6
        for what in ("shared", "sent", "returned")
    )
    in_sweeps = sum(e.shared_bytes + e.sent_bytes + e.returned_bytes for e in nodes) / 1e6
    # the deepest level of a sweep comes first, and it alone begins with more than changes
    n_sweeps = max(1, sum(_begins(nodes, i) for i in range(len(nodes))))
    return [
        len(traffic),
        sum(entry.n_tasks for entry in traffic),
        sum(len(entry.seconds) for entry in traffic),
        shared,
        items,
        results,
        in_sweeps / n_sweeps,
        sum(sum(entry.seconds) for entry in traffic),
        seconds - sum(entry.elapsed for entry in traffic),
    ]


def _begins(nodes: Sequence[Traffic], i: int) -> bool:
    """Return whether a map is the first of a sweep: the one before had two nodes, the root's."""
    return i == 0 or len(nodes[i - 1].seconds) == 2


def _word(equal: bool) -> str:
    return "yes" if equal else "NO"


if __name__ == "__main__":
    main()

"""Steps of ``LabelTreeSoftmax`` with many classes: ms and memory, now and as they were.

A step is a forward and a backward pass and one of SGD, on random inputs whose classes follow Zipf's
law. Each row is a process of its own, so that memory is that of the row. With ``--former``, the
source of another checkout is measured beside this one, in turns. Statistics are what the layer
collects for its next re-assignment; the peak is of the process, above what it had before the layer.
The re-assignment is the second one, after as many steps as were measured.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks._report import table, write

HEADERS = ["classes", "depth", "arity", "layer", "step ms", "CPU ms", "forward", "backward",
           "optimizer", "re-assignment s", "weights MB", "statistics MB", "peak of steps MB",
           "with re-assignments"]  # fmt: skip
COLLECTED = ("sum_probas", "counts", "label_sums", "label_counts", "top_children", "met")


def peak() -> float:
    """Return the most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(spec: dict[str, Any]) -> dict[str, Any]:
    """Take steps of one layer."""
    import torch

    from thinleaf.torch import LabelTreeSoftmax

    torch.set_num_threads(spec["threads"])
    torch.manual_seed(0)
    n_classes, dim, n_rows = spec["classes"], spec["dim"], spec["batch_size"]
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, n_classes + 1)
    labels = rng.choice(n_classes, (3 * spec["steps"], n_rows), p=frequency / frequency.sum())
    before = peak()
    known = inspect.signature(LabelTreeSoftmax).parameters
    options = {name: spec[name] for name in ("sparse",) if name in known}
    layer = LabelTreeSoftmax(dim, n_classes, max_depth=spec["depth"], **options)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    times: dict[str, list[float]] = {name: [] for name in ("forward", "backward", "optimizer")}
    on_cpu: list[float] = []

    def steps(first: int, *, warm: bool = False) -> None:
        for y in torch.from_numpy(labels[first : first + spec["steps"]]):
            X = torch.randn(n_rows, dim, requires_grad=True)
            cpu, clock = process_time(), [perf_counter()]
            loss = layer(X, y).loss
            clock.append(perf_counter())
            loss.backward()
            clock.append(perf_counter())
            optimizer.step()
            optimizer.zero_grad()
            clock.append(perf_counter())
            if warm:
                continue
            on_cpu.append(1000 * (process_time() - cpu))
            for name, seconds in zip(times, np.diff(clock), strict=True):
                times[name].append(1000 * seconds)

    steps(0, warm=True)
    steps(spec["steps"])
    of_steps, update = peak() - before, float("nan")
    if spec["updates"]:
        layer.update_tree()
        steps(2 * spec["steps"])
        start = perf_counter()
        layer.update_tree()
        update = perf_counter() - start
    held = getattr(layer, "collected", layer)
    tensors = [getattr(held, name, None) for name in COLLECTED]
    n_bytes = sum(t.numel() * t.element_size() for t in tensors if t is not None)
    total = [sum(step) for step in zip(*times.values(), strict=True)]
    return {
        "arity": layer.tree.arity, "step ms": median(total),
        "CPU ms": median(on_cpu),
        **{name: median(values) for name, values in times.items()},
        "re-assignment s": update, "weights MB": 4e-6 * layer.weight.numel(),
        "statistics MB": 1e-6 * n_bytes, "peak of steps MB": of_steps,
        "with re-assignments": peak() - before,
    }  # fmt: skip


def in_process(source: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Measure a layer of some checkout in a process of its own."""
    root = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source / "src"), root])}
    command = [sys.executable, "-m", "benchmarks.label_tree_steps", "--child", json.dumps(spec)]
    done = subprocess.run(command, env=environment, cwd=root, check=True, capture_output=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure all, and write the report after each number of classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--former", type=Path, help="a checkout to be measured beside this one")
    parser.add_argument("--classes", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--dim", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=400)
    parser.add_argument("--steps", type=int, default=20, help="that are measured, after as many")
    parser.add_argument("--rounds", type=int, default=3, help="the best of which counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-updates", action="store_true", help="measure no re-assignments")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measured(json.loads(options.child))))
        return
    here = Path(__file__).parents[1]
    layers = [("now, dense gradients", here, False), ("now, sparse=True", here, True)]
    if options.former:
        layers.insert(0, ("former", options.former.resolve(), False))
    rows: list[list[Any]] = []
    for n_classes in options.classes:
        for depth in options.depths:
            spec = {"classes": n_classes, "depth": depth, "dim": options.dim,
                    "batch_size": options.batch_size, "steps": options.steps,
                    "threads": options.threads}  # fmt: skip
            found: dict[str, list[dict[str, Any]]] = {}
            for turn in range(options.rounds):
                for name, source, sparse in layers:
                    updates = not options.no_updates and turn == 0
                    more = {"sparse": sparse, "updates": updates}
                    found.setdefault(name, []).append(in_process(source, spec | more))
            for name, _, _ in layers:
                own = found[name]
                best = min(own, key=lambda run: float(run["step ms"]))
                kept = {key: own[0][key] for key in ("re-assignment s", "with re-assignments")}
                cells = {"classes": n_classes, "depth": depth, "layer": name} | best | kept
                rows.append([cells[header] for header in HEADERS])
        head = (
            f"Inputs of length {options.dim}, batches of {options.batch_size}, "
            f"{options.threads} thread(s); medians of {options.steps} steps, the best of "
            f"{options.rounds} processes."
        )
        write("label_tree_steps", "Steps with many classes", head, table(HEADERS, rows))


if __name__ == "__main__":
    main()

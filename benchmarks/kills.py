"""What a fit survives: workers, a node and the driver are killed, and the tree is always the same.

Everything runs on this machine: workers of a local Ray, nodes that are processes of their own, and
a driver in a process of its own, which is started again and goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import Dataset, load
from benchmarks._report import arguments, table, write
from benchmarks.executors import same
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier, load_estimator
from thinleaf.measuring.latency import Stopwatch
from thinleaf.model.tree import Tree

_PATIENCE = 90.0
"""Seconds in which what was started must have ended: Ray's agents look once a minute for it."""


def descendants(of: int) -> dict[int, str]:
    """Return all processes below one, with their command lines."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if after_name[0] != "Z":
                parents[int(entry.name)] = int(after_name[1])
                commands[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    found: dict[int, str] = {}
    level = {of}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found |= {pid: commands[pid] for pid in level}
    return found


def still_running(pids: list[int]) -> int:
    """Return how many processes have not ended in time."""
    until = time.monotonic() + _PATIENCE
    while True:
        left = [pid for pid in pids if _is_alive(pid)]
        if not left or time.monotonic() > until:
            return len(left)
        time.sleep(0.1)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def tree_of_fixed_depth(sweeps: int) -> SoftmaxTreeClassifier:
    """Return what is fitted while others are killed."""
    return SoftmaxTreeClassifier(max_sweeps=sweeps, random_state=0)


def kill_workers(data: Dataset, tree: Tree, sweeps: int, n_kills: int, usual: float) -> list[Any]:
    """Kill a busy worker at random moments, over as many fits as that takes."""
    import ray

    rng = np.random.default_rng(0)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ours: list[int] = []
    n_fits, n_same, killed = 0, 0, 0
    try:
        while killed < n_kills:
            done = threading.Event()
            kills: list[int] = []
            room = n_kills - killed

            def kill(
                done: threading.Event = done, kills: list[int] = kills, room: int = room
            ) -> None:
                while not done.wait(rng.uniform(0.0, 0.5 * usual)):
                    busy = [p for p, c in descendants(os.getpid()).items() if "ray::work" in c]
                    if busy and len(kills) < room:
                        os.kill(int(rng.choice(busy)), signal.SIGKILL)
                        kills.append(1)

            killer = threading.Thread(target=kill)
            killer.start()
            clf = tree_of_fixed_depth(sweeps).set_params(executor="ray")
            clf.fit(data.X_train, data.y_train)
            done.set()
            killer.join()
            n_fits, killed = n_fits + 1, killed + len(kills)
            n_same += same(clf.tree_, tree)
            print(f"{killed} of {n_kills} workers killed in {n_fits} fits", flush=True)
        ours = list(descendants(os.getpid()))
    finally:
        ray.shutdown()
    return ["workers, −9", killed, n_fits, n_same, still_running(ours)]


def kill_a_node(data: Dataset, tree: Tree, sweeps: int, n_kills: int, usual: float) -> list[Any]:
    """Kill one of three nodes in the middle of a fit; it comes back for the next one."""
    import ray
    from ray.cluster_utils import Cluster

    rng = np.random.default_rng(1)
    memory = {"object_store_memory": 2**29}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1} | memory)
    ours: list[int] = []
    n_same = 0
    try:
        nodes = [cluster.add_node(num_cpus=1, **memory) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        for _ in range(n_kills):
            moment = rng.uniform(0.3, 0.9) * usual
            killer = threading.Timer(moment, cluster.remove_node, [nodes.pop(0), False])
            killer.start()
            clf = tree_of_fixed_depth(sweeps).set_params(executor="ray", n_jobs=3)
            clf.fit(data.X_train, data.y_train)
            killer.join()
            n_same += same(clf.tree_, tree)
            nodes.append(cluster.add_node(num_cpus=1, **memory))
        ours = list(descendants(os.getpid()))
    finally:
        ray.shutdown()
        cluster.shutdown()
    return ["a node", n_kills, n_kills, n_same, still_running(ours)]


def adaptive(checkpoint: Path | None = None) -> AdaptiveSoftmaxTreeClassifier:
    """Return what the driver fits that is killed."""
    return AdaptiveSoftmaxTreeClassifier(
        decisions="training",
        max_rounds=2,
        max_sweeps=3,
        random_state=0,
        checkpoint=None if checkpoint is None else str(checkpoint),
    )


def drive(data: Dataset, checkpoint: Path, output: Path) -> None:
    """Fit on a local Ray, with a checkpoint: what the other process does."""
    clf = adaptive(checkpoint).set_params(executor="ray", n_jobs=2)
    clf.fit(data.X_train, data.y_train).save(output, trainable=True)


def kill_the_driver(data: Dataset, options: Any, n_kills: int) -> list[Any]:
    """Kill the driver between two checkpoints, and start it again until it ends."""
    tree = adaptive().fit(data.X_train, data.y_train).tree_
    command = [sys.executable, "-m", "benchmarks.kills", "--data", str(options.data)]
    command += ["--set", options.set, "--rows", str(options.rows)]
    rng = np.random.default_rng(2)
    killed = 0
    below: list[int] = []
    with tempfile.TemporaryDirectory() as directory:
        checkpoint, output = Path(directory) / "checkpoint", Path(directory) / "tree"
        while not output.exists():
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            driver = subprocess.Popen([*command, "--drive", directory])
            while driver.poll() is None and killed < n_kills:
                now = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
                if now > before:
                    time.sleep(rng.uniform(0.0, 1.0))
                    below += descendants(driver.pid)
                    driver.kill()
                    killed += 1
                    driver.wait()
                    break
                time.sleep(0.02)
            if driver.wait() not in (0, -signal.SIGKILL):
                raise RuntimeError("the driver has failed")
        found = load_estimator(output).tree_
    return ["the driver, resumed", killed, 1, int(same(found, tree)), still_running(below)]


def main() -> None:
    """Kill, and compare."""
    parser = arguments(__doc__)
    parser.add_argument("--set", default="letter")
    parser.add_argument("--rows", type=int, default=16_000, help="training rows, at the most")
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20, help="of workers")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    data = load(options.data, options.set)
    some = slice(0, options.rows)
    data = replace(data, X_train=data.X_train[some], y_train=data.y_train[some])
    if options.drive is not None:
        drive(data, options.drive / "checkpoint", options.drive / "tree")
        return
    model = tree_of_fixed_depth(options.sweeps)
    model.fit(data.X_train, data.y_train)
    with Stopwatch() as watch:
        tree = model.fit(data.X_train, data.y_train).tree_
    rows = [
        kill_workers(data, tree, options.sweeps, options.kills, watch.seconds),
        kill_a_node(data, tree, options.sweeps, 3, watch.seconds),
        kill_the_driver(data, options, 3),
    ]
    write(
        "kills",
        "What a fit survives",
        f"{options.set}, {data.y_train.size:,} rows. Moments are random; trees are compared bit by "
        "bit with that of one thread that nobody disturbed. Left running: processes that had not "
        f"ended {_PATIENCE:.0f} s after the end, or after the kill of their driver.",
        table(["killed", "kills", "fits", "same tree", "left running"], rows),
    )


if __name__ == "__main__":
    main()

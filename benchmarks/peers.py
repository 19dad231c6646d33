"""Our trees beside other libraries: error, latency, size and training time, in one run.

Single: the fastest Python call for one sample, its input prepared. Batch: the whole test part. One
thread everywhere. Peers are near their default settings, not tuned; those that are not installed
are left out.
"""

from __future__ import annotations

import traceback
from typing import Any

from benchmarks._data import as_split, available, load
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.comparison import Split
from thinleaf.comparison.measure import N_SINGLE, measure
from thinleaf.comparison.peers import PEERS, Peer
from thinleaf.comparison.systems import Ours, System

COLUMNS = ["", "error %", "single µs", "batch µs", "bytes", "train s"]
SLOW = {"icd10cm": "lightgbm"}
"""What would take hours on a set."""

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


def peers(name: str, split: Split) -> list[Peer]:
    """Return the installed systems that suit a set, near their default settings, not tuned."""
    systems = [s for key, make in PEERS.items() if key != SLOW.get(name) for s in make()]
    return [system for system in systems if system.obstacle(split) is None]


def row(system: System, split: Split) -> list[Any]:
    """Return a row of the table."""
    figures = measure(system, split)
    latencies = [figures.single_us, figures.batch_us]
    return [system.name, 100 * figures.error, *latencies, figures.bytes, figures.train_seconds]


def main() -> None:
    """Run every system on a set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=["letter", "icd10cm"], required=True)
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    split = as_split(load(options.data, options.set))
    rows = []
    for system in [*ours(options.set), *peers(options.set, split)]:
        try:
            system.rehearse(split)
            rows.append(row(system, split))
        except Exception as error:  # a peer that fails is a row that says so
            traceback.print_exc()
            rows.append([system.name, f"failed: {type(error).__name__}", *[""] * 4])
        print(rows[-1], flush=True)
    write(
        "peers",
        f"Ours and other libraries on {options.set}",
        f"{split.y_train.size:,} rows, {split.n_classes:,} classes; one thread, one seed; single: "
        f"best of up to 7 passes over {N_SINGLE:,} test rows. Peers are near their defaults, not "
        "tuned.",
        table(COLUMNS, rows),
        suffix=options.set,
    )


if __name__ == "__main__":
    main()

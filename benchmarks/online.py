"""Recall Tree, LOMTree and one-against-all beside vowpalwabbit's --recall_tree and --log_multi.

Both see the same features in the same order, in the same number of passes, on one thread (VW reads
its cache on a second one). Settings come from a few runs on a tenth of the training rows, which
``--validate`` holds out and measures on instead of the test part: more of them for ours than for
VW (except on Letter, where VW had 24), and next to none on bible_verse. LOMTrees differ in size:
VW's has a router less than classes. ``benchmarks.online_defaults`` compares what both find
themselves. Without vowpalwabbit, only our rows are measured.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _vw
from benchmarks._data import Dataset, as_split, held_out, load
from benchmarks._report import arguments, table, write
from thinleaf import LOMTreeClassifier, OnlineOneVsAllClassifier, RecallTreeClassifier
from thinleaf.measuring.measure import measure
from thinleaf.measuring.systems import Ours

HEADERS = [
    "system",
    "test error %",
    "training examples/s",
    "one prediction µs",
    "in a batch µs",
    "MB",
]


PAPER = {
    "max_candidates": None, "max_routers": None, "bound_multiplier": 1.0, "recall_of": "node",
    "path_features": True, "two_paths": False, "beam": 1, "learning_rate": 1.0,
    "router_learning_rate": 1.0,
}  # fmt: skip
"""Nothing is found by a race: the settings of the paper, where it gives any."""

LOM_ROUTERS = 8000
"""In every table."""


def recall_tree(**settings: Any) -> RecallTreeClassifier:
    """Return a Recall Tree with the paper's settings and others."""
    return RecallTreeClassifier(**PAPER | settings)


@dataclass(frozen=True)
class Comparison:
    """A set, passes, and the settings of each system, chosen on validation rows."""

    n_passes: int
    ours: tuple[Any, ...]
    vw: tuple[str, ...]


COMPARISONS = {
    "letter": Comparison(
        20,
        (
            recall_tree(
                max_candidates=26,
                bound_multiplier=0.0,
                max_depth=14,
                max_routers=20_000,
                router_learning_rate=2.0,
            ),
            LOMTreeClassifier(LOM_ROUTERS),
            OnlineOneVsAllClassifier(),
        ),
        (
            "--recall_tree 26 -b 22 -l 1 --max_depth 14 --max_candidates 8",
            "--recall_tree 26 -b 22 --loss_function logistic -l 3 --max_depth 14 "
            "--max_candidates 4",
            "--log_multi 26 -b 18 --loss_function logistic",
            "--oaa 26 -b 18 --loss_function logistic",
        ),
    ),
    "fontglyph1000": Comparison(
        5,
        (recall_tree(max_candidates=64, learning_rate=2.0), LOMTreeClassifier(LOM_ROUTERS)),
        (
            "--recall_tree 1000 -b 24 --loss_function logistic -l 2",
            "--log_multi 1000 -b 24 --loss_function logistic -l 2",
        ),
    ),
    "icd10cm": Comparison(
        6,
        (recall_tree(max_candidates=64, learning_rate=2.0), LOMTreeClassifier(LOM_ROUTERS)),
        (
            "--recall_tree 1730 -b 26 --loss_function logistic -l 2 --max_candidates 64",
            "--log_multi 1730 -b 24 --loss_function logistic -l 2",
        ),
    ),
    "bible_verse": Comparison(
        1,
        (recall_tree(max_candidates=64),),
        (
            "--recall_tree 30945 -b 26 --loss_function logistic -l 2",
            "--log_multi 30945 -b 26 --loss_function logistic -l 2",
        ),
    ),
}


def shuffled(data: Dataset) -> Dataset:
    """Return the training rows in a random order, the same for all systems and passes."""
    order = np.random.default_rng(1).permutation(data.y_train.size)
    X, y = data.X_train[order], data.y_train[order]
    return Dataset(data.name, X, y, data.X_test, data.y_test)


def our_row(data: Dataset, clf: Any, n_passes: int) -> list:
    """Train and measure one of our classifiers."""
    clf.set_params(n_passes=n_passes, shuffle=False)
    changed = {
        key: value
        for key, value in clf.get_params().items()
        if value != (type(clf)().get_params() | PAPER)[key] and key not in ("n_passes", "shuffle")
    }
    name = f"{type(clf).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"
    system, split = Ours(name, clf), as_split(data)
    system.rehearse(split)
    figures = measure(system, split)
    return [
        f"`{name}`",
        100 * figures.error,
        n_passes * data.y_train.size / figures.train_seconds,
        figures.single_us,
        figures.batch_us,
        figures.bytes / 1e6,
    ]


def vw_row(data: Dataset, folder: Path, options: str, n_passes: int) -> list:
    """Train and measure vowpalwabbit."""
    classes, y = np.unique(data.y_train, return_inverse=True)
    run = _vw.run(folder, (data.X_train, y), data.X_test, options, n_passes)
    predicted = classes[np.clip(run.predicted, 0, classes.size - 1)]
    return [
        f"`vw {options}`",
        100 * float(np.mean(predicted != data.y_test)),
        n_passes * y.size / run.train_seconds,
        run.single_us,
        1e6 * run.batch_seconds / data.y_test.size,
        run.n_bytes / 1e6,
    ]


def main() -> None:
    """Measure all systems on one set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=list(COMPARISONS), required=True)
    parser.add_argument("--validate", action="store_true", help="measure on held-out rows")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The number of unique classes")
    comparison = COMPARISONS[options.set]
    data = load(options.data, options.set)
    data = shuffled(held_out(data, 0.1) if options.validate else data)
    rows = [our_row(data, clf, comparison.n_passes) for clf in comparison.ours]
    version = _vw.version()
    if version is not None:
        with tempfile.TemporaryDirectory() as folder:
            rows += [vw_row(data, Path(folder), o, comparison.n_passes) for o in comparison.vw]
    report = table(HEADERS, rows)
    if options.validate:
        print(report)
        return
    write(
        "online",
        f"{options.set}: online trees beside vowpalwabbit {version or '(not installed)'}",
        f"{comparison.n_passes} passes over {data.y_train.size:,} rows of {data.n_classes:,} "
        "classes, in the same order. Settings come from runs on held-out training rows "
        "(`--validate`), more of them for ours than for VW. One prediction: the fastest call for "
        "an example in memory, of ours by the frozen model; MB of that model, and of VW's file.",
        report,
        suffix=options.set,
    )


if __name__ == "__main__":
    main()

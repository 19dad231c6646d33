"""Our trees beside other libraries: error, latency, size and training time, in one run.

Single: the fastest Python call for one sample, its input prepared. Batch: the whole test part. One
thread everywhere. Peers are near their default settings, not tuned; those that are not installed
are left out, and so are those that a set would keep busy for hours. The front are the systems than
which no other has both fewer errors and a shorter single latency.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import adaptive_sets
from benchmarks._data import DENSE_SETS, LANGUAGE_SETS, TEXT_SETS, Dataset, available, load
from benchmarks._report import arguments, best_of, stopwatch, table, write
from benchmarks._systems import Ours, Pecos, System, peers
from thinleaf import AdaptiveSoftmaxTreeClassifier, LabelTreeClassifier, RecallTreeClassifier

N_SINGLE = 1000
COLUMNS = ["", "error %", "single µs", "batch µs", "bytes", "train s", "front"]
LETTER = {
    "router_ridge": 1.0, "leaf_ridge": 0.1, "tol": 1e-4, "initial_contraction": 1.0, "max_rounds": 8
}  # fmt: skip
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "letter": {"defaults": {}, "tuned": LETTER},
    "fontglyph1000": {"defaults": {"max_sweeps": 5, "max_rounds": 1}},
    "novels100": {},
    "ptb": {
        "3 sweeps": {
            "init": "class_clusters", "initial_depth": 6, "initial_contraction": 0.05,
            "max_rounds": 0, "max_sweeps": 3, "router_ridge": 100.0, "leaf_ridge": 70.0,
        }
    },
}  # fmt: skip
BEAMS = (2, 4)
SLOW = {
    "wordnet_hypernym": ("fastText softmax",),
    "debian_paths": ("fastText softmax",),
    "bible_verse": ("fastText softmax",),
    "ptb": ("napkinXC HSM", "napkinXC PLT", "scikit-learn tree, tree_.apply"),
}
"""Systems that a set would keep busy for hours."""


OUR_NAMES = ("AST", "Recall Tree", "label tree")


def is_ours(name: str) -> bool:
    """Return whether a row of the table is one of our models."""
    return name.startswith(OUR_NAMES)


class OurLabelTree(System):
    """A learned label tree, on the texts themselves: reading them is part of a prediction."""

    name = "label tree, on raw texts"

    def __init__(self) -> None:
        self.model = LabelTreeClassifier(random_state=0)

    def suits(self, data):
        return data.texts_train is not None and data.name in TEXT_SETS

    def fit(self, data, y):
        self.model.fit(data.texts_train, y)

    def predict(self, data):
        return self.model.predict(data.texts_test)

    def samples(self, data, n):
        return data.texts_test[:n]

    def one(self):
        return self.model.predict_one

    def nbytes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(str(Path(folder) / "model"))
            return (Path(folder) / "model").stat().st_size


def ours(data: Dataset) -> list[System]:
    """Return our models for a set; settings as in the other benchmarks."""
    settings = SETTINGS[data.name] if data.name in SETTINGS else adaptive_sets.SETTINGS[data.name]
    models: list[System] = []
    for variant, changes in settings.items():
        if "round" in variant:
            continue
        tree = AdaptiveSoftmaxTreeClassifier(random_state=0, n_jobs=1, **changes)
        models.append(Ours(f"AST, {variant}", tree))
        if data.name in TEXT_SETS:
            models += [Ours(f"AST, {variant}, beam {beam}", tree, beam) for beam in BEAMS]
    models += [Ours("Recall Tree", RecallTreeClassifier(random_state=0)), OurLabelTree()]
    return [model for model in models if model.suits(data)]


def warm_up(systems: Sequence[System], data: Dataset, y: np.ndarray) -> None:
    """Compile before anything is timed."""
    few = np.flatnonzero(y < 8)[:200]
    texts = None if data.texts_train is None else [data.texts_train[i] for i in few]
    small = replace(data, X_train=data.X_train[few], texts_train=texts)
    for system in systems:
        tried = deepcopy(system)
        tried.fit(small, y[few])
        tried.one()(tried.samples(small, 1)[0])


def measure(system: System, data: Dataset, y: np.ndarray, y_test: np.ndarray) -> list[Any]:
    """Return a row of the table."""
    fitted = isinstance(system, Ours) and hasattr(system.model, "classes_")
    with stopwatch() as watch:
        system.fit(data, y)
    seconds = "as above" if fitted else watch.seconds
    predicted = system.predict(data)
    error = 100 * float(np.mean(predicted != y_test))
    if isinstance(system, Pecos):
        single, batch = (float(system.out[name]) for name in ("single", "batch"))
        return [system.name, error, 1e6 * single, 1e6 * batch, system.nbytes(), seconds]
    samples = system.samples(data, min(N_SINGLE, len(y_test)))
    one = system.one()

    def singles() -> None:
        for sample in samples:
            one(sample)

    single = best_of(7, singles) / len(samples)
    batch = best_of(3, lambda: system.predict(data)) / len(y_test)
    return [system.name, error, 1e6 * single, 1e6 * batch, system.nbytes(), seconds]


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return of each point whether no other is better in one way and no worse in the other."""

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a != b and a[0] <= b[0] and a[1] <= b[1]

    return [not any(beats(other, point) for other in points) for point in points]


def with_front(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows with the last column filled in; systems that failed are not on the front."""
    ran = [row for row in rows if isinstance(row[1], float)]
    best = {row[0] for row, on in zip(ran, front([(r[1], r[2]) for r in ran]), strict=True) if on}
    return [[*row, "yes" if row[0] in best else ""] for row in rows]


def main() -> None:
    """Run every system on a set; the report is written anew after each."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=[*DENSE_SETS, *TEXT_SETS, *LANGUAGE_SETS], required=True)
    parser.add_argument("--every", type=int, default=1, help="take one of so many training rows")
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    data = load(options.data, options.set)
    if options.every > 1:
        step = slice(None, None, options.every)
        data = replace(data, X_train=data.X_train[step], y_train=data.y_train[step])
    classes, y = np.unique(data.y_train, return_inverse=True)
    at = np.minimum(np.searchsorted(classes, data.y_test), classes.size - 1)
    y_test = np.where(classes[at] == data.y_test, at, -1)
    slow = SLOW.get(data.name, ())
    our_models = ours(data)
    warm_up(our_models, data, y)
    rows: list[list[Any]] = []
    for system in [*our_models, *(peer for peer in peers(data) if peer.name not in slow)]:
        try:
            rows.append(measure(system, data, y, y_test))
        except Exception as error:  # a peer that fails is a row that says so
            traceback.print_exc()
            rows.append([system.name, f"failed: {type(error).__name__}", *[""] * 4])
        print(rows[-1], flush=True)
        write(
            "peers",
            f"Ours and other libraries on {data.name}",
            f"{len(y):,} rows, {classes.size:,} classes; one thread, one seed; single: best of 7 "
            f"passes over {N_SINGLE:,} test rows. The first {len(our_models)} are ours; those with "
            "a beam are the model above them. Peers are near their defaults, not tuned."
            + (f" Not run, because training takes hours: {', '.join(slow)}." if slow else ""),
            table(COLUMNS, with_front(rows)),
            suffix=data.name,
        )


if __name__ == "__main__":
    main()

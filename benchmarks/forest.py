"""Forests of softmax trees: error, latency and bytes of the first 1, 2, 4, … trees, beside peers.

One forest is trained for each seed; its prefixes give the curve. Single: the fastest Python call
for one sample, its input prepared; one thread everywhere. Settings are in ``benchmarks.peers``:
those of letter, icd10cm, banking77 and clinc150 were chosen on held-out rows of the training part,
those of fontglyph1000 and bible_verse on such rows of some of the classes, others are first
guesses. ``--validate`` shows the curve on held-out rows instead of the test part, and leaves the
peers out. Peers are near their default settings; those that are not installed are left out.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks._data import as_split, available, held_out, load
from benchmarks._report import arguments, table, write
from benchmarks.peers import FORESTS, peers, row
from thinleaf import SoftmaxForestClassifier
from thinleaf.cli._estimator import parse_assignment
from thinleaf.measuring import Split
from thinleaf.measuring.latency import N_PASSES, N_SINGLE, Stopwatch, model_latencies, prepared_rows
from thinleaf.measuring.peers import Peer

SEEDS = {"letter": 5}
PEERS = ["", "error %", "single µs", "batch µs", "bytes", "train s"]
CURVE = [
    "trees", "beam", "error %", "lowest", "highest", "single µs", "batch µs", "bytes", "train s",
]  # fmt: skip


class Network(Peer):
    """A network with two hidden layers: scikit-learn trains it, NumPy calls it."""

    name = "scikit-learn MLP, NumPy"

    def unsuited(self, split):
        """Train it in minutes only."""
        return "is for dense rows and few classes" if split.sparse or split.n_classes > 99 else None

    def fit(self, split):
        """Train with Adam."""
        from sklearn.neural_network import MLPClassifier

        model = MLPClassifier((256, 256), max_iter=100, random_state=0)
        model.fit(split.X_train, split.y_train)
        self.W = [np.ascontiguousarray(W.T, dtype=np.float32) for W in model.coefs_]
        self.b = [b.astype(np.float32) for b in model.intercepts_]

    def predict(self, split):
        """Return the class ids of the test part, as a batch."""
        H = split.X_test
        for W, b in zip(self.W[:-1], self.b[:-1], strict=True):
            H = np.maximum(H @ W.T + b, 0.0)
        return (H @ self.W[-1].T + self.b[-1]).argmax(axis=1)

    def samples(self, split, n):
        """Return rows."""
        return prepared_rows(split.X_test, n)

    def one(self):
        """Return three products and an argmax."""
        (A, B, C), (a, b, c) = self.W, self.b
        zero = np.float32(0.0)

        def call(x):
            h = np.maximum(A.dot(x) + a, zero)
            return (C.dot(np.maximum(B.dot(h) + b, zero)) + c).argmax()

        return call

    def nbytes(self):
        """Return the size of weights and biases."""
        return sum(part.nbytes for part in (*self.W, *self.b))


def forest(name: str, seed: int, n_trees: int, changes: dict[str, Any]) -> SoftmaxForestClassifier:
    """Return the forest of a set."""
    own = {k: changes.pop(k) for k in ("bootstrap", "max_features") if k in changes}
    tree = clone(FORESTS[name][0]).set_params(**changes)
    return SoftmaxForestClassifier(tree, n_trees, random_state=seed, n_jobs=1, **own)


def curve(name: str, split: Split, options: argparse.Namespace) -> list[list[Any]]:
    """Return a row for each number of trees and each beam: means over seeds."""
    errors: dict[tuple[int, int], list[float]] = {}
    rest: dict[tuple[int, int], list[Any]] = {}
    for seed in range(options.seeds):
        changes = dict(map(parse_assignment, options.set_ or []))
        with Stopwatch() as watch:
            model = forest(name, seed, options.trees, changes).fit(split.X_train, split.y_train)
        for part in model.freeze().prefixes():
            for beam in options.beams:
                key, with_beam = (part.n_trees, beam), part.with_beam(beam)
                error = 100 * float(np.mean(with_beam.predict(split.X_test) != split.y_test))
                errors.setdefault(key, []).append(error)
                if seed == 0:
                    times = [time.median for time in model_latencies(with_beam, split.X_test)]
                    rest[key] = [*times, part.nbytes, watch.seconds]
                print(seed, *key, error, *rest[key], flush=True)
    return [[*key, float(np.mean(e)), min(e), max(e), *rest[key]] for key, e in errors.items()]


def main() -> None:
    """Run a set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(FORESTS), required=True)
    parser.add_argument("--trees", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--validate", action="store_true", help="on held-out training rows")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--change", dest="set_", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    options.trees = options.trees or FORESTS[options.set][1]
    options.seeds = options.seeds or SEEDS.get(options.set, 1)
    data = load(options.data, options.set)
    data = held_out(data, 0.2) if options.validate else data
    split = as_split(data)
    curve_rows = curve(data.name, split, options)
    print(table(CURVE, curve_rows), flush=True)
    if options.validate:
        return
    head = (
        f"{split.y_train.size:,} rows, {split.n_classes:,} classes; trees: "
        f"`{FORESTS[options.set][0]}`; {options.seeds} seed(s). Single: median of {N_PASSES} "
        f"passes over {N_SINGLE:,} test rows. The forest of m trees is the first m of the largest, "
        "whose seconds of training are given."
    )
    others: list[list[Any]] = []
    network = [Network()] if Network().obstacle(split) is None else []
    for system in [] if options.no_peers else [*network, *peers(data.name, split)]:
        try:
            others.append(row(system, split))
        except Exception as error:  # a peer that fails is a row that says so
            others.append([system.name, f"failed: {type(error).__name__}", *[""] * 4])
        print(others[-1], flush=True)
        report(options.set, head, curve_rows, others)
    report(options.set, head, curve_rows, others)


def report(name: str, head: str, curve_rows: list[list[Any]], others: list[list[Any]]) -> None:
    """Write what is known so far."""
    parts = [head, table(CURVE, curve_rows)]
    parts += ["## Peers", table(PEERS, others)] if others else []
    write("forest", f"Forests of softmax trees: {name}", *parts, suffix=name)


if __name__ == "__main__":
    main()

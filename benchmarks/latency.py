"""Latency of the frozen predictor: single rows, batches, beams, weight types, and opening a file.

The roofline is memory: the weights that a prediction multiplies, in bytes, at the bandwidth that a
sum over an array of the model's size reaches in the same run.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._data import Dataset, available, load
from benchmarks._report import arguments, table, write
from benchmarks.adaptive_sets import TEXT
from benchmarks.peers import LETTER
from thinleaf import AdaptiveSoftmaxTreeClassifier, Tree
from thinleaf import load as load_model
from thinleaf.measuring.latency import batch_latency, best_of, model_latencies
from thinleaf.measuring.metrics import top_k_error
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Leaf, Router

SETTINGS: dict[str, dict[str, Any]] = {
    "letter": LETTER,
    "icd10cm": TEXT | {"max_sweeps": 5},
}
N_BATCH = 10_000
GIGABYTE = 2**30


def single_and_batch(data: Dataset, frozen: FrozenTree, flops: float) -> list[Any]:
    """Return µs of a single row, µs of a row in a batch, and its share of the roofline."""
    single, batch = model_latencies(frozen, data.X_test[np.arange(N_BATCH) % len(data.y_test)])
    array = np.ones(max(frozen.nbytes // 4, 2**14), dtype=np.float32)
    bandwidth = array.nbytes / best_of(50, lambda: array.sum())
    share = 4 * flops / bandwidth / (1e-6 * batch.median)
    return [single.median, batch.median, bandwidth / 1e9, 100 * share]


def beams(data: Dataset, frozen: FrozenTree) -> list[list[Any]]:
    """Return error and latency of several beams."""
    out = []
    for beam in (1, 2, 4, 8):
        model = frozen.with_beam(beam)
        error = 100 * float(np.mean(model.predict(data.X_test) != data.y_test))
        top, _ = model.predict_topk(data.X_test, 5)
        top_error = 100 * top_k_error(data.y_test, top)
        single, batch, _, _ = single_and_batch(data, model, 0.0)
        out.append([beam, error, top_error, single, batch])
    return out


def layouts() -> list[list[Any]]:
    """Return µs of a row in a batch at one leaf, stored as a block or as sparse rows."""
    rng = np.random.default_rng(0)
    rows = []
    for sparse, n_features, k in [(False, 16, 26), (False, 256, 64), (True, 2000, 64)]:
        X: Any = rng.normal(size=(500, n_features)).astype(np.float32)
        if sparse:
            X = sp.random(500, n_features, 12 / n_features, "csr", np.float32, random_state=0)
        for density in (0.02, 0.1, 0.25, 0.5, 1.0):
            W = rng.normal(size=(n_features, k)).astype(np.float32)
            W[rng.random(W.shape) >= density] = 0.0
            features = np.arange(n_features, dtype=np.int32)
            leaf = Leaf(np.arange(k, dtype=np.int32), features, W, np.zeros(k, np.float32))
            tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=n_features, n_classes=k)
            times = []
            for blocks in (True, False):
                packed = pack(tree, Outside.of(tree, None, 0.0), sparse=sparse, blocks=blocks)
                model = FrozenTree(packed, np.arange(k))
                times.append(batch_latency(partial(model.predict, X), X.shape[0], 30).median)
            kind = f"{'sparse' if sparse else 'dense'} rows, {n_features} features, k = {k}"
            rows.append([kind, density, *times])
    return rows


def opening() -> list[list[Any]]:
    """Return how long it takes to open files of several sizes, and to predict one row then."""
    rows = []
    x = np.ones(2**12, dtype=np.float32)
    for n_leaves in (16, 256, 2048):
        k = GIGABYTE // 4 // x.size // 2048
        leaf = Leaf(
            np.arange(k, dtype=np.int32),
            np.arange(x.size, dtype=np.int32),
            np.full((x.size, k), 0.5, dtype=np.float32),
            np.zeros(k, dtype=np.float32),
        )
        skeleton = Tree.complete(int(np.log2(n_leaves)), n_features=x.size, n_classes=k)
        router = Router(np.arange(1, dtype=np.int32), np.ones(1, np.float32), 0.0)
        nodes = [leaf if is_leaf else router for is_leaf in skeleton.is_leaf]
        tree = Tree.build(skeleton.children, nodes, n_features=x.size, n_classes=k)
        packed = pack(tree, Outside.of(tree, None, 0.0), sparse=False)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            FrozenTree(packed, np.arange(k)).save(path)
            load_model(path).predict_one(x)
            opened = best_of(5, partial(load_model, path))
            first = best_of(5, lambda: load_model(path).predict_one(x))  # noqa: B023
            rows.append([path.stat().st_size / 1e6, 1e3 * opened, 1e3 * first])
    return rows


def main() -> None:
    """Run the sets that are there."""
    options = arguments(__doc__).parse_args()
    parts: list[str] = []
    for name, settings in SETTINGS.items():
        if not available(options.data, name):
            continue
        data = load(options.data, name)
        model = AdaptiveSoftmaxTreeClassifier(
            decisions="training", random_state=0, n_jobs=-1, **settings
        )
        model.fit(data.X_train, data.y_train)
        frozen = model.freeze()
        flops = model.mean_flops(data.X_test)
        error = 100 * float(np.mean(frozen.predict(data.X_test) != data.y_test))
        figures = [error, flops, frozen.nbytes, *single_and_batch(data, frozen, flops)]
        columns = ["error %", "FLOPs", "bytes", "single µs", "batch µs", "GB/s", "roofline %"]
        weights = [
            [r["weights"], 100 * r["error"], r["nbytes"]]
            for r in frozen.quantization_report(data.X_test, data.y_test)
        ]
        parts += [
            f"## {name}\n\n`{settings}`, one seed; batch of {N_BATCH:,} rows, one thread.",
            table(columns, [figures]),
            table(
                ["beam", "error %", "top-5 error %", "single µs", "batch µs"], beams(data, frozen)
            ),
            table(["leaf weights", "error %", "bytes"], weights),
        ]
    parts += [
        "## Layouts of a leaf\n\nµs of a row in a batch.",
        table(["", "density of weights", "block", "sparse rows"], layouts()),
        "## Opening a file\n\nMemory-mapped, in the page cache; `first` also predicts one row.",
        table(["MB", "open ms", "open and first ms"], opening()),
    ]
    write("latency", "Latency of the frozen predictor", *parts)


if __name__ == "__main__":
    main()

"""Time for an example against the number of classes.

Parts of bible_verse with ever more classes, the same rows a class. One pass; the time of learning
is that of the second half of it, and one prediction is that of the frozen model. The picture needs
the ``plot`` extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import load
from benchmarks._report import RESULTS, arguments, table, write
from benchmarks.online import recall_tree
from thinleaf.measuring.latency import Stopwatch, model_latencies

COLUMNS = ("learning", "one prediction", "in a batch")


def measure(X: Any, y: np.ndarray, X_test: Any) -> list[float]:
    """Return µs for an example: learning, one prediction, in a batch; and nodes."""
    clf = recall_tree()
    half = y.size // 2
    clf.partial_fit(X[:half], y[:half])
    with Stopwatch() as learning:
        clf.partial_fit(X[half:], y[half:])
    single, batch = model_latencies(clf.freeze(), X_test)
    learning_us = 1e6 * learning.seconds / (y.size - half)
    return [learning_us, single.median, batch.median, float(clf.n_nodes_)]


def draw(n_classes: list[int], rows: list[list[float]]) -> None:
    """Draw the times against the number of classes, which has a logarithmic axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    ax = figure.subplots()
    for column, name in enumerate(COLUMNS):
        ax.plot(n_classes, [row[column] for row in rows], marker="o", label=name)
    ax.set_xscale("log", base=2)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("classes")
    ax.set_ylabel("µs an example")
    ax.legend(frameon=False)
    figure.savefig(RESULTS / "online_growth.svg", metadata={"Date": None})


def main() -> None:
    """Measure with 2^i classes, and all."""
    parser = arguments(__doc__)
    parser.add_argument("--largest", type=int, help="most classes")
    options = parser.parse_args()
    data = load(options.data, "bible_verse")
    rng = np.random.default_rng(0)
    labels, ids = np.unique(data.y_train, return_inverse=True)
    largest = min(options.largest or labels.size, labels.size)
    rank = rng.permutation(labels.size)[ids]  # of its class
    order = rng.permutation(ids.size)
    test_rank = dict(zip(data.y_train.tolist(), rank.tolist(), strict=True))
    of_test = np.array([test_rank.get(label, labels.size) for label in data.y_test.tolist()])
    sizes = [*[1 << i for i in range(10, 20) if 1 << i < largest], largest]
    measure(data.X_train[order[:100]], ids[order[:100]], data.X_test[:100])  # compiles
    rows = []
    for size in sizes:
        own = order[rank[order] < size]
        rows.append(measure(data.X_train[own], ids[own], data.X_test[of_test < size]))
        print(size, rows[-1], flush=True)
    draw(sizes, rows)
    cells = [[size, own[-1], *own[:-1], own[0] / np.log2(size), own[1] / np.log2(size)]
             for size, own in zip(sizes, rows, strict=True)]  # fmt: skip
    headers = ["classes K", "nodes", *(f"{name} µs" for name in COLUMNS),
               "learning / log₂ K", "one prediction / log₂ K"]  # fmt: skip
    write(
        "online_growth",
        "Recall Tree: time for an example against the number of classes",
        "Parts of bible_verse, defaults (F = 4 log₂ K), one pass. ![](online_growth.svg)",
        table(headers, cells),
    )


if __name__ == "__main__":
    main()

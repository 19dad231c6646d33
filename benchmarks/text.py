"""Text sets: error, size and speed of softmax trees on tf-idf of word 1- and 2-grams."""

from __future__ import annotations

import resource

import numpy as np

from benchmarks._data import load
from benchmarks._report import arguments, best_of, stopwatch, table, write
from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import metrics

COMMON = {
    "absent": "zero_one",
    "router_l1": 0.001,
    "leaf_l1": 0.001,
    "tol": 1e-3,
    "overlap": None,
}
SETTINGS = {
    "icd10cm": {
        "depth": 4,
        "leaf_classes": 200,
        "router_ridge": 0.01,
        "leaf_ridge": 0.003,
        "max_sweeps": 5,
    },
    "bible_verse": {
        "depth": 8,
        "leaf_classes": 250,
        "router_ridge": 0.01,
        "leaf_ridge": 0.03,
        "max_sweeps": 2,
    },
}


def run(name: str, directory) -> list[str]:
    """Return the parts of the report of one set."""
    data = load(directory, name)
    warm_up = np.unique(data.y_train)[:8]
    few = np.flatnonzero(np.isin(data.y_train, warm_up))[:200]
    SoftmaxTreeClassifier(depth=1, max_sweeps=1).fit(data.X_train[few], data.y_train[few])
    with stopwatch() as watch:
        clf = SoftmaxTreeClassifier(
            **COMMON, **SETTINGS[name], random_state=0, n_jobs=-1, verbose=1
        ).fit(data.X_train, data.y_train)
    batch = 1e6 * best_of(3, lambda: clf.predict(data.X_test)) / len(data.y_test)
    labels, _ = clf.predict_topk(data.X_test, 5)
    size = metrics.summarize(clf.tree_)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = [
        ["rows, features, classes", f"{data.X_train.shape[0]:,}, {data.X_train.shape[1]:,}, "
         f"{data.n_classes:,}"],
        ["train error %", 100 * clf.history_[clf.best_sweep_ - 1]["train_error"]],
        ["test error %", 100 * (1 - clf.score(data.X_test, data.y_test))],
        ["top-5 test error %", 100 * metrics.top_k_error(data.y_test, labels)],
        ["FLOPs", clf.mean_flops(data.X_test)],
        ["depth, leaves, mean k", f"{size.depth}, {size.n_leaves}, {size.mean_leaf_classes:.1f}"],
        ["model MB", size.n_bytes / 1e6],
        ["nonzero weights", size.n_nonzero],
        ["µs a row (batch, 1 thread)", batch],
        ["fit s (2 threads)", watch.seconds],
        ["peak memory GiB", memory],
    ]  # fmt: skip
    return [f"## {name}", f"`{COMMON | SETTINGS[name]}`", table(["", ""], rows)]


def main() -> None:
    """Run the named set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(SETTINGS), required=True)
    options = parser.parse_args()
    write("text", f"Text: {options.set}", *run(options.set, options.data), suffix=options.set)


if __name__ == "__main__":
    main()

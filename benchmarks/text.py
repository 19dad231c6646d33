"""Text sets: error, size and speed of softmax trees on tf-idf of word 1- and 2-grams."""

from __future__ import annotations

from benchmarks._data import as_split, load
from benchmarks._report import arguments, table, write
from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import metrics
from thinleaf.measuring.measure import measure, peak_bytes
from thinleaf.measuring.systems import Ours

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
    settings = COMMON | SETTINGS[name]
    clf = SoftmaxTreeClassifier(**settings, random_state=0, n_jobs=-1, verbose=1)
    system, split = Ours(name, clf), as_split(data)
    system.rehearse(split)
    figures = measure(system, split)
    size = metrics.summarize(clf.tree_)
    memory = peak_bytes() / 2**30
    rows = [
        ["rows, features, classes", f"{data.X_train.shape[0]:,}, {data.X_train.shape[1]:,}, "
         f"{data.n_classes:,}"],
        ["train error %", 100 * clf.history_[clf.best_sweep_ - 1]["train_error"]],
        ["test error %", 100 * figures.error],
        ["top-5 test error %", 100 * figures.top_k_error],
        ["FLOPs", figures.flops],
        ["depth, leaves, mean k", f"{size.depth}, {size.n_leaves}, {size.mean_leaf_classes:.1f}"],
        ["model MB", size.n_bytes / 1e6],
        ["nonzero weights", size.n_nonzero],
        ["µs a row (batch, 1 thread)", figures.batch_us],
        ["fit s (2 threads)", figures.train_seconds],
        ["peak memory GiB", memory],
    ]  # fmt: skip
    return [f"## {name}", f"`{settings}`", table(["", ""], rows)]


def main() -> None:
    """Run the named set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(SETTINGS), required=True)
    options = parser.parse_args()
    write("text", f"Text: {options.set}", *run(options.set, options.data), suffix=options.set)


if __name__ == "__main__":
    main()

"""What hurts: noise features, other scales, repeated rows, wrong labels; each on three sets.

Nothing is set for the trees but the seed. Others beside them: LinearSVC with C = 1, or a
scikit-learn decision tree, or both. Data are changed by a seed of their own, the same for all;
features in the training and the test part alike, rows and labels in the training part alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks._data import Dataset, available, load
from benchmarks._records import Record, add_options, all_runs, known, missing, standard_error
from benchmarks._report import Table, arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

RESULT = "robustness"
SETS = ("letter", "banking77", "geo_admin1")
MOST_ROWS = {"geo_admin1": 30_000}
WRONG = 0.1
CLEAN = "clean"
OURS = "AST"
PEERS: dict[str, Callable[[int], Any]] = {
    "LinearSVC": lambda seed: LinearSVC(random_state=seed, max_iter=2000),
    "scikit-learn tree": lambda seed: DecisionTreeClassifier(random_state=seed),
}
BESIDE = {
    "letter": ["LinearSVC", "scikit-learn tree"],
    "banking77": ["LinearSVC"],
    "geo_admin1": ["scikit-learn tree"],
}
FIGURES = ["error %", "beam error %", "beam", "depth", "leaves", "fit s"]


def with_noise(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return rows with as many features again, which say nothing: those of other rows."""

    def noisy(X: Any) -> Any:
        order = rng.permutation(X.shape[0])
        if sp.issparse(X):
            return sp.csr_matrix(sp.hstack([X, X[order]]), dtype=np.float32)
        return np.hstack([X, rng.standard_normal(X.shape).astype(np.float32)])

    return _changed(data, X_train=noisy(data.X_train), X_test=noisy(data.X_test))


def rescaled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return features each in units of its own, of six orders of magnitude."""
    factors = (10.0 ** rng.uniform(-3, 3, data.X_train.shape[1])).astype(np.float32)

    def scaled(X: Any) -> Any:
        if sp.issparse(X):
            return sp.csr_matrix(X @ sp.diags(factors), dtype=np.float32)
        return X * factors

    return _changed(data, X_train=scaled(data.X_train), X_test=scaled(data.X_test))


def all_scaled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return all rows a thousand times as long."""
    return _changed(data, X_train=data.X_train * 1000.0, X_test=data.X_test * 1000.0)


def repeated(times: int) -> Callable[[Dataset, np.random.Generator], Dataset]:
    """Return what repeats every training row."""

    def change(data: Dataset, rng: np.random.Generator) -> Dataset:
        rows = np.tile(np.arange(data.y_train.size), times)
        return _changed(data, X_train=data.X_train[rows], y_train=data.y_train[rows])

    return change


def mislabelled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return a tenth of the training rows with the label of another row."""
    y = data.y_train.copy()
    wrong = rng.choice(y.size, int(WRONG * y.size), replace=False)
    classes = np.unique(y)
    at = np.searchsorted(classes, y[wrong])
    y[wrong] = classes[(at + rng.integers(1, classes.size, wrong.size)) % classes.size]
    return _changed(data, y_train=y)


def _changed(data: Dataset, **parts: Any) -> Dataset:
    whole = {name: getattr(data, name) for name in ("X_train", "y_train", "X_test", "y_test")}
    return Dataset(data.name, **(whole | parts))


CHANGES: dict[str, Callable[[Dataset, np.random.Generator], Dataset]] = {
    CLEAN: lambda data, rng: data,
    "as many noise features": with_noise,
    "features times 10^U(-3, 3)": rescaled,
    "all features times 1,000": all_scaled,
    "each row twice": repeated(2),
    "each row four times": repeated(4),
    "a tenth of the labels wrong": mislabelled,
}


def smaller(data: Dataset) -> Dataset:
    """Return a set with no more training rows than are affordable many times."""
    most = MOST_ROWS.get(data.name)
    if most is None or data.y_train.size <= most:
        return data
    rows = np.random.default_rng(0).permutation(data.y_train.size)[:most]
    return _changed(data, X_train=data.X_train[rows], y_train=data.y_train[rows])


def run(data: Dataset, keys: Record) -> Record:
    """Fit a model to changed data."""
    changed = CHANGES[keys["change"]](data, np.random.default_rng([7, keys["seed"]]))
    X_test, y_test = changed.X_test, changed.y_test
    ours = keys["system"] == OURS
    if ours:
        model = AdaptiveSoftmaxTreeClassifier(random_state=keys["seed"], n_jobs=1)
    else:
        model = PEERS[keys["system"]](keys["seed"])
    with Stopwatch() as watch, threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(changed.X_train, changed.y_train)
    found = keys | dict.fromkeys(FIGURES, "")
    found["error %"] = 100 * float(np.mean(model.predict(X_test) != y_test))
    found["fit s"] = watch.seconds
    if ours:
        beam = model.freeze(beam="auto").predict(X_test)
        found["beam error %"] = 100 * float(np.mean(beam != y_test))
        found["beam"] = int(model.beam_)
        found["depth"], found["leaves"] = int(model.tree_.depth), int(model.tree_.n_leaves)
    return found


def summary(records: list[Record]) -> Table:
    """Return mean errors, and how many points more than on clean data."""
    rows = []
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["set"], record["change"], record["system"]), []).append(record)
    for (name, change, system), group in groups.items():
        clean = groups.get((name, CLEAN, system), [])
        row: list[Any] = [name, change, system, len(group)]
        for column in ("error %", "beam error %"):
            values = [r[column] for r in group if r[column] != ""]
            before = [r[column] for r in clean if r[column] != ""]
            row += [float(np.mean(values)), standard_error(values)] if values else ["", ""]
            row.append(float(np.mean(values) - np.mean(before)) if values and before else "")
        leaves = [r["leaves"] for r in group if r["leaves"] != ""]
        row.append(float(np.mean(leaves)) if leaves else "")
        row.append(float(np.mean([r["fit s"] for r in group])))
        rows.append(row)
    headers = ["set", "change", "system", "seeds", "error %", "± seeds", "more than clean",
               "own beam: error %", "± seeds, beam", "more than clean, beam", "leaves",
               "fit s"]  # fmt: skip
    return table(headers, rows)


def report(records: list[Record]) -> None:
    """Write the result."""
    places = {"set": SETS, "change": list(CHANGES), "system": [OURS, *PEERS]}
    records.sort(key=lambda r: (*(places[key].index(r[key]) for key in places), r["seed"]))
    most = ", ".join(f"{name} {rows:,}" for name, rows in MOST_ROWS.items())
    write(
        RESULT,
        "Noise features, other scales, repeated rows, wrong labels",
        f"Training rows at the most: {most}. LinearSVC has C = 1; it and the tree are there to "
        "show how others degrade, not as tuned peers. One thread.",
        summary(records),
        "Each fit:",
        all_runs(records, ["set", "change", "system", "seed", *FIGURES]),
    )


def wanted(name: str, seeds: list[int]) -> Iterator[Record]:
    """Yield the runs of a set."""
    for seed in seeds:
        for change in CHANGES:
            for system in (OURS, *BESIDE[name]):
                yield {"set": name, "change": change, "system": system, "seed": seed}


def main() -> None:
    """Measure the sets that the data directory holds."""
    parser = arguments(__doc__)
    add_options(parser, 3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    options = parser.parse_args()
    records = known(RESULT)
    for name in options.sets:
        if not available(options.data, name):
            print(f"skipped {name}: it is not in the data directory", flush=True)
            continue
        data = smaller(load(options.data, name))
        for keys in missing(records, wanted(name, options.seeds), options.minutes):
            records.append(run(data, keys))
            report(records)


if __name__ == "__main__":
    main()

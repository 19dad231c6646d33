"""Batch trees go on learning: an update beside a full refit, and a stream of ten updates.

Of the training part, some classes are held back with all their rows, and 5 % of the other rows; for
each seed others. The old model is fitted to the rest. Then it learns what was held back, in one
update and in ten, and the same kind of model is fitted to all rows from the start. Texts go in as
texts: terms are found and rows made within the times. Forgotten is the error on test rows of old
classes, minus that of the old model; a refit has one, too, for new classes take rows from old ones.

With ``--validate``, the test part is a share of the training part: constants were chosen so.

Usage: ``python -m benchmarks.updates --data DATA --seeds 3 icd10cm clinc150 letter``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import DENSE_SETS, available, load, read_tsv
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxForestClassifier, TextClassifier

SHARE = 0.05
N_UPDATES = 10
HEADERS = [
    "set", "seed", "model", "system", "s", "times faster", "error %", "old classes %",
    "new classes %", "forgotten", "log loss",
]  # fmt: skip


def parts_of(directory: Path, name: str, seed: int, validate: bool) -> tuple[Any, ...]:
    """Return training rows or texts and labels, and those of the test part."""
    if name in DENSE_SETS:
        data = load(directory, name)
        found = (data.X_train, data.y_train, data.X_test, data.y_test)
    else:
        (y, texts), (y_test, t_test) = (
            read_tsv(directory / name / f"{part}.tsv.gz") for part in ("train", "test")
        )
        found = (np.array(texts, dtype=object), y, np.array(t_test, dtype=object), y_test)
    if not validate:
        return found
    X, y, _, _ = found
    held = np.random.default_rng([seed, 1]).random(len(y)) < 0.15
    return X[~held], y[~held], X[held], y[held]


def model_of(name: str, kind: str, seed: int, n_jobs: int) -> Any:
    """Return a model at its defaults, with the beam that it finds."""
    model: Any = AdaptiveSoftmaxTreeClassifier(beam="auto", random_state=seed, n_jobs=n_jobs)
    if kind == "forest":
        tree = AdaptiveSoftmaxTreeClassifier()
        model = SoftmaxForestClassifier(tree, n_estimators=4, random_state=seed, n_jobs=n_jobs)
    if name in DENSE_SETS:
        return model
    return TextClassifier(model, "words", rejection=False, random_state=seed, n_jobs=n_jobs)


def run(
    directory: Path, name: str, kind: str, seed: int, *, validate: bool, n_jobs: int
) -> list[list[Any]]:
    """Return the table's rows of one set and seed."""
    X, y, X_test, y_test = parts_of(directory, name, seed, validate)
    dense = name in DENSE_SETS
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    n_held = max(2, min(50, classes.size // 15))
    held_back = rng.choice(classes, n_held, replace=False)
    is_new = np.isin(y, held_back) | (rng.random(y.size) < SHARE)
    new_test = np.isin(y_test, held_back)

    def some(at: np.ndarray) -> Any:
        return X[at] if dense else X[at].tolist()

    rows: list[list[Any]] = []
    test: Any = X_test if dense else X_test.tolist()

    def measure(system: str, model: Any, seconds: float, slowest: float | None) -> float:
        wrong = model.predict(test) != y_test
        at = np.minimum(np.searchsorted(model.classes_, y_test), model.classes_.size - 1)
        p = model.predict_proba(test)[np.arange(y_test.size), at]
        p = np.where(model.classes_[at] == y_test, p, 0.0)
        old = 100 * float(wrong[~new_test].mean())
        rows.append([
            name, seed, kind, system, seconds, "" if slowest is None else slowest / seconds,
            100 * float(wrong.mean()), old, 100 * float(wrong[new_test].mean()),
            "" if not rows else old - rows[0][7], float(-np.log(np.maximum(p, 1e-6)).mean()),
        ])  # fmt: skip
        return seconds

    old = model_of(name, kind, seed, n_jobs)
    measure("old model", old, _seconds(lambda: old.fit(some(~is_new), y[~is_new])), None)
    full = model_of(name, kind, seed, n_jobs)
    refit = measure("full refit", full, _seconds(lambda: full.fit(X if dense else X.tolist(), y)),
                    None)  # fmt: skip
    copy.deepcopy(old).update(some(is_new), y[is_new])  # so that compiling is not counted
    once = copy.deepcopy(old)
    measure("one update", once, _seconds(lambda: once.update(some(is_new), y[is_new])), refit)
    stream, order = copy.deepcopy(old), rng.permutation(np.flatnonzero(is_new))

    def ten() -> None:
        for part in np.array_split(order, N_UPDATES):
            stream.update(some(part), y[part])

    measure("ten updates", stream, _seconds(ten), refit)
    return rows


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _means(rows: list[list[Any]]) -> list[list[Any]]:
    """Return means over seeds, and the standard error of the difference from the full refit."""
    out = []
    for name, kind in dict.fromkeys((row[0], row[2]) for row in rows):
        own = [row for row in rows if (row[0], row[2]) == (name, kind)]
        full = {row[1]: row[6] for row in own if row[3] == "full refit"}
        for system in dict.fromkeys(row[3] for row in own):
            some = [row for row in own if row[3] == system]
            gap = np.array([row[6] - full[row[1]] for row in some])
            error = gap.std(ddof=1) / np.sqrt(gap.size) if gap.size > 1 else float("nan")
            means = [_mean([row[i] for row in some]) for i in range(4, len(HEADERS))]
            out.append([name, kind, system, *means, f"{gap.mean():+.2f} ± {error:.2f}"])
    return out


def _mean(values: list[Any]) -> Any:
    return "" if "" in values else float(np.mean(values))


def main() -> None:
    """Print and write both tables."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--forest", action="store_true", help="forests of four trees as well")
    parser.add_argument("sets", nargs="*", default=["icd10cm", "clinc150", "letter"])
    given = parser.parse_args()
    names = [name for name in given.sets if available(given.data, name)]
    kinds = ["tree", "forest"] if given.forest else ["tree"]
    rows: list[list[Any]] = []
    for name in names:
        _compile(given.data, name)
        for kind in kinds:
            for seed in range(given.seeds):
                some = run(given.data, name, kind, seed, validate=given.validate, n_jobs=given.jobs)
                print(table(HEADERS, some), flush=True)
                rows += some
    means = [HEADERS[0], *HEADERS[2:], "beside the refit, points"]
    write(
        "updates", "Updates beside full refits", "Means over seeds.", table(means, _means(rows)),
        "Each seed.", table(HEADERS, rows),
    )  # fmt: skip


def _compile(directory: Path, name: str) -> None:
    """Let kernels be compiled before anything is timed."""
    X, y, _, _ = parts_of(directory, name, 0, False)
    some = np.flatnonzero(np.isin(y, np.unique(y)[:8]))
    few, most = some[::3], np.delete(some, np.s_[::3])
    if name not in DENSE_SETS:
        X = [str(text) for text in X]
    pick = (lambda at: X[at]) if name in DENSE_SETS else (lambda at: [X[i] for i in at])
    for depth in (0, 2):
        model = model_of(name, "tree", 0, 1)
        (model.model if name not in DENSE_SETS else model).set_params(initial_depth=depth)
        model.fit(pick(most), y[most]).update(pick(few), y[few])


if __name__ == "__main__":
    main()

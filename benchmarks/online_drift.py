"""A stream whose classes change: old ones first, then as many new ones.

A Recall Tree that has learned the old classes goes on with the new ones. Beside it are trees that
forget (``half_life``), a fresh tree that sees the new classes only, and one-against-all. The error
is that of predictions of new classes made before they were learned, of the last quarter of what
has come so far. Rows are Gaussian clouds around a centre for each class, which the script makes.
Runs that the result has are not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import write
from thinleaf import OnlineOneVsAllClassifier, RecallTreeClassifier

NAME = "online_drift"
N_CLASSES, N_FEATURES, SPREAD = 200, 50, 0.15
N_OLD = 40_000
CHECKS = (5_000, 10_000, 20_000)
MODELS: dict[str, tuple[Any, bool]] = {
    "Recall Tree, fresh": (RecallTreeClassifier(), False),
    "Recall Tree": (RecallTreeClassifier(), True),
    "Recall Tree, half_life=20000": (RecallTreeClassifier(half_life=20_000), True),
    "Recall Tree, half_life=5000": (RecallTreeClassifier(half_life=5_000), True),
    "Recall Tree, half_life=1000": (RecallTreeClassifier(half_life=1_000), True),
    "one-against-all": (OnlineOneVsAllClassifier(), True),
}
COLUMNS = ["model", "seed", "new examples", "error %"]


def stream(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels: the old classes, then the new ones."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((2 * N_CLASSES, N_FEATURES))
    old = rng.integers(0, N_CLASSES, N_OLD)
    y = np.concatenate([old, rng.integers(N_CLASSES, 2 * N_CLASSES, CHECKS[-1])])
    X = centres[y] + SPREAD * rng.standard_normal((y.size, N_FEATURES)) * N_FEATURES**0.5
    return X.astype(np.float32), y


def run(model: str, seed: int) -> Iterator[Record]:
    """Yield the error on new classes after some examples of them."""
    X, y = stream(seed)
    classifier, sees_old = MODELS[model]
    clf = type(classifier)(**classifier.get_params())
    if sees_old:
        clf.partial_fit(X[:N_OLD], y[:N_OLD])
    done = N_OLD
    for check in CHECKS:
        last = N_OLD + check - check // 4
        clf.partial_fit(X[done:last], y[done:last])
        end, wrong = N_OLD + check, 0
        for start in range(last, end, 50):
            rows = slice(start, min(start + 50, end))
            wrong += int(np.count_nonzero(clf.predict(X[rows]) != y[rows]))
            clf.partial_fit(X[rows], y[rows])
        done = end
        yield {
            "model": model, "seed": seed, "new examples": check,
            "error %": 100 * wrong / (check // 4),
        }  # fmt: skip


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, 3)
    options = parser.parse_args()
    records = known(NAME)
    wanted = ({"model": m, "seed": s} for s in options.seeds for m in MODELS)
    for keys in missing(records, wanted, options.minutes):
        for record in run(**keys):
            print(record, flush=True)
            records.append(record)
        write(
            NAME,
            "Old classes, then new ones",
            f"{N_OLD:,} examples of {N_CLASSES} classes, then {CHECKS[-1]:,} of {N_CLASSES} "
            f"others, of {N_FEATURES} features, at the parameters' defaults in `partial_fit`. The "
            "error is of predictions made at most 50 examples before they were learned, over the "
            "last quarter of the new examples so far.",
            means(records, ["model", "new examples"], ["error %"], ["error %"]),
            "All runs:",
            all_runs(records, COLUMNS),
        )


if __name__ == "__main__":
    main()

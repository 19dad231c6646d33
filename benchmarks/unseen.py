"""Data that nobody tuned for: nothing is set for the tree but the seed.

The sets are those of ``benchmarks._unseen_sets``: made, of what every machine with Python has, or
inside of small packages of PyPI, ``--packages`` prints which; without its package, a set is left
out. Beside the tree are LinearSVC, a softmax of all classes, nearest neighbours, a decision tree
and a random forest at scikit-learn's defaults, where they are no matter of minutes.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from benchmarks._records import merged
from benchmarks._report import table, write
from benchmarks._unseen_sets import PACKAGES, SETS
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

RESULT = "unseen"
MOST_TREE_FEATURES = 5_000
MOST_SOFTMAX_WORK = 4e6
"""Values that are not zero, times classes, up to which a softmax of all classes takes seconds."""

MOST_FOREST_WORK = 2e6
"""Rows times classes, the same of a random forest, which takes gigabytes above it."""


def others(X: Any, n_classes: int) -> dict[str, Any]:
    """Return what stands beside the tree; linear models of dense rows have them standardised."""
    sparse = sp.issparse(X)
    metric = "cosine" if sparse else "minkowski"

    def linear(model: Any) -> Any:
        return model if sparse else make_pipeline(StandardScaler(), model)

    found: dict[str, Any] = {"LinearSVC": linear(LinearSVC(random_state=0))}
    if (X.nnz if sparse else X.size) * n_classes <= MOST_SOFTMAX_WORK:
        found["softmax"] = linear(LogisticRegression())
    found["1 neighbour"] = KNeighborsClassifier(1, metric=metric)
    found["5 neighbours"] = KNeighborsClassifier(5, metric=metric)
    if X.shape[1] <= MOST_TREE_FEATURES:
        found["decision tree"] = DecisionTreeClassifier(random_state=0)
        if X.shape[0] * n_classes <= MOST_FOREST_WORK:
            found["random forest, 100 trees"] = RandomForestClassifier(random_state=0)
    return found


def run(name: str, *, alone: bool = False) -> list[list[Any]]:
    """Return a row of each model on one set."""
    X, X_test, y, y_test = SETS[name].make()
    n_classes = np.unique(y).size
    shape = [name, "seen" if SETS[name].seen else "", X.shape[0], X.shape[1], n_classes]
    rows = []

    def timed(model: Any) -> float:
        with Stopwatch() as watch:
            model.fit(X, y)
        return watch.seconds

    def wrong(model: Any) -> float:
        return 100 * float(np.mean(model.predict(X_test) != y_test))

    ours = AdaptiveSoftmaxTreeClassifier(random_state=0)
    seconds = timed(ours)
    rows.append([*shape, "AST, one path", wrong(ours), seconds])
    rows.append([*shape, "AST, its own beam", wrong(ours.freeze(beam="auto")), seconds])
    for system, model in {} if alone else others(X, n_classes).items():
        seconds = timed(model)
        rows.append([*shape, system, wrong(model), seconds])
    for row in rows:
        print(*row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--ours-only", action="store_true", help="no other models, no result file")
    parser.add_argument("--packages", action="store_true", help="say what sets come from, and end")
    parser.add_argument("--loaded", action="store_true", help="say that other jobs ran beside it")
    options = parser.parse_args()
    if options.packages:
        print(PACKAGES)
        return
    rows, missing = [], []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        AdaptiveSoftmaxTreeClassifier(random_state=0).fit(np.eye(40), np.arange(40) % 4)
        for name in options.sets:
            if SETS[name].is_there:
                rows += run(name, alone=options.ours_only)
            else:
                missing.append(name)
    if missing:
        print(f"left out, for want of their packages: {', '.join(missing)}")
    if options.ours_only:
        return
    rows = merged(RESULT, rows, list(SETS))  # sets that were not run stay as they are
    headers = ["set", "choices", "rows", "features", "classes", "system", "error %", "fit s"]
    note = (
        "One seed; a quarter of the rows is tested on. The sets are made, of what every machine "
        f"with Python has, or inside of packages of PyPI: {PACKAGES}. Where choices say seen, the "
        "set, or the same of another seed, was looked at while thinleaf was worked on; the others "
        "were not before all choices but two were made: that a flat leaf of sparse rows must be "
        "surely better came of one-hot, once all sets had been run; that one of more than 64 dense "
        "features must be surely beaten, and one of fewer need not be, of segment and marketing."
    )
    if options.loaded:
        note += " Other jobs ran beside it: seconds are too high, and not alike."
    write(RESULT, "Data that nobody tuned for", note, table(headers, rows))


if __name__ == "__main__":
    main()

"""Around the constants of trees that adapt themselves: one change at a time, on training parts.

A fifth of each training part is held out, beside the rows that a fit holds out itself; test parts
are never read. A change is of a constant of a module, or of a parameter. These are the choices that
held-out rows of a fit do not make.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._data import available, held_out, load
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

SETS = ("letter", "geo_admin1", "banking77", "clinc150", "uksoc_titles", "naics2017", "icd10cm")
HINGE = "thinleaf.softmaxtree.solvers.hinge"
TREE = "thinleaf.estimators.adaptive_tree"
EXPAND = "thinleaf.softmaxtree.growth.expand"
TRIAL = "thinleaf.softmaxtree.growth.trial"
ADAPT = "thinleaf.softmaxtree.growth.adapt"
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "softmax leaves": {"leaf_loss": "softmax"},
    "margins to 0.1": {f"{HINGE}:_ENOUGH": 0.1},
    "all weights kept": {f"{HINGE}:_LEAST_WEIGHT": 0.0},
    "routers' ridge / 2": {f"{TREE}:_HINGE_ROUTER": 0.2, f"{TREE}:_DENSE_ROUTER": 0.025},
    "routers' ridge · 2": {f"{TREE}:_HINGE_ROUTER": 0.8, f"{TREE}:_DENSE_ROUTER": 0.1},
    "overlap 0.05": {"overlap": 0.05},
    "overlap 0.01": {"overlap": 0.01},
    "overlap at once": {f"{EXPAND}:_OVERFITTED": 0.0},
    "errors alone choose leaves": {f"{TRIAL}:_LOSS_SHARE": 0.0},
    "dense ridge / 3": {f"{ADAPT}:DENSE_STRENGTH": 0.0017},
    "dense ridge · 3": {f"{ADAPT}:DENSE_STRENGTH": 0.015},
    "5 sweeps a replacement": {f"{TREE}:_LOCAL_SWEEPS": 5},
    "8 sweeps a round": {f"{TREE}:_DENSE_SWEEPS": 8},
}


def fitted(changes: dict[str, Any], X: Any, y: np.ndarray, seed: int) -> tuple[Any, float]:
    """Return a tree that is fitted with some constants changed, and seconds."""
    parameters = {name: value for name, value in changes.items() if ":" not in name}
    clf = AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=1, **parameters)
    patches = []
    for name, value in changes.items():
        if ":" in name:
            module, attribute = name.split(":")
            patches.append(patch.object(importlib.import_module(module), attribute, value))
    for each in patches:
        each.start()
    try:
        with Stopwatch() as watch, threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X, y)
    finally:
        for each in patches:
            each.stop()
    return clf, watch.seconds


def main() -> None:
    """Run every variant on every set that is there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        if not available(options.data, name):
            continue
        data = held_out(load(options.data, name), 0.2)
        for variant in options.variants:
            found = []
            for seed in options.seeds:
                clf, seconds = fitted(VARIANTS[variant], data.X_train, data.y_train, seed)
                beam = clf.freeze(beam="auto").predict(data.X_test)
                errors = [clf.predict(data.X_test) != data.y_test, beam != data.y_test]
                found.append([*(100 * e.mean() for e in errors), clf.tree_.n_leaves, seconds])
            rows.append([name, variant, *np.mean(found, axis=0).tolist()])
            print(*rows[-1], flush=True)
            write(
                "decisions",
                "Adaptive trees: one change at a time around what held-out rows do not decide",
                f"A fifth of each training part held out; means of {len(options.seeds)} seed(s), "
                "one thread.",
                table(["set", "variant", "error %", "with its beam %", "leaves", "fit s"], rows),
            )


if __name__ == "__main__":
    main()

"""Around the constants of trees that adapt themselves: one change at a time, on training parts.

A fifth of each training part is held out, beside the rows that a fit holds out itself; test parts
are never read. A change is of a constant of a module, or of a parameter. These are the choices that
held-out rows of a fit do not make. A set has the changes that can matter to it.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._data import available, held_out, load
from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import arguments, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

RESULT = "decisions"
DENSE_SETS = ("letter", "geo_admin1")
TEXT_SETS = ("banking77", "clinc150", "uksoc_titles", "naics2017", "icd10cm")
SETS = (*DENSE_SETS, *TEXT_SETS)
HINGE = "thinleaf.softmaxtree.solvers.hinge"
TREE = "thinleaf.estimators.adaptive_tree"
EXPAND = "thinleaf.softmaxtree.growth.expand"
TRIAL = "thinleaf.softmaxtree.growth.trial"
CANDIDATES = "thinleaf.softmaxtree.growth.candidates"
AS_IT_IS = "as it is"
FOR_BOTH: dict[str, dict[str, Any]] = {
    AS_IT_IS: {},
    "routers' ridge / 2": {f"{TREE}:_HINGE_ROUTER": 0.2, f"{TREE}:_DENSE_ROUTER": 0.025},
    "routers' ridge · 2": {f"{TREE}:_HINGE_ROUTER": 0.8, f"{TREE}:_DENSE_ROUTER": 0.1},
    "overlap 0.05": {"overlap": 0.05},
}
FOR_DENSE: dict[str, dict[str, Any]] = {
    "overlap 0.01": {"overlap": 0.01},
    "overlap at once": {f"{EXPAND}:_OVERFITTED": 0.0},
    "dense ridge / 3": {f"{CANDIDATES}:DENSE_STRENGTH": 0.0017},
    "dense ridge · 3": {f"{CANDIDATES}:DENSE_STRENGTH": 0.015},
    "5 sweeps a replacement": {f"{TREE}:_LOCAL_SWEEPS": 5},
    "8 sweeps a round": {f"{TREE}:_DENSE_SWEEPS": 8},
    "decision trees of many rows, too": {f"{CANDIDATES}:_LARGE_WORTH_FITTING": 2.0},
}
FOR_TEXT: dict[str, dict[str, Any]] = {
    "softmax leaves": {"leaf_loss": "softmax"},
    "margins to 0.1": {f"{HINGE}:_ENOUGH": 0.1},
    "all weights kept": {f"{HINGE}:_LEAST_WEIGHT": 0.0},
    "overlap 0.002": {"overlap": 0.002},
    "errors alone choose leaves": {f"{TRIAL}:_LOSS_SHARE": 0.0},
    "routers to the end": {f"{HINGE}:_ROUTER_PASSES": 10},
    "leaves to the end": {f"{HINGE}:_PASSES": 10, f"{HINGE}:_LEAST_GAIN": 0.0},
    "leaves while they gain 0.5 %": {f"{HINGE}:_LEAST_GAIN": 0.005},
    "softmaxes from 0.03": {f"{TRIAL}:FIRST_STRENGTH": {"softmax": 0.03, "hinge": 0.7}},
    "16 probes": {f"{EXPAND}:_SHARE_OF_PROBES": 1.0},
    "fewer weights": {f"{TRIAL}:_MOST_WEIGHTS": 300_000_000},
    "small weights kept": {"small_weights": "keep"},
}
VARIANTS = FOR_BOTH | FOR_DENSE | FOR_TEXT
FIGURES = ["error %", "with its beam %", "leaves", "fit s"]


def fitted(changes: dict[str, Any], X: Any, y: np.ndarray, seed: int) -> tuple[Any, float]:
    """Return a tree that is fitted with some constants changed, and seconds."""
    parameters = {name: value for name, value in changes.items() if ":" not in name}
    clf = AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=1, **parameters)
    with ExitStack() as changed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in changes.items():
            if ":" in name:
                module, attribute = name.split(":")
                changed.enter_context(
                    patch.object(importlib.import_module(module), attribute, value)
                )
        with Stopwatch() as watch, threadpool_limits(1):
            clf.fit(X, y)
    return clf, watch.seconds


def wanted(name: str, seeds: list[int]) -> Iterator[Record]:
    """Yield the fits of a set."""
    own = FOR_DENSE if name in DENSE_SETS else FOR_TEXT
    for seed in seeds:
        for variant in FOR_BOTH | own:
            yield {"set": name, "variant": variant, "seed": seed}


def report(records: list[Record]) -> None:
    """Write the result."""
    order = list(VARIANTS)
    records.sort(key=lambda r: (SETS.index(r["set"]), order.index(r["variant"]), r["seed"]))
    write(
        RESULT,
        "Adaptive trees: one change at a time around what held-out rows do not decide",
        "A fifth of each training part held out; one thread.",
        means(records, ["set", "variant"], FIGURES, ["error %", "with its beam %"]),
        "Each fit:",
        all_runs(records, ["set", "variant", "seed", *FIGURES]),
    )


def main() -> None:
    """Run every variant on every set that is there."""
    parser = arguments(__doc__)
    add_options(parser, 3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    options = parser.parse_args()
    records = known(RESULT)
    for name in options.sets:
        if not available(options.data, name):
            continue
        data = held_out(load(options.data, name), 0.2)
        for keys in missing(records, wanted(name, options.seeds), options.minutes):
            clf, seconds = fitted(
                VARIANTS[keys["variant"]], data.X_train, data.y_train, keys["seed"]
            )
            beam = clf.freeze(beam="auto").predict(data.X_test)
            errors = [clf.predict(data.X_test) != data.y_test, beam != data.y_test]
            found = [*(100 * float(e.mean()) for e in errors), clf.tree_.n_leaves, seconds]
            records.append(keys | dict(zip(FIGURES, found, strict=True)))
            report(records)


if __name__ == "__main__":
    main()

"""Adaptive trees beside complete ones of equal depth and of equal FLOPs: does growth pay?

An ST has what the AST has: the same rows held out, penalties in the same units and of the same
strength, overlap if held-out rows like it, sweeps ended by them, and last sweeps over all rows. It
starts from a complete tree, its routers from the same kind of splits. As to its sweeps, it has more
than the AST: they end after several without a lower held-out error. Its depth is the AST's mean
depth over test rows (rounded), less than that by 2, and the AST's largest depth, as far as a leaf
has some rows; its leaves hold as many classes as give it the AST's FLOPs, or one in the deepest.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._data import available, load
from benchmarks._records import Record, add_options, all_runs, known, means, missing, standard_error
from benchmarks._report import Table, arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf._dtypes import INDEX
from thinleaf.arrays.rows import CSR
from thinleaf.execution import SerialExecutor
from thinleaf.measuring.latency import Stopwatch
from thinleaf.model.cost import mean_flops
from thinleaf.model.routing import leaf_of_rows, losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.adapt import hold_out
from thinleaf.softmaxtree.growth.initial_tree import initial_tree, node_seed
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.growth.trial import LeafKind
from thinleaf.softmaxtree.tao import TrainingData, Validation, error, optimise
from thinleaf.softmaxtree.tao.units import feature_spread

RESULT = "structure"
SETS = ("letter", "geo_admin1", "omniglot", "fontglyph1000", "icd10cm", "udhr_lid")
AST = "AST"
SHAPES = {
    "ST, depth - 2": "mean depth of the AST's rows less 2",
    "ST, equal depth": "mean depth of the AST's rows",
    "ST, largest depth": "depth of the AST",
}
HELD_OUT = 0.15
MOST_SWEEPS, PATIENCE, LAST_SWEEPS = 40, 5, 4
OVERFITTED = 1.5
"""What the AST asks for before it tries overlap."""

ROWS_A_LEAF = 8
FIGURES = ["error %", "held-out error %", "depth", "mean depth", "leaves", "mean k", "FLOPs",
           "test rows", "sweeps", "fit s"]  # fmt: skip


def fit_complete(
    data: TrainingData, depth: int, leaf_classes: int, kind: LeafKind, seed: int
) -> tuple[Tree, float, int]:
    """Return a softmax tree of fixed structure, its held-out error and the number of sweeps.

    The kind of its leaves is the one that the adaptive tree has found.
    """
    clf = AdaptiveSoftmaxTreeClassifier()
    seeds = np.random.SeedSequence(seed)
    held = hold_out(data, HELD_OUT, node_seed(seeds, 1))
    fitted = replace(data, weight=data.weight - held).take(np.flatnonzero(held < data.weight))
    judge = replace(data, weight=held).take(np.flatnonzero(held))
    sparse = isinstance(data.X, CSR)
    spread = None if sparse else feature_spread(fitted.X)
    start = initial_tree(fitted, depth, clf._init(data), node_seed(seeds, 0), spread)
    limits = np.full(start.tree.n_nodes, leaf_classes, dtype=INDEX)
    settings = clf._settings_of(fitted, kind, limits)
    plain = settings if sparse else replace(settings, overlap=None)
    common = {"executor": SerialExecutor(), "max_sweeps": MOST_SWEEPS,
              "validation": Validation(judge, PATIENCE)}  # fmt: skip
    result = optimise(start.tree, fitted, plain, assignment=start.assignment, **common)
    n_sweeps, chosen = len(result.history), plain
    if not sparse and error(result.tree, judge) > OVERFITTED * error(result.tree, fitted):
        near = optimise(result.tree, fitted, settings, solved=result.solved, **common)
        n_sweeps += len(near.history)
        if near.best_sweep > 0:
            result, chosen = near, settings
    held_out_error = error(result.tree, judge)
    limits = np.maximum(np.diff(result.tree.class_ptr) * 9 // 8, 1).astype(INDEX)
    last = replace(clf._settings_of(data, kind, limits), overlap=chosen.overlap)
    tree = optimise(result.tree, data, last, SerialExecutor(), max_sweeps=LAST_SWEEPS).tree
    return prune(tree, route(tree, data.X).sizes > 0)[0], held_out_error, n_sweeps


def figures(
    tree: Tree, X: Any, y: np.ndarray, held_out_error: Any, n_sweeps: int, seconds: float
) -> Record:
    """Return the figures of a tree on test rows."""
    reach = route(tree, X)
    _, correct = losses(tree, X, y, reach)
    values = [
        100 * (1.0 - float(correct.mean())),
        100 * held_out_error,
        int(tree.depth),
        float(tree.node_depth[leaf_of_rows(tree, reach)].mean()),
        tree.n_leaves,
        float(tree.leaf_sizes.mean()),
        mean_flops(tree, X, reach),
        y.size,
        n_sweeps,
        seconds,
    ]
    return dict(zip(FIGURES, values, strict=True))


class Comparison:
    """A set, and the trees that are fitted to it."""

    def __init__(self, name: str, directory: Any) -> None:
        self.name, loaded = name, load(directory, name)
        self.X_train, self.y_train = loaded.X_train, loaded.y_train
        classes = np.unique(self.y_train)
        at = np.minimum(np.searchsorted(classes, loaded.y_test), classes.size - 1)
        # a class that is not known is in no leaf
        self.y_test = np.where(classes[at] == loaded.y_test, at, classes.size).astype(INDEX)
        reader = AdaptiveSoftmaxTreeClassifier()
        self.data, _ = reader._read(self.X_train, self.y_train, None)
        self.X_test = reader._rows(loaded.X_test)

    def run(self, system: str, seed: int, records: list[Record]) -> Record:
        """Fit a tree."""
        keys = {"set": self.name, "system": system, "seed": seed}
        if system == AST:
            clf = AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=1)
            with Stopwatch() as watch:
                clf.fit(self.X_train, self.y_train)
            judged = clf.history_[clf.best_round_]["validation_error"]
            n_sweeps = sum(len(entry["sweeps"]) for entry in clf.history_)
            found = figures(clf.tree_, self.X_test, self.y_test, judged, n_sweeps, watch.seconds)
            return keys | found | {"k": "", "leaf kind": f"{clf.leaf_loss_} {clf.leaf_strength_!r}"}
        own = next(
            r for r in records
            if r["set"] == self.name and r["system"] == AST and r["seed"] == seed
        )  # fmt: skip
        depth, k = self.shape(system, own)
        loss, strength = own["leaf kind"].split()
        kind = LeafKind(loss, float(strength))
        with Stopwatch() as watch:
            tree, judged, n_sweeps = fit_complete(self.data, depth, k, kind, seed)
        found = figures(tree, self.X_test, self.y_test, judged, n_sweeps, watch.seconds)
        return keys | found | {"k": k, "leaf kind": own["leaf kind"]}

    def shape(self, system: str, own: Record) -> tuple[int, int]:
        """Return depth and classes a leaf of an ST, from the figures of the AST."""
        wanted = {
            "ST, depth - 2": round(own["mean depth"]) - 2,
            "ST, equal depth": round(own["mean depth"]),
            "ST, largest depth": own["depth"],
        }[system]
        affordable = math.floor(math.log2(self.data.n_rows / ROWS_A_LEAF))
        depth = max(1, min(wanted, affordable))
        if isinstance(self.data.X, CSR):
            return depth, max(1, round(own["mean k"]))
        n_features = self.data.X.shape[1]
        return depth, max(1, round(own["FLOPs"] / n_features) - depth)


def verdicts(records: list[Record]) -> Table:
    """Return the AST beside each ST: differences with their standard errors over seeds and rows."""
    rows = []
    for name in dict.fromkeys(record["set"] for record in records):
        of = {s: {r["seed"]: r for r in records if r["set"] == name and r["system"] == s}
              for s in (AST, *SHAPES)}  # fmt: skip
        for system in SHAPES:
            seeds = sorted(set(of[AST]) & set(of[system]))
            if not seeds:
                continue
            ours, theirs = ([of[s][seed] for seed in seeds] for s in (AST, system))
            fewer = [b["error %"] - a["error %"] for a, b in zip(ours, theirs, strict=True)]
            p = [np.mean([r["error %"] for r in group]) / 100 for group in (ours, theirs)]
            by_rows = 100 * math.sqrt(sum(q * (1 - q) for q in p) / ours[0]["test rows"])
            by_seeds = standard_error(fewer)
            both = math.hypot(by_rows, by_seeds or 0.0)
            flops = [np.mean([r["FLOPs"] for r in group]) for group in (ours, theirs)]
            mean = float(np.mean(fewer))
            verdict = "fewer errors" if mean > 2 * both else "more" if mean < -2 * both else "equal"
            rows.append([name, system, len(seeds), 100 * p[0], 100 * p[1], mean, by_rows, by_seeds,
                         mean / both, float(flops[0] / flops[1]), verdict])  # fmt: skip
    headers = ["set", "beside", "seeds", "AST error %", "ST error %", "difference", "± rows",
               "± seeds", "in standard errors", "FLOPs, AST / ST", "the AST has"]  # fmt: skip
    return table(headers, rows)


def report(records: list[Record]) -> None:
    """Write the result."""
    order = [AST, *SHAPES]
    records.sort(key=lambda r: (SETS.index(r["set"]), r["seed"], order.index(r["system"])))
    write(
        RESULT,
        "Adaptive trees beside complete ones of equal depth and of equal FLOPs",
        "Nothing is set for the AST but the seed. The ST's depth: "
        + "; ".join(f"{name}: {text}" for name, text in SHAPES.items())
        + ". k: the most classes that its leaves may hold. Leaf kind: loss and ridge of leaves, as "
        "the AST has found them. Differences are of the same seeds; standard errors as if each "
        "tree had test rows of its own.",
        verdicts(records),
        "Means over seeds:",
        means(records, ["set", "system"], [*FIGURES, "k"], ["error %"]),
        "Each fit:",
        all_runs(records, ["set", "system", "seed", *FIGURES, "k", "leaf kind"]),
    )


def wanted(name: str, seeds: list[int]) -> Iterator[Record]:
    """Yield the runs of a set, an AST before the STs that follow it."""
    for seed in seeds:
        for system in (AST, *SHAPES):
            yield {"set": name, "system": system, "seed": seed}


def main() -> None:
    """Measure the sets that the data directory holds."""
    parser = arguments(__doc__)
    add_options(parser, 5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    options = parser.parse_args()
    records = known(RESULT)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.sets:
            if not available(options.data, name):
                print(f"skipped {name}: it is not in the data directory", flush=True)
                continue
            comparison = None
            for keys in missing(records, wanted(name, options.seeds), options.minutes):
                comparison = comparison or Comparison(name, options.data)
                records.append(comparison.run(keys["system"], keys["seed"], records))
                report(records)


if __name__ == "__main__":
    main()

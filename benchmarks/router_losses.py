"""What routers might learn from: losses in and out of fold, of one path, of a mixture, of the best.

A default adaptive tree is fitted to four fifths of a training part; the last fifth is asked, test
parts are never read. Then every router is fitted again, from the deepest level to the root, by
child losses of one of these kinds, and every leaf to the rows that now reach it:

- of one path: the loss of the leaf that a row reaches below the child, as in TAO;
- of a mixture: of all leaves below the child, each as likely as the routers say, as a beam has it;
- of the best leaf below the child for the row's label, as if routing below were perfect.

Out of fold, the leaves that give a row its losses are fitted without the third of the rows that it
belongs to. Guests train routers and leaves, as in training.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks._data import available, held_out, load
from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import arguments, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf._dtypes import INDEX
from thinleaf.execution import SerialExecutor
from thinleaf.model.routing import Reach, leaf_losses, route, router_scores
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.trial import LeafKind
from thinleaf.softmaxtree.growth.trust import with_sharpness
from thinleaf.softmaxtree.tao import Settings, TrainingData
from thinleaf.softmaxtree.tao.overlap import Overlap, find_overlap
from thinleaf.softmaxtree.tao.reduced import ChildLosses, as_router, care_set, router_problem
from thinleaf.softmaxtree.tao.sweep import _solve, train_leaf

RESULT = "router_losses"
SETS = ("naics2017", "icd10cm", "wordnet_hypernym", "letter")
N_FOLDS = 3
AS_IT_IS, LEAVES = "as fitted", "leaves alone again"
KINDS = ("one path", "mixture", "best leaf")
OUT = ", out of fold"
VARIANTS = (AS_IT_IS, LEAVES, *KINDS, *(kind + OUT for kind in KINDS))
FIGURES = ["error %", "with its beam %"]


class Refit:
    """A fitted tree, its rows, and what fits its nodes again."""

    def __init__(self, clf: Any, X: Any, y: np.ndarray, seed: int) -> None:
        self.clf = clf
        self.data: TrainingData = clf._read(X, y, None)[0]
        limits = np.maximum(np.diff(clf.tree_.class_ptr) * 9 // 8, 1).astype(INDEX)
        kind = LeafKind(clf.leaf_loss_, clf.leaf_strength_)
        self.settings: Settings = clf._settings_of(self.data, kind, limits)
        self.fold = np.random.default_rng(seed).integers(N_FOLDS, size=self.data.n_rows)

    def near(self, tree: Tree) -> tuple[Reach, Mapping[int, Overlap]]:
        """Return the rows of each node, and its guests."""
        reach, floor = route(tree, self.data.X), self.settings.overlap
        if floor is None:
            return reach, {}
        return reach, find_overlap(tree, self.data.X, reach, floor, SerialExecutor())

    def rows(self, node: int, reach: Reach, near: Mapping[int, Overlap]) -> tuple[Any, Any]:
        """Return the rows that train a node, and their weights."""
        rows = reach.of(node)
        if node not in near:
            return rows, self.data.weight[rows]
        return near[node].join(rows, self.data.weight)

    def with_leaves(self, tree: Tree, left_out: int | None = None) -> Tree:
        """Return a tree whose leaves are fitted again, without one fold of the rows."""
        (reach, near), leaves = self.near(tree), {}
        for node in np.flatnonzero(tree.is_leaf & (reach.sizes > 0)).tolist():
            rows, weight = self.rows(node, reach, near)
            kept = self.fold[rows] != left_out
            if kept.any():
                limit = int(self.settings.leaf_limits[node])
                leaves[node] = train_leaf(
                    self.data, rows[kept], weight[kept], limit, Leaf.constant(0), self.settings
                )[0]
        return tree.replace(leaves)

    def of_labels(self, tree: Tree, rows: np.ndarray) -> dict[int, np.ndarray]:
        """Return the probability that each leaf gives to the label of each row."""
        data = self.data
        return {
            node: np.exp(-leaf_losses(tree.leaf(node), data.X, data.y, rows.astype(INDEX))[0])
            for node in np.flatnonzero(tree.is_leaf).tolist()
        }

    def with_routers(self, tree: Tree, kind: str, *, out_of_fold: bool) -> Tree:
        """Return a tree whose routers are fitted again by losses of a kind."""
        data, everything = self.data, np.arange(self.data.n_rows)
        p = self.of_labels(tree, everything)
        if out_of_fold:
            for fold in range(N_FOLDS):
                mine = np.flatnonzero(self.fold == fold)
                for node, values in self.of_labels(self.with_leaves(tree, fold), mine).items():
                    p[node][mine] = values
        reach, near = self.near(tree)
        for level in reversed(tree.levels()):
            for node in level[~tree.is_leaf[level]].tolist():
                left, right = (p[int(child)] for child in tree.children[node])
                rows, weight = self.rows(node, reach, near)
                both = np.stack([left[rows], right[rows]], axis=1)
                with np.errstate(divide="ignore"):
                    losses = self.settings.objective.row_losses(-np.log(both), both > 0.5)
                care = care_set(ChildLosses(losses, both > 0.5), weight)
                if np.unique(care.pseudolabel).size == 2:
                    penalty = self.settings.objective.routers
                    problem, features = router_problem(data, rows, care, penalty)
                    solved = _solve(self.settings.solve_router, problem, None, self.settings)
                    tree = tree.replace({node: as_router(solved, features)})
                goes = expit(router_scores(tree.router(node), data.X, everything.astype(INDEX)))
                p[node] = {
                    "one path": np.where(goes >= 0.5, right, left),
                    "mixture": goes * right + (1.0 - goes) * left,
                    "best leaf": np.maximum(left, right),
                }[kind]
        return tree

    def variant(self, name: str) -> Any:
        """Return the classifier with a tree of a variant."""
        clf, tree = copy.copy(self.clf), self.clf.tree_
        if name == AS_IT_IS:
            return clf
        if name != LEAVES:
            tree = self.with_routers(tree, name.removesuffix(OUT), out_of_fold=name.endswith(OUT))
        clf.tree_ = with_sharpness(self.with_leaves(tree), clf.sharpness_)
        return clf


def wanted(name: str, seeds: list[int]) -> Iterator[Record]:
    """Yield the fits of a set."""
    for seed in seeds:
        for variant in VARIANTS:
            yield {"set": name, "variant": variant, "seed": seed}


def report(records: list[Record]) -> None:
    """Write the result."""
    records.sort(key=lambda r: (SETS.index(r["set"]), VARIANTS.index(r["variant"]), r["seed"]))
    write(
        RESULT,
        "What routers might learn from",
        "A fifth of each training part held out.",
        means(records, ["set", "variant"], FIGURES, FIGURES),
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
        data, refits = held_out(load(options.data, name), 0.2), {}
        for keys in missing(records, wanted(name, options.seeds), options.minutes):
            seed = keys["seed"]
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if seed not in refits:
                    clf = AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=1)
                    clf.fit(data.X_train, data.y_train)
                    refits = {seed: Refit(clf, data.X_train, data.y_train, seed)}
                clf = refits[seed].variant(keys["variant"])
            beam = clf.freeze(beam="auto").predict(data.X_test)
            wrong = [clf.predict(data.X_test) != data.y_test, beam != data.y_test]
            found = [100 * float(w.mean()) for w in wrong]
            records.append(keys | dict(zip(FIGURES, found, strict=True)))
            report(records)


if __name__ == "__main__":
    main()

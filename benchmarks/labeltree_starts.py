"""Learned label trees beside fixed ones and from each start, with names visible and hidden.

Fixed trees go by the order of names ("ordered"), by chance ("balanced"), by similar rows
("clustering") or by frequency ("huffman"). A learned tree starts from one of them; "auto" is the
default: the order, if it says something on held-out rows, else clustering. Hidden names are random
numbers, others for every seed. The rate of each kind and arity is chosen on held-out rows, with the
first seed. Runs that a result has are not run again, so the script can be stopped at any time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import arguments, write
from benchmarks.labeltree import EPOCHS, RATES, SETS, Part, parts, split
from thinleaf import LabelTreeClassifier
from thinleaf.measuring.latency import Stopwatch

FIXED = ("ordered", "balanced", "clustering", "huffman")
KINDS = ("learned", *(f"learned from {start}" for start in FIXED), *FIXED)
KEYS = ["names", "M", "tree"]
COLUMNS = [*KEYS, "seed", "rate", "started from", "P@1 %", "held-out P@1 %", "mean depth", "fit s"]


def named(part: Part, names: np.ndarray, seed: int | None) -> np.ndarray:
    """Return the labels of a part as numbers: in the order of names, or in a random one."""
    ids = np.searchsorted(names, part.y)
    if seed is None:
        return ids
    return np.random.default_rng([seed, 17]).permutation(names.size)[ids]


class Task:
    """A set with its names visible or hidden."""

    def __init__(self, train: Part, test: Part, options: argparse.Namespace) -> None:
        self.train, self.test, self.options = train, test, options
        self.names = np.unique(train.y)
        self.fit_part, self.held = split(train, options.tune_rows)
        self._rates: dict[Any, tuple[float, float]] = {}

    def fitted(
        self, part: Part, keys: Record, rate: float, seed: int
    ) -> tuple[LabelTreeClassifier, int | None]:
        """Return a classifier, and what hides the names it was given."""
        kind, _, start = keys["tree"].partition(" from ")
        hidden = seed if keys["names"] == "hidden" else None
        clf = LabelTreeClassifier(
            dim=self.options.dim, arity=keys["M"], tree=kind, start=start or "auto", ngrams=2,
            epochs=self.options.epochs, learning_rate=rate, random_state=seed,
        )  # fmt: skip
        return clf.fit(part.texts, named(part, self.names, hidden)), hidden

    def precision(self, clf: LabelTreeClassifier, part: Part, hidden: int | None) -> float:
        """Return P@1 in percent; labels that the model does not know are errors."""
        inside = np.isin(part.y, self.names)
        some = part.take(np.flatnonzero(inside))
        right = clf.predict(some.texts) == named(some, self.names, hidden)
        return 100 * float(right.sum()) / part.y.size

    def rate(self, keys: Record) -> tuple[float, float]:
        """Return the rate with the fewest errors on held-out rows, and P@1 there."""
        key = tuple(keys[name] for name in KEYS)
        if key not in self._rates:
            found = []
            for rate in self.options.rates:
                clf, hidden = self.fitted(self.fit_part, keys, rate, self.options.seeds[0])
                found.append((self.precision(clf, self.held, hidden), rate))
            best, rate = max(found)
            self._rates[key] = rate, best
        return self._rates[key]

    def run(self, keys: Record) -> Record:
        """Return the record of one run."""
        rate, held = self.rate(keys)
        with Stopwatch() as watch:
            clf, hidden = self.fitted(self.train, keys, rate, keys["seed"])
        return keys | {
            "rate": rate, "started from": clf.start_, "held-out P@1 %": held,
            "P@1 %": self.precision(clf, self.test, hidden),
            "mean depth": clf.model_.tree.mean_depth(clf.class_count_), "fit s": watch.seconds,
        }  # fmt: skip


def wanted(options: argparse.Namespace) -> Iterator[Record]:
    """Yield all runs, a seed after the other."""
    for seed in options.seeds:
        for names in options.names:
            for arity in options.arities:
                for tree in options.kinds:
                    yield {"names": names, "M": arity, "tree": tree, "seed": seed}


def verdicts(records: list[Record]) -> str:
    """Return, for names and arity, whether the learned tree is at least as good as the best."""
    lines = []
    for names, arity in dict.fromkeys((r["names"], r["M"]) for r in records):
        mean: dict[str, float] = {}
        for tree in ("learned", *FIXED):
            own = [r["P@1 %"] for r in records
                   if (r["names"], r["M"], r["tree"]) == (names, arity, tree)]  # fmt: skip
            if own:
                mean[tree] = float(np.mean(own))
        if "learned" not in mean or len(mean) < 2:
            continue
        learned = mean.pop("learned")
        best = max(mean, key=lambda tree: mean[tree])
        word = "at least as good as" if learned >= mean[best] else "worse than"
        lines.append(
            f"- names {names}, M = {arity}: learned ({learned:.2f}) is {word} the best fixed tree, "
            f"{best} ({mean[best]:.2f})"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write the report after each run."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--rows", type=int, help="about how many training rows, of fewer classes")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--dim", type=int, default=50)
    parser.add_argument("--arities", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--names", nargs="+", default=["hidden", "visible"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rates", type=float, nargs="+")
    parser.add_argument("--tune-rows", type=int)
    add_options(parser, 3)
    options = parser.parse_args()
    options.rates = options.rates or RATES[options.set]
    options.epochs = options.epochs or EPOCHS[options.set]
    suffix = options.set if options.rows is None else f"{options.set}_{options.rows}"
    records = known(f"labeltree_starts_{suffix}")
    train, test = parts(options.data, options.set, options.rows)
    task = Task(train, test, options)
    head = (
        f"{train.y.size:,} train rows, {test.y.size:,} test rows, {task.names.size:,} classes; "
        f"d = {options.dim}, {options.epochs} epochs, words and bigrams, one thread; rates of "
        f"{', '.join(f'{rate:g}' for rate in options.rates)} by held-out rows."
    )
    for keys in missing(records, wanted(options), options.minutes):
        records.append(task.run(keys))
        columns = ["rate", "P@1 %", "mean depth", "fit s"]
        write(
            "labeltree_starts", f"Starts of label trees: {options.set}", head, verdicts(records),
            means(records, KEYS, columns, ["P@1 %"]), "## All runs", all_runs(records, COLUMNS),
            suffix=suffix,
        )  # fmt: skip


if __name__ == "__main__":
    main()

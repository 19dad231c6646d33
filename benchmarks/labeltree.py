"""Label trees beside fastText: P@1 of learned and Huffman trees, words a second, µs a prediction.

fastText gets the same words: lower case, and separated by spaces. The rate is chosen for each
system, kind of tree and arity at the smallest dimension, on held-out rows, after training on a part
of the rows for fewer epochs (``--tune-rows``, ``--tune-epochs``); larger dimensions use the same.
Then all rows are trained on. Trees may go by the order of the labels, which fastText never does:
"names hidden" are the same trees with labels that have been numbered at random. Run it for one set
at a time; the report is written after each row. ``--rows``, ``--arities`` and ``--dims`` make it
smaller.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import read_tsv
from benchmarks._report import arguments, table, write
from thinleaf import LabelTreeClassifier
from thinleaf.measuring.latency import Stopwatch, single_latency

SETS = ("icd10cm", "debian_paths", "bible_verse")
EPOCHS = {"icd10cm": 25, "debian_paths": 8, "bible_verse": 8}
RATES = {"icd10cm": (1.0, 2.0, 4.0), "debian_paths": (1.0, 4.0), "bible_verse": (1.0, 4.0)}
FASTTEXT_RATES = {
    "icd10cm": (0.5, 1.0), "debian_paths": (0.5, 1.0), "bible_verse": (0.5, 1.0),
}  # fmt: skip
TUNE_ROWS = {"icd10cm": None, "debian_paths": 60_000, "bible_verse": 60_000}
TUNE_EPOCHS = {"icd10cm": 25, "debian_paths": 8, "bible_verse": 8}
COMMON: dict[str, Any] = {"ngrams": 2, "random_state": 0}
N_SINGLE = 2000


class Part:
    """Texts with their labels, and the number of their words."""

    def __init__(self, texts: list[str], y: np.ndarray) -> None:
        self.texts, self.y = texts, y
        self.lines = [" ".join(re.findall(r"\w+", text.lower())) + "\n" for text in texts]
        self.n_words = sum(len(line.split()) for line in self.lines)

    def take(self, rows: np.ndarray) -> Part:
        """Return some of the texts."""
        return Part([self.texts[i] for i in rows], self.y[rows])


def parts(directory: Path, name: str, n_rows: int | None) -> tuple[Part, Part]:
    """Return the training and the test part; of fewer rows, both with the same classes."""
    y_train, train = read_tsv(directory / name / "train.tsv.gz")
    y_test, test = read_tsv(directory / name / "test.tsv.gz")
    train_part, test_part = Part(train, y_train), Part(test, y_test)
    if n_rows is None or n_rows >= len(train):
        return train_part, test_part
    classes = np.unique(y_train)
    rng = np.random.default_rng(0)
    kept = rng.choice(classes, max(2, classes.size * n_rows // len(train)), replace=False)
    return (
        train_part.take(np.flatnonzero(np.isin(y_train, kept))),
        test_part.take(np.flatnonzero(np.isin(y_test, kept))),
    )


def split(part: Part, n_rows: int | None) -> tuple[Part, Part]:
    """Return rows to train on, and a tenth as many to choose rates on.

    Fewer rows than all are those of fewer classes, so that a class has as many rows as ever.
    """
    rng = np.random.default_rng(1)
    if n_rows is not None and n_rows < part.y.size:
        classes = rng.permutation(np.unique(part.y))
        kept = classes[: max(2, classes.size * n_rows // part.y.size)]
        part = part.take(np.flatnonzero(np.isin(part.y, kept)))
    order = rng.permutation(part.y.size)
    n_held = part.y.size // 10
    return part.take(order[n_held:]), part.take(order[:n_held])


# -- systems ---------------------------------------------------------------------------------------


class Tree:
    """Ours."""

    EPOCHS = "epochs"

    def __init__(self, hide_names: bool = False, **options: Any) -> None:
        self.hide_names = hide_names
        self.options = options

    def fit(self, part: Part, rate: float, **more: Any) -> Tree:
        self.clf = LabelTreeClassifier(**(COMMON | self.options | more), learning_rate=rate)
        y = part.y
        self.name_of = None
        if self.hide_names:
            names, ids = np.unique(y, return_inverse=True)
            order = np.random.default_rng(0).permutation(names.size)
            self.name_of, y = names[order], np.argsort(order)[ids]
        self.clf.fit(part.texts, y)
        return self

    def accuracy(self, part: Part) -> float:
        found = self.clf.predict(part.texts)
        return float(np.mean((found if self.name_of is None else self.name_of[found]) == part.y))

    def single(self, part: Part) -> float:
        texts = [(text,) for text in part.texts[:N_SINGLE]]
        return single_latency(self.clf.predict_one, texts).median

    def depth(self) -> float:
        return self.clf.model_.tree.mean_depth(self.clf.class_count_)


class FastText:
    """``train_supervised`` of the package of that name."""

    EPOCHS = "epoch"

    def __init__(self, **options: Any) -> None:
        self.options = {"thread": 1, "wordNgrams": 2, "minCount": 1, "verbose": 0} | options

    def fit(self, part: Part, rate: float, **more: Any) -> FastText:
        import fasttext

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            names, ids = np.unique(part.y, return_inverse=True)
            self.name_of = names
            rows = zip(ids, part.lines, strict=True)
            path.write_text("".join(f"__label__{i} {line}" for i, line in rows), encoding="utf-8")
            with Stopwatch() as watch:
                self.model = fasttext.train_supervised(str(path), lr=rate, **(self.options | more))
        self.seconds = watch.seconds
        return self

    def _predict(self, line: str) -> Any:
        found = self.model.f.predict(line, 1, 0.0, "strict")
        return self.name_of[int(found[0][1][9:])] if found else None

    def accuracy(self, part: Part) -> float:
        right = [self._predict(line) == y for line, y in zip(part.lines, part.y, strict=True)]
        return float(np.mean(right))

    def single(self, part: Part) -> float:
        calls = [(line, 1, 0.0, "strict") for line in part.lines[:N_SINGLE]]
        return single_latency(self.model.f.predict, calls).median


class Tuning:
    """Chooses the rate of each system once, at the first dimension that asks for it."""

    def __init__(self, train: Part, options: argparse.Namespace) -> None:
        self.part, self.held = split(train, options.tune_rows)
        self.epochs = options.tune_epochs
        self._rates: dict[Any, float] = {}

    def __call__(self, key: Any, system: Any, rates: tuple[float, ...]) -> float:
        """Return the rate with the fewest errors on held-out rows."""
        if key not in self._rates:
            scores = dict.fromkeys(rates, 0.0)
            if len(rates) > 1:
                short = {system.EPOCHS: self.epochs}
                for rate in rates:
                    scores[rate] = system.fit(self.part, rate, **short).accuracy(self.held)
                print(f"  {key}: {scores}", flush=True)
            self._rates[key] = max(scores, key=lambda rate: scores[rate])
        return self._rates[key]


# -- tables ----------------------------------------------------------------------------------------

HEADERS = ["d", "tree", "M", "rate", "P@1 %", "mean depth", "fit s", "µs a text (single)"]
SPEED_HEADERS = ["tree", "M", "threads", "words a s", "µs a text (single)"]


def precision(
    train: Part, test: Part, options: argparse.Namespace, epochs: int
) -> Iterator[list[Any]]:
    """Yield the rows of the table of P@1: the paper's table 1."""
    tuning = Tuning(train, options)
    for dim in options.dims:
        if find_spec("fasttext"):
            for loss in ["hs", "softmax"] if options.softmax else ["hs"]:
                peer = FastText(loss=loss, dim=dim, epoch=epochs)
                rate = tuning(f"fastText {loss}", peer, options.fasttext_rates)
                accuracy = 100 * peer.fit(train, rate).accuracy(test)
                arity = 2 if loss == "hs" else "–"
                yield [dim, f"fastText {loss}", arity, rate, accuracy, "–", peer.seconds,
                       peer.single(test)]  # fmt: skip
        for arity, kind, hidden in product(options.arities, ("huffman", "learned"), (False, True)):
            system = Tree(hidden, tree=kind, arity=arity, dim=dim, epochs=epochs)
            rate = tuning((kind, arity, hidden), system, options.rates)
            with Stopwatch() as watch:
                system.fit(train, rate)
            yield [dim, f"{kind}, names hidden" if hidden else kind, arity, rate,
                   100 * system.accuracy(test), system.depth(), watch.seconds,
                   system.single(test)]  # fmt: skip


def speed(train: Part, test: Part, options: argparse.Namespace) -> Iterator[list[Any]]:
    """Yield words a second of training, texts read and terms counted included; µs afterwards."""
    dim, epochs = options.dims[0], options.speed_epochs
    n_words = train.n_words * epochs
    some = train.take(np.arange(min(2000, train.y.size)))
    for arity in (2, 5):
        Tree(tree="learned", arity=arity, dim=dim, epochs=2).fit(some, 0.5)  # compiles
    for n_threads in (1, 2):
        if find_spec("fasttext"):
            system = FastText(loss="hs", dim=dim, epoch=epochs, thread=n_threads)
            rate = n_words / system.fit(train, 0.5).seconds
            yield ["fastText hs", 2, n_threads, rate, system.single(test)]
        for kind, arity in (("huffman", 2), ("learned", 2), ("learned", 5), ("learned", 20)):
            tree = Tree(tree=kind, arity=arity, dim=dim, epochs=epochs)
            with Stopwatch() as watch:
                tree.fit(train, 0.5, n_jobs=n_threads)
            yield [kind, arity, n_threads, n_words / watch.seconds, tree.single(test)]


def main() -> None:
    """Run the parts that are asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--rows", type=int, help="about how many training rows, of fewer classes")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--speed-epochs", type=int, default=5)
    parser.add_argument("--arities", type=int, nargs="+", default=[2, 5, 20])
    parser.add_argument("--dims", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rates", type=float, nargs="+")
    parser.add_argument("--fasttext-rates", type=float, nargs="+")
    parser.add_argument("--tune-rows", type=int, help="about how many rows to choose rates on")
    parser.add_argument("--tune-epochs", type=int)
    parser.add_argument("--softmax", action="store_true", help="also fastText's flat softmax")
    parser.add_argument("--tables", nargs="+", default=["precision", "speed"])
    options = parser.parse_args()
    name = options.set
    options.rates = tuple(options.rates or RATES[name])
    options.fasttext_rates = tuple(options.fasttext_rates or FASTTEXT_RATES[name])
    options.tune_rows = options.tune_rows or TUNE_ROWS[name]
    options.tune_epochs = options.tune_epochs or TUNE_EPOCHS[name]
    train, test = parts(options.data, name, options.rows)
    epochs = options.epochs or EPOCHS[name]
    tuned_on = "all rows but these" if options.tune_rows is None else f"{options.tune_rows:,} rows"
    only_speed = "_speed" if options.tables == ["speed"] else ""
    report = Report(
        f"{name}{only_speed}" if options.rows is None else f"{name}_{options.rows}{only_speed}",
        f"Label trees: {name}",
        f"{train.y.size:,} train rows with {train.n_words:,} words, {test.y.size:,} test rows, "
        f"{np.unique(train.y).size:,} classes; {epochs} epochs, words and bigrams, one thread. "
        f"Rates are chosen at d = {options.dims[0]} on held-out rows, for both systems alike, "
        f"after {options.tune_epochs} epochs on {tuned_on}: ours of {_list(options.rates)}, "
        f"fastText's of {_list(options.fasttext_rates)}; every d uses the same.",
    )
    if "precision" in options.tables:
        report.table("## P@1", HEADERS, precision(train, test, options, epochs))
    if "speed" in options.tables:
        title = f"## Training\n\nd = {options.dims[0]}, {options.speed_epochs} epochs."
        report.table(title, SPEED_HEADERS, speed(train, test, options))


class Report:
    """Written after each row, so that a run that is stopped keeps its rows."""

    def __init__(self, suffix: str, title: str, head: str) -> None:
        self._suffix, self._title = suffix, title
        self._parts = [head]

    def table(self, title: str, headers: list[str], rows: Iterable[list[Any]]) -> None:
        """Add a table, row by row."""
        done: list[list[Any]] = []
        for row in rows:
            done.append(row)
            parts = [*self._parts, title, table(headers, done)]
            write("labeltree", self._title, *parts, suffix=self._suffix)
        self._parts += [title, table(headers, done)]


def _list(rates: tuple[float, ...]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates)


if __name__ == "__main__":
    main()

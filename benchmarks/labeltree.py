"""Label trees beside fastText: P@1 of learned and Huffman trees, words a second, µs a prediction.

fastText gets the same words: lower case, and separated by spaces. Rates are chosen on a tenth of
the training rows, for each system and kind of tree; then all rows are trained on. Run it for one
set at a time; ``--rows``, ``--arities`` and ``--dims`` make it smaller.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import _read_tsv
from benchmarks._report import arguments, best_of, stopwatch, table, write
from thinleaf import LabelTreeClassifier
from thinleaf.labeltree.words import normalized

SETS = ("icd10cm", "debian_paths", "bible_verse")
EPOCHS = {"icd10cm": 25, "debian_paths": 10, "bible_verse": 10}
RATES = (0.5, 1.0, 4.0, 8.0)
FASTTEXT_RATES = (0.25, 0.5, 1.0, 2.0)
COMMON: dict[str, Any] = {"ngrams": 2, "random_state": 0}
N_SINGLE = 2000


class Part:
    """Texts with their labels, and the number of their words."""

    def __init__(self, texts: list[str], y: np.ndarray) -> None:
        self.texts, self.y = texts, y
        self.lines = [normalized(text).decode() for text in texts]
        self.n_words = sum(len(line.split()) for line in self.lines)

    def take(self, rows: np.ndarray) -> Part:
        """Return some of the texts."""
        return Part([self.texts[i] for i in rows], self.y[rows])


def parts(directory: Path, name: str, n_rows: int | None) -> tuple[Part, Part]:
    """Return the training and the test part; of fewer rows, both with the same classes."""
    y_train, train = _read_tsv(directory / name / "train.tsv.gz")
    y_test, test = _read_tsv(directory / name / "test.tsv.gz")
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


def split(part: Part) -> tuple[Part, Part]:
    """Return nine tenths of the rows, and one tenth to choose rates on."""
    order = np.random.default_rng(1).permutation(part.y.size)
    n_held = part.y.size // 10
    return part.take(order[n_held:]), part.take(order[:n_held])


# -- systems ---------------------------------------------------------------------------------------


class Tree:
    """Ours."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def fit(self, part: Part, rate: float, **more: Any) -> Tree:
        self.clf = LabelTreeClassifier(**COMMON, **self.options, learning_rate=rate, **more)
        self.clf.fit(part.texts, part.y)
        return self

    def accuracy(self, part: Part) -> float:
        return float(np.mean(self.clf.predict(part.texts) == part.y))

    def single(self, part: Part) -> float:
        texts, predict = part.texts[:N_SINGLE], self.clf.predict_one
        return 1e6 * best_of(3, lambda: [predict(text) for text in texts]) / len(texts)

    def depth(self) -> float:
        return self.clf.model_.tree.mean_depth(self.clf.class_count_)


class FastText:
    """``train_supervised`` of the package of that name."""

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
            with stopwatch() as watch:
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
        lines, predict = part.lines[:N_SINGLE], self.model.f.predict
        return 1e6 * best_of(
            3, lambda: [predict(line, 1, 0.0, "strict") for line in lines]
        ) / len(lines)  # fmt: skip


def tuned(system: Any, rates: tuple[float, ...], part: Part, held: Part) -> float:
    """Return the rate with the fewest errors on held-out rows."""
    if len(rates) == 1:
        return rates[0]
    scores = {rate: system.fit(part, rate).accuracy(held) for rate in rates}
    print(f"  {system.options}: {scores}", flush=True)
    return max(scores, key=lambda rate: scores[rate])


# -- tables ----------------------------------------------------------------------------------------


def precision(train: Part, test: Part, options: argparse.Namespace, epochs: int) -> str:
    """Return the table of P@1: the paper's table 1."""
    part, held = split(train)
    rows = []
    for dim in options.dims:
        if find_spec("fasttext"):
            for loss in ["hs", "softmax"] if options.softmax else ["hs"]:
                rows.append(_fasttext_row(loss, dim, epochs, options, part, held, train, test))
                print(rows[-1], flush=True)
        for arity in options.arities:
            for kind in ("huffman", "learned"):
                system = Tree(tree=kind, arity=arity, dim=dim, epochs=epochs)
                rate = tuned(system, options.rates, part, held)
                with stopwatch() as watch:
                    system.fit(train, rate)
                rows.append(
                    [dim, kind, arity, rate, 100 * system.accuracy(test), system.depth(),
                     watch.seconds, system.single(test)]
                )  # fmt: skip
                print(rows[-1], flush=True)
    headers = ["d", "tree", "M", "rate", "P@1 %", "mean depth", "fit s", "µs a text (single)"]
    return table(headers, rows)


def _fasttext_row(
    loss: str, dim: int, epochs: int, options: argparse.Namespace, part: Part, held: Part,
    train: Part, test: Part,
) -> list[Any]:  # fmt: skip
    system = FastText(loss=loss, dim=dim, epoch=epochs)
    rate = tuned(system, options.fasttext_rates, part, held)
    system.fit(train, rate)
    accuracy = 100 * system.accuracy(test)
    arity = 2 if loss == "hs" else "–"
    return [
        dim,
        f"fastText {loss}",
        arity,
        rate,
        accuracy,
        "–",
        system.seconds,
        system.single(test),
    ]


def speed(train: Part, options: argparse.Namespace) -> str:
    """Return words a second of training, texts read and terms counted included."""
    rows = []
    dim, epochs = options.dims[0], options.speed_epochs
    n_words = train.n_words * epochs
    Tree(tree="huffman", arity=2, dim=dim, epochs=1).fit(train, 0.5)  # compiles
    for n_threads in (1, 2):
        if find_spec("fasttext"):
            system = FastText(loss="hs", dim=dim, epoch=epochs, thread=n_threads)
            rows.append(["fastText hs", 2, n_threads, n_words / system.fit(train, 0.5).seconds])
        for kind, arity in (("huffman", 2), ("learned", 2), ("learned", 5), ("learned", 20)):
            with stopwatch() as watch:
                Tree(tree=kind, arity=arity, dim=dim, epochs=epochs).fit(
                    train, 0.5, n_jobs=n_threads
                )
            rows.append([kind, arity, n_threads, n_words / watch.seconds])
    return f"d = {dim}, {epochs} epochs.\n\n" + table(["tree", "M", "threads", "words a s"], rows)


def main() -> None:
    """Run the parts that are asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--rows", type=int, help="about how many training rows, of fewer classes")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--speed-epochs", type=int, default=5)
    parser.add_argument("--arities", type=int, nargs="+", default=[2, 5, 20])
    parser.add_argument("--dims", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--fasttext-rates", type=float, nargs="+", default=list(FASTTEXT_RATES))
    parser.add_argument("--softmax", action="store_true", help="also fastText's flat softmax")
    parser.add_argument("--tables", nargs="+", default=["precision", "speed"])
    options = parser.parse_args()
    options.rates, options.fasttext_rates = tuple(options.rates), tuple(options.fasttext_rates)
    train, test = parts(options.data, options.set, options.rows)
    epochs = options.epochs or EPOCHS[options.set]
    text = (
        f"{train.y.size:,} train rows with {train.n_words:,} words, {test.y.size:,} test rows, "
        f"{np.unique(train.y).size:,} classes; {epochs} epochs, words and bigrams."
    )
    sections = [text]
    if "precision" in options.tables:
        sections += ["## P@1", precision(train, test, options, epochs)]
    if "speed" in options.tables:
        sections += ["## Training", speed(train, options)]
    suffix = options.set if options.rows is None else f"{options.set}_{options.rows}"
    write("labeltree", f"Label trees: {options.set}", *sections, suffix=suffix)


if __name__ == "__main__":
    main()

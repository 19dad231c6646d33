"""Peers of a classifier of raw texts: fastText, tf-idf with a linear SVM, sentence embeddings.

Each has a small grid, chosen by the error on a fifth of the training texts (that of LinearSVC on a
fifth of 10,000 of them, having learned the rest of these); then it is trained on all of them, and
sees the test texts once. One thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._data import MINILM, Dataset
from benchmarks._data import load as load_set
from benchmarks._records import Kept
from benchmarks.embedded import Vectors, class_means, linear
from thinleaf.measuring.latency import Latency, Stopwatch, batch_latency, single_latency
from thinleaf.measuring.peers import fasttext_line

N_SINGLE = 2000
N_BATCH = 8000
HELD_OUT = 0.2
SLOW_SINGLE = 200
"""Calls that are timed of systems that take a millisecond or more."""

MOST_CLASSES = 5000
"""More of them, and one-vs-rest takes hours."""

FASTTEXT: tuple[dict[str, Any], ...] = tuple(
    {"epoch": 25, "lr": lr, "wordNgrams": ngrams}
    for ngrams in (1, 2)
    for lr in (0.1, 0.25, 0.5, 1.0, 2.0)
)
FASTTEXT_EPOCHS: tuple[int, ...] = (10, 50, 100)
"""Tried with what was best of the others."""

MANY_TEXTS = 200_000
"""With more of them a fit takes minutes: then there are pairs of words, three rates, 50 epochs."""

SVM_C = (0.1, 1.0, 10.0)
SVM_ROWS = 10_000
"""Training texts on which it is chosen: with all of them, each of the fits takes minutes."""


class Task(NamedTuple):
    """Texts to learn from, and texts to be asked for."""

    name: str
    train: list[str]
    y: np.ndarray
    test: list[str]
    y_test: np.ndarray

    def held_out(self, most: int | None = None) -> Task:
        """Return a task within the training texts, or within so many of them."""
        order = np.random.default_rng(0).permutation(self.y.size)[:most]
        test, train = np.split(order, [int(HELD_OUT * order.size)])
        return Task(
            self.name,
            [self.train[i] for i in train],
            self.y[train],
            [self.train[i] for i in test],
            self.y[test],
        )


class Times(NamedTuple):
    """Of rows, of a model, and of both: one text and a batch; seconds of features and of a fit."""

    single: Sequence[Latency | None]
    batch: Sequence[Latency | None]
    reading: float | str
    training: float


def line(name: str, system: str, error: float, times: Times, chosen: str = "") -> list[Any]:
    """Return a line of the table."""
    figures = ["" if found is None else f"{found.median:.2f}" for found in (
        *times.single, *times.batch
    )]  # fmt: skip
    last = times.single[-1]
    p99 = "" if last is None else f"{last.p99:.1f}"
    return [name, system, error, *figures, p99, times.reading, times.training, chosen]


def peers(
    task: Task, encoder: Path | None, embedded: Path | None, rough: bool, kept: Kept
) -> Iterator[list[Any]]:
    """Yield the lines of peers that are there; in a rough run, embeddings are left out."""
    if find_spec("fasttext") is not None:
        settings = fasttext_settings(task, kept)
        yield from kept.rows((task.name, "fastText"), fasttext_lines, task, settings)
    with threadpool_limits(1):
        if encoder is not None and embedded is not None and not rough:
            key = (task.name, "encoder")
            yield from kept.rows(key, encoder_lines, task, encoder, embedded)
        if np.unique(task.y).size <= MOST_CLASSES:
            yield from kept.rows((task.name, "LinearSVC"), svm_lines, task)
        else:
            print(f"skipped: LinearSVC on {task.name}, which has too many classes", flush=True)


# -- fastText --------------------------------------------------------------------------------------


def trained_fasttext(task: Task, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Return what takes a line to its label."""
    import fasttext

    names, ids = np.unique(task.y, return_inverse=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        # it reads them in this order, and lines that are sorted by class teach it little
        order = np.random.default_rng(0).permutation(ids.size)
        lines = (f"__label__{ids[i]} {fasttext_line(task.train[i])}" for i in order)
        path.write_text("".join(lines), encoding="utf-8")
        model = fasttext.train_supervised(
            str(path), loss="hs", thread=1, verbose=0, dim=100, bucket=200_000, **settings
        )
    predict = model.f.predict

    def one(text: str) -> Any:
        return predict(text, 1, 0.0, "")

    one.names = names  # type: ignore[attr-defined]
    return one


def fasttext_error(one: Callable[[str], Any], task: Task) -> float:
    """Return the share of wrong labels."""
    names = one.names  # type: ignore[attr-defined]
    found = [one(fasttext_line(text)) for text in task.test]
    labels = np.array([str(names[int(f[0][1][9:])]) if f else "" for f in found])
    return float(np.mean(labels != task.y_test.astype(str)))


def fasttext_settings(task: Task, kept: Kept) -> dict[str, Any]:
    """Return the settings that err least on held-out texts."""
    part = task.held_out()

    def error(settings: dict[str, Any]) -> Iterator[float]:
        try:
            yield fasttext_error(trained_fasttext(part, settings), part)
        except RuntimeError:  # the rate was too high: "Encountered NaN"
            yield 1.0

    def tried(settings: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        key = (task.name, "fastText", *settings.values())
        return kept.rows(key, error, settings)[0], settings

    grid, epochs = FASTTEXT, FASTTEXT_EPOCHS
    if task.y.size > MANY_TEXTS:
        grid = tuple(s for s in grid if s["wordNgrams"] == 2 and 0.25 <= s["lr"] <= 1.0)
        epochs = (50,)
    best = min(map(tried, grid), key=lambda pair: pair[0])
    more = [tried(best[1] | {"epoch": epoch}) for epoch in epochs]
    return min([best, *more], key=lambda pair: pair[0])[1]


def fasttext_lines(task: Task, settings: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the figures of fastText, which has no features apart."""
    with Stopwatch() as training:
        one = trained_fasttext(task, settings)
    asked = [fasttext_line(text) for text in task.test]  # not timed
    many = asked[:N_BATCH]
    single = single_latency(one, [(text,) for text in asked[:N_SINGLE]])
    batch = batch_latency(lambda: [one(text) for text in many], len(many))
    times = Times((None, None, single), (None, None, batch), "", training.seconds)
    chosen = ", ".join(f"{name}={value}" for name, value in settings.items())
    yield line(task.name, "fastText hs", 100 * fasttext_error(one, task), times, chosen)


# -- tf-idf and a linear SVM -----------------------------------------------------------------------


def vectorizer() -> TfidfVectorizer:
    """Return scikit-learn's features of words and pairs of words."""
    return TfidfVectorizer(
        sublinear_tf=True, dtype=np.float32, min_df=2, ngram_range=(1, 2),
        token_pattern=r"(?u)\b\w+\b",
    )  # fmt: skip


def svm_lines(task: Task) -> Iterator[list[Any]]:
    """Yield the figures of scikit-learn's vectorizer and LinearSVC."""
    part = task.held_out(SVM_ROWS)
    peer = vectorizer()
    X, X_held = peer.fit_transform(part.train), peer.transform(part.test)
    errors = {
        C: float(np.mean(LinearSVC(C=C).fit(X, part.y).predict(X_held) != part.y_test))
        for C in SVM_C
    }
    C = min(errors, key=errors.__getitem__)
    peer = vectorizer()
    with Stopwatch() as reading:
        X = peer.fit_transform(task.train)
    with Stopwatch() as training:
        model = LinearSVC(C=C).fit(X, task.y)
    error = 100 * float(np.mean(model.predict(peer.transform(task.test)) != task.y_test))
    one = [([text],) for text in task.test[:SLOW_SINGLE]]
    rows = [(peer.transform(text),) for (text,) in one]
    many = task.test[:N_BATCH]
    X_many = peer.transform(many)
    single = [
        single_latency(peer.transform, one),
        single_latency(model.predict, rows),
        single_latency(lambda text: model.predict(peer.transform(text)), one),
    ]
    batch = [
        batch_latency(lambda: peer.transform(many), len(many)),
        batch_latency(lambda: model.predict(X_many), len(many)),
        batch_latency(lambda: model.predict(peer.transform(many)), len(many)),
    ]
    times = Times(single, batch, reading.seconds, training.seconds)
    yield line(task.name, "TfidfVectorizer, LinearSVC", error, times, f"C={C:g}")


# -- sentence embeddings ---------------------------------------------------------------------------


def encoder_lines(task: Task, directory: Path, embedded: Path) -> Iterator[list[Any]]:
    """Yield a sentence encoder with logistic regression, and with the nearest class mean."""
    from thinleaf.text import SentenceEncoder

    name = f"{task.name}{MINILM}"
    if not (embedded / name).is_dir():
        print(f"skipped: no {name} in {embedded}", flush=True)
        return
    encoder = SentenceEncoder(directory)
    data: Dataset = load_set(embedded, name)
    one = [([text],) for text in task.test[:SLOW_SINGLE]]
    many = task.test[: N_BATCH // 16]
    rows = encoder(many)
    encoding = single_latency(encoder, one), batch_latency(lambda: encoder(many), len(many))
    models: list[Vectors] = [linear(data, "logistic regression"), class_means(data)]
    for model in models:
        labels, W, bias = model.labels, model.W, model.bias
        error = 100 * float(
            np.mean(labels[(data.X_test @ W.T + bias).argmax(axis=1)] != data.y_test)
        )

        def answer(X: np.ndarray, W: Any = W, bias: Any = bias, labels: Any = labels) -> Any:
            return labels[(X @ W.T + bias).argmax(axis=1)]

        def whole(texts: list[str], answer: Any = answer) -> Any:
            return answer(encoder(texts))

        single = [encoding[0], single_latency(answer, [(x[None],) for x in rows]),
                  single_latency(whole, one)]  # fmt: skip
        batch = [encoding[1], batch_latency(lambda: answer(rows), len(rows)),
                 batch_latency(lambda: whole(many), len(many))]  # fmt: skip
        times = Times(single, batch, "", model.seconds)
        yield line(task.name, f"{directory.name}, {model.name}", error, times, model.chosen)

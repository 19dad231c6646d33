"""Trees on sentence embeddings, beside linear models and nearest vectors: error, µs and bytes.

Sets are those that ``benchmarks.embed`` makes. Ours have nothing set but the seed: an adaptive
tree, on one path and with the beam that it chose, and a forest of eight. Beside them, on the same
vectors: logistic regression and a linear SVM (``C`` chosen on a fifth of the training part; of
10,000 of its rows, if there are more than 1000 classes), and the nearest class mean. All three are
one vector a class, so they are asked flat, by NumPy, and, if installed, through indexes of faiss
and usearch. With ``--encoder`` and ``--texts`` the encoder is timed, too; figures of the others are
without it. One thread; test rows are seen once. With ``--state``, what is done is not run again.

Indexes: ``pip install faiss-cpu usearch``, in an environment beside what thinleaf needs.
Usage: ``python -m benchmarks.embedded --data EMBEDDED --encoder DIRECTORY --texts DATA``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks._data import EMBEDDED_SETS, MINILM, Dataset, available, held_out, load, read_tsv
from benchmarks._records import Kept
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxForestClassifier
from thinleaf.measuring.latency import Stopwatch, batch_latency, single_latency

SETS = tuple(f"{name}{MINILM}" for name in ("banking77", "clinc150", "naics2017"))
GRID = {"logistic regression": (1.0, 10.0, 100.0, 1000.0), "LinearSVC": (0.1, 1.0, 10.0)}
MANY_CLASSES, GRID_ROWS = 1000, 10_000
"""From so many classes on, ``C`` is chosen on so many training rows: a fit takes minutes."""
HELD_OUT = 0.2
N_SINGLE = 1000
N_TREES = 8
NEAR = 32
"""Neighbours of a vector in a graph, and how many are looked at."""

HEADERS = ["set", "system", "error %", "one µs", "p99", "in a batch µs", "bytes", "fit s", "chosen"]


class Answers(NamedTuple):
    """A fitted system."""

    name: str
    one: Callable[[np.ndarray], Any]
    many: Callable[[np.ndarray], np.ndarray]
    n_bytes: int
    seconds: float
    chosen: str = ""


# -- ours ------------------------------------------------------------------------------------------


def trees(data: Dataset, seed: int) -> Iterator[Answers]:
    """Yield the adaptive tree and the forest."""
    for clf, name in (
        (AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=1), "tree"),
        (SoftmaxForestClassifier(n_estimators=N_TREES, random_state=seed, n_jobs=1), "forest of 8"),
    ):
        with Stopwatch() as watch:
            clf.fit(data.X_train, data.y_train)
        widths: list[Any] = [1, "auto"] if hasattr(clf, "beam_") else [1, 4]
        for width in widths:
            model = clf.freeze(beam=width)
            if width != 1 and model.beam == 1:
                continue  # it chose one path
            paths = "one path" if width == 1 else f"beam {model.beam}"
            yield Answers(
                f"thinleaf {name}, {paths}", model.predict_one, model.predict, model.nbytes,
                watch.seconds,
            )  # fmt: skip


# -- one vector a class ----------------------------------------------------------------------------


class Vectors(NamedTuple):
    """One vector a class: the label is that with the largest product, plus a bias."""

    name: str
    labels: np.ndarray
    W: np.ndarray
    bias: np.ndarray
    seconds: float
    chosen: str = ""


def class_means(data: Dataset) -> Vectors:
    """Return the mean of each class, of length one."""
    with Stopwatch() as watch:
        labels, ids = np.unique(data.y_train, return_inverse=True)
        W = np.zeros((labels.size, data.X_train.shape[1]))
        np.add.at(W, ids, data.X_train)
        W /= np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-30)
    bias = np.zeros(labels.size, dtype=np.float32)
    return Vectors("nearest class mean", labels, W.astype(np.float32), bias, watch.seconds)


def linear(data: Dataset, name: str) -> Vectors:
    """Return a linear model, its ``C`` chosen on held-out rows of the training part."""

    def fitted(part: Dataset, C: float) -> Any:
        if name == "LinearSVC":
            return LinearSVC(C=C).fit(part.X_train, part.y_train)
        return LogisticRegression(C=C, max_iter=200, tol=1e-3).fit(part.X_train, part.y_train)

    part = held_out(data, HELD_OUT)
    if np.unique(data.y_train).size > MANY_CLASSES:
        few = np.random.default_rng(0).permutation(data.y_train.size)[:GRID_ROWS]
        sample = Dataset(name, data.X_train[few], data.y_train[few], None, data.y_train[:0])
        part = held_out(sample, HELD_OUT)
    errors = {
        C: float(np.mean(fitted(part, C).predict(part.X_test) != part.y_test)) for C in GRID[name]
    }
    C = min(errors, key=errors.__getitem__)
    with Stopwatch() as watch:
        model = fitted(data, C)
    W, bias = model.coef_.astype(np.float32), model.intercept_.astype(np.float32)
    return Vectors(name, model.classes_, W, bias, watch.seconds, f"C={C:g}")


def flat(vectors: Vectors) -> Answers:
    """Return all products, by NumPy."""
    labels, W, bias = vectors.labels, np.ascontiguousarray(vectors.W), vectors.bias
    columns = np.ascontiguousarray(W.T)
    return Answers(
        f"{vectors.name}, flat",
        lambda x: labels[(W @ x + bias).argmax()],
        lambda X: labels[(X @ columns + bias).argmax(axis=1)],
        W.nbytes + bias.nbytes,
        vectors.seconds,
        vectors.chosen,
    )


def indexed(vectors: Vectors) -> Iterator[Answers]:
    """Yield the same through indexes of libraries that are installed."""
    if find_spec("faiss") is not None:
        yield from _by_faiss(vectors)
    if find_spec("usearch") is not None:
        yield _by_usearch(vectors)


def _with_bias(vectors: Vectors) -> np.ndarray:
    """Return vectors whose products with ``(x, 1)`` have the bias in them."""
    return np.ascontiguousarray(np.column_stack([vectors.W, vectors.bias]))


def _asked(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X), dtype=np.float32)])


def _by_faiss(vectors: Vectors) -> Iterator[Answers]:
    import faiss

    faiss.omp_set_num_threads(1)
    V, labels = _with_bias(vectors), vectors.labels
    n, width = V.shape
    graph = faiss.IndexHNSWFlat(width, NEAR, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efSearch = NEAR
    lists = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(width), width, max(int(np.sqrt(n)), 1), faiss.METRIC_INNER_PRODUCT
    )
    lists.train(V)
    lists.nprobe = max(int(np.sqrt(lists.nlist)), 1)
    indexes = {"faiss flat": faiss.IndexFlatIP(width), "faiss HNSW": graph, "faiss IVF": lists}
    for name, index in indexes.items():
        with Stopwatch() as watch:
            index.add(V)

        def many(X: np.ndarray, index: Any = index) -> np.ndarray:
            return labels[index.search(_asked(X), 1)[1][:, 0]]

        def one(x: np.ndarray, index: Any = index) -> Any:
            return labels[index.search(np.append(x, np.float32(1.0))[None], 1)[1][0, 0]]

        size = faiss.serialize_index(index).nbytes
        seconds = vectors.seconds + watch.seconds
        yield Answers(f"{vectors.name}, {name}", one, many, size, seconds, vectors.chosen)


def _by_usearch(vectors: Vectors) -> Answers:
    from usearch.index import Index

    V, labels = _with_bias(vectors), vectors.labels
    index = Index(ndim=V.shape[1], metric="ip", dtype="f32", connectivity=NEAR)
    index.expansion_search = NEAR
    with Stopwatch() as watch:
        index.add(np.arange(len(V)), V, threads=1)

    def one(x: np.ndarray) -> Any:
        return labels[int(index.search(np.append(x, np.float32(1.0)), 1, threads=1).keys[0])]

    def many(X: np.ndarray) -> np.ndarray:
        return labels[index.search(_asked(X), 1, threads=1).keys[:, 0].astype(int)]

    seconds = vectors.seconds + watch.seconds
    size = int(index.serialized_length)
    return Answers(f"{vectors.name}, usearch", one, many, size, seconds, vectors.chosen)


# -- a table ---------------------------------------------------------------------------------------


def measured(data: Dataset, system: Answers) -> list[Any]:
    """Return a line of the table."""
    found = system.many(data.X_test)
    error = 100 * float(np.mean(found != data.y_test))
    rows = [(x,) for x in np.ascontiguousarray(data.X_test[:N_SINGLE], dtype=np.float32)]
    single = single_latency(system.one, rows)
    batch = batch_latency(lambda: system.many(data.X_test), len(data.X_test))
    times = [f"{single.median:.2f}", f"{single.p99:.1f}", f"{batch.median:.2f}"]
    name = data.name.removesuffix(MINILM)
    return [name, system.name, error, *times, system.n_bytes, system.seconds, system.chosen]


def lines_of(data: Dataset, seed: int, peers_alone: bool, kept: Kept) -> Iterator[list[Any]]:
    """Yield the lines of a set."""
    if not peers_alone:
        yield from kept.rows((data.name, "trees"), lines_of_trees, data, seed)
    for name in ("means", *GRID):
        yield from kept.rows((data.name, name), lines_of_vectors, data, name)


def lines_of_trees(data: Dataset, seed: int) -> Iterator[list[Any]]:
    """Yield the lines of ours."""
    for system in trees(data, seed):
        yield measured(data, system)


def lines_of_vectors(data: Dataset, name: str) -> Iterator[list[Any]]:
    """Yield the lines of a model of one vector a class: flat, and through indexes."""
    vectors = class_means(data) if name == "means" else linear(data, name)
    yield measured(data, flat(vectors))
    for system in indexed(vectors):
        yield measured(data, system)


def encoder_line(directory: Path, texts: list[str], name: str) -> list[Any]:
    """Return what the encoder takes alone."""
    from thinleaf.text import SentenceEncoder

    encoder = SentenceEncoder(directory)
    single = single_latency(lambda text: encoder([text]), [(text,) for text in texts[:200]])
    batch = batch_latency(lambda: encoder(texts[:1000]), min(len(texts), 1000))
    size = sum(path.stat().st_size for path in directory.glob("*.onnx"))
    times = [f"{single.median:.0f}", f"{single.p99:.0f}", f"{batch.median:.0f}"]
    return [name, f"the encoder {encoder.directory.name}", "", *times, size, "", ""]


def main() -> None:
    """Measure the sets that are there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=EMBEDDED_SETS, default=SETS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", type=Path, help="directory of the sentence encoder")
    parser.add_argument("--texts", type=Path, help="directory of the sets of texts")
    parser.add_argument("--peers", action="store_true", help="no trees")
    parser.add_argument("--rows", type=int, help="only so many rows, not written: to try it")
    Kept.add_option(parser)
    options = parser.parse_args()
    kept = Kept(options.state if options.rows is None else None)
    for name in options.sets:
        if not available(options.data, name):
            print(f"skipped: no {name} in {options.data}")
            continue
        data = load(options.data, name)
        if options.rows is not None:
            few = np.random.default_rng(0).permutation(data.y_train.size)[: options.rows]
            data = held_out(
                Dataset(name, data.X_train[few], data.y_train[few], None, data.y_train[:0]),
                HELD_OUT,
            )
        with threadpool_limits(1):
            lines = list(lines_of(data, options.seed, options.peers, kept))
            plain = name.removesuffix(MINILM)
            if options.encoder is not None and options.texts is not None:
                texts = read_tsv(options.texts / plain / "test.tsv.gz")[1]
                lines.append(encoder_line(options.encoder, texts, plain))
        text = table(HEADERS, lines)
        if options.rows is None and not options.peers:
            write("embedded", f"Sentence embeddings of {plain}", text, suffix=plain)
        else:
            print(text)


if __name__ == "__main__":
    main()

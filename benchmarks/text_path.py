"""From a raw string to its label: microseconds of features and model, one text and in batches.

A tree of one path is trained on the training texts; its features are words, and what
``choose_features`` takes. Beside it, in the same run (:mod:`benchmarks._text_peers`): fastText with
hierarchical softmax, if installed; scikit-learn's ``TfidfVectorizer`` with ``LinearSVC``; and, with
``--encoder`` and ``--embedded``, a sentence encoder with logistic regression and with the nearest
class mean. Peers have a small grid each, chosen on a fifth of the training part. ``--rows`` is a
rough run: it trains on so many rows, asks for others of the training part, reads no test rows and
writes nothing. ``--equality`` compares rows with those of scikit-learn's ``TfidfVectorizer``, entry
for entry, on the training texts of all sets. With ``--state``, systems that are done are not run
again; ``--tune`` only finds the settings of fastText, which may be done beside other jobs. Of sets
that are not asked for, the lines of the result stay. One thread; ``thinleaf.measuring.latency`` is
the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks._data import TEXT_SETS, available, read_tsv
from benchmarks._records import Kept, merged
from benchmarks._report import arguments, table, write
from benchmarks._text_peers import (
    N_BATCH,
    N_SINGLE,
    Task,
    Times,
    fasttext_settings,
    line,
    peers,
)
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch, batch_latency, single_latency
from thinleaf.text import TextFeatures
from thinleaf.text.choice import choose_features
from thinleaf.text.direct import TextToClass

SETS = ("icd10cm", "banking77", "bible_verse")
FIXED: dict[str, dict[str, Any]] = {
    "bible_verse": {
        "absent": "zero_one",
        "router_l1": 0.001,
        "leaf_l1": 0.001,
        "tol": 1e-3,
        "overlap": None,
        "depth": 8,
        "leaf_classes": 250,
        "router_ridge": 0.01,
        "leaf_ridge": 0.03,
        "max_sweeps": 2,
    }
}
"""Sets on which an adaptive tree would take too long."""


def our_rows(
    features: TextFeatures,
    train: list[str],
    y: np.ndarray,
    test: list[str],
    y_test: np.ndarray,
    name: str,
) -> list[list[Any]]:
    """Return the figures of a tree on given features."""
    with Stopwatch() as reading:
        X = features.fit_transform(train)
    clf = (
        SoftmaxTreeClassifier(**FIXED[name], random_state=0)
        if name in FIXED
        else AdaptiveSoftmaxTreeClassifier(random_state=0)
    )
    with Stopwatch() as training:
        model = clf.fit(X, y).freeze().with_beam(1)
    direct = TextToClass(features, model.predictor)
    one = [(text,) for text in test[:N_SINGLE]]
    rows = [features.row_of(text) for (text,) in one]
    many = test[:N_BATCH]
    X_many = features.transform(many)
    error = 100 * float(np.mean(model.predict(features.transform(test)) != y_test))
    single = [
        single_latency(features.row_of, one),
        single_latency(model.predict_one, rows),
        single_latency(direct, one),
    ]
    batch = [
        batch_latency(lambda: features.transform(many), len(many)),
        batch_latency(lambda: model.predict(X_many), len(many)),
        batch_latency(lambda: direct.many(many), len(many)),
    ]
    times = Times(single, batch, reading.seconds, training.seconds)
    return [line(name, f"thinleaf, {features.kind}", error, times)]


def all_ours(
    name: str, train: list[str], y: np.ndarray, test: list[str], y_test: np.ndarray
) -> Iterator[list[Any]]:
    """Yield the figures of trees on words, and on the features that are chosen."""
    chosen = choose_features(train, y, random_state=0).kind
    for kind in dict.fromkeys(("tfidf", chosen)):
        yield from our_rows(TextFeatures(kind), train, y, test, y_test, name)


def equality(name: str, texts: list[str]) -> list[list[Any]]:
    """Compare rows with scikit-learn's, and the time that they take."""
    out = []
    for kind in ("tfidf", "chars"):
        with Stopwatch() as ours:
            features = TextFeatures(kind)  # type: ignore[arg-type]
            X = features.fit_transform(texts)
        how: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": features.char_range}
        if kind == "tfidf":
            how = {"token_pattern": r"(?u)\b\w+\b", "ngram_range": features.ngram_range}
        peer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, min_df=2, **how)
        with Stopwatch() as theirs:
            Y = peer.fit_transform(texts)
        if Y.shape[1] > features.n_features:  # they keep other terms of equal frequency
            peer = TfidfVectorizer(
                sublinear_tf=True, dtype=np.float32, vocabulary=features.feature_names(), **how
            )
            peer.idf_ = features.to_arrays()[0]["idf"]
            Y = peer.transform(texts)
        Y.sort_indices()
        same = np.array_equal(X.indptr, Y.indptr) and np.array_equal(X.indices, Y.indices)
        most = float(np.abs(X.data - Y.data).max()) if same else float("nan")
        row = [name, kind, len(texts), "yes" if same else "no", most, ours.seconds, theirs.seconds]
        print(row, flush=True)
        out.append(row)
    return out


def main() -> None:
    """Measure the sets that are there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=TEXT_SETS)
    parser.add_argument("--rows", type=int, help="train on so many rows: a rough run")
    parser.add_argument("--encoder", type=Path, help="directory of the sentence encoder")
    parser.add_argument("--embedded", type=Path, help="directory of embedded sets")
    parser.add_argument("--tune", action="store_true", help="only find settings of fastText")
    parser.add_argument("--equality", action="store_true", help="only compare rows, on all sets")
    Kept.add_option(parser)
    options = parser.parse_args()
    kept = Kept(options.state if options.rows is None else None)
    lines: list[list[Any]] = []
    equal: list[list[Any]] = []
    for name in options.sets or (TEXT_SETS if options.equality else SETS):
        if not available(options.data, name):
            print(f"skipped: no {name} in {options.data}")
            continue
        y, train = read_tsv(options.data / name / "train.tsv.gz")
        if options.equality:
            equal += equality(name, train)
            continue
        if options.rows is None:
            y_test, test = read_tsv(options.data / name / "test.tsv.gz")
        else:
            order = np.random.default_rng(0).permutation(y.size)
            rows, others = np.split(order[: options.rows + N_BATCH], [options.rows])
            y_test, test = y[others], [train[i] for i in others]
            train, y = [train[i] for i in rows], y[rows]
        task = Task(name, train, y, test, y_test)
        if options.tune:
            fasttext_settings(task, kept)
            continue
        lines += kept.rows((name, "ours"), all_ours, name, train, y, test, y_test)
        rough = options.rows is not None
        lines += peers(task, options.encoder, options.embedded, rough, kept)
    if options.equality:
        headers = ["set", "kind", "texts", "same entries", "largest difference", "s", "their s"]
        head = "Rows beside those of scikit-learn's TfidfVectorizer, fit and transform:"
        write("text_path", "Rows of texts", head, table(headers, equal), suffix="equality")
        return
    if options.tune:
        return
    headers = [
        "set", "system", "error %", "µs: row", "model", "text to label", "in a batch: row", "model",
        "text to label", "p99 of one", "features s", "fit s", "chosen",
    ]  # fmt: skip
    if options.rows is None:
        lines = merged("text_path", lines, SETS)
        write("text_path", "From a raw text to its label", table(headers, lines))
    else:
        print(table(headers, lines))


if __name__ == "__main__":
    main()

"""The demo, ``python -m thinleaf.demo``: from a diagnosis text to its ICD-10-CM category.

Trains a tree and a flat softmax on the same tf-idf features, compares them in a table, and shows
what the tree says to some of the test texts. What is measured is in :class:`Figures`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.feature_extraction.text import TfidfVectorizer

from thinleaf._dtypes import INDEX, PARAM, AnyArray
from thinleaf.datasets.icd10cm import TextSplit, load_icd10cm
from thinleaf.estimators import FlatSoftmaxClassifier, SoftmaxTreeClassifier
from thinleaf.measuring.metrics import top_k_error
from thinleaf.model.cost import summarize

TREE_SETTINGS: Final[Mapping[str, Any]] = {
    "depth": 6,
    "leaf_classes": 80,
    "init": "balanced_clusters",
    "absent": "zero_one",
    "router_l1": 0.001,
    "leaf_l1": 0.001,
    "router_ridge": 0.01,
    "leaf_ridge": 0.01,
    "tol": 1e-3,
    "max_sweeps": 4,
    "n_jobs": -1,
    "random_state": 0,
    "verbose": 1,
}

_N_EXAMPLES = 8
_N_SINGLE = 300
_N_COMPILE = 400


@dataclass(frozen=True)
class Features:
    """The split as tf-idf rows and label arrays."""

    X_train: sp.csr_array
    y_train: AnyArray
    X_test: sp.csr_array
    y_test: AnyArray


@dataclass(frozen=True)
class Figures:
    """What the table compares, of one model on the test rows.

    Attributes
    ----------
    error, top5_error : float
        Shares of test rows.
    train_seconds : float
        Without compilation.
    batch_us : float
        Microseconds a row, all test rows in one call of ``predict``.
    single_us : float
        Microseconds a call of ``predict`` with one row.
    n_bytes : int
        Of the parameters as they are stored.
    n_nonzero : int
        Weights that are not zero.
    """

    error: float
    top5_error: float
    train_seconds: float
    batch_us: float
    single_us: float
    n_bytes: int
    n_nonzero: int


@dataclass(frozen=True)
class Comparison:
    """Both models and what was measured of them."""

    tree: SoftmaxTreeClassifier
    flat: FlatSoftmaxClassifier
    tree_figures: Figures
    flat_figures: Figures


def make_tree(**changes: Any) -> SoftmaxTreeClassifier:
    """Return the demo's tree, unfitted."""
    return SoftmaxTreeClassifier(**{**TREE_SETTINGS, **changes})


def make_features(data: TextSplit) -> Features:
    """Turn texts into tf-idf rows of words and pairs of words that two training texts have."""
    tfidf = TfidfVectorizer(
        token_pattern=r"(?u)\b\w+\b",
        ngram_range=(1, 2),
        min_df=2,
        sublinear_tf=True,
        dtype=PARAM,
    )
    X_train = tfidf.fit_transform(data.texts_train)
    X_test = tfidf.transform(data.texts_test)
    return Features(X_train, np.asarray(data.y_train), X_test, np.asarray(data.y_test))


def first_rows(data: TextSplit, n_rows: int) -> TextSplit:
    """Return the first training texts and the test texts of their categories."""
    kept = set(data.y_train[:n_rows])
    test = [i for i, category in enumerate(data.y_test) if category in kept]
    return TextSplit(
        data.texts_train[:n_rows],
        data.y_train[:n_rows],
        [data.texts_test[i] for i in test],
        [data.y_test[i] for i in test],
        {category: data.titles[category] for category in sorted(kept)},
    )


def compare(features: Features, say: Callable[[str], None], *, verbose: bool = True) -> Comparison:
    """Train the tree and the flat softmax on the same rows and measure both.

    Parameters
    ----------
    features : Features
    say : callable
        Gets a line of text at each stage.
    verbose : bool
        Whether models show their progress on standard error.
    """
    say("Compiling, or loading what an earlier run has compiled")
    seconds = _compile(features)
    say(f"That took {seconds:.1f} s. Training the tree")
    tree = make_tree(verbose=int(verbose))
    tree_seconds = _seconds(lambda: tree.fit(features.X_train, features.y_train))
    say("Training the flat softmax")
    flat = FlatSoftmaxClassifier(solver="adagrad", random_state=0, verbose=int(verbose))
    flat_seconds = _seconds(lambda: flat.fit(features.X_train, features.y_train))
    say("Measuring")
    return Comparison(
        tree,
        flat,
        _measure(tree, features, tree_seconds),
        _measure(flat, features, flat_seconds),
    )


def _compile(features: Features) -> float:
    """Run everything once on a few rows, so that later times are those of compiled code."""

    def rehearse() -> None:
        X, y = features.X_train[:_N_COMPILE], features.y_train[:_N_COMPILE]
        tree = make_tree(verbose=0).fit(X, y)
        tree.predict(X)
        tree.predict_topk(X, 2)

    return _seconds(rehearse)


def _measure(
    model: SoftmaxTreeClassifier | FlatSoftmaxClassifier, features: Features, train_seconds: float
) -> Figures:
    X, y = features.X_test, features.y_test
    size = summarize(model.tree_)
    top, _ = model.predict_topk(X, min(5, model.classes_.size))
    rows = [X[i : i + 1] for i in range(min(_N_SINGLE, y.size))]
    batch = min(_seconds(partial(model.predict, X)) for _ in range(5))
    single = np.median([_seconds(partial(model.predict, row)) for row in rows])
    return Figures(
        error=float(np.mean(model.predict(X) != y)),
        top5_error=top_k_error(y, top),
        train_seconds=train_seconds,
        batch_us=1e6 * batch / y.size,
        single_us=1e6 * float(single),
        n_bytes=size.n_bytes,
        n_nonzero=size.n_nonzero,
    )


def _seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def comparison_table(comparison: Comparison, n_test: int) -> Table:
    """Return the two models side by side."""
    a, b = comparison.tree_figures, comparison.flat_figures
    shape = summarize(comparison.tree.tree_)
    table = Table(
        title="Diagnosis text to ICD-10-CM category",
        caption=(
            f"Tree: depth {shape.depth}, {shape.n_leaves} leaves with "
            f"{shape.mean_leaf_classes:.0f} of {comparison.tree.classes_.size:,} categories on "
            "average. Flat softmax: one linear layer over all categories, trained on the "
            f"cross-entropy by mini-batch AdaGrad, {comparison.flat.n_passes} passes. The "
            "tree trains on all cores, the flat softmax on one; both predict on one. With one row "
            "a call, the overhead of the call outweighs the arithmetic."
        ),
        caption_justify="left",
    )
    table.add_column("")
    table.add_column("tree", justify="right")
    table.add_column("flat softmax", justify="right")
    lines: Sequence[tuple[str, Callable[[Figures], str]]] = (
        ("test error", lambda f: f"{100 * f.error:.1f} %"),
        ("top-5 test error", lambda f: f"{100 * f.top5_error:.1f} %"),
        ("training", lambda f: f"{f.train_seconds:.1f} s"),
        (f"prediction, {n_test:,} rows in one call", lambda f: f"{f.batch_us:.1f} µs a row"),
        ("prediction, one row a call", lambda f: f"{f.single_us:.0f} µs a row"),
        ("model size", lambda f: f"{f.n_bytes / 1e6:.1f} MB"),
        ("nonzero weights", lambda f: f"{f.n_nonzero:,}"),
    )
    for name, show in lines:
        table.add_row(name, show(a), show(b))
    return table


def examples(tree: SoftmaxTreeClassifier, data: TextSplit, features: Features) -> Text:
    """Return test texts, evenly spaced over the chapters, each with the tree's top three."""
    n_test = len(data.texts_test)
    n_shown = min(_N_EXAMPLES, n_test)
    shown = np.linspace(0, n_test, n_shown, endpoint=False, dtype=INDEX) + n_test // (2 * n_shown)
    labels, probabilities = tree.predict_topk(features.X_test[shown], min(3, tree.classes_.size))
    lines = [Text(f"What the tree says to {n_shown} of the test texts", "italic")]
    for i, top, top_p in zip(shown.tolist(), labels.tolist(), probabilities.tolist(), strict=True):
        lines += [Text(), Text(data.texts_test[i], "bold")]
        lines += _answer(data.y_test[i], top, top_p, data.titles)
    return Text("\n").join(lines)


def _answer(
    truth: str, top: Sequence[str], top_p: Sequence[float], titles: Mapping[str, str]
) -> list[Text]:
    """Return a line for each category; if the true one is not among them, one more for it."""
    lines = []
    for place, (category, p) in enumerate(zip(top, top_p, strict=True)):
        right = category == truth
        mark = "right" if right else "wrong" if place == 0 else ""
        style = "green" if right else "red" if place == 0 else ""
        lines.append(Text(f"  {mark:6} {100 * p:5.1f} %  {category} {titles[category]}", style))
    if truth not in top:
        lines.append(Text(f"  {'missed':14}  {truth} {titles[truth]}", "red"))
    return lines


def run(console: Console, n_rows: int | None = None, *, quiet: bool = False) -> Comparison:
    """Run the demo.

    Parameters
    ----------
    console : Console
        Where to print.
    n_rows : int, optional
        Train on the first rows only, for a quick look; by default on all.
    quiet : bool
        Print the results only.
    """

    def say(line: str) -> None:
        if not quiet:
            console.print(line, markup=False, highlight=False)

    say("Reading ICD-10-CM")
    data = load_icd10cm()
    if n_rows is not None:
        data = first_rows(data, n_rows)
    features = make_features(data)
    n_train, n_features = features.X_train.shape
    say(
        f"{n_train:,} training and {len(data.y_test):,} test texts, {len(data.titles):,} "
        f"categories, {n_features:,} tf-idf features"
    )
    comparison = compare(features, say, verbose=not quiet)
    console.print()
    console.print(comparison_table(comparison, len(data.y_test)))
    console.print()
    console.print(examples(comparison.tree, data, features), no_wrap=True, overflow="ellipsis")
    return comparison


def main() -> None:
    """Run the whole demo on standard output."""
    console = Console()
    started = time.perf_counter()
    try:
        run(console)
    except ModuleNotFoundError as error:
        sys.exit(str(error))
    console.print(f"\nAll of it took {time.perf_counter() - started:.0f} s.", highlight=False)


if __name__ == "__main__":
    main()

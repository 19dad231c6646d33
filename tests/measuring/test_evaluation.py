"""What a model does on labelled rows, equal to scikit-learn; and what is written of it."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    classification_report,
    confusion_matrix,
    precision_recall_fscore_support,
)

from thinleaf import LabelTreeClassifier, SoftmaxTreeClassifier
from thinleaf.measuring import Evaluation, evaluate, metrics
from thinleaf.measuring.confusions import Confusions, UnknownLabels, shortened
from thinleaf.measuring.evaluation_page import MOST_LABELS, page
from thinleaf.measuring.label_scores import COLUMNS, LabelScores
from thinleaf.measuring.reliability import ConfidenceCounts
from thinleaf.measuring.tally import Tally
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import Recipe

HOSTILE = '</script><img src=x onerror="alert(1)">&amp;\u2028\x00'


class Fixed:
    """A model whose answers are given: a row is the number of its class, then its probability."""

    def __init__(self, labels: Any) -> None:
        self.labels = np.array(labels)

    def predict(self, X: Any, *, n_jobs: int = 1) -> Any:
        return self.labels[X[:, 0].astype(int)]

    def predict_topk(self, X: Any, k: int, *, n_jobs: int = 1) -> Any:
        ids = (X[:, :1].astype(int) + np.arange(k)) % self.labels.size
        return self.labels[ids], np.repeat(X[:, 1:2], k, axis=1)

    def label_proba(self, X: Any, y: Any, *, smooth: bool = True, n_jobs: int = 1) -> Any:
        return np.full(len(X), 0.5)


def answers(n_classes: int, n_rows: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return a model, rows, labels, and the labels that the model gives."""
    rng = np.random.default_rng(seed)
    labels = [f"label {i}" for i in rng.permutation(n_classes)]  # in no order
    given = rng.integers(n_classes, size=n_rows)
    truth = np.where(rng.random(n_rows) < 0.6, given, rng.integers(n_classes, size=n_rows))
    model = Fixed(labels)
    X = np.column_stack([given, rng.random(n_rows)])
    return model, X, model.labels[truth], model.labels[given]


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [1, 2, 7, 300])
@pytest.mark.parametrize("unknown", [False, True])
def test_scores_are_those_of_scikit_learn(n_classes, unknown):
    model, X, y, predicted = answers(n_classes, 400, n_classes)
    y = y.astype(object)
    if unknown:
        y[::7], y[::11] = "never seen", "nor this"
    found = evaluate(model, X, y, batch_size=64)
    scores = found.labels
    expected = precision_recall_fscore_support(y, predicted, labels=scores.labels, zero_division=0)
    for mine, theirs in zip(
        (scores.precision, scores.recall, scores.f1, scores.support), expected, strict=True
    ):
        np.testing.assert_allclose(mine, theirs)
    report = classification_report(y, predicted, output_dict=True, zero_division=0)
    for name, mine in (("macro avg", scores.macro), ("weighted avg", scores.weighted)):
        theirs = [report[name][score] for score in ("precision", "recall", "f1-score")]
        assert [mine.precision, mine.recall, mine.f1] == pytest.approx(theirs)
    assert set(scores.labels) == set(report) - {"accuracy", "macro avg", "weighted avg"}
    assert found.error == pytest.approx(1.0 - accuracy_score(y, predicted))
    assert found.unknown_rows == int(np.isin(y, ["never seen", "nor this"]).sum())
    assert set(found.unknown_labels) == ({"never seen", "nor this"} if unknown else set())


@given(st.integers(0, 1000), st.integers(1, 50))
def test_batches_do_not_matter(seed, batch_size):
    model, X, y, _ = answers(5, 60, seed)
    whole, parts = evaluate(model, X, y), evaluate(model, X, y, batch_size=batch_size)
    mine, theirs = whole.to_dict(), parts.to_dict()
    for record in (mine, theirs):
        del record["us_per_row"]
    assert mine.keys() == theirs.keys()
    for name in ("labels", "confused", "error", "confused_pairs"):
        assert mine[name] == theirs[name]
    assert mine["ece"] == pytest.approx(theirs["ece"])
    assert mine["perplexity"] == pytest.approx(theirs["perplexity"])


def test_the_worst_labels_come_first_and_of_equal_ones_the_most_frequent():
    counts = [np.array(c) for c in ([5, 9, 4, 4], [5, 0, 0, 4], [5, 0, 0, 3])]
    scores = LabelScores.of(["a", "b", "c", "d"], *counts, {"new": 6})
    assert [scores.labels[i] for i in scores.worst()] == ["b", "new", "c", "d", "a"]
    assert [scores.labels[i] for i in scores.worst(1)] == ["b"]


# -- confusions ------------------------------------------------------------------------------------


def test_pairs_are_those_of_a_confusion_matrix():
    model, X, y, predicted = answers(6, 500)
    found = evaluate(model, X, y, n_pairs=1000, n_examples=2)
    names = model.labels.tolist()
    matrix = confusion_matrix(y, predicted, labels=names)
    np.fill_diagonal(matrix, 0)
    counts = {(p.label, p.predicted): p.count for p in found.pairs}
    for i, truth in enumerate(names):
        for j, other in enumerate(names):
            assert counts.get((truth, other), 0) == matrix[i, j]
    assert found.n_pairs == np.count_nonzero(matrix)
    assert [p.count for p in found.pairs] == sorted(counts.values(), reverse=True)
    for pair in found.pairs:
        assert pair.share == pytest.approx(pair.count / np.sum(y == pair.label))
        assert len(pair.examples) == min(2, pair.count)
        rows = [example.number for example in pair.examples]
        assert (
            rows
            == [i for i in range(500) if (y[i], predicted[i]) == (pair.label, pair.predicted)][:2]
        )
        assert [example.probability for example in pair.examples] == X[rows, 1].tolist()


def test_memory_is_bounded_and_frequent_pairs_are_kept():
    rng = np.random.default_rng(0)
    confusions = Confusions(1000, 2, most_pairs=4000, most_with_examples=400)
    for batch in range(60):
        classes, given = rng.integers(500, size=(2, 2000))
        given += 500
        classes[:20], given[:20] = 7, 8
        numbers = np.arange(2000) + 2000 * batch
        confusions.add(classes, given, numbers, np.full(2000, 0.5), ["text"] * 2000)
        assert len(confusions._examples) <= 400
    assert len(confusions) <= 4000
    assert not confusions.complete
    truth, given, count, examples = confusions.pairs(1)[0]
    assert (truth, given, count, len(examples)) == (7, 8, 1200, 2)


def test_unknown_labels_are_named_up_to_a_limit():
    unknown = UnknownLabels(most=2)
    unknown.add(["a", "b", "a", "c"])
    assert (unknown.counts, unknown.n_rows, unknown.complete) == ({"a": 2, "b": 1}, 4, False)


def test_long_texts_are_cut():
    assert shortened("x" * 300) == "x" * 300
    assert len(shortened("x" * 5000)) == 300


# -- reliability -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_reliability_is_that_of_scikit_learn(n_bins):
    rng = np.random.default_rng(n_bins)
    p = rng.random(1000)
    right = rng.random(1000) < p**2
    counts = ConfidenceCounts(n_bins)
    for part in np.array_split(np.arange(1000), 7):
        counts.add(p[part], right[part])
    table = counts.reliability()
    accuracy, confidence = calibration_curve(right, p, n_bins=n_bins)
    filled = table.count > 0
    np.testing.assert_allclose(table.accuracy[filled], accuracy)
    np.testing.assert_allclose(table.confidence[filled], confidence)
    assert table.brier == pytest.approx(brier_score_loss(right, p))
    gaps = np.abs(accuracy - confidence)
    assert table.ece == pytest.approx(np.sum(gaps * table.count[filled]) / 1000)
    assert table.mce == pytest.approx(gaps.max())


def test_the_error_of_sure_rows_is_that_of_counting():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(500), 2)  # many lie on a threshold
    p[:3] = (0.0, 1.0, np.nan)
    right = rng.random(500) < 0.7
    counts = ConfidenceCounts()
    counts.add(p, right)
    for record in counts.selection().records():
        kept = np.nan_to_num(p) >= record["at_least"]
        assert record["share"] == pytest.approx(kept.mean())
        assert record["error"] == pytest.approx(1.0 - right[kept].mean())
    shares, errors = zip(*counts.selection().curve(30), strict=True)
    assert list(shares) == sorted(shares)
    assert (shares[-1], errors[-1]) == (1.0, pytest.approx(1.0 - right.mean()))
    assert len(shares) == 30


def test_nothing_is_counted_at_first():
    table = ConfidenceCounts().reliability()
    assert (table.ece, table.mce, table.brier) == (0.0, 0.0, 0.0)
    assert ConfidenceCounts().selection().curve() == []
    with pytest.raises(ValueError, match="n_bins"):
        ConfidenceCounts(0)


# -- models ----------------------------------------------------------------------------------------


def trained() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 5
    X = (np.eye(5)[y] * 2 + rng.normal(size=(300, 5))).astype(np.float32)
    return SoftmaxTreeClassifier(depth=1, max_sweeps=3, random_state=0).fit(X, y), X, y


@pytest.mark.parametrize("kind", ["list", "array", "csr", "csc", "pandas", "polars"])
def test_all_kinds_of_rows(kind):
    clf, X, y = trained()
    rows: Any = X
    if kind == "pandas":
        rows = pytest.importorskip("pandas").DataFrame(X).sample(frac=1.0, random_state=0)
        y, X = y[rows.index], X[rows.index]
    elif kind == "polars":
        rows = pytest.importorskip("polars").DataFrame(X)
    elif kind != "array":
        rows = X.tolist() if kind == "list" else getattr(sp, f"{kind}_matrix")(X)
    for model in (clf, clf.freeze()):
        found = evaluate(model, rows, y, top_k=2, batch_size=70)
        assert found.error == pytest.approx(np.mean(model.predict(X) != y))
        top, p = model.predict_topk(X, 2)
        assert found.top_k_error == pytest.approx(metrics.top_k_error(y, top))
        assert found.perplexity == pytest.approx(metrics.perplexity(model.label_proba(X, y)).value)
        held = metrics.perplexity(model.label_proba(X, y, smooth=False))
        assert (found.coverage, found.covered_perplexity) == pytest.approx(
            (held.coverage, held.value)
        )
        assert found.reliability.brier == pytest.approx(np.mean((p[:, 0] - (top[:, 0] == y)) ** 2))


def test_texts_and_models_that_make_rows_of_them():
    texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 10
    y = ["fracture", "fracture", "fever", "fever"] * 10
    features = TextFeatures(ngram_range=(1, 1)).fit(texts)
    clf = SoftmaxTreeClassifier(depth=1, random_state=0).fit(features.transform(texts), y)
    recipe = Recipe(features.n_features, None, features)
    model = clf.freeze().with_sections(**recipe.sections())
    wrong = [*y[:-1], "fracture"]
    found = evaluate(model, texts, wrong, batch_size=7)
    by_rows = evaluate(model, features.transform(texts), wrong, texts=texts)
    assert found.error == by_rows.error == pytest.approx(1 / 40)
    assert found.pairs[0].examples[0].text == "yellow fever"
    assert found.pairs == by_rows.pairs
    label_tree = LabelTreeClassifier(dim=8, arity=2, epochs=20, random_state=0).fit(texts, y)
    for one in (label_tree, label_tree.freeze()):
        assert evaluate(one, texts, wrong).pairs[0].examples[0].number == 39


def test_a_search_that_is_not_exact_has_the_confidence_of_what_it_finds():
    class Greedy(Fixed):
        def predict(self, X, *, n_jobs=1):
            return self.labels[np.zeros(len(X), dtype=int)]

    found = evaluate(Greedy(["a", "b"]), np.array([[1, 0.9]] * 4), ["a", "a", "a", "b"])
    assert found.reliability.confidence[7] == 0.5  # that of label_proba
    assert found.error == 0.25


@pytest.mark.parametrize(
    ("y", "more", "said"),
    [
        (["a"] * 3, {}, r"one label a row \(4\)"),
        (["a"] * 4, {"texts": ["one"]}, "one a row"),
        (["a"] * 4, {"batch_size": 0}, "batch_size"),
        (["a"] * 4, {"top_k": 0}, "top_k"),
    ],
)
def test_what_cannot_be_evaluated(y, more, said):
    with pytest.raises(ValueError, match=said):
        evaluate(Fixed(["a", "b"]), np.zeros((4, 2)), y, **more)


def test_no_rows_and_one_text():
    with pytest.raises(ValueError, match="no rows"):
        evaluate(Fixed(["a", "b"]), np.zeros((0, 2)), [])
    with pytest.raises(ValueError, match="got one text"):
        evaluate(Fixed(["a", "b"]), "text", ["a"])


# -- what is written -------------------------------------------------------------------------------


def hostile() -> Evaluation:
    """Return an evaluation in which every string is an attack."""
    labels = [f"{HOSTILE}{i}" for i in range(3)]
    tally = Tally(Fixed(labels))
    X = np.column_stack([np.arange(30) % 3, np.linspace(0.0, 1.0, 30)])
    ids = (np.arange(30) % 2).astype(np.int32)
    ids[::5] = -1
    tally.add(X, ids, [f"new {HOSTILE}"] * 30, np.arange(30), [f"text {HOSTILE}"] * 30)
    return tally.result()


def test_json_is_strict_and_whole():
    record = json.loads(hostile().to_json(), parse_constant=pytest.fail)
    assert {row["label"] for row in record["labels"]} == {f"{HOSTILE}{i}" for i in range(3)} | {
        f"new {HOSTILE}"
    }
    assert record["unknown"] == [{"label": f"new {HOSTILE}", "rows": 6}]
    assert record["confused"][0]["examples"][0]["text"] == f"text {HOSTILE}"
    assert sum(bin_["rows"] for bin_ in record["reliability"]) == 30
    assert record["macro"].keys() == {"precision", "recall", "f1"}


def test_infinite_perplexity_is_null():
    class Sure(Fixed):
        def label_proba(self, X, y, *, smooth=True, n_jobs=1):
            return np.zeros(len(X))

    found = evaluate(Sure(["a", "b"]), np.array([[0, 1.0]]), ["b"])
    assert found.perplexity == math.inf
    assert json.loads(found.to_json())["perplexity"] is None
    assert "inf" in page(found, "x")


def test_the_table_of_labels(tmp_path):
    found = hostile()
    path = tmp_path / "labels.csv"
    path.write_text("what was there")
    found.to_csv(path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["label"] for row in rows] == found.labels.labels
    assert [row["known"] for row in rows] == ["1", "1", "1", "0"]
    assert [float(row["f1"]) for row in rows] == found.labels.f1.tolist()


class Reader(HTMLParser):
    """Collects elements and attributes, and what is inside of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.within = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.within = tag == "script"
        if self.within:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.within = False

    def handle_data(self, data: str) -> None:
        if self.within:
            self.scripts[-1] += data


def test_the_page_holds_strings_as_strings(tmp_path):
    found = hostile()
    path = tmp_path / "page.html"
    found.to_html(path, title=HOSTILE)
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.tags.count("script") == 2
    assert "img" not in reader.tags
    names = {name for name, _ in reader.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & {"src", "href"}
    assert "url(" not in text
    assert "http://" not in text
    assert "https://" not in text
    rows = json.loads(reader.scripts[0])
    assert {row[0] for row in rows} == set(found.labels.labels)
    assert "{{" not in text


def test_the_page_allows_its_own_code_alone():
    reader = Reader()
    reader.feed(page(hostile(), "x"))
    digest = base64.b64encode(hashlib.sha256(reader.scripts[1].encode()).digest()).decode()
    (policy,) = (v for n, v in reader.attributes if n == "content" and v and "default-src" in v)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_a_page_of_very_many_labels_is_cut_and_says_so():
    n = MOST_LABELS + 10
    model = Fixed([f"{i:06}" for i in range(n)])
    rows = np.column_stack([np.arange(2 * n) % n, np.full(2 * n, 0.5)])
    y = model.labels[np.arange(2 * n) % n]
    y[:10] = model.labels[20]
    text = page(evaluate(model, rows, y), "many")
    assert f"the {MOST_LABELS:,} with the most rows" in text
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert len(json.loads(data[1])) == MOST_LABELS
    assert text.count("<tr>") < 200


def test_a_page_without_errors():
    found = evaluate(Fixed(["a", "b"]), np.array([[0, 1.0]] * 3), ["a"] * 3)
    assert "No label is taken for another" in page(found, "x")
    assert found.error == found.reliability.ece == 0.0


def test_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    from thinleaf.explain.reliability import write_figure

    found = hostile()
    ax = found.plot()
    assert ax.get_xlabel() == "confidence"
    assert found.plot(ax) is ax
    for name in ("a.svg", "a.png"):
        write_figure(ax, Path(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000

"""What is written, what is left out, and what is refused, without a browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.explain.explorer.test_block import unpacked
from tests.text_cases import made_texts, vowels
from thinleaf import LabelTreeClassifier, MACHClassifier, TextClassifier, load
from thinleaf.explain.explorer import NodeCounts, explore, rows_in_words


def blocks(path) -> dict[str, tuple[dict, dict]]:
    found = re.findall(r'id="block-(\w+)">([^<]*)<', path.read_text(encoding="utf-8"))
    return {name: unpacked(text) for name, text in found if text}


@pytest.fixture
def fitted():
    X, y = problem(0, n_classes=8, n_rows=240, spread=1.0)
    names = np.array([f"class {c}" for c in range(8)])
    return quick(depth=3).fit(X, names[y]), X, names[y]


def test_rows_and_errors_are_those_of_the_model(fitted, tmp_path):
    clf, X, y = fitted
    clf.explore(tmp_path / "tree.html", X, y)
    values, arrays = blocks(tmp_path / "tree.html")["tree"]
    model = clf.freeze()
    wrong = clf.predict(X) != y
    assert values["data"] == {"name": "data", "rows": 240, "labelled": 240, "wrong": wrong.sum()}
    leaves = NodeCounts(model).outline.leaf[model.apply(X)]
    assert np.array_equal(arrays["rows"], np.bincount(leaves, minlength=model.n_leaves))
    assert np.array_equal(arrays["wrong"], np.bincount(leaves[wrong], minlength=model.n_leaves))
    shown = rows_in_words(model, X)
    for example in values["examples"]:
        row = example["number"] - 1
        assert example["leaves"] == [leaves[row]]
        assert example["text"] == shown[row]
        assert example["label"] == y[row]
        assert example["wrong"] == wrong[row]


def test_estimators_and_frozen_models_give_the_same_page(fitted, tmp_path):
    clf, X, y = fitted
    first = clf.explore(tmp_path / "a.html", X, y, title="t")
    second = explore(clf.freeze(), tmp_path / "b.html", sp.csr_matrix(X).toarray(), y, title="t")
    content = (tmp_path / "a.html").read_bytes()
    assert content == (tmp_path / "b.html").read_bytes()
    assert first.nbytes == second.nbytes == len(content)
    assert first.notes == []


def test_no_examples_leave_no_data_in_the_page(tmp_path):
    texts, labels = made_texts(120)
    clf = TextClassifier(quick(), features="words", rejection=False, random_state=0)
    clf.fit(texts, labels).explore(tmp_path / "tree.html", texts, labels, n_examples=0)
    assert blocks(tmp_path / "tree.html")["tree"][0]["examples"] == []


def test_what_is_wrong_is_said(fitted, tmp_path):
    clf, X, y = fitted
    path = tmp_path / "tree.html"
    with pytest.raises(ValueError, match="has no tree to explore"):
        MACHClassifier().fit(X, y).explore(path)
    with pytest.raises(ValueError, match="240 rows in X, but 3 labels"):
        clf.explore(path, X, y[:3])
    with pytest.raises(ValueError, match="give X, too"):
        clf.explore(path, y=y)
    with pytest.raises(ValueError, match="max_mb must be above 0"):
        clf.explore(path, max_mb=0)
    with pytest.raises(OSError, match="does not exist"):
        clf.explore(tmp_path / "no" / "tree.html")
    assert not path.exists()


def test_labels_that_the_model_does_not_know_are_errors(fitted, tmp_path):
    clf, X, _ = fitted
    clf.explore(tmp_path / "tree.html", X, ["new"] * len(X))
    values, _ = blocks(tmp_path / "tree.html")["tree"]
    assert values["data"]["wrong"] == 240


def test_the_page_of_a_model_file_is_that_of_the_model(tmp_path):
    texts, labels = made_texts(120)
    clf = TextClassifier(quick(), features="both", rejection=False, random_state=0)
    clf.fit(texts, labels).save(tmp_path / "model")
    clf.explore(tmp_path / "a.html", texts, labels, title="t")
    load(tmp_path / "model").explore(tmp_path / "b.html", texts, labels, title="t")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_encoder_is_not_in_the_page(tmp_path):
    texts, labels = made_texts(120)
    clf = TextClassifier(quick(), features=vowels, rejection=False, random_state=0)
    clf.fit(texts, labels).explore(tmp_path / "tree.html", texts, labels)
    values, _ = blocks(tmp_path / "tree.html")["tree"]
    assert values["input"]["kind"] == "rows"
    assert "encoder" in values["input"]["why"]


def test_nothing_but_the_title_comes_from_data_outside_the_blocks(fitted, tmp_path):
    clf, X, y = fitted
    clf.explore(tmp_path / "tree.html", X, y, title="<b>&\"'")
    frame = re.sub(r"(id=\"block-\w+\">)[^<]*", r"\1", (tmp_path / "tree.html").read_text())
    assert "class 1" not in frame
    assert "<title>&lt;b&gt;&amp;&quot;&#x27;</title>" in frame
    policy = re.search('Content-Security-Policy" content="([^"]*)"', frame)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|\bsrc=|@import|innerHTML|eval\(", frame)


def test_label_trees_that_are_too_large_are_rounded(tmp_path):
    texts, labels = made_texts(200)
    clf = LabelTreeClassifier(dim=200, epochs=1, ngrams=2, random_state=0).fit(texts, labels)
    whole = clf.explore(tmp_path / "whole.html")
    assert not whole.approximate
    limit = 0.8e-6 * whole.nbytes
    page = clf.explore(tmp_path / "tree.html", max_mb=limit)
    assert page.approximate
    assert page.n_answering == page.n_leaves
    assert page.nbytes <= 1e6 * limit
    assert "approximate" in page.notes[0]
    values, arrays = blocks(tmp_path / "tree.html")["tree"]
    assert values["approximate"]
    assert "class_rows" not in arrays
    exact = clf.explore(tmp_path / "tree.html", max_mb=limit, exact=True)
    assert exact.n_answering == 0
    assert "nothing can be typed" in exact.notes[0]

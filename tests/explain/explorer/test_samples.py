"""Rows in words: what a page shows of them can be pasted into it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.text_cases import made_texts
from thinleaf import TextClassifier
from thinleaf.explain.explorer import rows_in_words


def test_rows_in_words_can_be_pasted():
    X, y = problem(0, n_classes=4, n_rows=40)
    model = quick().fit(X, y).freeze()
    dense = rows_in_words(model, X[:2])
    assert np.allclose([[float(v) for v in row.split(",")] for row in dense], X[:2])
    sparse = rows_in_words(model, sp.csr_matrix(np.array([[0.0, 2.5, 0.0, -1.0]])))
    assert list(sparse) == ["1:2.5, 3:-1"]
    named = rows_in_words(model, sp.csr_matrix(np.array([[1.0, 0.0]])), lambda f: f"f{f}")
    assert list(named) == ["f0:1"]


def test_long_rows_and_tables_are_not_shown():
    X, y = problem(0, n_classes=4, n_rows=40)
    model = quick().fit(X, y).freeze()
    assert list(rows_in_words(model, np.ones((2, 101)))) == [None, None]
    assert rows_in_words(model, sp.csr_matrix(np.ones((1, 41))))[0] is None
    texts, labels = made_texts(80)
    clf = TextClassifier(quick(), features="words", rejection=False, random_state=0)
    model = clf.fit(texts, labels).freeze()
    assert rows_in_words(model, np.array(texts)) == texts
    assert rows_in_words(model, {"title": texts}) is None


def test_rows_of_tables_are_their_cells():
    texts, labels = made_texts(80)
    table = {"age": np.arange(80) / 4.0, "title": texts}
    clf = TextClassifier(
        quick(), features="words", text_columns="title", numeric_columns="age", rejection=False,
        random_state=0,
    )  # fmt: skip
    shown = rows_in_words(clf.fit(table, labels).freeze(), table)
    assert shown[:5] == list(zip(texts, ["0", "0.25", "0.5", "0.75", "1"], strict=False))

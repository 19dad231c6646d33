"""Explanations of label trees add up to their nodes' scores, for rows and for texts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.explanation_cases import check_explanation
from thinleaf import LabelTreeClassifier, TextClassifier

TEXTS = ["a broken arm", "a broken leg", "high fever", "yellow fever at night", "a cold"] * 8
LABELS = ["arm", "leg", "fever", "yellow", "cold"] * 8


def rows(seed=0, n_rows=60, n_classes=9):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = np.eye(n_classes, 12)[y] + 0.2 * rng.normal(size=(n_rows, 12))
    return X.astype(np.float32), y


def fitted(X, y, arity, search="exact", **options):
    clf = LabelTreeClassifier(
        arity=arity, dim=6, epochs=6, search=search, random_state=0, **options
    )
    return clf.fit(X, y)


@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_rows(arity, make):
    X, y = rows()
    model = fitted(make(X), y, arity)
    for i in range(8):
        x = make(X)[i]
        e = model.explain(x, against=4, top=3)
        check_explanation(e, model, x, slack=40.0)
        assert e.label == model.predict(make(X)[i : i + 1])[0]
        path = model.model_.tree.path(int(np.searchsorted(model.classes_, e.label)))
        assert [(s.node, s.branch) for s in e.path.steps] == path
        p = np.prod([step.probability for step in e.path.steps])
        assert p == pytest.approx(e.probability, rel=1e-4)
        (route,) = e.against.routes
        assert route.probability == pytest.approx(e.against.answer.probability, rel=1e-4)
        assert e.to_dict() == model.freeze().explain(x, against=4, top=3).to_dict()
        if e.label != 4:
            fork = route.steps[route.fork]
            taken = e.path.steps[route.fork]
            assert fork.node == taken.node
            assert fork.branch != taken.branch


@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("search", ["exact", "greedy"])
def test_texts_have_their_terms(arity, search):
    model = fitted(TEXTS, LABELS, arity, search, ngrams=2)
    text = "A broken leg broken at night"
    e = model.explain(text, against="cold")
    assert e.label == model.predict([text])[0]
    names = {part.name for step in e.path.steps for part in step.margin.contributions}
    assert {"a", "broken", "leg", "a broken", "broken leg"} <= names
    assert [word.text for word in e.words] == text.split()
    total = sum(float(step.margin.amounts.sum()) for step in e.path.steps)
    assert sum(word.amount for word in e.words) == pytest.approx(total)
    assert not any(change.add for change in e.against.routes[0].changes)


def test_in_a_classifier_of_texts():
    model = TextClassifier(fitted(TEXTS[:5], LABELS[:5], 3)).fit(TEXTS, LABELS)
    e = model.explain("a broken leg")
    assert e.label == model.predict(["a broken leg"])[0]
    assert e.words


def test_one_label_needs_no_path():
    model = fitted(np.ones((4, 3)), ["only"] * 4, 2)
    e = model.explain(np.ones(3), against="only")
    assert (e.label, e.probability, e.path.steps) == ("only", 1.0, ())
    assert str(e)

"""Texts are explained in their words, whatever features are made of them."""

from __future__ import annotations

import numpy as np
import pytest

import thinleaf
from tests.explanation_cases import check_explanation
from thinleaf import LOMTreeClassifier, RecallTreeClassifier, SoftmaxTreeClassifier, TextClassifier
from thinleaf.text import TextFeatures

TEXTS = ["a broken arm", "a broken leg", "high fever", "yellow fever at night"] * 8
LABELS = ["arm", "leg", "fever", "yellow"] * 8
TEXT = "Broken leg, broken at  night"


def model_of(features="words", model=None):
    model = SoftmaxTreeClassifier(depth=1, max_sweeps=2) if model is None else model
    return TextClassifier(model, features, random_state=0, rejection=False).fit(TEXTS, LABELS)


@pytest.mark.parametrize("kind", ["tfidf", "chars", "both", "hashing"])
def test_words_share_what_their_terms_add(kind, tmp_path):
    model = model_of(TextFeatures(kind))
    e = model.explain(TEXT, against="fever")
    check_explanation(e, model, TEXT)
    assert [word.text for word in e.words] == ["Broken", "leg,", "broken", "at", "night"]
    assert all(TEXT[word.start : word.end] == word.text for word in e.words)
    answer, rival = e.path.candidates[:2]
    total = sum(float(step.margin.amounts.sum()) for step in e.path.steps)
    total += float(answer.score.amounts.sum() - rival.score.amounts.sum())
    assert sum(word.amount for word in e.words) == pytest.approx(total, abs=1e-9)
    model.save(tmp_path / "model")
    frozen = thinleaf.load(tmp_path / "model")
    assert frozen.explain(TEXT, against="fever").to_dict() == e.to_dict()


def test_terms_of_hashes_are_found_in_the_text():
    e = model_of(TextFeatures("hashing")).explain(TEXT)
    names = {part.name for step in e.path.steps for part in step.margin.contributions}
    names |= {part.name for part in e.path.candidates[0].score.contributions}
    assert {"broken", "leg", "broken leg"} <= names
    assert not any(name.startswith("bucket") for name in names)


@pytest.mark.parametrize("online", [RecallTreeClassifier, LOMTreeClassifier])
def test_online_trees(online):
    model = model_of(model=online(n_passes=3, random_state=0))
    frozen = model.freeze()
    e = model.explain(TEXT)
    check_explanation(e, frozen, TEXT)
    assert e.to_dict() == frozen.explain(TEXT).to_dict()
    before = model.explain("high fever").probability
    model.partial_fit(["high fever"] * 20, ["yellow"] * 20)
    assert model.explain("high fever").probability != before


def test_rows_and_columns_of_a_model_of_texts():
    model = model_of().freeze()
    indices, values = model.input.one(TEXT)
    e = model.explain(indices, values)
    assert e.text is None
    assert e.words == ()
    assert e.path.candidates[0].score.contributions[0].name in model.input.features.feature_names()
    table = {"title": TEXTS, "size": np.arange(32.0)}
    columns = TextClassifier(
        SoftmaxTreeClassifier(depth=1), "words", text_columns="title", numeric_columns="size",
        random_state=0, rejection=False,
    ).fit(table, LABELS)  # fmt: skip
    sample = {"title": "a broken leg", "size": 3.0}
    e = columns.explain(sample)
    check_explanation(e, columns, sample)
    scores = [s.margin for s in e.path.steps] + [c.score for c in e.path.candidates]
    assert any("size" in part.name for score in scores for part in score.contributions)


def test_a_text_without_words():
    e = model_of().explain("  ")
    assert e.words == ()
    assert str(e)

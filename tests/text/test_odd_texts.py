"""Texts that are no texts, or have no words: what is said, and what is done all the same."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import thinleaf
from thinleaf import RecallTreeClassifier, TextClassifier
from thinleaf.cli import app
from thinleaf.datasets.first_lines import evident_format
from thinleaf.text import choose_features

SIGNS = ["💳", "🏠💰", "✈️👨‍👩‍👧"] * 40
LABELS = ["card", "loan", "trip"] * 40


@pytest.mark.parametrize("times", [1, 5])
def test_texts_without_words_get_characters(times):
    texts, labels = SIGNS * times, LABELS * times
    assert choose_features(texts, labels, random_state=0).kind == "chars"
    clf = TextClassifier(rejection=False, random_state=0).fit(texts, labels)
    assert clf.score(texts, labels) == 1.0


def test_words_are_missed_with_a_hint():
    with pytest.raises(ValueError, match="no word; characters may do"):
        TextClassifier(features="words").fit(SIGNS, LABELS)


def test_an_empty_column_is_named():
    table = {"title": ["a card", "a loan", "a trip"] * 40, "note": [""] * 120}
    with pytest.raises(ValueError, match="column 'note': no terms"):
        TextClassifier(text_columns=["title", "note"]).fit(table, LABELS)


WRONG = [None, 1, float("nan"), pd.NA, b"a card", ["a card"], np.array(["a card"])]


@pytest.mark.parametrize("wrong", [*WRONG, pd.Series({"title": "a card", "amount": 1})])
@pytest.mark.parametrize("model", [None, RecallTreeClassifier(random_state=0)])
def test_one_text_must_be_one(wrong, model, tmp_path):
    texts = ["a card", "a loan", "a trip"] * 40
    clf = TextClassifier(model, features="words", rejection=False, random_state=0)
    clf.fit(texts, LABELS).save(tmp_path / "model")
    for one in (clf, thinleaf.load(tmp_path / "model")):
        for ask in (one.predict_one, partial(one.predict_topk_one, k=2)):
            with pytest.raises(ValueError, match="give one text, a str, or a row of features"):
                ask(wrong)


def test_records_with_line_breaks_are_no_lines(tmp_path):
    """A table whose columns are not known is not read as texts, one a line."""
    records = [line for i in range(20) for line in ('loan,e,"what', f'are the rates {i}"')]
    lines = ["group,extra,item", *records]
    assert evident_format(lines) == "csv"
    texts = [line for i in range(3) for line in (f'he said "{i}, well', 'and left"')]
    assert evident_format(texts) is None
    made = ["a card", "a loan", "a trip"] * 40
    model = tmp_path / "model"
    TextClassifier(features="words", rejection=False, random_state=0).fit(made, LABELS).save(model)
    result = CliRunner().invoke(app, ["predict", str(model), "-"], input="\n".join(lines))
    assert result.exit_code != 0
    assert "CSV" in result.output


def test_columns_of_numbers_alone_stay_as_they_were():
    table = {"title": ["a card", "a loan", "a trip"] * 40, "amount": np.arange(120)}
    clf = TextClassifier(
        features="words", text_columns="title", numeric_columns="amount", rejection=False
    )
    assert clf.fit(table, LABELS).score(table, LABELS) == 1.0

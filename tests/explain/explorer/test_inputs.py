"""What a page is told of texts is what the reader of Python works with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.estimator_cases import quick
from tests.text_cases import made_texts
from thinleaf import TextClassifier
from thinleaf.explain.explorer.inputs import _characters, feature_namer, page_input
from thinleaf.text.characters import character_kinds
from thinleaf.text.kernels.tokens import SPACE, WORD


def test_characters_are_those_of_the_reader():
    found = _characters()
    kinds = np.zeros(0x110000, dtype=np.uint8)
    for name, kind in (("word_runs", WORD), ("space_runs", SPACE)):
        for begin, end in found[name].reshape(-1, 2):
            kinds[begin:end] = kind
    assert np.array_equal(kinds, character_kinds())
    lower = dict(zip(found["upper"].tolist(), found["lower"].tolist(), strict=True))
    for code in range(0x110000):
        expected = chr(code).lower()
        if code == 0x130:
            assert expected == "i\u0307"
        else:
            assert chr(lower.get(code, code)) == expected


@pytest.fixture(scope="module")
def model():
    texts, labels = made_texts(120)
    clf = TextClassifier(quick(), features="both", rejection=False, random_state=0)
    return clf.fit(texts, labels).freeze()


def test_names_are_those_of_the_model(model):
    made = page_input(model, None)
    name = feature_namer(model, made, None)
    assert made.values["parts"][0]["features"] == model.n_features
    assert [name(f) for f in range(model.n_features)] == model.input.features.feature_names()
    spread = made.spread(model.n_features)
    assert spread.shape == (model.n_features,)
    assert np.all(spread > 0.0)


def test_texts_that_the_script_does_not_know_are_not_read(model):
    section = model.sections["text"]
    other = replace(section, metadata={**section.metadata, "version": 99})

    class Other:
        sections = {"text": other}  # noqa: RUF012
        feature_names = None
        n_features = model.n_features

    made = page_input(Other(), None)
    assert made.values["kind"] == "rows"
    assert "cannot make features" in made.values["why"]

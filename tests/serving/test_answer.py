"""Answers are those of the model, in the fields that were asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serving.models import (
    SAMPLES,
    TEXTS,
    label_tree,
    rejecting_model,
    row_model,
    text_model,
)
from thinleaf import SoftmaxTreeClassifier
from thinleaf.serving.answer import Answerer, answer
from thinleaf.serving.limits import Limits
from thinleaf.serving.request import RequestError
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import Recipe


def answerer_of(model: Any) -> Answerer:
    return Answerer(model, Recipe.of_model(model))


def ask(model: Any, content: dict[str, Any]) -> dict[str, Any]:
    found = answer(json.dumps(content).encode(), answerer_of(model), "v1", Limits())
    record: dict[str, Any] = json.loads(found.body)
    assert record.pop("model") == "v1"
    return record


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_answers_are_those_of_the_model(kind):
    make, sample = SAMPLES[kind]
    model = make()
    one, many = answerer_of(model).shape.fields
    top, p = model.predict_topk([sample], 2)
    labels, probabilities = top[0].tolist(), p[0].tolist()
    assert ask(model, {one: sample}) == {"label": labels[0]}
    assert ask(model, {one: sample, "proba": True}) == {
        "label": labels[0],
        "probability": probabilities[0],
    }
    assert ask(model, {one: sample, "top_k": 2}) == {"labels": labels}
    full = {"labels": labels, "probabilities": probabilities}
    assert ask(model, {one: sample, "top_k": 2, "proba": True}) == full
    assert ask(model, {many: [sample] * 3, "top_k": 2, "proba": True}) == {
        "predictions": [full] * 3
    }
    assert ask(model, {many: [sample]}) == {"predictions": [{"label": labels[0]}]}


@pytest.mark.parametrize("model", [text_model, label_tree])
def test_single_texts_and_batches_agree(model):
    texts = [*TEXTS[:6], "asdf qwerty", "", "a broken red fever " * 50]
    many = ask(model(), {"texts": texts, "top_k": 3, "proba": True})["predictions"]
    for text, expected in zip(texts, many, strict=True):
        assert ask(model(), {"text": text, "top_k": 3, "proba": True}) == expected


def test_improbable_answers_are_rejected():
    model = text_model()
    _, p = model.predict_topk(["asdf"], 1)
    below, above = float(p[0, 0]), min(1.0, float(p[0, 0]) + 1e-3)
    assert ask(model, {"text": "asdf", "min_proba": above}) == {"label": None, "rejected": True}
    kept = ask(model, {"text": "asdf", "min_proba": below, "proba": True})
    assert kept["rejected"] is False
    assert kept["probability"] == below
    found = answer(
        json.dumps({"texts": ["asdf", "a broken arm"], "min_proba": above, "top_k": 2}).encode(),
        answerer_of(model),
        "v1",
        Limits(),
    )
    assert (found.n_rows, found.n_rejected) == (2, 1)
    first, second = json.loads(found.body)["predictions"]
    assert first == {"labels": [], "rejected": True}
    assert len(second["labels"]) == 2
    assert second["rejected"] is False


def test_a_wanted_precision():
    """As ``predict(texts, reject=...)`` has it."""
    model = rejecting_model()
    texts = [*TEXTS[:6], "asdf qwerty", "", "high dry arm"]
    expected = model.predict(texts, reject=0.9).tolist()
    assert None in expected[6:8]
    found = ask(model, {"texts": texts, "reject": 0.9})["predictions"]
    assert [one["label"] for one in found] == expected
    assert [one["rejected"] for one in found] == [label is None for label in expected]
    for text, label in zip(texts, expected, strict=True):
        assert ask(model, {"text": text, "reject": 0.9})["label"] == label
    both = ask(model, {"texts": texts, "reject": 0.9, "min_proba": 1.0, "proba": True})
    assert all(one["rejected"] for one in both["predictions"])


def test_rows_of_entries_are_those_of_numbers():
    sparse = {"indices": [3, 1, 0], "values": [-1.5, 3, 0.5]}
    dense = SAMPLES["rows"][1]
    options = {"top_k": 3, "proba": True}
    expected = ask(row_model(), {"row": dense} | options)
    found = ask(row_model(), {"row": sparse} | options)
    assert found["labels"] == expected["labels"]
    assert found["probabilities"] == pytest.approx(expected["probabilities"])
    both = ask(row_model(), {"rows": [sparse, dense]} | options)["predictions"]
    assert both[0]["labels"] == both[1]["labels"] == expected["labels"]
    assert type(expected["labels"][0]) is int


def test_a_label_tree_over_features_of_texts():
    """Its file says how texts become rows, but it does not take them itself."""
    features = TextFeatures(ngram_range=(1, 1)).fit(TEXTS)
    clf = SoftmaxTreeClassifier(depth=1, max_sweeps=2, random_state=0)
    model = clf.fit(features.transform(TEXTS), TEXTS).freeze()
    recipe = Recipe(features.n_features, None, features)
    answerer = Answerer(model, recipe)
    assert answerer.shape.kind == "texts"
    expected = model.predict(features.transform(["dry skin"]))[0]
    assert answerer.labels(["dry skin"]) == [expected]
    assert answerer.top(["dry skin"], 2)[0][0][0] == expected


def test_what_a_model_refuses_is_the_askers_fault():
    class Picky:
        takes_texts, n_features, n_classes = False, 6, 4

        def predict(self, samples):
            raise ValueError("no")

    picky = Answerer(Picky(), Recipe(6))  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="no") as caught:
        answer(b'{"row": [1, 2, 3, 4, 5, 6]}', picky, "v1", Limits())
    assert caught.value.status == 422

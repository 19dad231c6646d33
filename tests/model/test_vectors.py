"""The test vectors of docs/format.md are what this library answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.data.vectors.make import EXPECTED, HERE, matrix_of
from thinleaf import load

VECTORS = json.loads(EXPECTED.read_text("utf-8"))


def inputs_of(expected: dict[str, Any], n_features: int) -> Any:
    if "texts" in expected:
        return expected["texts"]
    if "rows" in expected:
        return np.array(expected["rows"], dtype=np.float32)
    return matrix_of(expected["pairs"], n_features)


def test_every_file_has_its_answers():
    assert {path.stem for path in HERE.glob("*.thinleaf")} == VECTORS.keys()


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    model, expected = load(HERE / f"{name}.thinleaf"), VECTORS[name]
    X = inputs_of(expected, model.n_features)
    labels, p = model.predict_topk(X, len(expected["topk"][0]))
    assert labels.tolist() == expected["topk"]
    np.testing.assert_allclose(p, expected["topk_proba"], rtol=0.0, atol=1e-6)
    assert model.predict(X).tolist() == expected["predict"]
    for (idx, val), label in zip(expected.get("pairs", []), expected["predict"], strict=False):
        assert model.predict_one(np.array(idx, dtype=int), np.array(val, dtype="f4")) == label
    if "leaf_nodes" in expected:
        found = model.apply(X).reshape(len(labels), -1)
        assert found.tolist() == expected["leaf_nodes"]
    text_rows = expected.get("text_rows", [])
    for text, (idx, val) in zip(expected.get("texts", []), text_rows, strict=False):
        own_idx, own_val = model.input.one(text)
        assert own_idx.tolist() == idx
        np.testing.assert_allclose(own_val, val, rtol=1e-6)

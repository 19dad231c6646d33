"""Label trees in the form that is deployed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.estimator_cases import problem
from tests.estimators.test_label_trees import quick, texts
from thinleaf import load, load_estimator
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.file_parts import Section


@pytest.mark.parametrize("search", ["exact", "greedy"])
@pytest.mark.parametrize("kind", ["texts", "dense", "csr"])
def test_frozen_label_trees_predict_save_and_load(tmp_path, kind, search):
    X, y = texts() if kind == "texts" else problem(kind=kind)
    clf = quick(epochs=3, search=search).fit(X, y)
    model = clf.freeze()
    assert isinstance(model, FrozenLabelTree)
    assert model.takes_texts == (kind == "texts")
    model.with_summary(rows=9).with_sections(more=Section({"a": np.ones(2)}, {"b": 1})).save(
        tmp_path / "model"
    )
    again = load(tmp_path / "model")
    assert repr(again) == repr(model)
    assert again.summary["rows"] == 9
    assert again.summary["estimator"] == "LabelTreeClassifier"
    assert again.sections["more"].metadata == {"b": 1}
    for other in (
        model,
        again,
        load_estimator(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(other.predict(X), clf.predict(X))
        np.testing.assert_array_equal(other.predict_proba(X), clf.predict_proba(X))
        np.testing.assert_array_equal(other.label_proba(X, y), clf.label_proba(X, y))
        np.testing.assert_array_equal(other.predict(X, n_jobs=2), clf.predict(X))
        for i in range(4):
            sample = (X[i],) if kind != "csr" else (X[i].indices, X[i].data)
            assert other.predict_one(*sample) == clf.predict(X[i : i + 1])[0]
            assert other.predict_topk_one(*sample, k=2) == clf.predict_topk_one(*sample, k=2)


def test_a_label_tree_has_no_beam_and_no_small_weights():
    clf = quick(epochs=1).fit(*texts())
    model = clf.freeze()
    assert (model.beam, model.temperature) == (1, 1.0)
    assert not hasattr(model, "with_beam")
    for options in ({"beam": 3}, {"weights": "int8"}):
        with pytest.raises(ValueError, match="for softmax trees"):
            clf.freeze(**options)


def test_what_a_frozen_label_tree_refuses():
    model = quick(epochs=1).fit(*texts()).freeze()
    with pytest.raises(ValueError, match="fitted to texts"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="must be a string"):
        model.predict_one(np.zeros(3))
    rows = quick(epochs=1).fit(*problem()).freeze()
    with pytest.raises(ValueError, match="for models of texts"):
        rows.predict_one("a text")
    with pytest.raises(ValueError, match="features, but the model expects"):
        rows.predict(np.zeros((2, 99)))

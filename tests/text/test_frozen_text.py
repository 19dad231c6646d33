"""Models that take texts: as rows would have it, in every form, from file and pickle."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import thinleaf
from tests.text_cases import made_texts
from thinleaf import FrozenTextTree, FrozenTree, ModelFileError, SoftmaxTreeClassifier
from thinleaf.model.file_parts import Section
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import Recipe

TEXTS, LABELS = made_texts(120)


@pytest.fixture(scope="module", params=["tfidf", "chars", "both", "hashing"])
def made(request, tmp_path_factory):
    """Return a model as loaded, and the features that it was trained with."""
    features = TextFeatures(request.param, n_buckets=256).fit(TEXTS)
    clf = SoftmaxTreeClassifier(depth=1, max_sweeps=2, random_state=0)
    clf.fit(features.transform(TEXTS), LABELS)
    path = tmp_path_factory.mktemp("text") / "model"
    clf.freeze().with_sections(text=Section(*features.to_arrays())).save(path)
    return thinleaf.load(path), features


def test_texts_are_answered_as_their_rows(made):
    model, features = made
    assert type(model) is FrozenTextTree
    assert model.takes_texts
    X = features.transform(TEXTS)
    assert isinstance(model, FrozenTree)
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        given, expected = getattr(model, method)(TEXTS), getattr(model, method)(X)
        np.testing.assert_array_equal(given, expected)
    for given, expected in zip(model.predict_topk(TEXTS, 3), model.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(given, expected)
    sparse = model.predict_proba_sparse(TEXTS)
    np.testing.assert_array_equal(sparse.toarray(), model.predict_proba_sparse(X).toarray())
    np.testing.assert_array_equal(model.label_proba(TEXTS, LABELS), model.label_proba(X, LABELS))
    np.testing.assert_array_equal(model.predict(TEXTS, n_jobs=2), model.predict(X))


def test_one_text_is_answered_as_many(made):
    model, features = made
    for beam in (1, 3):
        other = model.with_beam(beam)
        assert [other.predict_one(text) for text in TEXTS] == other.predict(TEXTS).tolist()
        labels, p = other.predict_topk(TEXTS[:5], 2)
        for i, text in enumerate(TEXTS[:5]):
            top = other.predict_topk_one(text, k=2)
            assert [label for label, _ in top] == labels[i].tolist()
            np.testing.assert_array_equal([value for _, value in top], p[i])
        row = features.row_of(TEXTS[0])
        assert other.predict_one(*row) == other.predict_one(TEXTS[0])


def test_other_forms_of_a_model_take_texts(made, tmp_path):
    model, _ = made
    beam = model.with_beam(2)
    beam.save(tmp_path / "again")
    forms = {
        "beam": beam,
        "calibrated": beam.calibrated(TEXTS, LABELS),
        "int8": model.quantized("int8"),
        "pickle": pickle.loads(pickle.dumps(model)),
        "file": thinleaf.load(tmp_path / "again"),
        "summary": model.with_summary(more=1),
    }
    for name, form in forms.items():
        assert type(form) is FrozenTextTree, name
        assert form.predict_one(TEXTS[0]) == form.predict(TEXTS[:1])[0], name
    assert forms["beam"].input is model.input, "features are made once"
    assert forms["file"].beam == 2


def test_input_as_users_have_it(made):
    model, _ = made
    expected = model.predict(TEXTS).tolist()
    given = [
        tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pl.Series(TEXTS), iter(TEXTS)
    ]  # fmt: skip
    pandas = pytest.importorskip("pandas")
    given += [pandas.Series(TEXTS), pandas.Series(TEXTS, dtype="string")]
    for texts in given:
        assert model.predict(texts).tolist() == expected
    assert model.predict([]).shape == (0,)
    assert model.predict(np.array([""])).shape == (1,)


def test_arrow_columns(made):
    pa = pytest.importorskip("pyarrow")
    model, _ = made
    for column in (pa.array(TEXTS), pa.chunked_array([TEXTS[:50], TEXTS[50:]])):
        assert model.predict(column).tolist() == model.predict(TEXTS).tolist()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("my card", "got one string"),
        (["a", None], "number 1 is missing"),
        (["a", float("nan")], "number 1 is missing"),
        (["a", 3], "number 1 is 3, a int"),
        (3, "list of strings, got int"),
        ({"title": ["a"]}, "one column of strings"),
        (np.array([["a"]]), "not texts|one axis|convert"),
    ],
)
def test_what_is_no_text_is_refused(made, texts, message):
    with pytest.raises(ValueError, match=message):
        made[0].predict(texts)


def test_rows_are_still_checked(made):
    model, features = made
    with pytest.raises(ValueError, match="features, but the model expects"):
        model.predict(sp.csr_array((2, features.n_features + 1)))
    with pytest.raises(ValueError, match="a sample must be a text"):
        model.predict_one({"title": "a"})


def test_a_model_of_rows_says_that_it_takes_no_texts():
    clf = SoftmaxTreeClassifier(depth=0).fit(np.eye(4), [0, 1, 2, 3])
    for texts in (["a"], np.array(["a"], dtype=object)):
        with pytest.raises(ValueError, match="rows of features, not texts"):
            clf.freeze().predict(texts)


def test_damaged_features_are_found_when_texts_come(made):
    model, features = made
    metadata = features.to_arrays()[1] | {"version": 99}
    bad = model.with_sections(text=Section({}, metadata))
    with pytest.raises(ModelFileError, match="no valid recipe"):
        bad.predict(["a"])
    assert bad.predict(features.transform(["a"])).shape == (1,)


def test_the_recipe_of_a_loaded_model_shares_its_features(made):
    model, features = made
    recipe = Recipe.of_model(model)
    assert recipe.text is model.input.features
    assert recipe.feature_name(3) == (
        "bucket 3" if features.kind == "hashing" else features.feature_names()[3]
    )

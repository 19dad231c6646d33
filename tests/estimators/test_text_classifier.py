"""TextClassifier: scikit-learn's conventions, every model, columns, encoders, files, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

import thinleaf
from tests.text_cases import made_texts, vowels
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    DoubleSamplingClassifier,
    FlatSoftmaxClassifier,
    FrozenLabelTree,
    FrozenTextTree,
    LabelTreeClassifier,
    LOMTreeClassifier,
    MACHClassifier,
    ModelFileError,
    OneVsAllClassifier,
    OnlineOneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
    TextClassifier,
)
from thinleaf.cli import app
from thinleaf.text.features import TextFeatures

TEXTS, LABELS = made_texts(160)
FRAME = pd.DataFrame(
    {"title": TEXTS, "body": TEXTS[::-1], "price": np.arange(160.0), "label": LABELS}
)
COLUMNS = {"text_columns": ["title", "body"], "numeric_columns": ["price"]}
STORED = [
    SoftmaxTreeClassifier(depth=1, max_sweeps=2),
    SoftmaxForestClassifier(SoftmaxTreeClassifier(depth=1, max_sweeps=2), n_estimators=2),
    FlatSoftmaxClassifier(),
    OneVsAllClassifier(),
    RecallTreeClassifier(),
    LOMTreeClassifier(),
    OnlineOneVsAllClassifier(),
]


def quick(**options) -> TextClassifier:
    model = SoftmaxTreeClassifier(depth=1, max_sweeps=2)
    return TextClassifier(model, **({"random_state": 0} | options))


def tables() -> dict[str, object]:
    return {
        "pandas": FRAME,
        "polars": pl.DataFrame(FRAME.to_dict("list")),
        "dict": FRAME.to_dict("list"),
        "records": FRAME.to_dict("records"),
    }


def answers(model, X) -> list:
    labels, p = model.predict_topk(X, 2)
    return [model.predict(X).tolist(), labels.tolist(), p.tolist(), model.predict_proba(X).tolist()]


# -- conventions -----------------------------------------------------------------------------------


def test_scikit_learn_checks():
    with pytest.warns(Warning, match="Can't test estimator"):
        check_estimator(TextClassifier())


def test_parameters():
    clf = quick(features="words")
    again = clone(clf)
    assert again.get_params()["model__depth"] == 1
    again.set_params(model__depth=0, features="chars")
    assert (again.model.depth, again.features, clf.model.depth) == (0, "chars", 1)
    assert "TextClassifier" in repr(again)
    with pytest.raises(NotFittedError):
        clf.predict(["a"])
    with pytest.raises(NotFittedError):
        clf.freeze()


def test_it_predicts_and_is_scored():
    clf = TextClassifier(random_state=0).fit(TEXTS, LABELS)
    assert isinstance(clf.model_, AdaptiveSoftmaxTreeClassifier)
    assert clf.classes_.tolist() == sorted(set(LABELS))
    assert clf.score(TEXTS, LABELS) > 0.9
    assert clf.predict_one(TEXTS[0]) == clf.predict(TEXTS[:1])[0]
    assert clf.predict_topk_one(TEXTS[0], k=2)[0][0] == clf.predict_one(TEXTS[0])
    P = clf.predict_proba_sparse(TEXTS[:3])
    assert P.shape == (3, 4)
    np.testing.assert_array_equal(
        clf.label_proba(TEXTS[:2], LABELS[:2]),
        clf.predict_proba(TEXTS[:2])[[0, 1], np.searchsorted(clf.classes_, LABELS[:2])],
    )
    assert clf.model is None, "the model that was given stays as it is"


def test_searches_and_cross_validation():
    scores = cross_val_score(quick(), TEXTS, LABELS, cv=2)
    assert scores.min() > 0.6
    search = GridSearchCV(quick(), {"features": ["words", "chars"]}, cv=2).fit(TEXTS, LABELS)
    assert search.predict(TEXTS[:1]).shape == (1,)


@pytest.mark.parametrize("features", ["auto", "words", "chars", "both", "hashing"])
def test_features_by_name(features):
    clf = quick(features=features).fit(TEXTS, LABELS)
    kind = {"words": "tfidf"}.get(features, features)
    assert kind in ("auto", clf.input_.features.kind)
    assert clf.score(TEXTS, LABELS) > 0.8


def test_given_features_stay_as_they_are():
    features = TextFeatures(ngram_range=(1, 1), min_df=1)
    clf = quick(features=features).fit(TEXTS, LABELS)
    assert clf.input_.features.ngram_range == (1, 1)
    with pytest.raises(NotFittedError):
        features.transform(["a"])


def test_seed_and_threads_go_to_the_model():
    clf = quick(random_state=3, n_jobs=2).fit(TEXTS, LABELS)
    assert (clf.model_.random_state, clf.model_.n_jobs) == (3, 2)
    own = TextClassifier(SoftmaxTreeClassifier(depth=1, random_state=5), random_state=3)
    assert own.fit(TEXTS, LABELS).model_.random_state == 5
    for other in (quick(random_state=3), quick(random_state=3, n_jobs=2)):
        np.testing.assert_array_equal(
            other.fit(TEXTS, LABELS).predict_proba(TEXTS), clf.predict_proba(TEXTS)
        )


def test_weights_are_used():
    weight = np.array([1.0 if label != "card" else 0.0 for label in LABELS])
    clf = quick(rejection=False).fit(TEXTS, LABELS, sample_weight=weight)
    assert "card" not in clf.predict(TEXTS).tolist()


# -- models and files ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", STORED, ids=lambda model: type(model).__name__)
def test_every_model_in_a_file(model, tmp_path):
    clf = TextClassifier(model, random_state=0).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model", trainable=True)
    loaded, again = thinleaf.load(tmp_path / "model"), thinleaf.load_estimator(tmp_path / "model")
    assert type(loaded) is FrozenTextTree
    assert type(again) is TextClassifier
    assert answers(loaded, TEXTS) == answers(clf.freeze(), TEXTS)
    assert answers(again, TEXTS) == answers(clf, TEXTS)
    assert again.get_params(deep=False)["random_state"] == 0
    clf.save(tmp_path / "small")
    with pytest.raises(ModelFileError, match="trainable=True"):
        thinleaf.load_estimator(tmp_path / "small")
    again.fit(TEXTS, LABELS)
    assert answers(again, TEXTS) == answers(clf, TEXTS)


@pytest.mark.parametrize("model", [MACHClassifier(4, 3), DoubleSamplingClassifier()])
def test_models_for_comparison_cannot_be_stored(model, tmp_path):
    clf = TextClassifier(model, random_state=0).fit(TEXTS, LABELS)
    assert clf.predict_one(TEXTS[0]) == clf.predict(TEXTS[:1])[0]
    with pytest.raises(ValueError, match="cannot be frozen"):
        clf.save(tmp_path / "model")


def test_label_trees_take_texts_themselves(tmp_path):
    model = LabelTreeClassifier(dim=8, epochs=5)
    clf = TextClassifier(model, random_state=0).fit(TEXTS, LABELS)
    assert clf.input_ is None
    clf.save(tmp_path / "model")
    loaded = thinleaf.load(tmp_path / "model")
    assert type(loaded) is FrozenLabelTree
    assert loaded.predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()
    assert clf.predict_one(TEXTS[0]) == clf.predict(TEXTS[:1])[0]
    with pytest.raises(ValueError, match="leave out features"):
        TextClassifier(model, "words").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="reject"):
        clf.predict(TEXTS, reject=0.9)


def test_frozen_forms(tmp_path):
    clf = TextClassifier(random_state=0).fit(TEXTS, LABELS)
    small = clf.freeze(beam=2, weights="int8")
    assert (small.beam, small.packed.weights) == (2, "int8")
    assert clf.freeze(beam="auto").beam == clf.model_.beam_
    assert pickle.loads(pickle.dumps(clf)).predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()


def test_online_models_go_on():
    clf = TextClassifier(RecallTreeClassifier(), random_state=0)
    with pytest.raises(ValueError, match="call fit with some texts first"):
        clf.partial_fit(TEXTS, LABELS)
    clf.fit(TEXTS, LABELS)
    n_examples = clf.model_.n_examples_
    clf.partial_fit(TEXTS[:10], LABELS[:10])
    assert clf.model_.n_examples_ == n_examples + 10
    assert not hasattr(quick(), "partial_fit")


def test_the_command_line_takes_the_file(tmp_path):
    path, data = tmp_path / "model", tmp_path / "data.tsv"
    clf = TextClassifier(random_state=0).fit(TEXTS, LABELS)
    clf.save(path)
    lines = [f"{label}\t{text}" for label, text in zip(LABELS, TEXTS, strict=True)]
    data.write_text("\n".join(lines) + "\n")
    for verb in ("evaluate", "inspect", "predict"):
        result = CliRunner().invoke(app, [verb, str(path), str(data), "--quiet"])
        assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == clf.predict(TEXTS).tolist()


# -- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tables())
def test_tables(kind, tmp_path):
    table = tables()[kind]
    clf = quick(**COLUMNS).fit(table, LABELS)
    first = quick(**COLUMNS).fit(FRAME, LABELS)
    assert answers(clf, table) == answers(first, FRAME)
    clf.save(tmp_path / "model", trainable=True)
    loaded, again = thinleaf.load(tmp_path / "model"), thinleaf.load_estimator(tmp_path / "model")
    assert answers(loaded, table) == answers(clf, table)
    assert again.predict(table).tolist() == clf.predict(table).tolist()
    sample = FRAME.to_dict("records")[0]
    assert loaded.predict_one(sample) == clf.predict_one(sample) == clf.predict(FRAME[:1])[0]
    assert loaded.predict_topk_one(sample, k=2)[0][0] == clf.predict_one(sample)
    name = loaded.input.feature_name
    assert name(0).startswith("title: ")
    assert name(loaded.n_features - 1) == "price"


def test_arrow_tables():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(FRAME.to_dict("list"))
    clf = quick(**COLUMNS).fit(table, table["label"])
    assert answers(clf, table) == answers(quick(**COLUMNS).fit(FRAME, LABELS), FRAME)


def test_each_column_has_a_block_of_features():
    clf = quick(features="words", **COLUMNS).fit(FRAME, LABELS)
    X = clf._rows(FRAME)
    words = TextFeatures().fit(TEXTS)
    assert X.n_features == 2 * words.n_features + 1
    from thinleaf.arrays.rows import as_matrix

    dense = as_matrix(X).toarray()
    np.testing.assert_array_equal(dense[:, : words.n_features], words.transform(TEXTS).toarray())
    np.testing.assert_allclose(dense[:, -1].mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(dense[:, -1].std(), 1.0, atol=1e-6)


def test_one_named_column_also_comes_alone():
    clf = quick(text_columns="title").fit(FRAME, LABELS)
    assert clf.predict(TEXTS).tolist() == clf.predict(FRAME).tolist()
    assert clf.predict_one(TEXTS[0]) == clf.predict_one({"title": TEXTS[0]})


def test_columns_reject_too():
    texts, labels = made_texts(600)
    table = {"title": texts, "price": list(range(600))}
    clf = quick(text_columns="title", numeric_columns="price").fit(table, labels)
    odd = {"title": ["qwerty asdf", ""], "price": [1, 2]}
    assert clf.predict(odd, reject=0.8).tolist() == [None, None]


# -- encoders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [{}, {"text_columns": ["title"], "numeric_columns": ["price"]}])
def test_encoders(columns, tmp_path):
    X = FRAME if columns else TEXTS
    clf = quick(features=vowels, **columns).fit(X, LABELS)
    clf.save(tmp_path / "model", trainable=True)
    content = (tmp_path / "model").read_bytes()
    assert b"vowels" in content
    assert b"tests" not in content, "a name, and never a path"
    bare = thinleaf.load(tmp_path / "model")
    with pytest.raises(ValueError, match="attach it with load"):
        bare.predict(X)
    if not columns:
        rows = vowels(TEXTS)
        assert bare.predict(rows).tolist() == clf.predict(TEXTS).tolist()
    loaded = thinleaf.load(tmp_path / "model", encoder=vowels)
    assert answers(loaded, X) == answers(clf, X)
    assert answers(bare.with_encoder(vowels).with_beam(1), X) == answers(clf, X)
    again = thinleaf.load_estimator(tmp_path / "model", encoder=vowels)
    assert answers(again.fit(X, LABELS), X) == answers(clf, X)
    without = thinleaf.load_estimator(tmp_path / "model")
    with pytest.raises(ValueError, match="holds no encoder"):
        without.fit(X, LABELS)


def test_another_encoder_is_refused(tmp_path):
    quick(features=vowels).fit(TEXTS, LABELS).save(tmp_path / "model")
    with pytest.raises(ValueError, match="is not the one"):
        thinleaf.load(tmp_path / "model", encoder=lambda texts: 2 * vowels(texts))
    with pytest.raises(ValueError, match="gives 3 features"):
        thinleaf.load(tmp_path / "model", encoder=lambda texts: vowels(texts)[:, :3])
    with pytest.raises(ValueError, match=r"must be callable.*SentenceEncoder makes one"):
        thinleaf.load(tmp_path / "model", encoder="models/all-MiniLM-L6-v2")
    thinleaf.load(tmp_path / "model", encoder=lambda texts: vowels(texts) * (1 + 1e-6))
    quick().fit(TEXTS, LABELS).save(tmp_path / "words")
    with pytest.raises(ValueError, match="takes no encoder"):
        thinleaf.load(tmp_path / "words", encoder=vowels)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda texts: np.ones(len(texts)), "shape"),
        (lambda texts: np.ones((1, 3)), "shape"),
        (lambda texts: np.full((len(texts), 2), np.nan), "NaN"),
        (lambda texts: np.array([["a"]] * len(texts)), "real numbers"),
    ],
)
def test_encoders_that_give_no_rows(encoder, message):
    with pytest.raises(ValueError, match=message):
        quick(features=encoder).fit(TEXTS, LABELS)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("one text", LABELS, "got one string"),
        ([None, *TEXTS[1:]], LABELS, "number 0 is missing"),
        ([*TEXTS[:-1], float("nan")], LABELS, "number 159 is missing"),
        ([1, *TEXTS[1:]], LABELS, "number 0 is 1"),
        (TEXTS, LABELS[:3], "160 texts, but y has shape"),
        (TEXTS, None, "y is None"),
        (TEXTS, [None] * 160, "missing labels"),
        ([], [], "no texts to learn from"),
        (FRAME, LABELS, "name text_columns"),
        (np.ones((160, 2)), LABELS, "one axis"),
    ],
)
def test_bad_input(X, y, message):
    clf = quick()
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y)
    assert not hasattr(clf, "model_")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([b"a card"], "number 0 is b'a card'"),
        ([["a card"]], r"number 0 is \['a card'\]"),
        ([np.array(["a card"])], "number 0 is array"),
        (np.array([["a card"]]), "one axis"),
        ([pd.NA], "number 0 is missing"),
    ],
)
def test_texts_are_no_rows(X, message, tmp_path):
    clf = quick(features="words").fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    for model in (clf, clf.freeze(), thinleaf.load(tmp_path / "model")):
        with pytest.raises(ValueError, match=message):
            model.predict(X)


def test_texts_without_terms():
    with pytest.raises(ValueError, match=r"no term"):
        quick(features="words").fit(["!", "?"] * 10, [0, 1] * 10)
    with pytest.raises(ValueError, match="lower min_df"):
        quick(features="words").fit([f"w{i}" for i in range(10)], [0, 1] * 5)


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"text_columns": "name"}, FRAME, "no column 'name'; it has"),
        ({"text_columns": "title", "numeric_columns": "body"}, FRAME, "must hold numbers"),
        ({"text_columns": "price"}, FRAME, "column 'price' must be strings"),
        ({"text_columns": "title"}, TEXTS, "are of a table"),
        ({"numeric_columns": "price"}, FRAME, "name these, too"),
        ({"text_columns": ["title", "title"]}, FRAME, "each of them once"),
        ({"text_columns": [1]}, FRAME, "by name"),
        (
            {"text_columns": "title", "numeric_columns": "price"},
            FRAME.assign(price=np.nan),
            "missing, NaN or infinite in row 0",
        ),
        (
            {"text_columns": "a", "numeric_columns": "n"},
            {"a": TEXTS, "n": [10**400] * 160},
            "column 'n' must hold numbers",
        ),
        ({"text_columns": "a"}, {"a": ["x"] * 3}, "there are 3 texts"),
    ],
)
def test_bad_tables(options, table, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(table, LABELS)


def test_bad_parameters():
    for bad in ({"model": 3}, {"features": "letters"}, {"rejection": 2}, {"n_jobs": "all"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            TextClassifier(**bad).fit(TEXTS, LABELS)


# -- what is learned later, labels that cannot be kept, label trees --------------------------------


@pytest.mark.parametrize(
    "features",
    ["hashing", TextFeatures("hashing", n_buckets=256), vowels],
    ids=["hashing", "features", "encoder"],
)
def test_features_that_learn_nothing_need_no_fit(features):
    clf = TextClassifier(RecallTreeClassifier(), features, random_state=0)
    for begin in range(0, 160, 40):
        clf.partial_fit(TEXTS[begin : begin + 40], LABELS[begin : begin + 40])
    assert clf.model_.n_examples_ == 160
    assert np.mean(clf.predict(TEXTS) == np.array(LABELS)) > 0.5
    np.testing.assert_array_equal(clf.freeze().predict(TEXTS), clf.predict(TEXTS))


def test_hashed_columns_need_no_fit_and_numbers_do():
    columns = TextClassifier(RecallTreeClassifier(), "hashing", text_columns=["title", "body"])
    assert columns.partial_fit(FRAME, LABELS).predict(FRAME).shape == (160,)
    with pytest.raises(ValueError, match="without numeric_columns"):
        TextClassifier(RecallTreeClassifier(), "hashing", **COLUMNS).partial_fit(FRAME, LABELS)


def test_when_to_reject_is_learned_again():
    texts, labels = made_texts(400)
    clf = TextClassifier(RecallTreeClassifier(), random_state=0).fit(texts, labels)
    assert clf.rejection_ is not None
    clf.partial_fit(texts[:10], labels[:10])
    with pytest.raises(ValueError, match=r"partial_fit has changed it since; call fit_rejection"):
        clf.predict(texts, reject=0.5)
    with pytest.raises(ValueError, match="50 or more texts"):
        clf.fit_rejection(texts[:9], labels[:9])
    others, right = made_texts(300, seed=1)
    clf.fit_rejection(others, right)
    answers = clf.predict(["qq ww zz", *texts], reject=0.6)
    assert answers[0] is None
    known = answers[1:] != None  # noqa: E711
    assert known.sum() > 100
    assert np.mean(answers[1:][known] == np.array(labels)[known]) > 0.6


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b\ud800"] * 20, "half of a surrogate pair"),
        (np.array(["a", "b\ud800"] * 20, dtype=object), "half of a surrogate pair"),
        (np.array([1, 2**63 + 1] * 20, dtype=np.uint64), r"below 2\^63"),
        ([1, "a"] * 20, "some are str, others int"),
        (pd.Series([1, "a"] * 20), "some are str, others int"),
        (["a", float("nan")] * 20, "missing labels"),
    ],
    ids=["surrogate", "object", "uint64", "mixed", "series", "nan"],
)
@pytest.mark.parametrize("model", [SoftmaxTreeClassifier(), LabelTreeClassifier()], ids=["st", "l"])
def test_labels_that_no_file_holds_are_refused_at_once(labels, message, model):
    with pytest.raises(ValueError, match=message):
        TextClassifier(model).fit(TEXTS[:40], labels)
    with pytest.raises(ValueError, match=message):
        clone(model).fit(np.eye(40), labels)


def test_label_trees_come_back_and_reject(tmp_path):
    texts, labels = made_texts(400)
    model = LabelTreeClassifier(dim=8, epochs=5)
    clf = TextClassifier(model, random_state=0).fit(texts, labels)
    asked = ["zz qq ww", "", "please help with my stolen card pin"]
    answers = clf.predict(asked, reject=0.5).tolist()
    assert answers == [None, None, "card"]
    clf.save(tmp_path / "model")
    loaded, again = thinleaf.load(tmp_path / "model"), thinleaf.load_estimator(tmp_path / "model")
    assert isinstance(loaded, FrozenLabelTree)
    assert isinstance(again, TextClassifier)
    assert again.get_params()["model__dim"] == 8
    for other in (loaded, again):
        assert other.predict(asked, reject=0.5).tolist() == answers
        assert [other.predict_one(text, reject=0.5) for text in asked] == answers
        np.testing.assert_array_equal(other.confidence(texts), clf.confidence(texts))
    few = TextClassifier(model).fit(TEXTS, LABELS).freeze()
    with pytest.raises(ValueError, match="does not know when to reject: train a TextClassifier"):
        few.predict(TEXTS, reject=0.5)
    with pytest.raises(ValueError, match="does not know when to reject"):
        clone(model).fit(TEXTS, LABELS).freeze().predict_one(TEXTS[0], reject=0.5)

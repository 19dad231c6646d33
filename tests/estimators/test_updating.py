"""Batch trees go on learning: new rows, new classes, and classes that are forgotten."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
    TextClassifier,
    load,
    load_estimator,
)

MODELS = {
    "tree": lambda: SoftmaxTreeClassifier(depth=2, max_sweeps=3, random_state=0),
    "adaptive": lambda: AdaptiveSoftmaxTreeClassifier(
        initial_depth=1, max_rounds=1, random_state=0
    ),
    "flat": lambda: SoftmaxTreeClassifier(depth=0, random_state=0),
    "forest": lambda: SoftmaxForestClassifier(
        SoftmaxTreeClassifier(depth=1, max_sweeps=2), n_estimators=2, max_features=0.7,
        random_state=0,
    ),
}  # fmt: skip
EVERY = pytest.mark.parametrize("name", MODELS)
KINDS = pytest.mark.parametrize("kind", ["dense", "sparse"])


def made(classes, n, seed, kind):
    """Return rows around centres that depend on the class alone, and labels."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((12, 8)) * 3
    y = np.repeat(classes, n)
    X = centres[y] + rng.standard_normal((y.size, 8))
    if kind == "sparse":
        X = sp.csr_matrix(np.where(np.abs(X) < 0.8, 0.0, X))
    return X.astype(np.float32), np.array([f"c{i:02}" for i in y])


@pytest.fixture(scope="module")
def fitted():
    """Return models that know classes 1 to 9, fitted once."""
    kept = {}

    def of(name, kind):
        if (name, kind) not in kept:
            kept[name, kind] = MODELS[name]().fit(*made(range(1, 10), 25, 0, kind))
        return copy.deepcopy(kept[name, kind])

    return of


@KINDS
@EVERY
def test_new_classes_are_learned_and_old_ones_stay(fitted, name, kind):
    model = fitted(name, kind)
    old_X, old_y = made(range(1, 10), 20, 1, kind)
    before = model.score(old_X, old_y)
    model.update(*made([0, 5, 10], 20, 2, kind))
    report = model.update_
    assert report.new_classes == ["c00", "c10"]
    assert report.n_rows == 60
    assert report.n_remembered == 225
    assert report.n_leaves > 0
    assert report.error_after < report.error_before
    assert model.classes_.tolist() == [f"c{i:02}" for i in range(11)]
    assert model.score(*made([0, 10], 100, 3, kind)) > 0.85
    assert model.score(old_X, old_y) > before - 0.06
    p = model.predict_proba(old_X)
    assert p.shape == (180, 11)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(old_X))
    assert "2 new classes" in str(report)


@KINDS
@EVERY
def test_a_model_of_a_file_learns_the_same(fitted, name, kind, tmp_path):
    model = fitted(name, kind)
    model.save(tmp_path / "m.thinleaf", trainable=True)
    again = load_estimator(tmp_path / "m.thinleaf")
    X, y = made([0, 3], 15, 2, kind)
    test = made(range(11), 5, 3, kind)[0]
    expected = model.update(X, y).predict_proba(test)
    np.testing.assert_array_equal(again.update(X, y).predict_proba(test), expected)
    again.save(tmp_path / "n.thinleaf", trainable=True)
    frozen = load(tmp_path / "n.thinleaf")
    np.testing.assert_array_equal(frozen.predict_proba(test), expected)
    np.testing.assert_array_equal(
        load_estimator(tmp_path / "n.thinleaf").predict_proba(test), expected
    )


@KINDS
def test_neither_threads_nor_the_order_of_rows_matter(fitted, kind):
    X, y = made([0, 3, 10], 20, 2, kind)
    test = made(range(11), 5, 3, kind)[0]
    order = np.random.default_rng(0).permutation(y.size)
    one = fitted("adaptive", kind).update(X, y)
    two = fitted("adaptive", kind).set_params(n_jobs=2).update(X[order], y[order])
    np.testing.assert_array_equal(one.predict_proba(test), two.predict_proba(test))


@EVERY
def test_a_class_is_forgotten(fitted, name):
    model = fitted(name, "sparse")
    X, y = made(range(1, 10), 20, 1, "sparse")
    others = y != "c04"
    before = model.score(X[others], y[others])
    model.forget("c04")
    assert "c04" not in model.classes_
    assert model.score(X[others], y[others]) >= before
    p = model.predict_proba(X)
    assert p.shape[1] == 8
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)
    assert not np.any(model.predict(X) == "c04")
    assert np.all(model.memory_.y < 8)
    model.update(*made([4], 20, 5, "sparse"))  # and learned again
    assert model.score(X, y) > before - 0.1


def test_a_leaf_that_loses_its_only_class_goes():
    X, y = made([0, 1, 2, 3], 30, 0, "dense")
    model = SoftmaxTreeClassifier(depth=2, leaf_classes=1, random_state=0).fit(X, y)
    for label in ("c02", "c00", "c03"):
        model.forget(label)
        model.tree_.validate()
        assert label not in model.predict(X)
    assert model.classes_.tolist() == ["c01"]
    with pytest.raises(ValueError, match="only class"):
        model.forget("c01")
    with pytest.raises(ValueError, match="no class 'c77'"):
        model.forget("c77")


def test_without_memory_it_learns_all_the_same(fitted):
    X, y = made(range(1, 10), 25, 0, "dense")
    model = SoftmaxTreeClassifier(depth=1, keep_rows=0, random_state=0).fit(X, y)
    assert not hasattr(model, "memory_")
    model.update(*made([0, 3], 20, 2, "dense"))
    assert model.update_.n_remembered == 0
    assert model.score(*made([0], 20, 3, "dense")) > 0.9


def test_what_fails_changes_nothing(fitted):
    model = fitted("tree", "dense")
    X, _ = made([0], 4, 2, "dense")
    before = dict(vars(model))
    with pytest.raises(ValueError, match="same type"):
        model.update(X, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="features"):
        model.update(X[:, :3], ["a"] * 4)
    assert vars(model) == before


def test_sparse_rows_for_a_dense_model_and_weights(fitted):
    X, y = made([0, 3], 10, 2, "dense")
    test = made(range(11), 5, 3, "dense")[0]
    dense = fitted("tree", "dense").update(X, y)
    sparse = fitted("tree", "dense").update(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.predict_proba(test), sparse.predict_proba(test))
    twice = fitted("tree", "dense").update(np.vstack([X, X]), np.tile(y, 2))
    heavy = fitted("tree", "dense").update(X, y, sample_weight=np.full(y.size, 2.0))
    np.testing.assert_array_equal(twice.predict_proba(test), heavy.predict_proba(test))


# -- texts -----------------------------------------------------------------------------------------


def texts(classes, n, seed):
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    made = [
        " ".join(rng.choice(words[4 * c : 4 * c + 4] + words[58:], 5)) for c in classes
        for _ in range(n)
    ]  # fmt: skip
    return made, [f"c{c:02}" for c in classes for _ in range(n)]


@pytest.mark.parametrize("features", ["words", "chars", "both", "hashing"])
def test_new_words_of_texts_become_features(features):
    model = TextClassifier(
        AdaptiveSoftmaxTreeClassifier(max_rounds=0), features, rejection=False, random_state=0
    ).fit(*texts(range(6), 20, 0))
    before = model.input_.n_features
    old = model.input_.rows(["word1 word58"])
    model.update(*texts([7, 8], 15, 1))
    assert (model.input_.n_features > before) == (features != "hashing")
    assert model.update_.n_new_features == model.input_.n_features - before
    assert model.score(*texts([7, 8], 15, 2)) > 0.8
    np.testing.assert_allclose(model.input_.rows(["word1 word58"]).data, old.data, rtol=1e-6)
    frozen = model.freeze()
    some = texts(range(9), 3, 3)[0]
    np.testing.assert_array_equal(frozen.predict(some), model.predict(some))
    model.forget("c07")
    assert "c07" not in model.predict(texts([7], 5, 2)[0])


def test_a_table_learns_new_words_too():
    some, labels = texts(range(4), 20, 0)
    numbers = np.arange(80.0)
    model = TextClassifier(
        SoftmaxTreeClassifier(depth=0), "words", text_columns=["a", "b"], numeric_columns="n",
        rejection=False, random_state=0,
    ).fit({"a": some, "b": some[::-1], "n": numbers}, labels)  # fmt: skip
    new, new_labels = texts([6], 12, 1)
    table = {"a": new, "b": new, "n": numbers[:12]}
    names = [model.input_.feature_name(i) for i in range(model.input_.n_features)]
    model.update(table, new_labels)
    assert model.score(table, new_labels) == 1.0
    after = [model.input_.feature_name(i) for i in range(model.input_.n_features)]
    assert set(names) < set(after)


def test_models_that_cannot_are_not_asked():
    from thinleaf import LabelTreeClassifier

    model = TextClassifier(LabelTreeClassifier())
    assert not hasattr(model, "update")
    assert not hasattr(model, "forget")

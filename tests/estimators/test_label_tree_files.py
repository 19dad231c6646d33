"""Files of label trees: save and load is the identity, and bad files are refused."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.attacks.corpus import Attack, put, with_array, with_metadata
from tests.attacks.parts import Parts
from tests.estimator_cases import problem
from tests.estimators.test_label_trees import LINES, language_model, quick, texts
from thinleaf import LabelTreeClassifier, ModelFileError, load, load_estimator
from thinleaf.labeltree.fixed_trees import huffman


def again(estimator, path: Path):
    estimator.save(path)
    return load_estimator(path)


def same_classifier(a: LabelTreeClassifier, b: LabelTreeClassifier, X) -> None:
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert a.classes_.dtype == b.classes_.dtype
    assert a.tree_text() == b.tree_text()
    assert a.history_ == b.history_


@pytest.mark.parametrize("arity", [2, 3])
def test_classifiers_of_texts_come_back(tmp_path, arity):
    X, y = texts()
    clf = quick(arity=arity, epochs=3, n_jobs=2).fit(X, y)
    other = again(clf, tmp_path / "model")
    same_classifier(clf, other, X)
    assert [other.predict_one(text) for text in X[:9]] == clf.predict(X[:9]).tolist()
    assert other.get_params() == clf.get_params()


@pytest.mark.parametrize("labels", ["int", "float", "bool", "object"])
def test_classifiers_of_rows_come_back(tmp_path, labels):
    X, y = problem(n_rows=90)
    y = (y % 2 == 0) if labels == "bool" else y.astype(str if labels == "object" else labels)
    y = y.astype(object) if labels == "object" else y
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    clf = quick(epochs=2).fit(frame, y)
    other = again(clf, tmp_path / "model")
    same_classifier(clf, other, frame)
    assert other.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature"):
        other.predict(frame.iloc[:, :2])


def test_a_given_tree_and_a_single_label_come_back(tmp_path):
    X, y = texts()
    clf = quick(tree=huffman(np.arange(1, 9), 3), epochs=1).fit(X, y)
    other = again(clf, tmp_path / "model")
    assert other.tree is other.model_.tree
    np.testing.assert_array_equal(other.tree.children, clf.tree.children)
    alone = quick(epochs=1).fit(X, ["the same"] * len(X))
    assert again(alone, tmp_path / "model").predict(X[:2]).tolist() == ["the same"] * 2


@pytest.mark.parametrize("tree", ["flat", "learned", "huffman"])
def test_language_models_come_back(tmp_path, tree):
    model = language_model(tree=tree, arity=3, epochs=2).fit(LINES)
    other = again(model, tmp_path / "model")
    np.testing.assert_array_equal(model.log_likelihood(LINES), other.log_likelihood(LINES))
    assert model.sample(9, seed=1) == other.sample(9, seed=1)
    assert model.history_ == other.history_
    if tree != "flat":
        assert model.tree_text() == other.tree_text()


def test_what_cannot_be_written_is_said(tmp_path):
    X, y = texts()
    clf = quick(epochs=1, random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(ValueError, match="random_state cannot be written"):
        clf.save(tmp_path / "model")
    clf.set_params(random_state=0).save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X[:3]).tolist() == clf.predict(X[:3]).tolist()


def test_a_language_model_is_no_classifier(tmp_path):
    language_model(arity=3, epochs=1).fit(LINES).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"language model.*thinleaf\.load_estimator"):
        load(tmp_path / "model")


# -- attacks ---------------------------------------------------------------------------------------


def fitted(change) -> Attack:
    return with_metadata(lambda metadata: change(metadata["fitted"]))


def flat(change) -> Attack:
    """Return the attack that changes an array as if it had one axis."""

    def changed(array: np.ndarray) -> np.ndarray:
        return change(array.reshape(-1)).reshape(array.shape)

    return changed


BIG = 2**31 - 1
CHILDREN = "nodes.children"
COMMON: dict[str, Attack] = {
    "child beyond the end": with_array(CHILDREN, flat(put(0, BIG))),
    "child negative": with_array(CHILDREN, flat(put(0, -2))),
    "cycle": with_array(CHILDREN, lambda a: np.where(a == 1, 0, a)),
    "a leaf twice": with_array(CHILDREN, lambda a: np.where(a == a.max(), a.max() - 1, a)),
    "children as a vector": with_array(CHILDREN, lambda a: a.ravel()),
    "fewer nodes": with_array(CHILDREN, lambda a: a[:-1]),
    "fewer branches": with_array(CHILDREN, lambda a: a[:, :-1]),
    "weights of fewer nodes": with_array("nodes.weights", lambda a: a[:-1]),
    "weights of fewer dimensions": with_array("nodes.weights", lambda a: a[:, :, :-1]),
    "weights NaN": with_array("nodes.weights", flat(put(0, np.nan))),
    "bias infinite": with_array("nodes.bias", flat(put(0, np.inf))),
    "bias shorter": with_array("nodes.bias", lambda a: a[:, :-1]),
    "bias of a branch that leads nowhere": with_array(
        "nodes.bias", lambda a: np.where(a < -1e29, np.float32(0), a)
    ),
    "quality of fewer nodes": with_array("nodes.quality.J", lambda a: a[:-1]),
    "format": with_metadata(lambda m: m.update(format="thinleaf something")),
    "version": with_metadata(lambda m: m.update(version=99)),
    "estimator": with_metadata(lambda m: m.update(estimator="os.system")),
    "unknown parameter": with_metadata(lambda m: m["parameters"].update(command="x")),
    "bad parameter": with_metadata(lambda m: m["parameters"].update(dim=-1)),
    "history": fitted(lambda f: f.update(history=[1])),
    "no metadata": with_metadata(lambda m: {}),
    "section for nothing": with_metadata(lambda m: m.update(sections={"input": 3})),
}
CLASSIFIER: dict[str, Attack] = {
    "fewer embeddings": with_array("U", lambda a: a[:-1]),
    "embeddings of fewer dimensions": with_array("U", lambda a: a[:, :-1]),
    "embeddings NaN": with_array("U", flat(put(0, np.nan))),
    "no dimensions": with_array("U", lambda a: a[:, :0]),
    "term twice": with_array("words.keys", lambda a: np.sort(np.append(a[1:], a[-1]))),
    "terms in disorder": with_array("words.keys", lambda a: a[::-1]),
    "term empty": with_array("words.keys", put(0, 0)),
    "bucket beyond the end": fitted(lambda f: f["words"].update(n_buckets=1)),
    "no buckets": fitted(lambda f: f["words"].update(n_buckets=0)),
    "ngrams": fitted(lambda f: f["words"].update(ngrams=10**9)),
    "ngrams as text": fitted(lambda f: f["words"].update(ngrams="2")),
    "pooling": fitted(lambda f: f["words"].update(pooling="max")),
    "no words": fitted(lambda f: f["words"].clear()),
    "scale": fitted(lambda f: f.update(scale=-1.0)),
    "more classes": fitted(lambda f: f.update(n_classes=99)),
    "labels in disorder": with_array("labels.utf8", lambda a: a[::-1]),
    "label offsets": with_array("labels.ptr", put(-1, 2**62)),
    "counts negative": with_array("class_count", put(0, -1)),
    "counts shorter": with_array("class_count", lambda a: a[:-1]),
}
LANGUAGE: dict[str, Attack] = {
    "fewer words in U": with_array("context.U", lambda a: a[:-1]),
    "fewer matrices": with_array("context.R", lambda a: a[:-1]),
    "matrices not square": with_array("context.R", lambda a: a[:, :, :-1]),
    "context": with_metadata(lambda m: m["parameters"].update(n_context=7)),
    "fewer words": with_array("words.ptr", lambda a: np.append(a[:-2], a[-1])),
    "a word twice": with_array("words.utf8", lambda a: np.full_like(a, 65)),
    "word counts": with_array("word_count", put(0, -1)),
    "flat after all": fitted(lambda f: f.update(flat=True)),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("good")
    X, y = texts(n_classes=9)
    quick(arity=4, epochs=1, ngrams=2).fit(X, y).save(directory / "classifier")
    language_model(arity=4, epochs=1).fit(LINES).save(directory / "language")
    return {name: directory / name for name in ("classifier", "language")}


CASES = [("classifier", name, attack) for name, attack in (COMMON | CLASSIFIER).items()]
CASES += [("language", name, attack) for name, attack in (COMMON | LANGUAGE).items()]


@pytest.mark.parametrize(("kind", "attack"), [(k, a) for k, _, a in CASES], ids=[
    f"{k}: {n}" for k, n, _ in CASES
])  # fmt: skip
def test_attacks_on_label_trees(good, tmp_path, kind, attack):
    content = attack(Parts.read(good[kind]))
    assert content is not None
    (tmp_path / "bad").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelFileError) as caught:
            load_estimator(tmp_path / "bad")
    assert 10 < len(str(caught.value)) < 2000


def test_paths_that_would_take_all_memory_are_refused(good, tmp_path):
    parts = Parts.read(good["classifier"])
    n = 40_000  # a chain: each node has a label and the next node
    children = np.stack([np.arange(1, n + 1), n + np.arange(n)], axis=1)
    children[-1, 0] = 2 * n
    parts.arrays["nodes.children"] = children.astype(np.int32)
    parts.arrays["labels"] = np.arange(n + 1)
    parts.arrays["class_count"] = np.ones(n + 1, dtype=np.int64)
    del parts.arrays["labels.utf8"], parts.arrays["labels.ptr"]
    parts.metadata["fitted"] |= {"labels": "int64", "n_classes": n + 1}
    (tmp_path / "bad").write_bytes(bytes(parts))
    with pytest.raises(ModelFileError, match="too many"):
        load_estimator(tmp_path / "bad")


def test_cut_files_are_refused(good, tmp_path):
    content = good["classifier"].read_bytes()
    for size in np.linspace(0, len(content) - 1, 23).astype(int):
        (tmp_path / "bad").write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            load_estimator(tmp_path / "bad")

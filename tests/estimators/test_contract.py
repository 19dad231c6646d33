"""One prediction contract: every estimator has the same methods, and they agree with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tests.estimator_cases import adaptive, baselines, formats, problem, quick
from thinleaf import (
    AutoTreeClassifier,
    LabelTreeClassifier,
    LabelTreeLanguageModel,
    LOMTreeClassifier,
    OnlineOneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
)
from thinleaf.estimators import label_tree, language_model
from thinleaf.estimators._base import online_classifier, tao_classifier
from thinleaf.softmaxtree.tao import loop


def label(**options: Any) -> LabelTreeClassifier:
    return LabelTreeClassifier(**({"dim": 6, "arity": 3, "epochs": 3, "random_state": 0} | options))


ESTIMATORS: dict[str, Any] = {
    "softmax tree": quick,
    "adaptive": lambda: adaptive(max_rounds=1),
    "auto": lambda: AutoTreeClassifier(max_trees=1, random_state=0),
    "forest": lambda: SoftmaxForestClassifier(quick(), n_estimators=2, random_state=0),
    "recall": lambda: RecallTreeClassifier(2, random_state=0),
    "hashed": lambda: RecallTreeClassifier(2, hash_bits=6, random_state=0),
    "lom": lambda: LOMTreeClassifier(random_state=0),
    "online one-vs-all": lambda: OnlineOneVsAllClassifier(random_state=0),
    "label tree": label,
    "greedy label tree": lambda: label(search="greedy", arity=2),
} | {name: lambda clf=clf: clone(clf) for name, clf in baselines().items()}
estimators = pytest.mark.parametrize("name", ESTIMATORS)
FROZEN = [name for name in ESTIMATORS if name not in ("mach", "ds")]
SOLVED = [name for name in FROZEN if name not in ("recall", "hashed", "lom", "online one-vs-all")]
SOLVED = [name for name in [*SOLVED, "mach", "ds"] if "label tree" not in name]


def one(X: Any, i: int) -> tuple[Any, ...]:
    return (X[i].indices, X[i].data) if sp.issparse(X) else (X[i],)


def assert_contract(model: Any, X: Any, y: np.ndarray, k: int = 3) -> None:
    """What the seven methods say of rows fits together."""
    classes = model.labels if hasattr(model, "labels") else model.classes_
    P, (top, p) = model.predict_proba(X), model.predict_topk(X, k)
    predicted = model.predict(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, rtol=1e-4, atol=1e-12)
    at = np.searchsorted(classes, top)
    np.testing.assert_allclose(np.take_along_axis(P, at, axis=1), p, rtol=1e-4, atol=1e-9)
    assert np.all(np.diff(p, axis=1) <= 1e-9)
    inside = model.predict_proba_sparse(X)
    assert inside.shape == P.shape
    held = inside.toarray() > 0
    np.testing.assert_allclose(inside.toarray()[held], P[held], rtol=1e-6)
    ids = np.searchsorted(classes, y)
    rows = np.arange(ids.size)
    np.testing.assert_allclose(model.label_proba(X, y), P[rows, ids], rtol=1e-4, atol=1e-12)
    alone = model.label_proba(X, y, smooth=False)
    np.testing.assert_array_equal(alone > 0.0, held[rows, ids])
    chosen = model.model_ if hasattr(model, "frontier_") else model  # of a budget
    n_paths = chosen._paths()[0] if hasattr(chosen, "_paths") else getattr(chosen, "beam", 1)
    if not hasattr(model, "estimators_") and getattr(chosen, "n_trees", 1) == n_paths == 1:
        inner = np.where(held, P, 0.0)
        inner /= inner.sum(axis=1, keepdims=True)  # of the leaf's softmax alone
        np.testing.assert_allclose(alone, inner[rows, ids], rtol=1e-4)
    for i in range(5):
        found = model.predict_one(*one(X, i))
        assert found == predicted[i]
        assert type(found) is type(classes.tolist()[0])
        best = model.predict_topk_one(*one(X, i), k=k)
        np.testing.assert_allclose([value for _, value in best], p[i], rtol=1e-5)
        if sp.issparse(X):
            assert model.predict_one(X[i]) == model.predict_one(sp.csr_array(X[i])) == found
            assert model.predict_topk_one(X[i], k=k) == best
    with pytest.raises(ValueError, match="k must be an integer"):
        model.predict_topk_one(*one(X, 0), k=classes.size + 1)


@formats
@estimators
def test_the_methods_of_every_estimator_agree(name, kind):
    X, y = problem(kind=kind, n_rows=80)
    names = np.array([f"c{i}" for i in range(y.max() + 1)])[y]
    clf = ESTIMATORS[name]().fit(X, names)
    assert_contract(clf, X, names)
    np.testing.assert_array_equal(clf.predict(X, n_jobs=2), clf.predict(X))


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_models_have_the_same_methods(name):
    X, y = problem(n_rows=80)
    clf = ESTIMATORS[name]().fit(X, y)
    frozen = clf.freeze()
    assert_contract(frozen, X, y)
    assert np.mean(frozen.predict(X) == clf.predict(X)) > 0.95
    assert frozen.nbytes > 0
    for bad in (sp.csr_array(X[:2]), np.zeros((1, 99))):
        with pytest.raises(ValueError, match=r"one row|features"):
            frozen.predict_one(bad if sp.issparse(bad) else sp.csr_array(bad))


def test_the_old_order_of_topk_one_works_and_says_so():
    X, y = problem(kind="csr", n_rows=80)
    model = quick().fit(X, y).freeze()
    indices, values = one(X, 0)
    expected = model.predict_topk_one(indices, values, k=2)
    for old in (
        lambda: model.predict_topk_one(indices, 2, values),
        lambda: model.predict_topk_one(indices, 2, values=values),
    ):
        with pytest.warns(DeprecationWarning, match="k=k"):
            assert old() == expected
    x = X[0].toarray()[0]
    with pytest.warns(DeprecationWarning, match="k=k"):
        assert model.predict_topk_one(x, np.int64(2)) == model.predict_topk_one(x, k=2)
    assert len(model.predict_topk_one(x)) == 5


# -- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [quick, label], ids=["softmax tree", "label tree"])
def test_frozen_models_look_at_column_names(make):
    X, y = problem(n_rows=80)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    clf = make().fit(frame, y)
    model = clf.freeze()
    expected = clf.predict(frame)
    np.testing.assert_array_equal(model.predict(frame), expected)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X)), expected)  # no names: as an array
    with pytest.raises(ValueError, match=r"another order: column 0 is 'f4', and was 'f0'"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match=r"missing: 'f1'; unknown: 'other'"):
        model.predict_topk(frame.rename(columns={"f1": "other"}), 2)
    with pytest.raises(ValueError, match=r"missing: 'f1'"):
        model.predict_proba(frame.drop(columns="f1"))
    with pytest.raises(ValueError, match=r"there are 6, not 5"):
        model.predict_proba(frame.iloc[:, [0, 1, 2, 3, 4, 4]])


# -- input that is refused -------------------------------------------------------------------------


@formats
@estimators
def test_complex_input_is_refused(name, kind):
    X, y = problem(kind=kind, n_rows=80)
    clf = ESTIMATORS[name]()
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        clf.fit(X * (1 + 1j), y)
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)
    clf.fit(X, y)
    models = [clf, clf.freeze()] if name in FROZEN else [clf]
    indices, values = one(sp.csr_matrix(X), 0)
    for model in models:
        for use in (
            lambda m=model: m.predict(X * 1j),
            lambda m=model: m.predict_one(one(X * 1j, 0)[0] if kind == "dense" else X[0] * 1j),
            lambda m=model: m.predict_one(indices, values * 1j),
            lambda m=model: m.predict_topk_one(indices, values * 1j, k=2),
        ):
            with pytest.raises(ValueError, match=r"[Cc]omplex"):
                use()
    if kind == "dense":
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            models[0].predict((X * 1j).tolist())
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            models[-1].predict((X * 1j).tolist())
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            ESTIMATORS[name]().fit((X * 1j).tolist(), y)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        ESTIMATORS[name]().fit(X, y, sample_weight=np.ones(y.size) * 1j)


@estimators
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_labels_are_refused(name, missing):
    X, y = problem(n_rows=80)
    for labels in (y.astype(object), np.array([f"c{i}" for i in y], dtype=object)):
        labels[7] = missing
        clf = ESTIMATORS[name]()
        with pytest.raises(ValueError, match=r"missing labels.*the first in row 7|contains NaN"):
            clf.fit(X, labels)
        with pytest.raises(NotFittedError):
            check_is_fitted(clf)


@formats
@pytest.mark.parametrize("name", SOLVED)
def test_values_whose_squares_overflow_are_refused(name, kind):
    X, y = problem(kind=kind, n_rows=80)
    with pytest.raises(ValueError, match=r"values as large as .*: scale the features"):
        ESTIMATORS[name]().fit(X * 1e30, y)
    assert np.isfinite(quick().fit(X * 1e17, y).predict_proba(X * 1e17)).all()


@pytest.mark.parametrize("name", sorted({*ESTIMATORS} - {*SOLVED}))
def test_others_scale_large_values(name):
    X, y = problem(n_rows=80)
    clf = ESTIMATORS[name]().fit(X * 1e30, y)
    assert np.isfinite(clf.predict_proba(X * 1e30)).all()
    assert clf.score(X * 1e30, y) > 0.5


# -- a fit that ends early -------------------------------------------------------------------------


def press(*args: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


@pytest.fixture
def pressed(monkeypatch):
    """Return a function that lets the first step of every fit be interrupted."""

    def start() -> None:
        monkeypatch.setattr(loop, "sweep", press)
        monkeypatch.setattr(label_tree, "train", press)
        monkeypatch.setattr(language_model.LabelTreeLanguageModel, "_epoch", press)
        for module in ("flat_softmax", "one_vs_all", "double_sampling", "mach"):
            monkeypatch.setattr(f"thinleaf.estimators.{module}.executor_for", press)
        monkeypatch.setattr(online_classifier.BaseOnlineClassifier, "_learn", press)

    return start


@estimators
def test_a_first_fit_that_is_interrupted_leaves_nothing(name, pressed):
    X, y = problem(n_rows=80)
    clf = ESTIMATORS[name]()
    before = dict(vars(clf))
    pressed()
    for fit in [clf.fit, *([clf.partial_fit] if hasattr(clf, "partial_fit") else [])]:
        with pytest.raises(KeyboardInterrupt):
            fit(X, y)
        assert vars(clf) == before
        with pytest.raises(NotFittedError):
            check_is_fitted(clf)
        with pytest.raises(NotFittedError):
            clf.predict(X)
        with pytest.raises(NotFittedError):
            clf.predict_one(X[0])


def test_a_language_model_that_is_interrupted_is_not_fitted(pressed):
    model = LabelTreeLanguageModel(dim=4, epochs=1, random_state=0)
    pressed()
    with pytest.raises(KeyboardInterrupt):
        model.fit(["a b", "b a"])
    with pytest.raises(NotFittedError):
        model.predict_topk([["a"]], 1)


@estimators
def test_a_later_fit_that_is_interrupted_leaves_what_there_was(name, pressed):
    X, y = problem(n_rows=80)
    clf = ESTIMATORS[name]().fit(X, y)
    expected = clf.predict_proba(X)
    pressed()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(np.hstack([X, X]), y)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
    assert clf.n_features_in_ == X.shape[1]


def test_training_is_told_as_it_was():
    X, y = problem(n_rows=80)
    clf = quick().fit(X, y)
    clf.set_params(max_sweeps=77)
    assert clf.freeze().summary["parameters"]["max_sweeps"] == 4
    assert tao_classifier.LEAF_RIDGE > 0

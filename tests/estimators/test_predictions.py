"""What a fitted classifier says: labels, probabilities, top k, leaves; and where it can be used."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests import reference
from tests.estimator_cases import assert_same_model, formats, problem, quick
from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import metrics

MODES = ("backoff", "epsilon", "none")
NAMES = np.array([f"class {c}" for c in range(8)])

modes = pytest.mark.parametrize("mode", MODES)


def fitted(kind: str = "dense", mode: str = "backoff", **params):
    """Return a model whose leaves lack classes, with rows and labels that it has not seen."""
    X, y = problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=240)
    clf = quick(zero_probability=mode, epsilon=0.01, **params).fit(X[:160], NAMES[y[:160]])
    assert 0.0 < clf.coverage_ < 1.0
    return clf, X[160:], NAMES[y[160:]]


# -- probabilities ---------------------------------------------------------------------------------


@formats
@modes
@pytest.mark.parametrize("validation_fraction", [None, 0.3])
def test_probabilities_sum_to_one_and_the_prediction_is_their_top(kind, mode, validation_fraction):
    clf, X, y = fitted(kind, mode, validation_fraction=validation_fraction)
    P = clf.predict_proba(X)
    assert (P.shape, P.dtype) == ((y.size, 8), np.float64)
    assert P.min() >= 0.0
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])
    assert (P.min() > 0.0) == (mode != "none")


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_prediction_is_the_top_however_large_epsilon_is(epsilon):
    X, y = problem(0, spread=1.0, n_classes=8)
    clf = quick(zero_probability="epsilon", epsilon=epsilon).fit(X, y)
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P[np.arange(y.size), clf.predict(X)], P.max(axis=1))


@formats
@modes
def test_inside_a_leaf_probabilities_are_its_softmax(kind, mode):
    clf, X, _ = fitted(kind, mode)
    P = clf.predict_proba(X)
    rows = X.toarray() if sp.issparse(X) else X
    for x, p in zip(rows.astype(np.float32), P, strict=True):
        leaf = clf.tree_.leaf(reference.leaf_of(clf.tree_, x))
        inside = p[leaf.classes]
        expected = reference.softmax(reference.leaf_scores(leaf, x))
        np.testing.assert_allclose(inside / inside.sum(), expected, atol=1e-5)
        if mode == "epsilon":
            absent = 8 - leaf.classes.size
            assert inside.sum() == pytest.approx(1.0 / (1.0 + absent * 0.01))
        if mode == "none":
            assert inside.sum() == pytest.approx(1.0)


@modes
def test_logarithms(mode):
    clf, X, _ = fitted(mode=mode)
    P, log_P = clf.predict_proba(X), clf.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(log_P), P)
    np.testing.assert_array_equal(np.isneginf(log_P), P == 0.0)


def test_a_small_outside_mass_is_a_better_guess_than_none():
    """On rows that the leaves do not cover, the back-off has a finite log loss; and it is fair."""
    X, y = problem(1, spread=1.0, n_classes=8, n_rows=800)
    train, test = slice(0, 400), slice(400, 800)
    clf = quick().fit(X[train], y[train])
    p = clf.label_proba(X[test], y[test])
    assert np.all(p > 0.0)
    outside = 1.0 - clf.label_proba(X[test], y[test], smooth=False).astype(bool).mean()
    P = clf.predict_proba(X[test])
    held = np.zeros_like(P, dtype=bool)
    for i, node in enumerate(clf.apply(X[test])):
        held[i, clf.tree_.leaf(node).classes] = True
    assert P[~held].sum() / 400 == pytest.approx(outside, rel=1.0)


# -- the top k -------------------------------------------------------------------------------------


@formats
@modes
@pytest.mark.parametrize("k", [1, 2, 3, 5, 7, 8])
def test_the_top_k_are_those_of_all_probabilities(kind, mode, k):
    clf, X, y = fitted(kind, mode)
    P = clf.predict_proba(X)
    labels, probabilities = clf.predict_topk(X, k)
    assert labels.shape == probabilities.shape == (y.size, k)
    np.testing.assert_allclose(probabilities, -np.sort(-P, axis=1)[:, :k])
    ids = np.searchsorted(clf.classes_, labels)
    np.testing.assert_array_equal(clf.classes_[ids], labels)
    np.testing.assert_allclose(np.take_along_axis(P, ids, axis=1), probabilities)
    assert all(np.unique(row).size == k for row in labels)
    np.testing.assert_array_equal(labels[:, 0], clf.predict(X))


@modes
def test_the_top_j_begin_the_top_k(mode):
    clf, X, _ = fitted(mode=mode)
    everything, _ = clf.predict_topk(X, 8)
    for j in range(1, 8):
        np.testing.assert_array_equal(clf.predict_topk(X, j)[0], everything[:, :j])


def test_the_top_five_by_default():
    clf, X, _ = fitted()
    np.testing.assert_array_equal(clf.predict_topk(X)[0], clf.predict_topk(X, k=5)[0])


# -- one label -------------------------------------------------------------------------------------


@formats
@modes
def test_the_probability_of_a_label(kind, mode):
    clf, X, y = fitted(kind, mode)
    P = clf.predict_proba(X)
    for label in clf.classes_:
        p = clf.label_proba(X, np.full(y.size, label))
        np.testing.assert_allclose(p, P[:, np.searchsorted(clf.classes_, label)])
    own = clf.label_proba(X, y)
    np.testing.assert_allclose(own, P[np.arange(y.size), np.searchsorted(clf.classes_, y)])
    np.testing.assert_array_equal(clf.label_proba(X, y.tolist()), own)


@formats
@modes
def test_unsmoothed_probabilities_are_zero_exactly_where_the_leaf_lacks_the_class(kind, mode):
    clf, X, y = fitted(kind, mode)
    ids = np.searchsorted(clf.classes_, y)
    held = [
        c in clf.tree_.leaf(node).classes.tolist()
        for c, node in zip(ids, clf.apply(X), strict=True)
    ]
    p = clf.label_proba(X, y, smooth=False)
    np.testing.assert_array_equal(p > 0.0, held)
    plain, _, _ = fitted(kind, "none")
    np.testing.assert_array_equal(p, plain.label_proba(X, y))


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_coverage_is_the_share_of_rows_with_positive_unsmoothed_probability(kind, weighted):
    X, y = problem(2, kind=kind, spread=1.0, n_classes=8)
    weight = np.random.default_rng(0).integers(1, 5, size=y.size) if weighted else np.ones(y.size)
    clf = quick(leaf_classes=2).fit(X, y, weight)
    covered = clf.label_proba(X, y, smooth=False) > 0.0
    assert 0.0 < clf.coverage_ < 1.0
    assert clf.coverage_ == pytest.approx(weight[covered].sum() / weight.sum(), abs=1e-12)
    if not weighted:
        figure = metrics.perplexity(clf.label_proba(X, y, smooth=False))
        assert clf.coverage_ == pytest.approx(figure.coverage, abs=1e-12)


# -- leaves ----------------------------------------------------------------------------------------


@formats
def test_apply_gives_leaves(kind):
    clf, X, y = fitted(kind)
    leaves = clf.apply(X)
    assert leaves.shape == y.shape
    assert clf.tree_.is_leaf[leaves].all()
    rows = (X.toarray() if sp.issparse(X) else X).astype(np.float32)
    assert leaves.tolist() == [reference.leaf_of(clf.tree_, x) for x in rows]


@formats
def test_how_many_classes_a_row_cannot_have(kind):
    clf, X, _ = fitted(kind)
    expected = [8 - clf.tree_.leaf(node).classes.size for node in clf.apply(X)]
    assert clf.n_absent(X).tolist() == expected
    plain, X, _ = fitted(kind, "none")
    np.testing.assert_array_equal(plain.n_absent(X), (plain.predict_proba(X) == 0.0).sum(axis=1))


@formats
def test_flops(kind):
    clf, X, _ = fitted(kind)
    rows = (X.toarray() if sp.issparse(X) else X).astype(np.float32)
    met = [x if kind == "csr" else np.ones_like(x) for x in rows]
    counts = [
        sum(
            np.count_nonzero(clf.tree_.node(node).weights[m[clf.tree_.node(node).features] != 0.0])
            for node in reference.path(clf.tree_, x)
        )
        for x, m in zip(rows, met, strict=True)
    ]
    assert clf.mean_flops(X) == pytest.approx(np.mean(counts))


# -- the same answers in every way -----------------------------------------------------------------


@formats
@modes
def test_a_batch_equals_its_rows_one_by_one(kind, mode):
    clf, X, y = fitted(kind, mode)
    P, p = clf.predict_proba(X), clf.label_proba(X, y)
    labels, probabilities = clf.predict_topk(X, 4)
    for i in range(0, y.size, 8):
        one = X[[i]]
        assert clf.predict(one)[0] == clf.predict(X)[i]
        np.testing.assert_array_equal(clf.predict_proba(one)[0], P[i])
        np.testing.assert_array_equal(clf.predict_topk(one, 4)[0][0], labels[i])
        np.testing.assert_array_equal(clf.predict_topk(one, 4)[1][0], probabilities[i])
        assert clf.label_proba(one, y[[i]])[0] == p[i]


@formats
def test_dense_and_sparse_rows_get_the_same_answers(kind):
    clf, X, y = fitted(kind)
    dense = X.toarray() if sp.issparse(X) else X
    for other in (sp.csr_matrix(dense), sp.csr_array(dense), sp.csc_array(dense), dense):
        np.testing.assert_array_equal(clf.predict(other), clf.predict(X))
        np.testing.assert_array_equal(clf.apply(other), clf.apply(X))
        np.testing.assert_allclose(clf.predict_proba(other), clf.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(clf.label_proba(other, y), clf.label_proba(X, y), atol=1e-6)


def test_predicting_changes_neither_rows_nor_model():
    clf, X, y = fitted()
    tree, before, P = clf.tree_, X.copy(), clf.predict_proba(X)
    clf.predict_topk(X, 3)
    clf.label_proba(X, y)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(clf.predict_proba(X), P)
    assert clf.tree_ is tree


# -- copies ----------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("way", ["pickle", "joblib", "deepcopy"])
def test_a_copy_is_the_same_model(mode, way):
    clf, X, y = fitted(mode=mode)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(clf))
    elif way == "joblib":
        file = io.BytesIO()
        joblib.dump(clf, file)
        file.seek(0)
        again = joblib.load(file)
    else:
        again = copy.deepcopy(clf)
    assert_same_model(clf, again)
    assert again.history_ == clf.history_
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.label_proba(X, y), clf.label_proba(X, y))
    again.tree_.validate()


def test_parameters_come_back_as_given():
    clf, X, y = fitted(mode="epsilon", class_weight="balanced", n_jobs=2)
    params = clf.get_params()
    assert params["zero_probability"] == "epsilon"
    assert (params["depth"], params["leaf_classes"]) == (2, 3)
    fresh = clone(clf)
    assert fresh.get_params() == params
    assert not hasattr(fresh, "tree_")
    assert SoftmaxTreeClassifier(**params).get_params() == params
    fresh.set_params(depth=0, leaf_classes=None)
    assert (fresh.depth, fresh.leaf_classes) == (0, None)
    assert "depth=0" in repr(fresh)
    assert fresh.fit(X, y).tree_.depth == 0


def test_positional_parameters():
    clf = SoftmaxTreeClassifier(3, 4)
    assert (clf.depth, clf.leaf_classes) == (3, 4)


# -- with scikit-learn -----------------------------------------------------------------------------


def test_in_a_pipeline():
    X, y = problem(3, spread=1.0)
    scaled = make_pipeline(StandardScaler(), quick()).fit(X, y)
    by_hand = StandardScaler().fit(X)
    alone = quick().fit(by_hand.transform(X), y)
    np.testing.assert_array_equal(
        scaled.predict_proba(X), alone.predict_proba(by_hand.transform(X))
    )
    weight = np.arange(1.0, y.size + 1.0)
    scaled.fit(X, y, softmaxtreeclassifier__sample_weight=weight)
    assert scaled.score(X, y) > 0.5


@formats
def test_cross_validation_and_search(kind):
    X, y = problem(4, kind=kind, n_classes=4)
    scores = cross_val_score(quick(), X, NAMES[y], cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.6
    assert np.all(np.isfinite(cross_val_score(quick(), X, y, cv=3, scoring="neg_log_loss")))
    search = GridSearchCV(quick(), {"depth": [0, 2], "leaf_classes": [1, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    assert search.predict(X).shape == y.shape

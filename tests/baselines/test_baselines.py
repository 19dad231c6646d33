"""Each baseline against a naive twin, and what all of them promise."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import thinleaf
from tests.estimator_cases import assert_same_tree, baselines, formats, problem
from tests.reference import softmax
from tests.strategies import as_rows, blobs, dense_of
from thinleaf import (
    DoubleSamplingClassifier,
    FlatSoftmaxClassifier,
    MACHClassifier,
    OneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxTreeClassifier,
)
from thinleaf.baselines.double_sampling import (
    DifferenceMap,
    TermMap,
    draw_pairs,
    fit_weights,
    joint_map,
)
from thinleaf.baselines.mach import draw_buckets
from thinleaf.model.cost import frozen_mean_flops
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import TrainingData

every = pytest.mark.parametrize("name", baselines())


# -- flat softmax ----------------------------------------------------------------------------------


@formats
def test_flat_softmax_is_logistic_regression(kind):
    X, y = problem(kind=kind)
    flat = FlatSoftmaxClassifier(l1=0.0, ridge=0.5, tol=1e-9, max_newton=500).fit(X, y)
    peer = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(flat.predict_proba(X), peer.predict_proba(X), atol=2e-3)


@formats
def test_flat_softmax_is_a_tree_of_depth_zero(kind):
    X, y = problem(kind=kind)
    settings = {"tol": 1e-7, "max_newton": 200}
    flat = FlatSoftmaxClassifier(l1=0.05, ridge=0.1, **settings).fit(X, y)
    tree = SoftmaxTreeClassifier(
        0, 99, leaf_l1=0.05, leaf_ridge=0.1, max_sweeps=3, zero_probability="none", **settings
    ).fit(X, y)
    np.testing.assert_allclose(flat.predict_proba(X), tree.predict_proba(X), atol=1e-3)
    assert flat.history_[0]["converged"]
    assert flat.coverage_ == 1.0


def test_adagrad_comes_near_the_unpenalised_softmax():
    X, y = problem(kind="csr", n_rows=400)
    steps = FlatSoftmaxClassifier(solver="adagrad", n_passes=60, batch_size=50, random_state=0)
    peer = LogisticRegression(C=100.0, max_iter=2000).fit(X, y)
    assert steps.fit(X, y).score(X, y) >= peer.score(X, y) - 0.03
    losses = [record["loss"] for record in steps.history_]
    assert len(losses) == steps.n_iter_ == 60
    assert losses[-1] < losses[0]


def test_one_step_of_adagrad():
    """On one batch from zero, a step goes by the sign of the gradient."""
    X, y = np.eye(3, dtype=np.float32), np.array([0, 1, 2])
    clf = FlatSoftmaxClassifier(solver="adagrad", n_passes=1, learning_rate=0.5, random_state=0)
    leaf = clf.fit(X, y).tree_.leaf(0)
    np.testing.assert_allclose(leaf.weights, np.where(np.eye(3), 0.5, -0.5), atol=1e-3)
    assert clf.history_ == [{"number": 1, "loss": pytest.approx(math.log(3))}]


def test_adagrad_shows_passes(capsys):
    X, y = problem()
    FlatSoftmaxClassifier(solver="adagrad", n_passes=2, random_state=0, verbose=1).fit(X, y)
    assert capsys.readouterr().err.count("train loss") == 2


@pytest.mark.parametrize("name", ["flat", "one-vs-all", "mach", "ds"])
def test_too_few_steps_are_a_warning(name):
    X, y = problem()
    clf = clone(baselines()[name]).set_params(max_newton=1, tol=0.0, ridge=1e-9)
    with pytest.warns(UserWarning, match="raise max_newton"):
        clf.fit(X, y)


# -- one-vs-all ------------------------------------------------------------------------------------


@formats
def test_one_vs_all_is_a_logistic_regression_a_class(kind):
    X, y = problem(kind=kind)
    clf = OneVsAllClassifier(l1=0.0, ridge=0.5, tol=1e-10, max_newton=200).fit(X, y)
    odds = np.empty((y.size, clf.classes_.size))
    for c in clf.classes_:
        peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000).fit(X, y == c)
        odds[:, c] = np.exp(peer.decision_function(X))
    np.testing.assert_array_equal(clf.predict(X), odds.argmax(axis=1))
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=2e-3)
    assert len(clf.history_) == clf.classes_.size
    assert clf.n_iter_ == max(record["n_iter"] for record in clf.history_)


# -- MACH ------------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("merge", ["mean", "median", "min"])
def test_mach_against_row_by_row(kind, merge):
    X, y = problem(kind=kind)
    clf = MACHClassifier(3, 4, merge=merge, random_state=0).fit(X, y)
    B, K = 3, clf.classes_.size
    bucket_p = [model.predict_proba(X) for model in clf.model_.softmaxes]
    for i in range(0, y.size, 17):
        scores = np.empty(K)
        for c in range(K):
            own = [p[i, clf.model_.buckets[r, c]] for r, p in enumerate(bucket_p)]
            unbiased = B / (B - 1) * (np.mean(own) - 1 / B)
            scores[c] = {"mean": unbiased, "median": np.median(own), "min": np.min(own)}[merge]
        assert clf.predict(X[[i]]) == scores.argmax()
        p = np.maximum(scores, 1e-3 / K)
        np.testing.assert_allclose(clf.predict_proba(X[[i]])[0], p / p.sum(), rtol=1e-9)


@formats
def test_mach_with_a_bucket_a_class_is_a_flat_softmax(kind):
    X, y = problem(kind=kind)
    K = np.unique(y).size
    settings = {"l1": 0.01, "ridge": 0.2, "tol": 1e-8, "max_newton": 300}
    clf = MACHClassifier(K, 1, merge="min", random_state=0, **settings).fit(X, y)
    flat = FlatSoftmaxClassifier(**settings).fit(X, y)
    assert sorted(clf.model_.buckets[0]) == list(range(K))
    np.testing.assert_allclose(
        clf.model_.scores(clf._rows(X), clf.merge), flat.predict_proba(X), atol=2e-3
    )
    assert clf.mean_flops(X) == pytest.approx(flat.mean_flops(X), rel=0.05)


def test_buckets_are_balanced_and_differ():
    buckets = draw_buckets(100, 7, 5, np.random.default_rng(0))
    sizes = np.array([np.bincount(row) for row in buckets])
    assert sizes.min() == 14
    assert sizes.max() == 15
    assert len({tuple(row) for row in buckets.tolist()}) == 5


def test_default_buckets_follow_the_classes():
    X, y = problem(n_classes=9)
    assert MACHClassifier(random_state=0).fit(X, y).model_.n_buckets == 6
    assert MACHClassifier(50, 2, random_state=0).fit(X, y).model_.n_buckets == 9


# -- double sampling -------------------------------------------------------------------------------


def terms(seed: int = 0) -> TrainingData:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), [5, 3, 8, 1]).astype(np.int32)
    X = rng.random((y.size, 12)) * (rng.random((y.size, 12)) < 0.4)
    return TrainingData(as_rows(X.astype(np.float32), "csr"), y, rng.random(y.size) + 0.5, 4)


def joint_by_hand(data: TrainingData, x: np.ndarray, c: int) -> np.ndarray:
    """φ(x, c) as its definition says, term by term."""
    X, y, weight = dense_of(data.X), data.y, data.weight
    n = np.array([[weight[(y == k) & (X[:, t] != 0)].sum() for t in range(12)] for k in range(4)])
    S, L = n.sum(axis=0), n.sum(axis=1)
    out = np.zeros(10)
    for t in range(12):
        if x[t] == 0 or n[c, t] == 0:
            continue
        idf, share = math.log(weight.sum() / S[t]), n[c, t] / L[c]
        out[:9] += [
            math.log(1 + n[c, t]), math.log(1 + S.sum() / S[t]), idf,
            math.log(1 + share), math.log(1 + share * idf),
            math.log(1 + share * S.sum() / S[t]), 1.0, share * idf,
            idf * 2 * n[c, t] / (n[c, t] + 0.25 + 0.75 * L[c] / L.mean()),
        ]  # fmt: skip
    mean = weight[y == c] @ X[y == c]
    lengths = np.linalg.norm(x) * np.linalg.norm(mean)
    out[9] = x @ mean / lengths if lengths > 0 else 0.0
    return out


def test_joint_features_of_terms():
    data = terms()
    joint = TermMap.of(data)
    X = dense_of(data.X)
    classes = np.arange(data.n_rows, dtype=np.int32) % 4
    expected = [joint_by_hand(data, x, c) for x, c in zip(X, classes, strict=True)]
    np.testing.assert_allclose(joint.pairs(data.X, classes), expected, rtol=1e-5, atol=1e-9)
    w = np.random.default_rng(1).normal(size=joint.n_joint)
    scores = [[w @ joint_by_hand(data, x, c) for c in range(4)] for x in X]
    np.testing.assert_allclose(joint.scorer(w).scores(data.X), scores, rtol=1e-5, atol=1e-8)


def test_joint_features_are_computed_in_parts(monkeypatch):
    data = terms()
    joint, classes = TermMap.of(data), np.arange(data.n_rows, dtype=np.int32) % 4
    whole = joint.pairs(data.X, classes)
    monkeypatch.setattr("thinleaf.baselines.double_sampling._MAX_TERMS", 15)
    np.testing.assert_array_equal(joint.pairs(data.X, classes), whole)


def test_joint_features_of_dense_rows():
    data = blobs(0, kind="dense")
    joint = joint_map(data)
    assert isinstance(joint, DifferenceMap)
    X = dense_of(data.X)
    classes = ((data.y + 1) % data.n_classes).astype(np.int32)
    means = np.array(
        [
            np.average(X[data.y == c], axis=0, weights=data.weight[data.y == c])
            for c in range(data.n_classes)
        ]
    )
    np.testing.assert_allclose(
        joint.pairs(data.X, classes), -((X - means[classes]) ** 2), rtol=1e-4, atol=1e-6
    )
    w = np.random.default_rng(1).normal(size=joint.n_joint)
    scores = -((X[:, None, :] - means) ** 2) @ w
    np.testing.assert_allclose(
        np.diff(joint.scorer(w).scores(data.X), axis=1), np.diff(scores, axis=1), atol=1e-3
    )


def test_pairs_are_drawn_by_class_and_against_others():
    data = terms()
    rows, adversaries = draw_pairs(data, 3, 2, np.random.default_rng(0))
    assert np.all(data.y[rows] != adversaries)
    drawn, n_times = np.unique(rows, return_counts=True)
    assert np.bincount(data.y[drawn]).tolist() == [3, 3, 3, 1]
    assert np.all(n_times == 2)
    rows, adversaries = draw_pairs(data, 100, 100, np.random.default_rng(0))
    pairs = set(zip(rows.tolist(), adversaries.tolist(), strict=True))
    assert len(pairs) == rows.size == data.n_rows * 3


def test_weights_are_those_of_a_logistic_regression_on_differences():
    data = terms()
    joint = joint_map(data)
    rows, adversaries = draw_pairs(data, 5, 99, np.random.default_rng(0))
    precision = Precision(1e-12, 200)
    w, _ = fit_weights(joint, data, (rows, adversaries), Penalty(0.0, 0.5), precision)
    X = dense_of(data.X)
    own = [joint_by_hand(data, X[i], data.y[i]) for i in rows]
    other = [joint_by_hand(data, X[i], c) for i, c in zip(rows, adversaries, strict=True)]
    D = np.array(own) - np.array(other)
    scale = np.sqrt((D**2).mean(axis=0))
    sign = np.where(data.y[rows] < adversaries, 1, -1)
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000)
    peer.fit(sign[:, None] * D / scale, sign, sample_weight=data.weight[rows])
    np.testing.assert_allclose(w * scale, peer.coef_[0], atol=1e-3)


def test_probabilities_have_the_odds_of_the_binary_problem():
    X, y = problem(n_classes=4)
    clf = DoubleSamplingClassifier(random_state=0).fit(X, y)
    expected = np.array([softmax(row) for row in clf.scorer_.scores(clf._rows(X))])
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-9)


def test_double_sampling_finds_the_terms_that_matter():
    """Classes that differ by one term each, with noise of common terms."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 20
    X = sp.csr_matrix(np.hstack([np.eye(20)[y], rng.random((600, 30)) < 0.2]).astype(np.float32))
    clf = DoubleSamplingClassifier(random_state=0).fit(X[:400], y[:400])
    assert clf.score(X[400:], y[400:]) > 0.97


# -- all of them -----------------------------------------------------------------------------------


@every
@formats
def test_predictions_agree(name, kind):
    X, y = problem(kind=kind)
    names = np.array([f"class {c}" for c in range(y.max() + 1)])
    clf = clone(baselines()[name]).fit(X, names[y])
    K = clf.classes_.size
    P, (top, top_p) = clf.predict_proba(X), clf.predict_topk(X, K)
    assert clf.score(X, names[y]) > 0.7
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(top[:, 0], clf.predict(X))
    assert np.all(np.diff(top_p, axis=1) <= 1e-12)
    np.testing.assert_allclose(clf.label_proba(X, names[y]), P[np.arange(y.size), y], rtol=1e-6)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), P, rtol=1e-6)
    np.testing.assert_array_equal(clf.predict_topk(X, 2)[0], top[:, :2])
    one_by_one = [clf.predict(X[[i]])[0] for i in range(20)]
    np.testing.assert_array_equal(one_by_one, top[:20, 0])
    assert clf.mean_flops(X) > 0.0


@every
@formats
def test_rows_of_the_other_kind_get_the_same_predictions(name, kind):
    X, y = problem(kind=kind)
    clf = clone(baselines()[name]).fit(X, y)
    other = X.toarray() if sp.issparse(X) else sp.csr_matrix(X)
    np.testing.assert_allclose(clf.predict_proba(other), clf.predict_proba(X), rtol=1e-4, atol=1e-6)


@every
@formats
def test_the_number_of_jobs_does_not_matter(name, kind):
    X, y = problem(kind=kind)
    one = clone(baselines()[name]).fit(X, y)
    if "n_jobs" not in one.get_params():
        pytest.skip("it has one problem to solve")
    two = clone(baselines()[name]).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize("name", ["flat", "adagrad", "one-vs-all"])
@formats
def test_linear_ones_are_frozen_and_stored_as_trees(name, kind, tmp_path):
    X, y = problem(kind=kind)
    clf = clone(baselines()[name]).fit(X, y)
    clf.save(tmp_path / "model", trainable=True)
    frozen = thinleaf.load(tmp_path / "model")
    again = thinleaf.load_estimator(tmp_path / "model")
    assert frozen.n_leaves == 1
    assert_same_tree(again.tree_, clf.tree_)
    assert again.history_ == clf.history_
    for other in (frozen, again):
        np.testing.assert_array_equal(other.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("name", ["mach", "ds"])
def test_the_others_are_pickled(name):
    X, y = problem()
    clf = clone(baselines()[name]).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert not hasattr(clf, "freeze")
    assert clf.nbytes_ > 0
    assert "neither be frozen" in type(clf).__doc__


@pytest.mark.parametrize("name", ["mach", "ds"])
def test_bad_questions(name):
    X, y = problem()
    clf = clone(baselines()[name]).fit(X, y)
    for k in (0, 99, 1.5):
        with pytest.raises(ValueError, match="k must be an integer in"):
            clf.predict_topk(X, k)
    with pytest.raises(ValueError, match="one label a row"):
        clf.label_proba(X, y[:3])
    with pytest.raises(ValueError, match="not seen in fit"):
        clf.label_proba(X, y + 100)


@formats
@pytest.mark.parametrize("name", ["mach", "ds"])
def test_one_sample(name, kind):
    X, y = problem(kind=kind)
    clf = clone(baselines()[name]).fit(X, y)
    expected = clf.predict(X)
    for i in range(10):
        row = (X[i].indices, X[i].data) if sp.issparse(X) else (X[i],)
        assert clf.predict_one(*row) == expected[i]
    with pytest.raises(ValueError, match="x has 99 features, but the model expects"):
        clf.predict_one(np.ones(99))
    with pytest.raises(ValueError, match="indices must lie in"):
        clf.predict_one([99], [1.0])
    with pytest.raises(ValueError, match="as many values"):
        clf.predict_one([0, 1], [1.0])


def test_rows_are_scored_in_parts(monkeypatch):
    X, y = problem(kind="csr")
    clf = MACHClassifier(3, 3, random_state=0).fit(X, y)
    whole = clf.predict_proba(X)
    monkeypatch.setattr("thinleaf.baselines.scoring._MAX_SCORES", 40)
    np.testing.assert_array_equal(clf.predict_proba(X), whole)
    np.testing.assert_array_equal(clf.label_proba(X, y), whole[np.arange(y.size), y])


# -- multiplications of frozen models --------------------------------------------------------------


@formats
def test_multiplications_of_a_frozen_tree_are_those_of_the_tree(kind):
    X, y = problem(kind=kind)
    clf = SoftmaxTreeClassifier(2, 3, max_sweeps=3, random_state=0).fit(X, y)
    rows = clf._rows(X)
    assert frozen_mean_flops(clf.freeze(), rows) == pytest.approx(clf.mean_flops(X))


def test_multiplications_of_an_online_tree():
    X, y = problem(kind="csr")
    clf = RecallTreeClassifier(2, random_state=0).fit(X, y)
    frozen = clf.freeze()
    depth = frozen.packed.node_depth
    expected = 0
    for i, node in enumerate(frozen.apply(X).tolist()):
        on_path = [node]
        while on_path[-1]:
            below = on_path[-1] - (on_path[-1] % 2 == 0)
            on_path.append(int(np.flatnonzero(frozen.packed.child == below)[0]))
        assert len(on_path) == depth[node] + 1
        met = X[[i]].indices
        leaf = frozen.packed.leaf(-1 - int(frozen.packed.child[node]))
        expected += np.count_nonzero(leaf.weights[np.isin(leaf.features, met)])
        for router in on_path[1:]:
            expected += np.isin(frozen.packed.router(router).features, met).sum()
    assert frozen_mean_flops(frozen, clf._rows(X)) == pytest.approx(expected / y.size)

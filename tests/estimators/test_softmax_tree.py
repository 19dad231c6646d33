"""The classifier as users give it data: scikit-learn's contract, labels, inputs, weights, seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from tests.estimator_cases import (
    assert_same_model,
    assert_same_tree,
    baselines,
    formats,
    in_format,
    problem,
    quick,
)
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    LOMTreeClassifier,
    OnlineOneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxTreeClassifier,
)

INITS = (
    "random",
    "random_median",
    "pca_median",
    "class_clusters",
    "row_clusters",
    "balanced_clusters",
)


@parametrize_with_checks(
    [
        SoftmaxTreeClassifier(random_state=0),
        AdaptiveSoftmaxTreeClassifier(max_rounds=2, random_state=0),
        AdaptiveSoftmaxTreeClassifier(
            initial_depth=1,
            expansion_depth=2,
            overlap=None,
            zero_probability="epsilon",
            epsilon=1e-6,
            max_rounds=2,
            max_sweeps=3,
            random_state=0,
        ),
        SoftmaxTreeClassifier(
            depth=2,
            leaf_classes=2,
            absent="zero_one",
            zero_probability="epsilon",
            epsilon=1e-6,
            max_sweeps=5,
            random_state=0,
        ),
        RecallTreeClassifier(random_state=0),
        RecallTreeClassifier(
            2, bound_multiplier=0.0, path_features=False, loss="squared", random_state=0
        ),
        LOMTreeClassifier(random_state=0),
        OnlineOneVsAllClassifier(random_state=0),
        *baselines().values(),
    ],
    # as of scikit-learn's own SGDClassifier: one row of weight 2 is one step, not two
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "examples come one after the other"
        for kind in ("dense", "sparse")
        if hasattr(estimator, "partial_fit")
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ash", "birch", "cedar", "elm", "fir", "oak"]),
        np.array(["ash", "birch", "cedar", "elm", "fir", "oak"], dtype=object),
        np.array([-7, -2, 0, 3, 40, 10**12]),
        np.array([1, 2, 3, 5, 8, 13], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0, 5.0, 7.0, 100.0]),
    ],
    ids=["strings", "objects", "integers", "small integers", "whole floats"],
)
def test_labels_of_any_kind(names):
    X, y = problem()
    plain, named = quick().fit(X, y), quick().fit(X, names[y])
    np.testing.assert_array_equal(named.classes_, names)
    assert_same_tree(named.tree_, plain.tree_)
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    assert named.predict(X).dtype == names.dtype
    np.testing.assert_array_equal(named.predict_topk(X, 2)[0], names[plain.predict_topk(X, 2)[0]])
    np.testing.assert_array_equal(named.label_proba(X, names[y]), plain.label_proba(X, y))


def test_two_classes_and_booleans():
    X, y = problem(n_classes=2)
    clf = quick().fit(X, y == 1)
    assert clf.classes_.tolist() == [False, True]
    assert clf.predict(X).dtype == np.bool_
    assert clf.score(X, y == 1) > 0.8


@formats
@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("mode", ["backoff", "epsilon", "none"])
def test_one_class_only(kind, init, mode):
    X, _ = problem(kind=kind, n_rows=20)
    clf = quick(init=init, zero_probability=mode, epsilon=0.1, depth=3).fit(X, ["only"] * 20)
    assert clf.classes_.tolist() == ["only"]
    assert set(clf.predict(X)) == {"only"}
    np.testing.assert_array_equal(clf.predict_proba(X), np.ones((20, 1)))
    assert (clf.tree_.n_nodes, clf.coverage_) == (1, 1.0)


@formats
@pytest.mark.parametrize("init", INITS)
def test_fewer_rows_than_leaves(kind, init):
    X, y = in_format(np.eye(4), kind), np.arange(4)
    clf = quick(init=init, depth=4, leaf_classes=4).fit(X, y)
    clf.tree_.validate()
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    one = quick(init=init, depth=2).fit(X[:1], y[:1])
    assert one.predict(X).tolist() == [0, 0, 0, 0]


@formats
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("init", INITS)
def test_rows_that_cannot_be_told_apart(kind, init):
    """The best that there is to predict are the class frequencies."""
    y = np.repeat([0, 1, 2], [5, 10, 15])
    for value in (0.0, 1.0):
        X = in_format(np.full((30, 3), value), kind)
        clf = quick(init=init, leaf_classes=3).fit(X, y)
        expected = np.tile([5 / 30, 10 / 30, 15 / 30], (30, 1))
        np.testing.assert_allclose(clf.predict_proba(X), expected, atol=5e-3)


# -- inputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container",
    [sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_matrix, sp.coo_array, sp.lil_matrix],
)
def test_any_sparse_container(container):
    X, y = problem(kind="csr")
    ours = quick().fit(X, y)
    theirs = quick().fit(container(X), y)
    assert_same_model(ours, theirs)
    np.testing.assert_array_equal(ours.predict_proba(X), ours.predict_proba(container(X)))


def test_sparse_input_that_is_not_canonical():
    """Unsorted and repeated entries, wide indices: the same matrix, and it stays as it was."""
    X, y = problem(kind="csr")
    doubled = sp.csr_matrix(
        (
            np.repeat(X.data / 2.0, 2)[::-1],
            np.repeat(X.indices, 2)[::-1].astype(np.int64),
            (2 * (X.nnz - X.indptr))[::-1].astype(np.int64),
        ),
        shape=X.shape,
    )
    before = doubled.data.copy(), doubled.indices.copy(), doubled.indptr.copy()
    clf = quick().fit(doubled, y[::-1])
    assert_same_model(clf, quick().fit(X, y))
    np.testing.assert_array_equal(clf.predict_proba(doubled), clf.predict_proba(X)[::-1])
    for old, now in zip(before, (doubled.data, doubled.indices, doubled.indptr), strict=True):
        np.testing.assert_array_equal(old, now)


def test_stored_zeros_are_zeros():
    X, y = problem(kind="csr")
    n_rows, n_features = X.shape
    stored = sp.csr_matrix(
        (
            X.toarray().ravel(),
            np.tile(np.arange(n_features), n_rows),
            np.arange(0, X.toarray().size + 1, n_features),
        ),
        shape=X.shape,
    )
    assert stored.nnz > X.nnz
    a, b = quick().fit(X, y), quick().fit(stored, y)
    np.testing.assert_array_equal(a.predict(X), b.predict(stored))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(stored), atol=1e-2)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.int8),
        pd.DataFrame,
    ],
    ids=["list", "columns first", "strided", "float32", "integers", "frame"],
)
def test_any_dense_input(change):
    X, y = problem()
    X = np.round(2.0 * X)
    clf = quick().fit(change(X), y)
    assert_same_model(clf, quick().fit(X, y))
    np.testing.assert_array_equal(clf.predict(change(X)), clf.predict(X))


def test_read_only_input():
    X, y = problem()
    X = X.astype(np.float32)
    expected = quick().fit(X, y)
    X.flags.writeable = y.flags.writeable = False
    clf = quick().fit(X, y)
    assert_same_model(clf, expected)
    assert clf.predict(X).size == y.size


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("init", ["random", "random_median", "class_clusters"])
def test_dense_and_sparse_training_agree(depth, init):
    """From the same initial tree; each has its own solver for leaves."""
    S, y = problem(3, kind="csr")
    X = S.toarray()
    params = {"depth": depth, "init": init, "leaf_classes": 6, "tol": 1e-7, "max_newton": 200}
    params["overlap"] = 0.05
    dense, sparse = quick(**params).fit(X, y), quick(**params).fit(S, y)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(S))
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(S), atol=5e-3)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_name_the_features(frame):
    X, y = problem()
    names = ["length", "width", "height", "weight", "age"]
    columns = dict(zip(names, X.T, strict=True))
    clf = quick().fit(frame(columns), y)
    assert clf.feature_names_in_.tolist() == names
    assert clf.n_features_in_ == 5
    assert_same_model(clf, quick().fit(X, y))
    np.testing.assert_array_equal(clf.predict(frame(columns)), quick().fit(X, y).predict(X))
    swapped = {name: columns[name] for name in reversed(names)}
    with pytest.raises(ValueError, match=r"[Ff]eature names"):
        clf.predict(frame(swapped))
    renamed = {name.upper(): column for name, column in columns.items()}
    with pytest.raises(ValueError, match=r"[Ff]eature names"):
        clf.predict_proba(frame(renamed))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)


def test_arrays_have_no_feature_names():
    X, y = problem()
    assert not hasattr(quick().fit(X, y), "feature_names_in_")


def test_labels_from_frames():
    X, y = problem()
    expected = quick().fit(X, y)
    for labels in (pd.Series(y), pd.Series(y, index=y.size - np.arange(y.size)), y.tolist()):
        assert_same_model(quick().fit(X, labels), expected)


# -- weights ---------------------------------------------------------------------------------------

WAYS = {
    "plain": {},
    "without overlap": {"overlap": None},
    "zero_one": {"absent": "zero_one", "zero_probability": "none"},
    "validation": {"validation_fraction": 0.3, "zero_probability": "epsilon"},
    "clusters": {"init": "class_clusters"},
}
ways = pytest.mark.parametrize("way", WAYS)


@formats
@ways
def test_weights_are_repetition(kind, way):
    X, y = problem(1, kind=kind, spread=1.0)
    times = np.random.default_rng(0).integers(0, 4, size=y.size)
    many = np.repeat(np.arange(y.size), times)
    weighted = quick(**WAYS[way]).fit(X, y, sample_weight=times)
    repeated = quick(**WAYS[way]).fit(X[many], y[many])
    assert_same_model(weighted, repeated)


@formats
@ways
def test_row_order_does_not_matter(kind, way):
    X, y = problem(2, kind=kind, spread=1.0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=y.size)
    order = np.random.default_rng(1).permutation(y.size)
    a = quick(**WAYS[way]).fit(X, y, weight)
    b = quick(**WAYS[way]).fit(X[order], y[order], weight[order])
    assert_same_model(a, b)


def test_weights_of_one_and_a_scalar_change_nothing():
    X, y = problem(2, spread=1.0)
    expected = quick().fit(X, y)
    assert_same_model(quick().fit(X, y, sample_weight=np.ones(y.size)), expected)
    assert_same_model(quick().fit(X, y, sample_weight=1.0), expected)
    assert_same_model(quick().fit(X, y, sample_weight=[1] * y.size), expected)
    assert_same_model(quick().fit(X, y, sample_weight=pd.Series(np.ones(y.size))), expected)


def test_a_class_without_weight_keeps_its_name_and_is_never_predicted():
    X, y = problem(2)
    clf = quick(leaf_classes=6).fit(X, y, sample_weight=(y != 3).astype(float))
    assert clf.classes_.size == 6
    assert 3 not in clf.predict(X)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_class_weights_are_sample_weights():
    X, y = problem(3, spread=1.0)
    weights = dict(enumerate([1.0, 2.0, 0.5, 1.0, 4.0, 1.0]))
    by_class = quick(class_weight=weights).fit(X, y)
    by_row = quick().fit(X, y, sample_weight=[weights[c] for c in y])
    assert_same_model(by_class, by_row)
    both = quick(class_weight=weights).fit(X, y, sample_weight=np.full(y.size, 2.0))
    assert_same_model(both, quick().fit(X, y, sample_weight=[2.0 * weights[c] for c in y]))


def test_balanced_class_weights():
    """Each class weighs the same, so a rare one is predicted more often than by frequency."""
    X, y = problem(4, n_classes=4, spread=1.5, n_rows=240)
    kept = np.flatnonzero((y != 0) | (np.arange(y.size) % 8 == 0))
    X, y = X[kept], y[kept]
    weight = y.size / (4.0 * np.bincount(y))
    balanced = quick(class_weight="balanced").fit(X, y)
    assert_same_model(balanced, quick().fit(X, y, sample_weight=weight[y]))
    assert (balanced.predict(X) == 0).sum() > (quick().fit(X, y).predict(X) == 0).sum()


def test_balanced_class_weights_count_a_repeated_row_as_often_as_a_weighted_one():
    X, y = problem(5, n_classes=4, n_rows=32, spread=1.0)
    times = np.array([1, 2, 1, 4])[y]  # balanced weights 2, 1, 2, 1/2: exact in binary
    many = np.repeat(np.arange(y.size), times)
    weighted = quick(class_weight="balanced").fit(X, y, sample_weight=times)
    repeated = quick(class_weight="balanced").fit(X[many], y[many])
    assert_same_model(weighted, repeated)


def test_tuning_epsilon_heeds_weights():
    """One leaf, one class: the best ε is the odds of the other class, by weight."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    y = np.repeat([0, 1], 100)
    clf = quick(depth=0, leaf_classes=1, zero_probability="epsilon", validation_fraction=0.5).fit(
        X, y, sample_weight=np.where(y == 0, 1.0, 0.01)
    )
    assert 0.003 < clf.epsilon_ < 0.03


# -- repeatability ---------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("init", INITS)
def test_a_seed_repeats_the_model(kind, init):
    X, y = problem(6, kind=kind, spread=1.0)
    params = {"init": init, "validation_fraction": 0.2}
    first = quick(**params).fit(X, y)
    assert_same_model(first, quick(**params).fit(X, y))
    assert_same_model(first, first.fit(X, y))


def test_seeds_and_random_states():
    X, y = problem(6, spread=1.0)
    first, other = (quick(init="random", random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))
    assert_same_model(first, quick(init="random", random_state=np.int64(0)).fit(X, y))
    a, b = (quick(init="random", random_state=np.random.RandomState(0)) for _ in range(2))
    assert_same_model(a.fit(X, y), b.fit(X, y))
    quick(random_state=None).fit(X, y)


@formats
@ways
def test_threads_do_not_change_the_model(kind, way):
    X, y = problem(7, kind=kind, spread=1.2, n_classes=10, n_rows=300)
    params = WAYS[way] | {"depth": 3}
    serial = quick(n_jobs=1, **params).fit(X, y)
    for n_jobs in (2, -1):
        assert_same_model(serial, quick(n_jobs=n_jobs, **params).fit(X, y))


def test_threads_of_linear_algebra_do_not_change_the_model():
    X, y = problem(8, spread=2.0, n_rows=1000, n_features=64, n_classes=10)
    with threadpool_limits(limits=2):
        usual = quick().fit(X, y)
    with threadpool_limits(limits=1):
        assert_same_model(usual, quick().fit(X, y))

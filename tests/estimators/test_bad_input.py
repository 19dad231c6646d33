"""Every bad input gets an error that says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from tests.estimator_cases import formats, in_format, problem, quick
from thinleaf import SoftmaxTreeClassifier

PREDICTIONS = {
    "predict": lambda clf, X: clf.predict(X),
    "predict_proba": lambda clf, X: clf.predict_proba(X),
    "predict_log_proba": lambda clf, X: clf.predict_log_proba(X),
    "predict_topk": lambda clf, X: clf.predict_topk(X, 2),
    "label_proba": lambda clf, X: clf.label_proba(X, [0] * len(X)),
    "apply": lambda clf, X: clf.apply(X),
    "n_absent": lambda clf, X: clf.n_absent(X),
    "mean_flops": lambda clf, X: clf.mean_flops(X),
}
predictions = pytest.mark.parametrize("method", PREDICTIONS)


@pytest.fixture(scope="module")
def clf() -> SoftmaxTreeClassifier:
    return quick().fit(*problem())


# -- rows ------------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_rows_that_are_not_finite(kind, value, message):
    X, y = problem()
    bad = X.copy()
    bad[3, 1] = value
    X, bad = in_format(X, kind), in_format(bad, kind)
    with pytest.raises(ValueError, match=message):
        quick().fit(bad, y)
    clf = quick().fit(X, y)
    with pytest.raises(ValueError, match=message):
        clf.predict(bad)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_values_too_large_for_single_precision(clf):
    X, y = problem()
    X[0, 0] = 1e300
    with pytest.raises(ValueError, match="too large"):
        quick().fit(X, y)
    with pytest.raises(ValueError, match="too large"):
        clf.predict(X)


@predictions
def test_rows_of_another_width(clf, method):
    with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5 features"):
        PREDICTIONS[method](clf, np.zeros((3, 4)))


@predictions
def test_one_row_that_is_not_a_matrix(clf, method):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        PREDICTIONS[method](clf, np.zeros(5))


@predictions
def test_no_rows(clf, method):
    with pytest.raises(ValueError, match="0 sample"):
        PREDICTIONS[method](clf, np.zeros((0, 5)))


@predictions
def test_before_fitting(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        PREDICTIONS[method](SoftmaxTreeClassifier(), np.zeros((3, 5)))


@formats
def test_training_without_rows_or_features(kind):
    with pytest.raises(ValueError, match="0 sample"):
        quick().fit(in_format(np.zeros((0, 5)), kind), [])
    with pytest.raises(ValueError, match="0 feature"):
        quick().fit(in_format(np.zeros((5, 0)), kind), [0, 1, 0, 1, 0])


def test_training_on_one_dimension():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        quick().fit(np.zeros(5), np.arange(5))


def test_rows_that_are_no_numbers():
    with pytest.raises(ValueError, match="could not convert string to float"):
        quick().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="Complex data not supported"):
        quick().fit(np.zeros((4, 2), dtype=complex), [0, 1, 0, 1])


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5, 1.25, 3.3], "Unknown label type: continuous"),
        ([[0, 1], [1, 0], [1, 1]], "y should be a 1d array|multilabel"),
        ([0, 1], "inconsistent numbers of samples"),
        ([0.0, np.nan, 1.0], "NaN"),
        (None, "requires y to be passed"),
    ],
    ids=["regression", "multilabel", "too few", "NaN", "none"],
)
def test_labels_that_are_no_classes(y, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(np.eye(3), y)


@pytest.mark.parametrize(
    ("known", "asked", "named"),
    [
        (["a", "b"], ["a", "zebra"], "zebra"),
        (["b", "c"], ["a", "b"], "'a'"),
        (["a", "b"], [1, 2], "1"),
        ([1, 2], ["a", "b"], "'a'"),
        ([1, 2], [1, 99], "99"),
        ([1, 2], [1.0, 1.5], "1.5"),
        ([1, 2], [1.0, np.nan], "nan"),
    ],
)
def test_the_probability_of_an_unknown_label(known, asked, named):
    X = np.array([[0.0], [1.0]])
    clf = quick(depth=0).fit(X, known)
    with pytest.raises(ValueError, match=f"not seen in fit, such as .*{named}"):
        clf.label_proba(X, asked)


@pytest.mark.parametrize("shape", [(2,), (121,), (120, 1), ()])
def test_not_one_label_a_row(clf, shape):
    X, _ = problem()
    with pytest.raises(ValueError, match="one label a row"):
        clf.label_proba(X, np.zeros(shape, dtype=int))


@pytest.mark.parametrize("k", [0, -1, 7, 100])
def test_k_out_of_range(clf, k):
    X, _ = problem()
    with pytest.raises(ValueError, match=rf"k must be an integer in 1\.\.6, got {k}"):
        clf.predict_topk(X, k)


@pytest.mark.parametrize("k", [2.5, "2", None])
def test_k_that_is_no_number_of_classes(clf, k):
    X, _ = problem()
    with pytest.raises((ValueError, TypeError), match="k must"):
        clf.predict_topk(X, k)


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[-1.0, np.ones(119)], "negative"),
        (np.r_[np.nan, np.ones(119)], "NaN"),
        (np.r_[np.inf, np.ones(119)], "NaN or infinity"),
        (np.zeros(120), "zero for every row"),
        (0.0, "zero for every row"),
        (np.ones(119), r"shape \(120,\), got \(119,\)"),
        (np.ones((120, 2)), r"shape \(120,\), got \(120, 2\)"),
        (["heavy"] * 120, "could not convert"),
    ],
    ids=["negative", "NaN", "infinite", "zeros", "zero", "too few", "two axes", "words"],
)
def test_weights(weight, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    "weights",
    [
        dict.fromkeys(range(6), 0.0),
        dict.fromkeys(range(6), 1.0) | {2: -1.0},
        dict.fromkeys(range(6), 1.0) | {2: np.nan},
        dict.fromkeys(range(6), 1.0) | {2: np.inf},
    ],
    ids=["zeros", "negative", "NaN", "infinite"],
)
def test_class_weights(weights):
    X, y = problem()
    with pytest.raises(ValueError, match="weight"):
        quick(class_weight=weights).fit(X, y)


def test_class_and_sample_weights_that_leave_nothing():
    X, y = problem()
    with pytest.raises(ValueError, match="weight"):
        quick(class_weight={c: float(c != 0) for c in range(6)}).fit(
            X, y, sample_weight=(y == 0).astype(float)
        )


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", -1),
        ("depth", 25),
        ("depth", 2.0),
        ("depth", "auto"),
        ("leaf_classes", 0),
        ("leaf_classes", 1.5),
        ("init", "kmeans"),
        ("init", None),
        ("max_sweeps", 0),
        ("router_l1", -0.1),
        ("router_l1", np.nan),
        ("leaf_l1", -0.1),
        ("leaf_l1", np.inf),
        ("router_ridge", -1.0),
        ("leaf_ridge", "auto"),
        ("leaf_ridge", np.nan),
        ("absent", "beta"),
        ("beta", 0.0),
        ("beta", np.inf),
        ("overlap", 0.0),
        ("overlap", 0.6),
        ("overlap", np.nan),
        ("overlap", "never"),
        ("structure", 3),
        ("structure", "complete"),
        ("monotone", "yes"),
        ("tol", -1e-3),
        ("max_newton", 0),
        ("validation_fraction", 0.0),
        ("validation_fraction", 1.0),
        ("validation_fraction", 10),
        ("patience", 0),
        ("zero_probability", "laplace"),
        ("epsilon", 0.0),
        ("epsilon", -1.0),
        ("class_weight", "uniform"),
        ("class_weight", [1.0, 2.0]),
        ("warm_start", None),
        ("random_state", "seed"),
        ("random_state", -1),
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("verbose", "loud"),
    ],
)
def test_parameters(name, value):
    X, y = problem()
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(X, y)


def test_monotone_training_needs_a_loss_for_absent_classes():
    X, y = problem()
    with pytest.raises(ValueError, match="monotone=True needs a finite loss for absent classes"):
        quick(monotone=True, absent="drop", overlap=None).fit(X, y)


def test_monotone_training_needs_nodes_that_minimise_the_objective():
    X, y = problem()
    with pytest.raises(ValueError, match="monotone=True needs overlap=None"):
        quick(monotone=True).fit(X, y)


def test_epsilon_must_be_given_or_tuned():
    X, y = problem()
    with pytest.raises(ValueError, match="needs epsilon, or validation_fraction"):
        quick(zero_probability="epsilon").fit(X, y)
    assert quick(zero_probability="epsilon", epsilon=0.1).fit(X, y).epsilon_ == 0.1
    tuned = quick(zero_probability="epsilon", validation_fraction=0.3).fit(X, y)
    assert 0.0 < tuned.epsilon_ <= 1.0


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_validation_that_leaves_nothing(fraction):
    X, y = problem()
    with pytest.raises(ValueError, match=f"validation_fraction={fraction} leaves no rows"):
        quick(validation_fraction=fraction).fit(X, y)


def test_unknown_parameters():
    with pytest.raises(TypeError, match="n_leaves"):
        SoftmaxTreeClassifier(n_leaves=3)
    with pytest.raises(ValueError, match="Invalid parameter 'n_leaves'"):
        SoftmaxTreeClassifier().set_params(n_leaves=3)


# -- warm starts -----------------------------------------------------------------------------------


def test_a_warm_start_with_labels_that_it_does_not_know():
    X, y = problem()
    names = np.array(["a", "b", "c", "d", "e", "f"])
    clf = quick(warm_start=True).fit(X[y < 5], names[y[y < 5]])
    tree = clf.tree_
    with pytest.raises(ValueError, match=r"not seen in fit, such as .*'f'"):
        clf.fit(X, names[y])
    with pytest.raises(ValueError, match="not seen in fit"):
        clf.fit(X, y)
    assert clf.tree_ is tree
    assert clf.classes_.tolist() == names[:5].tolist()


def test_a_warm_start_with_rows_of_another_width():
    X, y = problem()
    clf = quick(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5 features"):
        clf.fit(X[:, :4], y)
    with pytest.raises(ValueError, match=r"6 features, but .* is expecting 5 features"):
        clf.fit(sp.csr_matrix(np.c_[X, X[:, :1]]), y)
    assert clf.fit(X, y).n_features_in_ == 5


def test_a_fit_that_fails_leaves_a_working_model():
    X, y = problem()
    clf = quick().fit(X, y)
    expected = clf.predict_proba(X)
    for broken in (
        quick(validation_fraction=0.001),
        quick(class_weight={"a": 1.0}),
        quick(n_jobs=0),
    ):
        clf.set_params(**broken.get_params())
        with pytest.raises(ValueError, match=r".+"):
            clf.fit(X[y < 3], np.array(["x", "y", "z"])[y[y < 3]])
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
    assert set(clf.predict(X)) <= set(y)

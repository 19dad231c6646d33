"""The classifier as users train it: what it minimises, its history, warm starts and progress."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from tests.estimator_cases import (
    assert_same_model,
    assert_same_tree,
    formats,
    objective_of,
    problem,
    quick,
    untimed,
)

# -- training --------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("n_classes", [3, 7])
def test_depth_zero_is_logistic_regression(kind, n_classes):
    X, y = problem(10, kind=kind, spread=1.5, n_classes=n_classes)
    ours = quick(
        depth=0, leaf_classes=n_classes, leaf_l1=0.0, leaf_ridge=2.0, tol=1e-8, max_newton=500
    ).fit(X, y)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    assert (ours.tree_.n_nodes, ours.coverage_) == (1, 1.0)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


def test_depth_zero_with_weights_is_logistic_regression():
    X, y = problem(11, spread=1.5)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=y.size)
    ours = quick(
        depth=0, leaf_classes=6, leaf_l1=0.0, leaf_ridge=1.0, tol=1e-8, max_newton=500
    ).fit(X, y, weight)
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y, weight)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@formats
@pytest.mark.parametrize("overlap", [None, 0.05])
@pytest.mark.parametrize("absent", ["constant", "zero_one", "drop"])
def test_the_history_is_true(kind, absent, overlap):
    X, y = problem(12, kind=kind, spread=1.0)
    clf = quick(absent=absent, overlap=overlap, max_sweeps=8).fit(X, y)
    keys = {"sweep", "objective", "train_error", "validation_error", "n_solved", "seconds"}
    assert all(set(record) == keys for record in clf.history_)
    assert [record["sweep"] for record in clf.history_] == list(range(1, clf.n_iter_ + 1))
    assert all(record["validation_error"] is None for record in clf.history_)
    seconds = [record["seconds"] for record in clf.history_]
    assert seconds == sorted(seconds)
    assert min(seconds) >= 0.0
    objectives = [record["objective"] for record in clf.history_]
    last = clf.n_iter_  # guests raise the objective of training rows, and are worth it
    assert clf.best_sweep_ == (int(np.argmin(objectives)) + 1 if overlap is None else last)
    best = clf.history_[clf.best_sweep_ - 1]
    assert best["train_error"] == pytest.approx(1.0 - clf.score(X, y), abs=1e-9)
    # cutting dead parts may lower the penalties
    assert objective_of(clf, X, y) <= best["objective"] * (1.0 + 1e-5)


def test_more_sweeps_do_not_change_the_earlier_ones():
    X, y = problem(12, spread=1.0)
    short, long = quick(max_sweeps=2).fit(X, y), quick(max_sweeps=5).fit(X, y)
    assert untimed(short.history_) == untimed(long.history_)[:2]


@pytest.mark.parametrize("patience", [1, 3])
def test_validation_keeps_the_best_sweep_and_stops_by_patience(patience):
    X, y = problem(13, spread=1.5, n_rows=300)
    params = {"depth": 3, "validation_fraction": 0.3}
    clf = quick(max_sweeps=30, patience=patience, **params).fit(X, y)
    errors = [record["validation_error"] for record in clf.history_]
    assert clf.best_sweep_ == int(np.argmin(errors)) + 1
    assert clf.n_iter_ == clf.best_sweep_ + patience < 30
    exactly = quick(max_sweeps=clf.best_sweep_, patience=100, **params).fit(X, y)
    assert_same_tree(clf.tree_, exactly.tree_)


def test_validation_rows_are_a_share_of_all():
    """Errors are multiples of one row's share."""
    X, y = problem(13, spread=1.5, n_rows=100)
    clf = quick(validation_fraction=0.2).fit(X, y)
    for record in clf.history_:
        for error, n_rows in ((record["validation_error"], 20), (record["train_error"], 80)):
            assert error * n_rows == pytest.approx(round(error * n_rows), abs=1e-9)


@formats
@pytest.mark.parametrize("leaf_classes", [1, 2, 4])
def test_leaves_and_depth_are_limited(kind, leaf_classes):
    X, y = problem(14, kind=kind, spread=1.0)
    clf = quick(depth=3, leaf_classes=leaf_classes).fit(X, y)
    assert clf.tree_.leaf_sizes.max() <= leaf_classes
    assert clf.tree_.depth <= 3


@formats
def test_default_depth_leaves_rows_to_each_leaf(kind):
    X, y = problem(15, kind=kind, n_rows=850, n_classes=16)
    clf = quick(depth=None, leaf_classes=None, max_sweeps=1).fit(X, y)
    wanted = {"dense": 3, "csr": 2}[kind]  # log₂ 8.5 rows in hundreds; half of log₂ 16
    assert 1 <= clf.tree_.depth <= wanted
    few = quick(depth=None, leaf_classes=None, max_sweeps=1).fit(X[:60], y[:60])
    assert few.tree_.n_nodes == 1


@formats
@pytest.mark.parametrize("scale", [1 / 64, 64.0])
def test_by_default_the_scale_of_the_input_does_not_matter(kind, scale):
    """Up to the precision asked for, which is relative to the loss of the best constant model."""
    X, y = problem(16, kind=kind, spread=1.0)
    params = {"leaf_l1": 0.0, "leaf_ridge": None, "depth": 0, "leaf_classes": 6, "tol": 1e-4}
    a, b = quick(**params).fit(X, y), quick(**params).fit(scale * X, y)
    gap = 5.0 * 1e-4 * y.size * np.log(6.0)
    assert a.history_[-1]["objective"] == pytest.approx(b.history_[-1]["objective"], abs=gap)
    assert np.mean(a.predict(X) == b.predict(scale * X)) > 0.98


@formats
def test_stronger_penalties_make_sparser_trees(kind):
    X, y = problem(17, kind=kind, spread=1.0)
    sizes = [
        quick(router_l1=l1, leaf_l1=l1).fit(X, y).tree_.n_nonzero for l1 in (0.01, 3.0, 1000.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] == 0


def test_monotone_training():
    X, y = problem(18, spread=1.2)
    clf = quick(monotone=True, overlap=None, max_sweeps=8).fit(X, y)
    objectives = np.array([record["objective"] for record in clf.history_])
    assert np.all(objectives[1:] <= objectives[:-1] * (1.0 + 1e-6))


def test_fit_returns_itself_and_leaves_its_input_alone():
    X, y = problem(19)
    weight = np.ones(y.size)
    before = X.copy(), y.copy(), weight.copy()
    clf = quick(class_weight="balanced")
    assert clf.fit(X, y, weight) is clf
    for old, now in zip(before, (X, y, weight), strict=True):
        np.testing.assert_array_equal(old, now)


# -- warm starts -----------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_warm_start_does_not_end_worse(kind, monotone, seed):
    X, y = problem(seed, kind=kind, spread=1.0, n_classes=8, n_rows=200)
    params = {"depth": 3, "monotone": monotone, "overlap": None, "max_sweeps": 6}
    clf = quick(warm_start=True, **params).fit(X, y)
    before = objective_of(clf, X, y)
    clf.fit(X, y)
    assert objective_of(clf, X, y) <= before * (1.0 + 1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_with_overlap_and_validation_does_not_end_worse(seed):
    X, y = problem(seed, spread=1.0, n_classes=8, n_rows=200)
    params = {"depth": 3, "validation_fraction": 0.3, "max_sweeps": 6}
    clf = quick(warm_start=True, **params).fit(X, y)
    before = clf.history_[clf.best_sweep_ - 1]["validation_error"]
    clf.fit(X, y)
    after = min(record["validation_error"] for record in clf.history_)
    assert (clf.best_sweep_ == 0) == (after >= before)


def test_a_warm_start_goes_on_from_the_tree():
    X, y = problem(9, spread=1.0)
    clf = quick(depth=3, warm_start=True, monotone=True, overlap=None).fit(X, y)
    first = clf.tree_
    clf.set_params(depth=0, max_sweeps=1).fit(X, y)
    assert clf.tree_.n_leaves == first.n_leaves
    assert clf.n_iter_ == 1
    clf.set_params(warm_start=False).fit(X, y)
    assert clf.tree_.n_leaves == 1


def test_a_warm_start_with_other_rows_and_fewer_classes():
    X, y = problem(9, spread=1.0)
    names = np.array(["a", "b", "c", "d", "e", "f"])
    clf = quick(warm_start=True).fit(X, names[y])
    some = y < 4
    clf.fit(sp.csr_array(X[some]), names[y[some]])
    assert clf.classes_.tolist() == names.tolist()
    assert set(clf.predict(X[some])) <= set(names[:4])
    assert clf.predict_proba(X).shape == (y.size, 6)


def test_a_warm_start_before_any_fit_is_a_fit():
    X, y = problem(9)
    assert_same_model(quick(warm_start=True).fit(X, y), quick().fit(X, y))


# -- progress --------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_as_plain_lines(capsys):
    X, y = problem(spread=1.0)
    clf = quick(verbose=1, validation_fraction=0.3).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    assert "\x1b" not in err
    lines = err.splitlines()
    assert len(lines) == clf.n_iter_
    for record, line in zip(clf.history_, lines, strict=True):
        assert f"SoftmaxTreeClassifier: sweep {record['sweep']}/4 " in line
        assert f"train error {100 * record['train_error']:.2f} %" in line
        assert f"validation error {100 * record['validation_error']:.2f} %" in line
        assert f"objective {record['objective']:.6g}" in line


def test_progress_as_a_bar_on_a_terminal(monkeypatch):
    X, y = problem(spread=1.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clf = quick(verbose=1).fit(X, y)
    drawn = terminal.getvalue()
    assert drawn.startswith("\r\x1b[2K")
    assert drawn.count("\r") == clf.n_iter_ == 4
    assert (drawn.count("\n"), drawn[-1]) == (1, "\n")
    bars = re.findall("[█░]+", drawn)
    assert len({len(bar) for bar in bars}) == 1
    filled = [bar.count("█") for bar in bars]
    assert filled == sorted(set(filled))
    assert filled[-1] == len(bars[-1])
    assert "validation" not in drawn


def test_silence(capsys):
    X, y = problem()
    quick().fit(X, y)
    assert capsys.readouterr() == ("", "")

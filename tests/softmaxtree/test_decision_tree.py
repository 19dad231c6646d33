"""Decision trees to start from, and when adaptive trees do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxForestClassifier
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.routing import leaf_of_rows, route
from thinleaf.softmaxtree.growth import candidates
from thinleaf.softmaxtree.growth.decision_tree import decision_tree
from thinleaf.softmaxtree.tao import TrainingData

SEED = np.random.SeedSequence(0)


def cells(n_rows: int, seed: int, n_side: int = 9) -> TrainingData:
    """Return points of a grid whose cells have classes at random."""
    X = np.random.default_rng(seed).random((n_rows, 2)).astype(PARAM)
    label = np.random.default_rng(7).integers(0, 12, (n_side, n_side))
    row, column = (n_side * X).astype(int).T
    y = label[row, column].astype(INDEX)
    return TrainingData(X, y, np.ones(n_rows), 12)


def test_rows_start_where_the_tree_sends_them_and_its_error_is_that_of_the_judge():
    data, judge = cells(2000, 0), cells(500, 1)
    start, error = decision_tree(data, judge, SEED)
    assert_array_equal(start.assignment, leaf_of_rows(start.tree, route(start.tree, data.X)))
    tree = start.tree
    nodes = range(tree.n_nodes)
    usual = np.array([tree.leaf(i).classes[0] if tree.is_leaf[i] else -1 for i in nodes])
    wrong = usual[leaf_of_rows(tree, route(tree, judge.X))] != judge.y
    assert error == pytest.approx(wrong.mean())
    assert error < 0.2
    for node in np.flatnonzero(~tree.is_leaf):
        assert tree.router(node).features.size == 1


def test_no_row_is_left_out_and_leaves_are_pure_or_small():
    data = cells(1500, 2)
    start, _ = decision_tree(data, data, SEED)
    leaves, counts = np.unique(start.assignment, return_counts=True)
    assert leaves.size == start.tree.n_leaves
    for leaf, count in zip(leaves, counts, strict=True):
        assert np.unique(data.y[start.assignment == leaf]).size == 1 or count < 20


def test_a_limit_of_depth_is_kept():
    data = cells(1500, 3)
    assert decision_tree(data, data, SEED, deepest=3)[0].tree.depth == 3


def test_equal_rows_are_one_leaf():
    n = 40
    data = TrainingData(np.ones((n, 2), PARAM), (np.arange(n) % 2).astype(INDEX), np.ones(n), 2)
    start, error = decision_tree(data, data, SEED)
    assert start.tree.n_leaves == 1
    assert error == pytest.approx(0.5)


def test_cells_are_told_apart_as_by_a_decision_tree():
    data, test = cells(4000, 0, 14), cells(2000, 5, 14)
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(data.X, data.y)
    assert clf._found.kind.deep
    assert clf.score(test.X, test.y) > 0.9
    again = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(data.X, data.y)
    assert_array_equal(again.predict(test.X), clf.predict(test.X))
    data, test = cells(4000, 4), cells(2000, 5)
    forest = SoftmaxForestClassifier(n_estimators=3, random_state=0).fit(data.X, data.y)
    assert forest.score(test.X, test.y) > 0.9


def test_of_many_rows_a_decision_tree_must_promise_more(monkeypatch):
    data = cells(4000, 0, 14)
    monkeypatch.setattr(candidates, "_LARGE_WORTH_FITTING", 0.0)
    assert AdaptiveSoftmaxTreeClassifier(random_state=0).fit(data.X, data.y)._found.kind.deep
    monkeypatch.setattr(candidates, "_MANY_ROWS", 1000)
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(data.X, data.y)
    assert not clf._found.kind.deep


@pytest.mark.parametrize(
    "limits", [{"max_rounds": 1}, {"initial_depth": 2}, {"init": "pca_median"}]
)
def test_who_says_how_a_tree_starts_or_ends_gets_no_decision_tree(limits):
    data = cells(1500, 6)
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0, **limits).fit(data.X, data.y)
    assert not clf._found.kind.deep


def test_limits_of_depth_and_leaves_hold():
    data = cells(3000, 8)
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0, max_depth=5).fit(data.X, data.y)
    assert clf.tree_.depth <= 5
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0, max_leaves=16).fit(data.X, data.y)
    assert clf.tree_.n_leaves <= 16

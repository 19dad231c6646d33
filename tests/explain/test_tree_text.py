"""What is said of a tree in words is true of the tree."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tests.estimator_cases import formats, problem, quick
from thinleaf import FrozenTree
from thinleaf.explain.tree_text import LeafCounts, describe, render

NAMES = np.array([f"class {c}" for c in range(8)])


def fitted(kind: str, **params):
    X, y = problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=240)
    return quick(depth=3, **params).fit(X, NAMES[y]), X, y


@formats
def test_sizes_are_those_of_the_tree(kind):
    clf, _, _ = fitted(kind)
    tree, view = clf.tree_, describe(clf.freeze())
    assert (view.n_leaves, view.depth) == (tree.n_leaves, tree.depth)
    assert view.n_routers == tree.n_nodes - tree.n_leaves
    assert view.mean_leaf_classes == pytest.approx(tree.leaf_sizes.mean())
    assert sum(level.n_leaves for level in view.levels) == tree.n_leaves
    assert sum(level.n_routers for level in view.levels) == view.n_routers
    for level in view.levels:
        at = np.flatnonzero(tree.is_leaf & (tree.node_depth == level.depth))
        assert level.n_leaves == at.size
        sizes = [tree.leaf(int(node)).classes.size for node in at]
        assert level.mean_leaf_classes == (pytest.approx(np.mean(sizes)) if sizes else None)


@formats
def test_routers_show_what_sends_a_row_either_way(kind):
    clf, _, _ = fitted(kind)
    view = describe(clf.freeze(), feature_name=lambda f: f"f{f}", n_features=3, n_routers=2)
    assert [router.node for router in view.routers] == [0, 1]
    root = clf.tree_.router(0)
    weight = dict(zip((f"f{f}" for f in root.features), root.weights.tolist(), strict=True))
    shown = view.routers[0]
    assert shown.n_left_leaves + shown.n_right_leaves == clf.tree_.n_leaves
    assert all(weight[name] == w for name, w in shown.left + shown.right)
    assert shown.left[0][1] == root.weights.min() < 0.0
    assert shown.right[0][1] == root.weights.max() > 0.0
    assert len(shown.left) <= 3


@formats
def test_the_largest_leaves_come_first(kind):
    clf, _, _ = fitted(kind)
    view = describe(clf.freeze(), n_leaves=100, n_labels=100)
    sizes = [leaf.n_classes for leaf in view.leaves]
    assert sizes == sorted(sizes, reverse=True)
    for shown in view.leaves:
        leaf = clf.tree_.leaf(shown.node)
        assert shown.labels == clf.classes_[leaf.classes].tolist()
        best = np.unravel_index(leaf.weights.argmax(), leaf.weights.shape)
        name, weight, label = shown.features[0]
        assert int(name) == leaf.features[best[0]]
        assert weight == pytest.approx(float(leaf.weights.max()))
        assert label == clf.classes_[leaf.classes[best[1]]]


@formats
@pytest.mark.parametrize("beam", [1, 3])
def test_rows_are_counted_at_their_leaves(kind, beam):
    clf, X, y = fitted(kind)
    model: FrozenTree = clf.freeze(beam=beam)
    counts = LeafCounts(model)
    known = y.copy()
    known[0] = -1  # a class that the model has never seen
    labelled = np.arange(y.size) != 5
    for rows in np.array_split(np.arange(y.size), 3):
        counts.add(X[rows], known[rows], labelled[rows])
    view = describe(model, counts=counts, n_leaves=100)
    assert view.n_rows == y.size
    wrong = (model.predict(X) != NAMES[y]) | (known < 0)
    assert view.error == pytest.approx(wrong[labelled].mean())
    assert [leaf.n_rows for leaf in view.leaves] == sorted(counts.n_rows.tolist(), reverse=True)
    assert sum(level.n_rows for level in view.levels) == y.size
    for leaf in view.leaves:
        assert leaf.n_rows == np.count_nonzero(clf.apply(X) == leaf.node)


@formats
def test_it_can_be_read_by_people_and_by_machines(kind):
    clf, X, y = fitted(kind)
    model = clf.freeze()
    counts = LeafCounts(model)
    counts.add(X, y, np.ones(y.size, dtype=bool))
    view = describe(model, counts=counts)
    text = render(view)
    assert f"{view.n_leaves} leaves" in text
    assert "class 0" in text
    assert "240 rows, error" in text
    assert json.loads(json.dumps(dataclasses.asdict(view)))["depth"] == view.depth
    assert "240 rows" not in render(describe(model))


def test_a_single_leaf_has_a_description():
    X, y = problem(0, n_classes=3)
    clf = quick(depth=0, leaf_classes=3).fit(X, y)
    view = describe(clf.freeze())
    assert (view.n_leaves, view.n_routers, view.routers, view.depth) == (1, 0, [], 0)
    assert "routers at the top" not in render(view)


def test_feature_names_of_the_model_are_used():
    import pandas as pd

    X, y = problem(0, n_classes=3)
    frame = pd.DataFrame(X, columns=[f"column {f}" for f in range(X.shape[1])])
    view = describe(quick(depth=1).fit(frame, y).freeze())
    assert view.routers[0].left[0][0].startswith("column ")

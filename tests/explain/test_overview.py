"""Views of whole trees: importances, what decides for a class, who shares a leaf."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.estimator_cases import formats, problem, quick
from tests.frozen_cases import real_rows, rich_forest, rich_model
from thinleaf import LabelTreeClassifier, SoftmaxForestClassifier, load_estimator
from thinleaf.explain.overview import class_view, feature_importances, shared_leaves
from thinleaf.model.importance import feature_spread, importances, nodes_of, packed_nodes


@formats
def test_importances_are_those_of_the_training(kind, tmp_path):
    X, y = problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=240)
    clf = quick(depth=3).fit(X, y)
    found = clf.feature_importances_
    assert found.shape == (clf.n_features_in_,)
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= 0.0)
    np.testing.assert_allclose(found, feature_importances(clf, X), atol=1e-12)
    np.testing.assert_allclose(found, feature_importances(clf.freeze(), X), atol=1e-12)
    assert clf.node_weight_[0] == 240.0
    clf.save(tmp_path / "model", trainable=True)
    np.testing.assert_array_equal(load_estimator(tmp_path / "model").feature_importances_, found)
    del clf.node_weight_
    with pytest.raises(AttributeError, match="no importances"):
        _ = clf.feature_importances_


def test_a_feature_that_decides_is_important():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 2] > 0).astype(int) * 2 + (X[:, 4] > 0)
    found = quick(depth=1).fit(X, y).feature_importances_
    assert set(np.argsort(-found)[:2].tolist()) == {2, 4}
    assert found[[2, 4]].sum() > 0.8


def test_importances_by_the_definition():
    model = rich_model(1)
    X = real_rows(3)
    leaves = model.apply(X)
    expected = np.zeros(model.n_features)
    parents = {}
    for node, child in enumerate(model.packed.child.tolist()):
        if child >= 0:
            parents |= {child: node, child + 1: node}
    reach = np.zeros(model.packed.n_nodes)
    for node in leaves.tolist():
        while node is not None:
            reach[node] += 1
            node = parents.get(node)
    for node, part in packed_nodes(model.packed):
        weights = (
            part.weights
            if part.weights.ndim == 2
            else np.stack([np.zeros(part.weights.size), part.weights], axis=1)
        )
        expected[part.features] += reach[node] * weights.std(axis=1)
    expected *= X.std(axis=0)
    np.testing.assert_allclose(feature_importances(model, X), expected / expected.sum(), rtol=1e-5)


def test_importances_of_a_forest_are_a_mean():
    X, y = problem(0, kind="dense", spread=1.0, n_classes=6, n_rows=150)
    clf = SoftmaxForestClassifier(
        quick(depth=2, max_sweeps=2), n_estimators=3, max_features=0.5, random_state=0
    ).fit(X, y)
    found = clf.feature_importances_
    assert found.sum() == pytest.approx(1.0)
    each = [tree.feature_importances_ for tree in clf.estimators_]
    np.testing.assert_allclose(found, np.mean(each, axis=0))
    assert all(e.shape == found.shape for e in each)
    with pytest.raises(AttributeError):
        _ = SoftmaxForestClassifier().feature_importances_


def test_nothing_depends_on_a_constant_feature():
    X, y = problem(0, kind="dense", spread=1.0, n_classes=4, n_rows=80)
    clf = quick(depth=1).fit(X, y)
    assert not importances(nodes_of(clf.tree_), clf.node_weight_, np.zeros(X.shape[1])).any()
    assert feature_spread(np.ones((3, 2), np.float32)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_class_is_where_it_is(sparse):
    model = rich_model(2, sparse=sparse)
    packed = model.packed
    for label in model.labels.tolist():
        view = class_view(model, label, n_features=100, n_mates=100)
        held = [i for i in range(packed.n_leaves) if label in packed.leaf(i).classes]
        assert [place.leaf for place in view.places] == held
        for place in view.places:
            assert place.depth == packed.node_depth[place.node] == len(place.way)
        mates = dict(view.mates)
        assert label not in mates
        for other, n in mates.items():
            assert n == sum(other in packed.leaf(i).classes for i in held)
        assert all(w > 0 for _, w in view.features)
        assert all(w < 0 for _, w in view.against)
        assert str(view).startswith(f"{label}: in {len(held)} leaves")
    with pytest.raises(ValueError, match="no class"):
        class_view(model, "nobody")


def test_a_class_has_the_features_that_lead_to_it():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 6
    X = np.eye(6, 8)[y] + 0.1 * rng.normal(size=(300, 8))
    clf = quick(depth=2).fit(X, y)
    for label in range(6):
        assert class_view(clf, label).features[0][0] == f"feature {label}"


def test_pairs_share_leaves():
    model = rich_forest(range(2))
    packed = model.packed
    held = [set(packed.leaf(i).classes.tolist()) for i in range(packed.n_leaves)]
    pairs = shared_leaves(model, n=1000)
    expected = {
        (a, b): n
        for a, b in combinations(range(packed.n_classes), 2)
        if (n := sum(a in own and b in own for own in held))
    }
    assert {(a, b): n for a, b, n in pairs} == expected
    assert [n for *_, n in pairs] == sorted(expected.values(), reverse=True)


def test_label_trees_have_no_leaves_to_look_at():
    clf = LabelTreeClassifier(dim=4, epochs=1, random_state=0).fit(np.eye(4), [0, 1, 2, 3])
    with pytest.raises(TypeError, match="not for a LabelTreeClassifier"):
        shared_leaves(clf)

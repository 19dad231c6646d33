"""Pruning: smaller trees, same predictions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests import reference
from tests.strategies import FORMATS, as_rows, blobs, trees, trees_and_rows
from thinleaf._dtypes import INDEX, NO_CHILD, PARAM
from thinleaf.execution import SerialExecutor
from thinleaf.model.routing import losses, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.tao import Settings, optimise

redundant = {"zero": 0.4, "pure": 0.7}


def assert_nothing_left_to_prune(tree: Tree) -> None:
    for node in np.flatnonzero(~tree.is_leaf):
        assert tree.router(node).weights.any()
        below = [n for n in reference.descendants(tree, int(node)) if tree.is_leaf[n]]
        classes = [tuple(tree.leaf(leaf).classes.tolist()) for leaf in below]
        assert len(set(classes)) > 1 or len(classes[0]) > 1


@given(trees(**redundant))
def test_pruning_equals_the_recursive_reference(tree):
    small, _ = prune(tree)
    small.validate()
    assert reference.nested(small) == reference.pruned(tree)
    assert (small.n_features, small.n_classes) == (tree.n_features, tree.n_classes)


@given(trees_and_rows(**redundant))
def test_predictions_do_not_change_for_any_row(case):
    tree, X, _ = case
    small, _ = prune(tree)
    assert [reference.predict(small, x) for x in X] == [reference.predict(tree, x) for x in X]


@given(trees_and_rows(**redundant))
def test_predictions_do_not_change_for_the_rows_that_reached(case):
    tree, X, y = case
    if len(X) == 0:
        return
    reached = route(tree, as_rows(X, "dense")).sizes > 0
    small, kept = prune(tree, reached)
    small.validate()
    assert reference.nested(small) == reference.pruned(tree, reached)
    assert [reference.predict(small, x) for x in X] == [reference.predict(tree, x) for x in X]
    assert reached[kept].all()
    for kind in FORMATS:
        rows = as_rows(X, kind)
        before = losses(tree, rows, y, route(tree, rows))
        after = losses(small, rows, y, route(small, rows))
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
    assert np.all(route(small, as_rows(X, "dense")).sizes > 0)


@given(trees_and_rows(**redundant))
def test_nothing_redundant_remains(case):
    tree, X, _ = case
    assert_nothing_left_to_prune(prune(tree)[0])
    if len(X):
        reached = route(tree, as_rows(X, "dense")).sizes > 0
        assert_nothing_left_to_prune(prune(tree, reached)[0])


@given(trees(**redundant))
def test_pruning_twice_is_pruning_once(tree):
    once, _ = prune(tree)
    twice, kept = prune(once)
    assert reference.nested(twice) == reference.nested(once)
    assert sorted(kept.tolist()) == list(range(once.n_nodes))
    np.testing.assert_array_equal(twice.children, once.children)
    np.testing.assert_array_equal(kept, np.arange(once.n_nodes))


@given(trees(**redundant))
def test_nodes_are_numbered_breadth_first(tree):
    small, _ = prune(tree)
    assert np.all(np.diff(small.node_depth) >= 0)
    inner = small.children[~small.is_leaf].ravel()
    assert inner.tolist() == list(range(1, small.n_nodes))


@given(trees_and_rows(**redundant))
def test_kept_names_the_old_node(case):
    tree, X, _ = case
    small, kept = prune(tree)
    assert (kept.shape, kept.dtype) == ((small.n_nodes,), INDEX)
    assert np.unique(kept).size == kept.size
    before, after = reference.reach_sets(tree, X), reference.reach_sets(small, X)
    for new, old in enumerate(kept):
        assert after[new] == before[old]
        if not small.is_leaf[new]:
            for name, value in vars(small.router(new)).items():
                np.testing.assert_array_equal(value, getattr(tree.router(old), name))
        elif tree.is_leaf[old]:
            np.testing.assert_array_equal(small.leaf(new).classes, tree.leaf(old).classes)
        else:
            leaves = [n for n in reference.descendants(tree, int(old)) if tree.is_leaf[n]]
            only = small.leaf(new).classes.tolist()
            assert only in [tree.leaf(leaf).classes.tolist() for leaf in leaves]


@given(trees(zero=0.0, pure=0.0))
def test_a_tree_of_which_all_is_needed_stays(tree):
    needed = all(
        tree.node(n).weights.any() if not tree.is_leaf[n] else tree.leaf(n).classes.size > 1
        for n in range(tree.n_nodes)
    )
    if needed:
        assert reference.nested(prune(tree)[0]) == reference.nested(tree)


def test_a_pure_tree_is_one_leaf():
    tree = Tree.complete(3, n_features=2, n_classes=4, class_id=3)
    router = Router(np.array([0], INDEX), np.ones(1, PARAM), 0.0)
    tree = tree.replace({int(n): router for n in np.flatnonzero(~tree.is_leaf)})
    small, kept = prune(tree)
    assert (small.n_nodes, kept.tolist()) == (1, [0])
    assert small.leaf(0).classes.tolist() == [3]


@pytest.mark.parametrize("side", [0, 1])
def test_a_router_without_weights_gives_way_to_its_child(side):
    children = np.array([[1, 2], [NO_CHILD, NO_CHILD], [NO_CHILD, NO_CHILD]])
    leaves = [
        Leaf(np.array(classes, INDEX), np.empty(0, INDEX), np.empty((0, 2), PARAM), bias)
        for classes, bias in (([0, 1], np.zeros(2, PARAM)), ([1, 2], np.ones(2, PARAM)))
    ]
    tree = Tree.build(children, [Router.constant(side), *leaves], n_features=2, n_classes=3)
    small, kept = prune(tree)
    assert (small.n_nodes, kept.tolist()) == (1, [1 + side])
    np.testing.assert_array_equal(small.leaf(0).classes, leaves[side].classes)
    np.testing.assert_array_equal(small.leaf(0).bias, leaves[side].bias)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_trained_tree_predicts_the_same_after_pruning(kind):
    data = blobs(0, kind=kind, spread=0.3, n_rows=60)
    first = initial_tree(data, 5, "random", np.random.SeedSequence(0))
    settings = Settings(
        Objective(routers=Penalty(l1=1.0), leaves=Penalty(l1=0.1)),
        np.full(first.tree.n_nodes, 2, INDEX),
    )
    tree = optimise(first.tree, data, settings, SerialExecutor(), max_sweeps=4).tree
    reach = route(tree, data.X)
    small, _ = prune(tree, reach.sizes > 0)
    assert small.n_nodes < tree.n_nodes
    before, after = (
        losses(tree, data.X, data.y, reach),
        losses(small, data.X, data.y, route(small, data.X)),
    )
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)

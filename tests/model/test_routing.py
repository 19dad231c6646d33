"""Running rows through trees: reach sets, scores and losses against the row-by-row reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.strategies import FORMATS, as_rows, integer_rows, random_tree, trees_and_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.routing import (
    all_rows,
    choose_child,
    leaf_losses,
    leaf_of_rows,
    losses,
    losses_from,
    reach_of_assignment,
    route,
)
from thinleaf.model.tree import Leaf, Router, Tree

both_formats = pytest.mark.parametrize("kind", FORMATS)


@both_formats
@given(case=trees_and_rows())
def test_reach_sets_are_those_of_the_reference(kind, case):
    tree, X, _ = case
    reach = route(tree, as_rows(X, kind))
    expected = reference.reach_sets(tree, X)
    for node in range(tree.n_nodes):
        assert set(reach.of(node).tolist()) == expected[node]
        assert reach.sizes[node] == len(expected[node])
    leaves = [reference.leaf_of(tree, x) for x in X]
    assert leaf_of_rows(tree, reach).tolist() == leaves


@both_formats
@given(case=trees_and_rows())
def test_reach_sets_partition_the_rows(kind, case):
    tree, X, _ = case
    reach = route(tree, as_rows(X, kind))
    leaves = np.flatnonzero(tree.is_leaf)
    everyone = np.concatenate([reach.of(leaf) for leaf in leaves])
    assert sorted(everyone.tolist()) == list(range(len(X)))
    for node in np.flatnonzero(~tree.is_leaf):
        left, right = tree.children[node]
        # left rows first, then right rows: the sweep relies on it
        np.testing.assert_array_equal(
            reach.of(node), np.concatenate([reach.of(left), reach.of(right)])
        )
    for leaf in leaves:
        assert np.all(np.diff(reach.positions(leaf)) > 0)


@both_formats
@given(case=trees_and_rows(), data=st.data())
def test_routing_some_rows_from_any_node(kind, case, data):
    tree, X, _ = case
    start = data.draw(st.integers(0, tree.n_nodes - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows = rng.permutation(len(X))[: len(X) // 2].astype(INDEX)
    reach = route(tree, as_rows(X, kind), rows, start)
    expected = [reference.leaf_of(tree, X[i], start) for i in rows]
    assert leaf_of_rows(tree, reach).tolist() == expected
    assert reach.of(start).size == rows.size
    outside = set(range(tree.n_nodes)) - set(reference.descendants(tree, start))
    assert all(reach.sizes[node] == 0 for node in outside)


@given(case=trees_and_rows())
def test_an_assignment_equals_the_routing_that_it_describes(case):
    tree, X, _ = case
    routed = route(tree, as_rows(X, "dense"))
    assigned = reach_of_assignment(tree, leaf_of_rows(tree, routed))
    for node in range(tree.n_nodes):
        np.testing.assert_array_equal(assigned.of(node), routed.of(node))
        np.testing.assert_array_equal(assigned.positions(node), routed.positions(node))


@given(case=trees_and_rows(), seed=st.integers(0, 2**32 - 1))
def test_any_assignment_is_kept(case, seed):
    tree, X, _ = case
    rng = np.random.default_rng(seed)
    leaves = rng.choice(np.flatnonzero(tree.is_leaf), size=len(X)).astype(INDEX)
    reach = reach_of_assignment(tree, leaves)
    np.testing.assert_array_equal(leaf_of_rows(tree, reach), leaves)
    for node in range(tree.n_nodes):
        below = np.flatnonzero(np.isin(leaves, reference.descendants(tree, node)))
        assert sorted(reach.of(node).tolist()) == below.tolist()


@both_formats
@given(case=trees_and_rows())
def test_losses(kind, case):
    tree, X, y = case
    rows = as_rows(X, kind)
    cross_entropy, correct = losses(tree, rows, y, route(tree, rows))
    expected = [
        reference.outcome(tree.leaf(reference.leaf_of(tree, x)), x, label)
        for x, label in zip(X, y, strict=True)
    ]
    np.testing.assert_allclose(cross_entropy, [e for e, _ in expected], rtol=1e-5, atol=1e-5)
    assert np.all(cross_entropy >= 0.0)
    assert correct.tolist() == [c for _, c in expected]


@both_formats
@given(case=trees_and_rows(), data=st.data())
def test_losses_from_a_node(kind, case, data):
    tree, X, y = case
    start = data.draw(st.integers(0, tree.n_nodes - 1))
    rows = np.arange(len(X), dtype=INDEX)[::2]
    cross_entropy, correct = losses_from(tree, as_rows(X, kind), y, rows, start)
    expected = [
        reference.outcome(tree.leaf(reference.leaf_of(tree, X[i], start)), X[i], int(y[i]))
        for i in rows
    ]
    np.testing.assert_allclose(cross_entropy, [e for e, _ in expected], rtol=1e-5, atol=1e-5)
    assert correct.tolist() == [c for _, c in expected]


@both_formats
@given(case=trees_and_rows())
def test_one_leaf_and_one_router_alone(kind, case):
    tree, X, y = case
    rows, every = as_rows(X, kind), np.arange(len(X), dtype=INDEX)
    for node in range(tree.n_nodes):
        item = tree.node(node)
        if tree.is_leaf[node]:
            _, correct = leaf_losses(item, rows, y, every)
            assert correct.tolist() == [
                reference.outcome(item, x, label)[1] for x, label in zip(X, y, strict=True)
            ]
        else:
            chosen = choose_child(item, rows, every)
            assert chosen.tolist() == [reference.side(item, x) for x in X]


@both_formats
@given(seed=st.integers(0, 2**32 - 1))
def test_a_router_decides_the_same_alone_and_in_a_tree(kind, seed):
    """Also for rows on the hyperplane, where rounding decides: the sweep relies on it."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, 40))
    X = rng.standard_normal((20, n_features)).astype(PARAM)
    used = np.flatnonzero(rng.random(n_features) < 0.7).astype(INDEX)
    weights = rng.standard_normal(used.size).astype(PARAM)
    router = Router(used, weights, -float(X[0, used] @ weights))
    children = np.array([[1, 2], [-1, -1], [-1, -1]])
    nodes = [router, Leaf.constant(0), Leaf.constant(1)]
    tree = Tree.build(children, nodes, n_features=n_features, n_classes=2)
    rows = as_rows(X, kind)
    alone = choose_child(tree.router(0), rows, all_rows(rows))
    np.testing.assert_array_equal(alone + 1, leaf_of_rows(tree, route(tree, rows)))


@both_formats
def test_a_batch_equals_its_rows_one_by_one(kind):
    rng = np.random.default_rng(5)
    tree = random_tree(rng, n_leaves=9, n_features=8)
    X = rng.standard_normal((40, 8))  # sums that are not exact, too
    y = rng.integers(tree.n_classes, size=40).astype(INDEX)
    rows = as_rows(X, kind)
    reach = route(tree, rows)
    leaves = leaf_of_rows(tree, reach)
    cross_entropy, correct = losses(tree, rows, y, reach)
    for i in all_rows(rows):
        one = as_rows(X[[i]], kind)
        alone = route(tree, one)
        one_entropy, one_correct = losses(tree, one, y[[i]], alone)
        assert leaf_of_rows(tree, alone)[0] == leaves[i]
        assert one_entropy[0] == cross_entropy[i]
        assert one_correct[0] == correct[i]


def test_dense_and_sparse_rows_agree():
    rng = np.random.default_rng(6)
    tree = random_tree(rng, n_leaves=9, n_features=8)
    X = integer_rows(rng, 60, 8)
    y = rng.integers(tree.n_classes, size=60).astype(INDEX)
    dense, sparse = (as_rows(X, kind) for kind in FORMATS)
    for a, b in zip(
        losses(tree, dense, y, route(tree, dense)),
        losses(tree, sparse, y, route(tree, sparse)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_no_rows():
    tree = random_tree(np.random.default_rng(7))
    for kind in FORMATS:
        rows = as_rows(np.empty((0, tree.n_features)), kind)
        reach = route(tree, rows)
        cross_entropy, correct = losses(tree, rows, np.empty(0, dtype=INDEX), reach)
        assert (cross_entropy.size, correct.size, leaf_of_rows(tree, reach).size) == (0, 0, 0)

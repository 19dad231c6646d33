"""A patched tree is the tree with its nodes replaced, wherever one looks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estimator_cases import assert_same_tree
from tests.strategies import random_leaf, random_router, trees_and_rows
from thinleaf.model.patched_tree import at_node, patched
from thinleaf.model.routing import losses_from
from thinleaf.model.tree import Leaf, Router, Tree


def new_nodes(tree: Tree, seed: int) -> list[dict[int, Router | Leaf]]:
    """Return two changes of some nodes; some are changed twice."""
    rng = np.random.default_rng(seed)
    changes = []
    for _ in range(2):
        some = rng.permutation(tree.n_nodes)[: rng.integers(0, tree.n_nodes + 1)].tolist()
        changes.append(
            {
                i: random_leaf(rng, tree.n_features, tree.n_classes)
                if tree.is_leaf[i]
                else random_router(rng, tree.n_features)
                for i in some
            }
        )
    return changes


@given(case=trees_and_rows(), seed=st.integers(0, 99))
def test_it_has_the_nodes_and_losses_of_the_tree_after_the_changes(case, seed):
    tree, X, y = case
    changes = new_nodes(tree, seed)
    expected = tree.replace(changes[0]).replace(changes[1])
    found = patched(tree, changes)
    np.testing.assert_array_equal(found.is_leaf, expected.is_leaf)
    rows = np.arange(len(X), dtype=np.int32)
    for node in range(tree.n_nodes):
        below, at = at_node(found, node)
        below.validate()
        for part, other in zip(
            losses_from(below, X, y, rows, at), losses_from(expected, X, y, rows, node), strict=True
        ):
            np.testing.assert_array_equal(part, other)
    assert_same_tree(found.below(0), _renumbered(expected))


def _renumbered(tree: Tree) -> Tree:
    """Return a tree with its nodes level by level, as ``below`` has them."""
    return patched(tree, [{}]).below(0)


def test_a_leaf_is_no_router_and_a_tree_is_itself():
    tree = Tree.complete(1, n_features=2, n_classes=2)
    found = patched(tree, [{1: Leaf.constant(1)}])
    assert found.leaf(1).classes.tolist() == [1]
    with pytest.raises(ValueError, match="a router"):
        found.leaf(0)
    with pytest.raises(ValueError, match="a leaf"):
        found.router(1)
    assert at_node(tree, 2) == (tree, 2)

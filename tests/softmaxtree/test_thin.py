"""Trees without weights that hardly matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import trees
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf._dtypes import PARAM
from thinleaf.arrays.rows import as_rows
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.thin import Least, feature_sizes, find_least, thinned


@given(trees(), st.sampled_from([0.0, 1.0, 2.5, 9.0]), st.sampled_from([0.0, 2.0, 9.0]))
def test_weights_stay_that_matter_enough(tree, leaves, routers):
    sizes = np.linspace(0.5, 2.0, tree.n_features).astype(PARAM)
    thin = thinned(tree, Least(leaves, routers), sizes)
    thin.validate()
    for node in range(tree.n_nodes):
        before, after = tree.node(node), thin.node(node)
        least = leaves if isinstance(before, Leaf) else routers
        size = (
            sizes[before.features][:, None] if isinstance(before, Leaf) else sizes[before.features]
        )
        expected = np.zeros((tree.n_features, *before.weights.shape[1:]), PARAM)
        kept = np.abs(before.weights) * size >= least
        expected[before.features] = np.where(kept, before.weights, 0.0)
        found = np.zeros_like(expected)
        found[after.features] = after.weights
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(before.bias, after.bias)
        if least > 0.0 and isinstance(after, Leaf):
            assert after.weights.any(axis=1).all()  # features without a weight are gone
    assert thin.n_nonzero <= tree.n_nonzero


def test_sizes_of_features():
    X = sp.csr_array(np.array([[3, 0, 1, 2], [4, 0, 1, 0]], PARAM))
    rare = math.sqrt(math.sqrt(2.0) * 2.0)  # the geometric mean over all rows and its own
    np.testing.assert_allclose(feature_sizes(as_rows(X)), [math.sqrt(12.5), 0, 1, rare])


def test_as_many_go_as_the_judge_does_not_miss():
    rng = np.random.default_rng(0)
    k, d = 8, 200
    weights = np.where(rng.random((d, k)) < 0.3, rng.uniform(0.1, 1.0, (d, k)), 0.0).astype(PARAM)
    leaf = Leaf(
        np.arange(k, dtype=np.int32), np.arange(d, dtype=np.int32), weights, np.zeros(k, PARAM)
    )
    tree = Tree.build([(-1, -1)], [leaf.compact()], n_features=d, n_classes=k)
    sizes = np.ones(d, PARAM)

    def errors(tree: Tree) -> np.ndarray:
        least = np.abs(tree.entry_val).min(initial=1.0)
        return np.array([100.0, 100.0 if least < 0.6 else 104.0])

    found = find_least(tree, sizes, errors)
    assert 0.4 < found.leaves < 0.6
    assert found.routers == 0.0  # there is none
    assert find_least(tree, sizes, lambda tree: np.array([tree.n_nonzero])).leaves > 0.6
    more = find_least(tree, sizes, lambda tree: np.array([-float(tree.n_nonzero)]))
    assert more == Least()
    assert thinned(tree, Least(), sizes) is tree


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 12)
    topic = rng.random((40, 300)) < 0.05
    X = (topic[y] & (rng.random((y.size, 300)) < 0.7)) | (rng.random((y.size, 300)) < 0.02)
    return sp.csr_matrix(X.astype(PARAM) / np.maximum(np.sqrt(X.sum(axis=1)), 1)[:, None]), y


def test_an_adaptive_tree_drops_small_weights_when_told_to(words):
    X, y = words
    options = {"leaf_loss": "hinge", "initial_depth": 2, "random_state": 0}
    kept, auto, dropped = (
        AdaptiveSoftmaxTreeClassifier(small_weights=how, **options).fit(X, y)
        for how in ("keep", "auto", "drop")
    )
    assert auto.tree_.n_nonzero == kept.tree_.n_nonzero  # it is a small tree
    assert dropped.tree_.n_nonzero < kept.tree_.n_nonzero
    assert dropped.score(X, y) > kept.score(X, y) - 0.03
    np.testing.assert_array_equal(kept.predict(X), auto.predict(X))

"""Weights of nodes for some features are those of the nodes, whatever the layout."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frozen_cases import layouts, rich_model, weight_types
from thinleaf._dtypes import INDEX
from thinleaf.model.importance import PackedRouters
from thinleaf.model.narrow import narrowed
from thinleaf.model.packed_weights import leaf_columns, leaf_weights, router_weights


@layouts
@weight_types
@pytest.mark.parametrize("narrow", [False, True])
def test_weights_of_nodes(sparse, weights, narrow):
    packed = rich_model(2, sparse=sparse, weights=weights).packed
    packed = narrowed(packed) if narrow else packed
    features = np.array([0, 3, 4, 9, 17, 29], dtype=INDEX)
    nodes = np.flatnonzero(packed.child >= 0).astype(INDEX)
    found, routers = router_weights(packed, nodes, features), PackedRouters(packed)
    for column, node in enumerate(nodes.tolist()):
        router = packed.router(node)
        whole = np.zeros(packed.n_features)
        whole[router.features] = router.weights
        np.testing.assert_array_equal(found[:, column], whole[features])
        np.testing.assert_array_equal(routers[node].features, router.features)
        np.testing.assert_array_equal(routers[node].weights, router.weights)
    for i in range(packed.n_leaves):
        leaf = packed.leaf(i)
        whole = np.zeros((packed.n_features, leaf.classes.size))
        whole[leaf.features] = leaf.weights
        exact = leaf_weights(packed, i, features)
        assert exact.shape == (features.size, leaf.classes.size)
        np.testing.assert_allclose(exact, whole[features], rtol=1e-6)
        slots = [leaf.classes.size - 1, 0][: leaf.classes.size]
        own, columns = leaf_columns(packed, i, slots)
        found = np.zeros((packed.n_features, len(slots)))
        found[own] = columns
        np.testing.assert_allclose(found, whole[:, slots], rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_no_features(sparse):
    packed = rich_model(2, sparse=sparse).packed
    none = np.empty(0, dtype=INDEX)
    assert router_weights(packed, np.zeros(1, INDEX), none).shape == (0, 1)
    assert leaf_weights(packed, 0, none).shape[0] == 0

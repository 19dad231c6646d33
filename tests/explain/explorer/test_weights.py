"""Weights as a page holds them are those of the model; top features have the largest effect."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.explain.explorer.test_block import unpacked
from tests.frozen_cases import weight_types
from tests.narrow_cases import narrow_tree
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.weights import add_leaves, routers_of, top_features
from thinleaf.model.packing import PackedTree


@pytest.mark.parametrize("sparse", [False, True])
def test_routers_are_those_of_the_tree(sparse):
    X, y = problem(0, n_classes=8, n_rows=240)
    model = quick(depth=3, router_l1=0.5).fit(sp.csr_matrix(X) if sparse else X, y).freeze()
    routers = routers_of(model.packed)
    for node in np.flatnonzero(model.packed.child >= 0).tolist():
        own = slice(*routers.ptr[node : node + 2])
        expected = model.packed.router(node)
        kept = expected.weights != 0.0
        assert np.array_equal(routers.features[own], expected.features[kept])
        assert np.array_equal(routers.weights[own], expected.weights[kept])


@weight_types
def test_routers_and_leaves_of_narrow_trees(weights):
    packed = narrow_tree(7, weights=weights).packed
    routers = routers_of(packed)
    for node in np.flatnonzero(packed.child >= 0).tolist():
        own = slice(*routers.ptr[node : node + 2])
        assert np.array_equal(routers.features[own], packed.router(node).features)
        assert np.array_equal(routers.weights[own], packed.router(node).weights)
    check_leaves(packed)


@weight_types
@pytest.mark.parametrize("sparse", [False, True])
def test_leaves_come_back(sparse, weights):
    X, y = problem(0, n_classes=8, n_rows=240)
    clf = quick(depth=3).fit(sp.csr_matrix(X) if sparse else X, y)
    check_leaves(clf.freeze(weights=weights).packed)


def check_leaves(packed: PackedTree) -> None:
    kept = np.arange(0, packed.n_leaves, 2)
    block = Block()
    add_leaves(block, packed, kept)
    _, found = unpacked(block.packed())
    assert np.array_equal(found["kept"], kept)
    row = at = slot = 0
    for i, size in zip(kept.tolist(), found["kept.sizes"].tolist(), strict=True):
        leaf = packed.leaf(i)
        k = leaf.classes.size
        dense = np.zeros((size, k), dtype=np.float32)
        for r in range(size):
            n = int(found["kept.row_sizes"][row + r])
            slots = np.arange(k) if n == k else found["kept.slots"][slot : slot + n]
            slot += 0 if n == k else n
            dense[r, slots] = found["kept.values"][at : at + n]
            at += n
        row += size
        if packed.weights == "int8":
            dense *= packed.scale[packed.class_ptr[i] : packed.class_ptr[i + 1]]
        own = found["kept.features"][row - size : row]
        assert np.array_equal(own, leaf.features)
        assert np.array_equal(dense, leaf.weights)
    assert (at, slot) == (found["kept.values"].size, found["kept.slots"].size)


def test_top_features_have_the_largest_effect():
    X, y = problem(0, n_classes=8, n_rows=240)
    packed = quick(depth=2).fit(X, y).freeze().packed
    spread = np.linspace(0.1, 3.0, packed.n_features)
    top = top_features(packed, routers_of(packed), spread, 2)
    router = packed.router(0)
    effect = router.weights * spread[router.features]
    expected = [*np.argsort(effect)[:2], *np.argsort(-effect)[:2]]
    expected = [e for e, sign in zip(expected, (-1, -1, 1, 1), strict=True) if effect[e] * sign > 0]
    n = top.sizes[0]
    assert np.array_equal(top.features[:n], router.features[expected])
    assert np.allclose(top.effects[:n], np.abs(effect[expected]))
    assert np.array_equal(top.classes[:n], router.weights[expected] > 0.0)

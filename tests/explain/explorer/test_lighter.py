"""Lighter models: fewer weights, the same tree, and nearly the same answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.frozen_cases import layouts, rich_model
from thinleaf.explain.explorer.lighter import agreement, lighter
from thinleaf.model.packing import PackedTree


def n_weights(packed: PackedTree) -> tuple[int, int]:
    leaves = sum(np.count_nonzero(packed.leaf(i).weights) for i in range(packed.n_leaves))
    routers = [packed.router(i) for i in np.flatnonzero(packed.child >= 0).tolist()]
    return leaves, sum(np.count_nonzero(router.weights) for router in routers)


@layouts
@pytest.mark.parametrize("weights", ["float32", "float16", "int8"])
def test_a_share_of_the_weights_stays(sparse, weights):
    model = rich_model(2, sparse=sparse, weights=weights)
    before = n_weights(model.packed)
    spread = np.ones(model.n_features)
    for share in (1.0, 0.3, 0.0):
        packed = lighter(model, spread, share).packed
        packed.validate()
        leaves, routers = n_weights(packed)
        assert leaves <= share * before[0] + 6  # some weights are equal
        assert routers <= min(1.0, 2.5 * share) * before[1] + 3
        assert leaves >= (0.8 * share) * before[0] - 3
        np.testing.assert_array_equal(packed.child, model.packed.child)
        halves = packed.router_val.astype(np.float16)
        np.testing.assert_array_equal(halves.astype(np.float32), packed.router_val)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_answers_are_nearly_the_same(as_rows):
    X, y = problem(0, n_classes=8, n_rows=240, spread=1.0)
    model = quick(depth=3).fit(as_rows(X), y).freeze()
    rows = model._rows(as_rows(X))
    spread = np.ones(model.n_features)
    whole = agreement(model, lighter(model, spread, 1.0), rows)
    assert whole.n_rows == 240
    assert whole.same > 0.97
    assert whole.difference < 0.02
    assert agreement(model, model, rows).same == 1.0
    assert agreement(model, model, rows).difference < 1e-12
    nothing = agreement(model, lighter(model, spread, 0.0), rows)
    assert nothing.same < whole.same


def test_features_that_vary_little_go_first():
    model = rich_model(2, sparse=True)
    spread = np.full(model.n_features, 1e-9)
    spread[:5] = 1.0
    packed = lighter(model, spread, 0.1).packed
    leaves = [packed.leaf(i) for i in range(packed.n_leaves)]
    kept = np.concatenate([leaf.features[leaf.weights.any(axis=1)] for leaf in leaves])
    assert kept.size
    assert kept.max() < 5

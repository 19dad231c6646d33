"""What rows that were not fitted say of a tree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.estimator_cases import assert_same_tree
from tests.strategies import random_tree, trees_and_rows
from thinleaf._dtypes import INDEX
from thinleaf.model.routing import losses, route
from thinleaf.softmaxtree.growth import trust
from thinleaf.softmaxtree.growth.trust import sharpened, with_sharpness
from thinleaf.softmaxtree.tao import TrainingData


@given(trees_and_rows(), st.sampled_from([0.25, 0.5, 2.0]))
def test_sharpness_changes_no_answer(case, factor):
    tree, X, y = case
    sharp = with_sharpness(tree, factor)
    sharp.validate()
    for one in (tree, sharp):
        np.testing.assert_array_equal(route(one, X).sizes, route(tree, X).sizes)
    before, after = (losses(t, X, y, route(t, X)) for t in (tree, sharp))
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(np.isinf(before[0]), np.isinf(after[0]))


@given(trees_and_rows())
def test_a_tree_is_sharpened_as_the_judge_likes_it(case):
    tree, X, y = case
    judge = TrainingData(X, y, np.linspace(0.5, 1.5, y.size), tree.n_classes)
    sharp, factor = sharpened(tree, judge)
    assert factor in trust._SHARPNESS
    assert_same_tree(sharp, with_sharpness(tree, factor))

    def loss(factor: float) -> float:
        entropy, _ = losses(tree, X, y, route(tree, X), factor)
        inside = np.isfinite(entropy)
        return float(entropy[inside] @ judge.weight[inside])

    # scores are of single precision: two factors may be equally good but for rounding
    least = min(loss(f) for f in trust._SHARPNESS)
    assert loss(factor) <= least + 1e-5 * (1.0 + least)


def test_where_the_judge_does_not_care_nothing_changes():
    """No row of the judge is inside: all factors are equally good."""
    tree = random_tree(np.random.default_rng(0), 4, n_features=3, n_classes=5)
    judge = TrainingData(np.zeros((0, 3), np.float32), np.zeros(0, INDEX), np.zeros(0), 5)
    assert sharpened(tree, judge)[1] == 1.0

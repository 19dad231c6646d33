"""The order test: names that say something are found out, and random ones are, too."""

from __future__ import annotations

import numpy as np
import pytest

from thinleaf._dtypes import INDEX, PARAM
from thinleaf.labeltree.start import order_test, projected, prototypes
from thinleaf.labeltree.targets import Targets


def grouped_rows(n_labels=60, n_groups=6, n=3000):
    """Return rows of labels that are alike if they are next to each other."""
    rng = np.random.default_rng(0)
    centre = 2 * rng.standard_normal((n_groups, 20))[np.arange(n_labels) * n_groups // n_labels]
    centre += rng.standard_normal((n_labels, 20))
    y = rng.integers(n_labels, size=n)
    return (centre[y] + rng.standard_normal((n, 20))).astype(PARAM), y


@pytest.mark.parametrize("arity", [2, 5])
def test_an_order_that_says_what_is_alike_passes_and_a_random_one_does_not(arity):
    X, y = grouped_rows()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = projected(X, 1.0, rng)
        targets = Targets.single(y.astype(INDEX))
        assert order_test(rows, targets, 60, arity, rng).passed
        hidden = Targets.single(rng.permutation(60)[y].astype(INDEX))
        assert not order_test(rows, hidden, 60, arity, rng).passed


def test_labels_without_rows_and_few_rows():
    X, y = grouped_rows(n=12)
    rng = np.random.default_rng(0)
    rows, targets = projected(X, 1.0, rng), Targets.single(y.astype(INDEX))
    assert not order_test(rows, targets, 60, 3, rng).passed
    points = prototypes(rows, targets, 60)
    length = np.linalg.norm(points, axis=1)
    np.testing.assert_allclose(length[np.unique(y)], 1.0, rtol=1e-5)
    assert np.count_nonzero(length) == np.unique(y).size
    one = Targets.single(np.zeros(1, dtype=INDEX))
    assert not order_test(rows[:1], one, 2, 2, rng).passed


def test_rows_of_several_labels_count_for_each():
    X, y = grouped_rows()
    pairs = Targets(np.arange(0, 2 * y.size + 1, 2), np.repeat(y, 2).astype(INDEX))
    rows = projected(X, 1.0, np.random.default_rng(0))
    single = Targets.single(y.astype(INDEX))
    np.testing.assert_allclose(prototypes(rows, pairs, 60), prototypes(rows, single, 60), rtol=1e-4)
    assert order_test(rows, pairs, 60, 5, np.random.default_rng(0)).passed

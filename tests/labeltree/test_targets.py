"""Labels of rows that have several."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from thinleaf._dtypes import INDEX
from thinleaf.labeltree.targets import Targets, indicator, is_indicator, targets_of

Y = np.array([[1, 0, 1, 0], [0, 0, 1, 0], [1, 0, 1, 1]])


def test_targets_are_the_labels_of_rows():
    targets, columns = targets_of(indicator(Y, 3))
    assert columns.tolist() == [0, 2, 3]
    assert targets.ptr.tolist() == [0, 2, 3, 6]
    assert targets.labels.tolist() == [0, 1, 1, 0, 1, 2]
    assert targets.rows.tolist() == [0, 0, 1, 2, 2, 2]
    np.testing.assert_allclose(targets.frequency(3), [5 / 6, 11 / 6, 1 / 3])
    weighted = targets.frequency(3, np.array([2.0, 1.0, 3.0]))
    np.testing.assert_allclose(weighted, [2.0, 3.0, 1.0])
    some = targets.take(np.array([2, 0]))
    assert some.labels.tolist() == [0, 1, 2, 0, 1]
    assert some.ptr.tolist() == [0, 3, 5]


def test_each_label_of_a_row_is_drawn_as_often():
    targets, _ = targets_of(indicator(sp.csr_matrix(Y), 3))
    rng = np.random.default_rng(0)
    drawn = np.array([targets.drawn(rng) for _ in range(3000)])
    assert set(drawn[:, 1]) == {1}
    np.testing.assert_allclose(np.bincount(drawn[:, 2]) / 3000, 1 / 3, atol=0.05)
    np.testing.assert_allclose(np.bincount(drawn[:, 0]) / 3000, 1 / 2, atol=0.05)


def test_nothing_is_drawn_for_rows_of_one_label():
    y = np.array([2, 0, 1], dtype=INDEX)
    rng = np.random.default_rng(0)
    assert Targets.single(y).drawn(rng) is y
    assert rng.random() == np.random.default_rng(0).random()


def test_what_is_no_indicator_is_refused():
    assert is_indicator(sp.csr_matrix(Y))
    assert is_indicator(Y)
    for y in (Y[:, 0], Y[:, :1], ["a", "b"]):
        assert not is_indicator(y)
    with pytest.raises(ValueError, match="there are 4 rows"):
        indicator(Y, 4)
    for bad in (2 * Y, Y - 1, Y * np.nan):
        with pytest.raises(ValueError, match="MultiLabelBinarizer"):
            indicator(bad, 3)

"""Parts that add up exactly."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thinleaf.model.explanation.sums import additive

floats = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=200, deadline=None)
@given(arrays(np.float32, (7, 3), elements=floats), arrays(np.float32, 3, elements=floats))
def test_parts_add_up_and_stay_what_they_are(parts, bias):
    total = bias.copy()
    for row in parts:  # as a kernel adds
        total += row
    exact = parts.astype(np.float64)
    found_bias, amounts, rounding = additive(total.astype(float), bias.astype(float), exact)
    for i in range(3):
        listed = [found_bias[i], *amounts[:, i].tolist(), rounding[i]]
        assert sum(listed) == total[i]
        assert np.sum(listed[:-1]) + listed[-1] == total[i]
        size = np.abs(exact[:, i]).sum() + abs(float(bias[i])) + abs(float(total[i]))
        assert abs(rounding[i]) <= 1e-6 * size
        on_grid = abs(total[i]) > 1e-7 * size or rounding[i] + total[i] == 0.0
        slack = (1e-14 if on_grid else 1e-6) * size
        assert np.all(np.abs(amounts[:, i] - exact[:, i]) <= slack)
        assert abs(found_bias[i] - bias[i]) <= slack
        if on_grid:
            assert math.fsum(listed) == sum(reversed(listed)) == total[i]


def test_nothing_adds_up_to_its_bias():
    bias, amounts, rounding = additive(np.array([0.5]), np.array([0.5]), np.zeros((0, 1)))
    assert (bias[0], amounts.size, rounding[0]) == (0.5, 0, 0.0)


def test_a_score_far_below_its_parts_adds_up():
    total = np.array([1e-20])
    bias, amounts, rounding = additive(total, np.array([1.0]), np.array([[-1.0], [1e-12]]))
    assert bias[0] + amounts.sum() + rounding[0] == total[0]

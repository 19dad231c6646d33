"""Decisions by rows that are not fitted: how they are held out, and what they may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import FORMATS, blobs, random_tree
from thinleaf._dtypes import INDEX
from thinleaf.model.routing import losses, route
from thinleaf.softmaxtree.growth import first_tree
from thinleaf.softmaxtree.growth.adapt import hold_out
from thinleaf.softmaxtree.growth.first_tree import (
    Wishes,
    first_limits,
    flat_is_affordable,
    usual_depth,
)
from thinleaf.softmaxtree.growth.judge import Expansion, Gain, Judge, promising, worth_keeping
from thinleaf.softmaxtree.growth.round_record import RoundRecord, last_gain
from thinleaf.softmaxtree.objective import Objective
from thinleaf.softmaxtree.tao import TrainingData

formats = pytest.mark.parametrize("kind", FORMATS)
SEED = np.random.SeedSequence(5)


# -- rows that are held out ------------------------------------------------------------------------


@st.composite
def labelled(draw: st.DrawFn) -> TrainingData:
    """Rows of some classes, in any numbers, all of one weight a class."""
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    y = np.repeat(np.arange(len(counts)), counts).astype(INDEX)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weight = rng.uniform(0.1, 5.0, len(counts))[y]
    order = rng.permutation(y.size)
    X = rng.standard_normal((y.size, 2)).astype(np.float32)
    return TrainingData(X, y[order], weight[order], len(counts))


shares = st.floats(0.05, 0.6)


@given(labelled(), shares, st.integers(0, 1000))
def test_about_the_same_share_of_every_class_is_held_out(data, share, seed):
    held = hold_out(data, share, np.random.SeedSequence(seed))
    assert np.all((held == 0.0) | (held == data.weight))
    for c in range(data.n_classes):
        own = data.y == c
        n_held = np.count_nonzero(held[own])
        assert abs(n_held - share * own.sum()) <= 2.0
        assert n_held < own.sum(), "a class is held out as a whole"


@given(labelled(), shares)
def test_weights_may_be_scaled(data, share):
    held = hold_out(data, share, SEED)
    for factor in (0.125, 1024.0):
        scaled = hold_out(replace(data, weight=data.weight * factor), share, SEED)
        np.testing.assert_array_equal(scaled, held * factor)


@given(labelled(), shares)
def test_holding_out_repeats(data, share):
    np.testing.assert_array_equal(hold_out(data, share, SEED), hold_out(data, share, SEED))


def test_seeds_hold_out_other_rows():
    data = blobs(0)
    held = {hold_out(data, 0.2, np.random.SeedSequence(i)).tobytes() for i in range(5)}
    assert len(held) == 5


@given(labelled(), shares, st.integers(2, 9))
def test_rows_that_stand_for_several_are_on_both_sides(data, share, times):
    """As copies would be: the share of each is held out."""
    several = np.random.default_rng(0).random(data.n_rows) < 0.3
    for c in range(data.n_classes):
        several[np.flatnonzero(data.y == c)[0]] = False
    merged = replace(data, weight=np.where(several, times * data.weight, data.weight))
    held = hold_out(merged, share, SEED)
    np.testing.assert_allclose(held[several], share * merged.weight[several])
    assert np.all((held[~several] == 0.0) | (held[~several] == merged.weight[~several]))
    left = np.bincount(data.y, weights=merged.weight - held, minlength=data.n_classes)
    assert np.all(left > 0.0)


def test_a_class_of_one_row_is_not_held_out():
    data = TrainingData(np.zeros((3, 1), np.float32), np.arange(3, dtype=INDEX), np.ones(3), 3)
    for seed in range(20):
        assert not hold_out(data, 0.5, np.random.SeedSequence(seed)).any()


# -- what a judge decides --------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3)), max_size=8), st.floats(0, 4))
def test_replacements_are_kept_unless_their_loss_surely_rises(gains, doubt):
    tree = random_tree(np.random.default_rng(0), 2)
    found = {leaf: Expansion(tree, Gain(*pair)) for leaf, pair in enumerate(gains)}
    kept = worth_keeping(found, doubt)
    assert kept.keys() <= found.keys()
    for leaf, (gain, error) in enumerate(gains):
        assert (leaf in kept) == (gain + doubt * error >= 0.0 or gain >= -doubt * error)
    assert all(kept[leaf] is tree for leaf in kept)


@formats
def test_the_same_leaf_gains_nothing(kind):
    data = blobs(0, kind=kind)
    tree = random_tree(np.random.default_rng(1), 1, n_features=5, n_classes=6)
    judge = Judge(data, route(tree, data.X))
    gain = judge.gain(Objective(), 0, tree.leaf(0), tree)
    assert (gain.fall, gain.doubt) == (0.0, 0.0)


@formats
def test_a_gain_is_errors_and_a_little_of_their_loss(kind):
    data = blobs(0, kind=kind, weighted=True)
    rng = np.random.default_rng(2)
    old = random_tree(rng, 1, n_features=5, n_classes=6)
    new = random_tree(rng, 3, n_features=5, n_classes=6)
    objective = Objective(beta=4.0)
    gain = Judge(data, route(old, data.X)).gain(objective, 0, old.leaf(0), new)
    fall = np.zeros(data.n_rows)
    for sign, tree in ((1.0, old), (-1.0, new)):
        entropy, correct = losses(tree, data.X, data.y, route(tree, data.X))
        fall += sign * data.weight * (~correct + 0.05 * np.minimum(entropy, 4.0))
    assert gain.fall == pytest.approx(fall.sum(), abs=1e-6)
    assert gain.doubt == pytest.approx(np.sqrt((fall**2).sum()), abs=1e-6)
    entropy, correct = losses(old, data.X, data.y, route(old, data.X))
    before = data.weight @ (~correct + 0.05 * np.minimum(entropy, 4.0))
    assert gain.before == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([Gain(5.0, 1.0, 20.0)], True),
        ([Gain(1.9, 1.0, 5.0)], False),  # it may be chance
        ([Gain(3.0, 1.0, 40.0)], False),  # it is too little
        ([Gain(5.0, 1.0, 20.0), Gain(-4.0, 0.5, 5.0)], False),  # what one gains, another loses
        ([], False),
    ],
)
def test_a_round_is_tried_if_some_leaves_surely_gain_much(gains, expected):
    assert promising(gains, 2.0) is expected


def record(number: int, error: float | None) -> RoundRecord:
    return replace(_EMPTY, round=number, validation_error=error)


_EMPTY = RoundRecord(**dict.fromkeys(RoundRecord.__dataclass_fields__, 0))


def test_the_last_gain_is_more_than_a_hundredth():
    def last(*errors: float) -> int:
        return last_gain([record(i, e) for i, e in enumerate(errors)])

    assert last(0.5) == 0
    assert last(0.5, 0.4, 0.3) == 2
    assert last(0.5, 0.4, 0.399, 0.4) == 1
    assert last(0.5, 0.6, 0.4) == 2
    assert last(0.0, 0.0, 0.0) == 0
    assert last(0.5, 0.497, 0.494) == 2, "small gains add up"


# -- where a tree starts ---------------------------------------------------------------------------


def test_the_usual_depth_leaves_a_small_share_to_each_leaf():
    depths = [usual_depth(n) for n in (1, 2, 50, 200, 201, 1748, 10**5)]
    assert depths == sorted(depths)
    assert depths[0] == 2
    for n in (201, 1748, 10**5):
        assert n / 2 ** usual_depth(n) <= 50 < n / 2 ** (usual_depth(n) - 1)


def wishes(**options) -> Wishes:
    usual = {
        "depth": None,
        "deepest": 24,
        "contraction": 0.8,
        "first_share": None,
        "leaf_losses": ("softmax",),
        "flat_losses": ("softmax", "hinge"),
        "search": True,
        "init": "pca_median",
        "axis": False,
        "refit_sweeps": 1,
    }
    return Wishes(**(usual | options))


def test_leaves_of_the_first_tree_hold_a_few_fair_shares():
    rng = np.random.default_rng(0)
    for n_leaves in (1, 2, 4, 8):
        tree = random_tree(rng, n_leaves, n_features=4, n_classes=20)
        limits = first_limits(tree, wishes())
        assert limits.shape == (tree.n_nodes,)
        assert limits[0] == (20 if n_leaves == 1 else min(16, 4 * -(-20 // n_leaves)))
        assert np.all(first_limits(tree, wishes(first_share=0.3)) == 6)
        assert np.all(first_limits(tree, wishes(first_share=0.001)) == 1)


@formats
def test_a_flat_leaf_is_tried_where_it_is_cheap(kind, monkeypatch):
    data = blobs(0, kind=kind)
    assert flat_is_affordable(data.X, 6)
    monkeypatch.setattr(first_tree, "SPARSE_WORK", 1.0)
    monkeypatch.setattr(first_tree, "DENSE_WORK", 1.0)
    if kind == "sparse":  # of few classes, a leaf is no more work than those of a tree
        assert flat_is_affordable(data.X, 6)
        assert not flat_is_affordable(data.X, 601)
    monkeypatch.setattr(first_tree, "_MOST_SPARSE_WORK", 1.0)
    assert not flat_is_affordable(data.X, 6)


def test_few_dense_features_and_many_classes_are_not_tried_flat():
    X = blobs(0).X
    assert not flat_is_affordable(X, 1000)

"""Trials before growth: a strength is the best of its neighbours, leaves are tried as fitted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import FORMATS, blobs
from thinleaf._dtypes import INDEX
from thinleaf.execution import SerialExecutor
from thinleaf.model.routing import route
from thinleaf.softmaxtree.growth import trial
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.growth.trial import (
    FIRST_STRENGTH,
    LeafKind,
    choose_leaf_kind,
    fit_once,
    look_again,
    search,
)
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.hinge import solve_hinge
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.tao import Settings, error
from thinleaf.softmaxtree.tao.overlap import find_overlap

formats = pytest.mark.parametrize("kind", FORMATS)
SEED = np.random.SeedSequence(3)


# -- the search ------------------------------------------------------------------------------------


@given(st.floats(-6.0, 6.0), st.floats(1e-4, 10.0))
def test_the_lowest_of_a_valley_is_found_if_it_is_near(place, first):
    """No neighbour is better, unless the steps ran out."""

    def score(strength: float) -> float:
        return abs(math.log(strength / first) / math.log(trial._STEP) - place)

    best, at = search(score, first)
    assert best == score(at)
    if abs(place) <= trial._MOST_STEPS:
        assert best <= min(score(at * trial._STEP), score(at / trial._STEP)) + 1e-9
    assert best <= score(first)


@given(st.integers(0, 2**32 - 1))
def test_it_never_ends_worse_than_it_began(seed):
    rng = np.random.default_rng(seed)
    known: dict[float, float] = {}

    def score(strength: float) -> float:
        return known.setdefault(round(math.log(strength), 6), float(rng.integers(5)))

    best, at = search(score, 0.5)
    assert best == score(at) == min(known.values())
    assert best <= score(0.5)
    assert len(known) <= 1 + 2 * trial._MOST_STEPS


def test_where_nothing_changes_it_stays():
    assert search(lambda strength: 1.0, 0.7) == (1.0, 0.7)


# -- kinds of leaves -------------------------------------------------------------------------------


def case(kind: str, init: str = "balanced_clusters"):
    """Return a first tree, rows to fit and rows to decide by, and settings for a kind of leaf."""
    data = blobs(0, kind=kind, n_rows=240, n_classes=8, spread=0.8)
    rows = np.arange(data.n_rows)
    fitted, judge = data.take(rows[rows % 4 > 0]), data.take(rows[rows % 4 == 0])
    start = initial_tree(fitted, 2, init, SEED)

    def settings_of(kind: LeafKind, limits: np.ndarray) -> Settings:
        penalty = Penalty(ridge=kind.strength * 5.0)
        solve = solve_hinge if kind.loss == "hinge" else solve_softmax
        return Settings(Objective(leaves=penalty, routers=penalty), limits, solve_leaf=solve)

    return start, fitted, judge, settings_of, np.full(start.tree.n_nodes, 4, INDEX)


@formats
@pytest.mark.parametrize("init", ["balanced_clusters", "pca_median"])
def test_every_loss_has_a_strength_that_no_neighbour_beats(kind, init, monkeypatch):
    monkeypatch.setattr(trial, "_CLOSE", math.inf)
    start, data, judge, settings_of, limits = case(kind, init)
    losses = ("hinge", "softmax")
    found = choose_leaf_kind(start, data, judge, settings_of, losses, limits, SEED)
    assert sorted(k.loss for k in found) == sorted(losses)

    def score(kind: LeafKind) -> float:
        sample = trial._sample_leaves(start, data, judge, SEED)
        settings = settings_of(kind, limits)
        return trial._scores(list(sample), data, judge, settings)[0]

    assert score(found[0]) <= score(found[1])
    for one in found:
        assert score(one) <= score(replace(one, strength=FIRST_STRENGTH[one.loss]))
    again = choose_leaf_kind(start, data, judge, settings_of, losses[::-1], limits, SEED)
    assert again == found


def test_a_loss_that_is_far_behind_is_not_followed(monkeypatch):
    start, data, judge, settings_of, limits = case("dense")
    tried = []

    def score(leaf, data, judge, settings):
        loss = "hinge" if settings.solve_leaf is solve_hinge else "softmax"
        tried.append(loss)
        return {"hinge": 1.0, "softmax": 2.0}[loss], 1

    monkeypatch.setattr(trial, "_leaf_score", score)
    losses = ("hinge", "softmax")
    found = choose_leaf_kind(start, data, judge, settings_of, losses, limits, SEED)
    assert found == [LeafKind("hinge", FIRST_STRENGTH["hinge"])]
    assert tried.count("softmax") == start.tree.n_leaves  # once each
    losses = ("softmax", "hinge")  # the first that is named is followed
    found = choose_leaf_kind(start, data, judge, settings_of, losses, limits, SEED)
    assert [kind.loss for kind in found] == ["hinge", "softmax"]


# -- once leaves have guests -----------------------------------------------------------------------


def grown(kind: str):
    start, data, judge, settings_of, limits = case(kind)
    first = LeafKind("softmax", 0.3)

    def with_guests(kind: LeafKind, limits: np.ndarray) -> Settings:
        return replace(settings_of(kind, limits), overlap=0.05)

    settings = with_guests(first, limits)
    tree = fit_once(start, 2, data, judge, settings, first, SerialExecutor()).tree
    return tree, data, judge, with_guests, limits


@formats
def test_a_second_look_counts_guests_and_rows_that_went_astray(kind, monkeypatch):
    tree, data, judge, settings_of, limits = grown(kind)
    reach, judged = route(tree, data.X), route(tree, judge.X)
    near = find_overlap(tree, data.X, reach, 0.05, SerialExecutor())
    seen = {}

    def score(leaf, data, judge, settings):
        seen[leaf.node] = leaf
        return abs(math.log(settings.objective.leaves.ridge / 5.0)), 1  # the best strength is 1

    monkeypatch.setattr(trial, "_leaf_score", score)
    kinds = [LeafKind("softmax", 27.0)]
    executor = SerialExecutor()
    found = look_again(tree, data, judge, settings_of, kinds, limits, SEED, executor)
    assert found.strength == pytest.approx(1.0)
    assert sorted(seen) == [i for i in np.flatnonzero(tree.is_leaf) if judged.sizes[i]]
    for node, leaf in seen.items():
        rows, weight = near[node].join(reach.of(node), data.weight)
        np.testing.assert_array_equal(leaf.rows, rows)
        np.testing.assert_array_equal(leaf.weight, weight)
        np.testing.assert_array_equal(leaf.judged, judged.of(node))


@pytest.mark.parametrize(("softmax", "expected"), [(0.98, "hinge"), (0.9, "softmax")])
def test_the_quicker_loss_is_taken_unless_another_is_clearly_better(softmax, expected, monkeypatch):
    tree, data, judge, settings_of, limits = grown("dense")

    def score(leaf, data, judge, settings):
        return 1.0 if settings.solve_leaf is solve_hinge else softmax, 1

    monkeypatch.setattr(trial, "_leaf_score", score)
    kinds = [LeafKind("softmax", 0.3), LeafKind("hinge", 0.3)]
    executor = SerialExecutor()
    found = look_again(tree, data, judge, settings_of, kinds, limits, SEED, executor)
    assert found.loss == expected


def test_a_tree_does_not_become_too_large(monkeypatch):
    tree, data, judge, settings_of, limits = grown("dense")

    def score(leaf, data, judge, settings):
        strength = settings.objective.leaves.ridge / 5.0
        return strength, int(1000 / strength)  # the less the better, but also the larger

    monkeypatch.setattr(trial, "_leaf_score", score)
    executor = SerialExecutor()
    for most in (1, 10_000, 40_000):
        monkeypatch.setattr(trial, "_MOST_WEIGHTS", most)
        kinds = [LeafKind("softmax", 1.0)]
        found = look_again(tree, data, judge, settings_of, kinds, limits, SEED, executor)
        assert found.strength == 1.0 or tree.n_leaves * 900 / found.strength <= most
    assert found.strength < 1.0


def test_without_overlap_there_is_no_second_look():
    tree, data, judge, settings_of, limits = grown("dense")

    def alone(kind: LeafKind, limits: np.ndarray) -> Settings:
        return replace(settings_of(kind, limits), overlap=None)

    kinds = [LeafKind("hinge", 0.7), LeafKind("softmax", 0.3)]
    executor = SerialExecutor()
    assert look_again(tree, data, judge, alone, kinds, limits, SEED, executor) == kinds[0]


def test_a_step_must_gain_enough():
    def score(strength: float) -> float:
        return 100.0 - 0.5 * abs(math.log(strength, 3.0))

    assert search(score, 1.0, 0.01) == (100.0, 1.0)
    assert search(score, 1.0)[0] < 100.0


@formats
@pytest.mark.parametrize("init", ["balanced_clusters", "pca_median"])
def test_sampled_leaves_have_the_rows_that_start_in_them(kind, init):
    start, data, judge, _, _ = case(kind, init)
    sample = list(trial._sample_leaves(start, data, judge, SEED))
    assert sorted(leaf.node for leaf in sample) == np.flatnonzero(start.tree.is_leaf).tolist()
    assert sum(leaf.rows.size for leaf in sample) == data.n_rows
    assert sum(leaf.judged.size for leaf in sample) == judge.n_rows
    for leaf in sample:  # the judge's rows are where most rows of their class are
        for c in np.unique(judge.y[leaf.judged]):
            counts = np.bincount(start.assignment[data.y == c], minlength=start.tree.n_nodes)
            assert counts[leaf.node] == counts.max()


def test_a_sample_is_of_few_rows_but_of_one_leaf_at_least():
    start, data, judge, _, _ = case("dense")
    leaves = list(trial._sample_leaves(start, data, judge, SEED))
    assert len(list(trial._some(leaves, data, 1))) == 1
    assert list(trial._some(leaves, data, data.n_rows)) == leaves


@formats
def test_a_leaf_is_scored_by_errors_first(kind):
    """Its score lies between its errors and these plus β for every row, as a small share."""
    start, data, judge, settings_of, limits = case(kind)
    for loss in ("softmax", "hinge"):
        settings = settings_of(LeafKind(loss, 0.1), limits)
        for leaf in trial._sample_leaves(start, data, judge, SEED):
            fitted, _ = trial.train_leaf(
                data, leaf.rows, data.weight[leaf.rows], 4, trial.Leaf.constant(0), settings
            )
            _, correct = trial.leaf_losses(fitted, judge.X, judge.y, leaf.judged)
            n_wrong = np.count_nonzero(~correct)
            most = trial._LOSS_SHARE * settings.objective.beta * leaf.judged.size
            score, n_weights = trial._leaf_score(leaf, data, judge, settings)
            assert n_weights == fitted.weights.size
            assert n_wrong <= score <= n_wrong + most


@formats
def test_a_first_tree_knows_its_error(kind):
    start, data, judge, settings_of, limits = case(kind)
    leaf = LeafKind("softmax", 0.1)
    executor = SerialExecutor()
    fitted = fit_once(start, 2, data, judge, settings_of(leaf, limits), leaf, executor)
    assert (fitted.depth, fitted.kind) == (2, leaf)
    assert fitted.error == error(fitted.tree, judge)
    assert fitted.tree.leaf_sizes.max() <= 4

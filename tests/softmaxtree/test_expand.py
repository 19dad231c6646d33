"""Growth: a round is that of figure 1, limits hold, and the history is true."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.estimator_cases import assert_same_tree
from tests.strategies import FORMATS, as_rows, blobs, dense_of
from thinleaf._dtypes import INDEX
from thinleaf.execution import SerialExecutor, executor_for
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth import expand
from thinleaf.softmaxtree.growth.expand import (
    Grown,
    Growth,
    contracted,
    expand_leaf,
    grow,
    growing_leaves,
    within_limit,
)
from thinleaf.softmaxtree.growth.initial_tree import initial_tree, node_seed
from thinleaf.softmaxtree.growth.round_record import best_round
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import Settings, TrainingData, optimise

formats = pytest.mark.parametrize("kind", FORMATS)
SEED = np.random.SeedSequence(7)


def growth_of(**options) -> Growth:
    """Return settings that grow in a fraction of a second."""
    usual = {
        "contraction": 0.7,
        "tolerance": 1.0,
        "depth": 1,
        "init": "pca_median",
        "local_sweeps": 3,
        "sweeps": 3,
        "max_rounds": 3,
    }
    return Growth(**(usual | options))


def settings_of(tree: Tree, limit: int, overlap: float | None = None, **options) -> Settings:
    objective = Objective("constant", 5.0, Penalty(0.05, 0.5), Penalty(0.05, 0.1))
    return Settings(objective, np.full(tree.n_nodes, limit, INDEX), overlap=overlap, **options)


def grown_from(
    data: TrainingData,
    *,
    initial_depth: int = 2,
    limit: int | None = None,
    overlap: float | None = None,
    executor=None,
    validation: TrainingData | None = None,
    precision: Precision | None = None,
    **options,
) -> tuple[Grown, list[Grown], Settings]:
    """Grow a tree; return its last state and that after every round."""
    first = initial_tree(data, initial_depth, "pca_median", np.random.SeedSequence(0))
    limit = limit or max(1, int(0.7 * data.n_classes))
    settings = settings_of(first.tree, limit, overlap, precision=precision or Precision())
    rounds: list[Grown] = []
    end = grow(
        first,
        data,
        settings,
        growth_of(**options),
        executor or SerialExecutor(),
        SEED,
        validation=validation,
        after_round=rounds.append,
    )
    return end, rounds, settings


class Watching:
    """Stands for ``expand_leaf`` and remembers what was tried and what came of it."""

    def __init__(self, monkeypatch):
        self.tried: list[dict[str, object]] = []
        monkeypatch.setattr(expand, "expand_leaf", self)

    def __call__(self, tree, data, reach, settings, growth, seed, leaf, **judging):
        expansion = expand_leaf(tree, data, reach, settings, growth, seed, leaf, **judging)
        self.tried.append(
            {
                "round": seed.spawn_key[-1],
                "leaf": leaf,
                "rows": tuple(reach.of(leaf).tolist()),
                "classes": tree.leaf(leaf).classes.size,
                "subtree": None if expansion is None else expansion.subtree,
            }
        )
        return expansion


# -- figure 1, right -------------------------------------------------------------------------------


def errors(tree: Tree, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    return sum(w for x, c, w in zip(X, y, weight, strict=True) if reference.predict(tree, x) != c)


def single(leaf, tree: Tree) -> Tree:
    """Return a tree of one leaf."""
    children = np.full((1, 2), -1)
    return Tree.build(children, [leaf], n_features=tree.n_features, n_classes=tree.n_classes)


def figure_1(tree: Tree, data: TrainingData, settings: Settings, growth: Growth, round_seed):
    """Return the leaves that a round tries and the subtrees that it accepts, line by line."""
    X = dense_of(data.X)
    reduced_sets = reference.reach_sets(tree, X)  # update R_j for all leaves j
    tried, accepted = [], {}
    for j in range(tree.n_nodes):  # for j in leaves
        if tree.children[j, 0] != -1 or tree.leaf(j).classes.size == 1 or len(reduced_sets[j]) < 2:
            continue
        tried.append(j)
        rows = np.array(sorted(reduced_sets[j]), dtype=INDEX)
        local = data.take(rows)
        # initialise an ST of depth Δ̂ with (α k_j)-class leaves
        start = initial_tree(local, growth.depth, growth.init, node_seed(round_seed, j))
        k = max(1, min(int(growth.contraction * tree.leaf(j).classes.size + 1e-9), 10**9))
        k = min(k, tree.leaf(j).classes.size - 1)
        leaves = [i for i in range(start.tree.n_nodes) if start.tree.is_leaf[i]]
        subtree = start.tree.replace({i: tree.leaf(j) for i in leaves})
        # fit it with TAO on R_j
        limits = np.full(subtree.n_nodes, k, INDEX)
        fitted = optimise(
            subtree,
            local,
            replace(settings, leaf_limits=limits),
            SerialExecutor(),
            max_sweeps=growth.local_sweeps,
            assignment=start.assignment,
        ).tree
        # if loss(τ_j) / loss(f_j) ≤ ρ, accept
        before = errors(single(tree.leaf(j), tree), X[rows], local.y, local.weight)
        after = errors(fitted, X[rows], local.y, local.weight)
        reached = [bool(s) for s in reference.reach_sets(fitted, X[rows])]
        small = reference.pruned(fitted, reached)
        if after <= growth.tolerance * before + 1e-9 and small[0] == "router":
            accepted[j] = small
    return tried, accepted


def with_subtrees(tree: Tree, subtrees: dict, node: int = 0):
    """Return a tree as nested tuples, some leaves replaced."""
    if node in subtrees:
        return subtrees[node]
    whole = reference.nested(tree, node)
    if whole[0] == "leaf":
        return whole
    left, right = (with_subtrees(tree, subtrees, int(child)) for child in tree.children[node])
    return (*whole[:4], left, right)


@formats
@pytest.mark.parametrize("overlap", [None, 0.05])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("tolerance", [0.0, 1.0, 1.5, 1e9])
def test_a_round_is_that_of_figure_1(kind, overlap, depth, tolerance, monkeypatch):
    """Without sweeps over the whole tree, what is left of a round are the expansions."""
    data = blobs(1, kind=kind, n_rows=150, n_classes=7, spread=0.9, weighted=True)
    _, (before,), settings = grown_from(data, max_rounds=0, overlap=overlap)
    growth = growth_of(tolerance=tolerance, depth=depth, sweeps=0, max_rounds=1)
    watching = Watching(monkeypatch)
    after = grow(before, data, settings, growth, SerialExecutor(), SEED)
    tried, accepted = figure_1(before.tree, data, settings, growth, node_seed(SEED, 1))
    assert [entry["leaf"] for entry in watching.tried] == tried
    assert 0 < len(tried) <= before.tree.n_leaves
    if not accepted:
        assert tolerance == 0.0
        assert after.ended == "no leaf expands"
        assert after.tree is before.tree
        return
    assert reference.nested(after.tree) == with_subtrees(before.tree, accepted)
    assert (after.history[-1].accepted, after.history[-1].tried) == (len(accepted), len(tried))
    if tolerance == 1e9:
        assert len(accepted) == len(tried)


@given(n=st.integers(2, 10_000), contraction=st.floats(0.0, 1.0, exclude_min=True))
def test_leaves_contract(n, contraction):
    k = contracted(n, contraction)
    assert 1 <= k < n
    assert k <= contraction * n + 1e-8 or k == 1
    assert k in (1, n - 1) or k > contraction * n - 1.0


@pytest.mark.parametrize(("n", "alpha", "k"), [(100, 0.29, 29), (10, 0.7, 7), (2, 0.9, 1)])
def test_contraction_is_not_a_victim_of_rounding(n, alpha, k):
    assert contracted(n, alpha) == k


@formats
@pytest.mark.parametrize("seed", range(3))
def test_a_replacement_is_accepted_by_its_ratio_of_errors(kind, seed):
    data = blobs(seed, kind=kind, n_rows=150, n_classes=7, spread=1.0, weighted=True)
    X = dense_of(data.X)
    grown, _, settings = grown_from(data, max_rounds=0)
    tree, reach = grown.tree, route(grown.tree, data.X)
    judged = 0
    for leaf in growing_leaves(grown, reach, growth_of()):

        def attempt(tolerance, leaf=leaf):
            growth = growth_of(tolerance=tolerance)
            expansion = expand_leaf(tree, data, reach, settings, growth, SEED, leaf)
            return None if expansion is None else expansion.subtree

        any_subtree = attempt(1e12)
        if any_subtree is None:  # it had one leaf only
            continue
        rows = reach.of(leaf)
        local = X[rows], data.y[rows], data.weight[rows]
        before, after = errors(single(tree.leaf(leaf), tree), *local), errors(any_subtree, *local)
        assert any_subtree.leaf_sizes.max() <= contracted(tree.leaf(leaf).classes.size, 0.7)
        assert (attempt(0.0) is not None) == (after == 0.0)
        for tolerance in (0.5, 1.0, 1.2, 2.0):
            assert (attempt(tolerance) is not None) == (after <= tolerance * before + 1e-9)
        if before > 0.0 and after > 0.0:
            assert attempt(after / before * (1 + 1e-9)) is not None
            assert attempt(after / before * (1 - 1e-6)) is None
            judged += 1
    assert judged > 0


def test_a_replacement_starts_from_the_leaf_that_it_replaces(monkeypatch):
    data = blobs(2, n_rows=150, n_classes=7, spread=1.0)
    grown, _, settings = grown_from(data, max_rounds=0)
    reach = route(grown.tree, data.X)
    leaf = growing_leaves(grown, reach, growth_of())[0]
    old = grown.tree.leaf(leaf)
    seen = []

    def spying(tree, *args, **options):
        seen.append([tree.leaf(int(i)) for i in np.flatnonzero(tree.is_leaf)])
        return optimise(tree, *args, **options)

    monkeypatch.setattr(expand, "optimise", spying)
    expand_leaf(grown.tree, data, reach, settings, growth_of(depth=2), SEED, leaf)
    assert len(seen[0]) == 4
    for start in seen[0]:
        np.testing.assert_array_equal(start.classes, old.classes)
        np.testing.assert_array_equal(start.weights, old.weights)


def test_expanding_one_leaf_leaves_the_others_alone():
    data = blobs(3, n_rows=150, n_classes=7, spread=1.0)
    grown, _, settings = grown_from(data, max_rounds=0)
    reach = route(grown.tree, data.X)
    leaf = growing_leaves(grown, reach, growth_of())[0]
    some = replace(data, y=data.y.copy())
    others = np.setdiff1d(np.arange(data.n_rows), reach.of(leaf))
    some.y[others] = 0  # what happens elsewhere does not matter
    a, b = (
        expand_leaf(grown.tree, each, reach, settings, growth_of(tolerance=9.0), SEED, leaf).subtree
        for each in (data, some)
    )
    assert_same_tree(a, b)


# -- which leaves are tried ------------------------------------------------------------------------


def test_pure_leaves_are_not_tried(monkeypatch):
    data = blobs(4, spread=0.1, n_classes=4)
    watching = Watching(monkeypatch)
    end, _, _ = grown_from(data, initial_depth=1, max_rounds=None)
    assert end.ended == "no leaf expands"
    assert end.tree.leaf_sizes.tolist() == [1, 1, 1, 1]
    assert [(entry["round"], entry["classes"]) for entry in watching.tried] == [(1, 2), (1, 2)]
    pure, rounds, _ = grown_from(data, limit=1, max_rounds=None)
    assert (pure.ended, len(rounds), len(watching.tried)) == ("no leaf expands", 1, 2)


def test_a_refused_leaf_is_tried_again_only_if_its_problem_changed():
    data = blobs(5, n_classes=6, spread=1.0)
    grown, _, _ = grown_from(data, max_rounds=0)
    reach = route(grown.tree, data.X)
    every = growing_leaves(grown, reach, growth_of())
    assert len(every) > 2
    a, b, c = every[:3]
    solved = {a: b"same", b: b"new"}  # the problem of c was not finished
    refused = {a: b"same", b: b"old", c: b"old"}
    after = growing_leaves(replace(grown, solved=solved, refused=refused), reach, growth_of())
    assert after == [j for j in every if j != a]


@formats
def test_no_solved_problem_is_refused_twice(kind, monkeypatch):
    """The problem that a leaf solves may be of other rows than reach it after the last sweep."""
    data = blobs(6, kind=kind, n_rows=200, n_classes=8, spread=1.2)
    watching = Watching(monkeypatch)
    _, rounds, _ = grown_from(data, max_rounds=None, tolerance=1.0, precision=Precision(1e-3, 500))
    assert len(rounds) > 2
    refused: dict[bytes, int] = {}
    for entry in watching.tried:
        problem = rounds[entry["round"] - 1].solved.get(entry["leaf"])
        if problem is None:
            continue
        assert refused.get(problem, entry["round"]) == entry["round"]
        if entry["subtree"] is None:
            refused[problem] = entry["round"]
    assert refused


def test_a_leaf_that_could_not_grow_may_grow_later(monkeypatch):
    data = blobs(7, n_rows=250, n_classes=8, spread=1.2)
    watching = Watching(monkeypatch)
    _, rounds, _ = grown_from(data, max_rounds=6, tolerance=0.8, overlap=0.05)
    last = {entry["round"] for entry in watching.tried}
    assert len(last) > 2
    grew_later = 0
    for entry in watching.tried:
        if entry["subtree"] is None and entry["round"] < len(rounds):
            rows = set(entry["rows"])
            grew_later += any(
                later["round"] > entry["round"]
                and later["subtree"] is not None
                and len(rows & set(later["rows"])) > 0.8 * len(rows | set(later["rows"]))
                for later in watching.tried
            )
    assert grew_later > 0


# -- every round -----------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("overlap", [None, 0.05])
@pytest.mark.parametrize("depth", [1, 2])
def test_after_each_round_the_tree_is_valid_and_within_its_limits(kind, overlap, depth):
    data = blobs(8, kind=kind, n_rows=200, n_classes=8, spread=1.0, weighted=True)
    end, rounds, _ = grown_from(data, overlap=overlap, depth=depth, tolerance=1.5)
    assert len(rounds) == len(end.history) > 2
    for number, grown in enumerate(rounds):
        tree = grown.tree
        tree.validate()
        assert [record.round for record in grown.history] == list(range(number + 1))
        assert grown.leaf_limits.shape == (tree.n_nodes,)
        leaves = tree.is_leaf
        assert np.all(np.diff(tree.class_ptr)[leaves] <= grown.leaf_limits[leaves])
        assert np.all(grown.leaf_limits <= int(0.7 * 8))
        assert set(grown.solved) <= set(range(tree.n_nodes))
        assert set(grown.refused) <= set(range(tree.n_nodes))
        assert np.all(route(tree, data.X).sizes > 0)  # nothing dead
        assert grown.best is tree
    for a, b in pairwise(rounds):
        assert b.history[:-1] == a.history


@formats
@pytest.mark.parametrize("validated", [False, True])
def test_the_history_is_true(kind, validated):
    data = blobs(9, kind=kind, n_rows=200, n_classes=8, spread=1.0, weighted=True)
    held = blobs(9, kind=kind, n_rows=80, n_classes=8, spread=1.0) if validated else None
    _, rounds, settings = grown_from(data, overlap=0.05, validation=held)
    X = dense_of(data.X)
    seconds = 0.0
    for grown in rounds:
        tree, record = grown.tree, grown.history[-1]
        wrong = np.array([reference.predict(tree, x) for x in X]) != data.y
        assert record.train_error == pytest.approx(data.weight[wrong].sum() / data.weight.sum())
        expected = reference.objective_of(tree, X, data.y, data.weight, settings.objective)
        assert record.objective == pytest.approx(expected, rel=1e-5)
        leaf = [reference.leaf_of(tree, x) for x in X]
        held_class = [c in tree.leaf(j).classes for c, j in zip(data.y, leaf, strict=True)]
        covered = data.weight[held_class].sum() / data.weight.sum()
        assert record.coverage == pytest.approx(covered)
        depth = reference.depths(tree)
        leaves = [j for j in depth if tree.is_leaf[j]]
        assert (record.n_leaves, record.depth) == (len(leaves), max(depth.values()))
        assert record.mean_depth == pytest.approx(np.mean([depth[j] for j in leaves]))
        sizes = [tree.leaf(j).classes.size for j in leaves]
        assert record.mean_leaf_classes == pytest.approx(np.mean(sizes))
        assert record.max_leaf_classes == max(sizes)
        products = [
            sum(
                np.count_nonzero(tree.node(i).weights[(x != 0.0)[tree.node(i).features]])
                if kind == "csr"
                else np.count_nonzero(tree.node(i).weights)
                for i in reference.path(tree, x)
            )
            for x in X
        ]
        assert record.flops == pytest.approx(np.mean(products))
        if held is None:
            assert record.validation_error is None
        else:
            error = errors(tree, dense_of(held.X), held.y, held.weight) / held.n_rows
            assert record.validation_error == pytest.approx(error)
        assert [sweep.sweep for sweep in record.sweeps] == list(range(1, len(record.sweeps) + 1))
        assert 1 <= len(record.sweeps) <= 3
        assert 0 <= record.accepted <= record.tried
        assert record.seconds >= seconds + record.sweep_seconds + record.expansion_seconds - 1e-3
        seconds = record.seconds
    assert (rounds[0].history[0].tried, rounds[0].history[0].accepted) == (0, 0)


def test_a_round_counts_the_leaves_that_it_tried(monkeypatch):
    data = blobs(10, n_rows=200, n_classes=8, spread=1.0)
    watching = Watching(monkeypatch)
    end, _, _ = grown_from(data, tolerance=0.8)
    for record in end.history[1:]:
        mine = [entry for entry in watching.tried if entry["round"] == record.round]
        assert record.tried == len(mine)
        assert record.accepted == sum(entry["subtree"] is not None for entry in mine) > 0


# -- when it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("max_rounds", [0, 1, 2])
def test_rounds_are_limited(max_rounds):
    data = blobs(11, n_rows=200, n_classes=8, spread=1.0)
    end, rounds, _ = grown_from(data, max_rounds=max_rounds)
    assert end.ended == "rounds"
    assert len(end.history) == len(rounds) == max_rounds + 1


def test_more_rounds_do_not_change_the_earlier_ones():
    data = blobs(11, n_rows=200, n_classes=8, spread=1.0)
    _, few, _ = grown_from(data, max_rounds=1)
    _, many, _ = grown_from(data, max_rounds=3)
    for a, b in zip(few, many, strict=False):
        assert_same_tree(a.tree, b.tree)


@pytest.mark.parametrize("max_depth", [2, 3, 4])
@pytest.mark.parametrize("step", [1, 2])
def test_depth_is_limited(max_depth, step):
    data = blobs(12, n_rows=300, n_classes=10, spread=1.2)
    first = initial_tree(data, 2, "pca_median", np.random.SeedSequence(0))
    growth = growth_of(max_depth=max_depth, depth=step, tolerance=1.5, max_rounds=None)
    settings = settings_of(first.tree, 7)
    told = []
    end = grow(first, data, settings, growth, SerialExecutor(), SEED, after_round=told.append)
    assert end.tree.depth == 2 + (max_depth - 2) // step * step
    assert end.ended == "depth"
    assert [len(grown.history) for grown in told] == list(range(1, len(end.history) + 1))


@pytest.mark.parametrize("max_leaves", [4, 5, 7, 12])
def test_leaves_are_limited(max_leaves):
    data = blobs(13, n_rows=300, n_classes=10, spread=1.0)
    end, rounds, _ = grown_from(data, max_leaves=max_leaves, max_rounds=None, tolerance=1.5)
    assert all(grown.tree.n_leaves <= max_leaves for grown in rounds)
    assert end.ended in ("leaves", "no leaf expands")
    if end.tree.n_leaves == max_leaves:
        assert end.ended == "leaves"


def test_of_too_many_replacements_those_of_the_most_rows_are_taken():
    data = blobs(14, n_rows=300, n_classes=10, spread=1.0)
    grown, _, _ = grown_from(data, max_rounds=0)
    reach = route(grown.tree, data.X)
    leaves = np.flatnonzero(grown.tree.is_leaf).tolist()
    stump, wide = (Tree.complete(d, n_features=5, n_classes=10) for d in (1, 2))
    found = dict.fromkeys(leaves[1:], stump)
    by_size = sorted(leaves[1:], key=lambda j: -reach.sizes[j])
    room = growth_of(max_leaves=grown.tree.n_leaves + 2)
    assert set(within_limit(grown.tree, found, reach, room)) == set(by_size[:2])
    assert set(within_limit(grown.tree, found, reach, growth_of())) == set(leaves[1:])
    found[by_size[0]] = wide  # three leaves more: it does not fit, the next ones do
    assert set(within_limit(grown.tree, found, reach, room)) == set(by_size[1:3])


def test_time_is_limited():
    data = blobs(15, n_rows=200, n_classes=8, spread=1.0)
    end, rounds, _ = grown_from(data, max_seconds=1e-9)
    assert end.ended == "seconds"
    assert [len(record.sweeps) for record in end.history] == [1]
    assert rounds == []  # no round is complete
    end.best.validate()
    end, rounds, _ = grown_from(data, max_seconds=1e9)
    assert end.ended == "rounds"
    assert len(rounds) == 4


@pytest.mark.parametrize("patience", [1, 2])
def test_patience_ends_growth_and_the_best_round_is_kept(patience):
    data = blobs(16, n_rows=200, n_classes=8, spread=1.2)
    held = blobs(16, n_rows=150, n_classes=8, spread=1.2)
    end, rounds, _ = grown_from(
        data, validation=held, patience=patience, max_rounds=30, tolerance=1.2
    )
    measured = [record.validation_error for record in end.history]
    best = int(np.argmin(measured))
    assert best_round(end.history) == best
    assert_same_tree(end.best, rounds[best].tree)
    assert end.ended == "patience"
    assert len(end.history) - 1 == best + patience
    for grown in rounds:
        so_far = [record.validation_error for record in grown.history]
        assert_same_tree(grown.best, rounds[int(np.argmin(so_far))].tree)


def test_the_last_round_is_the_best_without_validation():
    data = blobs(16, n_rows=200, n_classes=8, spread=1.2)
    end, rounds, _ = grown_from(data)
    assert best_round(end.history) == 3
    assert end.best is end.tree is rounds[-1].tree


def test_growth_ends_when_nothing_expands():
    """No errors are allowed where there must be some: equal rows of two classes."""
    X = np.repeat(np.eye(3), 10, axis=0)
    data = TrainingData(as_rows(X, "dense"), np.arange(30, dtype=INDEX) % 2, np.ones(30), 2)
    seen = []
    first = initial_tree(data, 1, "pca_median", np.random.SeedSequence(0))
    growth = growth_of(tolerance=0.0, max_rounds=None)
    settings = settings_of(first.tree, 2)
    end = grow(first, data, settings, growth, SerialExecutor(), SEED, after_round=seen.append)
    assert end.ended == "no leaf expands"
    assert len(seen) == len(end.history) == 1  # a round is reported once


# -- edges -----------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize(
    ("n_rows", "n_classes"), [(1, 1), (6, 1), (3, 3), (5, 2), (40, 2), (6, 6)], ids=str
)
def test_few_rows_or_classes(kind, n_rows, n_classes):
    data = blobs(17, kind=kind, n_rows=n_rows, n_classes=n_classes, spread=1.0)
    for step in (1, 2):
        first = initial_tree(data, 2, "pca_median", np.random.SeedSequence(0))
        settings = settings_of(first.tree, n_classes, 0.05)
        growth = growth_of(depth=step, max_rounds=None, tolerance=1.0)
        end = grow(first, data, settings, growth, SerialExecutor(), SEED)
        end.tree.validate()
        assert end.ended == "no leaf expands"
        if n_classes == 1:
            assert end.tree.n_nodes == 1
            assert end.history[-1].train_error == 0.0


@formats
@pytest.mark.parametrize("overlap", [None, 0.05])
def test_workers_do_not_change_the_tree(kind, overlap):
    data = blobs(18, kind=kind, n_rows=200, n_classes=8, spread=1.0)
    ends = []
    for n_jobs in (1, 2, 3):
        with executor_for(n_jobs) as executor:
            ends.append(grown_from(data, executor=executor, overlap=overlap)[0])
    for other in ends[1:]:
        assert_same_tree(ends[0].tree, other.tree)
        assert ends[0].solved == other.solved
        assert ends[0].refused == other.refused


def test_randomness_is_keyed_by_round_and_leaf():
    data = blobs(19, n_rows=200, n_classes=8, spread=1.0)
    first = initial_tree(data, 2, "pca_median", np.random.SeedSequence(0))
    settings = settings_of(first.tree, 5)
    growth = growth_of(init="random_median", max_rounds=2)
    ends = [
        grow(first, data, settings, growth, SerialExecutor(), np.random.SeedSequence(s)).tree
        for s in (0, 0, 1)
    ]
    assert_same_tree(ends[0], ends[1])
    assert not np.array_equal(ends[0].router_val, ends[2].router_val)


def test_growing_on_is_growing_at_once():
    data = blobs(20, n_rows=200, n_classes=8, spread=1.0)
    end, rounds, settings = grown_from(data, max_rounds=3, overlap=0.05)
    for grown in rounds:
        on = grow(grown, data, settings, growth_of(), SerialExecutor(), SEED)
        assert_same_tree(on.tree, end.tree)
        assert on.solved == end.solved
        assert len(on.history) == len(end.history)
        assert on.ended == "rounds"


def test_time_before_a_pause_counts():
    data = blobs(20, n_rows=200, n_classes=8, spread=1.0)
    _, rounds, settings = grown_from(data, max_rounds=1)
    slow = replace(rounds[0].history[0], seconds=1000.0)
    paused = replace(rounds[0], history=(slow,), ended=None)
    on = grow(paused, data, settings, growth_of(max_rounds=1), SerialExecutor(), SEED)
    assert 1000.0 < on.history[-1].seconds < 1100.0
    late = grow(paused, data, settings, growth_of(max_seconds=999.0), SerialExecutor(), SEED)
    assert (late.ended, len(late.history)) == ("seconds", 1)


def test_solved_problems_are_not_solved_again():
    """A round that changes nothing near the root need not solve what is far from it."""
    data = blobs(21, n_rows=120, n_classes=4, spread=0.1)
    precision = Precision(1e-3, 500)
    end, _, settings = grown_from(data, limit=3, sweeps=10, precision=precision, max_rounds=0)
    assert end.solved
    again = optimise(
        end.tree,
        data,
        replace(settings, leaf_limits=end.leaf_limits),
        SerialExecutor(),
        max_sweeps=1,
        solved=end.solved,
    )
    fresh = optimise(
        end.tree,
        data,
        replace(settings, leaf_limits=end.leaf_limits),
        SerialExecutor(),
        max_sweeps=1,
    )
    assert again.history[0].n_solved < fresh.history[0].n_solved
    assert math.isclose(again.history[0].objective, fresh.history[0].objective, rel_tol=1e-3)

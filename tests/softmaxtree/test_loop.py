"""Repeated sweeps: the history is true, the best iterate is kept, and limits are known models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests import reference
from tests.strategies import FORMATS, blobs, dense_of
from thinleaf._dtypes import INDEX
from thinleaf.execution import SerialExecutor, executor_for
from thinleaf.model.routing import losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.initial_tree import initial_tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import (
    Settings,
    TaoResult,
    TrainingData,
    Validation,
    fit_leaves,
    optimise,
)
from thinleaf.softmaxtree.tao.overlap import find_overlap
from thinleaf.softmaxtree.tao.sweep import train_leaf

INITS = ("random", "random_median", "pca_median", "class_clusters", "row_clusters")
MODES = ("drop", "constant", "zero_one")

formats = pytest.mark.parametrize("kind", FORMATS)


def train(
    data: TrainingData,
    *,
    init: str = "pca_median",
    depth: int = 3,
    limit: int = 3,
    absent: str = "constant",
    seed: int = 0,
    max_sweeps: int = 8,
    executor=None,
    precision: Precision | None = None,
    monotone: bool = False,
    overlap: float | None = None,
    **options,
) -> tuple[TaoResult, Settings]:
    first = initial_tree(data, depth, init, np.random.SeedSequence(seed))
    settings = Settings(
        Objective(absent, 5.0, Penalty(0.05, 0.5), Penalty(0.05, 0.1)),
        np.full(first.tree.n_nodes, limit, INDEX),
        precision or Precision(),
        monotone,
        overlap,
    )
    result = optimise(
        first.tree,
        data,
        settings,
        executor or SerialExecutor(),
        max_sweeps=max_sweeps,
        assignment=first.assignment,
        **options,
    )
    return result, settings


def recomputed(tree: Tree, data: TrainingData, objective: Objective) -> tuple[float, float]:
    """Return the objective and the weighted error of a tree."""
    cross_entropy, correct = losses(tree, data.X, data.y, route(tree, data.X))
    total = objective.total(objective.row_losses(cross_entropy, correct), data.weight, tree)
    return total, 1.0 - data.weight[correct].sum() / data.weight.sum()


def assert_same_tree(a: Tree, b: Tree) -> None:
    for name, value in vars(a).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(b, name))


# -- history ---------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("absent", MODES)
@pytest.mark.parametrize("init", ["random", "pca_median", "class_clusters"])
def test_the_best_iterate_is_kept_and_its_record_is_true(kind, absent, init):
    data = blobs(0, kind=kind, spread=1.0, weighted=True)
    result, settings = train(data, init=init, absent=absent)
    result.tree.validate()
    values = [record.objective for record in result.history]
    assert result.best_sweep == int(np.argmin(values)) + 1
    best = result.history[result.best_sweep - 1]
    objective, error = recomputed(result.tree, data, settings.objective)
    assert best.objective == pytest.approx(objective, rel=1e-5)
    assert best.train_error == pytest.approx(error, abs=1e-9)
    assert best.objective == pytest.approx(
        reference.objective_of(
            result.tree, dense_of(data.X), data.y, data.weight, settings.objective
        ),
        rel=1e-5,
    )


def test_every_record_is_true():
    """Training for n sweeps is training for n + 1 sweeps, stopped before the last."""
    data = blobs(1, spread=1.0)
    full, settings = train(data, max_sweeps=5)
    for n in range(1, len(full.history) + 1):
        part, _ = train(data, max_sweeps=n)
        for a, b in zip(part.history, full.history, strict=False):
            assert replace(a, seconds=0.0) == replace(b, seconds=0.0)
        best = part.history[part.best_sweep - 1]
        objective, error = recomputed(part.tree, data, settings.objective)
        assert best.objective == pytest.approx(objective, rel=1e-5)
        assert best.train_error == pytest.approx(error, abs=1e-9)


def test_progress_sees_every_sweep_once():
    seen = []
    result, _ = train(blobs(2), progress=seen.append, max_sweeps=4)
    assert seen == result.history
    assert [record.sweep for record in seen] == list(range(1, len(seen) + 1))
    assert all(a.seconds <= b.seconds for a, b in pairwise(seen))
    assert all(record.validation_error is None for record in seen)


def test_no_sweeps_return_the_first_tree():
    data = blobs(3)
    result, _ = train(data, max_sweeps=0)
    assert (result.history, result.best_sweep, result.ended) == ([], 0, "sweeps")
    first = initial_tree(data, 3, "pca_median", np.random.SeedSequence(0))
    assert_same_tree(result.tree, first.tree)


# -- stopping --------------------------------------------------------------------------------------


@formats
def test_an_easy_problem_converges_and_is_solved(kind):
    data = blobs(4, kind=kind, spread=0.1, n_classes=4)
    result, settings = train(data, init="class_clusters", depth=2, max_sweeps=30)
    assert result.ended == "converged"
    assert len(result.history) < 30
    assert result.history[-1].n_solved == 0
    if kind == "dense":
        assert result.history[-1].train_error == 0.0
    again = optimise(result.tree, data, settings, SerialExecutor(), max_sweeps=1)
    objective, _ = recomputed(result.tree, data, settings.objective)
    assert again.history[0].objective <= objective * (1.0 + 1e-3)


@pytest.mark.parametrize("patience", [1, 3])
def test_validation_chooses_the_iterate_and_patience_stops(patience):
    data, held = blobs(5, spread=1.2), blobs(5, spread=1.2, n_rows=77, weighted=True)
    result, _ = train(data, max_sweeps=25, validation=Validation(held, patience))
    errors = [record.validation_error for record in result.history]
    assert result.best_sweep == int(np.argmin(errors)) + 1
    assert result.ended == "converged" or len(errors) in (25, result.best_sweep + patience)
    _, correct = losses(result.tree, held.X, held.y, route(result.tree, held.X))
    expected = 1.0 - held.weight[correct].sum() / held.weight.sum()
    assert errors[result.best_sweep - 1] == pytest.approx(expected, abs=1e-9)


def test_validation_chooses_with_overlap_too():
    data, held = blobs(5, spread=1.2), blobs(5, spread=1.2, n_rows=77, weighted=True)
    result, _ = train(data, overlap=0.05, max_sweeps=10, validation=Validation(held, 3))
    values = [record.validation_error for record in result.history]
    assert result.best_sweep == int(np.argmin(values)) + 1
    _, correct = losses(result.tree, held.X, held.y, route(result.tree, held.X))
    expected = 1.0 - held.weight[correct].sum() / held.weight.sum()
    assert values[result.best_sweep - 1] == pytest.approx(expected, abs=1e-9)


def test_why_it_ended():
    easy, hard = blobs(4, spread=0.1, n_classes=4), blobs(5, spread=1.2)
    assert train(easy, init="class_clusters", depth=2, max_sweeps=30)[0].ended == "converged"
    assert train(hard, max_sweeps=2)[0].ended == "sweeps"
    patient = train(hard, max_sweeps=25, overlap=0.05, validation=Validation(hard, 1))[0]
    assert patient.ended == "patience"
    assert len(patient.history) == patient.best_sweep + 1
    asked = []
    stopped = train(hard, max_sweeps=9, stop=lambda: bool(asked.append(1)) or len(asked) == 3)[0]
    assert stopped.ended == "stopped"
    assert len(stopped.history) == len(asked) == 3
    assert_same_tree(stopped.tree, train(hard, max_sweeps=3)[0].tree)


# -- going on --------------------------------------------------------------------------------------


@formats
def test_what_is_solved_is_not_solved_again(kind):
    data = blobs(4, kind=kind, spread=0.1, n_classes=4)
    result, settings = train(data, init="class_clusters", depth=2, max_sweeps=30)
    again = optimise(
        result.tree, data, settings, SerialExecutor(), max_sweeps=5, solved=result.solved
    )
    assert [record.n_solved for record in again.history] == [0]
    assert (again.ended, again.best_sweep) == ("converged", 0)
    assert_same_tree(again.tree, result.tree)
    assert again.solved == result.solved


def test_solved_speaks_of_the_iterate_that_is_kept():
    """Its fingerprints let training go on from there as from the sweep that made it."""
    data = blobs(5, spread=1.2)
    for n in (1, 2, 3):
        part, settings = train(data, max_sweeps=n, overlap=0.05)
        before = dict(part.solved)
        on = optimise(
            part.tree, data, settings, SerialExecutor(), max_sweeps=4 - n, solved=part.solved
        )
        assert part.solved == before
        assert_same_tree(on.tree, train(data, max_sweeps=4, overlap=0.05)[0].tree)


# -- overlap ---------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("absent", MODES)
def test_with_overlap_the_last_iterate_is_kept_and_its_record_is_true(kind, absent):
    data = blobs(0, kind=kind, spread=1.0, weighted=True)
    result, settings = train(data, absent=absent, overlap=0.05)
    assert result.best_sweep == len(result.history)
    for n in (1, 2, len(result.history)):
        part, _ = train(data, absent=absent, overlap=0.05, max_sweeps=n)
        record = result.history[n - 1]
        assert replace(part.history[-1], seconds=0.0) == replace(record, seconds=0.0)
        objective, error = recomputed(part.tree, data, settings.objective)
        assert record.objective == pytest.approx(objective, rel=1e-5)
        assert record.train_error == pytest.approx(error, abs=1e-9)


# -- monotone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", ["constant", "zero_one"])
@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("seed", range(3))
def test_monotone_training_never_raises_the_objective(absent, init, seed):
    data = blobs(seed, spread=1.5, kind=FORMATS[seed % 2], weighted=seed == 1)
    result, settings = train(
        data, init=init, absent=absent, seed=seed, max_sweeps=10, monotone=True
    )
    values = [record.objective for record in result.history]
    assert all(later <= earlier * (1.0 + 1e-6) + 1e-6 for earlier, later in pairwise(values))
    assert values[-1] == pytest.approx(
        recomputed(result.tree, data, settings.objective)[0], rel=1e-5
    )


def test_monotone_training_starts_below_the_first_tree():
    data = blobs(6, spread=1.5)
    for absent in ("constant", "zero_one"):
        first = initial_tree(data, 3, "pca_median", np.random.SeedSequence(0))
        result, settings = train(data, absent=absent, monotone=True, max_sweeps=1)
        before, _ = recomputed(first.tree, data, settings.objective)
        assert result.history[0].objective <= before * (1.0 + 1e-6)


# -- limits ----------------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_of_depth_zero_is_logistic_regression(kind, weighted):
    data = blobs(7, kind=kind, spread=1.5, weighted=weighted)
    tree = Tree.complete(0, n_features=5, n_classes=6)
    settings = Settings(
        Objective(leaves=Penalty(ridge=2.0)), np.array([6], INDEX), Precision(1e-7, 500)
    )
    result = optimise(tree, data, settings, SerialExecutor(), max_sweeps=3)
    X = dense_of(data.X)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10000)
    theirs.fit(X, data.y, sample_weight=data.weight)
    leaf = result.tree.leaf(0)
    ours = np.array([reference.softmax(reference.leaf_scores(leaf, x)) for x in X])
    np.testing.assert_allclose(ours, theirs.predict_proba(X), atol=5e-3)
    their_objective = (
        -(data.weight @ np.log(theirs.predict_proba(X)[np.arange(len(X)), data.y]))
        + (theirs.coef_**2).sum()
    )
    assert result.history[-1].objective == pytest.approx(their_objective, rel=1e-5)


def test_a_leaf_for_each_class_needs_no_softmax():
    """With k = 1 the leaves are constant: the oblique trees that TAO began with."""
    data = blobs(8, spread=0.1, n_classes=4)
    result, _ = train(data, init="class_clusters", depth=2, limit=1)
    assert np.all(result.tree.leaf_sizes == 1)
    assert result.tree.block_val.size == 0
    assert min(record.train_error for record in result.history) == 0.0


def test_a_deeper_tree_than_there_are_rows():
    data = blobs(9, n_rows=6)
    for init in INITS:
        for absent in MODES:
            result, settings = train(data, init=init, absent=absent, depth=4, max_sweeps=3)
            result.tree.validate()
            best = result.history[result.best_sweep - 1]
            objective, _ = recomputed(result.tree, data, settings.objective)
            assert best.objective == pytest.approx(objective, rel=1e-5, abs=1e-6)


def test_one_row_and_one_class():
    for n_rows in (1, 5):
        data = blobs(10, n_rows=n_rows, n_classes=1)
        result, _ = train(data, depth=2, max_sweeps=3)
        result.tree.validate()
        assert result.history[-1].train_error == 0.0


def test_weights_are_repetitions():
    data = blobs(11, weighted=True, spread=0.2, n_classes=4)
    count = data.weight.astype(int)
    repeated = TrainingData(
        data.X.repeat(count, axis=0), data.y.repeat(count), np.ones(count.sum()), data.n_classes
    )
    values = []
    for each in (data, repeated):
        result, _ = train(
            each,
            init="class_clusters",
            depth=2,
            max_sweeps=3,
            precision=Precision(1e-7, 500),
        )
        values.append([record.objective for record in result.history])
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-3)


@pytest.mark.parametrize("overlap", [None, 0.05])
def test_workers_do_not_change_the_result(overlap):
    data = blobs(12, spread=1.0)
    results = []
    for n_jobs in (None, 2):
        with executor_for(n_jobs) as executor:
            results.append(train(data, executor=executor, max_sweeps=4, overlap=overlap)[0])
    assert_same_tree(results[0].tree, results[1].tree)
    for a, b in zip(results[0].history, results[1].history, strict=True):
        assert replace(a, seconds=0.0) == replace(b, seconds=0.0)


# -- leaves alone ----------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("overlap", [None, 0.05])
def test_last_leaves_are_those_of_the_rows_that_reach_them(kind, overlap):
    data = blobs(13, spread=1.0, kind=kind)
    result, settings = train(data, max_sweeps=1, overlap=overlap)
    before, after = result.tree, fit_leaves(result.tree, data, settings, SerialExecutor())
    reach = route(before, data.X)
    near = {} if overlap is None else find_overlap(before, data.X, reach, overlap, SerialExecutor())
    changed = 0
    for node in range(before.n_nodes):
        if not before.is_leaf[node]:
            np.testing.assert_array_equal(before.router(node).weights, after.router(node).weights)
            continue
        rows, weight = reach.of(node), data.weight[reach.of(node)]
        if rows.size == 0:
            continue
        if overlap is not None:
            rows, weight = near[node].join(rows, data.weight)
        limit = int(settings.leaf_limits[node])
        expected, _ = train_leaf(data, rows, weight, limit, before.leaf(node), settings)
        np.testing.assert_array_equal(after.leaf(node).weights, expected.weights)
        np.testing.assert_array_equal(after.leaf(node).classes, expected.classes)
        changed += not np.array_equal(after.leaf(node).weights, before.leaf(node).weights)
    assert changed > 0

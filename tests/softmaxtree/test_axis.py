"""Routers by one feature: the best split, and when a hyperplane is worth its features."""

from __future__ import annotations

import numpy as np
import pytest

from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.axis import best_split, purest_split, solve_axis
from thinleaf.softmaxtree.solvers.problem import NodeProblem


def rows(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).round(2).astype(PARAM)


def problem(X: np.ndarray, right: np.ndarray, weight: np.ndarray | None = None) -> NodeProblem:
    weight = np.ones(len(X)) if weight is None else weight
    return NodeProblem(X, right.astype(INDEX), weight, 2, Penalty(l1=0.01, ridge=0.05))


def wrong_at(X, target, weight, feature, cut) -> float:
    above = X[:, feature] > cut
    wrong = weight[above != (target == 1)].sum()
    return min(wrong, weight.sum() - wrong)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_split_is_the_best_of_all(seed):
    X, rng = rows(seed, 60, 3), np.random.default_rng(seed)
    target, weight = rng.integers(0, 2, 60).astype(INDEX), rng.random(60)
    feature, cut, wrong = best_split(X, target, weight)
    assert wrong == pytest.approx(wrong_at(X, target, weight, feature, cut))
    least = min(
        wrong_at(X, target, weight, j, (a + b) / 2)
        for j in range(3)
        for a, b in zip(np.unique(X[:, j])[:-1], np.unique(X[:, j])[1:], strict=True)
    )
    assert wrong == pytest.approx(least)


def test_rows_that_are_all_alike_have_no_split():
    X = np.ones((20, 2), dtype=PARAM)
    target = np.arange(20, dtype=INDEX) % 2
    assert best_split(X, target, np.ones(20)) is None
    assert purest_split(X, target, np.ones(20), np.arange(2, dtype=INDEX)) is None
    solve_axis(problem(X, target))


def entropy(y: np.ndarray) -> float:
    n = np.bincount(y)[np.unique(y)]
    return float(-(n * np.log(n / n.sum())).sum())


def test_the_purest_split_leaves_the_least_entropy():
    X, rng = rows(1, 60, 3), np.random.default_rng(1)
    y = (2 * (X[:, 2] > 0.2) + rng.integers(0, 2, 60)).astype(INDEX)
    feature, cut = purest_split(X, y, np.ones(60), np.arange(3, dtype=INDEX))
    assert feature == 2
    found = entropy(y[X[:, 2] > cut]) + entropy(y[X[:, 2] <= cut])
    ideal = entropy(y[X[:, 2] > 0.2]) + entropy(y[X[:, 2] <= 0.2])
    assert found <= ideal + 1e-9


@pytest.mark.parametrize("sign", [1, -1])
def test_one_feature_is_enough_where_it_is_what_matters(sign):
    X = rows(2, 80, 8)
    solution = solve_axis(problem(X, sign * X[:, 5] > 0.25))
    assert np.flatnonzero(solution.weights).tolist() == [5]
    scores = X @ solution.weights[:, 0] + solution.bias[0]
    np.testing.assert_array_equal(scores >= 0.0, sign * X[:, 5] > 0.25)


def test_a_hyperplane_is_kept_where_rows_ask_for_it():
    X = rows(3, 400, 4)
    right = X.sum(axis=1) > 0.0
    solution = solve_axis(problem(X, right))
    assert np.count_nonzero(solution.weights) == 4
    scores = X @ solution.weights[:, 0] + solution.bias[0]
    assert np.mean((scores >= 0.0) != right) < 0.03


def test_a_tree_starts_from_splits_where_classes_are_boxes():
    """By default it has few errors on rows that are told apart by single features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 8)).astype(PARAM)
    y = np.zeros(4_000, dtype=int)
    for j in range(6):
        y = 2 * y + (X[:, j] > 0.3 * rng.normal())
    fitted, rest = slice(0, 3_000), slice(3_000, None)
    errors = {
        init: 1.0
        - AdaptiveSoftmaxTreeClassifier(init=init, random_state=0)
        .fit(X[fitted], y[fitted])
        .score(X[rest], y[rest])
        for init in ("auto", "pca_median")
    }
    assert errors["auto"] < 0.07
    assert errors["auto"] < 0.6 * errors["pca_median"]

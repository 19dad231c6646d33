"""Figures of the papers against their formulas and against counting by hand."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import top_k_accuracy_score

from tests import reference
from tests.strategies import FORMATS, as_rows, integer_rows, random_tree, trees_and_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.arrays.rows import CSR
from thinleaf.measuring import metrics
from thinleaf.model.probability import smoothed
from thinleaf.model.routing import route
from thinleaf.model.tree import Leaf, Router, Tree

formats = pytest.mark.parametrize("kind", FORMATS)

# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 9])
def test_top_k_error_is_that_of_scikit_learn(k):
    rng = np.random.default_rng(k)
    P = rng.random((200, 10))
    y = rng.integers(10, size=200)
    top = np.argsort(-P, axis=1)[:, :k]
    expected = 1.0 - top_k_accuracy_score(y, P, k=k, labels=np.arange(10))
    assert metrics.top_k_error(y, top) == pytest.approx(expected)


def test_top_k_error_of_names():
    top = [["ash", "oak"], ["elm", "oak"], ["fir", "ash"], ["oak", "birch"]]
    assert metrics.top_k_error(["oak", "ash", "fir", "birch"], top) == 0.25
    assert metrics.top_k_error(["a", "b"], [["a", "b"], ["b", "a"]]) == 0.0
    assert metrics.top_k_error(["c", "c"], [["a", "b"], ["b", "a"]]) == 1.0


@pytest.mark.parametrize("top", [["a", "b"], [["a", "b"]], np.zeros((2, 2, 2))])
def test_top_k_error_of_something_else(top):
    with pytest.raises(ValueError, match=r"shape \(n_rows, k\) with 2 rows"):
        metrics.top_k_error(["a", "b"], top)


# -- perplexity ------------------------------------------------------------------------------------


def test_perplexity_is_the_papers_formula_over_covered_rows():
    p = np.array([0.9, 0.25, 0.0, 0.031, 1.0, 0.0])
    covered = [0.9, 0.25, 0.031, 1.0]
    figure = metrics.perplexity(p)
    assert figure.value == pytest.approx(np.exp(-sum(np.log(q) for q in covered) / 4))
    assert figure.coverage == pytest.approx(4 / 6)


@pytest.mark.parametrize("n_classes", [1, 2, 1000])
def test_perplexity_of_guessing_is_the_number_of_classes(n_classes):
    figure = metrics.perplexity(np.full(50, 1.0 / n_classes))
    assert figure.value == pytest.approx(n_classes)
    assert figure.coverage == 1.0


def test_perplexity_of_nothing_covered():
    assert metrics.perplexity([0.0, 0.0]) == metrics.Perplexity(float("inf"), 0.0)
    assert metrics.perplexity([]) == metrics.Perplexity(float("inf"), 0.0)


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([1e-9, 1e-3, 0.5]))
def test_smoothed_perplexity_is_that_of_whole_distributions(seed, epsilon):
    """ε into every zero, renormalise, then the perplexity over all rows."""
    rng = np.random.default_rng(seed)
    P = np.zeros((30, 8))
    for row in P:
        held = rng.choice(8, size=rng.integers(1, 9), replace=False)
        row[held] = rng.dirichlet(np.ones(held.size)) + 1e-6
        row /= row.sum()
    y = rng.integers(8, size=30)
    filled = np.where(P > 0.0, P, epsilon)
    filled /= filled.sum(axis=1, keepdims=True)
    expected = np.exp(-np.mean(np.log(filled[np.arange(30), y])))
    p, absent = P[np.arange(30), y], (P == 0.0).sum(axis=1)
    assert metrics.smoothed_perplexity(p, absent, epsilon) == pytest.approx(expected)
    np.testing.assert_allclose(smoothed(p, absent, epsilon), filled[np.arange(30), y])


def test_smoothing_costs_covered_rows_a_little_and_saves_the_others():
    p, absent = np.array([0.5, 0.5, 0.5, 0.0]), np.full(4, 10)
    plain = metrics.perplexity(p).value
    best = metrics.tune_epsilon(p, absent.astype(float))
    smooth = metrics.smoothed_perplexity(p, absent, best)
    assert plain < smooth < np.inf
    assert smooth <= metrics.smoothed_perplexity(p, absent, best * 3.0)
    assert smooth <= metrics.smoothed_perplexity(p, absent, best / 3.0)
    covered = p[:3]
    assert metrics.smoothed_perplexity(covered, np.zeros(3), 0.1) == pytest.approx(plain)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan])
def test_smoothing_with_nothing(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive"):
        metrics.smoothed_perplexity([0.5, 0.0], [3, 3], epsilon)


# -- multiplications -------------------------------------------------------------------------------


def count(tree: Tree, x: np.ndarray, kind: str) -> int:
    """Count the multiplications of one prediction, weight by weight."""
    total = 0
    for node in reference.path(tree, x):
        item = tree.node(node)
        for feature, weights in zip(item.features, item.weights, strict=True):
            if kind == "dense" or x[feature] != 0.0:
                total += np.count_nonzero(weights)
    return total


@formats
@given(case=trees_and_rows())
def test_flops_are_a_count_of_multiplications(kind, case):
    tree, X, _ = case
    rows = as_rows(X, kind)
    expected = np.mean([count(tree, x, kind) for x in X]) if len(X) else 0.0
    assert metrics.mean_flops(tree, rows) == pytest.approx(expected)
    assert metrics.mean_flops(tree, rows, route(tree, rows)) == pytest.approx(expected)


@formats
def test_flops_of_some_rows(kind):
    rng = np.random.default_rng(0)
    tree, X = random_tree(rng, n_leaves=9), integer_rows(rng, 40, 5)
    rows = as_rows(X, kind)
    some = np.arange(0, 40, 3, dtype=INDEX)
    expected = np.mean([count(tree, X[i], kind) for i in some])
    assert metrics.mean_flops(tree, rows, route(tree, rows, some)) == pytest.approx(expected)


def test_a_flat_softmax_on_dense_rows_multiplies_classes_by_features():
    n_classes, n_features = 7, 11
    leaf = Leaf(
        np.arange(n_classes, dtype=INDEX),
        np.arange(n_features, dtype=INDEX),
        np.ones((n_features, n_classes), PARAM),
        np.zeros(n_classes, PARAM),
    )
    tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=n_features, n_classes=n_classes)
    rng = np.random.default_rng(1)
    X = integer_rows(rng, 20, n_features)
    assert metrics.mean_flops(tree, as_rows(X, "dense")) == n_classes * n_features
    sparse = metrics.mean_flops(tree, as_rows(X, "csr"))
    assert sparse == pytest.approx(n_classes * np.count_nonzero(X) / 20)


def test_constant_leaves_cost_only_their_path():
    tree = Tree.from_linear(np.eye(4, dtype=PARAM), np.zeros(4))
    X = np.ones((5, 4))
    assert metrics.mean_flops(tree, as_rows(X, "dense")) == 2.0 * tree.depth
    alone = Tree.complete(0, n_features=4, n_classes=4)
    assert metrics.mean_flops(alone, as_rows(X, "dense")) == 0.0
    assert metrics.mean_flops(alone, as_rows(X, "csr")) == 0.0


def test_a_stored_zero_is_no_input():
    """Whether a zero is stored or not, it meets no weight."""
    router = Router(np.array([0, 1], INDEX), np.ones(2, PARAM), 0.0)
    tree = Tree.build(
        np.array([[1, 2], [-1, -1], [-1, -1]]),
        [router, Leaf.constant(0), Leaf.constant(1)],
        n_features=2,
        n_classes=2,
    )
    stored = sp.csr_matrix((np.array([1.0, 0.0], PARAM), [0, 1], [0, 2]), shape=(1, 2))
    rows = CSR(
        stored.indptr.astype(INDEX), stored.indices.astype(INDEX), stored.data.astype(PARAM), 2
    )
    assert metrics.mean_flops(tree, rows) == 1.0


# -- size ------------------------------------------------------------------------------------------


@given(case=trees_and_rows())
def test_the_summary_is_that_of_the_tree(case):
    tree, X, _ = case
    depths = reference.depths(tree)
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    summary = metrics.summarize(tree)
    assert summary.depth == max(depths.values())
    assert summary.mean_depth == pytest.approx(np.mean([depths[leaf] for leaf in leaves]))
    assert summary.n_leaves == len(leaves)
    sizes = [tree.leaf(leaf).classes.size for leaf in leaves]
    assert summary.mean_leaf_classes == pytest.approx(np.mean(sizes))
    weights = [np.count_nonzero(tree.node(node).weights) for node in range(tree.n_nodes)]
    assert summary.n_nonzero == sum(weights)
    arrays = [value for value in vars(tree).values() if isinstance(value, np.ndarray)]
    assert 0 < summary.n_bytes <= sum(array.nbytes for array in arrays)
    if len(X):
        reach = route(tree, as_rows(X, "dense"))
        taken = metrics.summarize(tree, reach)
        mean = np.mean([len(reference.path(tree, x)) - 1 for x in X])
        assert taken.mean_depth == pytest.approx(mean)
        assert asdict(taken) | {"mean_depth": 0.0} == asdict(summary) | {"mean_depth": 0.0}


def test_bytes_are_those_of_the_arrays():
    tree = Tree.complete(3, n_features=5, n_classes=4)
    expected = sum(value.nbytes for value in vars(tree).values() if isinstance(value, np.ndarray))
    assert metrics.summarize(tree).n_bytes == expected


def test_precision_and_recall_of_several_labels():
    rng = np.random.default_rng(0)
    Y = rng.random((30, 8)) < 0.3
    top = np.array([rng.permutation(8)[:3] for _ in range(30)])
    hits = sum(int(Y[i, j]) for i in range(30) for j in top[i])
    for matrix in (Y, sp.csr_matrix(Y), sp.csc_array(Y.astype(float))):
        assert metrics.precision_at_k(matrix, top) == hits / 90
        assert metrics.recall_at_k(matrix, top) == hits / Y.sum()
    with pytest.raises(ValueError, match="y_top must have shape"):
        metrics.precision_at_k(Y, top[:5])
    with pytest.raises(ValueError, match="columns of Y"):
        metrics.recall_at_k(Y, top + 6)

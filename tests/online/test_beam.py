"""Several paths of a row, against all paths of the same tree in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.online.test_linear_models import stream_of
from tests.online.test_recall_tree import examples, model_of
from tests.strategies import FORMATS, as_rows
from thinleaf.online.beam import new_prior
from thinleaf.online.softmax_form import Unrolled

N_CLASSES = 9


def probabilities(tree: Unrolled, x: np.ndarray, share: np.ndarray, temperature: float):
    """Return the mixture of all leaves, by recursion."""
    P = np.zeros(share.size)

    def visit(node: int, weight: float) -> None:
        if tree.is_leaf[node]:
            classes, mass = tree.classes[node], tree.mass[node]
            scores = tree.regressors[classes] @ x + tree.leaf_bias[node]
            inside = np.exp(scores - scores.max())
            outside = share.copy()
            outside[classes] = 0.0
            if outside.sum() > 0.0:
                outside /= outside.sum()
                mass = min(mass, 0.999 / (1.0 + classes.size * outside.max()))
            else:
                mass = 0.0
            P[classes] += weight * (1.0 - mass) * inside / inside.sum()
            P[:] += weight * mass * outside
            return
        f = (tree.routers[tree.router_at[node]] @ x)[0] + tree.bias[node]
        right = 1.0 / (1.0 + np.exp(-f / temperature))
        visit(tree.children[node, 0], weight * (1.0 - right))
        visit(tree.children[node, 1], weight * right)

    visit(0, 1.0)
    return P


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("path_features", [True, False])
def test_a_beam_as_wide_as_the_tree_is_the_mixture_of_all_leaves(kind, path_features):
    X, y = examples(300)
    model = model_of(
        8, dense=kind == "dense", max_depth=3, max_candidates=4, bound_multiplier=0.1,
        path_features=path_features, recall_of="child",
    )  # fmt: skip
    model.learn(stream_of(as_rows(X, kind), y), N_CLASSES)
    counts = np.bincount(y, minlength=N_CLASSES).astype(float)
    tree, share = model.unrolled(N_CLASSES), new_prior(counts, 1).share
    assert int(tree.is_leaf.sum()) > 3
    for temperature in (1.0, 3.0):
        expected = [probabilities(tree, x, share, temperature) for x in X[:40]]
        rows = as_rows(X[:40], kind)
        (first, found), *others = model.mixtures(rows, counts, 16, temperature)
        assert first == 0
        assert not others
        P = found.rest[:, None] * share
        for i, n in enumerate(found.n.tolist()):
            P[i, found.ids[i, :n]] = found.p[i, :n]
        np.testing.assert_allclose(P, expected, rtol=1e-4, atol=1e-6)
        best = model.predict_mixed(rows, counts, 16, temperature)
        np.testing.assert_array_equal(best, np.argmax(P, axis=1))


def test_one_path_is_the_single_one():
    X, y = examples(300)
    model = model_of(8, dense=True, max_candidates=4, bound_multiplier=0.1)
    rows = as_rows(X, "dense")
    model.learn(stream_of(rows, y), N_CLASSES)
    counts = np.bincount(y, minlength=N_CLASSES).astype(float)
    same = model.predict_mixed(rows, counts, 1, 1.0) == model.predict(rows)
    assert same.mean() > 0.95  # a router that is sure of nothing may go the other way


def test_the_most_frequent_classes_come_first():
    prior = new_prior(np.array([3.0, 9.0, 0.0, 9.0]), 1)
    assert prior.first.tolist() == [1, 3, 0, 2]
    assert prior.share.sum() == pytest.approx(1.0)

"""Trees laid out to be drawn: every leaf on a line of its own, closed where there are too many."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frozen_cases import real_rows, rich_forest, rich_model
from thinleaf.explain.outline import CLOSED, LEAF, ROUTER, Counts, outline, weight_picture


def test_every_leaf_has_a_line():
    model = rich_model(1)
    X = real_rows(2, 100, model.n_features)
    shown = outline(model, Counts(model, X))
    lines = sorted(node.line for node in shown.nodes if node.kind != ROUTER)
    assert lines == list(range(model.n_leaves)) == list(range(shown.n_lines))
    assert shown.n_shown == shown.n_leaves == model.n_leaves
    by_number = {node.node: node for node in shown.nodes}
    assert by_number[0].rows == 100
    assert shown.counted
    depth = model.packed.node_depth
    for node in shown.nodes:
        assert node.depth == depth[node.node]
        below = [other for other in shown.nodes if other.parent == node.node]
        assert len(below) == (2 if node.kind == ROUTER else 0)
        if below:
            assert node.rows == sum(other.rows for other in below)
            assert node.line == np.mean([other.line for other in below])
            assert [other.side for other in sorted(below, key=lambda n: n.line)] == [
                "left",
                "right",
            ]
    reached = np.bincount(model.apply(X), minlength=model.packed.n_nodes)
    for node in shown.nodes:
        if node.kind == LEAF:
            assert node.rows == reached[node.node]


def test_shares_are_those_of_labels():
    model = rich_model(1)
    X = real_rows(2, 100, model.n_features)
    y = np.random.default_rng(0).integers(model.n_classes, size=100)
    shown = outline(model, Counts(model, X, y), n_labels=100)
    at = model.apply(X)
    for node in shown.nodes:
        if node.kind == LEAF and node.rows:
            own = y[at == node.node]
            assert dict(node.labels) == {c: np.mean(own == c) for c in set(own.tolist())}
            shares = [share for _, share in node.labels]
            assert shares == sorted(shares, reverse=True)
    with pytest.raises(ValueError, match="labels"):
        Counts(model, X, y[:3])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_few_rows_reach_is_closed(most):
    model = rich_model(3)
    counts = Counts(model, real_rows(2, 100, model.n_features))
    shown = outline(model, counts, max_leaves=most)
    assert shown.n_lines == most
    closed = [node for node in shown.nodes if node.kind == CLOSED]
    assert sum(n.n_leaves for n in closed) + shown.n_shown == model.n_leaves == shown.n_leaves
    opened = [node.rows for node in shown.nodes if node.kind == ROUTER]
    assert not opened or min(opened) >= max((n.rows for n in closed), default=0.0)


def test_features_lead_to_their_side():
    model = rich_model(1, sparse=True)
    for node in outline(model, Counts(model), n_features=2).nodes:
        if node.parent < 0:
            continue
        router = model.packed.router(node.parent)
        weight = dict(zip((f"feature {f}" for f in router.features), router.weights, strict=True))
        for name, w in node.features:
            assert w > 0.0
            assert w == abs(weight[name])
            assert (weight[name] > 0.0) == (node.side == "right")


def test_trees_of_a_forest():
    model = rich_forest(range(3))
    counts = Counts(model)
    sizes = [outline(model, counts, tree=t).n_leaves for t in range(3)]
    assert sum(sizes) == model.n_leaves
    for wrong in ({"tree": 3}, {"max_leaves": 0}):
        with pytest.raises(ValueError, match="must be"):
            outline(model, counts, **wrong)


def test_weights_are_pixels():
    picture = weight_picture(np.array([1.0, -2.0]), np.array([1, 5]), (2, 3))
    assert picture.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, -2.0]]

"""Explanations of packed trees are what these compute, in every layout, and add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.explanation_cases import check_explanation
from tests.frozen_cases import layouts, real_rows, rich_forest, rich_model, weight_types
from tests.narrow_cases import narrow_tree
from thinleaf.model.kernels.packed import BAD_LEAF
from thinleaf.model.narrow import widened


@layouts
@weight_types
@pytest.mark.parametrize("beam", [1, 3])
def test_explanations_are_exact(sparse, weights, beam):
    model = rich_model(1, sparse=sparse, weights=weights)
    model = model.with_beam(beam, temperature=2.0) if beam > 1 else model
    X = real_rows(2, 12, model.n_features)
    for row in X:
        for x in (row, sp.csr_array(row[None])):
            check_explanation(model.explain(x, against=int(model.labels[4])), model, x)


@weight_types
@pytest.mark.parametrize("beam", [1, 3])
def test_explanations_of_narrow_trees_are_exact(weights, beam):
    model = narrow_tree(7, weights=weights).with_beam(beam)
    for row in real_rows(2, 6, model.n_features):
        check_explanation(model.explain(row, against=4), model, row)
    packed = widened(model.packed)
    floats = packed.router_val.astype(np.float32)
    wide = model.replaced(packed=replace(packed, router_val=floats))
    assert repr(model.explain(row).to_dict()) == repr(wide.explain(row).to_dict())


@layouts
@pytest.mark.parametrize("beam", [1, 4])
def test_parts_of_a_forest_add_up(sparse, beam):
    model = rich_forest(range(3), sparse=sparse).with_beam(beam)
    for row in real_rows(3, 6, model.n_features):
        e = model.explain(row, against=2)
        check_explanation(e, model, row)
        assert {path.tree for path in e.paths} == {0, 1, 2}
        assert len(e.against.routes) <= 3


@layouts
def test_scores_are_those_of_nodes(sparse):
    model = rich_model(5, sparse=sparse)
    packed = model.packed
    for row in real_rows(4, 10, model.n_features):
        e = model.explain(row)
        (path,) = e.paths
        assert path.node == model.apply(row[None])[0]
        for step in path.steps:
            router = packed.router(step.node)
            score = float(row[router.features].astype(float) @ router.weights) + router.bias
            sign = 1.0 if step.side == "right" else -1.0
            assert step.margin.total == pytest.approx(sign * score, rel=1e-4, abs=1e-4)
            assert step.margin.total >= 0.0
        leaf = packed.leaf(path.leaf)
        scores = row[leaf.features].astype(float) @ leaf.weights + leaf.bias
        for candidate in path.candidates:
            slot = int(np.flatnonzero(model.labels[leaf.classes] == candidate.label)[0])
            assert candidate.score.total == pytest.approx(scores[slot], rel=1e-4, abs=1e-4)
            for part in candidate.score.contributions:
                at = int(np.flatnonzero(leaf.features == part.feature)[0])
                assert part.amount == pytest.approx(row[part.feature] * leaf.weights[at, slot])
                assert part.value == row[part.feature]


def test_paths_of_a_beam_are_weighted_by_their_routers():
    model = rich_model(2, sparse=True).with_beam(4, temperature=3.0)
    for row in real_rows(1, 8, model.n_features):
        e = model.explain(row)
        p = np.array([np.prod([s.probability for s in path.steps]) for path in e.paths])
        np.testing.assert_allclose([path.weight for path in e.paths], p / p.sum(), rtol=1e-6)


def test_pairs_may_come_in_any_order_and_twice():
    model = rich_model(3)
    idx, val = np.array([5, 1, 5], np.int32), np.array([0.5, 1.0, 0.25], np.float32)
    x = np.zeros(model.n_features, np.float32)
    x[[1, 5]] = 1.0, 0.75
    one, other = model.explain(idx, val), model.explain(x)
    assert one.to_dict() == other.to_dict()
    sparse = rich_model(3, sparse=True)
    check = sparse.explain(idx, val)
    assert check.label == sparse.predict_one(idx, val)


def test_against_says_where_paths_part():
    model = rich_model(1)
    packed = model.packed
    seen = set()
    for row in real_rows(2, 40, model.n_features):
        e = model.explain(row)
        for label in model.labels.tolist():
            against = model.explain(row, against=label).against
            assert against.answer.label == label
            held = [i for i in range(packed.n_leaves) if label in packed.leaf(i).classes]
            assert bool(against.routes) == bool(held)
            assert against.reached == (e.path.leaf in held)
            for route in against.routes:
                assert route.leaf in held
                assert route.n_leaves == len(held)
                seen.add((route.reached, bool(route.changes)))
                if route.reached:
                    assert route.fork is None
                else:
                    fork, taken = route.steps[route.fork], e.path.steps[route.fork]
                    assert fork.node == taken.node
                    assert fork.branch != taken.branch
                    assert route.changes[0].step.node == fork.node
                for change in route.changes:
                    assert change.needed > 0.0
                    gone = sum(part.amount for part in change.remove)
                    assert not change.remove or gone > change.needed
                    present = set(change.lead.features.tolist())
                    assert not present & {part.feature for part in change.add}
    assert {(True, True), (False, True)} <= seen


def test_removing_what_is_named_turns_a_router():
    model = rich_model(1)
    turned = 0
    for row in real_rows(2, 40, model.n_features):
        for label in model.labels.tolist():
            for route in model.explain(row, against=label).against.routes:
                changes = [c for c in route.changes if c.step is not None and c.remove]
                if route.reached or not changes:
                    continue
                step = changes[0].step
                router = model.packed.router(step.node)
                changed = row.copy()
                changed[[part.feature for part in changes[0].remove]] = 0.0
                score = changed[router.features] @ router.weights + router.bias
                assert (score >= 0.0) == (step.branch == 1)
                turned += 1
    assert turned > 10


def test_only_what_is_looked_at_is_made():
    e = rich_forest(range(3)).with_beam(4).explain(real_rows()[0])
    assert "steps" not in vars(e.paths[1])
    assert "candidates" not in vars(e.paths[1])
    assert e.paths[1].steps is e.paths[1].steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top": 0}, "top must be"),
        ({"top": True}, "top must be"),
        ({"against": "nobody"}, "no class"),
        ({"x": np.ones(3, np.float32)}, "expects 30"),
        ({"x": np.full(30, np.nan, np.float32)}, "NaN"),
        ({"x": np.array([40]), "values": np.array([1.0])}, "indices must lie"),
    ],
)
def test_what_is_wrong_is_said(arguments, message):
    model = rich_model()
    assert model.n_features == 30
    with pytest.raises(ValueError, match=message):
        model.explain(**({"x": np.ones(30, np.float32)} | arguments))


def test_a_damaged_leaf_is_refused(monkeypatch):
    model = rich_model()
    kernels = "thinleaf.model.explanation.packed_trees.kernels"
    monkeypatch.setattr(f"{kernels}.scores_of_row", lambda *arguments: BAD_LEAF)
    with pytest.raises(ValueError, match="damaged"):
        model.explain(real_rows()[0])


def test_features_have_their_names():
    names = [f"n{i}" for i in range(30)]
    e = rich_model(feature_names=names).explain(real_rows()[0])
    assert all(p.name == names[p.feature] for p in e.path.candidates[0].score.contributions)
    e = rich_model().explain(real_rows()[0])
    part = e.path.candidates[0].score.contributions[0]
    assert part.name == f"feature {part.feature}"

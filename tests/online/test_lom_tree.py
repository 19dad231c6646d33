"""LOMTree against its twin, and what must hold of its structure."""

from __future__ import annotations

import numpy as np
import pytest

from tests import online_reference as reference
from tests.online.test_linear_models import stream_of
from tests.online.test_recall_tree import examples
from tests.strategies import FORMATS, as_rows
from thinleaf._dtypes import NO_CHILD
from thinleaf.online.importance import LOSSES
from thinleaf.online.linear_models import Learning
from thinleaf.online.lom_model import LomTreeModel
from thinleaf.online.lom_tree import (
    LEFT,
    MAJORITY,
    N_ROUTERS,
    PARENT,
    RIGHT,
    ROOT,
    ROUTER,
    SMALLEST,
    Settings,
)
from thinleaf.online.tables import COUNT, EMPTY

CASES = {
    "as it is": {},
    "many routers": {"max_routers": 40},
    "squared": {"loss": "squared", "max_routers": 20},
    "swaps": {"max_routers": 4, "swap_resistance": 0.1},
    "many swaps": {"max_routers": 8, "swap_resistance": 0.0, "learning_rate": 3.0},
}


def model_of(n_features: int, *, dense: bool, **options) -> LomTreeModel:
    learning = Learning(
        LOSSES[options.get("loss", "logistic")], options.get("learning_rate", 1.0), False
    )
    settings = Settings(
        options.get("max_routers") or 0, options.get("swap_resistance", 4.0), 64, learning
    )
    return LomTreeModel(n_features, settings, dense=dense)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_the_tree_equals_its_twin(kind, case):
    X, y = examples(600)
    model, twin = (
        model_of(8, dense=kind == "dense", **CASES[case]),
        reference.LomTree(**CASES[case]),
    )
    predicted = model.learn(stream_of(as_rows(X, kind), y), 9)
    expected = [twin.learn(x.astype(float), int(c)) for x, c in zip(X, y, strict=True)]
    assert predicted.tolist() == [EMPTY if c is None else c for c in expected]
    assert model.state.sizes[N_ROUTERS] == twin.n_routers
    if "swap" in case:
        assert twin.n_swaps > 0
    pairs = [(ROOT, twin.root)]
    nodes = model.state.nodes
    while pairs:
        number, node = pairs.pop()
        assert nodes[number, MAJORITY] == node.majority
        assert model.state.stats[number, SMALLEST] == node.smallest()
        assert model.state.labels.owners[number, COUNT] == len(node.seen)
        assert (nodes[number, LEFT] == NO_CHILD) == (node.left is None)
        if node.left is not None:
            pairs += [(nodes[number, LEFT], node.left), (nodes[number, RIGHT], node.right)]
    leaves = [twin.leaf(x.astype(float)).majority for x in X]
    assert model.predict(as_rows(X, kind)).tolist() == leaves


@pytest.mark.parametrize("case", CASES)
def test_the_structure_stays_a_tree(case):
    X, y = examples(600, seed=3)
    model = model_of(8, dense=True, **CASES[case])
    model.learn(stream_of(as_rows(X, "dense"), y), 9)
    nodes, n_nodes = model.state.nodes, int(model.state.sizes[0])
    reached, routers = [ROOT], []
    for node in reached:
        left, right = nodes[node, [LEFT, RIGHT]].tolist()
        assert (left == NO_CHILD) == (right == NO_CHILD)
        if left != NO_CHILD:
            assert nodes[[left, right], PARENT].tolist() == [node, node]
            reached += [left, right]
            routers.append(int(nodes[node, ROUTER]))
    assert sorted(reached) == list(range(n_nodes))
    assert sorted(routers) == list(range(int(model.state.sizes[N_ROUTERS])))


def test_a_router_makes_balanced_and_pure_splits():
    """Equation 6 at its maximum of 1: half of the classes left, half of them right."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 8, 2000)
    X = np.eye(8)[y]
    model = model_of(8, dense=True, max_routers=1)
    model.learn(stream_of(as_rows(X, "dense"), y), 8)
    leaves = model.leaves(as_rows(np.eye(8), "dense"))
    assert np.bincount(leaves).max() in (4, 5)
    right = leaves[y] == model.state.nodes[ROOT, RIGHT]
    shares = [np.mean(right[y == label]) for label in range(8)]
    balance = 2 * np.mean([abs(np.mean(right) - share) for share in shares])
    assert balance > 0.9

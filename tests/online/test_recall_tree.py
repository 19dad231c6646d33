"""The Recall Tree against its twin, and the propositions of its paper on small cases."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from tests import online_reference as reference
from tests.online.test_linear_models import stream_of
from tests.strategies import FORMATS, as_rows, integer_rows
from thinleaf import RecallTreeClassifier
from thinleaf._dtypes import NO_CHILD, PARAM
from thinleaf.online.histogram import (
    BOUND,
    HELD,
    TOTAL,
    enlarged_histograms,
    entropy_gain,
    new_histograms,
    recall_bound,
    refill_candidates,
    update_candidates,
)
from thinleaf.online.importance import LOSSES
from thinleaf.online.linear_models import Learning
from thinleaf.online.recall_model import RecallTreeModel
from thinleaf.online.recall_tree import DEPTH, LEFT, RIGHT, Settings
from thinleaf.online.tables import EMPTY

CASES = {
    "as it is": {},
    "squared losses": {"loss": "squared", "router_loss": "squared"},
    "no bound": {"bound_multiplier": 0.0, "max_depth": 4},
    "no path features": {"path_features": False},
    "one candidate": {"max_candidates": 1, "bound_multiplier": 0.1},
    "five candidates": {"max_candidates": 5, "bound_multiplier": 0.3},
    "examples' own weights": {"router_weight": "example", "bound_multiplier": 0.1},
    "known features": {"negatives": "known"},
    "no tree": {"max_depth": 0},
    "recall of children": {"recall_of": "child", "bound_multiplier": 0.3, "max_candidates": 3},
    "two paths": {"two_paths": True, "path_features": False, "max_candidates": 3},
    "two paths and their features": {"two_paths": True, "negatives": "known", "max_candidates": 3},
    "forgetting": {"half_life": 40.0, "bound_multiplier": 0.3, "max_candidates": 3},
    "slow": {"learning_rate": 0.1, "router_learning_rate": 3.0},
}


def model_of(n_features: int, *, dense: bool, **options) -> RecallTreeModel:
    loss, router_loss = options.get("loss", "logistic"), options.get("router_loss", "logistic")
    known = options.get("negatives") == "known"
    settings = Settings(
        options.get("max_depth", 20),
        options.get("max_routers", 10**6),
        options.get("max_candidates") or 0,
        options.get("bound_multiplier", 1.0),
        options.get("path_features", True),
        options.get("router_weight", "entropy") == "entropy",
        options.get("recall_of") == "child",
        options.get("two_paths", False),
        options.get("half_life") or 0.0,
        Learning(LOSSES[router_loss], options.get("router_learning_rate", 1.0), False),
        Learning(LOSSES[loss], options.get("learning_rate", 1.0), known),
    )
    return RecallTreeModel(n_features, settings, dense=dense)


def examples(n_rows: int = 250, n_classes: int = 9, seed: int = 0):
    """Return rows of small integers around a centre for each class."""
    rng = np.random.default_rng(seed)
    centres = integer_rows(rng, n_classes, 8)
    y = rng.choice(n_classes, n_rows, p=np.arange(1, n_classes + 1) / math.comb(n_classes + 1, 2))
    X = centres[y] + integer_rows(rng, n_rows, 8) * (rng.random((n_rows, 8)) < 0.5)
    arrival = {label: i for i, label in enumerate(dict.fromkeys(y.tolist()))}
    return X.astype(PARAM), np.array([arrival[label] for label in y.tolist()])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_the_tree_equals_its_twin(kind, case):
    if kind == "dense" and CASES[case].get("negatives") == "known":
        pytest.skip("of dense rows, all features are known")
    X, y = examples()
    weights = np.where(np.arange(y.size) % 5 == 0, 2.0, 1.0)
    model = model_of(8, dense=kind == "dense", **CASES[case])
    twin = reference.RecallTree(**CASES[case])
    predicted = model.learn(stream_of(as_rows(X, kind), y, weights), 9)
    expected = [
        twin.learn(x.astype(float), int(c), w) for x, c, w in zip(X, y, weights, strict=True)
    ]
    assert predicted.tolist() == [EMPTY if c is None else c for c in expected]
    nodes, stats = model.state.nodes, model.state.histograms.stats
    assert model.state.sizes[0] == len(twin.nodes)
    for node in twin.nodes:
        children = [NO_CHILD if c is None else c.id for c in (node.left, node.right)]
        assert nodes[node.id, [LEFT, RIGHT]].tolist() == children
        assert nodes[node.id, DEPTH] == node.depth
        assert model.candidates(node.id).tolist() == node.candidates
        if "half_life" not in CASES[case]:  # what a node has seen is worth less when it is asked
            assert stats[node.id, TOTAL] == node.total
            assert stats[node.id, BOUND] == pytest.approx(twin._recall(node))
    assert model.predict(as_rows(X, kind)).tolist() == [twin.predict(x.astype(float)) for x in X]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("path_features", [True, False])
def test_a_frozen_tree_predicts_alike(kind, path_features):
    X, y = examples(400)
    clf = RecallTreeClassifier(4, bound_multiplier=0.1, path_features=path_features)
    rows = X if kind == "dense" else sp.csr_matrix(X)
    clf.partial_fit(rows[:200], y[:200])
    frozen, before = clf.freeze(), clf.predict(rows)
    assert frozen.n_leaves > 2
    assert np.mean(frozen.predict(rows) == before) > 0.99  # equal scores may be a bit apart
    again = frozen.predict(rows)
    clf.partial_fit(rows[200:], y[200:])
    np.testing.assert_array_equal(frozen.predict(rows), again)


def test_rows_stop_where_the_unrolled_tree_has_its_leaves():
    X, y = examples(400)
    model = model_of(8, dense=True, bound_multiplier=0.1, max_candidates=4)
    rows = as_rows(X, "dense")
    model.learn(stream_of(rows, y), 9)
    tree = model.unrolled(9)
    leaves = [tree.classes[i].tolist() for i in np.flatnonzero(tree.is_leaf)]
    reached = {tuple(model.candidates(node)) for node in model.shortlists(rows)[0]}
    assert reached <= {tuple(classes) for classes in leaves}
    assert not any(tree.classes[i].size for i in np.flatnonzero(~tree.is_leaf))
    # two leaves of one node would be one
    pairs = tree.children[~tree.is_leaf]
    both = tree.is_leaf[pairs].all(axis=1)
    assert all(tree.classes[a].tolist() != tree.classes[b].tolist() for a, b in pairs[both])


@given(
    labels=st.lists(st.integers(0, 12), min_size=1, max_size=200),
    n=st.integers(1, 8),
    more=st.integers(0, 6),
)
def test_candidates_are_the_most_frequent_labels(labels, n, more):
    histograms = enlarged_histograms(new_histograms(1, 16), 1, 1000)
    for label in labels:
        update_candidates(histograms, 0, label, 1.0, n, 1.0, 1.0)
    refill_candidates(histograms, 0, n + more, 1.0, 1.0)
    counts = Counter(labels)
    top = sorted(counts.values(), reverse=True)[: n + more]
    held = histograms.candidates[0, : histograms.n_candidates[0]].tolist()
    assert len(set(held)) == len(held)
    assert sorted((counts[label] for label in held), reverse=True) == top
    assert histograms.stats[0, HELD] == sum(top)
    assert histograms.stats[0, TOTAL] == len(labels)
    assert histograms.stats[0, BOUND] == recall_bound(sum(top), len(labels), 1.0)


@given(
    labels=st.lists(st.integers(0, 5), max_size=50),
    label=st.integers(0, 6),
    weight=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_the_gain_is_the_difference_of_entropies(labels, label, weight):
    histograms = enlarged_histograms(new_histograms(1, 4), 1, 1000)
    twin = reference.RecallNode(0, 0, reference.Linear())
    for other in labels:
        update_candidates(histograms, 0, other, 1.0, 4, 1.0, 1.0)
        twin.update_candidates(other, 1.0, 4)
    gain = entropy_gain(histograms, 0, label, weight)
    assert gain == pytest.approx(twin.bits(label, weight) - twin.bits(), abs=1e-9)


# -- propositions ----------------------------------------------------------------------------------


def test_the_example_of_section_2_1():
    assert recall_bound(60.0, 62.0, 0.0) == 60.0 / 62.0
    r, m = 60.0 / 62.0, 62.0
    assert recall_bound(60.0, 62.0, 1.0) == r - math.sqrt(r * (1 - r) / m) - 1.0 / m
    assert recall_bound(0.0, 0.0, 1.0) == -math.inf


@pytest.mark.parametrize("m", [5, 30, 200])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_proposition_1_the_bound_holds_with_probability_1_minus_delta(m, delta):
    """With the λ of Maurer & Pontil's theorem 4, for candidates chosen before."""
    rng = np.random.default_rng(0)
    multiplier = 7 / 3 * math.log(2 / delta) * m / (m - 1)
    for concentration in (0.1, 1.0):
        p = np.sort(rng.dirichlet(np.full(30, concentration)))[::-1]
        held = rng.multinomial(m, p, size=1000)[:, :4].sum(axis=1)
        bounds = np.array([recall_bound(float(h), float(m), multiplier) for h in held])
        assert np.mean(bounds > p[:4].sum()) <= delta


def test_without_a_multiplier_recall_is_as_it_is():
    assert [recall_bound(h, 8.0, 0.0) for h in (0.0, 4.0, 8.0)] == [0.0, 0.5, 1.0]


def test_the_bound_rises_with_examples():
    bounds = [recall_bound(0.9 * m, float(m), 1.0) for m in (1, 10, 100, 1000)]
    assert bounds == sorted(bounds)


def test_path_features_let_regressors_say_what_the_tree_says():
    """The proposition of section 3.2, with its own weights."""
    X, y = examples()
    model = model_of(8, dense=True, bound_multiplier=0.0, max_depth=3, max_candidates=9)
    model.learn(stream_of(as_rows(X, "dense"), y), 9)
    nodes, _ = model.shortlists(as_rows(X, "dense"))
    leaves = np.unique(nodes)
    majority = {leaf: int(np.bincount(y[nodes == leaf]).argmax()) for leaf in leaves.tolist()}
    regressors = model.state.regressors
    regressors.bias[:, 0] = 0.0
    regressors.weights[:, 0] = 0.0
    table = regressors.extra
    for node in range(int(model.state.sizes[0])):
        start, log_size = (int(value) for value in table.owners[node, :2])
        for at in range(start, start + (1 << log_size) if start != EMPTY else start):
            table.values[at, 0] = float(majority.get(node) == table.keys[at])
    predicted = model.predict(as_rows(X, "dense"))
    assert predicted.tolist() == [majority[node] for node in nodes.tolist()]


def test_routers_halve_two_groups_that_a_hyperplane_separates():
    """Purer children: 20 classes on either side of the first axis."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 3000)
    X = rng.standard_normal((3000, 3)).astype(PARAM)
    X[:, 0] = np.where(y < 20, -3.0, 3.0) + X[:, 0]
    model = model_of(3, dense=True, max_depth=1, max_candidates=20, bound_multiplier=0.0)
    model.learn(stream_of(as_rows(X, "dense"), y), 40)
    nodes, _ = model.shortlists(as_rows(X, "dense"))
    first = np.bincount(nodes[y < 20], minlength=3)[1:] / (y < 20).sum()
    second = np.bincount(nodes[y >= 20], minlength=3)[1:] / (y >= 20).sum()
    assert max(first) > 0.97
    assert max(second) > 0.97
    assert first.argmax() != second.argmax()


def test_time_is_logarithmic_in_classes():
    """Nodes passed and candidates scored, for 8 and for 1024 classes that features code."""
    work = []
    for n_classes in (8, 1024):
        rng = np.random.default_rng(1)
        y = rng.integers(0, n_classes, 20 * n_classes)
        X = ((y[:, None] >> np.arange(10)) & 1).astype(PARAM)
        model = model_of(10, dense=True)
        arrival = {label: i for i, label in enumerate(dict.fromkeys(y.tolist()))}
        ids = [arrival[label] for label in y.tolist()]
        model.learn(stream_of(as_rows(X, "dense"), ids), n_classes)
        nodes, _ = model.shortlists(as_rows(X, "dense"))
        n_candidates = model.state.histograms.n_candidates[nodes]
        work.append((model.state.nodes[nodes, DEPTH] + n_candidates).mean())
    assert work[1] <= 6 * work[0]


@pytest.mark.parametrize("kind", FORMATS)
def test_leaves_have_no_routers(kind):
    """Nodes get children in pairs, so a node's router follows from its left child."""
    X, y = examples(400)
    model = model_of(8, dense=kind == "dense", bound_multiplier=0.1)
    model.learn(stream_of(as_rows(X, kind), y, np.ones(400)), 9)
    state = model.trimmed(9)
    inner = np.flatnonzero(state.nodes[:, LEFT] != NO_CHILD)
    routers = (state.nodes[inner, LEFT] - 1) // 2
    assert state.nodes.shape[0] > 3
    assert np.sort(routers).tolist() == list(range(state.routers.bias.shape[0]))
    assert model.state.routers.bias.shape[0] <= max(model.state.nodes.shape[0], 2) // 2
    assert np.any(state.routers.bias[routers] != 0.0)

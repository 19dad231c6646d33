"""Trees over labels: structure, fixed kinds, statistics, and what AssignLabels must give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinleaf._dtypes import INDEX, NO_CHILD
from thinleaf.execution import executor_for
from thinleaf.labeltree import assign
from thinleaf.labeltree.assign import assign_labels
from thinleaf.labeltree.fixed_trees import balanced, clustered, huffman, n_fillers
from thinleaf.labeltree.kernels import assignment as kernels
from thinleaf.labeltree.kernels.exchange import exchange
from thinleaf.labeltree.label_tree import LabelTree, LabelTreeError
from thinleaf.labeltree.show import tree_text
from thinleaf.labeltree.statistics import Statistics, node_quality, split_quality

seeds = st.integers(0, 2**32 - 1)
arities = st.sampled_from([2, 3, 4, 5, 20])


def labels_below(tree: LabelTree, node: int) -> set[int]:
    """Return the labels of a node, by recursion."""
    if node >= tree.n_nodes:
        return {node - tree.n_nodes}
    children = [int(child) for child in tree.children[node] if child != NO_CHILD]
    return set().union(*(labels_below(tree, child) for child in children))


def nowhere(p: np.ndarray) -> np.ndarray:
    return np.full(p.shape[0], -1, dtype=INDEX)


def random_statistics(tree: LabelTree, rng: np.random.Generator, dim: int = 3) -> Statistics:
    out = Statistics.zeros(tree, dim)
    out.counts[:] = rng.integers(1, 9, size=out.counts.size)
    probas = rng.dirichlet(np.full(tree.arity, 0.5), size=out.counts.size)
    out.sum_probas[:] = probas * out.counts[:, None]
    out.label_counts[:] = rng.integers(1, 9, size=tree.n_labels)
    out.label_sums[:] = rng.standard_normal(out.label_sums.shape)
    return out


def parameters(tree: LabelTree, rng: np.random.Generator, dim: int = 3):
    shape = (tree.n_nodes, tree.arity if tree.arity > 2 else 1)
    weights = rng.standard_normal((*shape, dim)).astype(np.float32)
    return weights, np.zeros(shape, dtype=np.float32)


# -- structure -------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 40), arities)
def test_paths_lead_from_the_root_to_each_label(seed, n_labels, arity):
    rng = np.random.default_rng(seed)
    for tree in (
        balanced(n_labels, arity, rng),
        huffman(rng.integers(1, 20, n_labels), arity),
        clustered(rng.standard_normal((n_labels, 2)), arity, rng),
    ):
        for label in range(n_labels):
            at = 0 if tree.n_nodes else label
            for node, branch in tree.path(label):
                assert node == at
                at = int(tree.children[node, branch])
            assert at == tree.n_nodes + label


@pytest.mark.parametrize(
    ("children", "n_labels", "message"),
    [
        ([[1, 2]], 1, "cannot separate"),
        ([[1, 1]], 2, "one node's child"),
        ([[1, 3]], 2, "must be -1 or in"),
        ([[0, 1]], 1, "cannot separate"),
        ([[2, 3], [1, 4]], 3, "greater than its parent's"),
        ([[1, -1], [2, 3]], 2, "two or more children"),
        ([[1], [2]], 2, "two or more columns"),
        (np.empty((0, 2)), 0, "needs a label"),
    ],
)
def test_arrays_that_are_no_tree(children, n_labels, message):
    with pytest.raises(LabelTreeError, match=message):
        LabelTree.build(np.array(children, dtype=INDEX), n_labels)


# -- fixed kinds -----------------------------------------------------------------------------------


@given(seeds, st.integers(1, 300), arities)
def test_paths_of_a_balanced_tree_differ_by_at_most_one(seed, n_labels, arity):
    depths = balanced(n_labels, arity, np.random.default_rng(seed)).depths
    assert depths.max() - depths.min() <= 1


@given(st.integers(2, 300), st.integers(2, 20))
def test_labels_of_a_node_are_next_to_each_other_if_they_keep_their_order(n_labels, arity):
    tree = balanced(n_labels, arity)
    assert np.ptp(tree.depths) <= 1
    labels_of: dict[tuple[int, int], list[int]] = {}
    for label in range(n_labels):
        for at in tree.path(label):
            labels_of.setdefault(at, []).append(label)
    assert all(np.ptp(labels) == len(labels) - 1 for labels in labels_of.values())


def cheapest(weights: tuple[int, ...], arity: int, seen: dict) -> int:
    """Return the least Σ weight · depth over all trees, by trying every last merge."""
    if len(weights) == 1:
        return 0
    if weights not in seen:
        costs = []
        for mask in product([False, True], repeat=len(weights)):
            part = [w for w, m in zip(weights, mask, strict=True) if m]
            if 2 <= len(part) <= arity:
                rest = [w for w, m in zip(weights, mask, strict=True) if not m]
                costs.append(sum(part) + cheapest(tuple(sorted([*rest, sum(part)])), arity, seen))
        seen[weights] = min(costs)
    return seen[weights]


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.integers(2, 4))
def test_a_huffman_tree_is_optimal(weights, arity):
    tree = huffman(np.array(weights), arity)
    assert int(tree.depths @ weights) == cheapest(tuple(sorted(weights)), arity, {})


def test_clusters_stay_together():
    rng = np.random.default_rng(0)
    prototypes = np.repeat(10 * rng.standard_normal((4, 3)), 4, axis=0)
    tree = clustered(prototypes + 0.01 * rng.standard_normal((16, 3)), 4, rng)
    parts = sorted(sorted(labels_below(tree, int(child))) for child in tree.children[0])
    assert parts == [[4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3] for i in range(4)]


# -- J_n, balancedness, purity ---------------------------------------------------------------------


@st.composite
def splits(draw):
    rng = np.random.default_rng(draw(seeds))
    n_labels, arity = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    sharpness = draw(st.sampled_from([0.05, 0.5, 5.0]))
    p = rng.dirichlet(np.full(arity, sharpness), size=n_labels)
    return p, rng.dirichlet(np.ones(n_labels))


@given(splits())
def test_the_objective_is_in_its_interval(split):
    """Lemma 2."""
    p, q = split
    arity = p.shape[1]
    J, beta, alpha = split_quality(p, q)
    assert 0.0 <= J <= 4 / arity * (1 - 1 / arity) + 1e-12
    assert 0.0 <= beta <= 1 / arity + 1e-12
    assert 0.0 <= alpha < 1.0


@given(st.integers(2, 6), st.integers(1, 3), seeds)
def test_the_objective_is_highest_iff_balanced_and_pure(arity, n_each, seed):
    """Lemma 3."""
    rng = np.random.default_rng(seed)
    best = 4 / arity * (1 - 1 / arity)
    child = np.repeat(np.arange(arity), n_each)
    q = np.full(child.size, 1 / child.size)
    J, beta, alpha = split_quality(np.eye(arity)[child], q)
    assert np.isclose(J, best)
    assert np.isclose(beta, 1 / arity)
    assert alpha == 0.0
    blurred = 0.9 * np.eye(arity)[child] + 0.1 * rng.dirichlet(np.ones(arity), size=child.size)
    assert split_quality(blurred, q)[0] < best - 1e-3  # not pure
    skewed = q + np.where(child == 0, 0.1, 0.0)
    assert split_quality(np.eye(arity)[child], skewed / skewed.sum())[0] < best - 1e-6


@given(splits())
def test_pure_splits_are_as_balanced_as_their_objective_says(split):
    """Lemma 4."""
    p, q = split
    arity = p.shape[1]
    best = 4 / arity * (1 - 1 / arity)
    pure = np.eye(arity)[p.argmax(axis=1)]
    J, beta, _ = split_quality(pure, q)
    assert beta >= 1 / arity - np.sqrt(max(arity * (best - J), 0.0)) / 2 - 1e-9


@given(splits())
def test_balanced_splits_are_as_pure_as_their_objective_says(split):
    """Lemma 5, where each label has one child above 1/M: its proof counts no more of them."""
    p, q = split
    arity = p.shape[1]
    p = np.where(np.count_nonzero(p > 1 / arity, axis=1, keepdims=True) == 1, p, np.eye(arity)[0])
    every = np.concatenate([np.roll(p, shift, axis=1) for shift in range(arity)])
    J, beta, alpha = split_quality(every, np.tile(q, arity) / arity)
    assert np.isclose(beta, 1 / arity)
    assert alpha <= (4 / arity * (1 - 1 / arity) - J) / 2 + 1e-9


def test_a_balanced_split_that_lemma_5_does_not_cover():
    p = np.array([[0.04662118, 0.67444527, 0.25488296, 0.0240506]])
    every = np.concatenate([np.roll(p, shift, axis=1) for shift in range(4)])
    J, _, alpha = split_quality(every, np.full(4, 0.25))
    assert alpha > (0.75 - J) / 2


@given(splits(), st.booleans())
def test_derivatives_are_those_of_the_objective(split, log_likelihood):
    """Equations 10 and 12: |p_j - p_j|i| of one label, by finite differences."""
    p, q = split
    value, affinity = np.zeros_like(p), np.zeros_like(p)
    kernels.derivatives(p, q, log_likelihood, 1.0, nowhere(p), value, affinity)

    def term(p, i, j):
        return 2 / p.shape[1] * q[i] * abs(p[i, j] - q @ p[:, j])

    step = 1e-7
    for i, j in np.ndindex(p.shape):
        if abs(affinity[i, j]) < 1e-5:
            continue
        up, down = p.copy(), p.copy()
        up[i, j] += step
        down[i, j] -= step
        slope = (term(up, i, j) - term(down, i, j)) / (2 * step)
        expected = slope * (p[i, j] if log_likelihood else 1.0)
        assert np.isclose(value[i, j], expected, atol=1e-6)


# -- AssignLabels ----------------------------------------------------------------------------------


def gain(value: np.ndarray, child) -> float:
    return float(sum(value[i, j] for i, j in enumerate(child)))


def brute_force(value: np.ndarray, allowed) -> float:
    n_labels, arity = value.shape
    return max(
        gain(value, child)
        for child in product(range(arity), repeat=n_labels)
        if allowed(np.bincount(child, minlength=arity))
    )


def assigned(value: np.ndarray, affinity: np.ndarray, step: int, capacity: int) -> np.ndarray:
    child = np.zeros(value.shape[0], dtype=INDEX)
    none = np.empty(0), np.inf
    kernels.assign_greedily(value, affinity, value.shape[0], step, capacity or 2**30, *none, child)
    exchange(value, step, capacity, np.zeros(value.shape[0]), np.inf, child)
    return child


@st.composite
def node_problems(draw, sizes):
    arity, n_labels = draw(st.sampled_from(sizes))
    rng = np.random.default_rng(draw(seeds))
    p = rng.dirichlet(np.full(arity, 0.7), size=n_labels)
    q = rng.dirichlet(np.full(n_labels, 3.0))
    value, affinity = np.zeros_like(p), np.zeros_like(p)
    kernels.derivatives(p, q, draw(st.booleans()), 1.0, nowhere(p), value, affinity)
    return value, affinity


@given(node_problems([(2, 2), (2, 5), (2, 8), (3, 3), (3, 5), (4, 4), (4, 7)]))
def test_algorithm_2_finds_the_assignment_that_most_increases_the_objective(problem):
    """Lemma 1, against every well-formed assignment."""
    value, affinity = problem
    arity = value.shape[1]

    def well_formed(sizes):
        return np.all(sizes >= 1) and np.all((sizes - 1) % (arity - 1) == 0)

    child = assigned(value, affinity, arity - 1, 0)
    assert well_formed(np.bincount(child, minlength=arity))
    assert np.isclose(gain(value, child), brute_force(value, well_formed), atol=1e-9)


@given(node_problems([(3, 7)]))
def test_algorithm_2_is_best_for_the_sizes_it_chooses(problem):
    value, affinity = problem
    child = assigned(value, affinity, 2, 0)
    sizes = np.bincount(child, minlength=3)
    best = brute_force(value, lambda other: np.array_equal(other, sizes))
    assert np.isclose(gain(value, child), best, atol=1e-9)


@given(node_problems([(2, 4), (3, 4), (3, 6), (3, 7), (4, 6)]))
def test_algorithm_3_finds_the_best_assignment_under_a_capacity(problem):
    value, affinity = problem
    capacity = -(-value.shape[0] // value.shape[1]) + 1

    def fits(sizes):
        return np.all(sizes >= 1) and np.all(sizes <= capacity)

    child = assigned(value, affinity, 1, capacity)
    assert fits(np.bincount(child, minlength=value.shape[1]))
    assert np.isclose(gain(value, child), brute_force(value, fits), atol=1e-9)


def test_the_greedy_loop_alone_is_not_always_best():
    """Two children suit label 0 equally, one suits label 1: lemma 1 overlooks such ties."""
    value = np.array([[2.0, 2.0, -2.0], [1.0, -1.0, -1.0], [-0.5, -0.5, 0.5]])
    affinity = np.array([[0.5, 0.4, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.5]])
    child = np.zeros(3, dtype=INDEX)
    kernels.assign_greedily(value, affinity, 3, 2, 2**30, np.empty(0), np.inf, child)
    assert child.tolist() == [0, 1, 2]
    exchange(value, 2, 0, np.zeros(3), np.inf, child)
    assert child.tolist() == [1, 0, 2]


@given(seeds, st.integers(2, 60), arities)
def test_algorithm_2_keeps_trees_well_formed(seed, n_labels, arity):
    rng = np.random.default_rng(seed)
    tree = balanced(n_labels, arity, rng)
    for _ in range(3):
        new, origin, _ = assign_labels(
            tree, random_statistics(tree, rng), *parameters(tree, rng), criterion="probability"
        )
        assert new.n_nodes == tree.n_nodes
        n_missing = np.count_nonzero(~new.present)
        assert n_missing == n_fillers(n_labels, arity)
        assert origin[0] == 0
        known = origin[origin >= 0]
        assert np.unique(known).size == known.size
        tree = new


@given(seeds, st.integers(2, 60), arities)
def test_algorithm_3_obeys_its_depth(seed, n_labels, arity):
    rng = np.random.default_rng(seed)
    tree = balanced(n_labels, arity, rng)
    for max_depth in (tree.depth, tree.depth + 1):
        new, _, _ = assign_labels(
            tree, random_statistics(tree, rng), *parameters(tree, rng), max_depth=max_depth
        )
        assert new.depth <= max_depth
    if tree.depth > 1:
        with pytest.raises(ValueError, match="raise arity or max_depth"):
            assign_labels(tree, random_statistics(tree, rng), *parameters(tree, rng), max_depth=1)


@given(seeds, st.integers(2, 80), arities, st.sampled_from([1, 4, 16]), st.booleans())
def test_how_the_tree_is_cut_into_tasks_does_not_change_it(seed, n_labels, arity, limit, limited):
    rng = np.random.default_rng(seed)
    tree = balanced(n_labels, arity, rng)
    statistics = random_statistics(tree, rng)
    statistics.label_counts[rng.random(n_labels) < 0.2] = 0.0
    given = tree, statistics, *parameters(tree, rng)
    options = {"max_depth": tree.depth if limited else None, "decay": 1.0}
    whole = assign_labels(*given, **options)
    with pytest.MonkeyPatch.context() as patch, executor_for(3) as executor:
        patch.setattr(assign, "_SUBTREE", limit)
        cut, again = (assign_labels(*given, **options, executor=e) for e in (None, executor))
    for other in (cut, again):
        np.testing.assert_array_equal(other.tree.children, whole.tree.children)
        np.testing.assert_array_equal(other.origin, whole.origin)
        np.testing.assert_array_equal(other.statistics.counts, whole.statistics.counts)


@given(seeds, st.integers(3, 30), arities)
def test_statistics_follow_their_node_and_label(seed, n_labels, arity):
    rng = np.random.default_rng(seed)
    tree = balanced(n_labels, arity, rng)
    statistics = random_statistics(tree, rng)
    old = {
        (int(node), int(label)): (statistics.counts[e], statistics.sum_probas[e])
        for e, (node, label) in enumerate(zip(tree.path_nodes, tree.entry_labels(), strict=True))
    }
    new, origin, carried = assign_labels(tree, statistics, *parameters(tree, rng))
    for e, (node, label) in enumerate(zip(new.path_nodes, new.entry_labels(), strict=True)):
        counts, sums = old.get((int(origin[node]), int(label)), (0.0, np.zeros(arity)))
        assert carried.counts[e] == counts
        np.testing.assert_allclose(carried.sum_probas[e], sums, rtol=1e-6)


def test_labels_that_stay_keep_their_tree():
    """If every label is sent where it is, nothing changes."""
    tree = balanced(21, 5)
    statistics = random_statistics(tree, np.random.default_rng(0))
    statistics.counts[:] = 1e4  # what the mean representations say counts for nothing
    statistics.sum_probas[:] = np.eye(5)[tree.path_branches] * statistics.counts[:, None]
    new, origin, _ = assign_labels(tree, statistics, *parameters(tree, np.random.default_rng(0)))
    np.testing.assert_array_equal(new.children, tree.children)
    np.testing.assert_array_equal(origin, np.arange(tree.n_nodes))


@given(seeds, st.integers(2, 60), arities, st.booleans())
def test_labels_without_examples_stay(seed, n_labels, arity, limited):
    """If none has any, and if others do not want their room."""
    rng = np.random.default_rng(seed)
    tree = balanced(n_labels, arity, rng)
    options = {"max_depth": tree.depth if limited else None, "inertia": 2.0, "max_share": 1.5}
    new = assign_labels(tree, Statistics.zeros(tree, 3), *parameters(tree, rng), **options).tree
    np.testing.assert_array_equal(new.children, tree.children)
    one = Statistics.zeros(tree, 3)
    at = np.arange(tree.path_ptr[1])  # the first label is sent where it is
    one.label_counts[0] = one.counts[at] = one.sum_probas[at, tree.path_branches[at]] = 1e4
    new = assign_labels(tree, one, *parameters(tree, rng), **options).tree
    np.testing.assert_array_equal(new.children, tree.children)


@pytest.mark.parametrize(
    ("capacity", "current", "expected"),
    [(3, [0, 0], [0, 0]), (2, [0, 0], [0, 1]), (2, [1, 0], [1, 0]), (2, [-1, 0], [1, 0])],
)
def test_labels_without_examples_take_the_room_that_is_left(capacity, current, expected):
    """Of two children that have a label each, all like the first one better."""
    child = np.array([0, 1, -1, -1], dtype=INDEX)
    value, affinity = np.zeros((4, 2)), np.tile([-0.1, -0.2], (4, 1))
    at = np.array([0, 1, *current], dtype=INDEX)
    kernels.place_rest(value, affinity, 2, 4, 1, capacity, at, child)
    assert child.tolist() == [0, 1, *expected]


def test_node_quality_is_that_of_each_split():
    rng = np.random.default_rng(0)
    tree = balanced(9, 3, rng)
    statistics = random_statistics(tree, rng)
    quality = node_quality(tree, statistics)
    for n in range(tree.n_nodes):
        at = tree.path_nodes == n
        counts = statistics.counts[at].astype(float)
        p = statistics.sum_probas[at] / counts[:, None]
        figures = split_quality(p, counts / counts.sum())
        np.testing.assert_allclose(
            [quality.J[n], quality.balancedness[n], quality.purity[n]], figures, rtol=1e-6
        )
        assert quality.n_labels[n] == len(labels_below(tree, n))


def test_a_tree_is_printed_with_its_most_frequent_labels():
    tree = balanced(9, 3)
    text = tree_text(tree, list("abcdefghi"), np.arange(9), n_top=2, max_depth=1)
    assert text.splitlines() == [
        "root (9 labels): i, h, …",
        "  2 (3 labels): i, h, …",
        "  1 (3 labels): f, e, …",
        "  0 (3 labels): c, b, …",
    ]


def test_inertia_keeps_labels_where_they_are():
    moved = []
    for inertia in (1.0, 1e6):
        rng = np.random.default_rng(0)
        tree = balanced(64, 4, rng)
        given = tree, random_statistics(tree, rng), *parameters(tree, rng)
        new = assign_labels(*given, max_depth=3, inertia=inertia).tree
        first = [t.path_branches[t.path_ptr[:-1]] for t in (tree, new)]
        moved.append(int(np.count_nonzero(first[0] != first[1])))
    assert moved[0] > moved[1] == 0


def test_the_quality_of_all_nodes_is_that_of_each():
    rng = np.random.default_rng(0)
    tree = balanced(23, 4, rng)
    given = random_statistics(tree, rng)
    given.counts[::5] = 0.0
    given.sum_probas[::5] = 0.0
    quality = node_quality(tree, given)
    ptr, entries = tree.entries_by_node()
    for n in range(tree.n_nodes):
        at = entries[ptr[n] : ptr[n + 1]]
        at = at[given.counts[at] > 0.0]
        p = given.sum_probas[at][:, tree.present[n]] / given.counts[at][:, None]
        expected = split_quality(p, given.counts[at] / given.counts[at].sum())
        found = quality.J[n], quality.balancedness[n], quality.purity[n]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("max_mass", [np.inf, 0.4, 0.01])
def test_heavy_children_take_no_more_while_others_have_room(max_mass):
    """All labels like the first child best and the last one least, the heavier the more."""
    mass = 1.0 / np.arange(1, 28)
    mass /= mass.sum()
    value = mass[:, None] * np.array([3.0, 2.0, 1.0])
    child = np.full(27, -1, dtype=INDEX)
    kernels.assign_greedily(value, value, 27, 1, 9, mass, max_mass, child)
    assert np.bincount(child).tolist() == [9, 9, 9]
    share = np.bincount(child, mass)
    if max_mass == np.inf:
        assert child.tolist() == [0] * 9 + [1] * 9 + [2] * 9
    elif max_mass == 0.4:
        assert child[:4].tolist() == [0, 0, 0, 1]  # 0.26 + 0.13 is below the limit
        assert share[0] < 0.6
    else:  # one heavy label each, then all that is left as if there were no limit
        assert child.tolist() == [0, 1, 2] + [0] * 8 + [1] * 8 + [2] * 8

"""AssignLabels where little is known or has changed: nodes that stay, top children, heavy ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labeltree.test_label_tree import (
    arities,
    labels_below,
    parameters,
    random_statistics,
    seeds,
)
from thinleaf._dtypes import INDEX, NO_CHILD
from thinleaf.labeltree import assign
from thinleaf.labeltree.assign import assign_labels
from thinleaf.labeltree.fixed_trees import balanced, huffman
from thinleaf.labeltree.kernels.assignment import assign_greedily
from thinleaf.labeltree.kernels.exchange import exchange
from thinleaf.labeltree.statistics import Statistics, node_quality


def copied(statistics: Statistics) -> Statistics:
    """Return a copy: an assignment changes sums of representations."""
    names = ("sum_probas", "counts", "label_sums", "label_counts", "top_children")
    return Statistics(*(getattr(statistics, name).copy() for name in names))


def split(tree, node: int) -> list[set[int]]:
    """Return the labels of each child of a node."""
    return [set() if c == NO_CHILD else labels_below(tree, int(c)) for c in tree.children[node]]


def after_one(n_labels, arity, max_depth, rng):
    """Return a tree that has been assigned, with statistics and parameters."""
    tree = balanced(n_labels, arity, rng)
    given = random_statistics(tree, rng), *parameters(tree, rng)
    tree, _, statistics = assign_labels(tree, *given, max_depth=max_depth)
    return tree, statistics, *parameters(tree, rng)


limits = pytest.mark.parametrize("limited", [False, True])


@limits
@given(seeds, st.integers(2, 60), arities)
@settings(max_examples=30)
def test_nodes_of_which_nothing_new_is_known_stay(limited, seed, n_labels, arity):
    """And only those: where a label has moved in or out, or had an example, all is as ever."""
    rng = np.random.default_rng(seed)
    max_depth = next(d for d in range(1, 9) if arity**d >= n_labels) + 1 if limited else None
    tree, statistics, *given = after_one(n_labels, arity, max_depth, rng)
    if tree.n_nodes == 0:
        return
    moved = rng.random(n_labels) < rng.choice([0.0, 0.1, 0.9])
    new, origin, _ = assign_labels(
        tree, copied(statistics), *given, max_depth=max_depth, moved=moved
    )
    for n, old in enumerate(origin.tolist()):
        own = labels_below(new, n)
        if old >= 0 and own == labels_below(tree, old) and not moved[list(own)].any():
            assert split(new, n) == split(tree, old)
    full = assign_labels(tree, copied(statistics), *given, max_depth=max_depth)
    if moved.all():
        np.testing.assert_array_equal(new.children, full.tree.children)
    if moved.any():  # the root is as ever
        assert split(new, 0) == split(full.tree, 0)
    every = np.ones(n_labels, dtype=bool)
    again = assign_labels(tree, copied(statistics), *given, max_depth=max_depth, moved=every)
    np.testing.assert_array_equal(again.tree.children, full.tree.children)
    np.testing.assert_array_equal(again.origin, full.origin)


@limits
def test_nodes_that_stay_have_the_same_numbers_however_tasks_are_cut(limited, monkeypatch):
    rng = np.random.default_rng(0)
    depth = 4 if limited else None
    tree, statistics, *given = after_one(150, 4, depth, rng)
    moved = np.zeros(150, dtype=bool)
    moved[labels_below(tree, tree.n_nodes - 1).pop()] = True
    found = []
    for size in (4096, 8):
        monkeypatch.setattr(assign, "_SUBTREE", size)
        found.append(assign_labels(tree, copied(statistics), *given, max_depth=depth, moved=moved))
    np.testing.assert_array_equal(found[0].tree.children, found[1].tree.children)
    np.testing.assert_array_equal(found[0].origin, found[1].origin)


def test_a_tree_of_another_form_is_not_kept():
    """A Huffman tree may be deeper than the limit: then its nodes are assigned, moved or not."""
    tree = huffman(2.0 ** np.arange(9))
    rng = np.random.default_rng(0)
    given = random_statistics(tree, rng), *parameters(tree, rng)
    new = assign_labels(tree, *given, max_depth=4, moved=np.zeros(9, dtype=bool)).tree
    assert tree.depth > 4 >= new.depth


# -- statistics of some children -------------------------------------------------------------------


def of_top(tree, statistics: Statistics, n_top: int) -> Statistics:
    """Return statistics of the children with the largest sums."""
    top = np.argsort(-statistics.sum_probas, axis=1, kind="stable")[:, :n_top].astype(INDEX)
    sums = np.take_along_axis(statistics.sum_probas, top, axis=1)
    return replace(statistics, sum_probas=np.ascontiguousarray(sums), top_children=top)


@pytest.mark.parametrize(("n_labels", "arity"), [(30, 6), (64, 8)])
def test_children_that_get_nothing_need_no_statistics(n_labels, arity):
    rng = np.random.default_rng(1)
    tree = balanced(n_labels, arity, rng)
    every, given = random_statistics(tree, rng), parameters(tree, rng)
    top = np.argsort(-every.sum_probas, axis=1)[:, :3]
    kept = np.zeros_like(every.sum_probas)
    np.put_along_axis(kept, top, np.take_along_axis(every.sum_probas, top, axis=1), axis=1)
    kept *= every.counts[:, None] / kept.sum(axis=1, keepdims=True)
    every.sum_probas[:] = kept
    some = of_top(tree, every, 3)
    np.testing.assert_allclose(some.every_sum(tree), every.sum_probas, atol=1e-5)
    for name in ("J", "balancedness", "purity"):
        found, wanted = (getattr(node_quality(tree, each), name) for each in (some, every))
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    new = assign_labels(tree, copied(some), *given, max_depth=3)
    wanted = assign_labels(tree, copied(every), *given, max_depth=3)
    np.testing.assert_array_equal(new.tree.children, wanted.tree.children)
    assert new.statistics.sum_probas.shape[1] == new.statistics.top_children.shape[1] == 3
    carried = wanted.statistics.counts > 0
    assert carried.any()
    np.testing.assert_allclose(
        new.statistics.every_sum(new.tree)[carried],
        wanted.statistics.sum_probas[carried],
        atol=1e-5,
    )


def test_what_is_missing_is_spread_over_the_other_children():
    tree = balanced(16, 4)
    statistics = Statistics.zeros(tree, 0, 2)
    statistics.counts[:] = 4.0
    statistics.sum_probas[:] = [2.0, 1.0]
    statistics.top_children[:] = [3, 1]
    np.testing.assert_allclose(statistics.every_sum(tree)[5], [0.5, 1.0, 0.5, 2.0])
    assert Statistics.zeros(tree, 0, 4).top_children.size == 0


# -- exchanges and masses --------------------------------------------------------------------------


@given(seeds, st.sampled_from([(2, 5), (3, 6), (3, 7), (4, 7)]), st.sampled_from([0.4, 0.6, 1.0]))
@settings(max_examples=60)
def test_an_exchange_gains_and_makes_no_child_too_heavy(seed, sizes, share):
    arity, n_labels = sizes
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.full(n_labels, 0.7))
    value = rng.standard_normal((n_labels, arity)) * mass[:, None]
    max_mass, capacity = 2 * share / arity, -(-n_labels // arity) + 1
    child = np.zeros(n_labels, dtype=INDEX)
    assign_greedily(value, value, n_labels, 1, capacity, mass, max_mass, child)
    before, weight_before = child.copy(), np.bincount(child, mass, minlength=arity)
    exchange(value, 1, capacity, mass, max_mass, child)
    rows = np.arange(n_labels)
    assert value[rows, child].sum() >= value[rows, before].sum() - 1e-9
    weight = np.bincount(child, mass, minlength=arity)
    for j in range(arity):
        came = (child == j) & (before != j)
        if weight[j] > weight_before[j] + 1e-9 and came.any():
            assert weight[j] - mass[came].max() < max_mass
    free = before.copy()
    exchange(value, 1, capacity, mass, np.inf, free)
    best = max(
        value[rows, list(other)].sum()
        for other in product(range(arity), repeat=n_labels)
        if np.bincount(other, minlength=arity).min() >= 1
        and np.bincount(other, minlength=arity).max() <= capacity
    )
    assert np.isclose(value[rows, free].sum(), best)


def test_a_heavy_label_stays_out_of_a_child_that_is_full():
    """Without a limit, both heavy labels gather in the first child."""
    value = np.array([[5.0, 0.0], [4.0, 3.0], [1.0, 2.0], [0.5, 0.2]])
    mass = np.array([0.45, 0.45, 0.05, 0.05])
    start = np.array([0, 1, 1, 0], dtype=INDEX)
    free, limited = start.copy(), start.copy()
    exchange(value, 1, 3, mass, np.inf, free)
    exchange(value, 1, 3, mass, 0.5, limited)
    assert free.tolist() == [0, 0, 1, 0]
    assert limited[1] == 1

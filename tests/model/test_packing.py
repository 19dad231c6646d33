"""Packed trees: kernels against plain twins, layouts, smaller weights, and what is let through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.frozen_cases import (
    WEIGHTS,
    backoff_of,
    both,
    frozen,
    layouts,
    real_rows,
    rich_model,
    weight_types,
)
from tests.strategies import as_rows, integer_rows, random_tree, rich_tree, trees, uneven
from thinleaf import FrozenTree, ModelFileError
from thinleaf._dtypes import INDEX, NO_CHILD, PARAM
from thinleaf.model import packing
from thinleaf.model.calibration import TEMPERATURES
from thinleaf.model.narrow import OF_NARROW
from thinleaf.model.packing import PackedTree, array_dtypes, pack
from thinleaf.model.probability import Outside
from thinleaf.model.quantization import quantize
from thinleaf.model.routing import leaf_of_rows, route
from thinleaf.model.tree import Leaf, Router, Tree, TreeError
from thinleaf.softmaxtree.growth.prune import prune

seeds = st.integers(0, 2**32 - 1)
BEAMS = (1, 2, 3, 8)


def some_rows(seed: int, tree: Tree, n_rows: int = 6) -> np.ndarray:
    return integer_rows(np.random.default_rng(seed), n_rows, tree.n_features)


# -- against the twins -----------------------------------------------------------------------------


@layouts
@weight_types
@given(tree=trees(), seed=seeds, epsilon=st.sampled_from([None, 0.0, 0.01, 2.0]))
def test_one_path_is_its_leafs_softmax_and_back_off(sparse, weights, tree, seed, epsilon):
    tree, _ = prune(tree)
    backoff = backoff_of(tree, seed) if epsilon is None else None
    outside = {"backoff": backoff, "epsilon": epsilon or 0.0}
    model = frozen(tree, sparse=sparse, weights=weights, **outside)
    twin = reference.dequantized(tree, weights)
    X = some_rows(seed, tree)
    expected = [reference.class_probability(twin, x, **outside) for x in X]
    for rows in both(X):
        P = model.predict_proba(rows)
        np.testing.assert_allclose(P, np.reshape(expected, P.shape), atol=1e-5)
        assert model.apply(rows).tolist() == [reference.leaf_of(tree, x) for x in X]
    if weights != "int8":  # small integers are exact, so that ties are, too
        expected = [reference.predict(tree, x) for x in X]
        assert [model.predict(rows).tolist() for rows in both(X)] == 2 * [expected]


@layouts
@weight_types
@given(seed=seeds, n_leaves=st.integers(1, 12), back_off=st.booleans())
def test_a_beam_mixes_its_leaves_by_their_paths(sparse, weights, seed, n_leaves, back_off):
    rng = np.random.default_rng(seed)
    tree = uneven(rng, prune(random_tree(rng, n_leaves, 6, 7, zero=0.0))[0])
    outside = {"backoff": backoff_of(tree, seed)} if back_off else {"epsilon": 0.02}
    model = frozen(tree, sparse=sparse, weights=weights, **outside)
    twin = reference.dequantized(tree, weights)
    X = some_rows(seed, tree, 4)
    for beam in BEAMS:
        expected = [reference.class_probability(twin, x, beam, **outside) for x in X]
        for rows in both(X):
            P = model.with_beam(beam).predict_proba(rows)
            np.testing.assert_allclose(P, expected, atol=2e-5)
            assert P.min() >= 0.0
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-9)


@layouts
@given(seed=seeds, temperature=st.sampled_from([0.3, 1.0, 5.0]), beam=st.sampled_from([1, 2, 5]))
def test_a_temperature_divides_the_scores_of_routers(sparse, seed, temperature, beam):
    rng = np.random.default_rng(seed)
    tree = uneven(rng, prune(random_tree(rng, 9, 6, 7, zero=0.0))[0])
    model = frozen(tree, sparse=sparse, epsilon=0.02).with_beam(beam, temperature=temperature)
    assert model.temperature == model.with_beam(3).temperature == temperature
    values = {"router_val": tree.router_val / temperature, "bias": tree.bias / temperature}
    twin = replace(tree, **{name: value.astype(PARAM) for name, value in values.items()})
    X = some_rows(seed, tree, 4)
    expected = [reference.class_probability(twin, x, beam, epsilon=0.02) for x in X]
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=2e-5)


def test_the_likeliest_temperature_is_taken():
    model = rich_model(beam=3)
    X = some_rows(0, random_tree(np.random.default_rng(0), 1, model.n_features, 2), 200)
    y = np.random.default_rng(1).choice(model.labels, size=200)
    best = model.calibrated(X, y)
    losses = {
        t: -np.log(model.with_beam(3, temperature=t).label_proba(X, y)).sum() for t in TEMPERATURES
    }
    assert best.temperature == min(losses, key=losses.__getitem__)
    assert best.beam == 3
    with pytest.raises(ValueError, match="a single path has no use"):
        rich_model().calibrated(X, y)
    with pytest.raises(ValueError, match="no rows to calibrate on"):
        model.calibrated(X[:0], y[:0])
    alone = frozen(random_tree(np.random.default_rng(0), 1, 3, 2), beam=2)
    assert alone.calibrated(np.ones((2, 3), PARAM), alone.labels[:2]).temperature == 1.0


@pytest.mark.parametrize("number", [np.float32, np.float16, np.longdouble, np.int8])
def test_a_temperature_of_any_type_is_a_number(number):
    model, X = rich_model(beam=3), real_rows()
    given, plain = (model.with_beam(3, temperature=t) for t in (number(2), 2.0))
    np.testing.assert_array_equal(given.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf, "1", 1e4, True, 1j])
def test_temperatures_that_make_no_sense(temperature):
    with pytest.raises(ValueError, match="temperature must be from"):
        rich_model().with_beam(2, temperature=temperature)


@layouts
@given(seed=seeds, n_leaves=st.integers(1, 12), back_off=st.booleans())
def test_a_beam_of_all_leaves_is_the_soft_mixture(sparse, seed, n_leaves, back_off):
    rng = np.random.default_rng(seed)
    tree, _ = prune(random_tree(rng, n_leaves, 6, 7))
    outside = {"backoff": backoff_of(tree, seed)} if back_off else {"epsilon": 0.02}
    X = some_rows(seed, tree, 4)
    expected = [reference.soft_probability(tree, x, **outside) for x in X]
    for beam in (max(tree.n_leaves, 2), tree.n_leaves + 1, 1024):
        model = frozen(tree, sparse=sparse, beam=beam, **outside)
        for rows in both(X):
            np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-12)


@layouts
@pytest.mark.parametrize("kind", ["dense", "csr"])
@given(tree=trees(), seed=seeds)
def test_frozen_is_trained(sparse, kind, tree, seed):
    tree, _ = prune(tree)
    X = some_rows(seed, tree, 20)
    rows = as_rows(X, kind)
    leaves = leaf_of_rows(tree, route(tree, rows))
    model = frozen(tree, sparse=sparse)
    np.testing.assert_array_equal(model.apply(rows), leaves)
    P = model.predict_proba(rows)
    for i, leaf in enumerate(leaves.tolist()):
        own = reference.leaf_scores(tree.leaf(leaf), X[i])
        classes = tree.leaf(leaf).classes
        np.testing.assert_allclose(P[i, classes], reference.softmax(own), rtol=1e-12)
        assert model.predict(rows)[i] == classes[np.argmax(own)]


def test_a_class_that_all_leaves_of_a_beam_hold_has_no_negative_probability():
    """Its back-off is added once and taken away for each leaf: a difference that must be zero."""
    rng = np.random.default_rng(0)
    used = np.arange(4, dtype=INDEX)
    children = np.array([[1, 2], [3, 4], [5, 6], *[[NO_CHILD] * 2] * 4])
    nodes = [Router(used, rng.normal(size=4).astype(PARAM), 0.1) for _ in range(3)]
    weights = np.float32([[0.0, 0.0, -3000.0]] * 4)
    leaf = Leaf(np.array([0, 1, 2], INDEX), used, weights, np.zeros(3, PARAM))
    tree = Tree.build(children, [*nodes, *[leaf] * 4], n_features=4, n_classes=5)
    backoff = backoff_of(tree, 3)
    assert np.unique(backoff.mass[tree.is_leaf]).size > 1
    X = rng.uniform(0.5, 1.0, size=(200, 4)).astype(PARAM)
    for beam in (2, 3, 4):
        P = frozen(tree, backoff=backoff, beam=beam).predict_proba(X)
        assert P.min() >= 0.0
        np.testing.assert_allclose(P[:, 2], 0.0, atol=1e-15)


def chain(n: int) -> Tree:
    """Return a tree of n routers below each other, numbered breadth-first."""
    children = np.full((2 * n + 1, 2), NO_CHILD)
    children[0] = [1, 2]
    children[2 : 2 * n : 2] = [[i + 1, i + 2] for i in range(2, 2 * n, 2)]
    router = Router(np.array([0], INDEX), np.array([1.0], PARAM), 0.0)
    nodes = [
        router if left != NO_CHILD else Leaf.constant(i % 2) for i, (left, _) in enumerate(children)
    ]
    return Tree.build(children, nodes, n_features=1, n_classes=2)


@pytest.mark.parametrize("beam", [1, 3, 1024])
def test_a_long_chain_is_searched(beam):
    """In time that goes with its length: a beam does not sort all its paths on each level."""
    model = frozen(chain(5000), beam=beam)
    model.predict(np.zeros((1, 1), PARAM))
    began = time.process_time()
    P = model.predict_proba(np.float32([[9.0], [-9.0], [0.01]]))
    assert time.process_time() - began < 3.0
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


# -- layouts ---------------------------------------------------------------------------------------


def leaf_layouts(packed: PackedTree) -> set[str]:
    """Return the layouts that occur among the leaves."""
    block, used = np.diff(packed.block_ptr) > 0, np.diff(packed.feat_ptr) > 0
    names = {(True, True): "block", (True, False): "whole block", (False, True): "rows"}
    return {names.get(key, "constant") for key in zip(block.tolist(), used.tolist(), strict=True)}


@layouts
@weight_types
@pytest.mark.parametrize("beam", [1, 3])
def test_every_layout_occurs_and_says_the_same(sparse, weights, beam):
    tree = rich_tree(np.random.default_rng(0))
    backoff = backoff_of(tree)
    model = frozen(tree, sparse=sparse, weights=weights, backoff=backoff, beam=beam)
    packed = model.packed
    assert leaf_layouts(packed) == {"block", "rows", "constant"} | (
        set() if sparse else {"whole block"}
    )
    assert np.any(packed.dense_at >= 0)
    assert packed.router_idx.size > 0
    X = real_rows()
    twin = reference.dequantized(tree, weights)
    expected = [reference.class_probability(twin, x, beam, backoff) for x in X]
    for rows in both(X):
        np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-5)


def test_sparse_routers_are_stored_by_feature():
    """So that the few weights of a word stand together, whatever path is taken."""
    tree = rich_tree(np.random.default_rng(0))
    packed = frozen(tree, sparse=True).packed
    assert packed.router_ptr.size == tree.n_features + 1
    for node in np.flatnonzero((packed.child >= 0) & (packed.dense_at < 0)).tolist():
        at = np.flatnonzero(packed.router_idx == node)
        features = np.searchsorted(packed.router_ptr, at, side="right") - 1
        np.testing.assert_array_equal(features, tree.router(node).features)
        np.testing.assert_array_equal(packed.router_val[at], tree.router(node).weights)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("n_top", [0, 1, 2])
def test_scores_of_routers_are_the_same_together_and_one_by_one(monkeypatch, n_top, beam):
    model = rich_model(sparse=True, beam=beam)
    monkeypatch.setattr(packing, "_N_TOP", n_top)
    other = rich_model(sparse=True, beam=beam)
    for X in both(real_rows()):
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_only_trees_numbered_breadth_first_are_packed():
    children = np.array([[1, 2], [3, 4], [-1, -1], [-1, -1], [-1, -1]])
    leaf = Leaf.constant(0)
    routers = [Router(np.array([0], INDEX), np.ones(1, PARAM), 0.0)] * 2
    tree = Tree.build(children, [*routers, leaf, leaf, leaf], n_features=1, n_classes=1)
    frozen(tree)
    swapped = replace(tree, children=np.array([[2, 1], *children[1:]], dtype=INDEX))
    swapped = replace(swapped, children=np.array([[1, 4], [2, 3], *children[2:]], dtype=INDEX))
    with pytest.raises(TreeError, match="breadth-first"):
        pack(swapped, Outside.of(swapped, None, 0.0), sparse=False)


def test_very_wide_rows_are_taken_to_be_sparse():
    """A layout for dense rows would make a dense row of every sparse one."""
    n_features = 2**24 + 1
    leaf = Leaf(
        np.array([0, 1], INDEX), np.array([5], INDEX), np.float32([[1.0, -1.0]]), np.zeros(2, PARAM)
    )
    tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=n_features, n_classes=2)
    model = frozen(tree, sparse=False)
    assert model.packed.sparse
    assert model.predict_one(np.array([5]), np.array([-1.0])) == 1
    wide = replace(frozen(random_tree(np.random.default_rng(0), 1)).packed, n_features=n_features)
    with pytest.raises(TreeError, match="n_features is out of range"):
        wide.validate()


def test_no_features_at_all():
    tree = Tree.build(
        np.array([[-1, -1]]),
        [
            Leaf(
                np.array([0, 2], INDEX),
                np.empty(0, INDEX),
                np.empty((0, 2), PARAM),
                np.ones(2, PARAM),
            )
        ],
        n_features=0,
        n_classes=3,
    )
    for sparse in (False, True):
        for weights in WEIGHTS:
            model = frozen(tree, sparse=sparse, weights=weights)
            P = model.predict_proba(np.empty((2, 0), PARAM))
            np.testing.assert_allclose(P, [[0.5, 0.0, 0.5]] * 2)
            assert model.predict_one(np.empty(0, PARAM)) == 0


# -- smaller weights -------------------------------------------------------------------------------


@layouts
def test_smaller_weights_take_less_room(sparse):
    sizes = [rich_model(sparse=sparse, weights=w).nbytes for w in WEIGHTS]
    assert sizes[0] > sizes[1] > sizes[2]


@layouts
@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_weights_that_become_zero_are_dropped(sparse, weights):
    """Of sparse rows; a row without entries goes, too."""
    rng = np.random.default_rng(0)
    n = 12
    W = np.zeros((n, n), dtype=PARAM)
    W[:, 0] = rng.normal(size=n)
    W[::2, 0] = 1e-9  # below what either type can hold beside the others
    leaf = Leaf(np.arange(n, dtype=INDEX), np.arange(n, dtype=INDEX), W, np.zeros(n, PARAM))
    tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=n, n_classes=n)
    packed = frozen(tree, sparse=sparse).packed
    assert packed.block.size == 0
    small = quantize(packed, weights)
    small.validate()
    assert (packed.entry.size, small.entry.size) == (n, n // 2)
    assert small.feat_idx.tolist() == list(range(1, n, 2))
    assert np.all(small.entry != 0)
    X = real_rows(0, 20, n)
    expected = FrozenTree(packed, np.arange(n)).predict_proba(X)
    for rows in both(X):
        P = FrozenTree(small, np.arange(n)).predict_proba(rows)
        np.testing.assert_allclose(P, expected, atol=0.02)


@layouts
def test_eight_bits_are_wrong_by_half_a_step_at_the_most(sparse):
    tree = rich_tree(np.random.default_rng(2))
    for node in np.flatnonzero(tree.is_leaf).tolist():
        W = tree.leaf(node).weights
        error = np.abs(reference.dequantized(tree, "int8").leaf(node).weights - W)
        assert np.all(error <= 0.5001 * np.abs(W).max(axis=0, initial=0.0) / 127.0)
    packed = frozen(tree, sparse=sparse).packed
    scale = quantize(packed, "int8").scale
    assert scale.size == packed.class_ids.size
    assert np.all(scale > 0.0)


@pytest.mark.parametrize("weights", ["float16", "int8"])
@pytest.mark.parametrize("size", [1e-45, 3e-43, 1e-38, 1.0, 1e38])
def test_weights_of_any_size_become_smaller_ones(weights, size):
    """No overflow, no division by zero, no sign that changes."""
    leaf = Leaf(
        np.array([0, 1], INDEX),
        np.array([0, 1], INDEX),
        np.float32([[size, -size], [size / 2, size]]),
        np.zeros(2, PARAM),
    )
    tree = Tree.build(np.array([[-1, -1]]), [leaf], n_features=2, n_classes=2)
    with np.errstate(all="raise", under="ignore"):
        packed = quantize(frozen(tree).packed, weights)
    stored = packed.block.astype(np.float64).reshape(2, 2)
    assert np.all(np.isfinite(stored))
    assert np.all(stored * np.sign(leaf.weights) >= 0.0)
    packed.validate()
    FrozenTree(packed, [0, 1], checked=False).check()


def test_only_float32_weights_are_quantized():
    packed = rich_model().packed
    assert quantize(packed, "float32") is packed
    with pytest.raises(ValueError, match="already"):
        quantize(quantize(packed, "int8"), "float16")
    with pytest.raises(ValueError, match="weights must be one of float32, float16, int8"):
        quantize(packed, "int4")


# -- what is let through ---------------------------------------------------------------------------


def test_arrays_are_read_only_and_not_the_trees():
    tree = rich_tree(np.random.default_rng(0))
    packed = frozen(tree).packed
    for name, array in packed.arrays().items():
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    bias = packed.bias.copy()
    tree.bias[:] = 99.0
    np.testing.assert_array_equal(packed.bias, bias)


@given(tree=trees(), sparse=st.booleans(), weights=st.sampled_from(WEIGHTS))
def test_whatever_is_packed_is_valid(tree, sparse, weights):
    tree, _ = prune(tree)
    model = frozen(tree, sparse=sparse, weights=weights, backoff=backoff_of(tree))
    model.packed.validate()
    FrozenTree(model.packed, model.labels, checked=False).check()
    assert model.nbytes == sum(array.nbytes for array in model.packed.arrays().values())


def shapes(array: np.ndarray) -> dict[str, np.ndarray]:
    """Return an array in ways that it should not be."""
    other = np.float32 if array.dtype != np.float32 else np.float64
    return {
        "longer": np.append(array, array[-1:] if array.size else np.zeros(1, array.dtype)),
        "shorter": array[:-1],
        "matrix": array[None],
        "scalar": np.zeros((), array.dtype),
        "other dtype": array.astype(other),
        "other order": array.astype(array.dtype.newbyteorder(">")),
        "strided": np.repeat(array, 2)[::2],
    }


def whole_packed(sparse: bool, weights: str = "int8") -> PackedTree:
    """Return a packed tree whose every array has at least two entries."""
    packed = rich_model(3, sparse=sparse, weights=weights).packed
    for name, array in packed.arrays().items():
        assert array.size > 1, name
    return packed


@layouts
@pytest.mark.parametrize("name", [n for n in array_dtypes("int8") if n not in OF_NARROW])
def test_an_array_of_another_shape_or_dtype_is_refused(sparse, name):
    packed = whole_packed(sparse)
    for how, array in shapes(packed.arrays()[name]).items():
        if array.dtype.itemsize == 1 and how == "other order":
            continue
        changed = replace(packed, **{name: array})
        with pytest.raises(TreeError, match=r"\w"):
            changed.validate()


LARGE = 2**31 - 1
Change = Callable[[np.ndarray], np.ndarray]


def put(at: int, value: float) -> Change:
    def change(array: np.ndarray) -> np.ndarray:
        array[at] = value
        return array

    return change


def swap(array: np.ndarray) -> np.ndarray:
    array[[0, 1]] = array[[1, 0]]
    return array


NOT_FINITE = [put(1, np.nan), put(1, np.inf), put(-1, -np.inf)]
POINTERS = [
    put(0, 1), put(0, -1), put(-1, 2**40), put(1, -1), put(1, 2**62), put(-1, 0), put(-2, 2**62),
    lambda a: np.concatenate([[0, 2**63 - 1, -(2**63), -1], a[4:]]),
    lambda a: np.concatenate([a[:1], a[:0:-1]]),
]  # fmt: skip
ONCE = {
    "child": [
        put(0, 0), put(0, 2), put(0, -1), put(0, LARGE), put(0, -LARGE - 1), put(-1, 1),
        put(-1, -1), put(-1, -LARGE - 1), swap, put(1, 1), lambda a: a[::-1].copy(),
    ],
    "bias": NOT_FINITE,
    "dense_at": [put(0, LARGE), put(0, -2), put(-1, 0), lambda a: np.maximum(a, 0)],
    "dense_val": NOT_FINITE,
    "router_ptr": POINTERS,
    "router_idx": [put(0, -1), put(0, LARGE), put(-1, LARGE), lambda a: a[::-1].copy()],
    "router_val": NOT_FINITE,
    "class_ptr": [*POINTERS, lambda a: np.concatenate([a[:1], a[:1], a[2:]])],
    "feat_ptr": POINTERS,
    "block_ptr": POINTERS,
    "row_ptr": [put(0, 1), put(0, -1), put(-1, 2**40), put(-1, -1)],
    "extra_ptr": POINTERS,
    "inside": [*NOT_FINITE, put(0, -0.1), put(0, 1.1)],
    "outside": [*NOT_FINITE, put(0, -0.1)],
    "prior": [*NOT_FINITE, put(0, -0.1), put(0, 1.1), lambda a: a[::-1].copy()],
    "rank": [put(0, -1), put(0, 9), put(0, LARGE), put(0, 1), lambda a: np.full_like(a, a[0])],
}  # fmt: skip
"""Changes to what is checked at once."""

LATER = {
    "class_ids": [put(0, -1), put(0, 9), put(1, LARGE), swap, put(0, -LARGE - 1)],
    "leaf_bias": NOT_FINITE,
    "feat_idx": [put(0, -1), put(-1, 30), put(1, LARGE), put(0, 29)],
    "block": NOT_FINITE,
    "row_ptr": [put(-2, 2**62), put(-2, -1), put(-2, -(2**63))],
    "slot": [put(0, 9), put(-1, 2**16 - 1)],
    "entry": NOT_FINITE,
    "scale": NOT_FINITE,
    "extra_ids": [put(0, -1), put(0, 9), put(-1, LARGE)],
    "extra": [*NOT_FINITE, put(0, -1.0)],
}
"""Changes within leaves, which are checked when a row first reaches them."""


def cases(table: dict[str, list[Change]]) -> list[tuple[str, int]]:
    return [(name, i) for name, changes in table.items() for i in range(len(changes))]


@layouts
@pytest.mark.parametrize(("name", "i"), cases(ONCE))
def test_a_wrong_value_is_refused(sparse, name, i):
    packed = whole_packed(sparse)
    before = packed.arrays()[name]
    after = ONCE[name][i](before.copy()).astype(before.dtype)
    assert not np.array_equal(before, after)
    with pytest.raises(TreeError):
        replace(packed, **{name: after}).validate()


@layouts
@weight_types
@pytest.mark.parametrize(("name", "i"), cases(LATER))
def test_a_wrong_value_in_a_leaf_is_refused_when_it_is_reached(sparse, weights, name, i):
    packed = rich_model(3, sparse=sparse, weights=weights).packed
    before = packed.arrays()[name]
    if before.size == 0 or (before.dtype == np.int8 and LATER[name] is NOT_FINITE):
        return
    after = LATER[name][i](before.copy()).astype(before.dtype)
    assert not np.array_equal(before, after)
    model = FrozenTree(replace(packed, **{name: after}), np.arange(9), checked=False, beam=1024)
    with pytest.raises(ModelFileError, match="a leaf holds ids or weights out of range"):
        model.check()
    for rows in both(real_rows(0, 1)):
        for use in (model.predict, model.predict_proba, model.predict_topk):
            with pytest.raises(ModelFileError):
                use(rows)
    with pytest.raises(ModelFileError):
        model.predict_one(real_rows(0, 1)[0])
    with pytest.raises(ModelFileError):
        model.quantized("int8")


def test_leaves_that_no_row_reaches_are_not_looked_at():
    model = rich_model(3)
    X = real_rows()
    used = np.unique(np.searchsorted(np.flatnonzero(model.packed.child < 0), model.apply(X)))
    unused = np.setdiff1d(np.arange(model.n_leaves), used)
    assert unused.size > 0
    bias = model.packed.leaf_bias.copy()
    for leaf in unused:
        bias[slice(*model.packed.class_ptr[leaf : leaf + 2])] = np.nan
    broken = FrozenTree(replace(model.packed, leaf_bias=bias), np.arange(9), checked=False)
    np.testing.assert_array_equal(broken.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ModelFileError):
        broken.check()


@pytest.mark.parametrize(
    ("name", "size"),
    [("n_features", n) for n in (-1, 31, 2**31)] + [("n_classes", n) for n in (0, 8, 2**31)],
)
@layouts
def test_other_sizes_are_refused(sparse, name, size):
    changed = replace(whole_packed(sparse), **{name: size})
    with pytest.raises(TreeError, match=r"\w"):
        changed.validate()


@pytest.mark.parametrize("beam", [0, -1, 1025, 10**9, 2.0, True, "2", None])
def test_a_beam_is_a_number_of_paths(beam):
    with pytest.raises(ValueError, match=r"beam must be an integer in 1\.\.1024"):
        rich_model().with_beam(beam)

"""Narrow trees: the same answers from fewer bytes, and files that do not keep to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.frozen_cases import frozen, frozen_forest, rich_forest, weight_types
from tests.narrow_cases import LATER, ONCE, both_ways, cases, outside, wide_rows, wide_tree
from tests.strategies import rich_tree
from thinleaf import FrozenTree, load
from thinleaf._dtypes import INDEX, OFFSET, PARAM
from thinleaf.arrays.files import ModelFileError, read_arrays, write_arrays
from thinleaf.arrays.rows import as_rows
from thinleaf.model.cost import frozen_mean_flops
from thinleaf.model.forest import first_trees
from thinleaf.model.kernels.packed import IS_MARKED
from thinleaf.model.narrow import LARGE, NARROW, is_narrow, n_segments, narrowed, widened
from thinleaf.model.packing import PackedTree, pack
from thinleaf.model.probability import Outside
from thinleaf.model.quantization import quantize
from thinleaf.model.tree import Leaf, Router, Tree, TreeError


@weight_types
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beam", [1, 3])
def test_narrow_trees_say_the_same_to_the_bit(weights, seed, beam):
    tree = wide_tree(seed)
    wide, narrow = (model.with_beam(beam) for model in both_ways(tree, weights))
    X = wide_rows(seed, tree)
    narrow.check()
    np.testing.assert_array_equal(wide.apply(X), narrow.apply(X))
    np.testing.assert_array_equal(wide.predict_proba(X), narrow.predict_proba(X))
    np.testing.assert_array_equal(wide.predict(X), narrow.predict(X))
    row = X[[0]]
    assert wide.predict_one(row) == narrow.predict_one(row)
    assert frozen_mean_flops(wide, as_rows(X)) == frozen_mean_flops(narrow, as_rows(X))


@weight_types
@pytest.mark.parametrize("seed", range(3))
def test_wide_again_is_as_before(weights, seed):
    wide, narrow = both_ways(wide_tree(seed), weights)
    again = widened(narrow.packed)
    for name, array in wide.packed.arrays().items():
        np.testing.assert_array_equal(getattr(again, name), array, name, strict=True)
    assert not is_narrow(again)
    for i in range(wide.n_leaves):
        ours, theirs = narrow.packed.leaf(i), wide.packed.leaf(i)
        np.testing.assert_array_equal(ours.features, theirs.features)
        np.testing.assert_array_equal(ours.weights, theirs.weights)
    for node in np.flatnonzero(wide.packed.child >= 0).tolist():
        np.testing.assert_array_equal(
            narrow.packed.router(node).weights, wide.packed.router(node).weights
        )


@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_a_narrow_tree_is_quantised_with_its_routers(weights):
    tree = wide_tree(3)
    wide, narrow = both_ways(tree)
    small = quantize(narrow.packed, weights)
    small.validate()
    assert small.router_val.dtype == np.float16
    assert is_narrow(small)
    assert small.nbytes < narrow.nbytes
    X = wide_rows(3, tree, 200)
    halves = tree.router_val.astype(np.float16).astype(PARAM)
    rounded = replace(tree, router_val=halves)
    twin = quantize(widened(pack(rounded, outside(tree), sparse=True)), weights)
    expected = FrozenTree(twin, wide.labels)
    for beam in (1, 4):
        ours = FrozenTree(small, wide.labels, beam=beam).predict(X)
        np.testing.assert_array_equal(ours, expected.with_beam(beam).predict(X))
    np.testing.assert_array_equal(
        FrozenTree(small, wide.labels).predict_proba(X), expected.predict_proba(X)
    )
    router = small.router(0)
    np.testing.assert_array_equal(router.weights, router.weights.astype(np.float16))
    with pytest.raises(ValueError, match="already"):
        quantize(small, "int8")


@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_tree_is_thinned_as_a_wide_one(seed):
    wide, narrow = both_ways(wide_tree(seed), "float32")
    again = narrow.thinned(0.3)
    again.check()
    assert is_narrow(again.packed)
    assert again.packed.entry.size < narrow.packed.entry.size
    for name, array in wide.thinned(0.3).packed.arrays().items():
        np.testing.assert_array_equal(getattr(widened(again.packed), name), array, name)


def test_large_trees_are_packed_narrow_and_small_ones_are_not():
    rng = np.random.default_rng(0)
    small = rich_tree(rng)
    assert not is_narrow(pack(small, Outside.of(small, None, 0.0), sparse=True))
    some = np.arange(20_000, dtype=INDEX)
    weights = np.zeros((some.size, 300), PARAM)
    weights[some, rng.integers(300, size=some.size)] = 1.0
    weights[some, rng.integers(300, size=some.size)] = 1.0
    leaf = Leaf(np.arange(300, dtype=INDEX), some, weights, np.zeros(300, PARAM))
    tree = Tree.build(
        [(1, 2), (-1, -1), (-1, -1)],
        [Router(some[:3], np.ones(3, PARAM), 0.0), leaf, leaf],
        n_features=20_000,
        n_classes=300,
    )
    packed = pack(tree, Outside.of(tree, None, 0.0), sparse=True, blocks=False)
    assert packed.slot.dtype == np.uint16  # of 300 classes
    dtypes = {name: getattr(packed, name).dtype for name in ("router_idx", "feat_idx", "row_ptr")}
    assert set(dtypes.values()) == {np.dtype(np.uint16)}
    assert widened(packed).nbytes > LARGE
    dense = pack(tree, Outside.of(tree, None, 0.0), sparse=False)
    assert not is_narrow(dense)
    assert narrowed(dense) is dense
    assert widened(dense) is dense


def test_what_does_not_fit_stays_wide():
    rng = np.random.default_rng(0)
    k, some = 3000, np.arange(64, dtype=INDEX)
    weights = rng.normal(size=(some.size, k)).astype(PARAM)
    leaf = Leaf(np.arange(k, dtype=INDEX), some, weights, np.zeros(k, PARAM))
    tree = Tree.build([(-1, -1)], [leaf], n_features=10**6, n_classes=k)
    packed = narrowed(pack(tree, Outside.of(tree, None, 0.0), sparse=True, blocks=False))
    packed.validate()
    assert packed.row_ptr.dtype == OFFSET  # 31 rows of 3,000 entries
    assert packed.row_base.size == 0
    assert packed.slot.dtype == np.uint16
    X = sp.random(5, 10**6, 1e-4, format="csr", dtype=PARAM, random_state=0)
    model = FrozenTree(packed, np.arange(k))
    wide = FrozenTree(widened(packed), np.arange(k))
    np.testing.assert_array_equal(model.predict_proba(X), wide.predict_proba(X))


def test_forests_and_their_first_trees():
    trees = [wide_tree(seed) for seed in range(3)]
    wide = widened(frozen_forest(trees, sparse=True).packed)
    narrow = narrowed(wide)
    few, expected = first_trees(narrow, 2), first_trees(wide, 2)
    assert is_narrow(few)
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(getattr(widened(few), name), array, name, strict=True)
    assert not is_narrow(first_trees(rich_forest(sparse=True).packed, 2))


@weight_types
def test_files(weights, tmp_path):
    tree = wide_tree(1)
    _, narrow = both_ways(tree)
    model = FrozenTree(quantize(narrow.packed, weights), np.arange(tree.n_classes))
    model.save(tmp_path / "model")
    arrays, metadata = read_arrays(tmp_path / "model")
    assert metadata["version"] == 4
    again = load(tmp_path / "model")
    again.check()
    X = wide_rows(1, tree)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for name, array in model.packed.arrays().items():
        np.testing.assert_array_equal(getattr(again.packed, name), array, name, strict=True)
    write_arrays(tmp_path / "older", arrays, metadata | {"version": 3})
    with pytest.raises(ModelFileError, match="has no narrow arrays"):
        load(tmp_path / "older")
    for name in ("segment_ptr", "row_base"):
        others = {key: array for key, array in arrays.items() if key != f"tree.{name}"}
        write_arrays(tmp_path / "without", others, metadata)
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / "without")


def narrow_packed() -> PackedTree:
    return both_ways(wide_tree(5))[1].packed


@pytest.mark.parametrize(("name", "i"), cases(ONCE))
def test_what_is_refused_at_once(name, i):
    packed = narrow_packed()
    before = getattr(packed, name)
    with pytest.raises(TreeError):
        replace(packed, **{name: ONCE[name][i](before.copy())}).validate()


@pytest.mark.parametrize(("name", "i"), cases(LATER))
def test_what_is_refused_when_a_leaf_is_reached(name, i):
    packed = narrow_packed()
    before = getattr(packed, name)
    after = LATER[name][i](before.copy())
    assert not np.array_equal(before, after)
    changed = replace(packed, **{name: after})
    changed.validate()
    model = FrozenTree(changed, np.arange(40), checked=False)
    with pytest.raises(ModelFileError, match="a leaf holds ids or weights out of range"):
        model.check()


def test_half_routers_need_narrow_numbers():
    packed = quantize(narrow_packed(), "float16")
    with pytest.raises(TreeError, match="router_val"):
        replace(packed, router_idx=packed.router_idx.astype(INDEX)).validate()
    small = frozen(rich_tree(np.random.default_rng(0)), sparse=False).packed
    for name, dtype in NARROW.items():
        with pytest.raises(TreeError, match=name):
            replace(small, **{name: getattr(small, name).astype(dtype)}).validate()


def test_numbers_of_segments():
    assert [n_segments(n) for n in (0, 1, 65_536, 65_537, 10**6)] == [1, 1, 1, 2, 16]


# -- marks of routers ------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("n_leaves", [2, 40, 150])  # nodes of either word of marks, and beyond
def test_marked_routers_say_the_same_to_the_bit(n_leaves, weights, monkeypatch):
    tree = wide_tree(n_leaves, n_leaves, width=400)
    wide, narrow = both_ways(tree)
    X = wide_rows(n_leaves, tree, 200)
    twice = [np.array([3, 7, 3], dtype=INDEX), np.array([1.0, -2.0, 0.5], dtype=PARAM)]
    for packed in (quantize(wide.packed, weights), quantize(narrow.packed, weights)):
        found = []
        for least in (0, tree.router_idx.size):  # with marks, and without
            monkeypatch.setattr("thinleaf.model.packing._MIN_MARKED", least)
            model = FrozenTree(packed, wide.labels, checked=False)
            assert model.predictor.table[IS_MARKED] == (least == 0)
            found.append([model.apply(X), model.predict_proba(X), model.predict_one(*twice)])
        for marked, unmarked in zip(*found, strict=True):
            np.testing.assert_array_equal(marked, unmarked)


def test_only_single_paths_through_many_routers_are_marked():
    wide, narrow = both_ways(wide_tree(3, 40, width=400))
    assert wide.packed.router_idx.size > 4 * wide.n_features
    for model in (wide, narrow):
        assert model.predictor.table[IS_MARKED] == 1
        assert model.with_beam(4).predictor.table[IS_MARKED] == 0
    few, _ = both_ways(wide_tree(3))
    assert few.predictor.table[IS_MARKED] == 0

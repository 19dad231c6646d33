"""Compiled primitives against their readable twins."""

from __future__ import annotations

import inspect
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba.core import caching

from tests import reference
from tests.strategies import FORMATS, as_local, as_rows, integer_rows, random_tree
from thinleaf._dtypes import INDEX, OFFSET, PARAM
from thinleaf.arrays.rows import CSR, Rows, n_features_of, n_local_features, n_rows_of, take_rows
from thinleaf.kernels import _cache, _jit
from thinleaf.kernels.hashing import equal_to_next, hash_rows
from thinleaf.kernels.products import gather
from thinleaf.kernels.softmax import exp32, log32, log_sum_exp, softmax_row
from thinleaf.model.kernels.partition import count_path_products
from thinleaf.model.routing import route
from thinleaf.softmaxtree.solvers import columns
from thinleaf.softmaxtree.solvers.router import soft_threshold

formats = pytest.mark.parametrize("kind", FORMATS)
seeds = st.integers(0, 2**32 - 1)
scores = hnp.arrays(
    PARAM, st.integers(1, 20), elements=st.floats(-500, 500, width=32, allow_subnormal=False)
)

# -- exponentials ----------------------------------------------------------------------------------


def test_exp32_is_right_to_two_ulp():
    x = np.concatenate([np.linspace(-87.0, 88.0, 50001), np.linspace(-1.0, 1.0, 50001)])
    x = x.astype(PARAM)
    exact = np.exp(x.astype(np.float64))
    ours = np.array([exp32(value) for value in x], dtype=np.float64)
    ulp = np.spacing(exact.astype(PARAM)).astype(np.float64)
    assert np.max(np.abs(ours - exact) / ulp) <= 2.0


def test_log32_is_right_to_two_ulp():
    x = (10.0 ** np.random.default_rng(1).uniform(-37, 38, 20_000)).astype(np.float32)
    x = np.r_[x, np.linspace(0.5, 2.0, 5_000, dtype=np.float32), np.float32(1.0)]
    ours = np.array([log32(value) for value in x], dtype=np.float64)
    true = np.log(x.astype(np.float64))
    assert np.all(np.abs(ours - true) <= 2.0 * np.spacing(np.abs(true).astype(np.float32)) + 1e-7)
    assert log32(np.float32(1.0)) == 0.0


def test_exp32_at_zero_and_far_out():
    assert exp32(np.float32(0.0)) == 1.0
    for x in (-1e30, -np.inf, -200.0):
        assert 0.0 <= exp32(np.float32(x)) < 1e-37
    for x in (1e30, np.inf, 200.0):
        assert 1e38 < exp32(np.float32(x)) < np.inf


@given(scores)
def test_softmax_row(values):
    out = np.empty_like(values)
    log_sum = softmax_row(values, out)
    np.testing.assert_allclose(out, reference.softmax(values), rtol=1e-4, atol=1e-7)
    assert out.sum() == pytest.approx(1.0, abs=1e-5)
    assert log_sum == pytest.approx(reference.log_sum_exp(values), rel=1e-6, abs=1e-5)
    assert log_sum_exp(values) == pytest.approx(reference.log_sum_exp(values), rel=1e-6, abs=1e-5)


@given(scores)
def test_softmax_row_may_overwrite_its_input(values):
    out = np.empty_like(values)
    log_sum = softmax_row(values, out)
    assert softmax_row(values, values) == pytest.approx(log_sum, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(values, out, rtol=1e-5, atol=1e-30)


@given(st.floats(-10, 10), st.floats(0, 10))
def test_soft_threshold_is_the_proximal_point(x, threshold):
    """Moving a little from it never lowers ½(z - x)² + threshold·|z|."""

    def cost(z: float) -> float:
        return 0.5 * (z - x) ** 2 + threshold * abs(z)

    z = soft_threshold(x, threshold)
    assert all(cost(z) <= cost(z + step) + 1e-12 for step in (-0.1, -1e-3, 1e-3, 0.1))


# -- gathering rows --------------------------------------------------------------------------------


def scipy_of(X: Rows) -> sp.csr_matrix:
    if not isinstance(X, CSR):
        return sp.csr_matrix(X)
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features))


shapes = st.tuples(st.integers(1, 12), st.integers(0, 8))


@formats
@given(seed=seeds, shape=shapes)
def test_gather_equals_scipy(kind, seed, shape):
    rng = np.random.default_rng(seed)
    X = as_rows(integer_rows(rng, *shape), kind)
    assert (n_rows_of(X), n_features_of(X)) == shape
    rows = rng.integers(shape[0], size=rng.integers(0, 15)).astype(INDEX)  # any order, repeated
    local, features = gather(X, rows)
    expected = scipy_of(X)[rows].toarray()
    assert features.dtype == INDEX
    assert n_local_features(local) == features.size
    if kind == "dense":
        assert local.flags.c_contiguous
        assert features.tolist() == list(range(shape[1]))
        np.testing.assert_array_equal(local, expected)
        return
    assert features.tolist() == np.flatnonzero((expected != 0).any(axis=0)).tolist()
    assert local.n_rows == rows.size
    found = sp.csc_matrix((local.data, local.indices, local.indptr), (rows.size, features.size))
    np.testing.assert_array_equal(found.toarray(), expected[:, features])
    for j in range(features.size):
        assert np.all(np.diff(local.indices[local.indptr[j] : local.indptr[j + 1]]) > 0)
    assert (local.indices.dtype, local.data.dtype) == (INDEX, PARAM)


@formats
@given(seed=seeds, shape=shapes)
def test_take_rows_equals_scipy(kind, seed, shape):
    rng = np.random.default_rng(seed)
    X = as_rows(integer_rows(rng, *shape), kind)
    rows = rng.integers(shape[0], size=rng.integers(0, 15))
    taken = take_rows(X, rows)
    assert type(taken) is type(X)
    assert (n_rows_of(taken), n_features_of(taken)) == (rows.size, shape[1])
    np.testing.assert_array_equal(scipy_of(taken).toarray(), scipy_of(X)[rows].toarray())
    if kind == "csr":
        assert (taken.indptr.dtype, taken.indices.dtype, taken.data.dtype) == (INDEX, INDEX, PARAM)


# -- hashes ----------------------------------------------------------------------------------------


@given(seed=seeds, shape=shapes)
def test_hashes_depend_on_values_and_not_on_storage(seed, shape):
    rng = np.random.default_rng(seed)
    X = integer_rows(rng, *shape)
    dense, sparse = (as_rows(X, kind) for kind in FORMATS)
    np.testing.assert_array_equal(hash_rows(dense), hash_rows(sparse))
    np.testing.assert_array_equal(hash_rows(-0.0 + np.where(X == 0, -0.0, X)), hash_rows(dense))
    same = (X[:, None] == X[None]).all(axis=2)
    hashes = hash_rows(dense)
    np.testing.assert_array_equal(hashes[:, None] == hashes[None], same)


@formats
@given(seed=seeds)
def test_equal_to_next(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(rng.integers(1, 12), 2)).astype(PARAM)
    expected = [bool((a == b).all()) for a, b in pairwise(X)]
    assert equal_to_next(as_rows(X, kind)).tolist() == expected


def test_stored_zeros_are_zeros():
    """Rows that differ only in the zeros that they store are equal."""
    indptr, indices = np.array([0, 2, 3], INDEX), np.array([0, 1, 1], INDEX)
    stored = CSR(indptr, indices, np.array([0.0, 2.0, 2.0], PARAM), 3)
    assert np.unique(hash_rows(stored)).size == 1
    assert equal_to_next(stored).tolist() == [True]


# -- columns ---------------------------------------------------------------------------------------


def test_column_primitives():
    rng = np.random.default_rng(0)
    X = integer_rows(rng, 17, 6)
    X[:, 3] = 0.0
    local = as_local(X, "csr")
    v, scale = rng.integers(-5, 6, size=(2, 17)).astype(float)
    for j in range(6):
        x = X[:, j].astype(float)
        assert columns.column_dot(local, j, v) == x @ v
        assert columns.column_dots(local, j, v, 2 * v) == (x @ v, 2 * (x**2) @ v)
        out = v.copy()
        columns.column_add(local, j, 2.0, out)
        np.testing.assert_array_equal(out, v + 2.0 * x)
        out = v.copy()
        columns.column_add_scaled(local, j, 2.0, scale, out)
        np.testing.assert_array_equal(out, v + 2.0 * x * scale)


def test_block_primitives():
    rng = np.random.default_rng(1)
    X = integer_rows(rng, 17, 6)
    local = as_local(X, "csr")
    V = rng.integers(-5, 6, size=(17, 3)).astype(PARAM)
    P = rng.dirichlet(np.ones(3), size=17).astype(PARAM)
    weight = rng.integers(0, 4, size=17).astype(PARAM)
    step = np.array([1.0, -2.0, 3.0], PARAM)
    for j in range(6):
        x = X[:, j]
        out = np.empty(3, PARAM)
        columns.block_dot(local, j, V, out)
        np.testing.assert_array_equal(out, x @ V)
        columns.block_square_dot(local, j, V, out)
        np.testing.assert_array_equal(out, (x * x) @ V)
        moved = V.copy()
        columns.block_add(local, j, step, moved)
        np.testing.assert_array_equal(moved, V + np.outer(x, step))
        moved = V.copy()
        columns.block_add_softmax(local, j, step, P, weight, moved)
        for i in range(17):
            jacobian = weight[i] * (np.diag(P[i]) - np.outer(P[i], P[i]))
            np.testing.assert_allclose(moved[i], V[i] + jacobian @ (x[i] * step), atol=1e-5)


# -- paths -----------------------------------------------------------------------------------------


def test_count_path_products():
    """A sparse row meets a nonzero weight for each of its features that a node on its path uses."""
    rng = np.random.default_rng(2)
    tree = random_tree(rng, n_leaves=7)
    X = integer_rows(rng, 25, tree.n_features)
    rows = as_rows(X, "csr")
    reach = route(tree, rows)
    used = np.zeros((tree.n_nodes, tree.n_features), dtype=int)
    for node in range(tree.n_nodes):
        item = tree.node(node)
        weights = item.weights if tree.is_leaf[node] else item.weights[:, None]
        used[node, item.features] = (weights != 0).sum(axis=1)
    sparse = sp.csr_matrix(used)
    out = np.zeros(25, OFFSET)
    count_path_products(
        rows, reach.rows, reach.begin, reach.end, reach.order,
        sparse.indptr.astype(OFFSET), sparse.indices.astype(INDEX), sparse.data.astype(INDEX),
        np.zeros(tree.n_features, INDEX), out,
    )  # fmt: skip
    for i, x in enumerate(X):
        assert out[i] == sum(int(used[node][x != 0].sum()) for node in reference.path(tree, x))


# -- compiling -------------------------------------------------------------------------------------


def test_a_kernel_compiles_without_a_writable_cache(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(_cache, "_READ_ONLY", [])

    @_jit.kernel
    def twice(x):
        return 2.0 * x

    assert twice._cache.cache_path is None
    assert twice(3.0) == 6.0


def test_kernels_pass_integers_of_one_type_to_each_other():
    @_jit.strict_part
    def doubled(i):
        return 2 * i

    @_jit.strict_kernel
    def of_all(ids):
        return doubled(3) + doubled(i=ids[0]) + doubled(ids.size)

    assert of_all(np.array([-7], dtype=INDEX)) == 6 - 14 + 2
    assert len(doubled.signatures) == 1


def test_compiled_code_is_stamped_with_all_that_may_be_in_it():
    """Constants of _dtypes, and every module that defines a kernel."""
    package = Path(_cache.__file__).parents[1]
    stamped = set(_cache.stamped_files())
    assert package / "_dtypes.py" in stamped
    assert package / "kernels" / "_jit.py" in stamped
    for file in package.rglob("*.py"):
        if "kernels._jit import" in file.read_text() and file.name != "warmup.py":
            assert file in stamped, file


def test_documents_list_the_decorators():
    """The tables of the module and of the architecture page are those of the code."""
    defined = {
        name
        for name, value in vars(_jit).items()
        if inspect.isfunction(value)
        and value.__module__ == _jit.__name__
        and list(inspect.signature(value).parameters) == ["function"]
    }
    page = Path(__file__).parents[2] / "docs" / "architecture.md"
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE)
    assert defined <= set(rows), defined - set(rows)
    assert _jit.__doc__ is not None
    assert set(re.findall(r"^`(\w+)` ", _jit.__doc__, re.MULTILINE)) == defined


def test_code_stands_in_the_index_once_it_is_written(tmp_path):
    """Processes that compile at the same time never read each other's half-written or old files."""
    steps: list[str] = []
    old, new = (_cache._SharedFiles(str(tmp_path), "kernel", stamp) for stamp in ("old", "new"))
    for name in ("_save_data", "_save_index"):
        saved = getattr(new, name)
        setattr(new, name, lambda *a, name=name, saved=saved: (steps.append(name), saved(*a)))
    old.save("signature", "old code")
    new.save("signature", "new code")
    assert steps == ["_save_data", "_save_index"]
    assert new.load("signature") == "new code"
    assert len(list(tmp_path.glob("*.nbc"))) == 2  # neither has written over the other's

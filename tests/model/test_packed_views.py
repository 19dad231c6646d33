"""What a packed tree shows of its nodes is what was packed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import formats, problem, quick
from thinleaf import FrozenTree, SoftmaxTreeClassifier, Tree, TreeError
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.quantization import quantize
from thinleaf.model.tree import Leaf


def fitted(kind: str) -> SoftmaxTreeClassifier:
    X, y = problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=240)
    return quick(depth=3).fit(X, y)


@formats
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("blocks", [None, False, True])
def test_nodes_are_those_of_the_tree(kind, sparse, blocks):
    tree = fitted(kind).tree_
    packed = pack(tree, Outside.of(tree, None, 0.1), sparse=sparse, blocks=blocks)
    np.testing.assert_array_equal(packed.node_depth, tree.node_depth)
    for node in np.flatnonzero(~tree.is_leaf):
        shown, own = packed.router(int(node)), tree.router(int(node))
        used = own.weights != 0.0
        np.testing.assert_array_equal(shown.features, own.features[used])
        np.testing.assert_array_equal(shown.weights, own.weights[used])
        assert shown.bias == own.bias
    for i, node in enumerate(np.flatnonzero(tree.is_leaf)):
        leaf, own_leaf = packed.leaf(i), tree.leaf(int(node))
        for name in ("classes", "features", "weights", "bias"):
            np.testing.assert_array_equal(getattr(leaf, name), getattr(own_leaf, name))


@formats
@pytest.mark.parametrize(("weights", "tolerance"), [("float16", 1e-3), ("int8", 1e-2)])
def test_smaller_weights_are_shown_as_floats(kind, weights, tolerance):
    packed = fitted(kind).freeze().packed
    small = quantize(packed, weights)
    for i in range(packed.n_leaves):
        exact, shown = packed.leaf(i), small.leaf(i)
        assert shown.weights.dtype == np.float32
        common = np.isin(exact.features, shown.features)
        size = np.abs(exact.weights).max(initial=0.0)
        np.testing.assert_allclose(exact.weights[common], shown.weights, atol=tolerance * size)
        assert np.abs(exact.weights[~common]).max(initial=0.0) <= tolerance * size


@formats
def test_what_is_no_node_is_an_error(kind):
    packed = fitted(kind).freeze().packed
    leaf_node = int(np.flatnonzero(packed.child < 0)[0])
    for node in (-1, leaf_node, packed.n_nodes):
        with pytest.raises(TreeError, match="no router"):
            packed.router(node)
    for i in (-1, packed.n_leaves):
        with pytest.raises(TreeError, match="no leaf"):
            packed.leaf(i)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["class_ids", "feat_idx", "slot", "entry", "leaf_bias", "row_ptr"])
def test_a_damaged_leaf_is_an_error(sparse, name):
    diagonal = np.eye(8, dtype=np.float32)
    ids = np.arange(8, dtype=np.int32)
    tree = Tree.build(
        [[-1, -1]], [Leaf(ids, ids, diagonal, diagonal[0])], n_features=9, n_classes=9
    )
    packed = pack(tree, Outside.of(tree, None, 0.1), sparse=sparse, blocks=False)
    np.testing.assert_array_equal(packed.leaf(0).weights, diagonal)
    array = getattr(packed, name).copy()
    array[...] = np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    with pytest.raises(TreeError):
        replace(packed, **{name: array}).leaf(0)


@formats
def test_read_only_rows_run_the_code_of_writable_ones(kind):
    """A second signature of a kernel would have to be compiled."""
    from thinleaf.model.kernels.prediction import top_class_of_rows

    X, y = problem(0, kind=kind, n_classes=8)
    model: FrozenTree = quick().fit(X, y).freeze()
    rows = sp.csr_matrix(X, dtype=np.float32) if kind == "csr" else X.astype(np.float32)
    expected = model.predict(rows)
    n_signatures = len(top_class_of_rows.signatures)
    for array in (rows.data, rows.indices, rows.indptr) if kind == "csr" else (rows,):
        array.flags.writeable = False
        np.testing.assert_array_equal(model.predict(rows), expected)
    assert len(top_class_of_rows.signatures) == n_signatures

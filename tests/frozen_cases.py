"""Frozen trees for the tests, and when two of them are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.strategies import integer_rows, rich_tree
from thinleaf import FrozenTree
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.forest import Forest
from thinleaf.model.packing import WeightType, pack
from thinleaf.model.probability import Backoff, Outside
from thinleaf.model.quantization import quantize
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree

WEIGHTS: tuple[WeightType, ...] = ("float32", "float16", "int8")
LABELS: dict[str, Sequence[Any]] = {
    "int": [-5, 3, 0, 2**40, 7, 8, 9, -(2**62), 11],
    "float": [0.5, -1.25, 3.0, 1e300, 5e-324, -0.0, 7.0, 8.5, 9.0],
    "str": ["é", "", "漢字", "a b", "A", "\U0001f600", "-1", "nan", "x" * 40],
    "object": ["first", "a", "b", "c", "d", "e", "ß", "g", "last"],
}
"""Labels of every kind for the nine classes of a rich tree; there are bools, too, for two."""

layouts = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
weight_types = pytest.mark.parametrize("weights", WEIGHTS)


def labels_of(kind: str) -> np.ndarray:
    """Return nine labels of a kind; of "bool", two."""
    if kind == "bool":
        return np.array([True, False])
    dtype = {"int": np.int64, "float": np.float64, "str": None, "object": object}[kind]
    return np.array(LABELS[kind], dtype=dtype)


def backoff_of(tree: Tree, seed: int = 0) -> Backoff:
    """Return what random rows of random classes say about classes outside leaves."""
    rng = np.random.default_rng(seed)
    X = integer_rows(rng, 60, tree.n_features)
    y = rng.integers(tree.n_classes, size=60).astype(INDEX)
    return Backoff.estimate(tree, route(tree, X), y, np.ones(60))


def frozen(
    tree: Tree,
    *,
    sparse: bool = False,
    backoff: Backoff | None = None,
    epsilon: float = 0.0,
    weights: WeightType = "float32",
    labels: Any = None,
    **options: Any,
) -> FrozenTree:
    """Return the frozen form of a tree, numbered breadth-first; classes are labels by default."""
    packed = quantize(pack(tree, Outside.of(tree, backoff, epsilon), sparse=sparse), weights)
    packed.validate()
    labels = np.arange(tree.n_classes) if labels is None else labels
    return FrozenTree(packed, labels, **options)


def rich_model(
    seed: int = 0, *, sparse: bool = False, weights: WeightType = "float32", **options: Any
) -> FrozenTree:
    """Return a model with a node of every layout, and a back-off."""
    tree = rich_tree(np.random.default_rng(seed))
    return frozen(tree, sparse=sparse, weights=weights, backoff=backoff_of(tree, seed), **options)


def frozen_forest(
    trees: Sequence[Tree],
    backoffs: Sequence[Backoff] = (),
    *,
    sparse: bool = False,
    weights: WeightType = "float32",
    **options: Any,
) -> FrozenTree:
    """Return trees as one frozen model; classes are labels."""
    forest = Forest.of(trees)
    backoff = forest.backoff(backoffs) if backoffs else None
    outside = Outside.of(forest, backoff, 0.01)
    packed = quantize(pack(forest, outside, sparse=sparse, n_trees=len(trees)), weights)
    packed.validate()
    return FrozenTree(packed, np.arange(forest.n_classes), **options)


def rich_forest(
    seeds: Sequence[int] = range(5), *, backoff: bool = True, **options: Any
) -> FrozenTree:
    """Return a forest of rich trees."""
    trees = [rich_tree(np.random.default_rng(seed)) for seed in seeds]
    backoffs = [backoff_of(tree, seed) for seed, tree in enumerate(trees)]
    return frozen_forest(trees, backoffs if backoff else (), **options)


def real_rows(seed: int = 1, n_rows: int = 40, n_features: int = 30) -> np.ndarray:
    """Return float32 rows of which half the entries are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(PARAM)
    X[rng.random(X.shape) < 0.5] = 0.0
    return X


def both(X: np.ndarray) -> list[Any]:
    """Return rows dense and as CSR."""
    return [X, sp.csr_array(X)]


def answers(model: FrozenTree, X: Any) -> list[np.ndarray]:
    """Return all that a model says of some rows."""
    k = min(3, model.n_classes)
    sparse = model.predict_proba_sparse(X)
    return [
        model.predict(X),
        *model.predict_topk(X, k),
        model.predict_proba(X),
        model.apply(X),
        sparse.indptr,
        sparse.indices,
        sparse.data,
    ]


def assert_same_answers(a: FrozenTree, b: FrozenTree, X: Any) -> None:
    """Equal to the last bit, and in type."""
    for ours, theirs in zip(answers(a, X), answers(b, X), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def assert_same_frozen(a: FrozenTree, b: FrozenTree) -> None:
    """Equal to the last bit: arrays, labels, settings, and what else a file carries."""
    for name, array in a.packed.arrays().items():
        np.testing.assert_array_equal(array, b.packed.arrays()[name], name, strict=True)
    assert repr(a) == repr(b)
    np.testing.assert_array_equal(a.labels, b.labels, strict=True)
    for name in ("n_features", "n_classes", "beam", "temperature", "feature_names", "summary"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.sections.keys() == b.sections.keys()
    for name, section in a.sections.items():
        other = b.sections[name]
        assert dict(section.metadata) == dict(other.metadata)
        assert section.arrays.keys() == other.arrays.keys()
        for key, array in section.arrays.items():
            np.testing.assert_array_equal(array, other.arrays[key], key, strict=True)

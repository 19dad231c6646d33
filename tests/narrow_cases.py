"""Narrow trees for the tests: made of trees over many features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from thinleaf import FrozenTree
from thinleaf._dtypes import INDEX, PARAM, AnyArray
from thinleaf.model.narrow import is_narrow, narrowed, widened
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.quantization import quantize
from thinleaf.model.tree import Leaf, Router, Tree

Changes: TypeAlias = Mapping[str, Sequence[Callable[[AnyArray], AnyArray]]]
WIDTH = 150_000


def wide_tree(seed: int, n_leaves: int = 9, n_classes: int = 40, width: int = WIDTH) -> Tree:
    """Return a tree over segments of features, by default three, with leaves of every layout."""
    rng = np.random.default_rng(seed)
    children = [(2 * i + 1, 2 * i + 2) for i in range(n_leaves - 1)] + [(-1, -1)] * n_leaves
    nodes: list[Router | Leaf] = []
    edges = np.array([0, 1, 65_535, 65_536, 131_071, 131_072, width - 1])
    edges = edges[edges < width]
    for left, _ in children:
        some = np.union1d(rng.choice(width, 60), rng.choice(edges, 4)).astype(INDEX)
        if left >= 0:
            nodes.append(Router(some, rng.normal(size=some.size).astype(PARAM), 0.1))
            continue
        k = int(rng.integers(1, 12))
        classes = np.sort(rng.choice(n_classes, k, replace=False)).astype(INDEX)
        if rng.random() < 0.2:
            some = some[:0] if rng.random() < 0.5 else some[some < 65_536]
        weights = rng.normal(size=(some.size, k)).astype(PARAM)
        weights[rng.random(weights.shape) < rng.choice([0.1, 0.8])] = 0.0
        nodes.append(Leaf(classes, some, weights, rng.normal(size=k).astype(PARAM)))
    return Tree.build(children, nodes, n_features=width, n_classes=n_classes)


def wide_rows(seed: int, tree: Tree, n_rows: int = 30) -> sp.csr_matrix:
    """Return sparse rows whose features occur in the tree, and a few that do not."""
    rng = np.random.default_rng(seed)
    known = np.union1d(tree.feat_idx, tree.router_idx)
    rows = np.repeat(np.arange(n_rows), 40)
    columns = np.where(
        rng.random(rows.size) < 0.8,
        rng.choice(known, rows.size),
        rng.integers(tree.n_features, size=rows.size),
    )
    values = rng.normal(size=rows.size).astype(PARAM)
    return sp.csr_matrix((values, (rows, columns)), shape=(n_rows, tree.n_features))


def outside(tree: Tree) -> Outside:
    return Outside.of(tree, None, 0.01)


def both_ways(tree: Tree, weights: str = "float32") -> tuple[FrozenTree, FrozenTree]:
    """Return a model in wide and in narrow form; weights of routers are float32 in both."""
    wide = FrozenTree(
        quantize(widened(pack(tree, outside(tree), sparse=True)), weights),
        np.arange(tree.n_classes),
    )
    assert not is_narrow(wide.packed)
    narrow = narrowed(wide.packed)
    narrow.validate()
    assert narrow.segment_ptr.size
    assert narrow.row_base.size
    assert narrow.nbytes < wide.packed.nbytes
    return wide, FrozenTree(narrow, wide.labels, checked=False)


def narrow_model(model: FrozenTree, weights: str = "float32") -> FrozenTree:
    """Return a model in narrow form; with smaller weights, those of its routers are float16."""
    packed = quantize(narrowed(widened(model.packed)), weights)
    packed.validate()
    assert is_narrow(packed)
    assert packed.segment_ptr.size
    assert packed.row_base.size
    return model.replaced(packed=packed)


def narrow_tree(seed: int, *, width: int = 300, weights: str = "float32") -> FrozenTree:
    """Return a narrow model of one tree; classes are labels."""
    wide, _ = both_ways(wide_tree(seed, width=width))
    return narrow_model(wide, weights)


# -- files that do not keep to it ------------------------------------------------------------------


def put(at: Any, value: Any) -> Callable[[AnyArray], AnyArray]:
    """Return a change of some entries."""

    def change(array: AnyArray) -> AnyArray:
        array[at] = value
        return array

    return change


ONCE: Changes = {
    "segment_ptr": [
        put(0, 1), put(1, -1), put(-1, 2**40), put(1, 2**62), put(3, 0), lambda a: a[:-1],
        lambda a: np.append(a, a[-1]), lambda a: a[:0], lambda a: a[None],
        lambda a: a.astype(np.int32),
    ],
    "row_base": [
        put(0, 1), put(-1, 2**40), put(-1, -1), lambda a: a[:-1], lambda a: np.append(a, a[-1]),
        lambda a: a[:0], lambda a: a.astype(np.int32),
    ],
    "row_ptr": [put(0, 1), put(-1, 2**16 - 1), lambda a: a[:-1], lambda a: a.astype(np.uint8)],
    "router_idx": [put(0, 2**16 - 1), lambda a: a[::-1].copy(), lambda a: a.astype(np.int64)],
    "feat_idx": [lambda a: a[:-1], lambda a: a.astype(INDEX), lambda a: a.astype(np.int16)],
    "slot": [lambda a: a[:-1], lambda a: a.astype(np.int8)],
    "router_val": [
        put(0, np.nan), lambda a: a[:-1], lambda a: a.astype(np.float64),
        lambda a: a.astype(np.int8),
    ],
}  # fmt: skip
"""Changes to arrays of a narrow tree that are refused before leaves are read."""

LATER: Changes = {
    "feat_idx": [put(0, 2**16 - 1), put(slice(0, 2), 3), lambda a: a[::-1].copy()],
    "row_base": [put(1, 2**62), put(1, -(2**62)), put(1, 0)],
    "row_ptr": [put(7, 2**16 - 1), put(8, 0)],
    "slot": [put(0, 200), put(-1, 255)],
}
"""Changes that are refused when a leaf is reached."""


def cases(table: Changes) -> list[tuple[str, int]]:
    """Return names of arrays and numbers of their changes."""
    return [(name, i) for name, changes in table.items() for i in range(len(changes))]

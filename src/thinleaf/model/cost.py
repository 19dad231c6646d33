"""What a tree costs: multiplications of a prediction, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import INDEX, OFFSET, AnyArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR, Rows, as_matrix
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.kernels.partition import count_path_products
from thinleaf.model.narrow import widened
from thinleaf.model.packing import PackedTree
from thinleaf.model.routing import Reach, leaf_of_rows, route
from thinleaf.model.tree import Tree


def mean_flops(tree: Tree, X: Rows, reach: Reach | None = None) -> float:
    """Return the mean number of multiplications of a prediction (Table 1 of paper 000).

    One for each nonzero weight of the routers on the path and of the leaf; for sparse rows, only
    for weights that meet a nonzero input. A flat softmax on dense data has K·D.
    """
    reach = route(tree, X) if reach is None else reach
    if reach.rows.size == 0:
        return 0.0
    features, ptr, counts = _weights_per_feature(tree)
    if isinstance(X, CSR):
        out = np.zeros(reach.rows.size, dtype=OFFSET)
        scratch = np.zeros(X.n_features, dtype=INDEX)
        count_path_products(
            X, reach.rows, reach.begin, reach.end, reach.order,
            ptr, features, counts, scratch, out,
        )  # fmt: skip
        return float(out.mean())
    totals = offsets(counts)
    own = totals[ptr[1:]] - totals[ptr[:-1]]
    return float(own @ reach.sizes / reach.rows.size)


def frozen_mean_flops(model: FrozenTree, X: Rows) -> float:
    """Return :func:`mean_flops` of a frozen model, whatever it was made of, with one path a tree.

    Of a forest, all trees count, though prediction may stop before it has asked the last one.
    """
    packed, rows = model.packed, as_matrix(X)
    n_rows = rows.shape[0]
    if n_rows == 0:
        return 0.0
    parent = np.full(packed.n_nodes, -1, dtype=INDEX)
    routers = np.flatnonzero(packed.child >= 0)
    for side in (0, 1):
        parent[packed.child[routers] + side] = routers
    routed = _router_features(packed)
    total, at, on = 0, model.apply(X).ravel(), np.repeat(np.arange(n_rows), packed.n_trees)
    while on.size:  # from the leaves up, until all rows have passed the root
        order = np.argsort(at, kind="stable")
        nodes, starts = np.unique(at[order], return_index=True)
        for node, own in zip(nodes.tolist(), np.split(on[order], starts[1:]), strict=True):
            if packed.child[node] < 0:
                leaf = packed.leaf(-1 - int(packed.child[node]))
                features, counts = leaf.features, np.count_nonzero(leaf.weights, axis=1)
            else:
                features = routed[[node]].indices
                counts = np.ones(features.size, dtype=INDEX)
            total += _products(rows, own, features, counts)
        at, on = parent[at], on[parent[at] >= 0]
        at = at[at >= 0]
    return float(total / n_rows)


def _router_features(packed: PackedTree) -> sp.csr_matrix:
    """Return where routers have weights, of shape (n_nodes, n_features)."""
    packed = widened(packed)
    shape = (packed.n_nodes, packed.n_features)
    ones = np.ones(packed.router_idx.size, dtype=np.int8)
    ones[packed.router_val == 0.0] = 0
    if packed.sparse:
        by_feature = (ones, packed.router_idx, packed.router_ptr)
        listed = sp.csr_matrix(by_feature, shape=shape[::-1]).T.tocsr()
    else:
        listed = sp.csr_matrix((ones, packed.router_idx, packed.router_ptr), shape=shape)
    nodes = np.flatnonzero(packed.dense_at >= 0)
    dense = packed.dense_val.reshape(-1, packed.n_features)[packed.dense_at[nodes]]
    rows, columns = np.nonzero(dense)
    more = sp.csr_matrix((np.ones(rows.size, np.int8), (nodes[rows], columns)), shape=shape)
    routed = sp.csr_matrix(listed + more)
    routed.eliminate_zeros()
    return routed


def _products(rows: Any, own: AnyArray, features: AnyArray, counts: AnyArray) -> int:
    """Return how many weights rows meet: all for dense rows, those of their features for sparse."""
    if isinstance(rows, np.ndarray):
        return int(counts.sum()) * own.size
    met = np.zeros(rows.shape[1], dtype=OFFSET)
    met[features] = counts
    return int(met[rows[own].indices].sum())


def _weights_per_feature(tree: Tree) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return, as CSR over nodes, each used feature with its number of nonzero weights."""
    features, counts, sizes = [], [], []
    for node in range(tree.n_nodes):
        if tree.is_leaf[node]:
            leaf = tree.leaf(node)
            features.append(leaf.features)
            counts.append(leaf.nonzero()[0])
        else:
            router = tree.router(node)
            features.append(router.features)
            counts.append((router.weights != 0.0).astype(INDEX))
        sizes.append(features[-1].size)
    ptr = offsets(sizes)
    return (
        np.concatenate(features).astype(INDEX),
        ptr,
        np.concatenate(counts).astype(INDEX),
    )


@dataclass(frozen=True)
class TreeSummary:
    """Shape and size of a tree.

    Attributes
    ----------
    depth : int
        Of the deepest leaf.
    mean_depth : float
        Of the leaves, or of the rows if a reach is given.
    n_leaves : int
    mean_leaf_classes : float
    n_nonzero : int
        Nonzero weights.
    n_bytes : int
        Of all arrays.
    """

    depth: int
    mean_depth: float
    n_leaves: int
    mean_leaf_classes: float
    n_nonzero: int
    n_bytes: int


def summarize(tree: Tree, reach: Reach | None = None) -> TreeSummary:
    """Return the shape and size of a tree; with a reach, the mean depth is that of its rows."""
    depths = tree.node_depth[
        np.flatnonzero(tree.is_leaf) if reach is None else leaf_of_rows(tree, reach)
    ]
    return TreeSummary(
        tree.depth,
        float(depths.mean()),
        tree.n_leaves,
        float(tree.leaf_sizes.mean()),
        tree.n_nonzero,
        tree.nbytes,
    )

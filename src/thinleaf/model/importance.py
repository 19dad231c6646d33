"""How much each feature decides in a tree: over all nodes, for the rows that reach them.

At a node, a feature decides as much as its weights differ between the branches, or between the
classes of a leaf (their standard deviation: what all share changes nothing), times how much the
feature varies, times the share of rows that reach the node. The sum over all nodes, as shares of
one, is the importance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR, Rows, n_features_of, n_rows_of
from thinleaf.model.packing import PackedTree
from thinleaf.model.tree import Leaf, Nodes, Router


def feature_spread(X: Rows) -> AccumArray:
    """Return the standard deviation of each feature, of shape (n_features,)."""
    if isinstance(X, CSR):
        n, width = max(n_rows_of(X), 1), n_features_of(X)
        values = X.data.astype(ACCUM)
        mean = np.bincount(X.indices, values, width) / n
        square = np.bincount(X.indices, values**2, width) / n
        spread: AccumArray = np.sqrt(np.maximum(square - mean**2, 0.0))
        return spread
    out: AccumArray = X.std(axis=0, dtype=ACCUM)
    return out


def importances(
    nodes: Iterator[tuple[int, Router | Leaf]], reach: AccumArray, spread: AccumArray
) -> AccumArray:
    """Return the importance of each feature.

    Parameters
    ----------
    nodes : iterator of (int, Router or Leaf)
        Nodes by number.
    reach : ndarray of shape (n_nodes,)
        Rows that reach each node, or their weight.
    spread : ndarray of shape (n_features,)
        How much each feature varies.

    Returns
    -------
    importances : ndarray of shape (n_features,)
        They sum to one, unless nothing depends on any feature.
    """
    out = np.zeros(spread.size, dtype=ACCUM)
    for number, node in nodes:
        if isinstance(node, Router):
            magnitude = np.abs(node.weights.astype(ACCUM)) / 2.0
        elif node.classes.size > 1:
            magnitude = node.weights.std(axis=1, dtype=ACCUM)
        else:
            continue
        out[node.features] += reach[number] * magnitude
    out *= spread
    total = out.sum()
    return out / total if total > 0.0 else out


def nodes_of(tree: Nodes) -> Iterator[tuple[int, Router | Leaf]]:
    """Yield the nodes of a tree by number."""
    for node, is_leaf in enumerate(tree.is_leaf.tolist()):
        yield node, tree.leaf(node) if is_leaf else tree.router(node)


def packed_nodes(packed: PackedTree) -> Iterator[tuple[int, Router | Leaf]]:
    """Yield the nodes of a packed tree by number."""
    routers = PackedRouters(packed)
    for node, child in enumerate(packed.child.tolist()):
        yield node, packed.leaf(-1 - child) if child < 0 else routers[node]


class PackedRouters:
    """The routers of a packed tree by node, where a sparse layout has them by feature.

    Parameters
    ----------
    packed : PackedTree
    """

    def __init__(self, packed: PackedTree) -> None:
        self._packed = packed
        self._ptr: OffsetArray | None = None
        if packed.sparse:
            sizes = np.diff(packed.router_ptr)
            features = np.repeat(np.arange(packed.n_features, dtype=INDEX), sizes)
            order = np.argsort(packed.router_idx, kind="stable")
            self._features: IndexArray = features[order]
            self._weights: ParamArray = packed.router_val[order].astype(PARAM, copy=False)
            counts = np.bincount(packed.router_idx, minlength=packed.n_nodes)
            self._ptr = offsets(counts)

    def __getitem__(self, node: int) -> Router:
        """Return a router."""
        packed = self._packed
        if self._ptr is None or packed.dense_at[node] >= 0:
            return packed.router(node)
        own = slice(*self._ptr[node : node + 2])
        return Router(self._features[own], self._weights[own], float(packed.bias[node]))


def rows_below(packed: PackedTree, leaf_rows: AnyArray) -> AccumArray:
    """Return how many rows reach each node, given how many reach each leaf."""
    reach = np.zeros(packed.n_nodes, dtype=ACCUM)
    reach[packed.child < 0] = leaf_rows
    for node in np.flatnonzero(packed.child >= 0)[::-1].tolist():  # children come after parents
        left = packed.child[node]
        reach[node] = reach[left] + reach[left + 1]
    return reach

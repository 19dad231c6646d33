"""Trees without weights that hardly matter: how many can go, held-out rows say.

Not in the papers, whose ℓ₁ penalties make weights exactly zero. Margins do not, and of the weights
of a large text model most change no answer. A weight matters by what it moves: its size times that
of its feature. Over all rows a rare feature moves little, but where it occurs it decides: its size
is the geometric mean of the roots of its mean square over all rows and over those that have it.
Leaves first, then routers lose as large a share of their weights as leaves the judge's errors about
where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray, BoolArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR
from thinleaf.model.nodes import Leaf
from thinleaf.model.tree import Tree

FEW_WEIGHTS = 1_000_000
"""A tree of no more weights is left as it is, unless small weights are to go at any size."""

_LEAF_SHARES = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
_ROUTER_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Of the weights of leaves and of routers, that are tried without."""

AS_GOOD = 1.03
"""How many times the errors of the whole tree the judge may see, if small weights are to go."""


@dataclass(frozen=True)
class Least:
    """How much the weights that leaves and routers keep matter at the least."""

    leaves: float = 0.0
    routers: float = 0.0


ALL_WEIGHTS = Least()


def feature_sizes(X: CSR) -> ParamArray:
    """Return the size of each feature of sparse rows: between those of all, and of its own."""
    squares = np.bincount(X.indices, weights=np.square(X.data), minlength=X.n_features)
    own = np.maximum(np.bincount(X.indices, minlength=X.n_features), 1)
    return (np.sqrt(squares) / (own * max(X.indptr.size - 1, 1)) ** 0.25).astype(PARAM)


def thinned(tree: Tree, least: Least, sizes: ParamArray) -> Tree:
    """Return a tree without the weights of leaves and routers that matter less.

    Parameters
    ----------
    tree : Tree
    least : Least
    sizes : ndarray of shape (n_features,)
        Of features, over the training rows.
    """
    if least == ALL_WEIGHTS:
        return tree
    blocks = np.flatnonzero(np.diff(tree.block_ptr)).tolist()
    tree = tree.replace({i: _thin_block(tree.leaf(i), least.leaves, sizes) for i in blocks})
    n_nodes, routed = tree.n_nodes, _router_impact(tree, sizes) >= least.routers
    kept = _entry_impact(tree, sizes) >= least.leaves
    row_sizes = _sizes(kept, tree.row_size)
    node_of_row = np.repeat(np.arange(n_nodes), np.diff(tree.feat_ptr))
    rows = (row_sizes > 0) | (np.diff(tree.block_ptr) > 0)[node_of_row]
    return replace(
        tree,
        router_ptr=offsets(_sizes(routed, np.diff(tree.router_ptr))),
        router_idx=tree.router_idx[routed],
        router_val=tree.router_val[routed],
        feat_ptr=offsets(np.bincount(node_of_row[rows], minlength=n_nodes)),
        feat_idx=tree.feat_idx[rows],
        row_size=row_sizes[rows].astype(tree.row_size.dtype),
        entry_ptr=offsets(_sizes(kept, np.diff(tree.entry_ptr))),
        entry_slot=tree.entry_slot[kept],
        entry_val=tree.entry_val[kept],
    )


def _sizes(kept: BoolArray, sizes: AnyArray) -> AnyArray:
    """Return how many items of each part are kept, of parts with these sizes in one array."""
    ends = offsets(sizes)
    total = np.zeros(kept.size + 1, dtype=np.int64)
    np.cumsum(kept, out=total[1:])
    return np.diff(total[ends])


def _router_impact(tree: Tree, sizes: ParamArray) -> ParamArray:
    return np.abs(tree.router_val) * sizes[tree.router_idx]


def _entry_impact(tree: Tree, sizes: ParamArray) -> ParamArray:
    return np.abs(tree.entry_val) * np.repeat(sizes[tree.feat_idx], tree.row_size)


def _thin_block(leaf: Leaf, least: float, sizes: ParamArray) -> Leaf:
    small = np.abs(leaf.weights) * sizes[leaf.features][:, None] < least
    weights = np.where(small, PARAM(0.0), leaf.weights)
    used = np.flatnonzero(weights.any(axis=1))
    return Leaf(leaf.classes, leaf.features[used], weights[used], leaf.bias).compact()


def find_least(
    tree: Tree, sizes: ParamArray, errors: Callable[[Tree], Iterable[float]], most: float = AS_GOOD
) -> Least:
    """Return how much a weight must matter to stay.

    Parameters
    ----------
    tree : Tree
    sizes : ndarray of shape (n_features,)
    errors : callable
        From a tree to its errors on held-out rows, in each of several ways to predict, the quickest
        first: where one has too many, the others are not asked.
    most : float
        How many times the errors of the whole tree one without such weights may have.
    """
    enough = [most * error for error in errors(tree)]

    def as_good(least: Least) -> bool:
        found = errors(thinned(tree, least, sizes))
        return all(error <= limit for error, limit in zip(found, enough, strict=True))

    leaves = _quantiles(_entry_impact(tree, sizes), _LEAF_SHARES)
    least = _last([Least(at) for at in leaves], as_good, ALL_WEIGHTS)
    routers = _quantiles(_router_impact(tree, sizes), _ROUTER_SHARES)
    return _last([replace(least, routers=at) for at in routers], as_good, least)


def _quantiles(impact: ParamArray, shares: tuple[float, ...]) -> list[float]:
    return [float(value) for value in np.quantile(impact, shares)] if impact.size else []


def _last(choices: list[Least], as_good: Callable[[Least], bool], otherwise: Least) -> Least:
    """Return the last choice that is as good, if all before it are; by bisection."""
    low, high = 0, len(choices)
    while low < high:
        middle = (low + high) // 2
        if as_good(choices[middle]):
            low = middle + 1
        else:
            high = middle
    return choices[low - 1] if low else otherwise

"""What a packed tree computes on its way with one row: paths, scores of routers and of leaves.

The code is that of prediction, so the numbers are the model's own, to the bit.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from thinleaf._dtypes import AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import strict_kernel
from thinleaf.model.kernels.leaf_checks import leaf_is_ready
from thinleaf.model.kernels.mixture import paths_of
from thinleaf.model.kernels.packed import (
    BAD_LEAF,
    OK,
    keep_alive,
    router_score,
    score_leaf,
)
from thinleaf.model.kernels.prediction import row_at, scratch_for


@strict_kernel
def paths_of_row(table: OffsetArray, X: Rows, leaves: IndexArray, weights: AccumArray) -> int:
    """Fill in the leaves of all paths of the first row, tree by tree, and their weights.

    Returns how many paths there are.
    """
    scratch = scratch_for(table, X)
    found, share = paths_of(table, row_at(table, X, 0, scratch))
    for i in range(found.size):
        leaves[i] = found[i]
        weights[i] = share[i]
    return keep_alive(found.size, scratch.x, scratch.idx, scratch.val, scratch.top)


@strict_kernel
def scores_of_row(
    table: OffsetArray,
    X: Rows,
    nodes: IndexArray,
    router_scores: ParamArray,
    leaves: IndexArray,
    leaf_ptr: OffsetArray,
    leaf_scores: ParamArray,
) -> int:
    """Fill in what some routers and leaves say of the first row; return OK or an error."""
    scratch = scratch_for(table, X)
    row = row_at(table, X, 0, scratch)
    for i in range(nodes.size):
        router_scores[i] = router_score(table, row, nodes[i])
    status = OK
    for i in range(leaves.size):
        if leaf_is_ready(table, leaves[i]):
            score_leaf(table, row, leaves[i], leaf_scores[leaf_ptr[i] : leaf_ptr[i + 1]])
        else:
            status = BAD_LEAF
    return keep_alive(status, scratch.x, scratch.idx, scratch.val, scratch.top)

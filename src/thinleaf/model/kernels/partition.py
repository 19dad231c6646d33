"""Routing rows through a tree, a node at a time, as a stable partition.

Rows end up grouped by leaf, and the rows that reach any node are a contiguous range: the reach sets
of all nodes cost one permutation and two offsets a node.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import NO_CHILD, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.rows import CSR, Rows
from thinleaf.kernels._jit import kernel
from thinleaf.kernels.products import project_rows


@kernel
def route_rows(
    X: Rows,
    rows: IndexArray,
    start: int,
    children: IndexArray,
    router_ptr: OffsetArray,
    router_idx: IndexArray,
    router_val: ParamArray,
    bias: ParamArray,
    order: IndexArray,
    begin: IndexArray,
    end: IndexArray,
    w_dense: ParamArray,
) -> None:
    """Partition ``rows`` from node ``start`` down.

    ``order`` must hold 0..n-1 and becomes the permutation of positions in ``rows``, stable within a
    leaf; ``begin[i]:end[i]`` is the range of node ``i`` in it. ``w_dense`` is zeroed scratch,
    and left so.
    """
    held = np.empty(rows.size, dtype=order.dtype)
    projection = np.empty(rows.size, dtype=np.float32)
    stack = np.empty(children.shape[0], dtype=order.dtype)
    stack[0] = start
    depth = 1
    begin[start] = 0
    end[start] = rows.size
    while depth > 0:
        depth -= 1
        node = stack[depth]
        left = children[node, 0]
        if left == NO_CHILD:
            continue
        right = children[node, 1]
        w_idx = router_idx[router_ptr[node] : router_ptr[node + 1]]
        w_val = router_val[router_ptr[node] : router_ptr[node + 1]]
        for t in range(w_idx.size):
            w_dense[w_idx[t]] = w_val[t]
        here = order[begin[node] : end[node]]
        project_rows(X, rows, here, w_idx, w_val, w_dense, projection)
        n_left = 0
        n_right = 0
        for p in range(here.size):  # without branches: half of them would be mispredicted
            at = here[p]
            right_side = 1 if projection[p] + bias[node] >= 0.0 else 0
            here[n_left] = at
            held[n_right] = at
            n_left += 1 - right_side
            n_right += right_side
        for p in range(n_right):
            here[n_left + p] = held[p]
        for t in range(w_idx.size):
            w_dense[w_idx[t]] = 0.0
        begin[left] = begin[node]
        end[left] = begin[node] + n_left
        begin[right] = end[left]
        end[right] = end[node]
        stack[depth] = left
        stack[depth + 1] = right
        depth += 2


@kernel
def score_router(
    X: Rows,
    rows: IndexArray,
    w_idx: IndexArray,
    w_val: ParamArray,
    bias: np.float32,
    w_dense: ParamArray,
    order: IndexArray,
    out: ParamArray,
) -> None:
    """Fill ``out`` with w·x + b of each row; ``order`` must hold 0..n-1.

    ``w_dense`` is zeroed scratch, and left so.
    """
    for t in range(w_idx.size):
        w_dense[w_idx[t]] = w_val[t]
    project_rows(X, rows, order, w_idx, w_val, w_dense, out)
    for i in range(rows.size):
        out[i] += bias
    for t in range(w_idx.size):
        w_dense[w_idx[t]] = 0.0


@kernel
def count_path_products(
    X: CSR,
    rows: IndexArray,
    begin: IndexArray,
    end: IndexArray,
    order: IndexArray,
    weight_ptr: OffsetArray,
    weight_idx: IndexArray,
    weight_count: IndexArray,
    scratch: IndexArray,
    out: OffsetArray,
) -> None:
    """Add to ``out`` how many nonzero weights each sparse row meets on its path.

    Node ``i`` holds ``weight_count[t]`` nonzero weights on feature ``weight_idx[t]``, for ``t`` in
    ``weight_ptr[i]:weight_ptr[i + 1]``. ``scratch`` is zeroed and has one entry a feature.
    """
    for node in range(begin.size):
        if begin[node] == end[node]:
            continue
        for t in range(weight_ptr[node], weight_ptr[node + 1]):
            scratch[weight_idx[t]] = weight_count[t]
        for p in range(begin[node], end[node]):
            row, count = rows[order[p]], 0
            for t in range(X.indptr[row], X.indptr[row + 1]):
                if X.data[t] != 0.0:
                    count += scratch[X.indices[t]]
            out[order[p]] += count
        for t in range(weight_ptr[node], weight_ptr[node + 1]):
            scratch[weight_idx[t]] = 0

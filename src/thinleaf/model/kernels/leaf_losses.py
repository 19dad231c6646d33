"""Losses of rows that have been routed: every leaf scores its own group of rows."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import (
    NO_CHILD,
    AccumArray,
    BoolArray,
    IndexArray,
    OffsetArray,
    ParamArray,
    SlotArray,
)
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import kernel
from thinleaf.kernels.products import score_row, score_row_by_entries
from thinleaf.kernels.softmax import log_sum_exp


@kernel
def group_losses(
    X: Rows,
    rows: IndexArray,
    y: IndexArray,
    order: IndexArray,
    begin: IndexArray,
    end: IndexArray,
    children: IndexArray,
    class_ptr: OffsetArray,
    class_ids: IndexArray,
    feat_ptr: OffsetArray,
    feat_idx: IndexArray,
    block_ptr: OffsetArray,
    block_val: ParamArray,
    row_size: IndexArray,
    entry_ptr: OffsetArray,
    entry_slot: SlotArray,
    entry_val: ParamArray,
    leaf_bias: ParamArray,
    position: IndexArray,
    sharpness: np.float32,
    cross_entropy: AccumArray,
    correct: BoolArray,
) -> None:
    """Fill the cross-entropy (∞ where the leaf lacks the class) and whether the top class is right.

    ``y`` is indexed by row id; the outputs by position in ``rows``. ``position`` is scratch for all
    features, -1 everywhere, and left so.
    """
    widest, longest = 1, 1
    for node in range(children.shape[0]):
        widest = max(widest, class_ptr[node + 1] - class_ptr[node])
        if block_ptr[node] == block_ptr[node + 1]:
            longest = max(longest, feat_ptr[node + 1] - feat_ptr[node])
    row_ptr = np.zeros(longest + 1, dtype=np.int64)
    buffer = np.empty(widest, dtype=np.float32)
    for node in range(children.shape[0]):
        if children[node, 0] != NO_CHILD or begin[node] == end[node]:
            continue
        k = class_ptr[node + 1] - class_ptr[node]
        classes = class_ids[class_ptr[node] : class_ptr[node + 1]]
        features = feat_idx[feat_ptr[node] : feat_ptr[node + 1]]
        stored = block_val[block_ptr[node] : block_ptr[node + 1]]
        is_block = stored.size > 0 or features.size == 0
        block = stored.reshape((features.size if is_block else 0, k))
        slots = entry_slot[entry_ptr[node] : entry_ptr[node + 1]]
        values = entry_val[entry_ptr[node] : entry_ptr[node + 1]]
        if not is_block:
            for r in range(features.size):
                row_ptr[r + 1] = row_ptr[r] + row_size[feat_ptr[node] + r]
        bias = leaf_bias[class_ptr[node] : class_ptr[node + 1]]
        scores = buffer[:k]
        for r in range(features.size):
            position[features[r]] = r
        for p in range(begin[node], end[node]):
            at = order[p]
            slot = np.searchsorted(classes, y[rows[at]])
            if slot == k or classes[slot] != y[rows[at]]:
                cross_entropy[at] = np.inf
                correct[at] = False
                continue
            if is_block:
                score_row(X, rows[at], features, block, bias, position, scores)
            else:
                score_row_by_entries(
                    X, rows[at], features, row_ptr, slots, values, bias, position, scores
                )
            for c in range(k):
                scores[c] *= sharpness
            cross_entropy[at] = max(log_sum_exp(scores) - scores[slot], 0.0)
            correct[at] = np.argmax(scores) == slot
        for r in range(features.size):
            position[features[r]] = -1

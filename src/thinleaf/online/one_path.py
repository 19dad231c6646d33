"""Recall Trees that predict on one path, and what becomes of them when they are frozen."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.linear_models import Scratch, score
from thinleaf.online.recall_tree import (
    ROOT,
    RecallTree,
    Settings,
    best_candidate,
    descend,
    with_path,
)
from thinleaf.online.scaled_rows import Row, prepare
from thinleaf.online.tables import EMPTY, find


@bare_kernel
def predict_rows(
    tree: RecallTree, X: Rows, settings: Settings, scratch: Scratch, best: IndexArray
) -> None:
    """Fill in the best candidate of each row."""
    for i in range(best.size):
        node = score_row(tree, X, i, settings, scratch)
        candidates, n = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
        best[i] = best_candidate(candidates, n, scratch.score)


@bare_kernel
def score_rows(
    tree: RecallTree,
    X: Rows,
    settings: Settings,
    scratch: Scratch,
    nodes: IndexArray,
    scores: AccumArray,
) -> None:
    """Fill in the node that each row reaches and the scores of its candidates."""
    for i in range(nodes.size):
        nodes[i] = score_row(tree, X, i, settings, scratch)
        for c in range(tree.histograms.n_candidates[nodes[i]]):
            scores[i, c] = scratch.score[c]


@bare_part
def score_row(tree: RecallTree, X: Rows, i: int, settings: Settings, scratch: Scratch) -> int:
    """Score the candidates of a row; return the node whose they are."""
    n = prepare(X, i, tree.scales, scratch.idx, scratch.val)
    row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
    node = descend(tree, row, ROOT, settings, scratch)
    candidates, n = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
    score(tree.regressors, with_path(tree, row, node, settings), candidates, n, scratch)
    return node


@bare_kernel
def candidate_biases(
    tree: RecallTree,
    nodes: IndexArray,
    parents: IndexArray,
    path_features: bool,
    bias: ParamArray,
) -> None:
    """Fill in the biases of nodes' candidates, with the weights of the path to the node."""
    regressors = tree.regressors
    for i in range(nodes.size):
        for c in range(tree.histograms.n_candidates[nodes[i]]):
            label = tree.histograms.candidates[nodes[i], c]
            total = float(regressors.bias[label, 0])
            node = nodes[i] if path_features else ROOT
            while node != ROOT:
                slot = find(regressors.extra, node, label)
                if slot != EMPTY:
                    total += regressors.extra.values[slot, 0]
                node = parents[node]
            bias[i, c] = total

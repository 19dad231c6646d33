"""What a trained label tree is, and how it predicts: embeddings, a tree, parameters of its nodes.

Labels are numbers here; their names are for the estimators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, BoolArray, IndexArray, ParamArray
from thinleaf.arrays.rows import CSR, Rows, n_rows_of
from thinleaf.labeltree.kernels import search as kernels
from thinleaf.labeltree.kernels.path_steps import collect_rows
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.statistics import Statistics

ABSENT = np.float32(-1e30)
"""Bias of a branch that leads nowhere: its probability is zero."""


@dataclass(frozen=True, eq=False)
class LabelTreeNodes:
    """p(label | r) = ∏ g_n(r) along the path of the label: a tree, and a softmax at each node.

    Attributes
    ----------
    tree : LabelTree
    weights : ndarray of shape (n_nodes, n_outputs, dim)
    bias : ndarray of shape (n_nodes, n_outputs)
        A node has an output for each child; in a binary tree it has one, the score of the second
        child over the first.
    """

    tree: LabelTree
    weights: ParamArray
    bias: ParamArray

    def rebuilt(self, tree: LabelTree, origin: IndexArray) -> Self:
        """Return the same with a new tree, whose nodes keep the parameters of their origin.

        In a tree wider than binary, a label that has moved takes those of its leaf along, as far as
        they differ from the mean of the node.
        """
        if tree.n_nodes == 0:
            return self
        known = origin >= 0
        weights = np.zeros((tree.n_nodes, *self.weights.shape[1:]), dtype=PARAM)
        bias = initial_bias(tree)
        weights[known] = self.weights[origin[known]]
        if tree.arity > 2:
            both = tree.present[known] & self.tree.present[origin[known]]
            bias[known] = np.where(both, self.bias[origin[known]], bias[known])
            moves = Moves.of(self.tree, tree, origin)
            moves.carry(self.weights, weights, self.tree.present)
            moves.carry(self.bias, bias, self.tree.present)
        else:
            bias[known] = self.bias[origin[known]]
        return replace(self, tree=tree, weights=weights, bias=bias)

    @property
    def _embedding(self) -> tuple[ParamArray | None, float]:
        """U and scale of rows, or None if rows are representations already."""
        return None, 1.0

    # -- predictions -------------------------------------------------------------------------------

    def topk(self, X: Rows, k: int) -> tuple[IndexArray, ParamArray]:
        """Return the k most probable labels of each row, best first, and log-probabilities."""
        return self._search(X, k)[:2]

    def _search(self, X: Rows, k: int) -> tuple[IndexArray, ParamArray, int]:
        """Return labels, scores and how many nodes were visited for all rows."""
        U, scale = self._embedding
        shape = (n_rows_of(X), min(k, self.tree.n_labels))
        labels, scores = np.empty(shape, dtype=INDEX), np.empty(shape, dtype=PARAM)
        n_visited = kernels.topk_rows(
            X, scale, U, self.weights, self.bias, self.tree.children, self.tree.depth,
            labels, scores,
        )  # fmt: skip
        return labels, scores, n_visited

    def descend(self, X: Rows) -> IndexArray:
        """Return the label at the end of each row's greedy path."""
        U, scale = self._embedding
        labels = np.empty(n_rows_of(X), dtype=INDEX)
        kernels.descend_rows(X, scale, U, self.weights, self.bias, self.tree.children, labels)
        return labels

    def node_scores(self, X: Rows, nodes: IndexArray) -> ParamArray:
        """Return the scores of some nodes for the first row, of shape (n, n_outputs)."""
        U, scale = self._embedding
        out = np.empty((nodes.size, self.weights.shape[1]), dtype=PARAM)
        kernels.node_scores(X, scale, U, self.weights, self.bias, nodes, out)
        return out

    def log_proba(self, X: Rows) -> ParamArray:
        """Return the log-probability of every label, of shape (n_rows, n_labels)."""
        U, scale = self._embedding
        out = np.empty((n_rows_of(X), self.tree.n_labels), dtype=PARAM)
        kernels.proba_rows(X, scale, U, self.weights, self.bias, self.tree.children, out)
        return out

    def label_log_proba(self, X: Rows, y: IndexArray) -> ParamArray:
        """Return the log-probability of one label of each row (equation 5)."""
        U, scale = self._embedding
        out = np.empty(n_rows_of(X), dtype=PARAM)
        tree = self.tree
        kernels.label_logp_rows(
            X, scale, y, U, self.weights, self.bias,
            tree.path_ptr, tree.path_nodes, tree.path_branches, tree.arity, out,
        )  # fmt: skip
        return out


@dataclass(frozen=True, eq=False)
class LabelTreeModel(LabelTreeNodes):
    """Nodes over representations f(x) = scale · Σ x_f U_f of rows.

    Attributes
    ----------
    U : ndarray of shape (n_features, dim)
        Embeddings.
    scale : float
        What rows are multiplied by.
    """

    U: ParamArray
    scale: float = 1.0

    @classmethod
    def start(
        cls, tree: LabelTree, n_features: int, dim: int, rng: np.random.Generator, scale: float
    ) -> LabelTreeModel:
        """Return the model that training starts from: fastText's, random U and zero nodes."""
        U = rng.random((n_features, dim), dtype=PARAM)
        U -= np.float32(0.5)
        U *= np.float32(2.0 / dim)
        return cls(tree, *initial_parameters(tree, dim), U, scale)

    @property
    def _embedding(self) -> tuple[ParamArray | None, float]:
        return self.U, self.scale

    def mean_flops(self, X: Rows, *, greedy: bool) -> float:
        """Return the mean number of multiplications for the best label of a row."""
        n_entries = X.indices.size if isinstance(X, CSR) else np.count_nonzero(X)
        if greedy:
            n_visited = int(self.tree.depths[self.descend(X)].sum())
        else:
            n_visited = self._search(X, 1)[2]
        dim, n_scores = self.U.shape[1], n_outputs(self.tree)
        return float(dim * (n_entries + n_scores * n_visited) / max(n_rows_of(X), 1))

    def statistics(self, X: Rows, y: IndexArray) -> Statistics:
        """Return SumProbas and Counts of some rows."""
        tree = self.tree
        out = Statistics.zeros(tree, 0)
        collect_rows(
            X, self.scale, y, self.U, self.weights, self.bias,
            tree.path_ptr, tree.path_nodes, out.sum_probas, out.counts,
        )  # fmt: skip
        return out


class Moves(NamedTuple):
    """Labels whose leaf is another branch, or at another node, than it was."""

    source: tuple[IndexArray, IndexArray]
    """Nodes of the old tree and branches, of each such label."""
    target: tuple[IndexArray, IndexArray]
    """Nodes of the new tree and branches."""
    origin: IndexArray
    """The old node that each target continues, or -1."""

    @classmethod
    def of(cls, old: LabelTree, new: LabelTree, origin: IndexArray) -> Moves:
        """Return what moves from one tree to another."""
        last, now = old.path_ptr[1:] - 1, new.path_ptr[1:] - 1
        source = old.path_nodes[last], old.path_branches[last]
        target = new.path_nodes[now], new.path_branches[now]
        before = origin[target[0]]
        moved = (before != source[0]) | (target[1] != source[1])
        return cls(
            (source[0][moved], source[1][moved]), (target[0][moved], target[1][moved]),
            before[moved],
        )  # fmt: skip

    def carry(self, old: ParamArray, new: ParamArray, present: BoolArray) -> None:
        """Write parameters of leaves to where they have moved.

        Parameters
        ----------
        old : ndarray of shape (n_old_nodes, arity, …)
        new : ndarray of shape (n_nodes, arity, …)
        present : ndarray of shape (n_old_nodes, arity)
            Which branches of the old tree lead somewhere: the mean of a node is theirs.
        """
        share = present / np.maximum(np.count_nonzero(present, axis=1, keepdims=True), 1)
        mean = np.einsum("nj,nj...->n...", share.astype(PARAM), old)
        there = np.where((self.origin >= 0).reshape(-1, *[1] * (mean.ndim - 1)),
                         mean[self.origin], np.float32(0.0))  # fmt: skip
        new[self.target] = old[self.source] - mean[self.source[0]] + there


def n_outputs(tree: LabelTree) -> int:
    """Return how many scores a node has."""
    return tree.arity if tree.arity > 2 else 1


def initial_parameters(tree: LabelTree, dim: int) -> tuple[ParamArray, ParamArray]:
    """Return weights and biases of nodes that know nothing."""
    return np.zeros((tree.n_nodes, n_outputs(tree), dim), dtype=PARAM), initial_bias(tree)


def initial_bias(tree: LabelTree) -> ParamArray:
    """Return zero biases; a branch that leads nowhere has one that rules it out."""
    if tree.arity == 2:
        return np.zeros((tree.n_nodes, 1), dtype=PARAM)
    return np.where(tree.present, np.float32(0.0), ABSENT).astype(PARAM)

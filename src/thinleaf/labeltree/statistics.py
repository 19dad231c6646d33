"""What a node knows of the labels that reach it: SumProbas, Counts, and from them J_n, β and α.

Paper 004, algorithm 1 and section 5. Statistics are kept where they can be other than zero: for
pairs of a label and a node on its path, in the order of the tree's path entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, PARAM, AccumArray, AnyArray, IndexArray, ParamArray
from thinleaf.labeltree.label_tree import LabelTree


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over examples; kernels add to the arrays in place.

    Attributes
    ----------
    sum_probas : ndarray of shape (n_entries, arity)
        For each path entry (a label i at a node n), the sum of the node's distributions over its
        children.
    counts : ndarray of shape (n_entries,)
        The number of examples in these sums.
    label_sums : ndarray of shape (n_labels, dim)
        For each label, the sum of the representations of its examples.
    label_counts : ndarray of shape (n_labels,)
    """

    sum_probas: ParamArray
    counts: ParamArray
    label_sums: ParamArray
    label_counts: ParamArray

    @classmethod
    def zeros(cls, tree: LabelTree, dim: int) -> Statistics:
        """Return the statistics of no examples (InitializeNodeStats)."""
        n_entries = tree.path_nodes.size
        return cls(
            np.zeros((n_entries, tree.arity), dtype=PARAM),
            np.zeros(n_entries, dtype=PARAM),
            np.zeros((tree.n_labels, dim), dtype=PARAM),
            np.zeros(tree.n_labels, dtype=PARAM),
        )

    def reset(self) -> None:
        """Forget all examples."""
        for array in (self.sum_probas, self.counts, self.label_sums, self.label_counts):
            array[:] = 0.0


class NodeQuality(NamedTuple):
    """How good the splits of all nodes are; arrays of shape (n_nodes,)."""

    J: AccumArray
    """The objective J_n (equation 6)."""
    J_max: AccumArray
    """Its upper bound (lemma 2), for the number of children that the node has."""
    balancedness: AccumArray
    """β, the least p_j over the children (definition 1)."""
    purity: AccumArray
    """α (definition 2); 0 is perfectly pure."""
    n_labels: IndexArray
    """How many labels reach the node."""
    n_examples: AccumArray
    """How many examples the figures are from; without any, they are NaN."""


def split_quality(p: AnyArray, q: AnyArray) -> tuple[float, float, float]:
    """Return J_n, β and α of one split.

    Parameters
    ----------
    p : array-like of shape (n_labels, n_children)
        p_j|i: where examples of each label are sent.
    q : array-like of shape (n_labels,)
        The proportion of each label.

    Examples
    --------
    >>> split_quality([[1, 0], [1, 0], [0, 1], [0, 1]], [0.25] * 4)  # balanced and pure
    (1.0, 0.5, 0.0)
    >>> split_quality([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5])  # balanced, not pure
    (0.0, 0.5, 0.5)
    """
    p, q = np.asarray(p, dtype=ACCUM), np.asarray(q, dtype=ACCUM)
    n_children = p.shape[1]
    mean = q @ p
    J = 2.0 / n_children * float(q @ np.abs(p - mean).sum(axis=1))
    alpha = float(q @ np.minimum(p, 1.0 - p).sum(axis=1)) / n_children
    return J, float(mean.min()), alpha


def node_quality(tree: LabelTree, statistics: Statistics) -> NodeQuality:
    """Return J_n, β and α of every node: :func:`split_quality` of each, all at once."""
    arity = np.count_nonzero(tree.present, axis=1)
    nodes, counts = tree.path_nodes, statistics.counts.astype(ACCUM)
    n_examples = np.bincount(nodes, counts, minlength=tree.n_nodes).astype(ACCUM)
    reached = np.maximum(n_examples, 1e-300)
    known = counts > 0.0
    p = np.where(known[:, None], statistics.sum_probas, 0.0) / np.where(known, counts, 1.0)[:, None]
    p[~tree.present[nodes]] = 0.0
    q = counts / reached[nodes]
    mean = np.zeros((tree.n_nodes, tree.arity))
    np.add.at(mean, nodes, q[:, None] * p)
    J = np.bincount(nodes, q * np.abs(p - mean[nodes]).sum(axis=1), minlength=tree.n_nodes)
    alpha = np.bincount(nodes, q * np.minimum(p, 1.0 - p).sum(axis=1), minlength=tree.n_nodes)
    beta = np.where(tree.present, mean, np.inf).min(axis=1, initial=np.inf)
    J, alpha = J * 2.0 / arity, alpha / arity
    for figure in (J, alpha, beta):
        figure[n_examples == 0.0] = np.nan
    J_max = 4.0 / arity * (1.0 - 1.0 / arity)
    n_labels = np.bincount(nodes, minlength=tree.n_nodes).astype(np.int32)
    return NodeQuality(J, J_max, beta, alpha, n_labels, n_examples)

"""What a node knows of the labels that reach it: SumProbas, Counts, and from them J_n, β and α.

Paper 004, algorithm 1 and section 5. Statistics are kept where they can be other than zero: for
pairs of a label and a node on its path, in the order of the tree's path entries. In wide trees they
may be kept of some children alone, those that a label's examples are sent to most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray, ParamArray
from thinleaf.labeltree.label_tree import LabelTree

ALL_CHILDREN: IndexArray = np.empty((0, 0), dtype=INDEX)
"""In the place of ``Statistics.top_children``: sums are of all children."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over examples; kernels add to the arrays in place.

    Attributes
    ----------
    sum_probas : ndarray of shape (n_entries, arity) or (n_entries, n_top)
        For each path entry (a label i at a node n), the sum of the node's distributions over its
        children, or over some of them.
    counts : ndarray of shape (n_entries,)
        The number of examples in these sums.
    label_sums : ndarray of shape (n_labels, dim)
        For each label, the sum of the representations of its examples.
    label_counts : ndarray of shape (n_labels,)
    top_children : ndarray of shape (n_entries, n_top) or (0, 0)
        Which children ``sum_probas`` are of; none if they are of all.
    """

    sum_probas: ParamArray
    counts: ParamArray
    label_sums: ParamArray
    label_counts: ParamArray
    top_children: IndexArray = field(default_factory=lambda: ALL_CHILDREN)

    @classmethod
    def zeros(cls, tree: LabelTree, dim: int, n_top: int | None = None) -> Statistics:
        """Return the statistics of no examples (InitializeNodeStats).

        With ``n_top``, of so many children of each label at each node, if nodes have more.
        """
        n_entries, some = tree.path_nodes.size, n_top is not None and n_top < tree.arity
        width = n_top if some and n_top is not None else tree.arity
        top: IndexArray = np.arange(width, dtype=INDEX)
        return cls(
            np.zeros((n_entries, width), dtype=PARAM),
            np.zeros(n_entries, dtype=PARAM),
            np.zeros((tree.n_labels, dim), dtype=PARAM),
            np.zeros(tree.n_labels, dtype=PARAM),
            np.tile(top, (n_entries, 1)) if some else ALL_CHILDREN,
        )

    def every_sum(self, tree: LabelTree) -> ParamArray:
        """Return the sums over all children, of shape (n_entries, arity).

        What is missing to the counts is spread evenly over the children that no sums are of.
        """
        if self.top_children.size == 0:
            return self.sum_probas
        others = tree.present[tree.path_nodes]
        np.put_along_axis(others, self.top_children, False, axis=1)
        rest = np.maximum(self.counts - self.sum_probas.sum(axis=1), 0.0)
        rest /= np.maximum(np.count_nonzero(others, axis=1), 1)
        out: ParamArray = (others * rest[:, None]).astype(PARAM)
        np.put_along_axis(out, self.top_children, self.sum_probas, axis=1)
        return out

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
    p = (
        np.where(known[:, None], statistics.every_sum(tree), 0.0)
        / np.where(known, counts, 1.0)[:, None]
    )
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

"""AssignLabels: the tree rebuilt from its statistics (paper 004, algorithms 2 and 3).

At each node, from the root down, the pair of label and child with the highest derivative of J_n is
assigned first, among children that have room. The loops are in ``kernels.label_assignment``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, IndexArray, ParamArray
from thinleaf.kernels import label_assignment as kernels
from thinleaf.labeltree.kinds import n_fillers
from thinleaf.labeltree.statistics import Statistics
from thinleaf.labeltree.tree import LabelTree

Criterion: TypeAlias = Literal["probability", "log_likelihood"]
"""Which derivative of J_n: with respect to p_j|i (equation 10) or its logarithm (12)."""


class Assignment(NamedTuple):
    """A new tree, what it keeps of the old one, and the statistics of what was kept."""

    tree: LabelTree
    origin: IndexArray
    """The old node that each new one continues, or -1: its parameters go with it."""
    statistics: Statistics


def assign_labels(
    tree: LabelTree,
    statistics: Statistics,
    weights: ParamArray,
    bias: ParamArray,
    *,
    criterion: Criterion = "log_likelihood",
    max_depth: int | None = None,
    decay: float = 0.8,
    inertia: float = 1.0,
    max_share: float | None = None,
) -> Assignment:
    """Re-assign every label.

    Parameters
    ----------
    tree : LabelTree
    statistics : Statistics
        p_j|i is SumProbas / Counts, with the node's softmax at the mean representation of the label
        as some further examples: all there is for a label that is new to the node.
    weights : ndarray of shape (n_nodes, n_outputs, dim)
    bias : ndarray of shape (n_nodes, n_outputs)
        Parameters of the nodes.
    criterion : {"log_likelihood", "probability"}
    max_depth : int, optional
        With it, algorithm 3: no path is longer. Without, algorithm 2: the tree is well-formed.
    decay : float
        What the sums of representations count from now on: these change faster than paths.
    inertia : float
        What p_j|i is multiplied by if child j is where label i is: above 1, labels stay unless they
        are better off elsewhere by that factor.
    max_share : float, optional
        A child whose labels have this many times its fair share of the examples takes no more while
        others have room.

    Returns
    -------
    assignment : Assignment
    """
    check_depth(tree.n_labels, tree.arity, max_depth)
    if tree.n_nodes == 0:
        return Assignment(tree, np.empty(0, dtype=INDEX), statistics)
    extra = 0 if max_depth else n_fillers(tree.n_labels, tree.arity)
    labels = np.arange(tree.n_labels + extra, dtype=INDEX)
    children = np.empty((tree.n_labels, tree.arity), dtype=INDEX)
    origin = np.empty(tree.n_labels, dtype=INDEX)
    n_nodes = kernels.assign_labels(
        tree.children,
        tree.path_ptr,
        tree.path_nodes,
        tree.path_branches,
        statistics.sum_probas,
        statistics.counts,
        statistics.label_sums,
        statistics.label_counts,
        weights,
        bias,
        criterion == "log_likelihood",
        inertia,
        np.inf if max_share is None else float(max_share),
        max_depth or 0,
        labels,
        children,
        origin,
    )
    new = LabelTree.build(children[:n_nodes], tree.n_labels)
    origin = origin[:n_nodes].copy()
    return Assignment(new, origin, _carried(tree, new, origin, statistics, decay))


def check_depth(n_labels: int, arity: int, max_depth: int | None) -> None:
    """Raise if a tree of this depth cannot hold all labels."""
    if max_depth is not None and arity**max_depth < n_labels:
        raise ValueError(
            f"a tree of arity {arity} and depth {max_depth} holds {arity**max_depth} labels, "
            f"but there are {n_labels}: raise arity or max_depth"
        )


def _carried(
    old: LabelTree, new: LabelTree, origin: IndexArray, statistics: Statistics, decay: float
) -> Statistics:
    out = Statistics.zeros(new, 0)
    kernels.carry_over(
        old.path_ptr,
        old.path_nodes,
        statistics.sum_probas,
        statistics.counts,
        new.path_ptr,
        new.path_nodes,
        origin,
        out.sum_probas,
        out.counts,
    )
    statistics.label_sums[:] *= np.float32(decay)
    statistics.label_counts[:] *= np.float32(decay)
    return Statistics(out.sum_probas, out.counts, statistics.label_sums, statistics.label_counts)

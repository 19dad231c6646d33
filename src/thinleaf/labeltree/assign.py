"""AssignLabels: the tree rebuilt from its statistics (paper 004, algorithms 2 and 3).

At each node, from the root down, the pair of label and child with the highest derivative of J_n is
assigned first, among children that have room. The loops are in ``kernels.label_assignment``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, OFFSET, BoolArray, IndexArray, OffsetArray, ParamArray
from thinleaf.execution import Executor, SerialExecutor
from thinleaf.labeltree.fixed_trees import n_fillers
from thinleaf.labeltree.kernels import assignment as kernels
from thinleaf.labeltree.kernels.known import Known, Rule, carry_over
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.statistics import Statistics

Criterion: TypeAlias = Literal["probability", "log_likelihood"]
"""Which derivative of J_n: with respect to p_j|i (equation 10) or its logarithm (12)."""

_SUBTREE = 4096
"""Up to so many labels, a node and all below it are one task: their means fit into a cache."""


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
    moved: BoolArray | None = None,
    executor: Executor | None = None,
) -> Assignment:
    """Re-assign every label, or those of nodes about which something new is known.

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
    moved : ndarray of shape (n_labels,), optional
        Which labels have had examples since the last assignment. A node none of whose labels has,
        and whose labels are those that it had, keeps its children, and so do all below it. By
        default all are assigned anew.
    executor : Executor, optional
        Where nodes that do not depend on each other are assigned; the result is the same with any.

    Returns
    -------
    assignment : Assignment
    """
    check_depth(tree.n_labels, tree.arity, max_depth)
    if tree.n_nodes == 0:
        return Assignment(tree, np.empty(0, dtype=INDEX), statistics)
    known = Known(
        tree.children,
        tree.path_ptr,
        tree.path_nodes,
        tree.path_branches,
        statistics.sum_probas,
        statistics.counts,
        statistics.label_sums,
        statistics.label_counts,
        statistics.top_children,
        weights,
        bias,
        np.empty(0, dtype=np.bool_) if moved is None else moved,
        np.bincount(tree.path_nodes, minlength=tree.n_nodes).astype(INDEX),
    )
    share = np.inf if max_share is None else float(max_share)
    rule = Rule(criterion == "log_likelihood", float(inertia), share, max_depth or 0)
    children, origin = _rebuilt(known, rule, executor or SerialExecutor())
    new = LabelTree.build(children, tree.n_labels)
    return Assignment(new, origin, carried(tree, new, origin, statistics, decay))


class _Task(NamedTuple):
    """A node that is to get children."""

    labels: IndexArray
    old: int
    parent: tuple[int, int] | None
    """Its parent's number, and which child it is."""


class _Part(NamedTuple):
    """What came of it: the node, and all below it or its children; as the kernel fills them."""

    n_nodes: int
    order: IndexArray
    begin: OffsetArray
    end: OffsetArray
    children: IndexArray
    origin: IndexArray


def _rebuilt(known: Known, rule: Rule, executor: Executor) -> tuple[IndexArray, IndexArray]:
    """Return the children of each node of the new tree, and the old node that it continues.

    A node of many labels is split by itself, one of few with all that is below it.
    """
    n_labels, arity = known.path_ptr.size - 1, known.children.shape[1]
    n_extra = 0 if rule.max_depth else n_fillers(n_labels, arity)
    real = np.argsort(known.label_counts <= 0.0, kind="stable")
    first = np.concatenate([real, np.arange(n_labels, n_labels + n_extra)]).astype(INDEX)
    children = np.empty((n_labels, arity), dtype=INDEX)
    origin = np.empty(n_labels, dtype=INDEX)
    n_nodes, depth = 0, 0
    tasks = [_Task(first, 0, None)]
    while tasks:
        build = partial(_part_of, known, rule, depth)
        parts = executor.map(build, tasks, [float(task.labels.size) for task in tasks])
        following: list[_Task] = []
        for task, part in zip(tasks, parts, strict=True):
            if task.parent is not None:
                children[task.parent] = n_nodes
            alone = task.labels.size > _SUBTREE
            n_built = 1 if alone else part.n_nodes
            rows = children[n_nodes : n_nodes + n_built]
            rows[:] = part.children[:n_built]
            origin[n_nodes : n_nodes + n_built] = part.origin[:n_built]
            if alone:
                for j in np.flatnonzero(rows[0] > 0):
                    c = rows[0, j]
                    labels = task.labels[part.order[part.begin[c] : part.end[c]]]
                    following.append(_Task(labels, int(part.origin[c]), (n_nodes, int(j))))
            else:
                rows[rows > 0] += n_nodes
            n_nodes += n_built
        tasks, depth = following, depth + 1
    order = _breadth_first(children[:n_nodes])
    number: IndexArray = np.empty(n_nodes, dtype=INDEX)
    number[order] = np.arange(n_nodes)
    children, origin = children[order], origin[order]
    nodes, leaves = children > 0, children < NO_CHILD
    children[nodes] = number[children[nodes]]
    children[leaves] = n_nodes - 2 - children[leaves]
    return children, origin


def _breadth_first(children: IndexArray) -> IndexArray:
    """Return the nodes level by level; here, what is not above zero is no node."""
    levels = [np.zeros(1, dtype=INDEX)]
    while levels[-1].size:
        below = children[levels[-1]].ravel()
        levels.append(below[below > 0])
    return np.concatenate(levels)


def _part_of(known: Known, rule: Rule, depth: int, task: _Task) -> _Part:
    n = task.labels.size
    begin, end = np.empty((2, n), dtype=OFFSET)
    order, origin = np.empty((2, n), dtype=INDEX)
    children = np.empty((n, known.children.shape[1]), dtype=INDEX)
    n_most = 1 if n > _SUBTREE else n
    n_nodes = kernels.assign_below(
        known, rule, task.labels, task.old, depth, n_most, order, begin, end, children, origin
    )
    return _Part(n_nodes, order, begin, end, children, origin)


def check_depth(n_labels: int, arity: int, max_depth: int | None) -> None:
    """Raise if a tree of this depth cannot hold all labels."""
    if max_depth is not None and arity**max_depth < n_labels:
        raise ValueError(
            f"a tree of arity {arity} and depth {max_depth} holds {arity**max_depth} labels, "
            f"but there are {n_labels}: raise arity or max_depth"
        )


def carried(
    old: LabelTree, new: LabelTree, origin: IndexArray, statistics: Statistics, decay: float
) -> Statistics:
    """Return the statistics of a new tree: of pairs of node and label that the old one had too."""
    out = Statistics.zeros(new, 0, statistics.sum_probas.shape[1])
    carry_over(
        old.path_ptr,
        old.path_nodes,
        statistics.sum_probas,
        statistics.counts,
        statistics.top_children,
        new.path_ptr,
        new.path_nodes,
        origin,
        out.sum_probas,
        out.counts,
        out.top_children,
    )
    statistics.label_sums[:] *= np.float32(decay)
    statistics.label_counts[:] *= np.float32(decay)
    return Statistics(
        out.sum_probas,
        out.counts,
        statistics.label_sums,
        statistics.label_counts,
        out.top_children,
    )

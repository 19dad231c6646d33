"""Reduced problems: optimising one node, given the rest of the tree (paper 001, section 4).

The child-loss matrix of shape (n_reached, 2) is all that a router's problem needs from the tree:
care set, pseudolabels and weights follow from it. A leaf's problem needs only its reach set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    PARAM,
    AccumArray,
    AnyArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.rows import Rows, n_rows_of, take_rows
from thinleaf.execution import Executor
from thinleaf.kernels.hashing import equal_to_next, hash_rows
from thinleaf.kernels.products import gather
from thinleaf.model.routing import losses_from
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.objective import Objective, Penalty
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution

_NEGLIGIBLE = 1e-7
"""Rows whose children differ by less than this share of the largest difference are don't-cares."""


@dataclass(frozen=True)
class TrainingData:
    """Rows, classes 0..n_classes-1 and nonnegative weights."""

    X: Rows
    y: IndexArray
    weight: AccumArray
    n_classes: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return n_rows_of(self.X)

    def take(self, rows: AnyArray) -> TrainingData:
        """Return some of the rows, in the order given."""
        return TrainingData(
            take_rows(self.X, rows), self.y[rows], self.weight[rows], self.n_classes
        )


def canonical(data: TrainingData) -> TrainingData:
    """Merge equal rows of a class and put rows in an order of their own.

    Repeating a row is then the same as weighting it, and shuffling rows changes nothing, to the
    last bit; and repeated rows cost nothing.
    """
    order = np.lexsort((data.weight, data.y, hash_rows(data.X)))
    data = data.take(order)
    if data.n_rows < 2:
        return data
    same = data.y[1:] == data.y[:-1]
    same &= equal_to_next(data.X)
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    weight = np.add.reduceat(data.weight, starts)
    merged = data.take(starts)
    return TrainingData(merged.X, merged.y, weight, data.n_classes)


@dataclass(frozen=True)
class ChildLosses:
    """Loss and 0/1 outcome of each reached row if it were sent left (column 0) or right (1)."""

    loss: AccumArray
    correct: BoolArray

    def choose(self, child: IndexArray) -> tuple[AccumArray, BoolArray]:
        """Return loss and outcome of each row for the child that it is sent to."""
        at = np.arange(child.size)
        return self.loss[at, child], self.correct[at, child]


def child_losses(
    tree: Tree,
    node: int,
    data: TrainingData,
    rows: IndexArray,
    went: IndexArray,
    known: tuple[AccumArray, BoolArray],
    objective: Objective,
    executor: Executor,
) -> ChildLosses:
    """Return the child losses of a router's reach set.

    The loss down the child that a row took (``went``) is ``known``; only the other child's subtree
    is evaluated anew, in as many parts as there are workers. Rows beyond those of ``went`` are
    guests, for which both are.
    """
    loss = np.empty((rows.size, 2), dtype=ACCUM)
    correct = np.empty((rows.size, 2), dtype=np.bool_)
    at = np.arange(went.size)
    loss[at, went], correct[at, went] = known
    guests = np.arange(went.size, rows.size)
    for side in (0, 1):
        others = np.concatenate([np.flatnonzero(went != side), guests])
        start = int(tree.children[node, side])
        parts = np.array_split(others, executor.n_workers) if others.size else []
        evaluate = partial(_losses_below, tree, data, start)
        outcomes = executor.map(evaluate, [rows[part] for part in parts])
        for part, (entropy, right) in zip(parts, outcomes, strict=True):
            loss[part, side] = objective.row_losses(entropy, right)
            correct[part, side] = right
    return ChildLosses(loss, correct)


def _losses_below(
    tree: Tree, data: TrainingData, start: int, rows: IndexArray
) -> tuple[AccumArray, BoolArray]:
    return losses_from(tree, data.X, data.y, rows, start)


@dataclass(frozen=True)
class CareSet:
    """The rows whose child matters: position in the reach set, cheaper child, and by how much."""

    positions: IndexArray
    pseudolabel: IndexArray
    weight: AccumArray


def care_set(losses: ChildLosses, weight: AccumArray) -> CareSet:
    """Return the care set; a row with an infinite loss (``absent="drop"``) is not in it."""
    finite = np.isfinite(losses.loss).all(axis=1)
    difference = np.zeros(weight.size, dtype=ACCUM)
    difference[finite] = losses.loss[finite, 0] - losses.loss[finite, 1]
    cost = np.abs(difference) * weight
    positions = np.flatnonzero(cost > _NEGLIGIBLE * cost.max(initial=0.0)).astype(INDEX)
    return CareSet(positions, (difference[positions] > 0.0).astype(INDEX), cost[positions])


def router_problem(
    data: TrainingData, rows: IndexArray, care: CareSet, penalty: Penalty
) -> tuple[NodeProblem, IndexArray]:
    """Return the weighted binary problem of a care set (equation 2), and its features' ids."""
    local, features = gather(data.X, rows[care.positions])
    return NodeProblem(local, care.pseudolabel, care.weight, 2, penalty), features


def top_classes(
    y: IndexArray, weight: AccumArray, limit: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the ``limit`` most frequent classes by weight, ascending.

    Also returns the positions of the rows of these classes, and their class slots.
    """
    classes, inverse = np.unique(y, return_inverse=True)
    if classes.size > limit:
        mass = np.bincount(inverse, weights=weight, minlength=classes.size)
        chosen = np.sort(np.argsort(-mass, kind="stable")[:limit])
    else:
        chosen = np.arange(classes.size)
    slot = np.full(classes.size, -1, dtype=INDEX)
    slot[chosen] = np.arange(chosen.size)
    target = slot[inverse]
    positions = np.flatnonzero(target >= 0).astype(INDEX)
    return classes[chosen].astype(INDEX), positions, target[positions]


def leaf_problem(
    data: TrainingData,
    rows: IndexArray,
    target: IndexArray,
    weight: AccumArray,
    n_targets: int,
    penalty: Penalty,
) -> tuple[NodeProblem, IndexArray]:
    """Return the softmax problem of a leaf (equation 3), and its features' ids."""
    local, features = gather(data.X, rows)
    return NodeProblem(local, target, weight, n_targets, penalty), features


def warm_router(router: Router, features: IndexArray) -> tuple[ParamArray, float]:
    """Express a router's weights over the features of a local problem."""
    weights = np.zeros(features.size, dtype=PARAM)
    here, there = _shared(features, router.features)
    weights[here] = router.weights[there]
    return weights, router.bias


def warm_leaf(
    leaf: Leaf, features: IndexArray, classes: IndexArray
) -> tuple[ParamArray, ParamArray]:
    """Express a leaf's weights over the features and classes of a local problem."""
    weights = np.zeros((features.size, classes.size), dtype=PARAM)
    bias = np.full(classes.size, leaf.bias.min(), dtype=PARAM)
    f_here, f_there = _shared(features, leaf.features)
    c_here, c_there = _shared(classes, leaf.classes)
    weights[np.ix_(f_here, c_here)] = leaf.weights[np.ix_(f_there, c_there)]
    bias[c_here] = leaf.bias[c_there]
    return weights, bias


def _shared(here: IndexArray, there: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return where the common entries of two ascending arrays stand in each."""
    at = np.searchsorted(there, here)
    found = at < there.size
    found[found] = there[at[found]] == here[found]
    return np.flatnonzero(found).astype(INDEX), at[found].astype(INDEX)


def as_router(solution: NodeSolution, features: IndexArray) -> Router:
    """Return the router of a solution, without its zero weights."""
    weights = solution.weights[:, 0]
    used = np.flatnonzero(weights)
    return Router(features[used], weights[used], float(solution.bias[0]))


def as_leaf(
    solution: NodeSolution, features: IndexArray, classes: IndexArray, *, sparse: bool = False
) -> Leaf:
    """Return the leaf of a solution, without the features whose weights are all zero.

    One for sparse rows may keep the other weights alone, where these are few.
    """
    used = np.flatnonzero(solution.weights.any(axis=1))
    leaf = Leaf(classes, features[used], solution.weights[used], solution.bias)
    return leaf.compact() if sparse else leaf

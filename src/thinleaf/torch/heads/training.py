"""Routers of a head by Tree Alternating Optimization (paper 001, section 4).

The tree is complete, and a leaf is a set of classes. The loss of a state at a leaf is what the full
layer would have said and the leaf does not keep, so nothing but its set is fitted at a leaf, and
states whose class is in all leaves are in no router's care set. Routers stand in the order of a
heap: the children of node i are 2i + 1 and 2i + 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

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
from thinleaf.execution import Executor
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import NodeProblem, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao.reduced import ChildLosses, care_set
from thinleaf.torch.heads.leaf_sets import Counts, LeafSets, choose_sets
from thinleaf.torch.heads.routers import Routers, leaves_below
from thinleaf.torch.heads.targets import FullAnswers

HeadLoss: TypeAlias = Literal["class", "mass", "margin"]

_PRECISION = Precision(1e-3, 6)
_LEAST_ROWS = 16
"""A router with fewer states to care for sends all to one side."""

_N_TRIES = 10
"""Steps of the two-means that start a router."""


@dataclass(frozen=True)
class TrainingSettings:
    """How routers are trained.

    Attributes
    ----------
    depth : int
    size : int
        Classes of a leaf.
    loss : {"class", "mass", "margin"}
        Of a state at a leaf: whether the full layer's class is missing, the probability of the
        classes that are, or by how much the best kept logit is lower.
    n_sweeps : int
    ridge : float
        On router weights.
    kappa : float
        By how many states a parent's estimate weighs in the choice of a leaf's classes.
    most_rows : int
        States that a router is fitted to at the most; others are left out at random.
    seed : int
    """

    depth: int
    size: int
    loss: HeadLoss = "mass"
    n_sweeps: int = 2
    ridge: float = 100.0
    kappa: float = 30.0
    most_rows: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject what is none of the losses."""
        if self.loss not in get_args(HeadLoss):
            raise ValueError(f"loss must be one of {get_args(HeadLoss)}, got {self.loss!r}")


def train_routers(
    states: ParamArray,
    answers: FullAnswers,
    counts: Counts,
    common: IndexArray,
    settings: TrainingSettings,
    executor: Executor,
) -> tuple[Routers, LeafSets]:
    """Train routers and choose the classes of leaves, by turns.

    Parameters
    ----------
    states : ndarray of shape (n, in_features)
        Of zero mean, in units in which ``ridge`` makes sense.
    answers : FullAnswers
    counts : Counts
        Of the same states: what leaves choose classes by.
    common : ndarray
        Classes that all leaves keep.
    settings : TrainingSettings
    executor : Executor
    """
    routers = _first_routers(states, answers.best, counts, common, settings, executor)
    sets = _sets_of(routers, states, counts, common, settings)
    for turn in range(settings.n_sweeps):
        loss_at = _Losses(answers, sets.members(counts.n_classes), settings.loss)
        routers = _sweep(routers, states, loss_at, settings, turn, executor)
        sets = _sets_of(routers, states, counts, common, settings)
    return routers, sets


def _sets_of(
    routers: Routers,
    states: ParamArray,
    counts: Counts,
    common: IndexArray,
    settings: TrainingSettings,
) -> LeafSets:
    leaf = routers.leaves_of(states)
    return choose_sets(counts, leaf, routers.n_leaves, settings.size, common, settings.kappa)


class _Losses:
    """The loss of states at leaves, given what each leaf keeps."""

    def __init__(self, answers: FullAnswers, members: BoolArray, kind: HeadLoss) -> None:
        self._members, self._kind = members, kind
        self._classes = answers.classes[:, :1] if kind == "class" else answers.classes
        if kind == "class":
            self._amount = np.ones((len(answers.classes), 1))
        elif kind == "mass":
            self._amount = answers.probabilities
        else:
            self._amount = (answers.logits[:, :1] - answers.logits).astype(ACCUM)
        self.matters: BoolArray = np.ones(len(answers.classes), dtype=np.bool_)
        if kind == "class":
            self.matters[:] = ~members[:, self._classes[:, 0]].all(axis=0)

    def __call__(self, rows: IndexArray, leaf: IndexArray) -> AccumArray:
        kept = self._members[leaf[:, None], self._classes[rows]]
        amount = self._amount[rows]
        if self._kind == "margin":
            lost: AccumArray = np.where(kept, amount, amount[:, -1:]).min(axis=1)
        else:
            lost = np.where(kept, 0.0, amount).sum(axis=1)
        return lost


def _sweep(
    routers: Routers,
    states: ParamArray,
    loss_at: _Losses,
    settings: TrainingSettings,
    turn: int,
    executor: Executor,
) -> Routers:
    """Fit every router once, from the deepest level to the root."""
    depth = settings.depth
    rows = np.flatnonzero(loss_at.matters).astype(INDEX)
    leaf = routers.leaves_of(states[rows])
    weights, bias = routers.weights.copy(), routers.bias.copy()
    for level in reversed(range(depth)):
        nodes = list(range(2**level - 1, 2 ** (level + 1) - 1))
        visits = []
        for node in nodes:
            first, end = leaves_below(node, depth)
            visits.append((node, rows[(leaf >= first) & (leaf < end)]))
        current = Routers(weights, bias)
        fit = partial(_fit_router, current, states, loss_at, settings, turn)
        costs = [float(reached.size) for _, reached in visits]
        for node, found in zip(nodes, executor.local.map(fit, visits, costs), strict=True):
            weights[node], bias[node] = found
    return Routers(weights, bias)


def _fit_router(
    routers: Routers,
    states: ParamArray,
    loss_at: _Losses,
    settings: TrainingSettings,
    turn: int,
    visit: tuple[int, IndexArray],
) -> tuple[ParamArray, float]:
    """Return weights and bias of the router that sends states to their cheaper child."""
    node, rows = visit
    old = routers.weights[node], float(routers.bias[node])
    rng = np.random.default_rng(np.random.SeedSequence((settings.seed, turn, node)))
    if rows.size > 4 * settings.most_rows:
        rows = np.sort(rng.choice(rows, 4 * settings.most_rows, replace=False))
    X = states[rows]
    losses = np.empty((rows.size, 2), dtype=ACCUM)
    for side in (0, 1):
        child = 2 * node + 1 + side
        first, end = leaves_below(child, settings.depth)
        if end - first == 1:
            leaf = np.full(rows.size, first, dtype=INDEX)
        else:
            leaf = (first + routers.below(child).leaves_of(X)).astype(INDEX)
        losses[:, side] = loss_at(rows, leaf)
    care = care_set(ChildLosses(losses, losses == 0.0), np.ones(rows.size))
    if care.positions.size < _LEAST_ROWS:
        return old
    chosen = np.arange(care.positions.size)
    if chosen.size > settings.most_rows:
        chosen = np.sort(rng.choice(chosen, settings.most_rows, replace=False))
    penalty = Penalty(0.0, settings.ridge)
    at, target, weight = care.positions[chosen], care.pseudolabel[chosen], care.weight[chosen]
    problem = NodeProblem(X[at], target, weight, 2, penalty)
    solution = solve_logistic(problem, old, _PRECISION)
    return solution.weights[:, 0], float(solution.bias[0])


def _first_routers(
    states: ParamArray,
    best: IndexArray,
    counts: Counts,
    common: IndexArray,
    settings: TrainingSettings,
    executor: Executor,
) -> Routers:
    """Return a tree whose routers tell two clusters of classes apart, level by level."""
    n_routers = 2**settings.depth - 1
    weights = np.zeros((n_routers, states.shape[1]), dtype=PARAM)
    bias = np.full(n_routers, -1.0, dtype=PARAM)
    everywhere = np.zeros(counts.n_classes, dtype=np.bool_)
    everywhere[common] = True
    rows = np.flatnonzero(~everywhere[best]).astype(INDEX)
    parts = {0: rows}
    for level in range(settings.depth):
        nodes = list(range(2**level - 1, 2 ** (level + 1) - 1))
        fit = partial(_first_router, states, best, settings)
        visits = [(node, parts[node]) for node in nodes]
        costs = [float(reached.size) for _, reached in visits]
        for node, found in zip(nodes, executor.local.map(fit, visits, costs), strict=True):
            weights[node], bias[node] = found
            right = states[parts[node]] @ weights[node] + bias[node] > 0.0
            parts[2 * node + 1], parts[2 * node + 2] = parts[node][~right], parts[node][right]
    return Routers(weights, bias)


def _first_router(
    states: ParamArray,
    best: IndexArray,
    settings: TrainingSettings,
    visit: tuple[int, IndexArray],
) -> tuple[ParamArray, float]:
    node, rows = visit
    rng = np.random.default_rng(np.random.SeedSequence((settings.seed, 1_000_000, node)))
    if rows.size > settings.most_rows:
        rows = np.sort(rng.choice(rows, settings.most_rows, replace=False))
    X = states[rows]
    target = _two_clusters(X, best[rows], rng)
    if target.size < _LEAST_ROWS or np.bincount(target, minlength=2).min() == 0:
        return np.zeros(states.shape[1], dtype=PARAM), -1.0
    penalty = Penalty(0.0, settings.ridge)
    problem = NodeProblem(X, target, np.ones(target.size), 2, penalty)
    solution = solve_logistic(problem, None, _PRECISION)
    return solution.weights[:, 0], float(solution.bias[0])


def _two_clusters(X: ParamArray, y: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Return the half of each row: classes are split by their mean states, so that rows are even.

    Two-means over the means of classes, weighted by their rows; then the order along the line
    between the centres decides, and the cut is where half of the rows are.
    """
    classes, slot = np.unique(y, return_inverse=True)
    if classes.size < 2:
        return np.zeros(y.size, dtype=INDEX)
    count = np.bincount(slot).astype(ACCUM)
    means = np.zeros((classes.size, X.shape[1]))
    np.add.at(means, slot, X)
    means /= count[:, None]
    centred = means - np.average(means, axis=0, weights=count)
    line: AnyArray = rng.standard_normal(size=(X.shape[1],))
    for _ in range(_N_TRIES):  # the first principal direction
        line = (count * (centred @ line)) @ centred
        line /= np.linalg.norm(line) + 1e-30
    along: AnyArray = centred @ line
    for _ in range(_N_TRIES):
        right: BoolArray = along > _middle(along, count)
        if right.all() or not right.any():
            break
        line = _mean(centred, count, right) - _mean(centred, count, ~right)
        along = centred @ line
    side = along > _middle(along, count)
    return side[slot].astype(INDEX)


def _mean(rows: AnyArray, count: AccumArray, chosen: BoolArray) -> AnyArray:
    """Return the weighted mean of some rows."""
    mean: AnyArray = count[chosen] @ rows[chosen] / count[chosen].sum()
    return mean


def _middle(along: AccumArray, count: AccumArray) -> float:
    """Return where half of the rows are on either side."""
    order = np.argsort(along, kind="stable")
    below = np.cumsum(count[order])
    at = min(int(np.searchsorted(below, 0.5 * below[-1])), order.size - 2)
    return float(0.5 * (along[order[at]] + along[order[at + 1]]))

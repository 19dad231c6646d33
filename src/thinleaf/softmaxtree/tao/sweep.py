"""One pass of Tree Alternating Optimization, as in Algorithm 1 of paper 001.

Levels from the deepest to the root; the nodes of a level are independent problems. A node's reach
set is fixed for the whole pass, because its ancestors change after it. The loss of a row at the
level just finished is what the level above needs, so each router only evaluates the child that a
row did not take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    NO_CHILD,
    AccumArray,
    AnyArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.rows import CSC
from thinleaf.execution import Executor, SerialExecutor
from thinleaf.model.patched_tree import PatchedTree, at_node, patched
from thinleaf.model.routing import Reach, choose_child, leaf_losses
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.objective import Objective
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao.overlap import Overlap
from thinleaf.softmaxtree.tao.reduced import (
    TrainingData,
    as_leaf,
    as_router,
    care_set,
    child_losses,
    leaf_problem,
    router_problem,
    top_classes,
    warm_leaf,
    warm_router,
)
from thinleaf.softmaxtree.tao.units import Units

RouterSolver: TypeAlias = Callable[
    [NodeProblem, tuple[ParamArray, float] | None, Precision], NodeSolution
]
LeafSolver: TypeAlias = Callable[
    [NodeProblem, tuple[ParamArray, ParamArray] | None, Precision], NodeSolution
]


@dataclass(frozen=True)
class Settings:
    """What a sweep minimises and how hard it tries.

    Attributes
    ----------
    objective : Objective
    leaf_limits : ndarray of shape (n_nodes,)
        The most classes that each leaf may hold; ignored at routers.
    precision : Precision
        Of every node problem.
    monotone : bool
        Take a node's solution only if it does not raise the objective.
    overlap : float, optional
        The smallest path probability at which a row trains a node that it does not reach, from the
        second sweep on; None: never.
    spread : ndarray of shape (n_features,), optional
        Of each feature over all training rows; for penalties in units of the node.
    solve_router, solve_leaf : callable
        The node solvers.
    warm_leaves : bool
        Give the solver of leaves what the leaf has, to start from.
    """

    objective: Objective
    leaf_limits: IndexArray
    precision: Precision = field(default_factory=Precision)
    monotone: bool = False
    overlap: float | None = None
    spread: AccumArray | None = None
    solve_router: RouterSolver = solve_logistic
    solve_leaf: LeafSolver = solve_softmax
    warm_leaves: bool = True


@dataclass
class State:
    """What a sweep hands to the next: each row's loss under the current tree, and what was solved.

    Attributes
    ----------
    loss, correct : ndarray of shape (n_rows,)
        At the node last optimised on each row's path; after a sweep, of the whole tree.
    solved : dict
        For each node, a fingerprint of the problem that its parameters solve.
    """

    loss: AccumArray
    correct: BoolArray
    solved: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_rows: int) -> State:
        """Return the state before anything is known."""
        return cls(np.full(n_rows, np.inf, dtype=ACCUM), np.zeros(n_rows, dtype=np.bool_))


@dataclass(frozen=True)
class Visit:
    """What is known of a node before it is fitted, and of the rows that reach it.

    Attributes
    ----------
    node : int
    rows : ndarray
        Its reach set: the left child's rows, then the right child's.
    n_left : int
        How many are the left child's.
    loss, correct : ndarray
        Of each row, under the current tree.
    solved : bytes, optional
        The fingerprint of the problem that its parameters solve.
    near : Overlap, optional
    """

    node: int
    rows: IndexArray
    n_left: int
    loss: AccumArray
    correct: BoolArray
    solved: bytes | None
    near: Overlap | None

    @classmethod
    def of(
        cls, tree: Tree, node: int, reach: Reach, state: State, near: Overlap | None = None
    ) -> Visit:
        """Return what a sweep knows of one node."""
        rows, left = reach.of(node), int(tree.children[node, 0])
        n_left = 0 if left == NO_CHILD else int(reach.sizes[left])
        solved = state.solved.get(node)
        return cls(node, rows, n_left, state.loss[rows], state.correct[rows], solved, near)

    def training_rows(self, data: TrainingData) -> tuple[IndexArray, AccumArray]:
        """Return the rows that train the node, guests last, and their weights."""
        if self.near is None:
            return self.rows, data.weight[self.rows]
        return self.near.join(self.rows, data.weight)


@dataclass(frozen=True)
class NodeUpdate:
    """The outcome of one node: new parameters (None: kept), losses of its rows, fingerprint."""

    parameters: Router | Leaf | None
    loss: AccumArray
    correct: BoolArray
    fingerprint: bytes | None
    was_solved: bool


def sweep(
    tree: Tree,
    data: TrainingData,
    reach: Reach,
    state: State,
    settings: Settings,
    executor: Executor,
    near: Mapping[int, Overlap] | None = None,
    *,
    leaves_only: bool = False,
) -> tuple[Tree, int]:
    """Optimise every node once; return the new tree and how many problems were solved."""
    n_solved = 0
    near = near or {}
    given = (executor.share(data), executor.share(settings))
    current = executor.share(tree)
    for level in reversed(tree.levels()):
        visits = [
            Visit.of(tree, node, reach, state, near.get(node))
            for node in level.tolist()
            if reach.sizes[node] > 0 and (tree.is_leaf[node] or not leaves_only)
        ]
        # the root alone would leave the other workers idle: it gets them all
        fit = partial(fit_node, helpers=executor.local) if len(visits) == 1 else fit_node
        costs = [float(visit.rows.size) for visit in visits]
        updates = executor.map(fit, visits, costs, shared=(*given, current))
        changed: dict[int, Router | Leaf] = {}
        for visit, update in zip(visits, updates, strict=True):
            state.loss[visit.rows] = update.loss
            state.correct[visit.rows] = update.correct
            n_solved += update.was_solved
            if update.parameters is not None:
                changed[visit.node] = update.parameters
            if update.fingerprint is None:
                state.solved.pop(visit.node, None)
            else:
                state.solved[visit.node] = update.fingerprint
        if changed:
            tree = tree.replace(changed)
            current = current.changed(tree, patched, changed)
    return tree, n_solved


def fit_node(
    data: TrainingData,
    settings: Settings,
    tree: Tree | PatchedTree,
    visit: Visit,
    helpers: Executor | None = None,
) -> NodeUpdate:
    """Fit a leaf or a router; this is the task that executors get."""
    if tree.is_leaf[visit.node]:
        return fit_leaf(tree, visit, data, settings)
    return fit_router(tree, visit, data, settings, helpers or SerialExecutor())


def fit_leaf(
    tree: Tree | PatchedTree, visit: Visit, data: TrainingData, settings: Settings
) -> NodeUpdate:
    """Fit the softmax of the most frequent classes of a leaf's reach set."""
    rows, limit = visit.rows, int(settings.leaf_limits[visit.node])
    training_rows, weight = visit.training_rows(data)
    fingerprint = _fingerprint(training_rows, weight)
    if visit.solved == fingerprint:
        return NodeUpdate(None, visit.loss, visit.correct, fingerprint, False)
    objective = settings.objective
    old = tree.leaf(visit.node)
    leaf, converged = train_leaf(data, training_rows, weight, limit, old, settings)
    loss, correct = _losses_at(leaf, rows, data, objective)
    # a leaf wider than it may be is not one that could be kept
    if settings.monotone and old.classes.size <= limit:
        old_loss, old_correct = _losses_at(old, rows, data, objective)
        if _cost(leaf, loss, data.weight[rows], objective) > _cost(
            old, old_loss, data.weight[rows], objective
        ):
            return NodeUpdate(None, old_loss, old_correct, fingerprint, True)
    return NodeUpdate(leaf, loss, correct, fingerprint if converged else None, True)


def train_leaf(
    data: TrainingData,
    rows: IndexArray,
    weight: AccumArray,
    limit: int,
    old: Leaf,
    settings: Settings,
) -> tuple[Leaf, bool]:
    """Return a leaf of the most frequent classes of some rows, and whether its problem is solved.

    Parameters
    ----------
    rows, weight : ndarray of shape (n_rows,)
    limit : int
        The most classes that it may hold.
    old : Leaf
        To start from.
    """
    classes, inside, target = top_classes(data.y[rows], weight, limit)
    if classes.size == 1:
        return Leaf.constant(int(classes[0])), True
    penalty = settings.objective.leaves
    problem, features = leaf_problem(
        data, rows[inside], target, weight[inside], classes.size, penalty
    )
    known = settings.warm_leaves and old.features.size > 0
    warm = warm_leaf(old, features, classes) if known else None
    solution = _solve(settings.solve_leaf, problem, warm, settings)
    sparse = isinstance(problem.X, CSC)
    return as_leaf(solution, features, classes, sparse=sparse), solution.converged


def fit_router(
    tree: Tree | PatchedTree,
    visit: Visit,
    data: TrainingData,
    settings: Settings,
    executor: Executor,
) -> NodeUpdate:
    """Fit the hyperplane that sends each row of the care set to its cheaper child."""
    rows = visit.rows
    training_rows, weight = visit.training_rows(data)
    objective = settings.objective
    went = (np.arange(rows.size) >= visit.n_left).astype(np.int32)
    known = (visit.loss, visit.correct)
    below, node = at_node(tree, visit.node)
    losses = child_losses(below, node, data, training_rows, went, known, objective, executor)
    care = care_set(losses, weight)
    fingerprint = _fingerprint(training_rows[care.positions], care.pseudolabel, care.weight)
    old = below.router(node)
    if visit.solved == fingerprint or care.positions.size == 0:
        kept = losses.choose(choose_child(old, data.X, rows))
        return NodeUpdate(None, *kept, fingerprint, False)
    problem, features = router_problem(data, training_rows, care, objective.routers)
    warm = warm_router(old, features) if old.features.size else None
    solution = _solve(settings.solve_router, problem, warm, settings)
    router = as_router(solution, features)
    chosen = choose_child(router, data.X, rows)
    loss, correct = losses.choose(chosen)
    if settings.monotone:
        weight = data.weight[rows]
        kept = losses.choose(choose_child(old, data.X, rows))
        if _cost(router, loss, weight, objective) > _cost(old, kept[0], weight, objective):
            return NodeUpdate(None, *kept, fingerprint, True)
    converged = solution.converged
    return NodeUpdate(router, loss, correct, fingerprint if converged else None, True)


def _solve(
    solver: Callable[..., NodeSolution], problem: NodeProblem, warm: Any, settings: Settings
) -> NodeSolution:
    """Solve a node's problem, in units of the node if its penalty is in these."""
    if settings.spread is None or not problem.penalty.in_node_units:
        return solver(problem, warm, settings.precision)
    units = Units.of(problem, settings.spread)
    return units.leave(solver(units.enter(problem), units.enter_start(warm), settings.precision))


def _losses_at(
    leaf: Leaf, rows: IndexArray, data: TrainingData, objective: Objective
) -> tuple[AccumArray, BoolArray]:
    cross_entropy, correct = leaf_losses(leaf, data.X, data.y, rows)
    return objective.row_losses(cross_entropy, correct), correct


def _cost(node: Router | Leaf, loss: AccumArray, weight: AccumArray, objective: Objective) -> float:
    """Return the part of the objective that depends on one node."""
    return float(loss @ weight) + objective.penalty(node)


def _fingerprint(*arrays: AnyArray) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()

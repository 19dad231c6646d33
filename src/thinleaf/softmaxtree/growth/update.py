"""A fitted tree learns more rows: nodes that these reach are corrected, by rows that it remembers.

Not in the papers. Each node problem is that of training, but for what is added to the node: scores
of the node as it is are the offset of its problem, and the penalty holds the solution near zero.
Classes that a leaf lacks enter it where their rows land. Rows from memory stand for all that were
learned before. Nodes that no new row reaches, or nearly reaches, stay as they are, so the work is
that of the new rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    PARAM,
    SLOT,
    AccumArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.rows import CSC, Local
from thinleaf.execution import Executor, SerialExecutor
from thinleaf.model.nodes import Leaf, Router, SparseLeaf
from thinleaf.model.routing import choose_child, losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.memory import join_rows
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.solvers.hinge import solve_hinge, solve_hinge_router
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution
from thinleaf.softmaxtree.tao.overlap import Overlap, find_overlap
from thinleaf.softmaxtree.tao.reduced import (
    ChildLosses,
    TrainingData,
    care_set,
    child_losses,
    leaf_problem,
    router_problem,
    warm_router,
)
from thinleaf.softmaxtree.tao.sweep import LeafSolver, RouterSolver, Settings
from thinleaf.softmaxtree.tao.units import Units

LEAST_SHARE = 0.25
"""Weight of new rows of a class at a leaf, by their path probabilities, from which it enters it."""

_OLD, _NEW = 4.0, 0.3
"""What the ridge is multiplied by, for classes that a leaf holds and for those that enter it: what
is added to weights that are known is to be small, and memory shows a new class less than there is.
"""

_PER_ROW = 0.03
"""What the ridge of dense softmaxes rises by with each old row of a leaf, for features of unit
size; about the curvature that a row gives to a weight."""

ROUTER_HOLD = 30.0
"""The same for routers."""

NEAR = 0.05
"""The smallest path probability of rows that correct a leaf beside its path."""

REPLAY = 4
LEAST_REPLAY = 200
"""Rows from memory at a node, for each new row there, and how many there may be in any case."""

_STEPS = 1
"""Newton steps of margins, each of several passes; likelihoods take those of training."""

_LEAST_WEIGHT = 0.2
"""New weights of margins that are smaller are left out, as in training: they are most of them."""

_LEAST_REGRET = 0.03
"""Share of its new rows that a router must send to a child that is worse for them."""


@dataclass(frozen=True)
class Corrected:
    """A tree that has learned some more rows.

    Attributes
    ----------
    tree : Tree
    leaves, routers : ndarray
        Nodes that were corrected.
    """

    tree: Tree
    leaves: IndexArray
    routers: IndexArray


def correct(
    tree: Tree,
    old: TrainingData,
    new: TrainingData,
    settings: Settings,
    sharpness: float,
    executor: Executor,
) -> Corrected:
    """Return a tree that has learned new rows.

    Parameters
    ----------
    tree : Tree
        With all classes of both.
    old : TrainingData
        Rows from memory, with the weight of those that they stand for.
    new : TrainingData
    settings : Settings
        Of the tree's training.
    sharpness : float
        What scores of its leaves were multiplied by after training.
    """
    X = join_rows(old.X, new.X)
    y, weight = np.concatenate([old.y, new.y]), np.concatenate([old.weight, new.weight])
    data = TrainingData(X, y, weight, new.n_classes)
    if settings.solve_leaf is solve_hinge:
        settings = replace(settings, precision=replace(settings.precision, max_iter=_STEPS))
    visits = _visits(tree, data, old.n_rows, settings, executor)
    at_leaves = [visit for visit in visits if tree.is_leaf[visit.node]]
    fit = partial(_corrected_leaf, data, settings, tree, sharpness)
    found = executor.local.map(fit, at_leaves, [float(v.rows.size) for v in at_leaves])
    leaves = {v.node: leaf for v, leaf in zip(at_leaves, found, strict=True) if leaf is not None}
    tree = tree.replace(leaves)
    routers: dict[int, Router] = {}
    by_node = {visit.node: visit for visit in visits}
    wrong = np.zeros(data.n_rows, dtype=np.bool_)
    wrong[old.n_rows :] = ~losses(tree, new.X, new.y, route(tree, new.X))[1]
    for level in reversed(tree.levels()):
        some = [by_node[i] for i in level.tolist() if i in by_node and not tree.is_leaf[i]]
        fix = partial(_corrected_router, data, settings, tree, wrong)
        turned = executor.local.map(fix, some, [float(v.rows.size) for v in some])
        changed = {v.node: r for v, r in zip(some, turned, strict=True) if r is not None}
        if changed:
            tree = tree.replace(changed)
            routers |= changed
    return Corrected(tree, _nodes(leaves), _nodes(routers))


def _nodes(changed: Mapping[int, Router | Leaf]) -> IndexArray:
    return np.array(sorted(changed), dtype=INDEX)


@dataclass(frozen=True)
class _Visit:
    """The rows that correct a node, and their weights; new rows come last."""

    node: int
    rows: IndexArray
    weight: AccumArray
    n_new: int


def _visits(
    tree: Tree, data: TrainingData, n_old: int, settings: Settings, executor: Executor
) -> list[_Visit]:
    """Return a visit for each node that new rows reach, or nearly reach."""
    reach = route(tree, data.X)
    near: Mapping[int, Overlap] = {}
    if settings.overlap is not None:
        near = find_overlap(tree, data.X, reach, max(settings.overlap, NEAR), executor)
    visits = []
    for node in range(tree.n_nodes):
        rows = reach.of(node)
        weight = data.weight[rows]
        if node in near:
            rows, weight = near[node].join(rows, data.weight)
        is_new = rows >= n_old
        n_new = int(is_new.sum())
        if n_new == 0:
            continue
        order = np.argsort(rows, kind="stable")
        rows, weight = rows[order], weight[order]
        n = rows.size - n_new
        most = max(REPLAY * n_new, LEAST_REPLAY)
        if n > most:
            chosen = np.linspace(0, n - 1, most).astype(INDEX)
            kept = weight[chosen] * (weight[:n].sum() / weight[chosen].sum())
            rows = np.concatenate([rows[chosen], rows[n:]])
            weight = np.concatenate([kept, weight[n:]])
        visits.append(_Visit(node, rows, weight, n_new))
    return visits


# -- leaves ----------------------------------------------------------------------------------------


def _corrected_leaf(
    data: TrainingData, settings: Settings, tree: Tree, sharpness: float, visit: _Visit
) -> Leaf | None:
    """Return a leaf whose classes of new rows are corrected; others stay as they are.

    These are one class to the problem, the rest, whose score is what they have together.
    """
    old = tree.leaf(visit.node)
    y = data.y[visit.rows]
    fresh, at = np.unique(y[-visit.n_new :], return_inverse=True)
    mass = np.bincount(at, weights=visit.weight[-visit.n_new :], minlength=fresh.size)
    free = fresh[mass >= LEAST_SHARE].astype(INDEX)
    if free.size == 0 or (free.size == 1 and np.array_equal(free, old.classes)):
        return None
    known = _within(y, old.classes) | _within(y, free)
    rows, weight, y = visit.rows[known], visit.weight[known], y[known]
    slot = np.minimum(np.searchsorted(free, y), free.size - 1)
    target = np.where(free[slot] == y, slot + 1, 0).astype(INDEX)
    problem, features = leaf_problem(
        data, rows, target, weight, free.size + 1, settings.objective.leaves
    )
    held = _within(old.classes, free)
    was = np.concatenate([[True], _within(free, old.classes)])
    n_old = float(visit.weight[: -visit.n_new].sum())
    hold = _hold(problem, was, n_old)
    problem = replace(problem, hold=hold)
    scores = np.zeros((rows.size, free.size + 1), dtype=PARAM)
    at = np.searchsorted(free, old.classes[held])
    margins = settings.solve_leaf is solve_hinge
    before = _leaf_scores(old, problem.X, features, held if margins else None)
    if margins:
        scores[:, at + 1] = before / PARAM(sharpness)
    else:
        before /= PARAM(sharpness)
        scores[:, at + 1] = before[:, held]
        scores[:, 0] = -np.inf if held.all() else logsumexp(before[:, ~held], axis=1)
    if not margins and held.all():  # there is no rest
        problem = replace(problem, target=target - INDEX(1), n_targets=free.size, hold=hold[1:])
        solution = _solve(settings.solve_leaf, problem, scores[:, 1:], settings)
        W, b = solution.weights, solution.bias
    else:
        solution = _solve(settings.solve_leaf, problem, scores, settings)
        W, b = solution.weights[:, 1:], solution.bias[1:]
        if not margins:
            W, b = W - solution.weights[:, :1], b - solution.bias[0]
    least = _LEAST_WEIGHT * sharpness if margins else 0.0
    W, b = W * PARAM(sharpness), b * PARAM(sharpness)
    return _sum(old, W, b, features, free, least, tree.n_features)


def _within(values: IndexArray, ascending: IndexArray) -> BoolArray:
    """Return which values are among some that are ascending, of which there is one at least."""
    at = np.minimum(np.searchsorted(ascending, values), ascending.size - 1)
    found: BoolArray = ascending[at] == values
    return found


def _joined(n_features: int, *parts: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return features that occur in some of the parts, ascending, and where each one stands."""
    there = np.zeros(n_features, dtype=np.bool_)
    for part in parts:
        there[part] = True
    return np.flatnonzero(there).astype(INDEX), np.cumsum(there) - 1


def _hold(problem: NodeProblem, was: BoolArray, n_old: float) -> ParamArray:
    """Return what the ridge of each class is multiplied by.

    Dense rows tell nearly all there is to know of a leaf's weights, so these are held as far as
    there were rows to tell it; of sparse rows, each tells of other weights.

    Parameters
    ----------
    was : ndarray of shape (n_targets,)
        Which classes are known.
    n_old : float
        Weight of the rows that had taught them.
    """
    if isinstance(problem.X, CSC):
        return np.where(was, _OLD, _NEW).astype(PARAM)
    unit = 1.0 if problem.penalty.in_node_units else float(np.square(problem.X).mean())
    ridge = max(problem.penalty.ridge, 1e-9)
    return np.where(was, 1.0 + _PER_ROW * n_old * unit / ridge, 1.0).astype(PARAM)


def _leaf_scores(leaf: Leaf, X: Local, features: IndexArray, some: BoolArray | None) -> ParamArray:
    """Return the scores of local rows at a leaf, of shape (n_rows, k); of some classes alone."""
    k = leaf.classes.size
    if features.size == 0 or leaf.features.size == 0:
        bias = leaf.bias if some is None else leaf.bias[some]
        n_rows = X.n_rows if isinstance(X, CSC) else X.shape[0]
        return np.tile(bias, (n_rows, 1))
    sizes, slots, values = leaf.nonzero()
    at = np.minimum(np.searchsorted(features, leaf.features), features.size - 1)
    there = features[at] == leaf.features
    entry = np.repeat(there, sizes)
    column = np.arange(k)
    bias = leaf.bias
    if some is not None:
        entry &= some[slots]
        column, bias = np.cumsum(some) - 1, bias[some]
    W = np.zeros((features.size, bias.size), dtype=PARAM)
    W[np.repeat(at, sizes)[entry], column[slots[entry]]] = values[entry]
    return _times(X, W) + bias


def _times(X: Local, weights: ParamArray) -> ParamArray:
    """Return local rows times weights."""
    if isinstance(X, CSC):
        shape = (X.n_rows, X.indptr.size - 1)
        out: ParamArray = sp.csc_matrix((X.data, X.indices, X.indptr), shape=shape) @ weights
        return out
    return X @ weights


def _solve(
    solver: RouterSolver | LeafSolver,
    problem: NodeProblem,
    scores: ParamArray,
    settings: Settings,
) -> NodeSolution:
    """Return what is to be added to a node whose rows have some scores."""
    problem = replace(problem, offset=np.ascontiguousarray(scores, dtype=PARAM))
    if settings.spread is None or not problem.penalty.in_node_units:
        return solver(problem, None, settings.precision)
    units = Units.of(problem, settings.spread)
    return units.leave(solver(units.enter(problem), None, settings.precision))


def _sum(
    old: Leaf,
    added: ParamArray,
    added_bias: ParamArray,
    features: IndexArray,
    free: IndexArray,
    least: float,
    n_features: int,
) -> Leaf:
    """Return a leaf with weights added to those of some classes, which it may lack.

    Parameters
    ----------
    added : ndarray of shape (n_features, n_free)
    added_bias : ndarray of shape (n_free,)
    features, free : ndarray
        What these are of, ascending.
    least : float
        Of weights that are not zero where there was none.
    n_features : int
        Of the tree.
    """
    classes = np.union1d(old.classes, free).astype(INDEX)
    k = classes.size
    bias = np.zeros(k, dtype=PARAM)
    was, now = np.searchsorted(classes, old.classes), np.searchsorted(classes, free)
    bias[was] = old.bias
    bias[now] += added_bias
    sizes, slots, values = old.nonzero()
    at = np.flatnonzero(np.abs(added.ravel()) > 0.1 * least)
    f_at, c_at = at // free.size, at % free.size
    all_features, row_of = _joined(n_features, old.features, features[f_at])
    old_rows = np.repeat(row_of[old.features], sizes)
    new_rows = row_of[features[f_at]]
    keys = np.concatenate([old_rows * k + was[slots], new_rows * k + now[c_at]])
    total = np.concatenate([values, added.ravel()[at]])
    order = np.argsort(keys, kind="stable")
    keys, total = keys[order], total[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    keys, total, is_old = keys[starts], np.add.reduceat(total, starts), order[starts] < values.size
    kept = is_old | (np.abs(total) >= least)
    keys, total = keys[kept], total[kept]
    rows = keys // k
    row_sizes = np.bincount(rows, minlength=all_features.size)
    used = row_sizes > 0
    leaf = SparseLeaf(
        classes, all_features[used], row_sizes[used].astype(INDEX), (keys % k).astype(SLOT),
        total.astype(PARAM), bias,
    )  # fmt: skip
    return leaf if isinstance(old, SparseLeaf) else Leaf(classes, leaf.features, leaf.weights, bias)


# -- routers ---------------------------------------------------------------------------------------


def _corrected_router(
    data: TrainingData, settings: Settings, tree: Tree, wrong: BoolArray, visit: _Visit
) -> Router | None:
    """Return a router that sends rows to the child that is cheaper by now.

    None if it does so for all but a few of the new rows that are labelled wrongly.
    """
    old = tree.router(visit.node)
    fresh = visit.rows[-visit.n_new :]
    fresh = fresh[wrong[fresh]]
    few = max(_LEAST_REGRET * visit.n_new, 2.0)
    if fresh.size < few or not old.weights.any():
        return None
    below = _both_losses(data, settings, tree, visit.node, fresh)
    other = 1 - choose_child(old, data.X, fresh)
    if below.choose(other)[1].sum() < few:
        return None
    care = care_set(_both_losses(data, settings, tree, visit.node, visit.rows), visit.weight)
    if np.unique(care.pseudolabel).size < 2:
        return None
    penalty = replace(
        settings.objective.routers, ridge=ROUTER_HOLD * settings.objective.routers.ridge
    )
    problem, features = router_problem(data, visit.rows, care, penalty)
    weights, bias = warm_router(old, features)
    scores = _times(problem.X, weights[:, None]) + PARAM(bias)
    solution = _solve(settings.solve_router, problem, scores, settings)
    all_features, at = _joined(tree.n_features, old.features, features)
    W = np.zeros(all_features.size, dtype=PARAM)
    W[at[old.features]] = old.weights
    known = W != 0.0
    W[at[features]] += solution.weights[:, 0]
    if settings.solve_router is solve_hinge_router:
        W[~known & (np.abs(W) < _LEAST_WEIGHT)] = 0.0
    used = np.flatnonzero(W)
    return Router(all_features[used], W[used], float(old.bias + solution.bias[0]))


def _both_losses(
    data: TrainingData, settings: Settings, tree: Tree, node: int, rows: IndexArray
) -> ChildLosses:
    """Return the losses of rows down either child of a router."""
    none, known = np.empty(0, INDEX), (np.empty(0, ACCUM), np.empty(0, np.bool_))
    objective = settings.objective
    return child_losses(tree, node, data, rows, none, known, objective, SerialExecutor())


# -- classes ---------------------------------------------------------------------------------------


def with_classes(tree: Tree, new_id: IndexArray, n_classes: int) -> Tree:
    """Return a tree with class ``new_id[i]``, ascending, in place of class i."""
    return replace(tree, n_classes=n_classes, class_ids=new_id[tree.class_ids])


def without_class(tree: Tree, class_id: int) -> tuple[Tree, IndexArray]:
    """Return a tree that does not know a class; others keep their numbers.

    A leaf that held nothing else goes, and its sibling takes the place of their router.

    Returns
    -------
    tree : Tree
    kept : ndarray of shape (n_nodes of the result,)
        The old node that each new node stands for.
    """
    alive = np.ones(tree.n_nodes, dtype=np.bool_)
    leaves: dict[int, Leaf] = {}
    for node in np.flatnonzero(tree.is_leaf).tolist():
        classes = tree.classes_of(node)
        at = int(np.searchsorted(classes, class_id))
        if at == classes.size or classes[at] != class_id:
            continue
        if classes.size == 1:
            alive[node] = False
        else:
            leaves[node] = _without_slot(tree.leaf(node), at)
    for node in range(tree.n_nodes - 1, -1, -1):
        if not tree.is_leaf[node]:
            alive[node] = alive[tree.children[node]].any()
    if not alive[0]:
        raise ValueError("no leaf would have a class left")
    return prune(tree.replace(leaves) if leaves else tree, alive)


def _without_slot(leaf: Leaf, slot: int) -> Leaf:
    """Return a leaf without one of its classes."""
    others = np.arange(leaf.classes.size) != slot
    classes, bias = leaf.classes[others], leaf.bias[others]
    if classes.size == 1:
        return Leaf.constant(int(classes[0]))
    if not isinstance(leaf, SparseLeaf):
        return Leaf(classes, leaf.features, np.ascontiguousarray(leaf.weights[:, others]), bias)
    rows = np.repeat(np.arange(leaf.features.size), leaf.row_sizes)
    kept = leaf.slots != slot
    sizes = np.bincount(rows[kept], minlength=leaf.features.size).astype(INDEX)
    slots = leaf.slots[kept]
    slots = np.where(slots > slot, slots - 1, slots).astype(SLOT)
    used = sizes > 0
    return SparseLeaf(classes, leaf.features[used], sizes[used], slots, leaf.values[kept], bias)

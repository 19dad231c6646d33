"""Trials before a tree is grown: the loss of its leaves, their ridge, and how deep to start.

Not in the papers, which set λ, μ and Δ₀ by hand. Rows that are not fitted decide. Loss and ridge
are tried on a sample of the initial tree's leaves, each alone: their problems are small, and
routers have no part in it. Then the tree is compared with one flat leaf, where that is affordable:
text of few classes and dense vectors of many features often want no router.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, AccumArray, IndexArray
from thinleaf.arrays.rows import CSR
from thinleaf.execution import Executor, SerialExecutor
from thinleaf.model.routing import leaf_losses, leaf_of_rows, route
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.initial_tree import InitialTree
from thinleaf.softmaxtree.tao import Settings, TrainingData, Validation, optimise
from thinleaf.softmaxtree.tao.overlap import find_overlap
from thinleaf.softmaxtree.tao.sweep import train_leaf

LeafLoss: TypeAlias = Literal["softmax", "hinge"]

_SAMPLE_ROWS = 12_000
_SAMPLE_GUESTS = 40_000
"""Rows of leaves that are tried, with and without their guests."""

_SAMPLE_VALUES = 400_000
"""Of sparse rows, values that are not zero."""

_MOST_WEIGHTS = 3_000_000_000
"""Of the blocks of a whole tree, most of which are zero: with less ridge fewer of them are."""

_LOSS_SHARE = 0.05
_CLOSE = 1.03
"""How many times the score of the best loss another one may have to be followed."""

_SHARPER, _SHARPEST = 2.0**0.5, 2.9
_STEP = 3.0
_MOST_STEPS = 4
_LEAST_FALL = 0.01
FIRST_STRENGTH: dict[LeafLoss, float] = {"softmax": 0.09, "hinge": 0.7}
"""Ridge for rows of unit length at which the search begins."""


@dataclass(frozen=True)
class LeafKind:
    """Loss of the leaves, and their ridge, for rows of unit length.

    ``axis``: trees start from splits by one feature, and routers may be such splits. ``deep``: from
    a decision tree.
    """

    loss: LeafLoss
    strength: float
    axis: bool = False
    deep: bool = False


SettingsOf: TypeAlias = Callable[[LeafKind, IndexArray], Settings]
"""From what leaves are like, and the most classes of each, to settings."""


@dataclass(frozen=True)
class Start:
    """A tree whose nodes were fitted once, to grow from.

    Attributes
    ----------
    tree : Tree
    depth : int
        That it started with.
    leaf_limits : ndarray of shape (n_nodes,)
    solved : dict
        For each node, a fingerprint of the problem that its parameters solve.
    first, kind : LeafKind
        That it was fitted with, and to go on with.
    error : float
        Of the judge's rows.
    """

    tree: Tree
    depth: int
    leaf_limits: IndexArray
    solved: dict[int, bytes]
    first: LeafKind
    kind: LeafKind
    error: float


def choose_leaf_kind(
    start: InitialTree,
    data: TrainingData,
    judge: TrainingData,
    settings_of: SettingsOf,
    kinds: Sequence[LeafLoss],
    limits: IndexArray,
    seed: np.random.SeedSequence,
    executor: Executor | None = None,
) -> list[LeafKind]:
    """Return the losses that are worth a trial with their best ridge, the best first.

    They are tried leaf by leaf. A loss that is clearly behind before its ridge is looked for is not
    followed any further, unless it is the first that was named.

    Parameters
    ----------
    start : InitialTree
        Whose leaves are tried, on the rows that they start with.
    data, judge : TrainingData
        Rows to fit, and rows to decide by.
    settings_of : callable
    kinds : sequence of {"softmax", "hinge"}
        Losses to try.
    limits : ndarray of shape (n_nodes,)
    """
    sample = list(_some(_sample_leaves(start, data, judge, seed), data, _SAMPLE_ROWS))

    @cache
    def score(loss: LeafLoss, strength: float) -> float:
        settings = settings_of(LeafKind(loss, strength), limits)
        return _scores(sample, data, judge, settings, executor)[0]

    found: list[tuple[float, LeafKind]] = []
    for loss in sorted(kinds, key=lambda loss: score(loss, FIRST_STRENGTH[loss])):
        first = score(loss, FIRST_STRENGTH[loss])
        if not found or loss == kinds[0] or first <= _CLOSE * found[0][0]:
            least, strength = search(partial(score, loss), FIRST_STRENGTH[loss])
            found.append((least, LeafKind(loss, strength)))
    return [kind for _, kind in sorted(found, key=lambda pair: pair[0])]


def search(
    score: Callable[[float], float], first: float, least_fall: float = 0.0
) -> tuple[float, float]:
    """Return the lowest score and its strength, going on in the direction in which it falls.

    A step that lowers the score by no more than the share ``least_fall`` ends the search.
    """
    best, at = score(first), first
    for factor in (1.0 / _STEP, _STEP):
        for _ in range(_MOST_STEPS):
            value = score(at * factor)
            if value >= best * (1.0 - least_fall):
                break
            best, at = value, at * factor
        if at != first:
            break
    return best, at


def look_again(
    tree: Tree,
    data: TrainingData,
    judge: TrainingData,
    settings_of: SettingsOf,
    kinds: Sequence[LeafKind],
    limits: IndexArray,
    seed: np.random.SeedSequence,
    executor: Executor,
) -> LeafKind:
    """Return the kind of leaves, with the ridge, that suits them once they have guests.

    Guests are many, each counts little, and rows that went astray are among those to be answered:
    a leaf then wants far less ridge than with its own classes alone.

    Parameters
    ----------
    tree : Tree
        After a sweep; a sample of its leaves is tried, on the rows that reach them and on guests.
    data, judge, settings_of, limits
        As in :func:`choose_leaf_kind`.
    """
    overlap = settings_of(kinds[0], limits).overlap
    if overlap is None:
        return kinds[0]
    reach, judged = route(tree, data.X), route(tree, judge.X)
    near = find_overlap(tree, data.X, reach, overlap, executor)
    leaves = np.flatnonzero(tree.is_leaf & (reach.sizes > 0) & (judged.sizes > 0))
    candidates = (
        _SampleLeaf(leaf, *near[leaf].join(reach.of(leaf), data.weight), judged.of(leaf))
        for leaf in np.random.default_rng(seed).permutation(leaves).tolist()
    )
    sample = list(_some(candidates, data, _SAMPLE_GUESTS))
    n_rows = sum(near[leaf].share.size + near[leaf].guests.size for leaf in leaves.tolist())
    times = n_rows / max(sum(leaf.rows.size for leaf in sample), 1)

    def score(loss: LeafLoss, strength: float) -> float:
        settings = settings_of(LeafKind(loss, strength), limits)
        total, n_weights = _scores(sample, data, judge, settings, executor)
        return math.inf if times * n_weights > _MOST_WEIGHTS and strength < most else total

    most = max(kind.strength for kind in kinds)
    best, found = math.inf, kinds[0]
    # the one that is quicker, unless another is clearly better
    for kind in sorted(kinds, key=lambda kind: kind.loss != "hinge"):
        begin, scored = kind.strength / _STEP, cache(partial(score, kind.loss))
        if scored(begin) > best:
            continue
        least, strength = search(scored, begin, _LEAST_FALL)
        if _CLOSE * least < best:
            best, found = least, LeafKind(kind.loss, strength)
    return found


@dataclass(frozen=True)
class _SampleLeaf:
    """A leaf: its number, the rows that train it with their weights, and those that judge it."""

    node: int
    rows: IndexArray
    weight: AccumArray
    judged: IndexArray


def _sample_leaves(
    start: InitialTree, data: TrainingData, judge: TrainingData, seed: np.random.SeedSequence
) -> Iterator[_SampleLeaf]:
    leaf_of_row, leaf_of_judged = _leaves_of(start, data, judge)
    leaves = np.flatnonzero(start.tree.is_leaf)
    for leaf in np.random.default_rng(seed).permutation(leaves).tolist():
        rows = np.flatnonzero(leaf_of_row == leaf).astype(INDEX)
        judged = np.flatnonzero(leaf_of_judged == leaf).astype(INDEX)
        yield _SampleLeaf(leaf, rows, data.weight[rows], judged)


def _some(leaves: Iterable[_SampleLeaf], data: TrainingData, most: int) -> Iterator[_SampleLeaf]:
    """Yield leaves that have something to decide, until their rows are enough."""
    if isinstance(data.X, CSR):
        most = min(most, int(_SAMPLE_VALUES * data.n_rows / max(data.X.data.size, 1)))
    n_rows = 0
    for leaf in leaves:
        if np.unique(data.y[leaf.rows]).size < 2 or leaf.judged.size == 0:
            continue
        if n_rows > 0 and n_rows + leaf.rows.size > most:
            return
        n_rows += leaf.rows.size
        yield leaf


def _leaves_of(
    start: InitialTree, data: TrainingData, judge: TrainingData
) -> tuple[IndexArray, IndexArray]:
    """Return the leaf in which each row starts; of the judge's, that of most rows of its class."""
    if start.assignment is None:
        return (
            leaf_of_rows(start.tree, route(start.tree, data.X)),
            leaf_of_rows(start.tree, route(start.tree, judge.X)),
        )
    order = np.lexsort((start.assignment, data.y))
    y, leaf = data.y[order], start.assignment[order]
    begins = np.flatnonzero(np.r_[True, (y[1:] != y[:-1]) | (leaf[1:] != leaf[:-1])])
    counts = np.diff(np.r_[begins, y.size])
    usual = np.full(data.n_classes, -1, dtype=INDEX)
    by_count = np.argsort(counts, kind="stable")
    usual[y[begins[by_count]]] = leaf[begins[by_count]]
    return start.assignment, usual[judge.y]


def _scores(
    leaves: Sequence[_SampleLeaf],
    data: TrainingData,
    judge: TrainingData,
    settings: Settings,
    executor: Executor | None = None,
) -> tuple[float, int]:
    """Return the scores of some leaves, and the number of their weights."""
    executor = executor or SerialExecutor()
    shared = [executor.share(value) for value in (data, judge, settings)]
    costs = [float(leaf.rows.size) for leaf in leaves]
    scores, sizes = 0.0, 0
    for score, n_weights in executor.map(_score_leaf, leaves, costs, shared=shared):
        scores, sizes = scores + score, sizes + n_weights
    return scores, sizes


def _score_leaf(
    data: TrainingData, judge: TrainingData, settings: Settings, leaf: _SampleLeaf
) -> tuple[float, int]:
    """Score a leaf; this is the task that executors get."""
    return _leaf_score(leaf, data, judge, settings)


def _leaf_score(
    leaf: _SampleLeaf, data: TrainingData, judge: TrainingData, settings: Settings
) -> tuple[float, int]:
    """Return the errors of the judge's rows at a leaf with a little of their loss, and its weights.

    The loss is that of the sharpness which suits them best. It tells more than errors where rows
    are few, but likes leaves that are too careful.
    """
    limit = int(settings.leaf_limits[leaf.node])
    fitted, _ = train_leaf(data, leaf.rows, leaf.weight, limit, Leaf.constant(0), settings)
    judged, beta = judge.weight[leaf.judged], settings.objective.beta

    def loss(factor: float) -> float:
        return capped(leaf_losses(fitted, judge.X, judge.y, leaf.judged, factor)[0])

    def capped(entropy: AccumArray) -> float:
        return float(np.minimum(entropy, beta) @ judged)

    entropy, correct = leaf_losses(fitted, judge.X, judge.y, leaf.judged)
    least = capped(entropy)
    for step in (_SHARPER, 1.0 / _SHARPER):  # it falls in one direction, if at all
        factor = step
        while 1.0 / _SHARPEST <= factor <= _SHARPEST and (value := loss(factor)) < least:
            least, factor = value, factor * step
        if factor != step:
            break
    return float(judged[~correct].sum()) + _LOSS_SHARE * least, fitted.n_weights


def fit_once(
    start: InitialTree,
    depth: int,
    data: TrainingData,
    judge: TrainingData,
    settings: Settings,
    kind: LeafKind,
    executor: Executor,
) -> Start:
    """Return the initial tree after one sweep."""
    result = optimise(
        start.tree,
        data,
        settings,
        executor,
        max_sweeps=1,
        assignment=start.assignment,
        validation=Validation(judge, 1),
    )
    error = result.history[0].validation_error
    assert error is not None
    return Start(result.tree, depth, settings.leaf_limits, result.solved, kind, kind, error)

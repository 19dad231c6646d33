"""Trials before a tree is grown: the loss of its leaves, their ridge, and how deep to start.

Not in the papers, which set λ, μ and Δ₀ by hand. Rows that are not fitted decide. Loss and ridge
are tried on a sample of the initial tree's leaves, each alone: their problems are small, and
routers have no part in it. Then the tree is compared with one flat leaf, where that is affordable:
text of few classes and dense vectors of many features often want no router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, IndexArray
from thinleaf.execution import Executor
from thinleaf.model.routing import leaf_losses, leaf_of_rows, route
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.initial_tree import InitialTree
from thinleaf.softmaxtree.tao import Settings, TrainingData, Validation, optimise
from thinleaf.softmaxtree.tao.sweep import train_leaf

LeafLoss: TypeAlias = Literal["softmax", "hinge"]

_SAMPLE_ROWS = 12_000
_LOSS_SHARE = 0.05
_SHARPNESS = (0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83)
_STEP = 3.0
_MOST_STEPS = 3
FIRST_STRENGTH: dict[LeafLoss, float] = {"softmax": 0.03, "hinge": 0.7}
"""Ridge for rows of unit length at which the search begins."""


@dataclass(frozen=True)
class LeafKind:
    """Loss of the leaves, and their ridge, for rows of unit length."""

    loss: LeafLoss
    strength: float


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
    kind : LeafKind
    error : float
        Of the judge's rows.
    """

    tree: Tree
    depth: int
    leaf_limits: IndexArray
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
) -> list[LeafKind]:
    """Return the losses with their best ridge, the best first, tried leaf by leaf.

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
    sample = list(_sample_leaves(start, data, judge, seed))
    found = []
    for loss in kinds:

        def score(strength: float, loss: LeafLoss = loss) -> float:
            settings = settings_of(LeafKind(loss, strength), limits)
            return sum(_leaf_score(leaf, data, judge, settings) for leaf in sample)

        found.append((*search(score, FIRST_STRENGTH[loss]), loss))
    return [LeafKind(loss, strength) for _, strength, loss in sorted(found, key=lambda f: f[0])]


def search(score: Callable[[float], float], first: float) -> tuple[float, float]:
    """Return the lowest score and its strength, going on in the direction in which it falls."""
    best, at = score(first), first
    for factor in (1.0 / _STEP, _STEP):
        for _ in range(_MOST_STEPS):
            value = score(at * factor)
            if value >= best:
                break
            best, at = value, at * factor
        if at != first:
            break
    return best, at


@dataclass(frozen=True)
class _SampleLeaf:
    """A leaf of the initial tree: its number, and the rows of both parts that start in it."""

    node: int
    rows: IndexArray
    judged: IndexArray


def _sample_leaves(
    start: InitialTree, data: TrainingData, judge: TrainingData, seed: np.random.SeedSequence
) -> Iterator[_SampleLeaf]:
    leaf_of_row, leaf_of_judged = _leaves_of(start, data, judge)
    leaves = np.flatnonzero(start.tree.is_leaf)
    n_rows = 0
    for leaf in np.random.default_rng(seed).permutation(leaves).tolist():
        rows = np.flatnonzero(leaf_of_row == leaf).astype(INDEX)
        judged = np.flatnonzero(leaf_of_judged == leaf).astype(INDEX)
        if np.unique(data.y[rows]).size < 2 or judged.size == 0:
            continue
        if n_rows > 0 and n_rows + rows.size > _SAMPLE_ROWS:
            return
        n_rows += rows.size
        yield _SampleLeaf(leaf, rows, judged)


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


def _leaf_score(
    leaf: _SampleLeaf, data: TrainingData, judge: TrainingData, settings: Settings
) -> float:
    """Return the errors of the judge's rows at a leaf, and a little of their loss.

    The loss is that of the sharpness which suits them best. It tells more than errors where rows
    are few, but likes leaves that are too careful.
    """
    limit = int(settings.leaf_limits[leaf.node])
    weight = data.weight[leaf.rows]
    fitted, _ = train_leaf(data, leaf.rows, weight, limit, Leaf.constant(0), settings)
    judged, beta = judge.weight[leaf.judged], settings.objective.beta

    def loss(factor: float) -> float:
        sharp = replace(
            fitted,
            weights=(fitted.weights * factor).astype(PARAM),
            bias=(fitted.bias * factor).astype(PARAM),
        )
        entropy, _ = leaf_losses(sharp, judge.X, judge.y, leaf.judged)
        return float(np.minimum(entropy, beta) @ judged)

    _, correct = leaf_losses(fitted, judge.X, judge.y, leaf.judged)
    least = min(loss(factor) for factor in _SHARPNESS)
    return float(judged[~correct].sum()) + _LOSS_SHARE * least


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
    return Start(result.tree, depth, settings.leaf_limits, kind, error)

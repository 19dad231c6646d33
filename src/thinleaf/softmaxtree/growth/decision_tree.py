"""A decision tree to start from, as deep as its rows let it be.

Not in paper 000, which starts from a shallow tree and grows it. In tables, classes often lie in
boxes, and a decision tree has found them in a moment. So one is split feature by feature, down to
few rows; its routers and leaves are then fitted as those of any other tree. It is not cut back:
rows that are not fitted say what it is worth, and could not any more if they had shaped it.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD
from thinleaf.arrays.rows import n_features_of
from thinleaf.model.routing import choose_child, leaf_of_rows, losses, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.initial_tree import InitialTree, node_seed, purest_router
from thinleaf.softmaxtree.tao import TrainingData

DEEPEST = 64

_LEAST_ROWS = 10
"""Fewer rows are not split any further."""


def decision_tree(
    data: TrainingData,
    judge: TrainingData,
    seed: np.random.SeedSequence,
    *,
    share: float = 1.0,
    deepest: int = DEEPEST,
) -> tuple[InitialTree, float]:
    """Return a tree of splits by one feature, and its error on the rows of a judge.

    Parameters
    ----------
    data : TrainingData
        Dense rows.
    share : float
        Of the features, that each split looks at.
    deepest : int
    """
    n_features = n_features_of(data.X)
    children: list[tuple[int, int]] = []
    nodes: list[Router | Leaf] = []
    queue = [(np.flatnonzero(data.weight).astype(INDEX), 0)]
    for node, (rows, depth) in enumerate(queue):  # the queue grows while we walk it
        mass = np.bincount(data.y[rows], weights=data.weight[rows], minlength=1)
        router = None
        if rows.size >= _LEAST_ROWS and depth < deepest and np.count_nonzero(mass) > 1:
            router = purest_router(data, rows, share, node_seed(seed, node))
        if router is None:
            children.append((NO_CHILD, NO_CHILD))
            nodes.append(Leaf.constant(int(mass.argmax())))
        else:
            children.append((len(queue), len(queue) + 1))
            nodes.append(router)
            side = choose_child(router, data.X, rows)
            queue += [(rows[side == 0], depth + 1), (rows[side == 1], depth + 1)]
    shape = np.array(children, dtype=INDEX)
    tree = Tree.build(shape, nodes, n_features=n_features, n_classes=data.n_classes)
    _, correct = losses(tree, judge.X, judge.y, route(tree, judge.X))
    error = float(judge.weight[~correct].sum() / judge.weight.sum())
    return InitialTree(tree, leaf_of_rows(tree, route(tree, data.X))), error

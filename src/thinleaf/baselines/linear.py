"""One linear score a class: flat softmax and one-vs-all, as the single leaf of a tree.

Both are what :mod:`thinleaf.softmaxtree.solvers` gives for all rows and all classes at once.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import Local, n_features_of, n_local_features
from thinleaf.execution import Executor
from thinleaf.kernels.products import gather
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao import TrainingData


def flat_softmax(
    data: TrainingData, penalty: Penalty, precision: Precision
) -> tuple[Tree, NodeSolution]:
    """Fit one softmax over all classes.

    Returns
    -------
    tree : Tree
        Of one leaf.
    solution : NodeSolution
        How the solver ended.
    """
    local, features = _all_rows(data)
    problem = NodeProblem(local, data.y, data.weight, data.n_classes, penalty)
    solution = solve_softmax(problem, None, precision)
    return single_leaf(data, features, solution.weights, solution.bias), solution


def one_vs_all(
    data: TrainingData, penalty: Penalty, precision: Precision, executor: Executor
) -> tuple[Tree, list[NodeSolution]]:
    """Fit a binary logistic regression for each class against all others.

    Returns
    -------
    tree : Tree
        Of one leaf, whose scores are the log-odds of the binary problems.
    solutions : list of NodeSolution
        One a class.
    """
    local, features = _all_rows(data)
    shared = executor.share((local, data.y, data.weight, penalty, precision))
    solutions = executor.map(_one_against_all, range(data.n_classes), shared=[shared])
    weights = np.empty((n_local_features(local), data.n_classes), dtype=PARAM)
    for class_id, solution in enumerate(solutions):
        weights[:, class_id] = solution.weights[:, 0]
    bias = np.concatenate([solution.bias for solution in solutions])
    return single_leaf(data, features, weights, bias), solutions


def _one_against_all(
    given: tuple[Local, IndexArray, AccumArray, Penalty, Precision], class_id: int
) -> NodeSolution:
    local, y, weight, penalty, precision = given
    target = (y == class_id).astype(INDEX)
    return solve_logistic(NodeProblem(local, target, weight, 2, penalty), None, precision)


def single_leaf(
    data: TrainingData, features: IndexArray, weights: ParamArray, bias: ParamArray
) -> Tree:
    """Return the tree whose only leaf scores all classes.

    Parameters
    ----------
    data : TrainingData
    features : ndarray of shape (n_used,)
        Ascending ids of the features that have weights.
    weights : ndarray of shape (n_used, n_classes)
    bias : ndarray of shape (n_classes,)
    """
    used = np.flatnonzero(weights.any(axis=1))
    if used.size < features.size:
        features, weights = features[used], weights[used]
    leaf = Leaf(np.arange(data.n_classes, dtype=INDEX), features, weights, bias)
    return Tree.build(
        np.array([[NO_CHILD, NO_CHILD]]),
        [leaf],
        n_features=n_features_of(data.X),
        n_classes=data.n_classes,
    )


def _all_rows(data: TrainingData) -> tuple[Local, IndexArray]:
    return gather(data.X, np.arange(data.n_rows, dtype=INDEX))

"""Plain data between the trainer and the node solvers: no tree, no state."""

from __future__ import annotations

from dataclasses import dataclass

from thinleaf._dtypes import AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import Local
from thinleaf.softmaxtree.objective import Penalty


@dataclass(frozen=True)
class Precision:
    """When a solver stops.

    Attributes
    ----------
    tol : float
        The decrease that one more iteration promises, relative to the objective of the best
        constant model, below which the problem counts as solved. Of routers, relative to the
        objective reached, if that is more than a thousandth of it.
    max_iter : int
        Newton steps at the most.
    """

    tol: float = 1e-4
    max_iter: int = 50


@dataclass(frozen=True)
class NodeProblem:
    """A weighted classification problem on the rows and features that one node sees.

    Attributes
    ----------
    X : Local
        The rows: a matrix of shape (n_rows, n_features), or sparse columns.
    target : ndarray of shape (n_rows,)
        Class of each row, in 0..n_targets-1. For a router, 0 is left and 1 is right.
    weight : ndarray of shape (n_rows,)
        Nonnegative weight of each row.
    n_targets : int
        Number of classes; 2 for a router.
    penalty : Penalty
    offset : ndarray of shape (n_rows, n_outputs), optional
        Scores that rows have before anything is added to them. A solution is then what is added,
        and the penalty is on that alone: so a node that is known is corrected. There is one output
        for a router, else one a class.
    hold : ndarray of shape (n_targets,), optional
        With an offset, of leaves: what the ridge of each class is multiplied by. Softmaxes of
        sparse rows take the mean of it.
    """

    X: Local
    target: IndexArray
    weight: AccumArray
    n_targets: int
    penalty: Penalty
    offset: ParamArray | None = None
    hold: ParamArray | None = None


@dataclass(frozen=True)
class NodeSolution:
    """Weights over the problem's features, with the objective that they reach.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_outputs)
        One output for a router (its score is positive for the right child), else one a class.
    bias : ndarray of shape (n_outputs,)
    objective : float
        Σ weightᵢ·lossᵢ + penalty, as tracked by the solver.
    n_iter : int
        Newton steps taken.
    converged : bool
        Solving it once more, from here, would change nothing.
    """

    weights: ParamArray
    bias: ParamArray
    objective: float
    n_iter: int
    converged: bool

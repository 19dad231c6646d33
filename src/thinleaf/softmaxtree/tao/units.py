"""Node problems in the units of the node: what a weight costs follows the spread of its rows.

Not in the papers, whose λ and μ are in the units of the input. A node deep in a tree sees rows that
lie close together; to tell them apart, its weights must be large. So features are measured by their
spread over all training rows, and a node by how much of that is left among its own rows, one number
for all features: one that is rare at a node does not become cheap there. A problem is solved for
rows that are centred and scaled so, and its solution is translated back. Biases are free, so
centring changes nothing but the condition of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, PARAM, AccumArray, ParamArray
from thinleaf.arrays.rows import CSC, Rows
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution

_LEAST_SHARE = 1e-4
"""Of the spread of all rows, that a node has at least: rows that are all but equal."""


def feature_spread(X: Rows) -> AccumArray:
    """Return the standard deviation of each feature over dense rows; 1 where it is constant."""
    assert isinstance(X, np.ndarray)
    spread = X.std(axis=0, dtype=ACCUM)
    return np.where(spread > 0.0, spread, 1.0)


@dataclass(frozen=True)
class Units:
    """Centre and unit of each feature at a node.

    Attributes
    ----------
    centre, unit : ndarray of shape (n_features,)
    """

    centre: AccumArray
    unit: AccumArray

    @classmethod
    def of(cls, problem: NodeProblem, spread: AccumArray) -> Units:
        """Return the units of a dense problem.

        Parameters
        ----------
        problem : NodeProblem
        spread : ndarray of shape (n_features,)
            Of each feature over all training rows.
        """
        X, share = problem.X, problem.weight / problem.weight.sum()
        assert not isinstance(X, CSC)
        centre = share @ X
        variance = share @ np.square((X - centre.astype(PARAM)) / spread.astype(PARAM))
        return cls(centre, spread * max(float(np.sqrt(variance.mean())), _LEAST_SHARE))

    def enter(self, problem: NodeProblem) -> NodeProblem:
        """Return the problem in these units."""
        assert not isinstance(problem.X, CSC)
        X = (problem.X - self.centre.astype(PARAM)) / self.unit.astype(PARAM)
        return replace(problem, X=np.ascontiguousarray(X, dtype=PARAM))

    def enter_start(self, start: tuple[ParamArray, Any] | None) -> tuple[ParamArray, Any] | None:
        """Return weights and bias to start from in these units."""
        if start is None:
            return None
        weights, bias = start[0].astype(ACCUM), start[1] + self.centre @ start[0].astype(ACCUM)
        return (weights.T * self.unit).T.astype(PARAM), bias

    def leave(self, solution: NodeSolution) -> NodeSolution:
        """Return the solution in the units of the input."""
        weights = solution.weights.astype(ACCUM) / self.unit[:, None]
        bias = solution.bias - self.centre @ weights
        return replace(solution, weights=weights.astype(PARAM), bias=bias.astype(PARAM))

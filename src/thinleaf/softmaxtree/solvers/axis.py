"""Routers by one feature, where the rows of a node do not ask for more.

Not in the papers, whose routers are sparse by ℓ₁ alone. In tables of numbers, what tells rows apart
is often whether one feature is above some value, and a hyperplane of many features that was fitted
to few rows is only near it. So the best split by one feature stands beside the hyperplane, which
must send right by so many rows more as it has more features.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import kernel
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic

_PRICE = 0.5
"""Rows, of usual weight, that each feature of a hyperplane has to send right."""

_CUTS = 64
_LEAST_ROWS = 5
"""Values of a feature to look at, and rows on either side."""


def solve_axis(
    problem: NodeProblem,
    warm_start: tuple[ParamArray, float] | None = None,
    precision: Precision | None = None,
) -> NodeSolution:
    """Return the split by one feature, or the hyperplane of many if that is worth its features.

    Parameters
    ----------
    problem : NodeProblem
        Of dense rows.
    warm_start, precision
        As for the logistic router, which the hyperplane is.
    """
    oblique = solve_logistic(problem, warm_start, precision)
    X = np.asarray(problem.X)
    found = best_split(X, problem.target, problem.weight)
    if found is None:
        return oblique
    feature, cut, split_error = found
    scores = X @ oblique.weights[:, 0] + oblique.bias[0]
    wrong = problem.weight[(scores >= 0.0) != (problem.target == 1)].sum()
    usual = problem.weight.sum() / np.count_nonzero(problem.weight)
    n_more = np.count_nonzero(oblique.weights) - 1
    if wrong + _PRICE * usual * n_more < split_error:
        return oblique
    return _split(problem, feature, cut, precision)


def best_split(
    X: ParamArray, target: IndexArray, weight: AccumArray
) -> tuple[int, float, float] | None:
    """Return the feature, the value between two rows, and the weight of rows sent wrong."""
    order = np.argsort(X, axis=0, kind="stable")
    signed = np.where(target == 1, -weight, weight).astype(ACCUM)
    feature, cut, gain = _widest_gap(X, order, signed)
    return None if feature < 0 else (feature, cut, 0.5 * (float(weight.sum()) - gain))


@kernel
def _widest_gap(X: ParamArray, order: OffsetArray, signed: AccumArray) -> tuple[int, float, float]:
    """Return where the signed weights below and above a value differ most."""
    n, d = X.shape
    feature, cut, best = -1, 0.0, -1.0
    total = signed.sum()
    for j in range(d):
        left = 0.0
        for r in range(n - 1):
            i, after = order[r, j], order[r + 1, j]
            left += signed[i]
            if X[after, j] > X[i, j]:
                gain = abs(2.0 * left - total)
                if gain > best + 1e-9:
                    feature, best = j, gain
                    cut = 0.5 * (np.float64(X[i, j]) + np.float64(X[after, j]))
    return feature, cut, best


def purest_split(
    X: ParamArray, y: IndexArray, weight: AccumArray, features: IndexArray
) -> tuple[int, float] | None:
    """Return the feature and the value that tell most of the rows' classes, by entropy.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y, weight : ndarray of shape (n_rows,)
    features : ndarray
        Those to look at.
    """
    classes, local = np.unique(y, return_inverse=True)
    if classes.size < 2:
        return None
    order = np.argsort(X[:, features], axis=0, kind="stable")
    at, cut = _least_entropy(
        X, order, features, local.astype(INDEX), weight, classes.size, _CUTS, _LEAST_ROWS
    )
    return None if at < 0 else (int(features[at]), cut)


@kernel
def _least_entropy(
    X: ParamArray,
    order: OffsetArray,
    features: IndexArray,
    y: IndexArray,
    weight: AccumArray,
    n_classes: int,
    n_cuts: int,
    least: int,
) -> tuple[int, float]:
    """Return the position of a feature, and a value, with the least entropy on either side.

    Only some cuts are looked at, each with about as many rows between it and the next.
    """
    n = y.size
    whole = np.zeros(n_classes)
    for i in range(n):
        whole[y[i]] += weight[i]
    left = np.empty(n_classes)
    found, cut, best = -1, 0.0, np.inf
    for a in range(features.size):
        j = features[a]
        for c in range(n_classes):
            left[c] = 0.0
        due = np.float64(n) / (n_cuts + 1)
        for r in range(n - 1):
            i, after = order[r, a], order[r + 1, a]
            left[y[i]] += weight[i]
            if r + 1 < due or not X[after, j] > X[i, j]:
                continue
            due = r + 1 + np.float64(n) / (n_cuts + 1)
            if r + 1 < least or n - r - 1 < least:
                continue
            value, below, above = 0.0, 0.0, 0.0
            for c in range(n_classes):
                w, v = left[c], whole[c] - left[c]
                below += w
                above += v
                if w > 1e-12:
                    value -= w * math.log(w)
                if v > 1e-12:
                    value -= v * math.log(v)
            value += below * math.log(max(below, 1e-12)) + above * math.log(max(above, 1e-12))
            if value < best - 1e-9:
                found, best = a, value
                cut = 0.5 * (np.float64(X[i, j]) + np.float64(X[after, j]))
    return found, cut


def _split(
    problem: NodeProblem, feature: int, cut: float, precision: Precision | None
) -> NodeSolution:
    """Return a router that splits there; how steep it is says a logistic one of that feature."""
    X = np.ascontiguousarray(np.asarray(problem.X)[:, feature : feature + 1] - PARAM(cut))
    one = solve_logistic(replace(problem, X=X, offset=None), None, precision)
    right = problem.target == 1
    above = X[:, 0] >= 0.0
    up = problem.weight[above == right].sum() >= problem.weight[above != right].sum()
    slope = max(abs(float(one.weights[0, 0])), 1e-3)
    weights = np.zeros((np.asarray(problem.X).shape[1], 1), dtype=PARAM)
    weights[feature] = slope if up else -slope
    bias = np.array([-float(weights[feature, 0]) * cut], dtype=PARAM)
    return NodeSolution(weights, bias, one.objective, one.n_iter, one.converged)

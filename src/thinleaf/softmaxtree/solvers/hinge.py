"""Leaves and routers by margins: a squared hinge loss for each class against the others.

Not in the papers, whose leaves are softmaxes and whose routers are logistic. Where rows of a class
are few and features many, as in text, margins often have fewer errors than likelihoods, and dual
coordinate descent (Hsieh et al., 2008, as LIBLINEAR and PECOS use it) finds them in few passes.
Margins become scores of a softmax, or of a logistic router, by one factor, which changes no order.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSC, n_local_features
from thinleaf.kernels._jit import kernel
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic

_ENOUGH = 0.4
"""Violation of the optimality conditions, in units of the margin, at which a class is solved."""

_PASSES = 10
"""Passes of coordinate descent that count as one Newton step of ``Precision.max_iter``."""

_LEAST_WEIGHT = 0.05
"""Weights that move the score of a row of usual length by less than this share of the margin are
left out: they are most of the weights, and change few answers."""

_SHARPNESS = 4.0
"""What margins are multiplied by; rows that were not fitted correct it for leaves."""

_LEAST_RIDGE = 1e-9


def solve_hinge(
    problem: NodeProblem,
    warm_start: tuple[ParamArray, ParamArray] | None = None,
    precision: Precision | None = None,
) -> NodeSolution:
    """Minimise, for every class, Σ sᵢ max(0, 1 - ỹᵢ(w·xᵢ + b))² + ridge/2·(‖w‖² + b²/m).

    m is the weighted mean of the rows' squared lengths: the dual has no free bias, so it costs as
    much as a feature of that size. There is no ℓ₁ penalty.

    Parameters
    ----------
    problem : NodeProblem
    warm_start : tuple, optional
        Not used: the dual starts from nothing.
    precision : Precision, optional

    Returns
    -------
    NodeSolution
        With ``weights`` of shape (n_features, k), to be used as those of a softmax.
    """
    if problem.n_targets == 1 or not problem.weight.any():
        shape = (n_local_features(problem.X), problem.n_targets)
        return NodeSolution(np.zeros(shape, PARAM), np.zeros(shape[1], PARAM), 0.0, 0, True)
    return _solve(problem, problem.weight, 0, precision or Precision())


def solve_hinge_router(
    problem: NodeProblem,
    warm_start: tuple[ParamArray, float] | None = None,
    precision: Precision | None = None,
) -> NodeSolution:
    """Separate the rows that go left from those that go right by margins.

    Weights are taken relative to their mean: what rows lose by the wrong child says how much they
    matter, but not how much is known.
    """
    mass = np.bincount(problem.target, weights=problem.weight, minlength=2)
    if mass.min() <= 0.0:
        return solve_logistic(problem, warm_start, precision)
    relative = problem.weight * (np.count_nonzero(problem.weight) / problem.weight.sum())
    return _solve(problem, relative, 1, precision or Precision())


def _solve(
    problem: NodeProblem, weight: AccumArray, first: int, precision: Precision
) -> NodeSolution:
    """Separate each class from ``first`` on from all others."""
    X, k = problem.X, problem.n_targets - first
    W = np.zeros((n_local_features(X), k), dtype=PARAM)
    b = np.zeros(k, dtype=PARAM)
    ridge = max(problem.penalty.ridge, _LEAST_RIDGE)
    slack = np.full(weight.size, np.inf)
    slack[weight > 0.0] = 0.5 * ridge / weight[weight > 0.0]
    indptr, indices, data, square = _by_row(X, weight.size)
    length = float(np.sqrt(max(weight @ square / weight.sum(), 1e-30)))
    n_passes, objective, converged = _separate(
        indptr, indices, data, problem.target, first, slack, square, length, W, b, _ENOUGH,
        _PASSES * precision.max_iter,
    )  # fmt: skip
    W[np.abs(W) < _LEAST_WEIGHT / length] = 0.0
    sharpness = PARAM(_SHARPNESS)
    return NodeSolution(W * sharpness, b * sharpness, objective * ridge, n_passes, converged)


def _by_row(
    X: ParamArray | CSC, n_rows: int
) -> tuple[IndexArray, IndexArray, ParamArray, AccumArray]:
    """Return rows as offsets, features and values, and their squared lengths."""
    if not isinstance(X, CSC):
        d = X.shape[1]
        indices = np.tile(np.arange(d, dtype=INDEX), n_rows)
        square = np.square(X, dtype=ACCUM).sum(axis=1)
        return offsets(np.full(n_rows, d), INDEX), indices, np.ascontiguousarray(X).ravel(), square
    columns = np.repeat(np.arange(X.indptr.size - 1, dtype=INDEX), np.diff(X.indptr))
    order = np.argsort(X.indices, kind="stable")
    counts = np.bincount(X.indices, minlength=n_rows)
    squares = np.square(X.data, dtype=ACCUM)
    square = np.bincount(X.indices, weights=squares, minlength=n_rows).astype(ACCUM)
    return offsets(counts, INDEX), columns[order], X.data[order], square


@kernel
def _separate(
    indptr: IndexArray,
    indices: IndexArray,
    data: ParamArray,
    target: IndexArray,
    first: int,
    slack: AccumArray,
    square: AccumArray,
    length: float,
    W: ParamArray,
    b: ParamArray,
    enough: float,
    max_passes: int,
) -> tuple[int, float, bool]:
    """Fill ``W`` and ``b`` by coordinate descent in the dual, one class after the other.

    A row has a dual variable α ≥ 0 for each class, with the curvature ‖x‖² + slack; w = Σ αỹx. Rows
    that stay at zero are left out until the others are solved. Returns the most passes of a class,
    the sum of the dual objectives, and whether all are solved.
    """
    n = target.size
    d, k = W.shape
    w = np.empty(d, dtype=np.float32)
    alpha = np.empty(n, dtype=np.float32)
    active = np.empty(n, dtype=np.int32)
    most = 0
    objective = 0.0
    converged = True
    for c in range(k):
        for j in range(d):
            w[j] = 0.0
        for i in range(n):
            alpha[i] = 0.0
            active[i] = i
        bias = 0.0
        n_active = n
        limit = np.inf
        state = np.uint64(88172645463325252) + np.uint64(c)
        n_passes = 0
        solved = False
        while n_passes < max_passes and not solved:
            n_passes += 1
            highest = -np.inf
            lowest = np.inf
            for s in range(n_active - 1, 0, -1):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                at = np.int64(state % np.uint64(s + 1))
                other = active[at]
                active[at] = active[s]
                active[s] = other
            s = 0
            while s < n_active:
                i = active[s]
                if slack[i] == np.inf:  # a row without weight
                    s += 1
                    continue
                y = 1.0 if target[i] == first + c else -1.0
                score = bias * length
                for t in range(indptr[i], indptr[i + 1]):
                    score += w[indices[t]] * data[t]
                a = alpha[i]
                gradient = y * score - 1.0 + a * slack[i]
                if a == 0.0 and gradient > limit:
                    n_active -= 1
                    active[s] = active[n_active]
                    active[n_active] = i
                    continue
                violation = gradient
                if a == 0.0:
                    violation = min(gradient, 0.0)
                highest = max(highest, violation)
                lowest = min(lowest, violation)
                if abs(violation) > 1e-12:
                    curvature = square[i] + length * length + slack[i]
                    new = max(a - gradient / curvature, 0.0)
                    step = (new - a) * y
                    alpha[i] = new
                    for t in range(indptr[i], indptr[i + 1]):
                        w[indices[t]] += np.float32(step) * data[t]
                    bias += step * length
                s += 1
            if highest - lowest <= enough:
                solved = n_active == n
                n_active = n
                limit = np.inf
            else:
                limit = highest if highest > 0.0 else np.inf
        most = max(most, n_passes)
        converged = converged and solved
        total = bias * bias
        for j in range(d):
            W[j, c] = w[j]
            total += w[j] * w[j]
        b[c] = bias * length
        for i in range(n):
            if alpha[i] > 0.0:
                total += alpha[i] * (alpha[i] * slack[i] - 2.0)
        objective -= 0.5 * total
    return most, objective, converged

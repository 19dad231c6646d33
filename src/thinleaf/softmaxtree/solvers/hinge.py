"""Leaves and routers by margins: a squared hinge loss for each class against the others.

Not in the papers, whose leaves are softmaxes and whose routers are logistic. Where rows of a class
are few and features many, as in text, margins often have fewer errors than likelihoods, and dual
coordinate descent (Hsieh et al., 2008, as LIBLINEAR and PECOS use it) finds them in few passes.
Margins become scores of a softmax, or of a logistic router, by one factor, which changes no order.
"""

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import n_local_features
from thinleaf.kernels._jit import kernel
from thinleaf.softmaxtree.solvers.by_row import by_row
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic

_ENOUGH = 0.4
"""Violation of the optimality conditions, in units of the margin, at which a class is solved."""

_LEAST_GAIN = 0.003
"""What a pass must add to the dual objective, as a share of all gains, for there to be another."""

_PASSES = 2.5
_ROUTER_PASSES = 0.4
"""Passes of coordinate descent that count as one Newton step of ``Precision.max_iter``, for leaves
and for routers: what large ones gain by more changes few answers."""

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
    offset, hold, least = problem.offset, problem.hold, _LEAST_WEIGHT
    if offset is not None:  # what is added may be small: it is part of weights that are not
        offset, least = np.ascontiguousarray(offset / PARAM(_SHARPNESS)), 0.0
    slack = np.full(weight.size, np.inf)
    slack[weight > 0.0] = 0.5 * ridge / weight[weight > 0.0]
    indptr, indices, data, square = by_row(X, weight.size)
    most = math.ceil((_ROUTER_PASSES if first else _PASSES) * precision.max_iter)
    length = float(np.sqrt(max(weight @ square / weight.sum(), 1e-30)))
    n_passes, objective = _separate(
        indptr, indices, data, problem.target, first, slack, square, length, W, b, _ENOUGH,
        most, _LEAST_GAIN, PARAM(least / length), PARAM(_SHARPNESS), offset, hold,
    )  # fmt: skip
    # the dual starts from nothing: solving it once more would change nothing
    return NodeSolution(W, b, objective * ridge, n_passes, converged=True)


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
    least_gain: float,
    least: np.float32,
    sharpness: np.float32,
    offset: ParamArray | None,
    hold: ParamArray | None,
) -> tuple[int, float]:
    """Fill ``W`` and ``b`` by coordinate descent in the dual, row by row for all classes at once.

    A row has a dual variable α ≥ 0 for each class, with the curvature ‖x‖² + slack; w = Σ αỹx. The
    classes of a row are one vector to the processor. A class that is solved is moved behind those
    that are open; rows that are at zero for all of these are left out until the others are solved.
    Scores start at ``offset``; ``hold`` multiplies the ridge of each class. In the end, weights
    below ``least`` are left out, and the others multiplied by ``sharpness``. A pass that gains less
    than the share ``least_gain`` of all gains is the last one; what ``hold`` adds to curvatures is
    not counted there.
    Returns the number of passes and the sum of the dual objectives.
    """
    d, k = W.shape
    n, n_rows, n_open, n_passes = target.size, 0, k, 0
    size, zero, one = np.float32(length), np.float32(0.0), np.float32(1.0)
    alpha = np.zeros((n, k), dtype=np.float32)
    bias = np.zeros(k, dtype=np.float32)
    score = np.empty(k, dtype=np.float32)
    step = np.empty(k, dtype=np.float32)
    highest = np.empty(k, dtype=np.float32)
    lowest = np.empty(k, dtype=np.float32)
    side = np.empty(k, dtype=np.float32)
    limit = np.empty(k, dtype=np.float32)
    class_at = np.empty(k, dtype=np.int32)
    place_of = np.empty(k, dtype=np.int32)
    for c in range(k):
        side[c] = -1.0
        limit[c] = np.inf
        class_at[c] = c
        place_of[c] = c
    active = np.empty(n, dtype=np.int32)
    for i in range(n):
        if slack[i] < np.inf:  # others have no weight
            active[n_rows] = i
            n_rows += 1
    n_active = n_rows
    total_gain = 0.0
    state = np.uint64(88172645463325252)
    while n_passes < max_passes and n_open > 0:
        n_passes += 1
        for c in range(n_open):
            highest[c] = -np.inf
            lowest[c] = np.inf
        for s in range(n_active - 1, 0, -1):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            at = np.int64(state % np.uint64(s + 1))
            other = active[at]
            active[at] = active[s]
            active[s] = other
        s = 0
        gain = 0.0
        while s < n_active:
            i = active[s]
            own = place_of[target[i] - first] if target[i] >= first else k
            if own < n_open:
                side[own] = 1.0
            if n_open == 1:
                total = bias[0] * size
                if offset is not None:
                    total += offset[i, class_at[0]]
                for t in range(indptr[i], indptr[i + 1]):
                    total += W[indices[t], 0] * data[t]
                score[0] = total
            else:
                for c in range(n_open):
                    score[c] = bias[c] * size
                if offset is not None:
                    for c in range(n_open):
                        score[c] += offset[i, class_at[c]]
                for t in range(indptr[i], indptr[i + 1]):
                    j, x = indices[t], data[t]
                    for c in range(n_open):
                        score[c] += W[j, c] * x
            give = np.float32(slack[i])
            pace = np.float32(1.0 / (square[i] + length * length + slack[i]))
            moved = zero
            n_busy = 0
            for c in range(n_open):
                a = alpha[i, c]
                if hold is not None:
                    give = np.float32(slack[i]) * hold[first + class_at[c]]
                    pace = one / np.float32(square[i] + length * length + give)
                gradient = side[c] * score[c] - one + a * give
                violation = gradient if a > zero else min(gradient, zero)
                highest[c] = max(highest[c], violation)
                lowest[c] = min(lowest[c], violation)
                new = max(a - gradient * pace, zero)
                n_busy += (a > zero) | (gradient <= limit[c])
                step[c] = (new - a) * side[c]
                alpha[i, c] = new
            for c in range(n_open):
                moved += step[c] * step[c]
            gain += moved * (square[i] + length * length + slack[i])
            if own < n_open:
                side[own] = -1.0
            if moved > zero:
                if n_open == 1:
                    for t in range(indptr[i], indptr[i + 1]):
                        W[indices[t], 0] += step[0] * data[t]
                else:
                    for t in range(indptr[i], indptr[i + 1]):
                        j, x = indices[t], data[t]
                        for c in range(n_open):
                            W[j, c] += step[c] * x
                for c in range(n_open):
                    bias[c] += step[c] * size
            if n_busy > 0:
                s += 1
            else:
                n_active -= 1
                active[s] = active[n_active]
                active[n_active] = i
        total_gain += gain
        if gain < least_gain * total_gain:
            break
        n_solved = 0
        for c in range(n_open - 1, -1, -1):
            limit[c] = highest[c] if highest[c] > zero else np.float32(np.inf)
            if highest[c] - lowest[c] > enough:
                continue
            n_solved += 1
            if n_active == n_rows:
                n_open -= 1
                if c < n_open:
                    for j in range(d):
                        W[j, c], W[j, n_open] = W[j, n_open], W[j, c]
                    for i in range(n):
                        alpha[i, c], alpha[i, n_open] = alpha[i, n_open], alpha[i, c]
                    bias[c], bias[n_open] = bias[n_open], bias[c]
                    limit[c] = limit[n_open]
                    class_at[c], class_at[n_open] = class_at[n_open], class_at[c]
                    place_of[class_at[c]] = c
                    place_of[class_at[n_open]] = n_open
        if n_active < n_rows and n_solved == n_open:
            n_active = n_rows
            for c in range(n_open):
                limit[c] = np.inf
    objective = 0.0
    for c in range(k):
        b[class_at[c]] = bias[c] * size * sharpness
    for c in range(k):
        objective += bias[c] * bias[c]
    for j in range(d):
        for c in range(k):
            score[class_at[c]] = W[j, c]
        for c in range(k):
            objective += score[c] * score[c]
        for c in range(k):
            W[j, c] = score[c] * sharpness if abs(score[c]) >= least else zero
    for i in range(n):
        for c in range(k):
            if alpha[i, c] > zero:
                give_up = slack[i]
                if hold is not None:
                    give_up *= hold[first + class_at[c]]
                objective += alpha[i, c] * (alpha[i, c] * give_up - 2.0)
    return n_passes, -0.5 * objective

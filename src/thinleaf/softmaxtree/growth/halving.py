"""Halving points: balanced spherical 2-means, by which classes are divided from the root down.

Not in the papers. SciPy would make several objects for each of the many small sums, so sums and
products of sparse points are kernels.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, BoolArray, IndexArray
from thinleaf.kernels._jit import strict_kernel

Matrix: TypeAlias = AnyArray | sp.csr_matrix

_STARTS = 3
_STEPS = 20
_MANY_POINTS = 20_000
_LAST_STEPS = 3
"""Points above which a sample is halved first, and steps over all of them."""

_FEW_VALUES = 16
"""Columns for each value above which used ones are found by sorting values."""


def halve(points: Matrix, rng: np.random.Generator) -> BoolArray:
    """Split points of unit length into two halves by spherical 2-means; return the second's mask.

    The best of a few starts, by the similarity of the points to their half's mean. Of very many
    points, a sample is halved, and then the others with it.
    """
    n_points = points.shape[0]
    if n_points > _MANY_POINTS:
        return _halve_many(points, rng)
    best: BoolArray = np.arange(n_points) >= (n_points + 1) // 2
    best_value = -np.inf
    if n_points <= 2:
        return best
    for _ in range(_STARTS):
        first, second = rng.choice(n_points, 2, replace=False)
        axis = _sum(points, [second]) - _sum(points, [first])
        right = np.zeros(n_points, dtype=np.bool_)
        for _ in range(_STEPS):
            before = right
            rank = np.argsort(_project(points, axis), kind="stable")
            right = np.zeros(n_points, dtype=np.bool_)
            right[rank[(n_points + 1) // 2 :]] = True
            if np.array_equal(right, before):
                break
            left_sum, right_sum = _sum(points, ~right), _sum(points, right)
            axis = _unit(right_sum) - _unit(left_sum)
        value = float(np.linalg.norm(left_sum) + np.linalg.norm(right_sum))
        if value > best_value:
            best, best_value = right, value
    return best


def _halve_many(points: Matrix, rng: np.random.Generator) -> BoolArray:
    """Return the halves of very many points: those of a sample, moved by a few steps over all."""
    some = np.sort(rng.choice(points.shape[0], _MANY_POINTS, replace=False))
    sample = points[some]
    right = halve(sample, rng)
    axis = _unit(_sum(sample, right)) - _unit(_sum(sample, ~right))
    for _ in range(_LAST_STEPS):
        rank = np.argsort(_project(points, axis), kind="stable")
        halves: BoolArray = np.zeros(points.shape[0], dtype=np.bool_)
        halves[rank[(points.shape[0] + 1) // 2 :]] = True
        axis = _unit(_sum(points, halves)) - _unit(_sum(points, ~halves))
    return halves


def _unit(v: AccumArray) -> AccumArray:
    return v / max(float(np.linalg.norm(v)), 1e-300)


def _sum(points: Matrix, which: AnyArray | list[int]) -> AccumArray:
    """Return the sum of some points."""
    members = np.zeros(points.shape[0], dtype=np.bool_)
    members[which] = True
    if isinstance(points, np.ndarray):
        return np.asarray(points.T @ members.astype(ACCUM), dtype=ACCUM)
    out = np.zeros(points.shape[1], dtype=ACCUM)
    _add_rows(points.indptr, points.indices, points.data, members, out)
    return out


def _project(points: Matrix, axis: AccumArray) -> AccumArray:
    """Return the product of each point with a direction."""
    if isinstance(points, np.ndarray):
        with np.errstate(invalid="ignore"):  # BLAS warns about lanes that it does not use
            return np.asarray(points @ axis)
    out = np.empty(points.shape[0], dtype=ACCUM)
    _multiply_rows(points.indptr, points.indices, points.data, axis, out)
    return out


@strict_kernel
def _add_rows(
    indptr: IndexArray, indices: IndexArray, data: AccumArray, members: BoolArray, out: AccumArray
) -> None:
    for i in range(members.size):
        if members[i]:
            for t in range(indptr[i], indptr[i + 1]):
                out[indices[t]] += data[t]


@strict_kernel
def _multiply_rows(
    indptr: IndexArray, indices: IndexArray, data: AccumArray, axis: AccumArray, out: AccumArray
) -> None:
    for i in range(out.size):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            total += data[t] * axis[indices[t]]
        out[i] = total


def used_columns(points: Matrix) -> Matrix:
    """Return sparse points without the columns in which they have nothing.

    Deep in a tree points are few, and sums over all columns would take most of the time.
    """
    if isinstance(points, np.ndarray):
        return points
    if _FEW_VALUES * points.nnz < points.shape[1]:
        used, local = np.unique(points.indices, return_inverse=True)
    else:
        occurs = np.zeros(points.shape[1], dtype=np.bool_)
        occurs[points.indices] = True
        used = np.flatnonzero(occurs).astype(INDEX)
        local = (np.cumsum(occurs) - 1)[points.indices]
    shape = (points.shape[0], max(used.size, 1))
    return sp.csr_matrix((points.data, local.reshape(-1), points.indptr), shape=shape)

"""Exchanges of labels between the children of a node, after a greedy assignment (paper 004).

The greedy assignment need not be the best. Moving labels along cycles of children whose losses sum
to a gain makes it so. Compiled strictly, since kernels here call each other.
"""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray
from thinleaf.kernels._jit import strict_kernel

_EPS = 1e-12
_MOVE = 32
"""Largest labels x arity of a node for which room is moved between children, too."""


@strict_kernel
def _costs(
    value: AccumArray, child: IndexArray, capacity: int, cost: AccumArray, mover: IndexArray
) -> None:
    """Fill what moving the cheapest label from j to k loses; index M stands for free room."""
    n_labels, arity = value.shape
    cost[:] = np.inf
    size = np.zeros(arity, dtype=np.int32)
    for i in range(n_labels):
        j = child[i]
        size[j] += 1
        for k in range(arity):
            loss = value[i, j] - value[i, k]
            if k != j and loss < cost[j, k]:
                cost[j, k] = loss
                mover[j, k] = i
    if capacity > 0:
        for j in range(arity):
            if size[j] < capacity:
                cost[j, arity] = 0.0
            if size[j] > 1:
                cost[arity, j] = 0.0


@strict_kernel
def _cancel_cycle(
    value: AccumArray, child: IndexArray, capacity: int, cost: AccumArray, mover: IndexArray
) -> bool:
    """Exchange labels around a cycle of children that gains; return whether there was one."""
    arity = value.shape[1]
    _costs(value, child, capacity, cost, mover)
    distance = np.zeros(arity + 1)
    before = np.full(arity + 1, -1, dtype=np.int32)
    last = -1
    for _ in range(arity + 1):
        last = -1
        for j in range(arity + 1):
            for k in range(arity + 1):
                if distance[j] + cost[j, k] < distance[k] - _EPS:
                    distance[k] = distance[j] + cost[j, k]
                    before[k] = j
                    last = k
        if last < 0:
            return False
    for _ in range(arity + 1):  # now certainly on a cycle
        last = before[last]
    k = last
    while True:
        j = before[k]
        if j < arity and k < arity:
            child[mover[j, k]] = k
        k = j
        if k == last:
            return True


@strict_kernel
def _shift(
    value: AccumArray, child: IndexArray, start: int, end: int, cost: AccumArray, mover: IndexArray
) -> float:
    """Move one label's room from child ``start`` to ``end`` along the cheapest way; its loss."""
    arity = value.shape[1]
    _costs(value, child, 0, cost, mover)
    distance = np.full(arity + 1, np.inf)
    before = np.full(arity + 1, -1, dtype=np.int32)
    distance[start] = 0.0
    for _ in range(arity):
        for j in range(arity):
            for k in range(arity):
                if distance[j] + cost[j, k] < distance[k] - _EPS:
                    distance[k] = distance[j] + cost[j, k]
                    before[k] = j
    k = end
    while k != start:
        child[mover[before[k], k]] = k
        k = before[k]
    return distance[end]


@strict_kernel
def exchange(value: AccumArray, step: int, capacity: int, child: IndexArray) -> None:
    """Improve an assignment until no exchange of labels raises the sum of derivatives.

    With ``capacity`` > 0 (algorithm 3) the result is the best there is. Otherwise (algorithm 2) it
    is the best with these numbers of labels for the children, and no move of M - 1 labels' room
    from one child to another gains.
    """
    arity = value.shape[1]
    cost = np.empty((arity + 1, arity + 1))
    mover = np.zeros((arity + 1, arity + 1), dtype=np.int32)
    while _cancel_cycle(value, child, capacity, cost, mover):
        pass
    if capacity > 0 or value.shape[0] * arity > _MOVE:
        return
    improved = True
    while improved:
        improved = False
        for start in range(arity):
            for end in range(arity):
                if start == end or np.sum(child == start) <= step:
                    continue
                trial = child.copy()
                loss = 0.0
                for _ in range(step):
                    loss += _shift(value, trial, start, end, cost, mover)
                if loss < -_EPS:
                    child[:] = trial
                    improved = True


@strict_kernel
def all_best(value: AccumArray, child: IndexArray) -> bool:
    """Return whether every label is where its derivative is highest: then nothing can gain."""
    for i in range(child.size):
        for j in range(value.shape[1]):
            if value[i, j] > value[i, child[i]]:
                return False
    return True

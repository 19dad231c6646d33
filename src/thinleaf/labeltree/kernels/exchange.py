"""Exchanges of labels between the children of a node, after a greedy assignment (paper 004).

The greedy assignment need not be the best. Moving labels along cycles of children whose losses sum
to a gain makes it so, as far as no child gets heavier than it may be. Compiled strictly, since
kernels here call each other.
"""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, BoolArray, IndexArray
from thinleaf.kernels._jit import strict_kernel

_EPS = 1e-12
_MOVE = 32
"""Largest labels x arity of a node for which room is moved between children, too."""


@strict_kernel
def _costs(
    value: AccumArray,
    child: IndexArray,
    capacity: int,
    barred: BoolArray,
    cost: AccumArray,
    mover: IndexArray,
) -> None:
    """Fill what moving the cheapest label from j to k loses; index M stands for free room.

    Labels do not go to children that they are ``barred`` from.
    """
    n_labels, arity = value.shape
    cost[:] = np.inf
    size = np.zeros(arity, dtype=np.int32)
    for i in range(n_labels):
        j = child[i]
        size[j] += 1
        for k in range(arity):
            loss = value[i, j] - value[i, k]
            if k != j and loss < cost[j, k] and not barred[i, k]:
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
    value: AccumArray,
    child: IndexArray,
    capacity: int,
    barred: BoolArray,
    cost: AccumArray,
    mover: IndexArray,
) -> bool:
    """Exchange labels around a cycle of children that gains; return whether there was one."""
    arity = value.shape[1]
    _costs(value, child, capacity, barred, cost, mover)
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
    value: AccumArray,
    child: IndexArray,
    start: int,
    end: int,
    barred: BoolArray,
    cost: AccumArray,
    mover: IndexArray,
) -> float:
    """Move one label's room from child ``start`` to ``end`` along the cheapest way; its loss."""
    arity = value.shape[1]
    _costs(value, child, 0, barred, cost, mover)
    distance = np.full(arity + 1, np.inf)
    before = np.full(arity + 1, -1, dtype=np.int32)
    distance[start] = 0.0
    for _ in range(arity):
        for j in range(arity):
            for k in range(arity):
                if distance[j] + cost[j, k] < distance[k] - _EPS:
                    distance[k] = distance[j] + cost[j, k]
                    before[k] = j
    if distance[end] == np.inf:
        return distance[end]
    k = end
    while k != start:
        child[mover[before[k], k]] = k
        k = before[k]
    return distance[end]


@strict_kernel
def _too_heavy(
    mass: AccumArray, max_mass: float, before: IndexArray, child: IndexArray
) -> tuple[int, int]:
    """Return a label that has moved to a child which was full without it, and the child; or -1.

    As in the greedy assignment, a child that weighs ``max_mass`` takes no more; it may get lighter,
    and what it takes in exchange may weigh as much as what it gave.
    """
    arity = 1 + max(before.max(), child.max())
    was, now = np.zeros(arity), np.zeros(arity)
    for i in range(child.size):
        was[before[i]] += mass[i]
        now[child[i]] += mass[i]
    for i in range(child.size):
        j = child[i]
        heavier = now[j] > was[j] + _EPS
        if before[i] != j and heavier and mass[i] > 0.0 and now[j] - mass[i] >= max_mass - _EPS:
            return i, j
    return -1, -1


@strict_kernel
def exchange(
    value: AccumArray,
    step: int,
    capacity: int,
    mass: AccumArray,
    max_mass: float,
    child: IndexArray,
) -> None:
    """Improve an assignment until no exchange of labels raises the sum of derivatives.

    With ``capacity`` > 0 (algorithm 3) the result is the best there is. Otherwise (algorithm 2) it
    is the best with these numbers of labels for the children, and no move of M - 1 labels' room
    from one child to another gains. Both hold as long as no child gets too heavy: a label whose
    move would make it so is barred from that child, for as long as exchanges go on.

    Parameters
    ----------
    mass : ndarray of shape (n_labels,)
        What each label weighs.
    max_mass : float
        A child that weighs as much takes no more.
    """
    n_labels, arity = value.shape
    cost = np.empty((arity + 1, arity + 1))
    mover = np.zeros((arity + 1, arity + 1), dtype=np.int32)
    barred = np.zeros((n_labels, arity), dtype=np.bool_)
    before = child.copy()
    while _cancel_cycle(value, child, capacity, barred, cost, mover):
        i, j = _too_heavy(mass, max_mass, before, child)
        if i >= 0:
            barred[i, j] = True
            child[:] = before
        before[:] = child
    if capacity > 0 or n_labels * arity > _MOVE:
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
                    loss += _shift(value, trial, start, end, barred, cost, mover)
                if loss < -_EPS and _too_heavy(mass, max_mass, child, trial)[0] < 0:
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

"""Assigning labels to the children of a node (paper 004, algorithms 2 and 3), and of every node.

Both algorithms are one greedy loop: each child has room for one label, and further room is taken in
steps, of M - 1 in a well-formed tree and of 1, up to a capacity, under a depth limit. Compiled
strictly, since kernels here call each other.
"""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

import heapq

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray, OffsetArray
from thinleaf.kernels._jit import strict_kernel
from thinleaf.labeltree.kernels.exchange import all_best, exchange
from thinleaf.labeltree.kernels.known import (
    NO_ROOM,
    Known,
    Rule,
    distributions,
    is_kept,
    keep,
    mean_representations,
)

_EXCHANGE = 32
"""Largest labels x arity of a node for which the greedy assignment is improved by exchanges."""


@strict_kernel
def _best_child(
    value: AccumArray,
    affinity: AccumArray,
    i: int,
    size: IndexArray,
    with_room: IndexArray,
    n_with_room: int,
) -> tuple[int, bool]:
    """Return the child with room whose derivative is highest, and whether another one equals it.

    Ties are decided by affinity, then by size: so an equal one may be the best another time.
    """
    best = with_room[0]
    equal = False
    for at in range(1, n_with_room):
        j = with_room[at]
        dv = value[i, j] - value[i, best]
        if dv < 0.0:
            continue
        da = affinity[i, j] - affinity[i, best]
        if dv > 0.0 or da > 0.0:
            best = j
            equal = False
        elif da == 0.0:
            equal = True
            if size[j] < size[best]:
                best = j
    return best, equal


@strict_kernel
def _assign_binary(value: AccumArray, affinity: AccumArray, child: IndexArray) -> bool:
    """Do what the greedy loop does with two children without limits, if that is plain.

    Each label goes where it likes best, in whatever order; only if all like the same child, the one
    that would be last goes to the other. Returns whether no ties made it depend on sizes.
    """
    n_second, last = 0, 0
    for i in range(child.size):
        dv, da = value[i, 1] - value[i, 0], affinity[i, 1] - affinity[i, 0]
        if dv == 0.0 and da == 0.0:
            return False
        child[i] = 1 if dv > 0.0 or (dv == 0.0 and da > 0.0) else 0
        n_second += child[i]
        v, w = value[i, child[i]], value[last, child[last]]
        if v < w or (v == w and affinity[i, child[i]] <= affinity[last, child[last]]):
            last = i
    if n_second in (0, child.size):
        child[last] = 1 - child[last]
    return True


@strict_kernel
def assign_greedily(
    value: AccumArray,
    affinity: AccumArray,
    n_known: int,
    step: int,
    capacity: int,
    mass: AccumArray,
    max_mass: float,
    child: IndexArray,
) -> None:
    """Fill ``child`` with the branch of each label: the pair of highest derivative first.

    Parameters
    ----------
    value : ndarray of shape (n_labels, arity)
        The derivative of J_n for each pair of label and child.
    affinity : ndarray of shape (n_labels, arity)
        What decides between equal values.
    n_known : int
        Labels from here on are for :func:`place_rest`; room is kept for them.
    step, capacity : int
        A child takes 1, 1 + step, 1 + 2 step, … labels, at most ``capacity``.
    mass : ndarray of shape (n_known,) or (0,)
        What each label weighs.
    max_mass : float
        A child that weighs as much takes no more while another one has room.
    """
    n_labels, arity = value.shape
    free = capacity >= n_labels and max_mass == np.inf
    if arity == 2 and free and n_known == n_labels > 1 and _assign_binary(value, affinity, child):
        return
    size = np.zeros(arity, dtype=np.int32)
    limit = np.ones(arity, dtype=np.int32)
    weight = np.zeros(arity)
    n_groups = max(n_labels - arity, 0) // step
    with_room = np.arange(arity).astype(np.int32)  # ascending
    n_with_room = arity
    full = np.zeros(arity, dtype=np.bool_)
    choice = np.empty(n_known, dtype=np.int32)
    equal = np.empty(n_known, dtype=np.bool_)
    waiting = np.ones(n_known, dtype=np.bool_)
    v, a = np.empty(n_known), np.empty(n_known)
    order = np.empty(0, dtype=np.int64)
    at = 0
    late = [(0.0, 0.0, 0) for _ in range(0)]  # labels whose child was full when it was their turn
    n_waiting = n_known
    while n_waiting > 0:
        if order.size == 0 or n_with_room == 0:
            if order.size > 0:  # only heavy children have room: they take the rest
                max_mass = np.inf
                for k in range(arity):
                    full[k] = size[k] == limit[k] and (n_groups == 0 or limit[k] + step > capacity)
                    if not full[k]:
                        with_room[n_with_room] = k
                        n_with_room += 1
                late.clear()
            for i in range(n_known):
                if waiting[i]:
                    j, equal[i] = _best_child(value, affinity, i, size, with_room, n_with_room)
                    choice[i] = j
                    v[i], a[i] = -value[i, j], -affinity[i, j]
            order = np.argsort(a, kind="mergesort")
            order = order[np.argsort(v[order], kind="mergesort")]
            at = 0
        while at < n_known and not waiting[order[at]]:
            at += 1
        if at < n_known:
            i = order[at]
        if len(late) > 0 and (at == n_known or late[0] < (v[i], a[i], i)):
            _, _, i = heapq.heappop(late)
        else:
            at += 1
        j = choice[i]
        if full[j] or equal[i]:
            j, equal[i] = _best_child(value, affinity, i, size, with_room, n_with_room)
            choice[i] = j
            later = (-np.float64(value[i, j]), -np.float64(affinity[i, j]), i)
            if later[0] > v[i] or (later[0] == v[i] and later[1] > a[i]):
                v[i], a[i] = later[0], later[1]
                heapq.heappush(late, later)
                continue
        n_waiting -= 1
        if size[j] == limit[j]:
            limit[j] += step
            n_groups -= 1
        size[j] += 1
        child[i] = j
        waiting[i] = False
        if mass.size > 0:
            weight[j] += mass[i]
        if size[j] < limit[j] and n_groups > 0 and weight[j] < max_mass:
            continue
        n_left = 0  # CheckFull
        for r in range(n_with_room):
            k = with_room[r]
            no_room = size[k] == limit[k] and (n_groups == 0 or limit[k] + step > capacity)
            if no_room or weight[k] >= max_mass:
                full[k] = True
            else:
                with_room[n_left] = k
                n_left += 1
        n_with_room = n_left


@strict_kernel
def place_rest(
    value: AccumArray,
    affinity: AccumArray,
    n_known: int,
    n_real: int,
    step: int,
    capacity: int,
    current: IndexArray,
    child: IndexArray,
) -> None:
    """Fill ``child`` for labels without examples, which stay where they are if there is room.

    Parameters
    ----------
    value, affinity, step, capacity
        As for :func:`assign_greedily`, which has placed the labels before ``n_known``.
    n_real : int
        Labels from here on are fillers, which take what room is left.
    current : ndarray of shape (n_real,)
        The child that each label is at, or -1.
    """
    n_labels, arity = value.shape
    size = np.zeros(arity, dtype=np.int32)
    for i in range(n_known):
        size[child[i]] += 1
    limit = np.ones(arity, dtype=np.int32)
    n_groups = max(n_labels - arity, 0) // step
    for j in range(arity):
        n_more = (max(size[j] - 1, 0) + step - 1) // step
        limit[j] += n_more * step
        n_groups -= n_more
    with_room = np.empty(arity, dtype=np.int32)
    child[n_known:] = NO_ROOM
    for staying in (True, False):
        for i in range(n_known, n_real):
            if child[i] != NO_ROOM:
                continue
            n_with_room = 0
            first, last = (max(current[i], 0), current[i]) if staying else (0, arity - 1)
            for j in range(first, last + 1):
                if size[j] < limit[j] or (n_groups > 0 and limit[j] + step <= capacity):
                    with_room[n_with_room] = j
                    n_with_room += 1
            if n_with_room == 0:
                continue
            j, _ = _best_child(value, affinity, i, size, with_room, n_with_room)
            if size[j] == limit[j]:
                limit[j] += step
                n_groups -= 1
            size[j] += 1
            child[i] = j
    for i in range(n_real, n_labels):
        best = NO_ROOM
        for j in range(arity):
            if size[j] < limit[j] and (best == NO_ROOM or size[j] > size[best]):
                best = j
        size[best] += 1
        child[i] = best


@strict_kernel
def derivatives(
    p: AccumArray,
    q: AccumArray,
    log_likelihood: bool,
    inertia: float,
    current: IndexArray,
    value: AccumArray,
    affinity: AccumArray,
) -> None:
    """Fill equation 10, or 12, of each label and child, and p_j|i - p_j.

    Parameters
    ----------
    p : ndarray of shape (n_labels, arity)
        p_j|i of the node.
    q : ndarray of shape (n_labels,)
        The proportion of each label.
    inertia : float
        What p_j|i is multiplied by if j is the child that label i is at.
    current : ndarray of shape (n_labels,)
        That child, or -1.
    """
    n_labels, arity = p.shape
    mean = np.zeros(arity)
    for i in range(n_labels):
        for j in range(arity):
            mean[j] += q[i] * p[i, j]
    for i in range(n_labels):
        weight = 2.0 / arity * q[i] * (1.0 - q[i])
        for j in range(arity):
            own = p[i, j] * inertia if j == current[i] else p[i, j]
            difference = own - mean[j]
            affinity[i, j] = difference
            size = own if log_likelihood else 1.0
            value[i, j] = weight * np.sign(difference) * size


@strict_kernel
def assign_below(
    known: Known,
    rule: Rule,
    labels: IndexArray,
    old: int,
    first_depth: int,
    n_most: int,
    order: IndexArray,
    begin: OffsetArray,
    end: OffsetArray,
    children: IndexArray,
    origin: IndexArray,
) -> int:
    """Build the subtree over some labels, breadth first; return the number of its nodes.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Labels with examples, then those without, of which nothing is known, then fillers. The
        second take what room the first leave, and that of the child where they are if they can.
    old, first_depth : int
        The node of the old tree that the first node continues, or -1, and its depth.
    n_most : int
        So many nodes, from the first on, get children.
    order : ndarray of shape (n,)
        To be filled: the labels of node i are ``labels[order[begin[i]:end[i]]]``.
    begin, end : ndarray of shape (n,)
    children : ndarray of shape (n, arity)
        To be filled: the number of a node, -1 for none, or ``-2 - label`` for a leaf.
    origin : ndarray of shape (n,)
        To be filled: the node of the old tree that each node continues, or -1.
    """
    n_labels = known.path_ptr.size - 1
    n_old, arity = known.children.shape
    n_in_all = labels.size
    while n_in_all > 0 and labels[n_in_all - 1] >= n_labels:
        n_in_all -= 1
    means = np.empty((n_in_all, known.label_sums.shape[1]), dtype=np.float32)
    mean_representations(known, labels[:n_in_all], means)
    # rows of these are a node's, as many as it has labels
    all_places, all_own = np.empty_like(labels), np.empty_like(labels)
    all_means = np.empty_like(means)
    all_p = np.empty((n_in_all, arity), dtype=np.float32)
    all_q, all_current = np.empty(n_in_all), np.empty(n_in_all, dtype=np.int32)
    all_value = np.empty((labels.size, arity), dtype=np.float32)
    all_affinity = np.empty((labels.size, arity), dtype=np.float32)
    all_child = np.empty(labels.size, dtype=np.int32)
    size_of, real_of, room_at = np.empty((3, arity), dtype=np.int64)
    depth = np.zeros(labels.size, dtype=np.int64)
    for i in range(labels.size):
        order[i] = i
    begin[0], end[0], origin[0], depth[0] = 0, labels.size, old, first_depth
    n_nodes = 1
    n = 0
    while n < n_nodes and n < n_most:
        size, old = end[n] - begin[n], origin[n]
        places, own = all_places[:size], all_own[:size]
        n_known, n_real = 0, 0
        for i in range(size):
            places[i] = order[begin[n] + i]
            own[i] = labels[places[i]]
            n_real += own[i] < n_labels
            n_known += own[i] < n_labels and known.label_counts[own[i]] > 0.0
        step, capacity = arity - 1, 0
        if rule.max_depth > 0:
            step, capacity = 1, min(float(arity) ** (rule.max_depth - 1 - depth[n]), 2.0**30)
        most, max_mass = capacity if capacity else 2**30, rule.max_share / arity
        child = all_child[:size]
        kept = is_kept(known, own[:n_real], old, depth[n])
        kept = kept and keep(known, own, depth[n], step, most, child)
        mean = means
        if kept:
            n_known = 0
        elif old >= 0 and n > 0:
            mean = all_means[:n_real]
            for i in range(n_real):
                for t in range(mean.shape[1]):
                    mean[i, t] = means[places[i], t]
        if not kept:
            p, q, current = all_p[:n_real], all_q[:n_real], all_current[:n_real]
            distributions(known, own[:n_real], mean, old, depth[n], p, q, current)
            value, affinity = all_value[:size], all_affinity[:size]
            value[n_real:], affinity[n_real:] = np.float32(0.0), np.float32(0.0)
            derivatives(p, q, rule.log_likelihood, rule.inertia, current, value, affinity)
            child[:] = 0
            assign_greedily(value, affinity, n_known, step, most, q[:n_known], max_mass, child)
            if n_known < size:
                place_rest(value, affinity, n_known, n_real, step, most, current, child)
            if size * arity <= _EXCHANGE and size > arity and not all_best(value, child):
                mass = np.zeros(size)
                mass[:n_known] = q[:n_known]
                exchange(value.astype(np.float64), step, capacity, mass, max_mass, child)
        size_of[:], real_of[:] = 0, 0
        for i in range(size):
            size_of[child[i]] += 1
            real_of[child[i]] += own[i] < n_labels
        at = begin[n]
        for j in range(arity):
            first, at = at, at + size_of[j]
            room_at[j] = first
            if real_of[j] == 0:
                children[n, j] = -1
            elif size_of[j] > 1:
                children[n, j] = n_nodes
                below = known.children[old, j] if old >= 0 else -1
                origin[n_nodes] = below if 0 < below < n_old else -1
                begin[n_nodes], end[n_nodes], depth[n_nodes] = first, at, depth[n] + 1
                n_nodes += 1
        for i in range(size):
            j = child[i]
            order[room_at[j]] = places[i]
            room_at[j] += 1
            if size_of[j] == real_of[j] == 1:
                children[n, j] = -2 - own[i]
        n += 1
    return n_nodes

"""Trees over labels that are fixed before training: Huffman, balanced and clustered.

A tree that is learned starts from one of them.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, AccumArray, AnyArray, IndexArray
from thinleaf.labeltree.kernels.assignment import assign_greedily
from thinleaf.labeltree.label_tree import LabelTree

_LLOYD_ITERATIONS = 10


def n_fillers(n_labels: int, arity: int) -> int:
    """Return how many labels are missing to fill a well-formed tree: to be 1 modulo M - 1."""
    return (1 - n_labels) % (arity - 1)


def least_arity(n_labels: int, depth: int) -> int:
    """Return the least arity with which a tree of some depth holds all labels.

    Examples
    --------
    >>> least_arity(250_000, 3)
    63
    """
    arity: int = max(2, math.floor(n_labels ** (1.0 / depth)) - 1)
    while float(arity) ** depth < n_labels:
        arity += 1
    return arity


def useful_arity(n_labels: int, arity: int) -> int:
    """Return an arity that gives the same trees without branches that no label can take.

    It is at least 3 if ``arity`` is: nodes of two branches are trained otherwise.
    """
    return min(arity, max(n_labels, 3))


def huffman(frequency: AnyArray, arity: int = 2) -> LabelTree:
    """Return the tree of least expected depth; binary, it is the one of fastText's ``hs``.

    Parameters
    ----------
    frequency : array-like of shape (n_labels,)
    arity : int

    Returns
    -------
    tree : LabelTree
    """
    weight = np.asarray(frequency, dtype=ACCUM).tolist()
    n_labels = len(weight)
    n_nodes = (n_labels + n_fillers(n_labels, arity) - 1) // (arity - 1)
    children = np.full((n_nodes, arity), NO_CHILD, dtype=INDEX)
    heap = [(w, n_nodes + label) for label, w in enumerate(weight)]
    heapq.heapify(heap)
    n_merged = arity - n_fillers(n_labels, arity)
    for node in range(n_nodes - 1, -1, -1):
        merged = [heapq.heappop(heap) for _ in range(min(n_merged, len(heap)))]
        children[node, : len(merged)] = [child for _, child in merged]
        heapq.heappush(heap, (sum(w for w, _ in merged), node))
        n_merged = arity
    return LabelTree.build(children, n_labels)


def balanced(n_labels: int, arity: int = 2, rng: np.random.Generator | None = None) -> LabelTree:
    """Return a tree whose paths differ by at most one in length, over labels in random order.

    Parameters
    ----------
    n_labels, arity : int
    rng : numpy.random.Generator, optional
        By default the labels keep their order: those of a node are next to each other.
    """
    n_nodes = (n_labels + n_fillers(n_labels, arity) - 1) // (arity - 1)
    below = [n_nodes] if n_nodes else []  # how many nodes a node's subtree has
    children = np.full((n_nodes, arity), NO_CHILD, dtype=INDEX)
    for node in range(n_nodes):
        each, n_more = divmod(below[node] - 1, arity)
        n_inner = arity if each else n_more
        children[node, :n_inner] = np.arange(len(below), len(below) + n_inner)
        below += [each + 1] * n_more + [each] * (n_inner - n_more)
    free: AnyArray = np.flatnonzero(children == NO_CHILD)[:n_labels]
    if rng is None:
        every = _leaves_depth_first(children)
        free = every[np.isin(every, free)]
        labels = np.arange(n_labels)
    else:
        labels = rng.permutation(n_labels)
    children.flat[free] = n_nodes + labels[: free.size]
    return LabelTree.build(children, n_labels)


def _leaves_depth_first(children: IndexArray) -> IndexArray:
    """Return the flat positions of what is no node, from left to right in the tree."""
    arity, found = children.shape[1], []
    child_at = children.ravel().tolist()
    waiting = [*range(arity)][::-1] if child_at else []
    while waiting:
        position = waiting.pop()
        if child_at[position] == NO_CHILD:
            found.append(position)
        else:
            first = child_at[position] * arity
            waiting.extend(range(first + arity - 1, first - 1, -1))
    return np.array(found, dtype=INDEX)


def clustered(prototypes: AnyArray, arity: int, rng: np.random.Generator) -> LabelTree:
    """Return a balanced tree of similar labels: k-means from the root down, greedy until full.

    Parameters
    ----------
    prototypes : array-like of shape (n_labels, n_dims)
        A vector for each label.
    arity : int
    rng : numpy.random.Generator

    Returns
    -------
    tree : LabelTree
        A node with L labels has children of at most ⌈L / M⌉.
    """
    points = np.asarray(prototypes, dtype=ACCUM)
    n_labels = points.shape[0]
    rows: list[list[int]] = []
    waiting = [np.arange(n_labels)] if n_labels > 1 else []
    n_seen = 1
    for labels in waiting:  # grows while it is read: breadth first
        row = [NO_CHILD] * arity
        for j, part in enumerate(_parts(points, labels, arity, rng)):
            if part.size == 1:
                row[j] = -2 - int(part[0])
            elif part.size:
                row[j] = n_seen
                n_seen += 1
                waiting.append(part)
        rows.append(row)
    children = np.array(rows, dtype=INDEX).reshape(len(rows), arity)
    leaf = children < NO_CHILD
    children[leaf] = len(rows) - 2 - children[leaf]
    return LabelTree.build(children, n_labels)


def _parts(
    points: AccumArray, labels: AnyArray, arity: int, rng: np.random.Generator
) -> list[AnyArray]:
    """Return the labels of each child of a node."""
    if labels.size <= arity:
        return [labels[j : j + 1] for j in range(labels.size)]
    own = points[labels]
    distance = _distances(own, _centroids(own, arity, rng))
    child: IndexArray = np.zeros(labels.size, dtype=INDEX)
    capacity = math.ceil(labels.size / arity)
    none = np.empty(0)
    zero = np.zeros_like(distance)
    assign_greedily(-distance, zero, labels.size, 1, capacity, none, np.inf, child)
    return [labels[child == j] for j in range(arity)]


def _centroids(points: AccumArray, arity: int, rng: np.random.Generator) -> AccumArray:
    centroids: AccumArray = points[rng.choice(points.shape[0], arity, replace=False)]
    for _ in range(_LLOYD_ITERATIONS):
        nearest = _distances(points, centroids).argmin(axis=1)
        for j in range(arity):
            if np.any(nearest == j):
                centroids[j] = points[nearest == j].mean(axis=0)
    return centroids


def _distances(points: AccumArray, centroids: AccumArray) -> AccumArray:
    """Return squared distances, of shape (n_points, n_centroids)."""
    out: AccumArray = (
        np.square(points).sum(axis=1)[:, None]
        + np.square(centroids).sum(axis=1)
        - 2.0 * points @ centroids.T
    )
    return np.ascontiguousarray(out)

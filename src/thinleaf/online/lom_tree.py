"""LOMTree: a binary tree of routers grown online, with one label for each leaf.

A router maximises equation 6 of paper 004 for two children: with h in [-1, 1] the direction that an
example takes, it sends a class to the side where the class is more often than all classes are,
which makes splits balanced and pure. A leaf that gets a second label becomes a router while there
are routers left; thereafter it takes one over from where the smallest leaf is, if it has become
large against that leaf (Choromanska & Langford 2015).

A router that is positive leads right.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from thinleaf._dtypes import NO_CHILD, AccumArray, IndexArray, OffsetArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.importance import LOGISTIC
from thinleaf.online.linear_models import Learning, Models, Scratch, learn, score
from thinleaf.online.scaled_rows import Row, Scales, Stream, observe, prepare
from thinleaf.online.tables import COUNT, EMPTY, USED, Tables, clear, find_or_insert, log_size_for
from thinleaf.online.weights import n_slots, slots_needed

ROOT: Final = 0

LEFT: Final = 0
RIGHT: Final = 1
PARENT: Final = 2
ROUTER: Final = 3
MAJORITY: Final = 4
"""Columns of ``nodes``; the last one is the most frequent label, at first the parent's."""

SMALLEST: Final = 0
"""C: examples at the smallest leaf below a node."""
TRAINED: Final = 1
DIRECTIONS: Final = 2
LARGEST: Final = 3
"""Columns of ``stats``: examples that a router learned, the sum of their h, and the count of the
most frequent label."""

SEEN: Final = 0
"""Column of label tables beside ``TRAINED`` and ``DIRECTIONS``: examples of the label."""

N_NODES: Final = 0
N_ROUTERS: Final = 1
DEEPEST: Final = 2
"""Places in ``sizes``; the last one is the longest path that there has been."""


class LomTree(NamedTuple):
    """The tree as arrays."""

    nodes: IndexArray
    """Of shape (n_nodes, 5)."""
    stats: AccumArray
    """Of shape (n_nodes, 4)."""
    labels: Tables
    """Of each node, what it knows of the labels that have reached it."""
    routers: Models
    scales: Scales
    sizes: OffsetArray


class Settings(NamedTuple):
    """What users choose."""

    max_routers: int
    """0: one less than the number of classes so far."""
    swap_resistance: float
    max_depth: int
    router: Learning


# -- prediction ------------------------------------------------------------------------------------


@bare_part
def leaf_of(tree: LomTree, row: Row, scratch: Scratch) -> int:
    """Return the leaf that a row reaches."""
    node = ROOT
    while tree.nodes[node, LEFT] != NO_CHILD:
        node = tree.nodes[node, side_of(route(tree, row, node, scratch))]
    return node


@bare_part
def route(tree: LomTree, row: Row, node: int, scratch: Scratch) -> float:
    """Return f(x) of a node's router."""
    scratch.models[0] = tree.nodes[node, ROUTER]
    score(tree.routers, row, scratch.models, 1, scratch)
    return float(scratch.score[0])


@bare_part
def side_of(f: float) -> int:
    """Return which child a router's output leads to."""
    return RIGHT if f > 0.0 else LEFT


@bare_part
def direction(loss: int, f: float) -> float:
    """Return h in [-1, 1]: P(right) - P(left) with logistic loss, else the clipped output."""
    if loss == LOGISTIC:
        return math.tanh(0.5 * f)
    return min(max(f, -1.0), 1.0)


# -- learning --------------------------------------------------------------------------------------


@bare_part
def train(
    tree: LomTree, row: Row, label: int, weight: float, settings: Settings, scratch: Scratch
) -> None:
    """Teach the routers on the way of an example, then count it at its leaf, which may split."""
    node, depth = ROOT, 0
    while tree.nodes[node, LEFT] != NO_CHILD:
        f = update_router(tree, row, label, weight, node, settings, scratch)
        node = tree.nodes[node, side_of(f)]
        depth += 1
    count(tree, node, label, weight)
    if tree.labels.owners[node, COUNT] > 1 and depth < settings.max_depth:
        limit = settings.max_routers
        if limit == 0:
            limit = tree.labels.owners[ROOT, COUNT] - 1
        if tree.sizes[N_ROUTERS] < limit:
            split(tree, node)
        else:
            swap(tree, node, settings.swap_resistance)
        tree.sizes[DEEPEST] = max(tree.sizes[DEEPEST], depth + 1)
    if tree.nodes[node, LEFT] == NO_CHILD:
        tree.stats[node, SMALLEST] += weight
        update_smallest(tree, node)


@bare_part
def update_router(
    tree: LomTree,
    row: Row,
    label: int,
    weight: float,
    node: int,
    settings: Settings,
    scratch: Scratch,
) -> float:
    """Send a label's examples to the side where they are more often than others; return f(x)."""
    at = count(tree, node, label, weight)
    stats, values = tree.stats[node], tree.labels.values[at]
    mean = stats[DIRECTIONS] / stats[TRAINED] if stats[TRAINED] > 0.0 else 0.0
    mean_of_label = values[DIRECTIONS] / values[TRAINED] if values[TRAINED] > 0.0 else 0.0
    positive = EMPTY if mean > mean_of_label else 0
    route(tree, row, node, scratch)
    learning, routers, scales = settings.router, tree.routers, tree.scales
    learn(routers, row, scratch.models, 1, positive, weight, learning, scales, scratch)
    f = float(scratch.score[0])
    h = weight * direction(learning.loss, f)
    stats[TRAINED] += weight
    stats[DIRECTIONS] += h
    values[TRAINED] += weight
    values[DIRECTIONS] += h
    return f


@bare_part
def count(tree: LomTree, node: int, label: int, weight: float) -> int:
    """Count a label at a node; return where it stands in the node's table."""
    at = find_or_insert(tree.labels, node, label)
    tree.labels.values[at, SEEN] += weight
    if tree.labels.values[at, SEEN] > tree.stats[node, LARGEST]:
        tree.stats[node, LARGEST] = tree.labels.values[at, SEEN]
        tree.nodes[node, MAJORITY] = label
    return at


# -- structure -------------------------------------------------------------------------------------


@bare_part
def split(tree: LomTree, leaf: int) -> None:
    """Turn a leaf into a new router with two leaves."""
    first, router = tree.sizes[N_NODES], tree.sizes[N_ROUTERS]
    tree.sizes[N_NODES] = first + 2
    tree.sizes[N_ROUTERS] = router + 1
    become_router(tree, leaf, router, first, first + 1)


@bare_part
def swap(tree: LomTree, leaf: int, resistance: float) -> None:
    """Let a large leaf take over the router above the smallest leaf, whose sibling moves up.

    The smallest leaf and its parent are the new leaves. The router keeps its weights.
    """
    size = tree.stats[leaf, SMALLEST] - tree.stats[leaf, LARGEST]
    if size <= resistance * (tree.stats[ROOT, SMALLEST] + 1.0):
        return
    smallest = smallest_leaf(tree)
    parent = tree.nodes[smallest, PARENT]
    if smallest == leaf or parent in (NO_CHILD, ROOT):
        return
    grandparent = tree.nodes[parent, PARENT]
    sibling = tree.nodes[parent, LEFT]
    if sibling == smallest:
        sibling = tree.nodes[parent, RIGHT]
    side = LEFT if tree.nodes[grandparent, LEFT] == parent else RIGHT
    tree.nodes[grandparent, side] = sibling
    tree.nodes[sibling, PARENT] = grandparent
    update_smallest(tree, sibling)
    become_router(tree, leaf, tree.nodes[parent, ROUTER], smallest, parent)


@bare_part
def smallest_leaf(tree: LomTree) -> int:
    """Return the leaf with the fewest examples."""
    node = ROOT
    while tree.nodes[node, LEFT] != NO_CHILD:
        left, right = tree.nodes[node, LEFT], tree.nodes[node, RIGHT]
        node = left if tree.stats[left, SMALLEST] <= tree.stats[right, SMALLEST] else right
    return node


@bare_part
def become_router(tree: LomTree, node: int, router: int, left: int, right: int) -> None:
    """Give a leaf a router and two empty leaves, which start with half of its size each."""
    size = tree.stats[node, SMALLEST]
    tree.nodes[node, LEFT] = left
    tree.nodes[node, RIGHT] = right
    tree.nodes[node, ROUTER] = router
    for side in range(2):
        child = tree.nodes[node, side]
        tree.nodes[child, LEFT] = NO_CHILD
        tree.nodes[child, RIGHT] = NO_CHILD
        tree.nodes[child, PARENT] = node
        tree.nodes[child, ROUTER] = EMPTY
        tree.nodes[child, MAJORITY] = tree.nodes[node, MAJORITY]
        for column in range(tree.stats.shape[1]):
            tree.stats[child, column] = 0.0
        clear(tree.labels, child)
    tree.stats[left, SMALLEST] = math.floor(size / 2)
    tree.stats[right, SMALLEST] = size - math.floor(size / 2)
    update_smallest(tree, left)


@bare_part
def update_smallest(tree: LomTree, node: int) -> None:
    """Carry a changed size up the tree, as far as it matters."""
    while tree.nodes[node, PARENT] != NO_CHILD:
        node = tree.nodes[node, PARENT]
        left, right = tree.nodes[node, LEFT], tree.nodes[node, RIGHT]
        smallest = min(tree.stats[left, SMALLEST], tree.stats[right, SMALLEST])
        if tree.stats[node, SMALLEST] == smallest:
            return
        tree.stats[node, SMALLEST] = smallest


# -- the stream ------------------------------------------------------------------------------------


@bare_kernel
def learn_rows(
    tree: LomTree,
    stream: Stream,
    first: int,
    settings: Settings,
    scratch: Scratch,
    predicted: IndexArray,
    needed: OffsetArray,
) -> int:
    """Predict each row, then learn it; return the first place that there was no room for."""
    for place in range(first, stream.order.size):
        i = stream.order[place]
        length = observe(stream.X, i, tree.scales)
        n = prepare(stream.X, i, tree.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        if not has_room(tree, row, needed):
            return place
        predicted[place] = tree.nodes[leaf_of(tree, row, scratch), MAJORITY]
        tree.scales.norm[0] += stream.weights[i]
        tree.scales.norm[1] += stream.weights[i] * length
        train(tree, row, stream.labels[i], stream.weights[i], settings, scratch)
    return stream.order.size


@bare_part
def has_room(tree: LomTree, row: Row, needed: OffsetArray) -> bool:
    """Whether arrays are large enough for what one example may add; fill in what is needed."""
    n_classes, longest = tree.labels.owners[ROOT, COUNT] + 1, tree.sizes[DEEPEST] + 1
    needed[0] = tree.sizes[N_NODES] + 2
    needed[1] = tree.labels.heads[USED] + longest * (2 << log_size_for(n_classes))
    needed[2] = slots_needed(tree.routers.weights, row, longest)
    return bool(
        needed[0] <= tree.nodes.shape[0]
        and needed[1] <= tree.labels.keys.size
        and needed[2] <= n_slots(tree.routers.weights)
    )


@bare_kernel
def find_leaves(tree: LomTree, X: Rows, scratch: Scratch, leaves: IndexArray) -> None:
    """Fill in the leaf that each row reaches."""
    for i in range(leaves.size):
        n = prepare(X, i, tree.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        leaves[i] = leaf_of(tree, row, scratch)

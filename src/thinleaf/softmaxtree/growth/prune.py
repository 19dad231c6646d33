"""Post-processing: cut what no row needs (paper 001, Algorithm 1, last line).

Three things go: subtrees that no training row reaches (dead), routers without weights, which send
every row to the same child, and subtrees whose leaves all predict the same single class (pure). The
last two change no prediction for any input, the first none for a training row.
"""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, BoolArray, IndexArray
from thinleaf.model.tree import Leaf, Router, Tree


def prune(tree: Tree, reached: BoolArray | None = None) -> tuple[Tree, IndexArray]:
    """Cut dead, redundant and pure parts; what rows in ``reached`` nodes get stays the same.

    Parameters
    ----------
    tree : Tree
    reached : ndarray of shape (n_nodes,), optional
        Mask of the nodes that some row reaches; subtrees outside it are dropped.

    Returns
    -------
    tree : Tree
        Nodes numbered breadth-first.
    kept : ndarray of shape (n_nodes of the result,)
        The old node that each new node stands for; of a merged pure subtree, its top.
    """
    alive = np.ones(tree.n_nodes, dtype=np.bool_) if reached is None else reached
    single = _single_class(tree, alive)
    if _is_pruned(tree, alive, single):
        return tree, np.arange(tree.n_nodes, dtype=INDEX)
    queue = [_resolve(tree, alive, single, 0)]
    children: list[tuple[int, int]] = []
    nodes: list[Router | Leaf] = []
    for node in queue:  # the queue grows while we walk it
        if single[node] >= 0:
            nodes.append(Leaf.constant(int(single[node])))
            children.append((NO_CHILD, NO_CHILD))
        elif tree.is_leaf[node]:
            nodes.append(tree.leaf(node))
            children.append((NO_CHILD, NO_CHILD))
        else:
            nodes.append(tree.router(node))
            children.append((len(queue), len(queue) + 1))
            queue += [_resolve(tree, alive, single, int(c)) for c in tree.children[node]]
    pruned = Tree.build(
        np.array(children), nodes, n_features=tree.n_features, n_classes=tree.n_classes
    )
    return pruned, np.array(queue, dtype=INDEX)


def _is_pruned(tree: Tree, alive: BoolArray, single: IndexArray) -> bool:
    """Return whether there is nothing to cut, and nodes are numbered breadth-first."""
    routers = np.flatnonzero(~tree.is_leaf)
    first = 2 * np.arange(routers.size) + 1
    in_order = np.array_equal(tree.children[routers], np.column_stack([first, first + 1]))
    if not in_order or not alive.all() or np.any(single[routers] >= 0):
        return False
    constant = np.flatnonzero(single >= 0)
    return (
        not tree.leaf_bias[tree.class_ptr[constant]].any()
        and bool(np.all(tree.feat_ptr[constant] == tree.feat_ptr[constant + 1]))
        and all(_only_child(tree, alive, int(node)) == NO_CHILD for node in routers)
    )


def _only_child(tree: Tree, alive: BoolArray, node: int) -> int:
    """Return the child that stands for a redundant router, or ``NO_CHILD``."""
    left, right = (int(child) for child in tree.children[node])
    if left == NO_CHILD:
        return NO_CHILD
    if alive[left] != alive[right]:
        return left if alive[left] else right
    router = tree.router(node)
    if not router.weights.any():
        return right if router.bias >= 0.0 else left
    return NO_CHILD


def _resolve(tree: Tree, alive: BoolArray, single: IndexArray, node: int) -> int:
    """Walk down from a node past redundant routers."""
    while single[node] < 0 and (child := _only_child(tree, alive, node)) != NO_CHILD:
        node = child
    return node


def _single_class(tree: Tree, alive: BoolArray) -> IndexArray:
    """Return the one class that a subtree's living leaves all hold alone, or -1."""
    single = np.full(tree.n_nodes, -1, dtype=INDEX)
    for node in range(tree.n_nodes - 1, -1, -1):
        left, right = tree.children[node]
        if left == NO_CHILD:
            classes = tree.leaf(node).classes
            single[node] = classes[0] if classes.size == 1 else -1
        elif (child := _only_child(tree, alive, node)) != NO_CHILD:
            single[node] = single[child]
        elif single[left] == single[right]:
            single[node] = single[left]
    return single

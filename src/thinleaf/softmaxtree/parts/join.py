"""Subtrees of parts, joined under their top into one ordinary tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, AccumArray, IndexArray
from thinleaf.arrays.files import read_arrays, write_arrays
from thinleaf.arrays.ragged import offsets, ranges
from thinleaf.model.file_parts import tree_arrays, tree_from_arrays
from thinleaf.model.probability import Backoff
from thinleaf.model.routing import Reach, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.tao import TrainingData

_OF_BACKOFF = ("mass", "ptr", "ids", "counts")


@dataclass(frozen=True)
class Branch:
    """A subtree, and what is known of the rows that reach its nodes.

    Attributes
    ----------
    tree : Tree
    weight : ndarray of shape (n_nodes,)
        Of the rows that reach each node.
    backoff : Backoff
        Its masses are not capped.
    """

    tree: Tree
    weight: AccumArray
    backoff: Backoff

    @classmethod
    def of(cls, tree: Tree, data: TrainingData, scale: float = 1.0) -> Branch:
        """Return a subtree with what some rows say of it; outside masses count ``scale`` times."""
        reach = route(tree, data.X)
        backoff = Backoff.counted(tree, reach, data.y, data.weight)
        weight = weight_of_nodes(reach, data.weight)
        return cls(tree, weight, replace(backoff, mass=backoff.mass * scale))

    def write(self, path: Path) -> None:
        """Write it to a file."""
        own = {name: getattr(self.backoff, name) for name in _OF_BACKOFF}
        size = {"n_features": self.tree.n_features, "n_classes": self.tree.n_classes}
        write_arrays(path, tree_arrays(self.tree, "tree.") | own | {"weight": self.weight}, size)

    @classmethod
    def read(cls, path: Path) -> Branch:
        """Return what :meth:`write` wrote."""
        arrays, size = read_arrays(path, mapped=False)
        tree = tree_from_arrays(arrays, "tree.", **size)
        prior = np.empty(0, dtype=ACCUM)
        backoff = Backoff(*(arrays[name] for name in _OF_BACKOFF), prior=prior)  # type: ignore[misc]
        return cls(tree, arrays["weight"], backoff)


def weight_of_nodes(reach: Reach, weight: AccumArray) -> AccumArray:
    """Return the weight of the rows that reach each node."""
    ordered = np.concatenate([[0.0], np.cumsum(weight[reach.rows[reach.order]])])
    out: AccumArray = ordered[reach.end] - ordered[reach.begin]
    return out


def with_classes(tree: Tree, classes: IndexArray, n_classes: int) -> Tree:
    """Return a tree of some classes, ascending, as one of all classes."""
    return replace(tree, class_ids=classes[tree.class_ids].astype(INDEX), n_classes=n_classes)


def join(top: Tree, branches: Sequence[Branch], mass: AccumArray) -> Branch:
    """Return all branches as one, under the routers of the top.

    Parameters
    ----------
    top : Tree
    branches : sequence of Branch
        One for each leaf of the top, in the order of their nodes.
    mass : ndarray of shape (n_classes,)
        Weight of each class, in rows.
    """
    leaves = np.flatnonzero(top.is_leaf).tolist()
    whole = replace(top, n_classes=mass.size).graft(
        {leaf: branch.tree for leaf, branch in zip(leaves, branches, strict=True)}
    )
    n_nodes, next_node = whole.n_nodes, top.n_nodes
    weight = np.zeros(n_nodes, dtype=ACCUM)
    outside = np.zeros(n_nodes, dtype=ACCUM)
    sizes = np.zeros(n_nodes, dtype=np.int64)
    # where the entries of each node are among those of all branches, one after the other
    begin = np.zeros(n_nodes, dtype=np.int64)
    n_before = 0
    for leaf, branch in zip(leaves, branches, strict=True):
        n_more = branch.tree.n_nodes - 1
        nodes = np.concatenate([[leaf], np.arange(next_node, next_node + n_more)])
        next_node += n_more
        weight[nodes], outside[nodes] = branch.weight, branch.backoff.mass
        sizes[nodes] = np.diff(branch.backoff.ptr)
        begin[nodes] = n_before + branch.backoff.ptr[:-1]
        n_before += branch.backoff.ids.size
    for node in range(top.n_nodes - 1, -1, -1):
        left, right = top.children[node]
        if left != NO_CHILD:
            weight[node] = weight[left] + weight[right]
    whole, order = _breadth_first(whole)
    weight, outside, sizes = weight[order], outside[order], sizes[order]
    entries = ranges(begin[order], sizes)
    ids = np.concatenate([branch.backoff.ids for branch in branches])[entries]
    counts = np.concatenate([branch.backoff.counts for branch in branches])[entries]
    frequencies = mass + 0.5
    prior = frequencies / frequencies.sum()
    backoff = Backoff(outside, offsets(sizes), ids, counts, prior)
    return Branch(whole, weight, backoff.capped(whole))


def _breadth_first(tree: Tree) -> tuple[Tree, IndexArray]:
    """Return a tree with nodes numbered breadth-first, and the old number of each."""
    order = [0]
    children = []
    for node in order:  # it grows while we walk it
        if tree.is_leaf[node]:
            children.append((NO_CHILD, NO_CHILD))
            continue
        children.append((len(order), len(order) + 1))
        order += tree.children[node].tolist()
    nodes = [tree.node(node) for node in order]
    size = {"n_features": tree.n_features, "n_classes": tree.n_classes}
    return Tree.build(np.array(children), nodes, **size), np.array(order, dtype=INDEX)

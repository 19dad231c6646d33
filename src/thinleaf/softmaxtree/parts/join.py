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
from thinleaf.model.tree import Leaf, Router, Tree
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
    tree, order = _breadth_first(top, branches, mass.size)
    above = np.zeros(top.n_nodes)
    weight = np.concatenate([above, *(branch.weight for branch in branches)])[order]
    outside = np.concatenate([above, *(branch.backoff.mass for branch in branches)])[order]
    none = np.zeros(top.n_nodes, dtype=np.int64)
    sizes = np.concatenate([none, *(np.diff(branch.backoff.ptr) for branch in branches)])
    entries = ranges(offsets(sizes)[order], sizes[order])
    ids = np.concatenate([branch.backoff.ids for branch in branches])[entries]
    counts = np.concatenate([branch.backoff.counts for branch in branches])[entries]
    for node in np.flatnonzero(order < top.n_nodes)[::-1].tolist():  # routers of the top
        weight[node] = weight[tree.children[node]].sum()
    frequencies = mass + 0.5
    prior = frequencies / frequencies.sum()
    backoff = Backoff(outside, offsets(sizes[order]), ids, counts, prior)
    return Branch(tree, weight, backoff.capped(tree))


def _breadth_first(
    top: Tree, branches: Sequence[Branch], n_classes: int
) -> tuple[Tree, IndexArray]:
    """Return the tree of a top and its branches, nodes breadth-first, and where each was.

    Nodes of the top are counted first, then those of all branches, one after the other.
    """
    trees = [top, *(branch.tree for branch in branches)]
    first = offsets([tree.n_nodes for tree in trees])
    root_of = dict(zip(np.flatnonzero(top.is_leaf).tolist(), first[1:-1].tolist(), strict=True))
    order, children = [root_of.get(0, 0)], []
    nodes: list[Router | Leaf] = []
    for number in order:  # it grows while we walk it
        which = int(np.searchsorted(first, number, side="right")) - 1
        tree, node = trees[which], number - int(first[which])
        nodes.append(tree.node(node))
        if tree.is_leaf[node]:
            children.append((NO_CHILD, NO_CHILD))
            continue
        children.append((len(order), len(order) + 1))
        below = (tree.children[node] + first[which]).tolist()
        order += below if which else [root_of.get(child, child) for child in below]
    size = {"n_features": top.n_features, "n_classes": n_classes}
    return Tree.build(np.array(children), nodes, **size), np.array(order, dtype=INDEX)

"""A known hierarchy of labels as the start of a tree.

Classes are put in the order of the hierarchy, and halved from the root down: near the middle, where
neighbours have the least in common. So a subtree of the tree is one of the hierarchy, or a few of
its siblings, and leaves hold nearly the same number of classes whatever the hierarchy's shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.model.tree import Tree

_LEAST_SHARE = 1 / 3
"""Of the classes of a node, that either child gets at the least."""


@dataclass(frozen=True)
class Hierarchy:
    """Classes in the order of a hierarchy.

    Attributes
    ----------
    order : ndarray of shape (n_classes,)
        Classes; those of a group stand together, whatever the level.
    shared : ndarray of shape (n_classes - 1,)
        How many groups a class of that order has in common with the next one.
    """

    order: IndexArray
    shared: IndexArray

    @classmethod
    def of(cls, paths: Mapping[Any, Any], labels: AnyArray) -> Hierarchy:
        """Return the hierarchy of some labels.

        Parameters
        ----------
        paths : mapping
            From labels to their groups, the largest first: a sequence of names, or one text with
            "/" between them. Other labels may be in it, too.
        labels : ndarray of shape (n_classes,)

        Raises
        ------
        ValueError
            If a label has no path, or one that is neither a sequence nor a text.
        """
        own = [_path_of(paths, label) for label in labels.tolist()]
        order = sorted(range(len(own)), key=lambda i: (tuple(map(str, own[i])), i))
        ranked = [own[i] for i in order]
        shared = [_n_shared(a, b) for a, b in pairwise(ranked)]
        return cls(np.array(order, dtype=INDEX), np.array(shared, dtype=INDEX))

    def leaves(self, tree: Tree, y: IndexArray) -> IndexArray:
        """Return the leaf of each row of some classes, in a tree of any structure.

        Parameters
        ----------
        tree : Tree
        y : ndarray of shape (n_rows,)
            Classes of rows; only those that occur are spread over the leaves.
        """
        present = np.zeros(self.order.size, dtype=np.bool_)
        present[y] = True
        places = np.flatnonzero(present[self.order])
        leaf_of_class = np.zeros(self.order.size, dtype=INDEX)
        ranges = {0: (0, places.size)}
        for node in range(tree.n_nodes):
            begin, end = ranges.pop(node)
            if tree.is_leaf[node]:
                leaf_of_class[self.order[places[begin:end]]] = node
                continue
            middle = self._cut(places[begin:end]) + begin
            left, right = tree.children[node].tolist()
            ranges[left], ranges[right] = (begin, middle), (middle, end)
        return leaf_of_class[y]

    def _cut(self, places: AnyArray) -> int:
        """Return how many of some classes go left."""
        n = places.size
        half = (n + 1) // 2
        if n < 3:
            return half
        least = max(1, int(n * _LEAST_SHARE))
        cuts = np.arange(least, n - least + 1)
        # classes that are not there may stand between two: these share what the whole way does
        common = [self.shared[places[c - 1] : places[c]].min() for c in cuts.tolist()]
        return int(cuts[np.lexsort((np.abs(cuts - half), common))[0]])


def _path_of(paths: Mapping[Any, Any], label: Any) -> Sequence[Any]:
    if label not in paths:
        raise ValueError(
            f"hierarchy has no path for the label {label!r}: it must map every label of y to the "
            "groups that it belongs to"
        )
    path = paths[label]
    if isinstance(path, str):
        return path.split("/")
    if not isinstance(path, Sequence):
        raise ValueError(
            f"hierarchy maps the label {label!r} to {path!r}: it must be a sequence of groups, or "
            "a text with '/' between them"
        )
    return path


def _n_shared(a: Sequence[Any], b: Sequence[Any]) -> int:
    n = 0
    while n < min(len(a), len(b)) and str(a[n]) == str(b[n]):
        n += 1
    return n

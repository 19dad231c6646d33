"""A whole tree at a glance: features that matter, what decides for a class, who shares a leaf.

All functions take a frozen tree or forest, or an estimator that can be frozen. Why rows are
predicted wrong is in :mod:`thinleaf.explain.errors`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, AnyArray
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.importance import (
    PackedRouters,
    feature_spread,
    importances,
    packed_nodes,
    rows_below,
)


def frozen_tree(model: Any) -> FrozenTree:
    """Return a model's frozen tree or forest.

    Raises
    ------
    TypeError
        If it has none.
    """
    frozen = model.freeze() if hasattr(model, "freeze") else model
    if not isinstance(frozen, FrozenTree):
        raise TypeError(
            f"this is for softmax trees, forests and online trees, not for a {type(model).__name__}"
        )
    return frozen


def name_of_feature(model: FrozenTree) -> Any:
    """Return what names the features of a model."""
    return model._names_for(None).name


def leaf_rows(model: FrozenTree, X: Any) -> AccumArray:
    """Return how many rows reach each leaf by the most probable path, of shape (n_leaves,)."""
    packed = model.packed
    leaves = model.predictor.leaves(model._rows(X))
    number = np.cumsum(packed.child < 0) - 1
    return np.bincount(number[leaves].ravel(), minlength=packed.n_leaves).astype(ACCUM)


def feature_importances(model: Any, X: Any) -> AccumArray:
    """Return how much each feature decides on some rows; they sum to one.

    As ``feature_importances_`` of estimators, by these rows instead of those of the training.

    Parameters
    ----------
    model : FrozenTree or estimator
    X : rows, or texts
    """
    frozen = frozen_tree(model)
    packed, rows = frozen.packed, frozen._rows(X)
    reach = rows_below(packed, leaf_rows(frozen, rows))
    return importances(packed_nodes(packed), reach, feature_spread(rows))


@dataclass(frozen=True)
class ClassPlace:
    """A leaf that holds a class.

    Attributes
    ----------
    tree, leaf, node, depth : int
    n_classes : int
        In the leaf.
    way : tuple of (int, str)
        Routers from the root on, and the side that leads there.
    """

    tree: int
    leaf: int
    node: int
    depth: int
    n_classes: int
    way: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class ClassView:
    """Where a class is, and what decides for it.

    Attributes
    ----------
    label : object
    places : tuple of ClassPlace
    features, against : tuple of (str, float)
        Features that lead to the class most, and away from it: the weights of routers toward its
        leaves and its own weights there over the mean of the leaf's classes, added up along a way
        and averaged over the leaves.
    mates : tuple of (object, int)
        The classes that share most leaves with it, and how many.
    """

    label: Any
    places: tuple[ClassPlace, ...]
    features: tuple[tuple[str, float], ...]
    against: tuple[tuple[str, float], ...]
    mates: tuple[tuple[Any, int], ...]

    def __str__(self) -> str:
        """Return it in words."""
        leaves = ", ".join(f"{place.leaf} (depth {place.depth})" for place in self.places[:8])
        more = f" and {len(self.places) - 8} more" if len(self.places) > 8 else ""
        return "\n".join(
            [
                f"{self.label}: in {len(self.places)} leaves: {leaves}{more}",
                f"  for      {_listed(self.features)}",
                f"  against  {_listed(self.against)}",
                "  with     " + (", ".join(f"{m} ({n})" for m, n in self.mates) or "–"),
            ]
        )


def _listed(features: tuple[tuple[str, float], ...]) -> str:
    return ", ".join(f"{name} {weight:+.2f}" for name, weight in features) or "–"


def class_view(model: Any, label: Any, *, n_features: int = 10, n_mates: int = 10) -> ClassView:
    """Return where a class is in the tree, and which features decide for it.

    Parameters
    ----------
    model : FrozenTree or estimator
    label : object
        A label of the model.
    n_features, n_mates : int
        How many features and classes to name.
    """
    frozen = frozen_tree(model)
    packed, labels = frozen.packed, frozen.labels.tolist()
    if label not in labels:
        raise ValueError(f"the model has no class {label!r}")
    class_id = labels.index(label)
    leaves = leaves_of(frozen, class_id)
    routers, trails = PackedRouters(packed), Trails(frozen)
    evidence = np.zeros(frozen.n_features, dtype=ACCUM)
    places = []
    mates: Counter[int] = Counter()
    for number in leaves.tolist():
        trail, leaf = trails[number], packed.leaf(number)
        way = []
        for node, below in pairwise(trail):
            right, router = below != packed.child[node], routers[node]
            evidence[router.features] += router.weights if right else -router.weights
            way.append((node, "right" if right else "left"))
        slot = int(np.searchsorted(leaf.classes, class_id))
        evidence[leaf.features] += leaf.weights[:, slot] - leaf.weights.mean(axis=1)
        mates.update(leaf.classes.tolist())
        size = int(leaf.classes.size)
        places.append(ClassPlace(trail[0], number, trail[-1], len(way), size, tuple(way)))
    del mates[class_id]
    evidence /= max(leaves.size, 1)
    name = name_of_feature(frozen)
    order = np.argsort(-evidence, kind="stable")
    return ClassView(
        label,
        tuple(places),
        tuple(
            (name(f), float(evidence[f])) for f in order[:n_features].tolist() if evidence[f] > 0
        ),
        tuple(
            (name(f), float(evidence[f]))
            for f in order[::-1][:n_features].tolist()
            if evidence[f] < 0
        ),
        tuple((labels[i], n) for i, n in mates.most_common(n_mates)),
    )


class Trails:
    """The nodes from the root to each leaf.

    Parameters
    ----------
    model : FrozenTree
    """

    def __init__(self, model: FrozenTree) -> None:
        child = model.packed.child
        routers = np.flatnonzero(child >= 0)
        self._parent = np.full(child.size, -1)
        self._parent[child[routers]] = self._parent[child[routers] + 1] = routers
        self._leaf_nodes = np.flatnonzero(child < 0)

    def __getitem__(self, leaf: int) -> tuple[int, ...]:
        """Return the nodes on the way to a leaf, and its own."""
        nodes, node = [], int(self._leaf_nodes[leaf])
        while node >= 0:
            nodes.append(node)
            node = int(self._parent[node])
        return tuple(reversed(nodes))


def leaves_of(model: FrozenTree, class_id: int) -> AnyArray:
    """Return the leaves that hold a class."""
    packed = model.packed
    places = np.flatnonzero(packed.class_ids == class_id)
    found: AnyArray = np.searchsorted(packed.class_ptr, places, side="right") - 1
    return found


def shared_leaves(model: Any, *, n: int = 20) -> list[tuple[Any, Any, int]]:
    """Return the pairs of classes that share most leaves, and how many leaves they share.

    Parameters
    ----------
    model : FrozenTree or estimator
    n : int
        How many pairs.
    """
    import scipy.sparse as sp

    frozen = frozen_tree(model)
    packed, labels = frozen.packed, frozen.labels.tolist()
    shape = (packed.n_leaves, packed.n_classes)
    held = sp.csr_array((np.ones(packed.class_ids.size), packed.class_ids, packed.class_ptr), shape)
    pairs = sp.triu(held.T @ held, k=1).tocoo()
    order = np.lexsort((pairs.col, pairs.row, -pairs.data))[:n]
    return [
        (labels[i], labels[j], int(count))
        for i, j, count in zip(pairs.row[order], pairs.col[order], pairs.data[order], strict=True)
    ]

"""The nodes of any tree in one form: of softmax trees, forests, online trees and label trees.

Nodes are numbered breadth-first, roots first, and siblings stand together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.model.frozen import FrozenModel, FrozenTree


class LabelNodes(Protocol):
    """What a label tree is made of; this package does not import it."""

    tree: Any
    weights: ParamArray
    bias: ParamArray
    U: ParamArray
    scale: float


@dataclass(frozen=True, eq=False)
class Outline:
    """Who is whose child, and which classes leaves have.

    Attributes
    ----------
    n_trees : int
    first_child : ndarray of shape (n_nodes,)
        -1 of a leaf.
    n_children : ndarray of shape (n_nodes,)
    leaf : ndarray of shape (n_nodes,)
        The number of a leaf; -1 of other nodes.
    source : ndarray of shape (n_nodes,)
        The number of a node in the model; of a label tree's leaf, its label.
    branch : ndarray of shape (n_nodes,)
        Which child of its parent a node is, in the order of the model.
    class_ptr, class_ids : ragged
        The classes of each leaf.
    """

    n_trees: int
    first_child: IndexArray
    n_children: IndexArray
    leaf: IndexArray
    source: IndexArray
    branch: IndexArray
    class_ptr: OffsetArray
    class_ids: IndexArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves among them."""
        return int(self.first_child.size)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.class_ptr.size - 1)

    @property
    def leaf_of_class(self) -> IndexArray:
        """The leaf of each class, where a leaf has one class."""
        out = np.zeros(self.class_ids.size, dtype=INDEX)
        out[self.class_ids] = np.arange(self.class_ids.size)
        return out


def label_nodes(model: FrozenModel) -> LabelNodes | None:
    """Return tree and parameters of a label tree; None of other models."""
    nodes = getattr(model, "model", None)
    return cast(LabelNodes, nodes) if hasattr(nodes, "tree") and hasattr(nodes, "U") else None


def outline_of(model: FrozenModel) -> Outline:
    """Return the nodes of a model; ``ValueError`` if it has no tree."""
    if isinstance(model, FrozenTree):
        return _of_packed(model)
    nodes = label_nodes(model)
    if nodes is None:
        raise ValueError(f"a {type(model).__name__} has no tree to explore")
    return _of_labels(np.asarray(nodes.tree.children), int(nodes.tree.n_labels))


def _of_packed(model: FrozenTree) -> Outline:
    packed = model.packed
    is_router = packed.child >= 0
    first = np.where(is_router, packed.child, -1).astype(INDEX)
    branch = np.zeros(packed.n_nodes, dtype=INDEX)
    branch[first[is_router] + 1] = 1
    return Outline(
        packed.n_trees,
        first,
        np.where(is_router, 2, 0).astype(INDEX),
        np.where(is_router, -1, -1 - packed.child).astype(INDEX),
        np.arange(packed.n_nodes, dtype=INDEX),
        branch,
        packed.class_ptr,
        packed.class_ids,
    )


def _of_labels(children: AnyArray, n_labels: int) -> Outline:
    n_inner = children.shape[0]
    source, branch, first, sizes = [0], [0], [], []
    for node in source:  # which grows on the way
        below = [] if node >= n_inner else children[node].tolist()
        there = [(child, j) for j, child in enumerate(below) if child >= 0]
        first.append(len(source) if there else -1)
        sizes.append(len(there))
        source.extend(child for child, _ in there)
        branch.extend(j for _, j in there)
    at = np.array(source, dtype=INDEX)
    is_leaf = at >= n_inner
    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(INDEX)
    classes = (at[is_leaf] - n_inner).astype(INDEX)
    return Outline(
        1,
        np.array(first, dtype=INDEX),
        np.array(sizes, dtype=INDEX),
        leaf,
        np.where(is_leaf, at - n_inner, at).astype(INDEX),
        np.array(branch, dtype=INDEX),
        offsets(np.ones(n_labels, dtype=INDEX)),
        classes,
    )

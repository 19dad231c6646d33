"""Several trees as one: nodes numbered breadth-first over all of them, the roots first.

Whatever packs, checks, stores and predicts with one tree then does so with a forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from thinleaf._dtypes import (
    INDEX,
    NO_CHILD,
    AnyArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.checks import is_whole
from thinleaf.arrays.ragged import offsets, ranges
from thinleaf.model.narrow import is_narrow, narrowed, widened, with_half_routers
from thinleaf.model.packing import PackedTree
from thinleaf.model.probability import Backoff
from thinleaf.model.tree import Leaf, Router, Tree, TreeError

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree

# -- before packing --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of some trees; a :class:`~thinleaf.model.tree.Nodes`.

    Attributes
    ----------
    trees : sequence of Tree
        Of the same features and classes.
    tree_of, node_of : ndarray of shape (n_nodes,)
        Which tree and which of its nodes a node is.
    children : ndarray of shape (n_nodes, 2)
    """

    trees: Sequence[Tree]
    tree_of: IndexArray
    node_of: IndexArray
    children: IndexArray

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Forest:
        """Return the forest of some trees."""
        if len({(tree.n_features, tree.n_classes) for tree in trees}) != 1:
            raise TreeError("the trees of a forest must have the same features and classes")
        level = [(t, 0) for t in range(len(trees))]
        nodes: list[tuple[int, int]] = []
        children: list[tuple[int, int]] = []
        while level:
            first = len(nodes) + len(level)
            below: list[tuple[int, int]] = []
            for t, node in level:
                left, right = trees[t].children[node].tolist()
                if left == NO_CHILD:
                    children.append((NO_CHILD, NO_CHILD))
                else:
                    children.append((first + len(below), first + len(below) + 1))
                    below += [(t, left), (t, right)]
            nodes += level
            level = below
        tree_of, node_of = np.array(nodes, dtype=INDEX).T
        return cls(trees, tree_of, node_of, np.array(children, dtype=INDEX))

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.trees[0].n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.trees[0].n_classes

    @property
    def n_nodes(self) -> int:
        """Number of routers and leaves of all trees."""
        return int(self.children.shape[0])

    @cached_property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""
        mask: BoolArray = self.children[:, 0] == NO_CHILD
        return mask

    @property
    def bias(self) -> ParamArray:
        """Of routers; 0 for leaves."""
        return self._gather([tree.bias for tree in self.trees])

    def router(self, node: int) -> Router:
        """Return a router."""
        return self._tree(node).router(int(self.node_of[node]))

    def leaf(self, node: int) -> Leaf:
        """Return a leaf."""
        return self._tree(node).leaf(int(self.node_of[node]))

    def classes_of(self, node: int) -> IndexArray:
        """Return the classes of a leaf."""
        return self._tree(node).classes_of(int(self.node_of[node]))

    def _tree(self, node: int) -> Tree:
        return self.trees[int(self.tree_of[node])]

    def backoff(self, backoffs: Sequence[Backoff]) -> Backoff:
        """Return the back-offs of the trees as that of the forest, with one prior for all."""
        first = offsets([backoff.ids.size for backoff in backoffs])[:-1]
        begin = self._gather([b.ptr[:-1] + at for b, at in zip(backoffs, first, strict=True)])
        sizes = self._gather([np.diff(backoff.ptr) for backoff in backoffs])
        taken = ranges(begin, sizes)
        joined = Backoff(
            self._gather([backoff.mass for backoff in backoffs]),
            offsets(sizes),
            np.concatenate([backoff.ids for backoff in backoffs])[taken],
            np.concatenate([backoff.counts for backoff in backoffs])[taken],
            np.mean([backoff.prior for backoff in backoffs], axis=0),
        )
        return joined.capped(self)

    def _gather(self, of_trees: Sequence[AnyArray]) -> AnyArray:
        """Return what each tree has for its nodes, for the nodes of the forest."""
        first = offsets([values.size for values in of_trees])
        out: AnyArray = np.concatenate(of_trees)[first[self.tree_of] + self.node_of]
        return out


def with_features(tree: Tree, features: IndexArray, n_features: int) -> Tree:
    """Return a tree that was trained on some features, ascending, as one over all of them."""
    return replace(
        tree,
        n_features=n_features,
        router_idx=features[tree.router_idx],
        feat_idx=features[tree.feat_idx],
    )


# -- after packing ---------------------------------------------------------------------------------


def prefix(model: FrozenTree, n_trees: int) -> FrozenTree:
    """Return the first trees of a frozen forest as a model.

    See :meth:`thinleaf.FrozenTree.prefix`.
    """
    if not is_whole(n_trees) or not 1 <= n_trees <= model.n_trees:
        raise ValueError(f"n_trees must be an integer in 1..{model.n_trees}, got {n_trees!r}")
    if n_trees == model.n_trees:
        return model
    model.check()
    return model.replaced(
        packed=first_trees(model.packed, int(n_trees)),
        sections={name: part for name, part in model.sections.items() if name != "training"},
        summary=model.summary | {"trees": int(n_trees)},
        checked=True,
    )


def prefixes(model: FrozenTree) -> list[FrozenTree]:
    """Return the first 1, 2, 4, … trees of a frozen forest, and all of them."""
    sizes = {2**i for i in range(model.n_trees.bit_length())} | {model.n_trees}
    return [prefix(model, n_trees) for n_trees in sorted(sizes)]


def first_trees(packed: PackedTree, n_trees: int) -> PackedTree:
    """Return the first trees of a packed forest, whose leaves have been checked."""
    narrow, halves = is_narrow(packed), packed.router_val.dtype == np.float16
    packed = widened(packed)
    nodes = np.flatnonzero(_tree_of(packed) < n_trees)
    leaves = -1 - packed.child[nodes][packed.child[nodes] < 0]
    child = packed.child[nodes]
    child[child >= 0] = n_trees + 2 * np.arange(np.count_nonzero(child >= 0))
    child[child < 0] = -1 - np.arange(leaves.size)
    taken: dict[str, AnyArray] = {
        "child": child,
        "bias": packed.bias[nodes],
        "inside": packed.inside[leaves],
        "outside": packed.outside[leaves],
    }
    taken |= _routers(packed, nodes)
    classes = ["class_ids", "leaf_bias"] + ["scale"] * (packed.weights == "int8")
    taken |= _ragged(packed, "class_ptr", leaves, *classes)
    taken |= _ragged(packed, "block_ptr", leaves, "block")
    taken |= _ragged(packed, "extra_ptr", leaves, "extra_ids", "extra")
    rows = ranges(packed.feat_ptr[leaves], np.diff(packed.feat_ptr)[leaves])
    taken |= _ragged(packed, "feat_ptr", leaves, "feat_idx")
    taken |= _ragged(packed, "row_ptr", rows, "slot", "entry")
    whole = {f.name: getattr(packed, f.name) for f in fields(packed)}
    out = PackedTree(**(whole | taken | {"n_trees": n_trees}))
    out = narrowed(out) if narrow else out
    out = with_half_routers(out) if halves else out
    out.validate()
    return out


def _tree_of(packed: PackedTree) -> IndexArray:
    """Return which tree each node belongs to."""
    out = np.arange(packed.n_nodes, dtype=INDEX)
    for node in np.flatnonzero(packed.child >= 0):  # children come after their parents
        out[packed.child[node] : packed.child[node] + 2] = out[node]
    return out


def _routers(packed: PackedTree, nodes: AnyArray) -> dict[str, AnyArray]:
    dense_at = packed.dense_at[nodes]
    dense = packed.dense_val.reshape(-1, max(packed.n_features, 1))[dense_at[dense_at >= 0]]
    dense_at[dense_at >= 0] = np.arange(dense.shape[0])
    out: dict[str, AnyArray] = {"dense_at": dense_at, "dense_val": dense.ravel()}
    if not packed.sparse:
        return out | _ragged(packed, "router_ptr", nodes, "router_idx", "router_val")
    number = np.full(packed.n_nodes, -1, dtype=INDEX)
    number[nodes] = np.arange(nodes.size)
    kept = number[packed.router_idx] >= 0
    feature = np.repeat(np.arange(packed.n_features), np.diff(packed.router_ptr))
    return out | {
        "router_ptr": offsets(np.bincount(feature[kept], minlength=packed.n_features)),
        "router_idx": number[packed.router_idx[kept]],
        "router_val": packed.router_val[kept],
    }


def _ragged(packed: PackedTree, ptr_name: str, items: AnyArray, *names: str) -> dict[str, AnyArray]:
    """Return some items' ranges of arrays that share offsets."""
    ptr = getattr(packed, ptr_name)
    sizes = np.diff(ptr)[items]
    taken = ranges(ptr[items], sizes)
    return {ptr_name: offsets(sizes)} | {name: getattr(packed, name)[taken] for name in names}

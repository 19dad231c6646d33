"""A tree some of whose nodes have changed since it was sent to where it is.

While a tree is trained on several machines, only the nodes that were just fitted travel. What reads
one node or what is below it finds that here, without the whole tree being put together again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, BoolArray
from thinleaf.model.tree import Leaf, Router, Tree


class PatchedTree:
    """A tree and the nodes that stand in place of some of its own.

    Parameters
    ----------
    base : Tree
    nodes : mapping of int to Router or Leaf
    """

    def __init__(self, base: Tree, nodes: Mapping[int, Router | Leaf]) -> None:
        self._base = base
        self._nodes = nodes

    @property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""
        return self._base.is_leaf

    def node(self, node: int) -> Router | Leaf:
        """Return a node."""
        return self._nodes[node] if node in self._nodes else self._base.node(node)

    def leaf(self, node: int) -> Leaf:
        """Return a leaf."""
        found = self.node(node)
        if not isinstance(found, Leaf):
            raise ValueError(f"node {node} is a router, not a leaf")
        return found

    def router(self, node: int) -> Router:
        """Return a router."""
        found = self.node(node)
        if not isinstance(found, Router):
            raise ValueError(f"node {node} is a leaf, not a router")
        return found

    def below(self, node: int) -> Tree:
        """Return a node with all that is below it, as a tree."""
        old = self._base.children
        nodes = [node]
        for i in nodes:  # grows as it is read
            if old[i, 0] != NO_CHILD:
                nodes += old[i].tolist()
        children = np.full((len(nodes), 2), NO_CHILD, dtype=INDEX)
        n_known = 1
        for new, i in enumerate(nodes):
            if old[i, 0] != NO_CHILD:
                children[new] = n_known, n_known + 1
                n_known += 2
        return Tree.build(
            children,
            [self.node(i) for i in nodes],
            n_features=self._base.n_features,
            n_classes=self._base.n_classes,
        )


def patched(base: Tree, changes: Sequence[Mapping[int, Router | Leaf]]) -> PatchedTree:
    """Return a tree after changes to its nodes, the latest last."""
    nodes: dict[int, Router | Leaf] = {}
    for change in changes:
        nodes |= change
    return PatchedTree(base, nodes)


def at_node(tree: Tree | PatchedTree, node: int) -> tuple[Tree, int]:
    """Return a tree in which all below a node is as it should be, and the node's number there."""
    return (tree, node) if isinstance(tree, Tree) else (tree.below(node), 0)

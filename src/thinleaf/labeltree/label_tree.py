"""The M-ary tree over labels (paper 004, section 3): flat arrays, and the path of each label.

Nodes are numbered 0, 1, … with the root first and parents before children. An entry of ``children``
below ``n_nodes`` is a node, ``n_nodes + label`` is the leaf of a label, and ``NO_CHILD`` a branch
that nothing is assigned to. How a tree is made is for ``fixed_trees`` and ``assign``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, NO_CHILD, OFFSET, AnyArray, BoolArray, IndexArray, OffsetArray
from thinleaf.arrays.ragged import offsets
from thinleaf.labeltree.kernels.paths import fill_paths, node_depths


class LabelTreeError(ValueError):
    """Arrays that are not a tree over labels."""


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A tree whose leaves are labels 0, …, n_labels - 1.

    Attributes
    ----------
    children : ndarray of shape (n_nodes, arity)
    n_labels : int
    path_ptr : ndarray of shape (n_labels + 1,)
        The path cⁱ of label i (equation 3) is the entries ``path_ptr[i]:path_ptr[i + 1]``.
    path_nodes, path_branches : ndarray of shape (path_ptr[-1],)
        The node at each depth, and which of its children comes next.
    """

    children: IndexArray
    n_labels: int
    path_ptr: OffsetArray
    path_nodes: IndexArray
    path_branches: IndexArray

    @classmethod
    def build(
        cls, children: AnyArray, n_labels: int, *, max_entries: int | None = None
    ) -> LabelTree:
        """Return the tree with these children; its paths follow from them.

        Parameters
        ----------
        children : array-like of shape (n_nodes, arity)
        n_labels : int
            With one label there are no nodes.
        max_entries : int, optional
            How long all paths together may be.

        Raises
        ------
        LabelTreeError
            If ``children`` is not a tree over all labels.
        """
        children = np.ascontiguousarray(children, dtype=INDEX)
        parent, branch = _parents(children, n_labels)
        n_nodes = children.shape[0]
        depth = np.zeros(n_nodes, dtype=INDEX)
        node_depths(parent, depth)
        sizes = depth[parent[n_nodes:]] + 1 if n_nodes else np.zeros(n_labels, dtype=INDEX)
        path_ptr = offsets(sizes)
        if max_entries is not None and path_ptr[-1] > max_entries:
            raise LabelTreeError(f"the paths have {path_ptr[-1]} nodes in all: too many")
        nodes = np.empty(path_ptr[-1], dtype=INDEX)
        branches = np.empty(path_ptr[-1], dtype=INDEX)
        fill_paths(parent, branch, n_nodes, path_ptr, nodes, branches)
        return cls(children, n_labels, path_ptr, nodes, branches)

    @property
    def n_nodes(self) -> int:
        """N, the number of internal nodes."""
        return int(self.children.shape[0])

    @property
    def arity(self) -> int:
        """M, the number of branches of a node."""
        return int(self.children.shape[1])

    @property
    def depths(self) -> IndexArray:
        """The length of the path of each label."""
        return np.diff(self.path_ptr).astype(INDEX)

    @property
    def depth(self) -> int:
        """D, the length of the longest path."""
        return int(self.depths.max(initial=0))

    @property
    def present(self) -> BoolArray:
        """Which branches lead somewhere, of shape (n_nodes, arity)."""
        mask: BoolArray = self.children != NO_CHILD
        return mask

    def path(self, label: int) -> list[tuple[int, int]]:
        """Return the path of a label as pairs of node and branch."""
        at = slice(int(self.path_ptr[label]), int(self.path_ptr[label + 1]))
        return list(zip(self.path_nodes[at].tolist(), self.path_branches[at].tolist(), strict=True))

    def mean_depth(self, frequency: AnyArray | None = None) -> float:
        """Return the expected length of a path, by default for equally frequent labels."""
        if frequency is None:
            return float(self.depths.mean())
        return float(self.depths @ frequency / np.sum(frequency))

    def entries_by_node(self) -> tuple[OffsetArray, OffsetArray]:
        """Return the path entries of each node.

        Returns
        -------
        ptr : ndarray of shape (n_nodes + 1,)
        entries : ndarray of shape (path_ptr[-1],)
            ``entries[ptr[n]:ptr[n + 1]]`` are the entries of node n, by ascending label.
        """
        entries = np.argsort(self.path_nodes, kind="stable").astype(OFFSET)
        counts = np.bincount(self.path_nodes, minlength=self.n_nodes)
        return offsets(counts), entries

    def entry_labels(self) -> IndexArray:
        """Return the label that each path entry belongs to."""
        return np.repeat(np.arange(self.n_labels, dtype=INDEX), self.depths)


def _parents(children: IndexArray, n_labels: int) -> tuple[IndexArray, IndexArray]:
    """Return the parent of each node and leaf, and the branch there, once all is checked."""
    if children.ndim != 2 or children.shape[1] < 2:
        raise LabelTreeError(f"children must have two or more columns, got {children.shape}")
    n_nodes = children.shape[0]
    if n_labels < 1:
        raise LabelTreeError("a tree needs a label")
    if (n_nodes == 0) != (n_labels == 1):
        raise LabelTreeError(f"{n_nodes} nodes cannot separate {n_labels} labels")
    nodes, branches = np.nonzero(children != NO_CHILD)
    targets = children[nodes, branches]
    n_all = n_nodes + n_labels
    if np.any(targets < 1) or np.any(targets >= n_all):
        raise LabelTreeError(f"children must be {NO_CHILD} or in 1..{n_all - 1}")
    if n_nodes and np.any(np.bincount(targets, minlength=n_all)[1:] != 1):
        raise LabelTreeError("each label, and each node but the root, must be one node's child")
    if np.any((targets < n_nodes) & (targets <= nodes)):
        raise LabelTreeError("a node's number must be greater than its parent's")
    if np.any(np.count_nonzero(children != NO_CHILD, axis=1) < 2):
        raise LabelTreeError("a node must have two or more children")
    parent = np.zeros(n_all, dtype=INDEX)
    branch = np.zeros(n_all, dtype=INDEX)
    parent[targets] = nodes
    branch[targets] = branches
    return parent, branch

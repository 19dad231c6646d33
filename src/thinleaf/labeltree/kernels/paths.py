"""Paths of labels from the parents of nodes."""

from __future__ import annotations

from thinleaf._dtypes import IndexArray, OffsetArray
from thinleaf.kernels._jit import strict_kernel


@strict_kernel
def node_depths(parent: IndexArray, depth: IndexArray) -> None:
    """Fill ``depth`` of the nodes below the root, which is 0; parents come first."""
    for n in range(1, depth.size):
        depth[n] = depth[parent[n]] + 1


@strict_kernel
def fill_paths(
    parent: IndexArray,
    branch: IndexArray,
    n_nodes: int,
    path_ptr: OffsetArray,
    nodes: IndexArray,
    branches: IndexArray,
) -> None:
    """Fill the path of every label, from its leaf up."""
    for label in range(path_ptr.size - 1):
        at = n_nodes + label
        for e in range(path_ptr[label + 1] - 1, path_ptr[label] - 1, -1):
            nodes[e] = parent[at]
            branches[e] = branch[at]
            at = parent[at]

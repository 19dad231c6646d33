"""Routers of a head: a complete tree of hyperplanes in the order of a heap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import IndexArray, ParamArray
from thinleaf.torch.heads.kernels.kept_rows import leaves_of, other_leaves_of


@dataclass(frozen=True)
class Routers:
    """Hyperplanes of a complete tree; a state goes right where weights · state + bias > 0.

    Attributes
    ----------
    weights : ndarray of shape (n_leaves - 1, in_features)
    bias : ndarray of shape (n_leaves - 1,)
    """

    weights: ParamArray
    bias: ParamArray

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.bias.size + 1

    @property
    def depth(self) -> int:
        """Routers on a path."""
        return int(self.n_leaves).bit_length() - 1

    def leaves_of(self, states: ParamArray) -> IndexArray:
        """Return the leaf of each state."""
        return leaves_of(states, self.weights, self.bias)

    def other_leaves_of(self, states: ParamArray) -> IndexArray:
        """Return the leaf of each state if the least sure router of its path errs."""
        return other_leaves_of(states, self.weights, self.bias)

    def below(self, node: int) -> Routers:
        """Return the routers of a node's subtree."""
        first, width, kept = node, 1, []
        while first < self.bias.size:
            kept.append(np.arange(first, first + width))
            first, width = 2 * first + 1, 2 * width
        at = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
        return Routers(self.weights[at], self.bias[at])


def leaves_below(node: int, depth: int) -> tuple[int, int]:
    """Return the leaves below a node of a complete tree: the first, and the one after the last."""
    level = (node + 1).bit_length() - 1
    width = 2 ** (depth - level)
    at = (node + 1 - 2**level) * width
    return at, at + width

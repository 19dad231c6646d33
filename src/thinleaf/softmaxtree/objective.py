"""What training minimises: Σ lossₙ + penalties over routers and leaves (paper 001, equation 1).

The only definition. The loss of a row is that of the one leaf it reaches; its value for a class
that the leaf does not hold is one of the three ways of section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, BoolArray
from thinleaf.model.tree import Leaf, Router, Tree

Absent: TypeAlias = Literal["drop", "constant", "zero_one"]

_AT_ONCE = 2**18
"""Weights that are summed at once: copies of all weights of a large tree would take longer."""


@dataclass(frozen=True)
class Penalty:
    """ℓ₁ and ridge terms, on the *sum* of losses: ``l1·‖w‖₁ + ridge/2·‖w‖²``; biases are free.

    Attributes
    ----------
    l1, ridge : float
    in_node_units : bool
        Weights are those of rows as a node sees them, scaled by their spread there
        (:mod:`thinleaf.softmaxtree.tao.units`). The objective then counts losses alone.
    """

    l1: float = 0.0
    ridge: float = 0.0
    in_node_units: bool = False

    def __call__(self, weights: np.ndarray) -> float:
        """Return the part of the objective that some weights have; none in units of nodes."""
        if self.in_node_units:
            return 0.0
        flat = weights.ravel()
        parts = (flat[at : at + _AT_ONCE].astype(ACCUM) for at in range(0, flat.size, _AT_ONCE))
        sums = np.zeros(2)
        for wide in parts:
            sums += np.abs(wide).sum(), wide @ wide
        return float(self.l1 * sums[0] + 0.5 * self.ridge * sums[1])


@dataclass(frozen=True)
class Objective:
    """Loss and penalties of a softmax tree.

    Attributes
    ----------
    absent : {"drop", "constant", "zero_one"}
        Loss of a row whose class is not in its leaf. ``"constant"``: cross-entropy, β if absent.
        ``"zero_one"``: 0/1 loss throughout, leaves fitted with cross-entropy as its surrogate.
        ``"drop"``: cross-entropy, infinite if absent; routers ignore such rows.
    beta : float
        The constant β.
    routers, leaves : Penalty
        λ and μ of the papers, with ridge terms.
    """

    absent: Absent = "constant"
    beta: float = 10.0
    routers: Penalty = Penalty()
    leaves: Penalty = Penalty()

    def __post_init__(self) -> None:
        """Reject what cannot be minimised."""
        if self.absent not in get_args(Absent):
            raise ValueError(f"absent must be one of {get_args(Absent)}, got {self.absent!r}")
        if not self.beta > 0.0:
            raise ValueError(f"beta must be positive, got {self.beta!r}")

    def row_losses(self, cross_entropy: AccumArray, correct: BoolArray) -> AccumArray:
        """Return the loss of each row, given its cross-entropy (∞ if absent) and 0/1 outcome."""
        if self.absent == "zero_one":
            return (~correct).astype(ACCUM)
        if self.absent == "constant":
            return np.where(np.isinf(cross_entropy), self.beta, cross_entropy)
        return cross_entropy

    def penalty(self, node: Router | Leaf) -> float:
        """Return the penalty of one node's weights."""
        if isinstance(node, Router):
            return self.routers(node.weights)
        return self.leaves(node.stored)

    def total(self, losses: AccumArray, weight: AccumArray, tree: Tree) -> float:
        """Return E: weighted losses plus penalties; an infinite loss (``"drop"``) counts as β."""
        loss = float(np.where(np.isinf(losses), self.beta, losses) @ weight)
        leaves = self.leaves(tree.block_val) + self.leaves(tree.entry_val)
        return loss + self.routers(tree.router_val) + leaves

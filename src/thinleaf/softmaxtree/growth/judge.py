"""What rows that are not fitted say of replacements for leaves.

Paper 000 accepts an expansion by the errors of the rows that it is fitted to, of which there are
hardly any where rows are fitted well. Here a *judge*, of other rows, compares a leaf with what
would replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import AccumArray, BoolArray
from thinleaf.model.routing import Reach, leaf_losses, leaf_of_rows, losses, losses_from
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.objective import Objective
from thinleaf.softmaxtree.tao import TrainingData

_ENTROPY_SHARE = 0.05

_WORTH_A_TRIAL, _WORTH_A_ROUND = 0.1, 0.05
"""Share of their loss that expansions of some leaves must save for the others to be tried, and of
all leaves for the tree to grow."""


@dataclass(frozen=True)
class Gain:
    """By how much the judge's loss falls, the standard error of that, and what it was."""

    fall: float = 0.0
    doubt: float = 0.0
    before: float = 0.0


@dataclass(frozen=True)
class Expansion:
    """A small tree to replace a leaf by, and what is gained by it."""

    subtree: Tree
    gain: Gain = Gain()


@dataclass(frozen=True)
class Judge:
    """Rows that are not fitted, and where the tree sends them."""

    data: TrainingData
    reach: Reach

    def gain(self, objective: Objective, leaf: int, old: Leaf, subtree: Tree) -> Gain:
        """Return by how much a replacement lowers the loss of a leaf's rows.

        A row's loss is its error and a little of its cross-entropy, up to β: that tells more where
        rows are few, but how sure a leaf is will only be found at the end.
        """
        rows = self.reach.of(leaf)
        X, y, weight = self.data.X, self.data.y, self.data.weight[rows]

        def loss(entropy: AccumArray, correct: BoolArray) -> AccumArray:
            return ~correct + _ENTROPY_SHARE * np.minimum(entropy, objective.beta)

        before = loss(*leaf_losses(old, X, y, rows))
        fall = (before - loss(*losses_from(subtree, X, y, rows, 0))) * weight
        return Gain(float(fall.sum()), float(np.linalg.norm(fall)), float(before @ weight))

    def erring_leaves(self, tree: Tree) -> BoolArray:
        """Return which leaves are wrong on some of the rows that reach them."""
        _, correct = losses(tree, self.data.X, self.data.y, self.reach)
        wrong = leaf_of_rows(tree, self.reach)[~correct]
        return np.bincount(wrong, minlength=tree.n_nodes) > 0


def worth_keeping(expansions: Mapping[int, Expansion], doubt: float) -> dict[int, Tree]:
    """Return the replacements that the judge's rows do not speak against.

    A leaf has few such rows, and the sweeps over the whole tree are still to come: so a replacement
    is refused only if their loss surely rises, by more than ``doubt`` standard errors.
    """
    return {
        leaf: e.subtree for leaf, e in expansions.items() if e.gain.fall >= -doubt * e.gain.doubt
    }


def promising(gains: Sequence[Gain], doubt: float) -> bool:
    """Return whether some leaves surely gain enough for the others to be tried as well.

    What a few leaves gain by themselves is more than what the whole tree will.
    """
    error = float(np.linalg.norm([gain.doubt for gain in gains]))
    return _fall(gains) > doubt * error and worth_a_round(gains, _WORTH_A_TRIAL)


def worth_a_round(gains: Sequence[Gain], share: float = _WORTH_A_ROUND) -> bool:
    """Return whether expansions save a share of what their leaves lose.

    The sweeps that follow take as long as the first fit of the tree.
    """
    return _fall(gains) > share * sum(gain.before for gain in gains)


def _fall(gains: Sequence[Gain]) -> float:
    return sum(gain.fall for gain in gains)

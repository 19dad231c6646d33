"""Which classes a leaf keeps: those that the full layer wants among the states that reach it.

A leaf sees few states, so what it counts is blended with what its ancestors count, each with the
next one up: p(v | node) = (count + κ·p(v | parent)) / (n + κ). A count is one for the class that
the full layer chooses, or the probability that it gives: the latter is known of classes that were
never first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, BoolArray, IndexArray, OffsetArray
from thinleaf.arrays.ragged import offsets
from thinleaf.torch.heads.targets import FullAnswers


@dataclass(frozen=True)
class LeafSets:
    """The classes of each leaf: a common list, and its own behind offsets, each ascending.

    Attributes
    ----------
    common : ndarray
        In all leaves.
    ptr : ndarray of shape (n_leaves + 1,)
    classes : ndarray of shape (ptr[-1],)
        A leaf's own; none of them is common.
    frequent : ndarray
        What a fixed list would have: the most wanted classes over all states, the first first.
    """

    common: IndexArray
    ptr: OffsetArray
    classes: IndexArray
    frequent: IndexArray

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.ptr.size - 1

    @property
    def sizes(self) -> OffsetArray:
        """Classes of each leaf, the common ones included."""
        return np.diff(self.ptr) + self.common.size

    def own(self, leaf: int) -> IndexArray:
        """Return the classes that a leaf has beside the common ones."""
        return self.classes[self.ptr[leaf] : self.ptr[leaf + 1]]

    def of(self, leaf: int) -> IndexArray:
        """Return all classes of a leaf, ascending."""
        return np.sort(np.concatenate([self.common, self.own(leaf)]))

    def members(self, n_classes: int) -> BoolArray:
        """Return a table of shape (n_leaves, n_classes): which leaf keeps which class."""
        table = np.zeros((self.n_leaves, n_classes), dtype=np.bool_)
        table[:, self.common] = True
        table[np.repeat(np.arange(self.n_leaves), np.diff(self.ptr)), self.classes] = True
        return table

    def keeps(self, leaf: IndexArray, wanted: IndexArray, n_classes: int) -> BoolArray:
        """Return which of the classes ``wanted[i]`` the leaf of state i keeps, in their shape."""
        out = np.empty(wanted.shape, dtype=np.bool_)
        here = np.zeros(n_classes, dtype=np.bool_)
        for at in np.unique(leaf).tolist():
            rows = np.flatnonzero(leaf == at)
            here[:] = False
            here[self.of(at)] = True
            out[rows] = here[wanted[rows]]
        return out

    @classmethod
    def of_lists(
        cls, common: IndexArray, lists: list[IndexArray], frequent: IndexArray
    ) -> LeafSets:
        """Return the sets of some lists, which hold no common class."""
        return cls(
            np.sort(common).astype(INDEX),
            offsets([part.size for part in lists]),
            np.concatenate([np.empty(0, INDEX), *lists]).astype(INDEX),
            frequent,
        )


@dataclass(frozen=True)
class Counts:
    """What states want: classes and how much of each, in the order of the states.

    Attributes
    ----------
    classes : ndarray of shape (n, n_wanted)
    amount : ndarray of shape (n, n_wanted)
    n_classes : int
    """

    classes: IndexArray
    amount: AccumArray
    n_classes: int

    @classmethod
    def of(cls, answers: FullAnswers, n_classes: int, share_of_first: float) -> Counts:
        """Return a blend of first places and probabilities.

        Parameters
        ----------
        answers : FullAnswers
        n_classes : int
        share_of_first : float
            Weight of the class that is chosen; the rest is spread by probability.
        """
        amount = (1.0 - share_of_first) * answers.probabilities
        amount[:, 0] += share_of_first
        return cls(answers.classes, amount, n_classes)

    def total(self, states: IndexArray | slice) -> AccumArray:
        """Return how much of each class some states want."""
        return np.bincount(
            self.classes[states].ravel(), self.amount[states].ravel(), self.n_classes
        ).astype(ACCUM)


def most_wanted(total: AccumArray, n: int) -> IndexArray:
    """Return the n most wanted classes, ascending; ties go to the lower one."""
    return np.sort(np.argsort(-total, kind="stable")[:n]).astype(INDEX)


def choose_sets(
    counts: Counts, leaf: IndexArray, n_leaves: int, size: int, common: IndexArray, kappa: float
) -> LeafSets:
    """Return the sets of all leaves.

    Parameters
    ----------
    counts : Counts
        Of the training states.
    leaf : ndarray of shape (n,)
        Where each state is.
    n_leaves : int
        A power of two: leaves are neighbours of those that they share ancestors with.
    size : int
        Classes of a leaf, the common ones included.
    common : ndarray
        In all leaves.
    kappa : float
        By how many states the parent's estimate weighs.
    """
    order = np.argsort(leaf, kind="stable").astype(INDEX)
    bounds = np.searchsorted(leaf[order], np.arange(n_leaves + 1))
    everywhere = np.zeros(counts.n_classes, dtype=np.bool_)
    everywhere[common] = True
    lists: list[IndexArray] = []

    def descend(first: int, end: int, above: AccumArray) -> None:
        states = order[bounds[first] : bounds[end]]
        blend = (counts.total(states) + kappa * above) / (states.size + kappa)
        if end - first > 1:
            middle = (first + end) // 2
            descend(first, middle, blend)
            descend(middle, end, blend)
            return
        blend[everywhere] = -1.0
        room = min(size, counts.n_classes) - common.size
        lists.append(most_wanted(blend, max(room, 0)))

    total = counts.total(slice(None))
    descend(0, n_leaves, (total + 1.0 / counts.n_classes) / (len(leaf) + 1.0))
    frequent = np.argsort(-total, kind="stable")[: min(size, counts.n_classes)].astype(INDEX)
    return LeafSets.of_lists(common, lists, frequent)

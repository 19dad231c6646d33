"""Which rows belong to which part: those that the top sends there, and guests.

As in :mod:`~thinleaf.softmaxtree.tao.overlap`, a part also learns from rows that it nearly gets,
with the weight of their path probability. Only nearer ones are written to disk again: a row has a
few other parts that it could have gone to, and each costs as much as its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, BoolArray, IndexArray
from thinleaf.arrays.rows import Rows, n_rows_of
from thinleaf.execution import SerialExecutor
from thinleaf.kernels.hashing import hash_rows
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.tao import TrainingData
from thinleaf.softmaxtree.tao.overlap import find_overlap

GUEST_FLOOR = 0.1
"""Smallest path probability of a guest of a part, at the least."""

MOST_GUESTS = 0.4
"""Of a part, for each of its own rows."""


@dataclass(frozen=True)
class PartRows:
    """Rows of a part.

    Attributes
    ----------
    own : ndarray of shape (n_rows,)
        Mask of the rows that the top sends there.
    share : ndarray of shape (n_rows,)
        How much each row counts: its path probability.
    unseen : ndarray of shape (n_rows,)
        Mask of rows that the top was not trained on, and that may decide.
    """

    own: BoolArray
    share: AccumArray
    unseen: BoolArray


def unseen_rows(X: Rows, share: float | None, seed: np.random.SeedSequence) -> BoolArray:
    """Return which rows are kept from the top, so that they can judge the tree below it as well.

    The rows themselves say it, wherever they are: it is a share of their hashes.
    """
    if share is None:
        return np.zeros(n_rows_of(X), dtype=np.bool_)
    salt = seed.generate_state(1, np.uint64)[0]
    z = (hash_rows(X) ^ salt) * np.uint64(0x9E3779B97F4A7C15)
    out: BoolArray = (z >> np.uint64(11)) < np.uint64(share * 2**53)
    return out


def held_weight(data: TrainingData, rows: PartRows, share: float) -> AccumArray:
    """Return the weight that rows of a part have as judges, as ``hold_out`` does of all rows."""
    judges = rows.own & rows.unseen  # also rows that went astray: their class is elsewhere
    least = np.full(data.n_classes, np.inf)
    np.minimum.at(least, data.y, data.weight)
    copies = data.weight / least[data.y]
    several = rows.own & (copies >= 2.0 - 1e-6) & (np.abs(copies - np.round(copies)) < 1e-6)
    held = np.where(judges, data.weight, 0.0)
    return np.where(several, share * data.weight, held)


def guest_floor(top: Tree, X: Rows, least: float) -> float:
    """Return the path probability above which guests are not too many, by a sample of rows."""
    near = find_overlap(top, X, route(top, X), least, SerialExecutor())
    leaves = np.flatnonzero(top.is_leaf).tolist()
    share = np.sort(np.concatenate([near[leaf].guest_share for leaf in leaves]))
    most = int(MOST_GUESTS * n_rows_of(X))
    return least if share.size <= most else float(share[share.size - most])


def rows_of_parts(top: Tree, X: Rows, floor: float | None) -> Iterator[tuple[int, IndexArray]]:
    """Yield the leaf of each part that gets some of these rows, and which ones, guests last.

    Parameters
    ----------
    top : Tree
        Of :func:`~thinleaf.softmaxtree.parts.top.top_tree`.
    X : Rows
    floor : float, optional
        Smallest path probability of guests; None: there are none.
    """
    reach = route(top, X)
    near = None if floor is None else find_overlap(top, X, reach, floor, SerialExecutor())
    for leaf in np.flatnonzero(top.is_leaf).tolist():
        rows = reach.of(leaf)
        if near is not None:
            rows = np.concatenate([rows, near[leaf].guests])
        if rows.size:
            yield leaf, rows


def part_rows(top: Tree, X: Rows, leaf: int, floor: float | None, unseen: BoolArray) -> PartRows:
    """Return what some rows are to the part of a leaf, to which they belong."""
    reach = route(top, X)
    own = np.zeros(n_rows_of(X), dtype=np.bool_)
    own[reach.of(leaf)] = True
    if floor is None:
        return PartRows(own, np.ones(own.size, dtype=ACCUM), unseen)
    near = find_overlap(top, X, reach, floor, SerialExecutor())[leaf]
    share = np.full(own.size, floor, dtype=ACCUM)
    share[reach.of(leaf)], share[near.guests] = near.share, near.guest_share
    return PartRows(own, share, unseen)

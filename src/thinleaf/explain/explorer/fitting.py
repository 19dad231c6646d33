"""What fits into the room that a page has: the whole model, some leaves, or a lighter model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.lighter import lighter
from thinleaf.explain.explorer.weights import add_leaves, entries_of_leaves
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import PackedTree

_BYTES_AN_ENTRY = {"float32": 6.6, "float16": 4.2, "int8": 2.6}
"""What a weight of a leaf takes in a page, about: value and place, deflated, in base64."""

_BYTES_OF_ROUTERS = 5.0
"""What a weight of a router takes."""

_MOST_TRIES = 6
"""How often weights are packed until they fill the room that there is."""

_LEAST_SHARE = 0.005
"""Of its weights that a model needs to be worth asking."""

_WELL_FILLED = 0.94


@dataclass(frozen=True)
class Answering:
    """The blocks that answer.

    Attributes
    ----------
    model : str
        What takes an input to leaves; empty if nothing can be typed.
    leaves : str
        Weights of leaves.
    n_leaves : int
        How many leaves that is.
    """

    model: str
    leaves: str
    n_leaves: int

    @property
    def size(self) -> int:
        """Bytes of a page that they take."""
        return len(self.model) + len(self.leaves)


def bytes_of(packed: PackedTree) -> float:
    """Return about how much of a page the weights of a tree take."""
    n_weights = np.count_nonzero(packed.block) + packed.entry.size
    n_routers = packed.router_val.size + np.count_nonzero(packed.dense_val)
    return n_weights * _BYTES_AN_ENTRY[packed.weights] + n_routers * _BYTES_OF_ROUTERS


def fitted_leaves(
    model_block: Callable[[PackedTree], Block], packed: PackedTree, room: int, worth: AnyArray
) -> Answering | None:
    """Return a tree with as many of its leaves as there is room for; None if there is for none.

    Parameters
    ----------
    model_block : callable
        Gives what takes an input to leaves.
    packed : PackedTree
    room : int
        Bytes.
    worth : ndarray of shape (n_leaves,)
        Of each leaf: those with the most for their size are kept.
    """
    model = model_block(packed).packed()
    room -= len(model)
    if room < 0:
        return None
    cost = entries_of_leaves(packed) * _BYTES_AN_ENTRY[packed.weights] + 16.0
    order = np.argsort(-worth / cost, kind="stable")
    best: tuple[str, IndexArray] = "", np.empty(0, INDEX)
    allowed = float(room)
    for _ in range(_MOST_TRIES):
        taken = np.sort(order[np.cumsum(cost[order]) <= allowed]).astype(INDEX)
        text = _leaves(packed, taken)
        if best[1].size < taken.size and len(text) <= room:
            best = text, taken
        if taken.size == 0 or (len(text) <= room and taken.size == order.size):
            break
        if _WELL_FILLED * room <= len(text) <= room:
            break
        allowed *= 0.98 * room / len(text)
    return Answering(model, best[0], int(best[1].size))


def fitted_lighter(
    model_block: Callable[[PackedTree], Block], model: FrozenTree, spread: AnyArray, room: int
) -> tuple[Answering, FrozenTree, float] | None:
    """Return as heavy a model as there is room for, and its share of the weights; None if none is.

    Parameters
    ----------
    model_block, room
        As of :func:`fitted_leaves`.
    model : FrozenTree
    spread : ndarray of shape (n_features,)
        How much features vary.
    """
    every = np.arange(model.packed.n_leaves, dtype=INDEX)

    def answering(other: FrozenTree) -> Answering:
        blocks = model_block(other.packed).packed(), _leaves(other.packed, every)
        return Answering(*blocks, every.size)

    least = answering(lighter(model, spread, 0.0)).size
    best: tuple[Answering, FrozenTree, float] | None = None
    share, too_much = 1.0, np.inf
    for number in range(_MOST_TRIES if least < room else 0):
        other = lighter(model, spread, share)
        size = least + bytes_of(other.packed)
        if size < 1.5 * room:  # else it is not worth packing
            found = answering(other)
            size = found.size
            if size <= room and (best is None or best[2] < share):
                best = found, other, share
        if best is not None and (best[2] >= 1.0 or best[0].size >= _WELL_FILLED * room):
            break
        too_much = share if size > room else too_much
        fits = 0.0 if best is None else best[2]
        guess = share * 0.98 * (room - least) / (size - least)
        share = min(guess, (0.9 - 0.1 * number) * too_much, 1.0)  # steps down become larger
        if share <= fits:
            share = (fits + too_much) / 2.0
        if share < _LEAST_SHARE:
            break
    return best


def _leaves(packed: PackedTree, which: IndexArray) -> str:
    block = Block()
    add_leaves(block, packed, which)
    return block.packed()

"""What fits: the whole, some leaves, or a lighter model; never more than there is room for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frozen_cases import rich_model
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.fitting import bytes_of, fitted_leaves, fitted_lighter
from thinleaf.explain.explorer.weights import add_routers, routers_of
from thinleaf.model.packing import PackedTree


def routers(packed: PackedTree) -> Block:
    block = Block()
    add_routers(block, packed, routers_of(packed))
    return block


@pytest.mark.parametrize("sparse", [False, True])
def test_leaves_fill_the_room(sparse):
    packed = rich_model(2, sparse=sparse).packed
    worth = np.arange(packed.n_leaves) + 1.0
    whole = fitted_leaves(routers, packed, 10**7, worth)
    assert whole.n_leaves == packed.n_leaves
    assert 0 < whole.size < 3 * bytes_of(packed) + 10_000
    part = fitted_leaves(routers, packed, whole.size - 100, worth)
    assert part.n_leaves < packed.n_leaves
    assert part.size <= whole.size - 100
    assert part.model == whole.model
    assert fitted_leaves(routers, packed, 10, worth) is None


@pytest.mark.parametrize("sparse", [False, True])
def test_a_lighter_model_fills_the_room(sparse):
    model = rich_model(2, sparse=sparse)
    spread = np.ones(model.n_features)
    whole, rounded, share = fitted_lighter(routers, model, spread, 10**7)
    assert share == 1.0
    assert rounded.packed.weights == "int8"
    assert whole.n_leaves == model.n_leaves
    room = whole.size - 150
    found, other, share = fitted_lighter(routers, model, spread, room)
    assert found.size <= room
    assert 0.0 < share < 1.0
    assert other.n_leaves == found.n_leaves == model.n_leaves
    assert fitted_lighter(routers, model, spread, 10) is None

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.torch.heads.cases import layer, states
from thinleaf.torch import replace_head
from thinleaf.torch.heads.byte_rows import ByteRows


def test_rows_are_within_half_a_step():
    weight = torch.randn(50, 20, generator=torch.Generator().manual_seed(0)) + 3.0
    made = ByteRows.of(weight)
    error = (made.unpacked(torch.arange(50)) - weight).abs()
    assert (error <= 0.5001 * made.scale[:, None] + 1e-6).all()
    assert (made.rows.abs().amax(dim=1) == 127).all()
    assert (error.double().norm(dim=1) <= made.error + 1e-5).all()
    assert made.norms[1] >= weight.norm(dim=1).max()
    assert made.rows.dtype == torch.int8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
def test_the_best_class_is_that_of_the_layers_own_rows(bias, dtype):
    linear, given, test = layer(bias=bias, dtype=dtype), states(1000), states(200, seed=1)
    narrow = replace_head(linear, given, size=60, rows="int8")
    wide = replace_head(linear, given, size=60)
    test = test.to(dtype)
    with torch.no_grad():
        mine, theirs = narrow(test), torch.cat([wide(state[None]) for state in test])
        assert torch.equal(torch.isfinite(mine), torch.isfinite(theirs))
        assert torch.equal(mine.argmax(dim=1), theirs.argmax(dim=1))
        assert torch.equal(mine.amax(dim=1), theirs.amax(dim=1))
        assert torch.equal(narrow.predict(test[:16]), wide.predict(test[:16]))
        # the way that has gradients, and that of other devices
        if dtype == torch.float32:
            grouped = narrow._by_leaf(test)
            assert torch.equal(grouped.argmax(dim=1), mine.argmax(dim=1))
    kept = torch.isfinite(mine)
    assert (mine - theirs)[kept].float().abs().max() < 0.3


def test_gradients_of_bytes_reach_states():
    head = replace_head(layer(), states(500), size=30, rows="int8")
    test = states(4, seed=2).requires_grad_()
    logits = head(test)
    logits[torch.isfinite(logits)].sum().backward()
    assert np.isfinite(test.grad.numpy()).all()
    assert (test.grad != 0).any()


@pytest.mark.parametrize("rows", ["int8", "bfloat16", "float32"])
def test_weights_that_change_are_read_again(rows):
    linear, test = layer(), states(40, seed=3)
    head = replace_head(linear, states(500), size=20, rows=rows, exact=True)
    head.predict(test)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(linear.weight.shape))
        full = torch.stack([linear(state) for state in test]).argmax(dim=1)
        assert torch.equal(head.predict(test), full)
        head.exact = False
        kept = torch.isfinite(head(test))
        assert (head(test) - linear(test))[kept].abs().max() < 0.2

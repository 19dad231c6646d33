from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.torch.heads.cases import DIM, layer, states
from thinleaf.torch import replace_head
from thinleaf.torch.heads import exact as exact_mode
from thinleaf.torch.heads.byte_rows import ByteRows
from thinleaf.torch.heads.exact import survivors


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_class_is_the_full_layers(bias, dtype):
    linear = layer(bias=bias, dtype=dtype)
    head = replace_head(linear, states(1000), size=8, exact=True)
    test = 3.0 * torch.randn(300, DIM, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        full = torch.stack([linear(state.to(dtype)) for state in test]).argmax(dim=1)
        # the layer itself sees states in its own precision
        test = test.to(dtype)
        assert torch.equal(head.predict(test), full)
        assert torch.equal(head(test).argmax(dim=1), full)
        assert torch.equal(torch.stack([head(state) for state in test]).argmax(dim=1), full)
    counts = head.exact_counts
    assert counts.n_states == 900
    assert 0 < counts.n_certified < 900
    assert counts.n_rescored > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [1e-42, 1e-7, 1e3, 3e4, 1e19, 1e37, np.inf, np.nan])
def test_states_may_be_of_any_length(dtype, scale):
    """Logits that are infinite, or no numbers, are those of the full layer, too."""
    linear = layer(bias=True, dtype=dtype)
    head = replace_head(linear, states(1000), size=8, exact=True)
    test = scale * torch.randn(100, DIM, generator=torch.Generator().manual_seed(0))
    test = test.to(dtype)
    with torch.no_grad():
        full = torch.stack([linear(state) for state in test]).argmax(dim=1)
        assert torch.equal(head.predict(test), full)
        assert torch.equal(head(test).argmax(dim=1), full)


def test_equal_rows_are_left_to_the_full_layer():
    linear = layer()
    with torch.no_grad():
        linear.weight[1::2] = linear.weight[::2]
    head = replace_head(linear, states(500), size=10, exact=True)
    test = states(100, seed=1)
    with torch.no_grad():
        full = torch.stack([linear(state) for state in test]).argmax(dim=1)
    assert torch.equal(head.predict(test), full)
    assert head.exact_counts.n_full == 100


@pytest.mark.parametrize("n_threads", [1, 3])
def test_no_row_is_ruled_out_that_could_win(monkeypatch, n_threads):
    monkeypatch.setattr(exact_mode, "_BYTES_A_THREAD", 1000)
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((400, 30)).astype(np.float32) + 2.0
    given = rng.standard_normal((200, 30)).astype(np.float32) * np.linspace(5, 0.1, 30, dtype="f4")
    given[0] = 0.0
    rows = ByteRows.of(torch.from_numpy(weight)).arrays()
    bias = rng.standard_normal(400).astype(np.float32)
    n_kept = 0
    for state in given:
        logits = weight.astype(float) @ state + bias
        for place in (1, 5, 50):
            least = np.sort(logits)[-place]
            found = survivors(state, float(least), rows, bias, n_threads)
            assert set(np.flatnonzero(logits >= least)) <= set(found)
            assert (np.diff(found) > 0).all()
        n_kept += survivors(state, float(logits.max()), rows, bias).size
    assert n_kept < 2 * len(given)


def test_sums_of_long_rows_do_not_overflow():
    weight = torch.ones(3, 6000)
    weight[1] = -1.0
    rows = ByteRows.of(weight).arrays()
    state, none = np.full(6000, 100.0, "f4"), np.empty(0, "f4")
    assert survivors(state, 599_999.0, rows, none).tolist() == [0, 2]
    assert survivors(-state, 599_999.0, rows, none).tolist() == [1]


def test_the_mode_can_be_changed():
    linear, test = layer(), states(50, seed=1)
    with torch.no_grad():
        full = torch.stack([linear(state) for state in test]).argmax(dim=1)
    head = replace_head(linear, states(500), size=10)
    head.exact = True
    assert torch.equal(head.predict(test), full)
    head.exact = False
    assert torch.isfinite(head(states(1))).sum() == 10


def test_logits_that_are_nearly_equal_are_left_to_the_full_layer():
    generator = torch.Generator().manual_seed(3)
    linear = nn.Linear(64, 200, bias=False)
    with torch.no_grad():
        linear.weight[:] = torch.randn(64, generator=generator)
        linear.weight[:, :3] += 1e-7 * torch.randn(200, 3, generator=generator)
        head = replace_head(linear, torch.randn(300, 64, generator=generator), size=5, exact=True)
        test = torch.randn(100, 64, generator=generator)
        full = torch.stack([linear(state) for state in test]).argmax(dim=1)
        assert torch.equal(head.predict(test), full)
    assert head.exact_counts.n_full > 90


def test_one_feature_is_enough():
    linear = nn.Linear(1, 7)
    head = replace_head(linear, torch.randn(60, 1), size=2, exact=True)
    test = torch.randn(40, 1)
    with torch.no_grad():
        assert torch.equal(head.predict(test), torch.stack([linear(t) for t in test]).argmax(1))

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.torch.heads.cases import DIM, N_CLASSES, layer, states
from thinleaf.torch import TreeHead, replace_head


@pytest.fixture(params=[False, True], ids=["no bias", "bias"], scope="module")
def linear(request):
    return layer(bias=request.param)


@pytest.fixture(params=[1, 2], ids=["one path", "two paths"], scope="module")
def head(request, linear):
    return replace_head(linear, states(1500), size=40, n_paths=request.param)


def expected_classes(head: TreeHead, state: torch.Tensor) -> set[int]:
    """Return what the leaves of a state keep, by walking the tree."""
    scores = head.router_weight @ state + head.router_bias

    def walk(node: int) -> tuple[list[int], int]:
        path = []
        while node < scores.numel():
            path.append(node)
            node = 2 * node + (2 if scores[node] > 0 else 1)
        return path, node - scores.numel()

    path, leaf = walk(0)
    kept = set(head.sets.of(leaf).tolist())
    if head.n_paths == 2:
        least = min(path, key=lambda node: abs(float(scores[node])))
        _, other = walk(2 * least + (1 if scores[least] > 0 else 2))
        kept |= set(head.sets.of(other).tolist())
    return kept


def test_kept_logits_are_the_layers_own_and_others_are_minus_infinity(linear, head):
    test = states(60, seed=1)
    with torch.no_grad():
        logits, full = head(test), linear(test)
    for i in range(len(test)):
        kept = torch.nonzero(torch.isfinite(logits[i]))[:, 0]
        assert set(kept.tolist()) == expected_classes(head, test[i])
        torch.testing.assert_close(logits[i, kept], full[i, kept])
    assert (logits[~torch.isfinite(logits)] == -torch.inf).all()


def test_one_by_one_is_as_a_batch(head):
    test = states(40, seed=2)
    with torch.no_grad():
        batch, single = head(test), torch.stack([head(state) for state in test])
    assert torch.equal(torch.isfinite(batch), torch.isfinite(single))
    torch.testing.assert_close(batch, single)
    assert torch.equal(head.predict(test), batch.argmax(dim=1))
    assert torch.equal(torch.stack([head.predict(state) for state in test]), batch.argmax(dim=1))


def test_the_sparse_form_has_the_same_logits(head):
    test = states(30, seed=3)
    with torch.no_grad():
        dense = head(test)
    ptr, classes, logits = head.sparse(test)
    again = torch.full_like(dense, -torch.inf)
    for i in range(len(test)):
        part = slice(int(ptr[i]), int(ptr[i + 1]))
        again[i, classes[part]] = logits[part]
    torch.testing.assert_close(again, dense)


def test_shapes_are_those_of_a_linear_layer(head):
    assert head(torch.zeros(2, 3, DIM)).shape == (2, 3, N_CLASSES)
    assert head(torch.zeros(DIM)).shape == (N_CLASSES,)
    assert head(torch.zeros(0, DIM)).shape == (0, N_CLASSES)
    assert head.predict(torch.zeros(2, 3, DIM)).shape == (2, 3)
    classes, logits = head.topk(torch.zeros(2, DIM), 3)
    assert classes.shape == logits.shape == (2, 3)
    with pytest.raises(ValueError, match="shape"):
        head(torch.zeros(2, DIM + 1))
    with pytest.raises(ValueError, match="k"):
        head.topk(torch.zeros(2, DIM), 0)
    with pytest.raises(TypeError, match="floating-point"):
        head(torch.zeros(2, DIM, dtype=torch.long))


@pytest.mark.parametrize("rows", ["float32", "float16", "bfloat16", "int8"])
def test_rows_may_be_narrow(linear, rows):
    given = states(1500)
    head = replace_head(linear, given, size=40, rows=rows)
    assert head.row_kind == rows
    many = states(64, seed=4)
    with torch.no_grad():
        torch.testing.assert_close(head(many[:8]), head(many)[:8])
        kept = torch.isfinite(head(many))
        error = (head(many) - linear(many))[kept].abs().max()
    assert error < {"float32": 1e-5, "float16": 0.02, "bfloat16": 0.15, "int8": 0.4}[rows]
    wide = replace_head(linear, given, size=40)
    assert head.bytes_per_state() <= wide.bytes_per_state()


def test_gradients_reach_states_and_kept_rows():
    linear = layer(bias=True)
    head = replace_head(linear, states(600), size=30)
    test = states(5, seed=5).requires_grad_()
    logits = head(test)
    kept = torch.isfinite(logits)
    logits[kept].sum().backward()
    rows = linear.weight.grad
    expected = torch.stack([linear.weight.detach()[kept[i]].sum(dim=0) for i in range(5)])
    torch.testing.assert_close(test.grad, expected)
    assert torch.equal(rows.abs().sum(dim=1) > 0, kept.any(dim=0))
    linear.weight.grad = linear.bias.grad = None


def test_a_state_is_loaded_into_a_head_of_other_sizes():
    linear = layer()
    large = replace_head(linear, states(2000), size=50)
    small = replace_head(linear, states(300), size=20, rows="int8")
    small.load_state_dict(large.state_dict())
    few = states(20, seed=6)
    with torch.no_grad():
        assert torch.equal(torch.isfinite(small(few)), torch.isfinite(large(few)))
    assert small.n_leaves == large.n_leaves


def test_weights_that_change_are_used():
    linear = layer()
    head = replace_head(linear, states(500), size=30)
    state = states(1)
    with torch.no_grad():
        before = head(state)
        linear.weight.mul_(2.0)
        torch.testing.assert_close(head(state), 2.0 * before)


@pytest.mark.parametrize("rows", [None, "float16", "int8"])
@pytest.mark.parametrize("place", ["parameter", "data"])
def test_weights_in_the_place_of_others_are_used(rows, place):
    linear = layer().requires_grad_(False)
    head = replace_head(linear, states(1000), size=30, rows=rows, exact=True)
    test, new = states(50, seed=9), torch.randn(N_CLASSES, DIM)
    head.predict(test)
    if place == "data":
        head.weight.data = new
    else:
        head.weight = torch.nn.Parameter(new, requires_grad=False)
    full = torch.stack([(new @ state).argmax() for state in test])
    assert torch.equal(head.predict(test), full)
    head.exact = False
    logits = head(test)
    kept = torch.isfinite(logits)
    assert (logits - test @ new.T)[kept].abs().max() < 0.4


def test_paths_and_biases_that_change_are_used():
    linear = layer(bias=True, dtype=torch.bfloat16)
    head = replace_head(linear, states(1000), size=20, n_paths=2)
    state = states(1).to(torch.bfloat16)
    with torch.no_grad():
        both = torch.isfinite(head(state)).sum()
        head.n_paths = 1
        one = head(state)
        assert torch.isfinite(one).sum() == 20 < both
        linear.bias.add_(8.0)
        kept = torch.isfinite(one)
        assert ((head(state) - one)[kept] > 7.0).all()


def test_repr_says_what_it_is(head):
    assert "rows=float32" in repr(head)
    assert f"leaves={head.n_leaves}" in repr(head)


def test_leaves_partition_the_states(head):
    leaves = head.leaves_of(states(200)).reshape(200, -1)
    assert leaves.shape[1] == head.n_paths
    assert np.isin(leaves.numpy(), np.arange(head.n_leaves)).all()


@pytest.mark.parametrize("rows", [None, "float16", "int8"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_head_that_is_converted_is_one_of_the_converted_layer(rows, dtype):
    """Routers stay in single precision; rows and bounds are those of the weights as they are."""
    head = replace_head(layer(bias=True), states(1500), size=40, rows=rows)
    few = states(20, seed=8)
    leaves = head.leaves_of(few)
    head.to(dtype)
    assert head.router_weight.dtype == torch.float32
    assert torch.equal(head.leaves_of(few), leaves)
    assert head.row_kind == (rows or str(dtype).removeprefix("torch."))
    narrow = layer(bias=True, dtype=dtype)
    again = TreeHead(narrow.weight, narrow.bias, head.routers, head.sets, rows=rows)
    given = few.to(dtype)
    for exact in (False, True):
        head.exact = again.exact = exact
        assert torch.equal(head(given), again(given))
        assert torch.equal(head.predict(given), again.predict(given))
    best = torch.stack([narrow(state).argmax() for state in given])
    assert torch.equal(head.predict(given), best)

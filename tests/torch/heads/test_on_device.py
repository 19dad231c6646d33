"""Heads of tensors that are on another device: nothing there is mixed with what is on the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.torch.elsewhere import elsewhere
from tests.torch.heads.cases import DIM, N_CLASSES, layer, states
from thinleaf.torch import TreeHead, agreement_report, draft_mapping, draft_report, replace_head
from thinleaf.torch.heads.on_device import leaves_on_device


@pytest.fixture(params=[None, "bfloat16", "int8"], scope="module")
def rows(request):
    return request.param


@pytest.fixture(params=[1, 2], ids=["one path", "two paths"], scope="module")
def head(request, rows):
    return replace_head(layer(bias=True), states(1500), size=40, n_paths=request.param, rows=rows)


def moved(head, device) -> TreeHead:
    """Return a head of tensors on a device."""
    weight, bias = (tensor.detach().to(device) for tensor in (head.weight, head.bias))
    return TreeHead(
        weight,
        bias,
        head.routers,
        head.sets,
        rows=head.row_kind,
        n_paths=head.n_paths,
        trained_on=head.trained_on,
    )


def test_a_device_that_is_none_is_told_apart():
    with elsewhere() as device:
        there = torch.arange(3.0).to(device)
        assert there.device == device
        assert torch.equal((there + 1).cpu(), torch.arange(1.0, 4.0))
        with pytest.raises(RuntimeError, match="two devices"):
            there + torch.ones(3)
        with pytest.raises(TypeError, match="copy it"):
            there.numpy()


def test_answers_are_those_of_the_cpu(head):
    test = states(50, seed=3)
    with torch.no_grad():
        logits, best, leaves = head(test), head.predict(test), head.leaves_of(test)
    kept = head.sparse(test)
    tolerance = 0.2 if head.row_kind == "int8" else 1e-4
    with elsewhere() as device:
        there, given = moved(head, device), test.to(device)
        assert torch.equal(there.leaves_of(given).cpu(), leaves)
        torch.testing.assert_close(there(given).cpu(), logits, atol=tolerance, rtol=0)
        torch.testing.assert_close(there(given[0]).cpu(), logits[0], atol=tolerance, rtol=0)
        assert torch.equal(there.predict(given).cpu(), best)
        assert torch.equal(there.topk(given, 3)[0].cpu()[:, 0], best)
        found = there.sparse(given)
        assert found.logits.device == device
        assert torch.equal(found.classes.cpu(), kept.classes)


def test_the_exact_mode_has_the_full_layers_class(head):
    test, linear = states(50, seed=4), layer(bias=True)
    with torch.no_grad():
        full = torch.stack([linear(state).argmax() for state in test])
    with elsewhere() as device:
        there, given = moved(head, device), test.to(device)
        there.exact = True
        assert torch.equal(there.predict(given).cpu(), full)
        assert torch.equal(there(given).argmax(dim=1).cpu(), full)


def test_reports_and_files(head, tmp_path):
    test, followed = states(50, seed=5), torch.randint(N_CLASSES, (50,))
    sequences = test.reshape(5, 10, DIM)
    agreement = agreement_report(head, {"a": (test, followed)}, timed=False, warn=False)["a"]
    drafted = draft_report(head, sequences)
    with elsewhere() as device:
        there = moved(head, device)
        for given in ((test, followed), (test.to(device), followed.to(device))):
            found = agreement_report(there, {"a": given}, warn=False)["a"]
            assert found.agreement == agreement.agreement
            assert found.perplexity == pytest.approx(agreement.perplexity, rel=0.05)
            assert found.microseconds > 0.0
        assert draft_report(there, sequences.to(device)) == drafted
        sampled = draft_report(there, sequences.to(device), greedy=False)
        assert sampled.fixed < sampled.full
        assert torch.equal(draft_mapping(there).d2t, draft_mapping(head).d2t)
        there.save(tmp_path / "head")
        again = TreeHead.load(tmp_path / "head", there)
        assert again.common.device == device
        assert replace_head(there, test.to(device), size=20).common.device == device


@pytest.mark.parametrize("depth", [0, 1, 4])
@pytest.mark.parametrize("n_paths", [1, 2])
def test_leaves_are_those_of_the_compiled_walk(depth, n_paths):
    head = replace_head(layer(), states(1500), size=20, depth=depth, n_paths=n_paths)
    test = states(400, seed=6)
    found = leaves_on_device(test, head.router_weight, head.router_bias, head.n_paths)
    assert torch.equal(found, head.leaves_of(test).reshape(400, -1))

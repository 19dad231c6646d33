from __future__ import annotations

import pytest
import torch
from torch import nn

from thinleaf.torch import collect_states
from thinleaf.torch.heads.collect import find_layer, put_layer


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.parts = nn.ModuleDict({"head": nn.Linear(4, 10)})
        self.called = 0

    def forward(self, ids, attention_mask=None):
        assert not self.training
        self.called += 1
        return self.parts["head"](self.embedding(ids))


def test_states_are_what_goes_into_the_layer():
    model = Words().train()
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    found = collect_states(model, [ids, (ids,)])
    expected = model.embedding(ids).detach().reshape(-1, 4)
    torch.testing.assert_close(torch.from_numpy(found), torch.cat([expected, expected]))
    assert model.training
    assert not model.parts["head"]._forward_pre_hooks


def test_padding_is_left_out():
    model = Words()
    ids = torch.tensor([[1, 2, 0], [4, 0, 0]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    found = collect_states(model, [{"ids": ids, "attention_mask": mask}])
    torch.testing.assert_close(
        torch.from_numpy(found), model.embedding(torch.tensor([1, 2, 4])).detach()
    )


def test_no_more_batches_are_run_than_needed():
    model = Words()
    found = collect_states(model, (torch.zeros(2, 3, dtype=torch.long) for _ in range(9)), None, 10)
    assert found.shape == (10, 4)
    assert model.called == 2


def test_a_layer_that_is_not_used_is_an_error():
    model = Words()
    model.unused = nn.Linear(4, 20)
    with pytest.raises(ValueError, match="does not use its layer 'unused'"):
        collect_states(model, [torch.tensor([[1]])])
    with pytest.raises(ValueError, match="no batches"):
        collect_states(model, [])
    assert collect_states(model, [torch.tensor([[1]])], "parts.head").shape == (1, 4)


def test_the_layer_is_found():
    model = Words()
    head = model.parts["head"]
    assert find_layer(model, None) == ("parts.head", head)
    assert find_layer(model, head) == ("parts.head", head)
    assert find_layer(head, None) == ("", head)
    model.get_output_embeddings = lambda: head
    model.larger = nn.Linear(4, 99)
    assert find_layer(model, None)[0] == "parts.head"
    put_layer(model, "parts.head", model.larger)
    assert model.parts["head"] is model.larger


def test_what_is_no_linear_layer_is_refused():
    with pytest.raises(TypeError, match="Embedding"):
        find_layer(Words(), "embedding")
    with pytest.raises(ValueError, match="no linear layer"):
        find_layer(nn.ReLU(), None)
    with pytest.raises(ValueError, match="no part of the network"):
        find_layer(Words(), nn.Linear(4, 4))

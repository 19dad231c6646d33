from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.torch.heads.cases import DIM, N_CLASSES, layer, states
from thinleaf.torch import full_answers, replace_head


class Network(nn.Module):
    """A network with two linear layers; the second has more outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Linear(5, DIM)
        self.output = nn.Linear(DIM, 40)

    def forward(self, x, attention_mask=None):
        return self.output(torch.tanh(self.body(x)))


@pytest.mark.parametrize("loss", ["mass", "class", "margin"])
def test_a_tree_keeps_more_of_what_the_layer_says_than_a_fixed_list(loss):
    linear, test = layer(), states(800, seed=1)
    head = replace_head(linear, states(3000), size=40, loss=loss)
    full = linear(test).argmax(dim=1)
    tree = (head.predict(test) == full).float().mean()
    fixed = torch.isin(full, head.frequent[:40].long()).float().mean()
    assert tree > fixed + 0.05
    assert head.n_leaves == 8
    assert abs(head.trained_on.agreement - tree) < 0.08


def test_threads_do_not_change_the_head():
    one, two = (
        replace_head(layer(), states(2000), size=30, n_jobs=n_jobs).state_dict()
        for n_jobs in (1, 2)
    )
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_common_classes_are_in_all_leaves_and_sizes_are_as_asked():
    head = replace_head(layer(), states(2000), size=40, common=0.5)
    assert head.common.numel() == 20
    assert (head.sets.sizes == 40).all()
    assert set(head.common.tolist()) == set(head.frequent[:20].tolist())


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_sets_may_be_all_common_or_all_their_own(common):
    head = replace_head(layer(), states(1500), size=25, common=common)
    assert head.common.numel() == round(25 * common)
    assert (head.sets.sizes == 25).all()
    assert torch.isfinite(head(states(5))).sum() == 5 * 25


def test_a_leaf_may_keep_all_classes():
    linear, test = layer(bias=True), states(50, seed=3)
    head = replace_head(linear, states(500), size=10**6)
    torch.testing.assert_close(head(test), linear(test))


def test_the_network_gets_the_head_and_is_run_on_batches():
    network = Network()
    batches = [{"x": torch.randn(8, 5), "labels": torch.zeros(8)} for _ in range(30)]
    head = replace_head(network, batches, size=20, max_states=200)
    assert network.output is head
    assert head.trained_on.n_states <= 200
    logits = network(torch.randn(4, 5))
    assert logits.shape == (4, 40)
    assert (torch.isfinite(logits).sum(dim=1) == 20).all()


def test_the_network_stays_if_it_is_to():
    network = Network()
    head = replace_head(network, torch.randn(100, DIM), size=20, in_place=False)
    assert network.output is not head
    assert head.weight is network.output.weight


def test_few_states_make_one_leaf():
    head = replace_head(layer(), states(5), size=10)
    assert head.n_leaves == 1
    assert head.n_paths == 1
    assert head(states(3)).shape == (3, N_CLASSES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size"),
        ({"size": 2.5}, "size"),
        ({"common": 1.5}, "common"),
        ({"depth": -1}, "depth"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"n_sweeps": -1}, "n_sweeps"),
        ({"rows": "int4"}, "rows must be one of"),
        ({"n_paths": 3}, "n_paths"),
        ({"max_states": 1}, "max_states"),
        ({"layer": "nowhere"}, "no module named"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        replace_head(layer(), states(100), **options)


def test_states_must_fit_the_layer():
    with pytest.raises(ValueError, match="shape"):
        replace_head(layer(), torch.zeros(10, DIM + 1))
    with pytest.raises(ValueError, match="finite"):
        replace_head(layer(), np.full((10, DIM), np.nan))
    with pytest.raises(ValueError, match="two or more"):
        replace_head(layer(), torch.zeros(1, DIM))
    with pytest.raises(TypeError, match="tensor or an array"):
        replace_head(layer(), [torch.zeros(3, DIM)])


def test_deeper_trees_and_no_sweeps_are_possible():
    head = replace_head(layer(), states(1000), size=30, depth=5, n_sweeps=0)
    assert head.n_leaves == 32
    assert (head.sets.sizes == 30).all()


def test_a_layer_in_half_precision_keeps_its_own_rows():
    linear = layer(dtype=torch.bfloat16)
    head = replace_head(linear, states(600), size=30)
    assert head.row_kind == "bfloat16"
    assert head.rows.numel() == 0
    logits = head(states(4).to(torch.bfloat16))
    assert logits.dtype == torch.bfloat16


def test_a_head_can_be_made_anew():
    network = Network()
    weight, given = network.output.weight, torch.randn(300, DIM)
    replace_head(network, given, size=20)
    again = replace_head(network, [{"x": torch.randn(8, 5)} for _ in range(30)], size=30)
    assert network.output is again
    assert again.weight is weight
    assert again.sets.sizes.tolist() == [30] * again.n_leaves


def test_a_classifier_is_run_on_pairs_of_inputs_and_labels():
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 60))
    data = TensorDataset(torch.randn(400, 5), torch.randint(60, (400,)))
    full = copy.deepcopy(network)
    head = replace_head(network, DataLoader(data, batch_size=50), size=10, exact=True)
    assert network[2] is head
    X = torch.randn(30, 5)
    assert torch.equal(network(X).argmax(dim=1), full(X).argmax(dim=1))


def test_a_layer_must_be_finite_and_answers_its_own():
    linear, given = layer(), states(100)
    answers = full_answers(given.numpy(), linear.weight.detach(), None)
    with pytest.raises(ValueError, match="of another layer"):
        replace_head(nn.Linear(DIM, 33), given, answers=answers)
    with torch.no_grad():
        linear.weight[3, 4] = torch.nan
    with pytest.raises(ValueError, match="weights of the output layer must be finite"):
        replace_head(linear, given)
    with pytest.raises(ValueError, match="of float32, float16 or bfloat16"):
        replace_head(layer().double(), given)
    with pytest.raises(TypeError, match="must be a Module, is str"):
        replace_head("network", given)

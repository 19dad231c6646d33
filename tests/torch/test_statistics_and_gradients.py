"""What steps cost: gradients over slots, statistics of top children, searches by levels."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.torch.elsewhere import elsewhere  # noqa: E402
from tests.torch.test_label_tree_softmax import (  # noqa: E402
    clusters,
    data,
    layer_of,
    shapes,
    shortlists,
)
from thinleaf.labeltree.label_tree import LabelTree  # noqa: E402
from thinleaf.torch import LabelTreeSoftmax  # noqa: E402
from thinleaf.torch.groups import grouped_scores, untouched  # noqa: E402


def plain_scores(rows, weight, bias, slot):
    """Return what ``grouped_scores`` must; autograd makes gradients of the size of parameters."""
    return torch.einsum("nmd,nd->nm", weight[slot], rows) + bias[slot]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_are_those_of_the_plain_product(sparse, dtype):
    generator = torch.Generator().manual_seed(0)
    shapes = (9, 4), (7, 3, 4), (7, 3)
    given = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    slot = torch.tensor([0, 0, 0, 2, 2, 3, 6, 6, 6])
    pull = torch.randn(9, 3, generator=generator).to(dtype)
    found = []
    for scores, options in ((grouped_scores, {"sparse": sparse}), (plain_scores, {})):
        own = [value.clone().requires_grad_() for value in given]
        out = scores(*own, slot, **options)
        out.backward(pull)
        found.append([out.detach(), *(value.grad for value in own)])
    tolerance = 0.1 if dtype == torch.bfloat16 else 1e-5
    for one, other in zip(*found, strict=True):
        dense = one.to_dense() if one.is_sparse else one
        torch.testing.assert_close(dense, other, atol=tolerance, rtol=tolerance)
    assert [value.is_sparse for value in found[0]] == [False, False, sparse, sparse]
    if sparse:
        assert found[0][2]._indices().tolist() == [[0, 2, 3, 6]]


def test_memory_that_is_not_touched():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        like = torch.empty(1, dtype=dtype)
        zeros = untouched((2, 3), like, zero=True)
        assert zeros.dtype == dtype
        assert torch.equal(zeros, torch.zeros(2, 3, dtype=dtype))
        assert untouched((4, 0), like, zero=False).shape == (4, 0)


@shapes
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adagrad])
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_training_with_sparse_gradients_is_the_same(arity, max_depth, optimizer):
    X, y = clusters(n_classes=25)
    layers = [LabelTreeSoftmax(8, 25, arity, max_depth, sparse=sparse) for sparse in (False, True)]
    for layer in layers:
        steps = optimizer(layer.parameters(), lr=0.5)
        for step in range(6):
            steps.zero_grad()
            some = slice(20 * step, 20 * step + 20)
            layer(X[some], y[some]).loss.backward()
            assert layer.weight.grad.is_sparse == layer.sparse
            steps.step()
            if step == 3:
                layer.update_tree()
    torch.testing.assert_close(layers[0].weight, layers[1].weight, atol=1e-5, rtol=1e-4)
    np.testing.assert_array_equal(layers[0].tree.children, layers[1].tree.children)


# -- statistics ------------------------------------------------------------------------------------


def add_plainly(tops: dict, p: dict, n_top: int) -> dict:
    """Return the largest sums of each entry, once a batch's are added: a readable twin."""
    for entry, sums in p.items():
        every = dict(tops.get(entry, {}))
        for child, value in enumerate(sums):
            every[child] = every.get(child, 0.0) + value
        largest = sorted(every, key=lambda child: -every[child])[:n_top]
        tops[entry] = {child: every[child] for child in largest}
    return tops


def test_the_largest_sums_of_each_class_are_kept():
    X, y = data(60)
    layer = layer_of(6, 2, top_children=3)
    full = layer_of(6, 2, top_children=None)
    assert layer.collected.sum_probas.shape[1] == 3
    tops: dict = {}
    for begin in range(0, 60, 12):
        before = full.collected.sum_probas.clone()
        for each in (layer, full):
            each(X[begin : begin + 12], y[begin : begin + 12])
        batch = (full.collected.sum_probas - before).numpy()
        visited = {e: row for e, row in enumerate(batch) if row.any()}
        tops = add_plainly(tops, visited, 3)
    found = layer.collected.statistics()
    for entry, wanted in tops.items():
        own = dict(zip(found.top_children[entry].tolist(), found.sum_probas[entry], strict=True))
        positive = {child: value for child, value in own.items() if value > 0.0}
        assert sorted(positive) == sorted(child for child in wanted if wanted[child] > 0.0)
        for child, value in positive.items():
            assert np.isclose(value, wanted[child], atol=1e-5)
    for name in ("counts", "label_sums", "label_counts", "met"):
        assert torch.equal(getattr(layer.collected, name), getattr(full.collected, name))


def test_trees_of_top_children_are_as_good():
    X, y = clusters(n_classes=100, n=2000)
    losses = []
    for top in (None, 6):
        layer = LabelTreeSoftmax(8, 100, top_children=top)
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
        for step in range(40):
            optimizer.zero_grad()
            loss = layer(X, y).loss
            loss.backward()
            optimizer.step()
            if step < 20 and step % 5 == 4:
                layer.update_tree()
        losses.append(loss.item())
        assert np.all(np.isfinite(layer.inspect().J))
    assert losses[1] < losses[0] + 0.3


def test_an_update_without_new_examples_changes_nothing():
    layer, (X, y) = layer_of(None, 2), data(200)
    layer(X, y)
    layer.update_tree()
    tree = layer.tree
    layer.update_tree()
    assert layer.tree is tree
    assert not layer.collected.met.any()
    layer(X[:1], y[:1])
    assert layer.collected.moved().nonzero()[0].tolist() == [int(y[0])]


def test_layers_can_be_copied_and_moved():
    layer, (X, y) = layer_of(None, 2), data()
    layer(X, y)
    other = copy.deepcopy(layer)
    layer.update_tree()
    assert other.collected.label_counts.sum() == 30
    other.update_tree()
    np.testing.assert_array_equal(other.tree.children, layer.tree.children)
    assert isinstance(layer.to("meta").tree, LabelTree)
    assert layer.collected.counts.device.type == "meta"


# -- searches --------------------------------------------------------------------------------------


@shapes
@shortlists
def test_a_search_by_levels_finds_what_the_compiled_one_does(arity, max_depth, shortlist):
    layer, (X, _) = layer_of(arity, max_depth, shortlist=shortlist), data()
    for k in (1, 3, 11 - shortlist):
        labels, scores = layer._search(X, k)
        on_device = layer._search_by_levels(X, k)
        torch.testing.assert_close(on_device[1], scores, atol=1e-5, rtol=1e-4)
        assert torch.equal(on_device[0], labels)
    assert layer._search_by_levels(X[:0], 2)[0].shape == (0, 2)


def test_a_search_by_levels_of_deep_trees_visits_what_may_be_better():
    layer, (X, _) = layer_of(2, None, n_classes=200), data(100)
    with torch.no_grad():
        layer.weight *= 0.1  # all about as probable: the first pass misses many
    labels, scores = layer._search(X, 5)
    on_device = layer._search_by_levels(X, 5)
    torch.testing.assert_close(on_device[1], scores, atol=1e-5, rtol=1e-4)
    assert (on_device[0] == labels).float().mean() > 0.99


@pytest.mark.parametrize(("arity", "max_depth", "shortlist"), [(3, None, 0), (None, 2, 4)])
@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_a_layer_on_another_device_answers_and_learns_there(arity, max_depth, shortlist):
    layer, (X, y) = layer_of(arity, max_depth, shortlist=shortlist), data()
    state = copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        output, logp, (labels, _) = layer(X, y).output, layer.log_prob(X), layer.topk(X, 4)
    layer.update_tree()
    with elsewhere() as device:
        other = layer_of(arity, max_depth, shortlist=shortlist, device=device)
        other.load_state_dict(state)
        rows = X.to(device)
        torch.testing.assert_close(other(rows, y.to(device)).output.cpu(), output)
        torch.testing.assert_close(other.log_prob(rows).cpu(), logp)
        found = other.topk(rows, 4)[0]
        assert found.device == device
        assert torch.equal(found.cpu(), labels)
        other.update_tree()
        assert other.weight.device == other.collected.counts.device == device
        np.testing.assert_array_equal(other.tree.children, layer.tree.children)

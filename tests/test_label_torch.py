"""The PyTorch layer: a distribution over classes, its gradients, and a tree that may change."""

from __future__ import annotations

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from thinleaf.labeltree.kinds import huffman  # noqa: E402
from thinleaf.torch import LabelTreeSoftmax  # noqa: E402

SHAPES = [(2, None), (3, None), (5, 2), (None, 2), (None, 3)]
shapes = pytest.mark.parametrize(("arity", "max_depth"), SHAPES)


def layer_of(arity, max_depth, n_classes=11, dim=4, **options):
    torch.manual_seed(0)
    layer = LabelTreeSoftmax(dim, n_classes, arity, max_depth, **options)
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.normal_()
    return layer


def data(n=30, n_classes=11, dim=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(n, dim, generator=generator, dtype=dtype)
    return X, torch.randint(n_classes, (n,), generator=generator)


@shapes
def test_log_probabilities_sum_to_one_and_agree_with_forward(arity, max_depth):
    layer, (X, y) = layer_of(arity, max_depth), data()
    logp = layer.log_prob(X)
    torch.testing.assert_close(logp.exp().sum(dim=1), torch.ones(30))
    output, loss = layer(X, y)
    torch.testing.assert_close(output, logp.gather(1, y[:, None])[:, 0])
    torch.testing.assert_close(loss, torch.nn.functional.nll_loss(logp, y))
    one = layer(X[0], y[0])
    torch.testing.assert_close(one.output, output[0])


@shapes
def test_predictions_are_the_most_probable_classes(arity, max_depth):
    layer, (X, _) = layer_of(arity, max_depth), data()
    logp = layer.log_prob(X)
    torch.testing.assert_close(layer.predict(X), logp.argmax(dim=1))
    labels, scores = layer.topk(X, 4)
    torch.testing.assert_close(scores, logp.topk(4).values, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(logp.gather(1, labels), scores, atol=1e-5, rtol=1e-4)


def test_one_node_is_log_softmax():
    layer, (X, _) = layer_of(11, 1), data()
    number = torch.tensor(layer.tree.path_branches, dtype=torch.long)
    scores = X @ layer.weight[0].T + layer.bias[0]
    torch.testing.assert_close(layer.log_prob(X), torch.log_softmax(scores, dim=1)[:, number])


@shapes
def test_gradients(arity, max_depth):
    layer = layer_of(arity, max_depth, dtype=torch.float64).eval()
    X, y = data(6, dtype=torch.float64)
    X.requires_grad_()

    def loss(X, weight, bias):
        parameters = {"weight": weight, "bias": bias}
        return torch.func.functional_call(layer, parameters, (X, y))[1]

    assert torch.autograd.gradcheck(loss, (X, layer.weight, layer.bias))


@shapes
def test_a_state_carries_the_tree(arity, max_depth):
    layer, (X, y) = layer_of(arity, max_depth), data()
    layer(X, y)
    layer.update_tree()
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other = layer_of(arity, max_depth, seed=5)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    np.testing.assert_array_equal(other.tree.children, layer.tree.children)
    torch.testing.assert_close(other.log_prob(X), layer.log_prob(X))
    other.update_tree()


def leaves(layer) -> list[tuple[int, int]]:
    """Return slot and branch of the leaf of each class."""
    slots, tree = layer.slots.tolist(), layer.tree
    return [(slots[n], j) for n, j in (tree.path(c)[-1] for c in range(tree.n_labels))]


@shapes
def test_leaves_that_stay_keep_their_parameters(arity, max_depth):
    """And a class that moves differs from its node's mean as it did from that of its old node."""
    layer, (X, y) = layer_of(arity, max_depth), data(200)
    torch.nn.init.normal_(layer.weight)
    layer(X, y)
    weight, before, tree = layer.weight.detach().clone(), leaves(layer), layer.tree
    absent = layer._absent.clone()
    layer.update_tree()
    assert layer.tree is not tree
    for old, new in zip(before, leaves(layer), strict=True):
        own = weight[old] - weight[old[0]][~absent[old[0]]].mean(dim=0)
        there = weight[new[0]][~absent[new[0]]].mean(dim=0)
        wanted = [own, own + there]  # at a node that is new, and at one that stays
        if old == new:
            wanted[1] = weight[old]
        assert any(torch.allclose(layer.weight[new], w, atol=1e-5) for w in wanted)


def test_training_with_updates_learns_and_evaluation_collects_nothing():
    torch.manual_seed(0)
    centres = 2 * torch.randn(12, 6)
    y = torch.arange(600) % 12
    X = centres[y] + 0.3 * torch.randn(600, 6)
    layer = LabelTreeSoftmax(6, 12)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for step in range(120):
        optimizer.zero_grad()
        layer(X, y).loss.backward()
        optimizer.step()
        if step < 60 and step % 10 == 9:
            layer.update_tree()
    assert (layer.predict(X) == y).float().mean() > 0.95
    quality = layer.inspect()
    assert np.all(quality.J_max + 1e-5 >= quality.J)
    counts = layer.counts.clone()
    layer.eval()
    layer(X, y)
    torch.testing.assert_close(layer.counts, counts)


def test_a_given_tree_and_bad_arguments():
    tree = huffman(np.arange(1, 12), 3)
    layer = LabelTreeSoftmax(4, 11, tree=tree, max_depth=None, learned=False)
    assert layer.tree is tree
    with pytest.raises(ValueError, match="give arity or max_depth"):
        LabelTreeSoftmax(4, 11, max_depth=None)
    with pytest.raises(ValueError, match="tree has 11 labels"):
        LabelTreeSoftmax(4, 12, tree=tree, max_depth=None)
    with pytest.raises(ValueError, match="at least 2"):
        LabelTreeSoftmax(4, 1)
    X, y = data()
    with pytest.raises(ValueError, match="targets must be in"):
        layer(X, y + 5)
    with pytest.raises(ValueError, match="30 inputs, but 3 targets"):
        layer(X, y[:3])
    assert "arity=3" in repr(layer)

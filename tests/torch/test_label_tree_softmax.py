"""The PyTorch layer: a distribution over classes, its gradients, and a tree that may change."""

from __future__ import annotations

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from thinleaf.labeltree.fixed_trees import huffman  # noqa: E402
from thinleaf.torch import LabelTreeSoftmax  # noqa: E402

SHAPES = [(2, None), (3, None), (5, 2), (None, 2), (None, 3)]
shapes = pytest.mark.parametrize(("arity", "max_depth"), SHAPES)
shortlists = pytest.mark.parametrize("shortlist", [0, 1, 4])


def layer_of(arity, max_depth, n_classes=11, dim=4, **options):
    torch.manual_seed(0)
    layer = LabelTreeSoftmax(dim, n_classes, arity, max_depth, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def data(n=30, n_classes=11, dim=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(n, dim, generator=generator, dtype=dtype)
    return X, torch.randint(n_classes, (n,), generator=generator)


@shapes
@shortlists
def test_log_probabilities_sum_to_one_and_agree_with_forward(arity, max_depth, shortlist):
    layer, (X, y) = layer_of(arity, max_depth, shortlist=shortlist), data()
    logp = layer.log_prob(X)
    torch.testing.assert_close(logp.exp().sum(dim=1), torch.ones(30))
    output, loss = layer(X, y)
    torch.testing.assert_close(output, logp.gather(1, y[:, None])[:, 0])
    torch.testing.assert_close(loss, torch.nn.functional.nll_loss(logp, y))
    one = layer(X[0], y[0])
    torch.testing.assert_close(one.output, output[0])


@shapes
@shortlists
def test_predictions_are_the_most_probable_classes(arity, max_depth, shortlist):
    layer, (X, _) = layer_of(arity, max_depth, shortlist=shortlist), data()
    logp = layer.log_prob(X)
    torch.testing.assert_close(layer.predict(X), logp.argmax(dim=1))
    for k in (1, 4, 7, 11):
        labels, scores = layer.topk(X, k)
        torch.testing.assert_close(scores, logp.topk(k).values, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(logp.gather(1, labels), scores, atol=1e-5, rtol=1e-4)


def test_a_shortlist_is_a_softmax_with_one_output_for_the_tree():
    layer, (X, y) = layer_of(None, 2, shortlist=4), data()
    head = torch.log_softmax(layer.head(X), dim=1)
    logp = layer.log_prob(X)
    torch.testing.assert_close(logp[:, :4], head[:, :4])
    torch.testing.assert_close(logp[:, 4:].logsumexp(dim=1), head[:, 4])
    assert layer.tree.n_labels == 7
    assert "shortlist=4" in repr(layer)
    layer(X[y < 4], y[y < 4])  # no row is below
    assert layer.collected.label_counts.sum() == 0
    layer(X, y)
    assert layer.collected.label_counts.sum() == (y >= 4).sum()
    layer.update_tree()
    torch.testing.assert_close(layer.log_prob(X).exp().sum(dim=1), torch.ones(30))
    with pytest.raises(ValueError, match="shortlist must leave two classes"):
        LabelTreeSoftmax(4, 11, shortlist=10)
    with pytest.raises(ValueError, match="11 labels, but there are 7 classes beyond the first 4"):
        LabelTreeSoftmax(4, 11, max_depth=None, tree=huffman(range(1, 12)), shortlist=4)
    with pytest.raises(ValueError, match="shortlist must be an integer"):
        LabelTreeSoftmax(4, 11, shortlist=-1)
    with pytest.raises(ValueError, match="has a shortlist of 4 classes, the layer one of 5"):
        layer_of(None, 2, shortlist=5).load_state_dict(layer.state_dict())


def test_classes_on_the_shortlist_can_be_ruled_out():
    layer, (X, _) = layer_of(None, 2, shortlist=4), data()
    with torch.no_grad():
        layer.head.bias[:4] = -torch.inf
        layer.head.bias[2] = 1.0
    labels, _ = layer.topk(X, 8)
    assert all(len(set(row)) == 8 for row in labels.tolist())
    torch.testing.assert_close(layer.predict(X), layer.log_prob(X).argmax(dim=1))


def test_one_node_is_log_softmax():
    layer, (X, _) = layer_of(11, 1), data()
    number = torch.tensor(layer.tree.path_branches, dtype=torch.long)
    scores = X @ layer.weight[0].T + layer.bias[0]
    torch.testing.assert_close(layer.log_prob(X), torch.log_softmax(scores, dim=1)[:, number])


@shapes
@pytest.mark.parametrize("shortlist", [0, 4])
def test_gradients(arity, max_depth, shortlist):
    layer = layer_of(arity, max_depth, shortlist=shortlist, dtype=torch.float64).eval()
    X, y = data(6, dtype=torch.float64)
    X.requires_grad_()

    names, parameters = zip(*layer.named_parameters(), strict=True)

    def loss(X, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (X, y))[1]

    assert torch.autograd.gradcheck(loss, (X, *parameters))


@shapes
@shortlists
def test_a_state_carries_the_tree(arity, max_depth, shortlist):
    layer, (X, y) = layer_of(arity, max_depth, shortlist=shortlist), data()
    layer(X, y)
    layer.update_tree()
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other = layer_of(arity, max_depth, shortlist=shortlist, seed=5)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    np.testing.assert_array_equal(other.tree.children, layer.tree.children)
    torch.testing.assert_close(other.log_prob(X), layer.log_prob(X))


def clusters(n_classes=30, dim=8, n=600):
    """Return rows that are easy to tell apart."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % n_classes
    centres = 2 * torch.randn(n_classes, dim, generator=generator)
    return centres[y] + 0.2 * torch.randn(n, dim, generator=generator), y


def trained(arity, max_depth):
    X, y = clusters()
    layer = LabelTreeSoftmax(8, 30, arity, max_depth)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(80):
        optimizer.zero_grad()
        layer(X, y).loss.backward()
        optimizer.step()
    return layer


@pytest.mark.parametrize(("arity", "max_depth"), [(None, 2), (3, None), (2, None)])
def test_an_update_after_loading_destroys_nothing(arity, max_depth):
    """Without examples the tree stays; with few of few classes, the others stay."""
    layer, (X, y) = trained(arity, max_depth), clusters()
    other = LabelTreeSoftmax(8, 30, arity, max_depth, seed=3)
    other.load_state_dict(layer.state_dict())
    before = other.eval()(X, y).loss.item()
    assert before < 1.0  # by chance it is 3.4
    tree = other.tree
    other.update_tree()
    assert other.tree is tree
    assert other(X, y).loss.item() == before
    few = y < 5
    other.train()(X[few][:20], y[few][:20])
    other.update_tree()
    assert other.eval()(X, y).loss.item() < before + 0.3


def test_a_tree_that_is_not_learned_is_not_updated():
    layer, (X, y) = layer_of(3, None, learned=False), data()
    layer(X, y)
    with pytest.raises(RuntimeError, match="learned=False"):
        layer.update_tree()


@pytest.mark.parametrize("slots", [[0, 1, 1], [0, 1, 99], [1, 0, 2], [0, -1, 1], [-1, -1, -1]])
def test_a_state_with_impossible_slots_is_refused(slots):
    layer = layer_of(3, None, n_classes=7)
    assert layer.slots.tolist() == [0, 1, 2]
    weight, state = layer.weight.detach().clone(), layer_of(3, None, n_classes=7).state_dict()
    state["slots"], state["weight"] = torch.tensor(slots), state["weight"] + 1
    with pytest.raises(ValueError, match=r"slots of a state|cannot separate|children must be"):
        layer.load_state_dict(state)
    torch.testing.assert_close(layer.weight.detach(), weight)


HALVES = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", HALVES)
@shortlists
def test_half_precision(dtype, shortlist):
    single, (X, y) = layer_of(None, 2, shortlist=shortlist), data()
    layer = layer_of(None, 2, shortlist=shortlist).to(dtype)
    assert layer.collected.label_counts.dtype == torch.float32
    expected = single(X, y)
    for rows in (X, X.to(dtype)):
        output, loss = layer(rows, y)
        assert output.dtype == dtype
        torch.testing.assert_close(output.float(), expected.output, atol=0.15, rtol=0.05)
        loss.backward()
    labels, scores = layer.topk(X, 3)
    assert scores.dtype == dtype
    torch.testing.assert_close(scores, layer.log_prob(X).gather(1, labels), atol=0.15, rtol=0.05)
    layer.collected.label_counts += 1e6
    torch.testing.assert_close(
        layer.half().float().collected.label_counts.sum(),
        torch.tensor((11 - shortlist) * 1e6 + 2.0 * int((y >= shortlist).sum())),
    )
    layer.update_tree()
    assert layer.to(dtype).predict(X).shape == (30,)


@pytest.mark.parametrize("dtype", HALVES)
@shortlists
def test_autocast(dtype, shortlist):
    layer, (X, y) = layer_of(None, 2, shortlist=shortlist), data()
    expected = layer(X, y)
    expected.loss.backward()
    gradient, layer.weight.grad = layer.weight.grad, None
    with torch.autocast("cpu", dtype=dtype):
        output, loss = layer(X.to(dtype), y)
        torch.testing.assert_close(output, expected.output, atol=0.05, rtol=0.02)
        torch.testing.assert_close(layer.log_prob(X), layer.log_prob(X.to(dtype)), atol=0.1, rtol=1)
        assert layer.predict(X.to(dtype)).shape == (30,)
    loss.backward()
    torch.testing.assert_close(layer.weight.grad, gradient, atol=0.05, rtol=0.05)


def test_scores_have_the_precision_of_the_layer():
    layer, (X, y) = layer_of(3, None, dtype=torch.float64), data(200, dtype=torch.float64)
    assert layer.topk(X, 2)[1].dtype == torch.float64
    layer(X, y)
    weight, before = layer.weight.detach().clone(), leaves(layer)
    layer.update_tree()
    stayed = [a for a, b in zip(before, leaves(layer), strict=True) if a == b]
    assert stayed
    assert all(torch.equal(layer.weight[leaf], weight[leaf]) for leaf in stayed)


@pytest.mark.parametrize("shape", [(30, 3), (30, 5), (30,), (5, 6, 4), (), (4, 30)])
@pytest.mark.parametrize("method", ["forward", "log_prob", "predict", "topk"])
def test_inputs_of_another_shape_are_refused(shape, method):
    layer, X = layer_of(3, None), torch.zeros(shape)
    more = {"forward": (torch.zeros(shape[:-1], dtype=torch.long),), "topk": (2,)}
    with pytest.raises(ValueError, match=r"input must have shape \(n, 4\) or \(4,\)"):
        getattr(layer, method)(X, *more.get(method, ()))


def test_one_input_is_like_one_of_many():
    layer, (X, y) = layer_of(3, None), data()
    torch.testing.assert_close(layer.log_prob(X[0]), layer.log_prob(X)[0])
    assert layer.predict(X[0]) == layer.predict(X)[0]
    for one, many in zip(layer.topk(X[0], 3), layer.topk(X, 3), strict=True):
        torch.testing.assert_close(one, many[0])
    with pytest.raises(ValueError, match="target must have shape"):
        layer(X, y[:, None])
    for k in (0, -1, 12, 1.5):
        with pytest.raises(ValueError, match="k must be"):
            layer.topk(X, k)


def test_parameters_can_be_reset():
    layer, (X, y) = layer_of(3, None, shortlist=2), data()
    layer(X, y)
    layer.reset_parameters()
    assert not any(parameter.any() for parameter in layer.parameters())
    assert not layer.collected.label_counts.any()
    tree = layer.tree
    layer.update_tree()
    assert layer.tree is tree


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


@pytest.mark.parametrize("shortlist", [0, 4])
def test_training_with_updates_learns_and_evaluation_collects_nothing(shortlist):
    torch.manual_seed(0)
    centres = 2 * torch.randn(12, 6)
    y = torch.arange(600) % 12
    X = centres[y] + 0.3 * torch.randn(600, 6)
    layer = LabelTreeSoftmax(6, 12, shortlist=shortlist)
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
    counts = layer.collected.counts.clone()
    layer.eval()
    layer(X, y)
    torch.testing.assert_close(layer.collected.counts, counts)


def test_a_given_tree_and_bad_arguments():
    tree = huffman(np.arange(1, 12), 3)
    layer = LabelTreeSoftmax(4, 11, tree=tree, max_depth=None, learned=False)
    assert layer.tree is tree
    with pytest.raises(ValueError, match="give arity or max_depth"):
        LabelTreeSoftmax(4, 11, max_depth=None)
    with pytest.raises(ValueError, match="tree has 11 labels"):
        LabelTreeSoftmax(4, 12, tree=tree, max_depth=None)
    for arguments, options in [
        ((4, 1), {}), ((0, 11), {}), ((4, 11, [2, 5]), {}), ((4, 11, 1), {}), ((4, 11, 3, 0), {}),
        ((4, 11, 3, -1), {}), ((4, 11), {"criterion": "foo"}), ((4, 11), {"inertia": -3}),
        ((4, 11), {"max_share": 0}),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=r"must be (an integer )?(one of|of at|at|above) "):
            LabelTreeSoftmax(*arguments, **options)
    assert LabelTreeSoftmax(4, 11, 10**6).weight.shape == (1, 11, 4)
    X, y = data()
    with pytest.raises(ValueError, match="targets must be in"):
        layer(X, y + 5)
    with pytest.raises(ValueError, match="30 inputs, but 3 targets"):
        layer(X, y[:3])
    assert "arity=3" in repr(layer)

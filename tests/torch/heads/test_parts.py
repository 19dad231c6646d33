"""What a head is made of: answers of the full layer, sets, routers, rows, training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.torch.heads.cases import N_CLASSES, layer, states
from thinleaf.execution.threads import threads
from thinleaf.torch.heads.kernels.kept_rows import best_of, scatter, score_kept
from thinleaf.torch.heads.leaf_sets import Counts, choose_sets, most_wanted
from thinleaf.torch.heads.routers import Routers, leaves_below
from thinleaf.torch.heads.rows import as_array, kind_of, narrowed
from thinleaf.torch.heads.targets import full_answers
from thinleaf.torch.heads.training import TrainingSettings, train_routers


def answers_of(n: int, n_best: int = 10):
    linear, given = layer(bias=True), states(n)
    followed = np.arange(n) % N_CLASSES
    found = full_answers(given.numpy(), linear.weight, linear.bias, n_best, followed)
    with torch.no_grad():
        return found, linear(given), followed


def test_answers_are_the_layers():
    found, full, followed = answers_of(70)
    top = full.topk(10)
    assert np.array_equal(found.classes, top.indices.numpy())
    assert np.array_equal(found.best, full.argmax(1).numpy())
    np.testing.assert_allclose(found.logits, top.values.numpy(), rtol=1e-6)
    np.testing.assert_allclose(found.log_norm, full.logsumexp(1).numpy(), rtol=1e-5)
    log_proba = full.log_softmax(1)
    np.testing.assert_allclose(
        found.log_proba, log_proba[np.arange(70), followed].numpy(), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        found.probabilities, log_proba.exp().gather(1, top.indices).numpy(), rtol=1e-4, atol=1e-7
    )
    assert np.array_equal(found.take(np.array([3, 1])).classes, found.classes[[3, 1]])


def test_sets_are_of_the_most_wanted_classes_blended_with_ancestors():
    found, _, _ = answers_of(300)
    counts = Counts.of(found, N_CLASSES, 0.25)
    rng = np.random.default_rng(0)
    leaf = rng.integers(4, size=300).astype(np.int32)
    total = counts.total(slice(None))
    common = most_wanted(total, 5)
    sets = choose_sets(counts, leaf, 4, 20, common, 7.0)
    assert (sets.sizes == 20).all()

    def blend(rows, above):
        return (counts.total(rows) + 7.0 * above) / (len(rows) + 7.0)

    root = blend(np.arange(300), (total + 1 / N_CLASSES) / 301)
    for at in range(4):
        half = blend(np.flatnonzero(leaf // 2 == at // 2), root)
        own = blend(np.flatnonzero(leaf == at), half)
        own[common] = -1.0
        assert sets.own(at).tolist() == sorted(np.argsort(-own, kind="stable")[:15].tolist())
    members = sets.members(N_CLASSES)
    assert (members.sum(axis=1) == 20).all()
    assert np.array_equal(
        sets.keeps(leaf, found.classes, N_CLASSES), members[leaf[:, None], found.classes]
    )


def test_subtrees_have_their_leaves():
    rng = np.random.default_rng(0)
    routers = Routers(rng.standard_normal((7, 3)).astype("f4"), rng.standard_normal(7).astype("f4"))
    given = rng.standard_normal((50, 3)).astype("f4")
    leaf = routers.leaves_of(given)
    assert routers.depth == 3
    for node in range(15):
        first, end = leaves_below(node, 3)
        inside = (leaf >= first) & (leaf < end)
        below = routers.below(node)
        assert below.n_leaves == end - first
        assert np.array_equal(first + below.leaves_of(given[inside]), leaf[inside])


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_kernels_read_all_kinds_of_rows(kind):
    rng = np.random.default_rng(1)
    weight = torch.from_numpy(rng.standard_normal((6, 40)).astype("f4"))
    weight[0, :5] = torch.tensor([0.0, -0.0, 6e-8, -3e-6, 65000.0])
    rows = narrowed(weight, kind)
    assert kind_of(rows) == kind
    state = rng.standard_normal(40).astype("f4")
    routers, none = (np.empty((0, 40), "f4"), np.empty(0, "f4")), np.empty(0, dtype="f4")
    common, ptr = np.arange(5, dtype=np.int32), np.array([0, 1])
    kept, scores = np.empty(9, np.int32), np.empty(9, "f4")
    given = (*routers, 1, common, ptr, np.array([5], np.int32), as_array(rows), none)
    n = score_kept(state, *given, kept, scores)
    assert kept[:n].tolist() == [0, 1, 2, 3, 4, 5]
    expected = rows.double() @ torch.from_numpy(state).double()
    np.testing.assert_allclose(scores[:n], expected.numpy(), rtol=1e-5, atol=1e-5)
    assert np.shares_memory(as_array(rows), as_array(rows))
    with pytest.raises(ValueError, match="rows must be one of"):
        narrowed(weight, "int4")


def test_scores_are_put_into_a_row_of_all_classes():
    kept, scores = np.array([4, 1, 3], np.int32), np.array([2.0, 5.0, 5.0], "f4")
    row = np.zeros(6, "f4")
    scatter(kept, scores, row)
    assert row.tolist() == [-np.inf, 5.0, -np.inf, 5.0, 2.0, -np.inf]
    assert best_of(kept, scores) == 1
    assert best_of(kept[::-1].copy(), scores[::-1].copy()) == 1


@pytest.mark.parametrize("loss", ["mass", "class", "margin"])
def test_sweeps_lower_the_loss(loss):
    linear, given = layer(), states(2500)
    found = full_answers(given.numpy(), linear.weight, None)
    counts = Counts.of(found, N_CLASSES, 0.0)
    common = most_wanted(counts.total(slice(None)), 5)
    lost = []
    for n_sweeps in (0, 2):
        settings = TrainingSettings(3, 20, loss, n_sweeps, ridge=1.0)
        with threads(1) as executor:
            routers, sets = train_routers(given.numpy(), found, counts, common, settings, executor)
        kept = sets.keeps(routers.leaves_of(given.numpy()), found.classes, N_CLASSES)
        gap = np.where(kept, found.logits[:, :1] - found.logits, 99.0).min(axis=1)
        mass = 1.0 - np.where(kept, found.probabilities, 0.0).sum(axis=1)
        lost.append({"mass": mass, "class": ~kept[:, 0], "margin": gap}[loss].mean())
    assert lost[1] < lost[0]

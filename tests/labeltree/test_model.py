"""Training and search of label trees: kernels against their twins, gradients, exactness."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import label_reference as reference
from tests.strategies import FORMATS, as_rows
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.arrays.rows import CSR
from thinleaf.execution import executor_for
from thinleaf.labeltree.fixed_trees import balanced, huffman
from thinleaf.labeltree.kernels.embedding import embed_rows
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.model import LabelTreeModel
from thinleaf.labeltree.statistics import Statistics
from thinleaf.labeltree.targets import Targets
from thinleaf.labeltree.training import Assigning, Schedule, train
from thinleaf.labeltree.word_features import WordFeatures, _hashes

formats = pytest.mark.parametrize("kind", FORMATS)
seeds = st.integers(0, 2**32 - 1)


def random_model(seed: int, n_labels: int, arity: int, dim: int = 6) -> LabelTreeModel:
    rng = np.random.default_rng(seed)
    tree = (balanced, lambda K, M, r: huffman(r.integers(1, 9, K), M))[seed % 2](
        n_labels, arity, rng
    )
    model = LabelTreeModel.start(tree, 5, dim, rng, 0.7)
    model.U[:] = rng.standard_normal(model.U.shape)
    model.weights[:] = rng.standard_normal(model.weights.shape)
    model.bias[model.bias == 0.0] = rng.standard_normal(np.count_nonzero(model.bias == 0.0))
    return model


def random_rows(seed: int, n_rows: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_rows, 5)) * (rng.random((n_rows, 5)) < 0.7)


@formats
@given(seed=seeds, n_labels=st.integers(1, 30), arity=st.sampled_from([2, 3, 5, 20]))
def test_probabilities_are_products_along_paths_and_sum_to_one(kind, seed, n_labels, arity):
    model, X = random_model(seed, n_labels, arity), random_rows(seed)
    out = np.exp(model.log_proba(as_rows(X, kind)).astype(np.float64))
    expected = np.array([reference.label_probas(model, x) for x in X])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=1e-5)


@formats
@given(seed=seeds, n_labels=st.integers(1, 30), arity=st.sampled_from([2, 3, 5, 20]))
def test_branch_and_bound_is_exhaustive_search(kind, seed, n_labels, arity):
    model, X = random_model(seed, n_labels, arity), random_rows(seed)
    rows = as_rows(X, kind)
    every = model.log_proba(rows)
    for k in (1, 3, n_labels):
        labels, scores = model.topk(rows, k)
        assert labels.shape == (len(X), min(k, n_labels))
        np.testing.assert_allclose(scores, -np.sort(-every, axis=1)[:, :k], atol=1e-5)
        np.testing.assert_allclose(np.take_along_axis(every, labels, axis=1), scores, atol=1e-5)
        assert all(np.unique(row).size == row.size for row in labels)


@formats
@given(seed=seeds, n_labels=st.integers(1, 30), arity=st.sampled_from([2, 3, 5]))
def test_the_greedy_path_takes_the_most_probable_child(kind, seed, n_labels, arity):
    model, X = random_model(seed, n_labels, arity), random_rows(seed)
    for x, label in zip(X, model.descend(as_rows(X, kind)), strict=True):
        w = reference.representation(model, x)
        for n, j in model.tree.path(int(label)):
            p = reference.node_probas(model, n, w)
            assert p[j] >= p.max() - 1e-6


@formats
@given(seed=seeds, n_labels=st.integers(2, 20), arity=st.sampled_from([2, 3, 5]))
def test_the_log_probability_of_a_label(kind, seed, n_labels, arity):
    model, X = random_model(seed, n_labels, arity), random_rows(seed)
    y = np.random.default_rng(seed).integers(n_labels, size=len(X)).astype(INDEX)
    out = model.label_log_proba(as_rows(X, kind), y)
    expected = [reference.log_likelihood(model, x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


# -- training --------------------------------------------------------------------------------------


def one_step(model, X, label, kind, *, rate=0.1, log=True):
    y = np.array([label], dtype=INDEX)
    schedule, assigning = Schedule(1, rate), Assigning(log_gradient=log)
    with executor_for(1) as executor:
        return train(
            model, as_rows(X, kind), Targets.single(y), schedule, assigning,
            np.random.default_rng(0), executor,
        )  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_a_representation_is_the_sum_of_embeddings(scale):
    """For rows of 0 to 12 features, a feature may come twice."""
    rng = np.random.default_rng(0)
    sizes = np.arange(13)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(INDEX)
    indices = rng.integers(0, 20, size=indptr[-1]).astype(INDEX)
    data = rng.standard_normal(indptr[-1]).astype(np.float32)
    U = rng.standard_normal((20, 7)).astype(np.float32)
    out = np.full((13, 7), np.nan, dtype=np.float32)
    embed_rows(CSR(indptr, indices, data, 20), scale, U, out)
    for row in range(13):
        own = slice(indptr[row], indptr[row + 1])
        expected = scale * data[own].astype(np.float64) @ U[indices[own]]
        np.testing.assert_allclose(out[row], expected, rtol=1e-4, atol=1e-5)


@formats
@pytest.mark.parametrize("log", [True, False])
@given(seed=seeds, n_labels=st.integers(2, 60), arity=st.sampled_from([2, 3, 5, 40]))
def test_a_step_is_that_of_algorithm_1(kind, log, seed, n_labels, arity):
    model, X = random_model(seed, n_labels, arity), random_rows(seed, 1)
    label = seed % n_labels
    w = reference.representation(model, X[0])
    for n, target in model.tree.path(label):  # whether an error is negligible must be clear
        error = np.abs(np.eye(arity)[target] - reference.node_probas(model, n, w))
        assume(np.all(np.abs(error - reference.negligible(arity)) > 1e-6))
    U, weights, bias = reference.step(model, X[0], label, 0.1, log=log)
    trained = one_step(model, X, label, kind, log=log).model
    np.testing.assert_allclose(trained.U, U, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(trained.weights, weights, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(trained.bias, bias, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("arity", [2, 4])
def test_a_step_follows_the_gradient_of_the_log_likelihood(arity):
    """The step of the twin, against finite differences of equation 5."""
    model, X = random_model(3, 9, arity), random_rows(3, 1)
    U, weights, bias = reference.step(model, X[0], 4, 1e-6)
    eps = 1e-3
    for array, moved in ((model.U, U), (model.weights, weights), (model.bias, bias)):
        gradient = (moved - array) / 1e-6
        for at in list(np.ndindex(array.shape))[:: max(1, array.size // 20)]:
            if array[at] < -1e20:  # a branch that leads nowhere
                continue
            value = array[at]
            array[at] = value + eps
            up, used = reference.log_likelihood(model, X[0], 4), float(array[at])
            array[at] = value - eps
            down, used = reference.log_likelihood(model, X[0], 4), used - float(array[at])
            array[at] = value
            assert np.isclose((up - down) / used, gradient[at], atol=1e-3)


def test_labels_that_move_take_their_leaf_along():
    """Two trees of two nodes below the root; a label of the first goes to the second and back."""
    rng = np.random.default_rng(0)
    old = LabelTree.build([[1, 2, -1], [3, 4, 5], [6, 7, -1]], 5)
    new = LabelTree.build([[1, 2, -1], [3, 7, 5], [6, 4, -1]], 5)  # labels 1 and 4 change places
    model = LabelTreeModel.start(old, 2, 4, rng, 1.0)
    model.weights[:] = rng.standard_normal(model.weights.shape)
    model.bias[old.present] = rng.standard_normal(7)
    after = model.rebuilt(new, np.arange(3, dtype=INDEX))
    means = [model.weights[n][old.present[n]].mean(axis=0) for n in range(3)]
    for label, source, target in ((4, (2, 1), (1, 1)), (1, (1, 1), (2, 1))):
        expected = model.weights[source] - means[source[0]] + means[target[0]]
        np.testing.assert_allclose(after.weights[target], expected, rtol=1e-5, atol=1e-6)
        assert new.path(label)[-1] == target
    for at in ((0, 0), (0, 1), (1, 0), (1, 2), (2, 0)):
        np.testing.assert_array_equal(after.weights[at], model.weights[at])
        assert after.bias[at] == model.bias[at]
    fresh = model.rebuilt(new, np.array([0, 1, -1], dtype=INDEX))
    np.testing.assert_allclose(fresh.weights[2, 0], model.weights[2, 0] - means[2], atol=1e-6)
    assert np.all(after.bias[~new.present] < -1e29)


def test_statistics_are_those_of_the_rows():
    model, X = random_model(1, 8, 3), random_rows(1, 20)
    y = np.random.default_rng(0).integers(8, size=20).astype(INDEX)
    statistics = model.statistics(as_rows(X, "csr"), y)
    expected = Statistics.zeros(model.tree, 0)
    for x, label in zip(X, y, strict=True):
        w = reference.representation(model, x)
        for depth, (n, _) in enumerate(model.tree.path(int(label))):
            e = model.tree.path_ptr[label] + depth
            expected.sum_probas[e] += reference.node_probas(model, n, w)
            expected.counts[e] += 1
    np.testing.assert_allclose(statistics.sum_probas, expected.sum_probas, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(statistics.counts, expected.counts)


def problem(n_labels: int = 12, n_rows: int = 600):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_labels, 5))
    y = (np.arange(n_rows) % n_labels).astype(INDEX)
    return (centres[y] + 0.2 * rng.standard_normal((n_rows, 5))).astype(PARAM), y


def trained_on(X, y, n_jobs=1, max_depth=None, seed=0):
    rng = np.random.default_rng(seed)
    model = LabelTreeModel.start(balanced(int(y.max()) + 1, 3, rng), 5, 8, rng, 0.5)
    with executor_for(n_jobs) as executor:
        schedule = Schedule(epochs=20, learning_rate=0.5, n_assignments=10)
        assigning = Assigning("probability", max_depth)
        return train(model, X, Targets.single(y), schedule, assigning, rng, executor)


@pytest.mark.parametrize("max_depth", [None, 3])
def test_training_lowers_the_loss_and_learns_the_tree(max_depth):
    X, y = problem()
    trained = trained_on(X, y, max_depth=max_depth)
    losses = [record.loss for record in trained.history]
    assert losses[-1] < 0.5 * losses[0]
    assert np.mean(trained.model.topk(X, 1)[0][:, 0] == y) > 0.9
    assert trained.history[-1].n_assigned == 10
    if max_depth:
        assert trained.model.tree.depth <= max_depth


def test_one_thread_repeats_bit_for_bit():
    X, y = problem()
    a, b = trained_on(X, y), trained_on(X, y)
    for name in ("U", "weights", "bias"):
        np.testing.assert_array_equal(getattr(a.model, name), getattr(b.model, name))
    np.testing.assert_array_equal(a.model.tree.children, b.model.tree.children)
    assert a.history == b.history


def test_several_threads_learn_as_well():
    X, y = problem()
    trained = trained_on(X, y, n_jobs=3)
    assert np.mean(trained.model.topk(X, 1)[0][:, 0] == y) > 0.9


def test_the_rate_is_constant_while_the_tree_is_learned():
    learned, fixed = Schedule(4, 0.5, n_assignments=50), Schedule(4, 0.5)
    assert [learned.rate(x) for x in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0.5, 0.5, 0.5, 0.25, 0.0]
    assert [fixed.rate(x) for x in (0.0, 0.5, 1.0)] == [0.5, 0.25, 0.0]
    steps = learned.assignments(1000)
    assert len(steps) == 50
    assert steps[0] == round(1000 / 32 + (500 - 1000 / 32) / 50)
    assert steps[-1] == 500
    assert Schedule(4, 0.5, n_assignments=50, still_fraction=0.0).assignments(1000)[0] == 10


# -- texts -----------------------------------------------------------------------------------------


def hashed(text: str) -> list[int]:
    """Return the 64-bit FNV-1a hashes of the words of a text."""
    hashes = []
    for word in re.findall(r"\w+", text.lower()):
        h = 0xCBF29CE484222325
        for byte in word.encode():
            h = (h ^ byte) * 0x100000001B3 % 2**64
        hashes.append(h)
    return hashes


def test_words_are_those_of_a_regular_expression():
    texts = ["Usr/lib/Foo-1.2_x.so!", "Ärger “über” naïve café…", "", "  a\tb\nc  ", "x" * 300]
    for text in texts:
        assert _hashes([text])[0].tolist() == hashed(text)


@given(st.lists(st.text("ab c", max_size=12), max_size=8), st.integers(1, 3))
def test_rows_have_one_entry_for_each_term(texts, ngrams):
    features = WordFeatures(ngrams)
    rows = features.fit_transform(texts)
    terms = []
    for text in texts:
        words = text.split()
        terms.append(
            [
                tuple(words[i : i + n])
                for i in range(len(words))
                for n in range(1, min(ngrams, len(words) - i) + 1)
            ]
        )
    assert np.diff(rows.indptr).tolist() == [len(found) for found in terms]
    id_of = dict(zip((t for found in terms for t in found), rows.indices.tolist(), strict=True))
    assert [id_of[t] for found in terms for t in found] == rows.indices.tolist()
    assert len(set(id_of.values())) == len(id_of) == features.n_features
    again = features.transform(texts)
    np.testing.assert_array_equal(again.indices, rows.indices)
    sums = np.array([rows.data[a:b].sum() for a, b in pairwise(rows.indptr)])
    np.testing.assert_allclose(sums[np.diff(rows.indptr) > 0], 1.0, rtol=1e-5)


def test_rare_and_unknown_terms_are_left_out():
    features = WordFeatures(min_count=2, pooling="sum").fit(["a b", "a c"])
    assert features.n_features == 1
    rows = features.transform(["a a b", "b zzz"])
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.data.tolist() == [1.0, 1.0]


def test_a_large_vocabulary_outgrows_its_first_table():
    texts = [" ".join(f"w{i}" for i in range(j, j + 500)) for j in range(0, 100_000, 500)]
    assert WordFeatures().fit(texts).n_features == 100_000


def test_buckets_limit_the_number_of_ngrams():
    features = WordFeatures(2, n_buckets=10).fit([" ".join(f"w{i}" for i in range(200))])
    assert 200 < features.n_features <= 210


@given(st.lists(st.text(alphabet="aB1_ \n\0\t-éЖİ漢\ud800", max_size=12), max_size=6))
def test_texts_together_are_as_one_by_one(texts):
    hashes, ptr = _hashes(texts)
    each = [hashed(text) for text in texts]
    assert hashes.tolist() == [h for found in each for h in found]
    assert np.diff(ptr).tolist() == [len(found) for found in each]

"""The frozen tree as users have it: one sample, batches, threads, labels, copies, errors."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.estimator_cases import formats, problem, quick
from tests.frozen_cases import (
    LABELS,
    WEIGHTS,
    answers,
    assert_same_answers,
    assert_same_frozen,
    backoff_of,
    both,
    frozen,
    labels_of,
    layouts,
    real_rows,
    rich_model,
    weight_types,
)
from tests.strategies import random_tree, rich_tree, trees
from thinleaf import FrozenTree
from thinleaf._dtypes import INDEX, PARAM
from thinleaf.model.file_parts import Section
from thinleaf.model.tree import Leaf, Tree
from thinleaf.softmaxtree.growth.prune import prune

beams = pytest.mark.parametrize("beam", [1, 3])


def pairs_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero entries of a row as users would give them."""
    indices = np.flatnonzero(x).astype(INDEX)
    return indices, x[indices]


# -- one row, many rows, many threads --------------------------------------------------------------


@layouts
@weight_types
@beams
def test_one_by_one_is_the_batch(sparse, weights, beam):
    model = rich_model(sparse=sparse, weights=weights, beam=beam)
    X = real_rows(n_rows=60)
    y = model.predict(X)
    assert y.tolist() == [model.predict_one(x) for x in X]
    assert y.tolist() == [model.predict_one(*pairs_of(x)) for x in X]
    assert y.tolist() == [model.predict(X[i : i + 1])[0] for i in range(60)]
    labels, p = model.predict_topk(X, 4)
    for x, row, values in zip(X, labels.tolist(), p.tolist(), strict=True):
        expected = list(zip(row, values, strict=True))
        assert expected == model.predict_topk_one(x, k=4)
        indices, entries = pairs_of(x)
        assert expected == model.predict_topk_one(indices, entries, k=4)
    P = model.predict_proba(X)
    for i in range(60):
        np.testing.assert_array_equal(model.predict_proba(X[i : i + 1])[0], P[i])


@layouts
@beams
def test_dense_and_sparse_rows_agree_to_the_bit(sparse, beam):
    model = rich_model(sparse=sparse, beam=beam)
    X = real_rows(n_rows=60)
    for same in (sp.csr_array(X), sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X)):
        for ours, theirs in zip(answers(model, X), answers(model, same), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@layouts
@beams
@pytest.mark.parametrize("n_jobs", [2, 5, -1])
def test_threads_change_nothing(sparse, beam, n_jobs):
    model = rich_model(sparse=sparse, beam=beam)
    X = real_rows(n_rows=3000)
    for rows in both(X):
        np.testing.assert_array_equal(model.predict(rows), model.predict(rows, n_jobs=n_jobs))
        for ours, theirs in zip(
            model.predict_topk(rows, 3), model.predict_topk(rows, 3, n_jobs=n_jobs), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        P = model.predict_proba(rows)
        np.testing.assert_array_equal(P, model.predict_proba(rows, n_jobs=n_jobs))
        held = model.predict_proba_sparse(rows, n_jobs=n_jobs)
        assert (held != model.predict_proba_sparse(rows)).nnz == 0
        np.testing.assert_array_equal(model.apply(rows), model.apply(rows, n_jobs=n_jobs))
        y = np.arange(3000) % 9
        p = model.label_proba(rows, y, n_jobs=n_jobs)
        np.testing.assert_array_equal(p, model.label_proba(rows, y))


def test_many_threads_may_ask_at_once():
    """Even if all of them are the first to reach a leaf of a model that is not checked yet."""
    X = real_rows(n_rows=400)
    expected = rich_model(beam=2).predict(X).tolist()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            model = rich_model(beam=2, checked=False)
            assert list(pool.map(model.predict_one, X)) == expected
            chunks = list(pool.map(model.predict, np.array_split(X, 8)))
            assert np.concatenate(chunks).tolist() == expected


@layouts
def test_no_rows(sparse):
    model = rich_model(sparse=sparse)
    for rows in both(np.empty((0, 30), PARAM)):
        assert model.predict(rows).shape == (0,)
        assert model.predict_topk(rows, 2)[0].shape == (0, 2)
        assert model.predict_proba(rows).shape == (0, 9)
        assert model.predict_proba_sparse(rows).shape == (0, 9)
        assert model.label_proba(rows, []).shape == (0,)
        assert model.apply(rows).shape == (0,)


# -- probabilities ---------------------------------------------------------------------------------


@layouts
@weight_types
@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("back_off", [True, False], ids=["backoff", "epsilon"])
def test_probabilities_in_every_form(sparse, weights, beam, back_off):
    tree = rich_tree(np.random.default_rng(4))
    outside = {"backoff": backoff_of(tree)} if back_off else {"epsilon": 0.01}
    model = frozen(tree, sparse=sparse, weights=weights, beam=beam, **outside)
    for X in both(real_rows()):
        P = model.predict_proba(X)
        assert P.min() > 0.0
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-9)
        held = model.predict_proba_sparse(X)
        assert held.has_sorted_indices
        assert held.nnz > 0
        assert (held.nnz < P.size) == (beam < 5)
        row = np.repeat(np.arange(P.shape[0]), np.diff(held.indptr))
        np.testing.assert_array_equal(held.data, P[row, held.indices])
        for c in range(model.n_classes):
            p = model.label_proba(X, np.full(P.shape[0], c))
            np.testing.assert_array_equal(p, P[:, c])
        labels, p = model.predict_topk(X, model.n_classes)
        np.testing.assert_array_equal(p, -np.sort(-P, axis=1))
        np.testing.assert_array_equal(np.take_along_axis(P, labels, axis=1), p)
        assert all(np.unique(ids).size == model.n_classes for ids in labels)
        for k in range(1, model.n_classes):
            fewer = model.predict_topk(X, k)
            np.testing.assert_array_equal(fewer[1], p[:, :k])


def test_without_smoothing_only_held_classes_have_a_probability():
    model = rich_model()
    X = real_rows()
    held = model.predict_proba_sparse(X).toarray() > 0.0
    p = np.stack([model.label_proba(X, np.full(40, c), smooth=False) for c in range(9)], axis=1)
    np.testing.assert_array_equal(p > 0.0, held)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@layouts
@given(tree=trees(), seed=st.integers(0, 2**32 - 1), beam=st.sampled_from([1, 2, 8]))
def test_the_first_of_the_top_k_is_the_prediction(sparse, tree, seed, beam):
    """With one path if no two scores are nearer than exp() can tell; with a beam, always."""
    tree, _ = prune(tree)
    model = frozen(tree, sparse=sparse, beam=beam, backoff=backoff_of(tree, seed))
    X = np.random.default_rng(seed).integers(-4, 5, size=(10, tree.n_features)).astype(PARAM)
    for rows in both(X):
        for k in (1, tree.n_classes):
            np.testing.assert_array_equal(model.predict_topk(rows, k)[0][:, 0], model.predict(rows))


def test_scores_that_are_nearer_than_exp_can_tell_have_the_same_probability():
    """The prediction goes by scores; of equal probabilities, the first class comes first."""
    bias = np.float32([-1e-20, 0.0])
    leaf = Leaf(np.arange(2, dtype=INDEX), np.empty(0, INDEX), np.empty((0, 2), PARAM), bias)
    model = frozen(Tree.build(np.array([[-1, -1]]), [leaf], n_features=1, n_classes=2))
    x = np.zeros(1, PARAM)
    assert model.predict_one(x) == 1
    assert model.predict_topk_one(x, k=2) == [(0, 0.5), (1, 0.5)]


def test_apply_gives_nodes_of_the_tree():
    tree = rich_tree(np.random.default_rng(0))
    X = real_rows()
    expected = [reference.leaf_of(tree, x) for x in X]
    for beam in (1, 4):  # of the single path, whatever the beam
        assert frozen(tree, beam=beam).apply(X).tolist() == expected


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*LABELS, "bool"])
@layouts
def test_labels_of_every_kind(kind, sparse):
    labels = labels_of(kind)
    tree, _ = prune(random_tree(np.random.default_rng(1), 6, 30, labels.size, pure=0.0))
    model, plain = (frozen(tree, sparse=sparse, labels=names) for names in (labels, None))
    X = real_rows(n_rows=20)
    ids = plain.predict(X)
    assert np.unique(ids).size > 1
    y = model.predict(X)
    assert y.dtype == labels.dtype
    np.testing.assert_array_equal(y, labels[ids], strict=True)
    one = model.predict_one(X[0])
    assert type(one) is type(labels.tolist()[0])
    assert one == labels.tolist()[ids[0]]
    top, p = model.predict_topk(X, 2)
    np.testing.assert_array_equal(top, labels[plain.predict_topk(X, 2)[0]], strict=True)
    assert [label for label, _ in model.predict_topk_one(X[0], k=2)] == top[0].tolist()
    np.testing.assert_array_equal(model.label_proba(X, top[:, 0]), p[:, 0])
    np.testing.assert_array_equal(model.labels, labels)


@formats
def test_an_estimator_freezes_to_what_it_says(kind):
    X, y = problem(0, kind=kind, n_classes=8, n_rows=160, spread=1.0)
    names = np.array([f"class {c}" for c in range(8)])
    clf = quick().fit(X, names[y])
    model = clf.freeze()
    assert model.packed.sparse == (kind == "csr")
    X = sp.csr_matrix(X, dtype=PARAM) if kind == "csr" else X.astype(PARAM)
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(model.apply(X), clf.apply(X))
    np.testing.assert_array_equal(model.label_proba(X, names[y]), clf.label_proba(X, names[y]))
    for ours, theirs in zip(model.predict_topk(X, 3), clf.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert clf.freeze(beam=4).beam == 4
    assert clf.freeze(weights="int8").packed.weights == "int8"
    assert_same_frozen(clf.freeze(beam=4, weights="int8"), model.quantized("int8").with_beam(4))
    assert clf.freeze() is model  # made once
    assert model.summary["estimator"] == "SoftmaxTreeClassifier"


# -- what a sample may be --------------------------------------------------------------------------


@layouts
def test_a_sample_may_come_in_any_form(sparse):
    model = rich_model(sparse=sparse)
    X = real_rows()
    for x in X[:8]:
        label, top = model.predict_one(x), model.predict_topk_one(x, k=3)
        fixed = x.copy()
        fixed.flags.writeable = False
        same = [
            x.astype(np.float64), x.tolist(), tuple(x.tolist()), np.repeat(x, 2)[::2],
            x[::-1].copy()[::-1], x.astype(">f4"), fixed, X.T[:, 0] * 0 + x, np.ma.asarray(x),
        ]  # fmt: skip
        for form in same:
            assert model.predict_one(form) == label
            assert model.predict_topk_one(form, k=3) == top
        idx, val = pairs_of(x)
        same = [
            (idx.astype(np.int64), val.astype(np.float64)), (idx.tolist(), val.tolist()),
            (idx.astype(np.uint8), val), (idx.astype(np.uint64), val), (idx.astype(">i4"), val),
            (np.repeat(idx, 2)[::2], np.repeat(val, 2)[::2]),
            (np.append(idx, 0), np.append(val, 0)),
        ]  # fmt: skip
        for indices, values in same:
            assert model.predict_one(indices, values) == label
            assert model.predict_topk_one(indices, values, k=3) == top


@layouts
def test_pairs_come_in_any_order_and_add_up(sparse):
    """Small integers: sums are exact in any order."""
    tree, _ = prune(random_tree(np.random.default_rng(5), 8, 30, 9))
    model = frozen(tree, sparse=sparse)
    idx, val = np.array([3, 7, 20, 29], INDEX), np.float32([1, -2, 3, 4])
    expected = model.predict_topk_one(idx, val, k=9)
    assert model.predict_topk_one(idx[::-1], val[::-1], k=9) == expected
    twice = np.concatenate([idx, idx]), np.concatenate([val + 1, np.full(4, -1, PARAM)])
    assert model.predict_topk_one(twice[0], twice[1], k=9) == expected
    csr = sp.csr_array((twice[1], twice[0], [0, 8]), shape=(1, 30))
    assert model.predict_topk(csr, 9)[1].tolist() == [[p for _, p in expected]]
    nothing = model.predict_topk_one(np.empty(0, INDEX), np.empty(0, PARAM), k=9)
    assert (
        nothing == model.predict_topk_one([], [], k=9) == model.predict_topk_one(np.zeros(30), k=9)
    )


def test_a_batch_may_come_in_any_form():
    model = rich_model()
    X = real_rows()
    expected = model.predict_proba(X)
    fixed = X.copy()
    fixed.flags.writeable = False
    for form in (X.astype(np.float64), X.tolist(), np.asfortranarray(X), fixed, X[::-1][::-1]):
        np.testing.assert_array_equal(model.predict_proba(form), expected)
    csr = sp.csr_array(X)
    wide = sp.csr_array(
        (csr.data.astype(np.float64), csr.indices.astype(np.int64), csr.indptr.astype(np.int64)),
        shape=csr.shape,
    )
    for form in (wide, csr[:, ::-1][:, ::-1], csr.astype(np.float64)):
        np.testing.assert_array_equal(model.predict_proba(form), expected)


@layouts
def test_nothing_of_an_input_is_changed(sparse):
    model = rich_model(sparse=sparse)
    X = real_rows()
    csr = sp.csr_array(X)
    before = X.copy(), csr.copy()
    for rows in (X, csr):
        answers(model, rows)
    model.predict_one(X[0])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(csr.toarray(), before[1].toarray())


# -- errors ----------------------------------------------------------------------------------------


@layouts
@beams
def test_bad_samples(sparse, beam):
    model = rich_model(sparse=sparse, beam=beam)
    for width in (0, 1, 29, 31, 1000):
        with pytest.raises(ValueError, match=f"x has {width} features, but the model expects 30"):
            model.predict_one(np.zeros(width, PARAM))
        with pytest.raises(ValueError, match="but the model expects 30"):
            model.predict_topk_one(np.zeros(width), k=2)
    for x in (np.zeros((1, 30), PARAM), np.zeros((30, 1))):
        with pytest.raises(ValueError, match="a sample is a row"):
            model.predict_one(x)
    for indices in ([-1], [30], [0, 2**31 - 1], [-(2**31)], [2**31], [2**63], [-(2**63)]):
        with pytest.raises(ValueError, match=r"indices must lie in 0\.\.29"):
            model.predict_one(np.array(indices), np.ones(len(indices), PARAM))
        with pytest.raises(ValueError, match=r"indices must lie in 0\.\.29"):
            model.predict_topk_one(indices, 2, np.ones(len(indices)))
    for indices in ([0.0, 1.0], [[0, 1]], ["a", "b"], [True, False]):
        with pytest.raises(ValueError, match="indices must be integers in one axis"):
            model.predict_one(indices, [1.0, 2.0])
    for values in ([1.0], [1.0, 2.0, 3.0], []):
        with pytest.raises(ValueError, match="as many values"):
            model.predict_one([0, 1], values)
    with pytest.raises(ValueError, match="could not convert"):
        model.predict_one(["a"] * 30)


@layouts
@beams
def test_a_sample_that_is_not_finite_gets_some_label(sparse, beam):
    """Nothing is checked but what memory safety needs."""
    model = rich_model(sparse=sparse, beam=beam)
    for value in (np.nan, np.inf, -np.inf, 3e38, -3e38):
        x = np.full(30, value, PARAM)
        assert model.predict_one(x) in range(9)
        assert model.predict_one(*pairs_of(x)) in range(9)
        assert sorted(label for label, _ in model.predict_topk_one(x, k=9)) == list(range(9))


@layouts
@pytest.mark.parametrize("k", [0, -1, 10, 2**40, 2.0, "2", None, True])
def test_bad_k(sparse, k):
    model = rich_model(sparse=sparse)
    with pytest.raises(ValueError, match=r"k must be an integer in 1\.\.9"):
        model.predict_topk(real_rows()[:1], k)
    with pytest.raises(ValueError, match=r"k must be an integer in 1\.\.9"):
        model.predict_topk_one(real_rows()[0], k=k)


def test_bad_batches():
    model = rich_model()
    X = real_rows()
    for rows in both(X[:, :29]):
        with pytest.raises(ValueError, match="X has 29 features, but the model expects 30"):
            model.predict(rows)
    for rows in (X[0], X[None], 3.0):
        with pytest.raises(ValueError, match="X must have two axes"):
            model.predict(rows)
    for value in (np.nan, np.inf, -np.inf, 1e300):
        bad = X.astype(np.float64)
        bad[3, 4] = value
        for rows in both(bad):
            with pytest.raises(ValueError, match="X contains NaN or infinity"):
                model.predict_proba(rows)


@layouts
@pytest.mark.parametrize("indices", [[-1, 2], [0, 30], [2**31 - 1, 3]])
def test_sparse_rows_with_indices_out_of_range(sparse, indices):
    """scipy makes such a matrix without a word."""
    bad = sp.csr_array((np.ones(2, PARAM), np.array(indices, INDEX), [0, 2]), shape=(1, 30))
    model = rich_model(sparse=sparse)
    for use in (model.predict, model.predict_proba, model.apply):
        with pytest.raises(ValueError, match="ind"):
            use(bad)


def test_sparse_rows_with_offsets_out_of_range():
    good = sp.csr_array(real_rows())
    for at, value in ((1, 2**31 - 1), (1, -5), (-1, 10**6), (5, 0)):
        bad = good.copy()
        bad.indptr[at] = value
        with pytest.raises(ValueError, match="ind"):
            rich_model().predict(bad)


@pytest.mark.parametrize("kind", [*LABELS, "bool"])
@pytest.mark.parametrize("label", ["unknown", 12345, 0.123, None])
def test_unknown_labels(kind, label):
    labels = labels_of(kind)
    model = frozen(
        prune(random_tree(np.random.default_rng(1), 3, 30, labels.size))[0], labels=labels
    )
    with pytest.raises(ValueError, match="y has labels"):
        model.label_proba(real_rows(n_rows=1), [label])


def test_as_many_labels_as_rows():
    model = rich_model()
    for y in ([0], [[0, 1]], [0, 1, 2]):
        with pytest.raises(ValueError, match="y must have one label a row"):
            model.label_proba(real_rows(n_rows=2), y)


def test_a_model_must_fit_its_labels_and_names():
    packed = rich_model().packed
    for labels in (np.arange(8), np.arange(10), [[1] * 9], 5):
        with pytest.raises(ValueError, match="labels must have shape"):
            FrozenTree(packed, labels)
    with pytest.raises(ValueError, match="30 features, but 2 feature_names"):
        FrozenTree(packed, np.arange(9), feature_names=["a", "b"])
    for name in ("", "tree", "labels", "features", "a.b"):
        with pytest.raises(ValueError, match="a section cannot have the name"):
            rich_model().with_sections(**{name: Section({}, {})})


# -- copies and other forms ------------------------------------------------------------------------


@layouts
@weight_types
def test_copies_say_the_same(sparse, weights):
    section = Section({"a": np.arange(3)}, {"b": [1, None, "c"]})
    model = rich_model(
        sparse=sparse, weights=weights, beam=2, labels=labels_of("str"), summary={"a": {"b": [1]}},
        feature_names=[f"f{i}" for i in range(30)], sections={"part": section},
    )  # fmt: skip
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_same_frozen(model, other)
        assert_same_answers(model, other, real_rows())
        assert all(not array.flags.writeable for array in other.packed.arrays().values())
    for checked in (False, True):  # a copy is not trusted more than the original
        assert pickle.loads(pickle.dumps(rich_model(checked=checked)))._predictor.checked is checked
        assert rich_model(checked=checked).with_beam(2)._predictor.checked is checked


def test_a_copy_outlives_the_original():
    model = rich_model()
    expected = model.predict(real_rows())
    other = model.with_beam(1).with_sections(a=Section({}, {}))
    del model
    np.testing.assert_array_equal(other.predict(real_rows()), expected)


def test_other_beams_share_the_arrays():
    model = rich_model(beam=3)
    other = model.with_beam(5)
    assert (model.beam, other.beam) == (3, 5)
    for name, array in model.packed.arrays().items():
        assert array.size == 0 or np.shares_memory(array, other.packed.arrays()[name])
    assert_same_answers(other.with_beam(3), model, real_rows())


@layouts
def test_quantized(sparse):
    model = rich_model(sparse=sparse, beam=2)
    X = real_rows(n_rows=200)
    y = model.predict(X)
    report = model.quantization_report(X, y)
    assert [line["weights"] for line in report] == list(WEIGHTS)
    assert [line["nbytes"] for line in report] == [model.quantized(w).nbytes for w in WEIGHTS]
    assert report[0]["error"] == 0.0
    assert all(line["error"] < 0.1 for line in report)
    assert model.quantized("int8").beam == 2
    assert_same_answers(model.quantized("float32"), model, X)


def test_a_model_cannot_be_changed():
    names = [f"f{i}" for i in range(30)]
    labels, summary = labels_of("int"), {"a": [1]}
    sections = {"part": Section({}, {})}
    model = rich_model(labels=labels, summary=summary, feature_names=names, sections=sections)
    before = copy.deepcopy(model)
    for name in ("beam", "labels", "packed", "n_features", "summary", "sections", "feature_names"):
        with pytest.raises(AttributeError):
            setattr(model, name, None)
    with pytest.raises(FrozenInstanceError):
        model.packed.n_features = 2
    with pytest.raises(ValueError, match="read-only"):
        model.labels[0] = 7
    labels[:] = 0
    summary["a"].append(2)
    names.append("more")
    sections.clear()
    model.summary["a"].append(3)
    model.feature_names.append("more")
    model.sections.clear()
    assert_same_frozen(model, before)
    assert_same_answers(model, before, real_rows())


def test_an_estimator_may_be_changed_without_its_frozen_form():
    X, y = problem(0)
    clf = quick().fit(X, y)
    model = clf.freeze()
    P = model.predict_proba(X)
    clf.tree_.bias[:] = 100.0
    clf.tree_.block_val[:] = np.nan
    clf.classes_[:] = 0
    clf.backoff_.prior[:] = np.nan
    np.testing.assert_array_equal(model.predict_proba(X), P)
    assert set(model.predict(X)) <= set(range(6))


def test_repr_is_one_line():
    assert repr(rich_model(beam=2)).startswith(
        "FrozenTree(12 leaves, 9 classes, 30 features, dense rows, float32, beam 2, "
    )

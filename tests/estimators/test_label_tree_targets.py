"""Label trees of rows with several labels, and the tree that they start from."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

import thinleaf
from tests.estimators.test_label_trees import quick, texts
from thinleaf.measuring.metrics import precision_at_k, recall_at_k


def tagged(n=600, n_tags=12):
    """Return texts of tags' words, with one to three tags each."""
    rng = np.random.default_rng(0)
    tags = [rng.choice(n_tags, rng.integers(1, 4), replace=False) for _ in range(n)]
    lines = [" ".join(f"w{tag} v{tag}" for tag in own) for own in tags]
    return lines, MultiLabelBinarizer(classes=range(n_tags), sparse_output=True).fit_transform(tags)


@pytest.mark.parametrize("tree", ["learned", "huffman", "clustering"])
def test_rows_of_several_labels(tree):
    X, Y = tagged()
    clf = quick(tree=tree, epochs=30).fit(X, Y)
    assert clf.classes_.tolist() == list(range(12))
    assert clf.class_count_.tolist() == Y.sum(axis=0).ravel().tolist()[0]
    one = clf.predict_topk(X, 1)[0]
    assert clf.score(X, Y) == precision_at_k(Y, one) > 0.95
    three = clf.predict_topk(X, 3)[0]
    assert recall_at_k(Y, three) > 0.9
    np.testing.assert_allclose(clf.predict_proba(X[:5]).sum(axis=1), 1.0, rtol=1e-5)


def test_matrices_of_every_kind_are_the_same():
    X, Y = tagged(100)
    wanted = quick().fit(X, Y).predict_proba(X)
    for other in (Y.tocsc(), sp.csr_array(Y), Y.toarray(), Y.toarray().astype(bool), Y.tocoo()):
        np.testing.assert_array_equal(quick().fit(X, other).predict_proba(X), wanted)


def test_one_label_each_is_what_it_is_without_a_matrix():
    X, y = texts()
    _names, ids = np.unique(y, return_inverse=True)
    matrix = sp.csr_matrix((np.ones(ids.size), (np.arange(ids.size), ids)))
    single, several = quick().fit(X, ids), quick().fit(X, matrix)
    np.testing.assert_array_equal(single.predict_proba(X), several.predict_proba(X))
    assert single.start_ == several.start_


def test_rows_of_numbers_weights_and_what_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)).astype(np.float32)
    Y = np.zeros((200, 9), dtype=int)
    Y[np.arange(200), rng.integers(4, size=200)] = 1
    Y[np.arange(200), 4 + rng.integers(4, size=200)] = 1  # column 8 is no label
    some = Y.copy()
    some[:50] = 0
    weight = (np.arange(200) >= 50).astype(float)
    fits = [
        quick().fit(X, some),
        quick().fit(X[50:], Y[50:]),
        quick().fit(X, Y, sample_weight=weight),
        quick().fit(sp.csr_matrix(X), some, sample_weight=np.ones(200)),
    ]
    for clf in fits:
        assert clf.classes_.tolist() == list(range(8))
        np.testing.assert_allclose(clf.predict_proba(X), fits[0].predict_proba(X), atol=1e-4)
    fits[0].save(tmp_path / "several.thinleaf")
    loaded = thinleaf.load(tmp_path / "several.thinleaf")
    np.testing.assert_array_equal(loaded.predict_topk(X, 3)[0], fits[0].predict_topk(X, 3)[0])
    again = thinleaf.load_estimator(tmp_path / "several.thinleaf")
    assert again.score(X, Y) == fits[0].score(X, Y)
    with pytest.raises(ValueError, match="a column for each label"):
        fits[0].score(X, Y[:, :2])


def test_bad_matrices_are_refused():
    X, Y = tagged(20)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        quick().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="there are 20 rows, but Y has shape"):
        quick().fit(X, Y[:7])
    with pytest.raises(ValueError, match="no row has a label"):
        quick().fit(X, 0 * Y)
    with pytest.raises(ValueError, match="one label a row"):
        quick(epochs=1).fit(X, Y).inspect(X, Y)


def alike(hidden: bool):
    """Return texts of labels whose numbers say which are alike, or not."""
    rng = np.random.default_rng(1)
    y = np.arange(1600) % 40
    lines = [f"g{i // 8} g{i // 8} c{i} x{rng.integers(50)}" for i in y]
    return lines, rng.permutation(40)[y] if hidden else y


@pytest.mark.parametrize("hidden", [False, True])
def test_a_learned_tree_starts_from_the_order_if_it_says_something(hidden):
    X, y = alike(hidden)
    kind = "clustering" if hidden else "ordered"
    clf = quick().fit(X, y)
    assert clf.start_ == kind
    wanted = quick(start=kind).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), wanted.predict_proba(X))
    assert quick(tree="huffman").fit(X, y).start_ == "huffman"
    assert quick(tree=clf.model_.tree).fit(X, y).start_ == "given"
    assert quick(arity=40).fit(X, y).start_ == "ordered"

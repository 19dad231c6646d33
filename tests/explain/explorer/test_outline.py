"""Any tree in one form: breadth-first, siblings together, the classes of its leaves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimator_cases import problem, quick
from thinleaf import LabelTreeClassifier, SoftmaxForestClassifier
from thinleaf.explain.explorer.outline import outline_of


def check(outline) -> None:
    seen = np.zeros(outline.n_nodes, dtype=int)
    seen[: outline.n_trees] += 1
    for node in range(outline.n_nodes):
        first, size = outline.first_child[node], outline.n_children[node]
        assert (first < 0) == (size == 0) == (outline.leaf[node] >= 0)
        if size:
            assert first > node
            seen[first : first + size] += 1
            assert np.all(np.diff(outline.branch[first : first + size]) > 0)
    assert np.all(seen == 1)
    assert np.array_equal(outline.leaf[outline.leaf >= 0], np.arange(outline.n_leaves))


@pytest.mark.parametrize("n_trees", [1, 3])
def test_softmax_trees(n_trees):
    X, y = problem(0, n_classes=8, n_rows=240)
    clf = quick(depth=3)
    if n_trees > 1:
        clf = SoftmaxForestClassifier(clf, n_estimators=n_trees, random_state=0)
    model = clf.fit(X, y).freeze()
    outline = outline_of(model)
    check(outline)
    assert (outline.n_trees, outline.n_leaves) == (n_trees, model.n_leaves)
    assert np.array_equal(outline.class_ids, model.packed.class_ids)


@pytest.mark.parametrize("arity", [2, 3, 5])
def test_label_trees(arity):
    X, y = problem(0, n_classes=8, n_rows=240)
    clf = LabelTreeClassifier(dim=4, arity=arity, epochs=1, random_state=0).fit(X, y)
    model = clf.freeze()
    outline, tree = outline_of(model), model.model.tree
    check(outline)
    assert outline.n_leaves == 8
    assert sorted(outline.class_ids.tolist()) == list(range(8))
    assert np.array_equal(outline.class_ids[outline.leaf_of_class], np.arange(8))
    for label in range(8):  # the path of a label is that of the model
        node = int(np.flatnonzero(outline.leaf == outline.leaf_of_class[label])[0])
        way = []
        while node != 0:
            parent = int(
                np.flatnonzero(
                    (outline.first_child <= node)
                    & (outline.first_child >= 0)
                    & (node < outline.first_child + outline.n_children)
                )[0]
            )
            way.append((int(outline.source[parent]), int(outline.branch[node])))
            node = parent
        assert way[::-1] == tree.path(label)


def test_one_label_is_one_leaf():
    X, y = problem(0, n_classes=2, n_rows=20)
    clf = LabelTreeClassifier(dim=2, epochs=1, random_state=0).fit(X, np.zeros_like(y))
    outline = outline_of(clf.freeze())
    assert (outline.n_nodes, outline.n_leaves) == (1, 1)

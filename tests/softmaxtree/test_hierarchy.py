"""A known hierarchy of labels as the start of a tree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier, load_estimator
from thinleaf._dtypes import INDEX
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.hierarchy import Hierarchy

PATHS = {
    "cat": "animal/mammal", "dog": "animal/mammal", "cow": "animal/mammal", "hen": "animal/bird",
    "oak": "plant/tree", "elm": "plant/tree", "fir": "plant/tree", "rye": "plant/grass",
}  # fmt: skip
LABELS = np.array(sorted(PATHS))


def tree(depth: int) -> Tree:
    return Tree.complete(depth, n_features=1, n_classes=LABELS.size)


def groups_of(hierarchy: Hierarchy, depth: int, y: np.ndarray) -> set[frozenset[str]]:
    leaves = hierarchy.leaves(tree(depth), y.astype(INDEX))
    return {frozenset(LABELS[y[leaves == leaf]].tolist()) for leaf in np.unique(leaves)}


def test_subtrees_follow_the_groups():
    hierarchy, y = Hierarchy.of(PATHS, LABELS), np.arange(8)
    animals, plants = {"cat", "dog", "cow", "hen"}, {"oak", "elm", "fir", "rye"}
    assert groups_of(hierarchy, 1, y) == {frozenset(animals), frozenset(plants)}
    assert frozenset({"hen"}) in groups_of(hierarchy, 2, y)
    assert frozenset({"cat", "cow"}) in groups_of(hierarchy, 3, y)
    assert len(groups_of(hierarchy, 4, y)) == 8
    assert groups_of(hierarchy, 0, y) == {frozenset(PATHS)}


def test_sequences_are_paths_too():
    listed = {label: path.split("/") for label, path in PATHS.items()} | {"other": ["x"]}
    ours, theirs = Hierarchy.of(listed, LABELS), Hierarchy.of(PATHS, LABELS)
    np.testing.assert_array_equal(ours.order, theirs.order)
    np.testing.assert_array_equal(ours.shared, theirs.shared)


def test_only_classes_that_occur_are_spread():
    hierarchy = Hierarchy.of(PATHS, LABELS)
    y = np.flatnonzero(np.isin(LABELS, ["cat", "hen", "dog", "rye"]))
    assert groups_of(hierarchy, 1, y) == {frozenset({"cat", "dog", "hen"}), frozenset({"rye"})}
    assert len(groups_of(hierarchy, 3, y)) == 4
    assert groups_of(hierarchy, 3, y[:1]) == {frozenset({"cat"})}


@pytest.mark.parametrize("n_classes", [1, 2, 3, 50])
@pytest.mark.parametrize("depth", [0, 2, 4])
def test_leaves_have_their_share_of_any_hierarchy(n_classes, depth):
    rng = np.random.default_rng(n_classes)
    paths = {i: tuple(rng.integers(3, size=4).tolist()) for i in range(n_classes)}
    hierarchy = Hierarchy.of(paths, np.arange(n_classes))
    structure = Tree.complete(depth, n_features=1, n_classes=n_classes)
    leaves = hierarchy.leaves(structure, np.arange(n_classes, dtype=INDEX))
    assert np.all(structure.is_leaf[leaves])
    if n_classes == 50:
        assert np.bincount(leaves).max() <= np.ceil(50 * (2 / 3) ** depth) + 2


@pytest.mark.parametrize(
    ("paths", "match"),
    [({"cat": "a"}, "no path for the label 'cow'"), (dict.fromkeys(PATHS, 3), "'/'")],
)
def test_what_is_no_hierarchy(paths, match):
    with pytest.raises(ValueError, match=match):
        Hierarchy.of(paths, LABELS)


@pytest.mark.parametrize("cls", [SoftmaxTreeClassifier, AdaptiveSoftmaxTreeClassifier])
def test_estimators_take_one(cls, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(LABELS, 30)
    X = rng.normal(size=(8, 20))[np.repeat(np.arange(8), 30)] + 0.3 * rng.normal(size=(240, 20))
    X[np.abs(X) < 0.3] = 0.0
    for rows in (X, sp.csr_matrix(X)):
        clf = cls(hierarchy=PATHS, random_state=0).fit(rows, y)
        assert clf.score(rows, y) > 0.9
    clf.save(tmp_path / "model", trainable=True)
    again = load_estimator(tmp_path / "model")
    assert again.hierarchy is None
    np.testing.assert_array_equal(again.predict(rows), clf.predict(rows))
    with pytest.raises(ValueError, match="no path for the label"):
        cls(hierarchy={"cat": "a"}).fit(X, y)

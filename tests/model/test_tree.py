"""Trees as flat arrays: packing, views, and what validation lets through."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reference
from tests.strategies import (
    as_rows,
    as_sparse,
    integer_rows,
    random_leaf,
    random_router,
    random_tree,
    trees,
)
from thinleaf._dtypes import INDEX, NO_CHILD, OFFSET, PARAM, SLOT
from thinleaf.model.routing import leaf_of_rows, route
from thinleaf.model.tree import Leaf, Router, SparseLeaf, Tree, TreeError

ARRAYS = (
    "children", "router_ptr", "router_idx", "router_val", "bias", "class_ptr", "class_ids",
    "leaf_bias", "feat_ptr", "feat_idx", "block_ptr", "block_val", "row_size", "entry_ptr",
    "entry_slot", "entry_val",
)  # fmt: skip


def assert_same_node(a: Router | Leaf, b: Router | Leaf) -> None:
    assert type(a) is type(b)
    for name, value in vars(a).items():
        np.testing.assert_array_equal(value, getattr(b, name))


def assert_same_arrays(a: Tree, b: Tree) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype


def small_tree() -> Tree:
    """Return a tree whose every array has entries to corrupt: 0 → (1, 2), 2 → (3, 4)."""
    children = np.array([[1, 2], [-1, -1], [3, 4], [-1, -1], [-1, -1]])
    leaf = Leaf(
        np.array([1, 3], INDEX),
        np.array([0, 2], INDEX),
        np.array([[1, 2], [3, 4]], PARAM),
        np.array([0.5, -0.5], PARAM),
    )
    router = Router(np.array([1, 3], INDEX), np.array([1.0, -2.0], PARAM), 0.5)
    nodes = [router, leaf, router, leaf, leaf]
    return Tree.build(children, nodes, n_features=4, n_classes=4)


# -- packing and views -----------------------------------------------------------------------------


@given(trees())
def test_any_binary_structure_is_a_valid_tree(tree):
    tree.validate()
    assert tree.n_nodes == 2 * tree.n_leaves - 1
    for name in ("children", "router_idx", "class_ids", "feat_idx"):
        assert getattr(tree, name).dtype == INDEX
    for name in ("router_ptr", "class_ptr", "feat_ptr", "block_ptr"):
        assert getattr(tree, name).dtype == OFFSET


@given(st.integers(0, 2**32 - 1), st.integers(1, 10))
def test_views_return_the_nodes_that_were_packed(seed, n_leaves):
    rng = np.random.default_rng(seed)
    children = random_tree(rng, n_leaves).children
    nodes = [
        random_leaf(rng, 5, 6) if left == NO_CHILD else random_router(rng, 5)
        for left, _ in children
    ]
    tree = Tree.build(children, nodes, n_features=5, n_classes=6)
    for i, node in enumerate(nodes):
        assert_same_node(tree.node(i), node)
    assert_same_arrays(
        tree,
        Tree.build(
            children, [tree.node(i) for i in range(tree.n_nodes)], n_features=5, n_classes=6
        ),
    )


@given(trees())
def test_depths_and_levels(tree):
    depths = reference.depths(tree)
    assert tree.node_depth.tolist() == [depths[i] for i in range(tree.n_nodes)]
    assert tree.depth == max(depths.values())
    levels = tree.levels()
    assert len(levels) == tree.depth + 1
    for depth, level in enumerate(levels):
        assert level.tolist() == [i for i in range(tree.n_nodes) if depths[i] == depth]


@given(trees())
def test_counts(tree):
    nodes = [tree.node(i) for i in range(tree.n_nodes)]
    leaves = [node for node in nodes if isinstance(node, Leaf)]
    assert tree.is_leaf.tolist() == [isinstance(node, Leaf) for node in nodes]
    assert tree.leaf_sizes.tolist() == [leaf.classes.size for leaf in leaves]
    assert tree.n_nonzero == sum(int(np.count_nonzero(node.weights)) for node in nodes)
    assert tree.nbytes == sum(getattr(tree, name).nbytes for name in ARRAYS)


@pytest.mark.parametrize("depth", range(5))
def test_complete_tree(depth):
    tree = Tree.complete(depth, n_features=3, n_classes=4, class_id=2)
    tree.validate()
    assert (tree.n_leaves, tree.depth) == (2**depth, depth)
    assert np.all(tree.node_depth[tree.is_leaf] == depth)
    assert all(reference.predict(tree, x) == 2 for x in np.eye(3))
    assert tree.n_nonzero == 0


def test_constant_nodes():
    x = np.zeros(3)
    assert [reference.side(Router.constant(s), x) for s in (0, 1)] == [0, 1]
    assert Leaf.constant(7).classes.tolist() == [7]


@given(trees(), st.integers(0, 2**32 - 1))
def test_replace_changes_the_given_nodes_and_nothing_else(tree, seed):
    rng = np.random.default_rng(seed)
    before = {name: getattr(tree, name).copy() for name in ARRAYS}
    chosen = np.flatnonzero(rng.random(tree.n_nodes) < 0.5).tolist()
    new = {
        i: random_leaf(rng, tree.n_features, tree.n_classes)
        if tree.is_leaf[i]
        else random_router(rng, tree.n_features)
        for i in chosen
    }
    changed = tree.replace(new)
    changed.validate()
    np.testing.assert_array_equal(changed.children, tree.children)
    for i in range(tree.n_nodes):
        assert_same_node(changed.node(i), new.get(i, tree.node(i)))
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(tree, name), before[name])


@given(tree=trees(), seed=st.integers(0, 2**32 - 1))
def test_grafting_replaces_leaves_by_trees(tree, seed):
    rng = np.random.default_rng(seed)
    before = {name: getattr(tree, name).copy() for name in ARRAYS}
    chosen = [i for i in np.flatnonzero(tree.is_leaf).tolist() if rng.random() < 0.6]
    subtrees = {
        i: random_tree(rng, int(rng.integers(1, 5)), tree.n_features, tree.n_classes)
        for i in rng.permutation(chosen).tolist()
    }
    grafted = tree.graft(subtrees)
    grafted.validate()
    assert grafted.n_nodes == tree.n_nodes + sum(s.n_nodes - 1 for s in subtrees.values())
    for i in range(tree.n_nodes):  # nodes keep their numbers
        if i not in subtrees:
            assert_same_node(grafted.node(i), tree.node(i))
            np.testing.assert_array_equal(grafted.children[i], tree.children[i])
    at = tree.n_nodes  # the others come last, in the order of the leaves and of each subtree
    for leaf in sorted(subtrees):
        subtree = subtrees[leaf]
        number = [leaf, *range(at, at + subtree.n_nodes - 1)]
        at += subtree.n_nodes - 1
        for i in range(subtree.n_nodes):
            assert_same_node(grafted.node(number[i]), subtree.node(i))
            if not subtree.is_leaf[i]:
                moved = [number[child] for child in subtree.children[i]]
                assert grafted.children[number[i]].tolist() == moved
    for x in integer_rows(rng, 10, tree.n_features):
        leaf = reference.leaf_of(tree, x)
        below = subtrees.get(leaf)
        expected = reference.predict(tree if below is None else below, x)
        assert reference.predict(grafted, x) == expected
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(tree, name), before[name])


def test_only_leaves_can_be_replaced_by_trees():
    tree = random_tree(np.random.default_rng(0))
    router = int(np.flatnonzero(~tree.is_leaf)[-1])
    with pytest.raises(ValueError, match=f"node {router} is a router, not a leaf"):
        tree.graft({router: tree})
    np.testing.assert_array_equal(tree.graft({}).children, tree.children)


def test_a_tree_is_frozen():
    with pytest.raises(FrozenInstanceError):
        small_tree().n_classes = 7


def test_a_long_chain_is_a_tree():
    n = 300
    children = np.full((2 * n + 1, 2), NO_CHILD)
    children[: 2 * n : 2] = [[i + 1, i + 2] for i in range(0, 2 * n, 2)]
    nodes: list[Router | Leaf] = [
        Router(np.array([0], INDEX), np.array([1.0], PARAM), -float(i // 2))
        if children[i, 0] != NO_CHILD
        else Leaf.constant(i // 2)
        for i in range(2 * n + 1)
    ]
    tree = Tree.build(children, nodes, n_features=1, n_classes=n + 1)
    tree.validate()
    assert tree.depth == n
    X = np.arange(-0.5, n, dtype=PARAM)[:, None]
    leaves = leaf_of_rows(tree, route(tree, as_rows(X, "dense")))
    assert [int(tree.leaf(leaf).classes[0]) for leaf in leaves] == list(range(n + 1))


# -- Theorem 3.1 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", range(2, 7))
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_linear_classifier_is_a_tree(n_classes, kind):
    rng = np.random.default_rng(n_classes)
    A, b = rng.standard_normal((n_classes, 4)), rng.standard_normal(n_classes)
    X = rng.standard_normal((500, 4)).astype(PARAM)
    tree = Tree.from_linear(A, b)
    tree.validate()
    assert (tree.n_leaves, tree.depth) == (2 ** (n_classes - 1), n_classes - 1)
    leaves = leaf_of_rows(tree, route(tree, as_rows(X, kind)))
    predicted = np.array([tree.leaf(leaf).classes[0] for leaf in leaves])
    scores = np.sort(X @ A.T + b, axis=1)
    clear = scores[:, -1] - scores[:, -2] > 1e-5
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(predicted[clear], (X @ A.T + b).argmax(axis=1)[clear])


def test_ties_of_a_linear_classifier_go_to_the_later_class():
    tree = Tree.from_linear(np.zeros((4, 2)), np.array([1.0, 0.0, 1.0, 0.0]))
    assert reference.predict(tree, np.zeros(2)) == 2


def test_from_linear_of_one_row_has_two_classes():
    """scikit-learn's linear classifiers of two classes have the score of the second one only."""
    tree = Tree.from_linear(np.array([[1.0, 0.0, -2.0]]), np.array([0.5]))
    tree.validate()
    assert (tree.n_classes, tree.n_leaves) == (2, 2)
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(PARAM)
    chosen = [tree.leaf(node).classes[0] for node in leaf_of_rows(tree, route(tree, X))]
    np.testing.assert_array_equal(chosen, X @ [1.0, 0.0, -2.0] + 0.5 >= 0.0)


def test_the_wrong_kind_of_view_is_refused():
    tree = Tree.complete(1, n_features=2, n_classes=2)
    with pytest.raises(ValueError, match="node 0 is a router"):
        tree.leaf(0)
    with pytest.raises(ValueError, match="node 1 is a leaf"):
        tree.router(1)
    assert repr(tree) == "Tree(2 leaves, depth 1, 2 classes, 2 features, 0 weights)"


@pytest.mark.parametrize(("A", "b"), [(np.zeros((3, 2)), np.zeros(2)), (np.eye(21), np.zeros(21))])
def test_from_linear_rejects_what_it_cannot_build(A, b):
    with pytest.raises(ValueError, match=r"coef|leaves"):
        Tree.from_linear(A, b)


# -- validation ------------------------------------------------------------------------------------


def edited(name: str, at, value):
    """Return a corruption that sets one entry of an array."""

    def change(tree: Tree) -> dict:
        array = getattr(tree, name).copy()
        array[at] = value
        return {name: array}

    return change


def extended(name: str, value):
    """Return a corruption that appends one entry to an array."""

    def change(tree: Tree) -> dict:
        array = getattr(tree, name)
        return {name: np.append(array, value).astype(array.dtype)}

    return change


CORRUPTIONS = {
    # structure
    "child is an ancestor": edited("children", (2, 0), 0),
    "child is itself": edited("children", (2, 0), 2),
    "child comes before its parent": edited("children", (2, 0), 1),
    "one child twice": edited("children", (2, 0), 4),
    "two parents of one child": edited("children", (0, 0), 3),
    "leaf on the left, nothing on the right": edited("children", (2, 1), -1),
    "nothing on the left": edited("children", (2, 0), -1),
    "child out of range": edited("children", (2, 1), 5),
    "child is negative": edited("children", (2, 1), -2),
    "both children negative": edited("children", (2, slice(None)), -2),
    "unreachable node": edited("children", (2, slice(None)), -1),
    "no node": lambda tree: {"children": np.empty((0, 2), INDEX)},
    "three columns": lambda tree: {"children": np.full((5, 3), -1, INDEX)},
    "flat children": lambda tree: {"children": tree.children.ravel()},
    # sizes
    "no class": lambda tree: {"n_classes": 0},
    "negative number of features": lambda tree: {"n_features": -1},
    "one bias too many": extended("bias", 0.0),
    "one router weight too many": extended("router_val", 1.0),
    "one leaf bias too many": extended("leaf_bias", 1.0),
    "one block weight too many": extended("block_val", 1.0),
    "one class too many": extended("class_ids", 3),
    "one feature too many": extended("feat_idx", 3),
    "block of another shape": edited("block_ptr", 2, 3),
    "empty leaf": lambda tree: {
        "class_ptr": np.array([0, 0, 0, 0, 2, 4], OFFSET),
        "class_ids": tree.class_ids[:4],
        "leaf_bias": tree.leaf_bias[:4],
        "feat_ptr": np.array([0, 0, 0, 0, 2, 4], OFFSET),
        "feat_idx": tree.feat_idx[:4],
        "block_ptr": np.array([0, 0, 0, 0, 4, 8], OFFSET),
        "block_val": tree.block_val[:8],
    },
    "router with classes": lambda tree: {
        "class_ptr": np.array([0, 2, 2, 2, 4, 6], OFFSET),
        "feat_ptr": np.array([0, 2, 2, 2, 4, 6], OFFSET),
        "block_ptr": np.array([0, 4, 4, 4, 8, 12], OFFSET),
    },
    "leaf with router weights": edited("router_ptr", slice(2, 3), 4),
    # ids
    "classes not ascending": edited("class_ids", slice(0, 2), [3, 1]),
    "class twice": edited("class_ids", slice(0, 2), [1, 1]),
    "router features not ascending": edited("router_idx", slice(0, 2), [3, 1]),
    "router feature twice": edited("router_idx", slice(0, 2), [1, 1]),
    "leaf features not ascending": edited("feat_idx", slice(0, 2), [2, 0]),
    "leaf feature twice": edited("feat_idx", slice(0, 2), [2, 2]),
    "last leaf's classes not ascending": edited("class_ids", slice(4, 6), [3, 1]),
}
for _names in (("router_idx", "router_val"), ("class_ids", "leaf_bias"), ("feat_idx", "block_val")):
    CORRUPTIONS[f"{' and '.join(_names)} with two axes"] = lambda tree, names=_names: {
        name: getattr(tree, name)[:, None] for name in names
    }
for _name in ("router_idx", "class_ids", "feat_idx"):
    CORRUPTIONS[f"{_name} too large"] = edited(_name, 1, 4)
    CORRUPTIONS[f"{_name} negative"] = edited(_name, 0, -1)
for _name in ("router_ptr", "class_ptr", "feat_ptr", "block_ptr"):
    CORRUPTIONS[f"{_name} starts above zero"] = edited(_name, 0, 1)
    CORRUPTIONS[f"{_name} falls"] = edited(_name, 3, -1)
    CORRUPTIONS[f"{_name} overshoots"] = edited(_name, 3, 1000)
    CORRUPTIONS[f"{_name} ends early"] = edited(_name, 5, 1)
    CORRUPTIONS[f"{_name} too long"] = lambda tree, name=_name: {
        name: np.append(getattr(tree, name), getattr(tree, name)[-1])
    }
for _name in ("router_val", "bias", "leaf_bias", "block_val"):
    CORRUPTIONS[f"{_name} is NaN"] = edited(_name, 0, np.nan)
    CORRUPTIONS[f"{_name} is infinite"] = edited(_name, 0, -np.inf)
for _name in ARRAYS:
    CORRUPTIONS[f"{_name} of another dtype"] = lambda tree, name=_name: {
        name: getattr(tree, name).astype(
            {"i4": "i8", "i8": "i4", "f4": "f8", "u2": "i4"}[getattr(tree, name).dtype.str[1:]]
        )
    }
    if _name != "children":
        CORRUPTIONS[f"{_name} with two axes"] = lambda tree, name=_name: {
            name: getattr(tree, name)[:, None]
        }

SPARSE_CORRUPTIONS = {
    "one slot too many": extended("entry_slot", 1),
    "one weight too many": extended("entry_val", 1.0),
    "one row too many": extended("row_size", 0),
    "a row is longer than classes are": edited("row_size", slice(0, 2), [3, 0]),
    "a row has a negative size": edited("row_size", slice(0, 2), [-1, 4]),
    "a block's row has weights": edited("row_size", slice(2, 4), [1, 0]),
    "rows have other sizes than the leaf": edited("row_size", 0, 1),
    "weights of another leaf": edited("entry_ptr", slice(2, 4), 2),
    "entry_ptr starts above zero": edited("entry_ptr", 0, 1),
    "entry_ptr falls": edited("entry_ptr", 4, -1),
    "entry_ptr ends early": edited("entry_ptr", 5, 1),
    "slot out of range": edited("entry_slot", 1, 2),
    "slots not ascending": edited("entry_slot", slice(0, 2), [1, 0]),
    "slot twice": edited("entry_slot", slice(0, 2), [0, 0]),
    "weight is NaN": edited("entry_val", 0, np.nan),
}


def with_sparse_leaves() -> Tree:
    """Return the small tree with entries at nodes 1 and 4, and a block at node 3."""
    tree = small_tree()
    return tree.replace({i: as_sparse(tree.leaf(i)) for i in (1, 4)})


@pytest.mark.parametrize("corruption", SPARSE_CORRUPTIONS)
def test_validate_rejects_sparse_leaves(corruption):
    tree = with_sparse_leaves()
    tree.validate()
    with pytest.raises(TreeError):
        replace(tree, **SPARSE_CORRUPTIONS[corruption](tree)).validate()


def test_a_sparse_leaf_has_the_weights_of_its_block():
    tree = small_tree()
    sparse = with_sparse_leaves()
    for node in (1, 3, 4):
        np.testing.assert_array_equal(tree.leaf(node).weights, sparse.leaf(node).weights)
        doubled = sparse.leaf(node).scaled(2.0)
        np.testing.assert_array_equal(doubled.weights, 2 * tree.leaf(node).weights)
        np.testing.assert_array_equal(doubled.bias, 2 * tree.leaf(node).bias)
    assert [isinstance(sparse.leaf(i), SparseLeaf) for i in (1, 3, 4)] == [True, False, True]


def test_the_form_of_fewer_bytes_is_kept():
    leaf = small_tree().leaf(1)
    assert leaf.compact() is leaf
    few = np.zeros((2, 20), PARAM)
    few[0, 3] = few[1, 0] = 1.0
    wide = Leaf(np.arange(20, dtype=INDEX), leaf.features, few, np.zeros(20, PARAM))
    compact = wide.compact()
    assert isinstance(compact, SparseLeaf)
    assert compact.compact() is compact
    np.testing.assert_array_equal(compact.weights, few)
    assert compact.stored.size == 2
    assert compact.n_weights == wide.n_weights == 40


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_validate_rejects(corruption):
    tree = small_tree()
    tree.validate()
    with pytest.raises(TreeError):
        replace(tree, **CORRUPTIONS[corruption](tree)).validate()


@given(trees(), st.data())
def test_validate_never_crashes_on_a_changed_entry(tree, data):
    """A changed entry gives another tree or a TreeError, never another error."""
    name = data.draw(st.sampled_from([n for n in ARRAYS if getattr(tree, n).size]))
    array = getattr(tree, name).copy()
    at = data.draw(st.integers(0, array.size - 1))
    limits = np.iinfo(array.dtype if array.dtype == SLOT else INDEX)
    array.flat[at] = data.draw(st.integers(int(limits.min), int(limits.max)))
    changed = replace(tree, **{name: array})
    try:
        changed.validate()
    except TreeError:
        return
    X = np.zeros((2, tree.n_features), PARAM)
    assert leaf_of_rows(changed, route(changed, as_rows(X, "csr"))).size == 2


def test_a_router_in_the_place_of_a_leaf_is_rejected():
    tree = small_tree()
    nodes = [tree.node(0), tree.node(0), tree.node(2), tree.node(3), tree.node(4)]
    with pytest.raises(TreeError):
        Tree.build(tree.children, nodes, n_features=4, n_classes=4).validate()

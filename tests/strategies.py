"""Random trees and data for the tests, and hypothesis strategies over them.

Trees and rows for routing hold small integers: their dot products are exact in float32 in any
order of summation, so kernels and references must agree to the bit, ties included.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from thinleaf._dtypes import INDEX, NO_CHILD, PARAM
from thinleaf.arrays.rows import CSC, CSR, Local, Rows
from thinleaf.model.tree import Leaf, Router, SparseLeaf, Tree
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import NodeProblem
from thinleaf.softmaxtree.tao import TrainingData

FORMATS = ("dense", "csr")

# -- rows ------------------------------------------------------------------------------------------


def as_rows(X: np.ndarray, kind: str) -> Rows:
    """Return a matrix as kernels take rows."""
    if kind == "dense":
        return np.ascontiguousarray(X, dtype=PARAM)
    sparse = sp.csr_matrix(X, dtype=PARAM)
    return CSR(sparse.indptr.astype(INDEX), sparse.indices.astype(INDEX), sparse.data, X.shape[1])


def as_local(X: np.ndarray, kind: str) -> Local:
    """Return a matrix as solvers take it: rows if dense, columns if sparse."""
    if kind == "dense":
        return np.ascontiguousarray(X, dtype=PARAM)
    sparse = sp.csc_matrix(X, dtype=PARAM)
    return CSC(sparse.indptr.astype(INDEX), sparse.indices.astype(INDEX), sparse.data, X.shape[0])


def integer_rows(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    """Return rows of small integers, half of them zero."""
    X = rng.integers(-4, 5, size=(n_rows, n_features)).astype(PARAM)
    X[rng.random(X.shape) < 0.5] = 0.0
    return X


# -- trees -----------------------------------------------------------------------------------------


def random_children(rng: np.random.Generator, n_leaves: int) -> np.ndarray:
    """Return an irregular binary structure, numbered in some order with parents first."""
    children = [[NO_CHILD, NO_CHILD]]
    for _ in range(n_leaves - 1):
        leaves = [i for i, pair in enumerate(children) if pair[0] == NO_CHILD]
        children[rng.choice(leaves)] = [len(children), len(children) + 1]
        children += [[NO_CHILD, NO_CHILD], [NO_CHILD, NO_CHILD]]
    ready, order = [0], []
    while ready:
        node = ready.pop(rng.integers(len(ready)))
        order.append(node)
        ready += [child for child in children[node] if child != NO_CHILD]
    number = {old: new for new, old in enumerate(order)} | {NO_CHILD: NO_CHILD}
    return np.array([[number[child] for child in children[old]] for old in order], dtype=INDEX)


def random_router(rng: np.random.Generator, n_features: int, *, zero: float = 0.1) -> Router:
    """Return a sparse router of small integers; with probability ``zero``, one without weights."""
    used = np.flatnonzero(rng.random(n_features) < 0.6).astype(INDEX)
    if rng.random() < zero:
        used = used[:0]
    weights = rng.choice([-3, -2, -1, 1, 2, 3], size=used.size).astype(PARAM)
    return Router(used, weights, float(rng.integers(-4, 5)))


def random_leaf(
    rng: np.random.Generator, n_features: int, n_classes: int, *, pure: float = 0.2
) -> Leaf:
    """Return a leaf of small integers; with probability ``pure``, a constant one.

    Every third keeps nonzero weights alone.
    """
    if rng.random() < pure:
        return Leaf.constant(int(rng.integers(n_classes)))
    k = int(rng.integers(1, n_classes + 1))
    classes = np.sort(rng.choice(n_classes, size=k, replace=False)).astype(INDEX)
    used = np.flatnonzero(rng.random(n_features) < 0.6).astype(INDEX)
    weights = rng.integers(-2, 3, size=(used.size, k)).astype(PARAM)
    leaf = Leaf(classes, used, weights, rng.integers(-3, 4, size=k).astype(PARAM))
    return as_sparse(leaf) if used.size and (k + used.size) % 3 == 0 else leaf


def as_sparse(leaf: Leaf) -> SparseLeaf:
    """Return a leaf that keeps nonzero weights alone, whatever that costs."""
    return SparseLeaf(leaf.classes, leaf.features, *leaf.nonzero(), leaf.bias)


def random_tree(
    rng: np.random.Generator,
    n_leaves: int = 6,
    n_features: int = 5,
    n_classes: int = 6,
    *,
    zero: float = 0.1,
    pure: float = 0.2,
) -> Tree:
    """Return an irregular tree with random routers and leaves."""
    children = random_children(rng, n_leaves)
    nodes = [
        random_leaf(rng, n_features, n_classes, pure=pure)
        if left == NO_CHILD
        else random_router(rng, n_features, zero=zero)
        for left, _ in children
    ]
    return Tree.build(children, nodes, n_features=n_features, n_classes=n_classes)


@st.composite
def trees(draw: st.DrawFn, *, zero: float = 0.1, pure: float = 0.2) -> Tree:
    """Irregular trees of 1 to 12 leaves, with 0 to 6 features."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_leaves, n_features = draw(st.integers(1, 12)), draw(st.integers(0, 6))
    n_classes = draw(st.integers(1, 6))
    return random_tree(rng, n_leaves, n_features, n_classes, zero=zero, pure=pure)


@st.composite
def trees_and_rows(
    draw: st.DrawFn, *, zero: float = 0.1, pure: float = 0.2
) -> tuple[Tree, np.ndarray, np.ndarray]:
    """A tree with 0 to 30 rows for it and their classes."""
    tree = draw(trees(zero=zero, pure=pure))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(0, 30))
    y = rng.integers(tree.n_classes, size=n_rows).astype(INDEX)
    return tree, integer_rows(rng, n_rows, tree.n_features), y


# -- training data and node problems ---------------------------------------------------------------


def blobs(
    seed: int,
    *,
    n_rows: int = 120,
    n_features: int = 5,
    n_classes: int = 6,
    spread: float = 0.6,
    kind: str = "dense",
    weighted: bool = False,
) -> TrainingData:
    """Return classes around Gaussian centres; every class occurs."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    y = rng.permutation(np.arange(n_rows) % n_classes).astype(INDEX)
    X = centres[y] + spread * rng.standard_normal((n_rows, n_features))
    if kind != "dense":
        X[rng.random(X.shape) < 0.3] = 0.0
    weight = rng.integers(1, 4, size=n_rows).astype(float) if weighted else np.ones(n_rows)
    return TrainingData(as_rows(X, kind), y, weight, n_classes)


def dense_of(X: Rows) -> np.ndarray:
    """Return rows as a float64 matrix."""
    if not isinstance(X, CSR):
        return X.astype(np.float64)
    shape = (X.indptr.size - 1, X.n_features)
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape).toarray().astype(np.float64)


def node_problem(
    X: np.ndarray,
    target: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    n_targets: int = 2,
    penalty: Penalty | None = None,
    kind: str = "dense",
) -> NodeProblem:
    """Return a node problem on a dense or sparse copy of ``X``."""
    weight = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=np.float64)
    return NodeProblem(
        as_local(X, kind), np.asarray(target, INDEX), weight, n_targets, penalty or Penalty()
    )


# -- frozen trees ----------------------------------------------------------------------------------


def uneven(rng: np.random.Generator, tree: Tree) -> Tree:
    """Return a tree with the same features and classes, but real weights: paths without ties."""
    nodes: dict[int, Router | Leaf] = {}
    for i in range(tree.n_nodes):
        node = tree.node(i)
        noise = rng.normal(scale=0.3, size=node.weights.shape).astype(PARAM)
        if isinstance(node, Router):
            bias = node.bias + float(rng.normal(scale=0.3))
            nodes[i] = Router(node.features, (node.weights + noise) / 3, bias)
        else:
            zero = node.weights == 0.0
            nodes[i] = Leaf(
                node.classes, node.features, np.where(zero, 0.0, node.weights + noise), node.bias
            )
    return tree.replace(nodes)


def rich_tree(rng: np.random.Generator, n_leaves: int = 12, n_features: int = 30) -> Tree:
    """Return a tree, numbered breadth-first, that has a node for every layout.

    Routers over many and over few features; leaves over most features, over a few with all weights,
    over a few with hardly any, and without features.
    """
    n_classes = 9
    children = prune(random_tree(rng, n_leaves, n_features, n_classes, zero=0.0, pure=0.0))[0]
    nodes: list[Router | Leaf] = []
    for is_leaf, at in zip(children.is_leaf, np.cumsum(children.is_leaf), strict=True):
        if not is_leaf:
            share = 0.9 if len(nodes) % 2 else 0.2
            used = np.flatnonzero(rng.random(n_features) < share).astype(INDEX)
            weights = rng.normal(size=used.size).astype(PARAM)
            nodes.append(Router(used, weights, float(rng.normal())))
            continue
        share, filled = [(0.9, 1.0), (0.2, 1.0), (0.3, 0.04), (0.0, 1.0)][at % 4]
        used = np.flatnonzero(rng.random(n_features) < share).astype(INDEX)
        k = int(rng.integers(2, n_classes))
        classes = np.sort(rng.choice(n_classes, size=k, replace=False)).astype(INDEX)
        W = rng.normal(size=(used.size, k)).astype(PARAM)
        W[rng.random(W.shape) >= filled] = 0.0
        nodes.append(Leaf(classes, used, W, rng.normal(size=k).astype(PARAM)))
    return Tree.build(children.children, nodes, n_features=n_features, n_classes=n_classes)

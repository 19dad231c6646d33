"""Initial trees, complete or of a given structure, and the leaf that each row starts in.

Random and median splits, and those of decision trees, give routers. Clusterings give each row a
leaf; the first sweep then fits the routers. They are that of paper 001 (section 4.2, Algorithm 2),
of class prototypes or of rows, and a balanced one of our own for text, where k-means puts most
classes into one cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    NO_CHILD,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
)
from thinleaf.arrays.rows import as_matrix, n_features_of
from thinleaf.model.routing import choose_child, leaf_of_rows, route
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.growth.halving import halve, used_columns
from thinleaf.softmaxtree.growth.hierarchy import Hierarchy
from thinleaf.softmaxtree.solvers.axis import purest_split
from thinleaf.softmaxtree.tao.reduced import TrainingData

Init: TypeAlias = Literal[
    "random",
    "random_median",
    "pca_median",
    "axis_splits",
    "random_axis_splits",
    "class_clusters",
    "row_clusters",
    "balanced_clusters",
]

Way: TypeAlias = Init | Hierarchy
"""How a tree starts: by name, or by a known hierarchy of its classes."""

Matrix: TypeAlias = AnyArray | sp.csr_matrix
"""Rows as scikit-learn and the matrix product take them."""

_POWER_STEPS = 12
_PCA_ROWS = 10_000
_AXIS_ROWS = 20_000
"""Rows that a split by one feature is found by."""

SOME_FEATURES = 0.5


@dataclass(frozen=True)
class InitialTree:
    """A tree to start from, and the leaf of each row; its routers may not say that yet."""

    tree: Tree
    assignment: IndexArray


def initial_tree(
    data: TrainingData,
    shape: int | Tree,
    init: Way,
    seed: np.random.SeedSequence,
    spread: AccumArray | None = None,
) -> InitialTree:
    """Return a tree made by one of the eight ways, or by a hierarchy.

    Parameters
    ----------
    shape : int or Tree
        The depth of a complete tree, or a tree whose structure is taken without its parameters.
    spread : ndarray of shape (n_features,), optional
        Units of dense features, in which median splits look for a direction: else it is along the
        feature of the largest numbers.
    """
    majority = int(np.bincount(data.y, weights=data.weight, minlength=data.n_classes).argmax())
    tree = _blank(shape, n_features_of(data.X), data.n_classes, majority)
    if isinstance(init, Hierarchy):
        return InitialTree(tree, init.leaves(tree, data.y))
    if init in ("class_clusters", "row_clusters"):
        depth = tree.depth
        if tree.n_leaves != 2**depth:
            raise ValueError(
                f"init={init!r} makes complete trees only: use another for a structure"
            )
        return InitialTree(tree, _cluster_assignment(tree, data, depth, init, seed))
    if init == "balanced_clusters":
        return InitialTree(tree, _balanced_assignment(tree, data, seed))
    if init == "random":
        tree = _random_tree(tree, seed)
    elif init == "random_median":
        tree = _median_tree(tree, data, seed, _random_direction, spread)
    elif init == "pca_median":
        tree = _median_tree(tree, data, seed, _principal_direction, spread)
    elif init in ("axis_splits", "random_axis_splits"):
        tree = _axis_tree(tree, data, seed, 1.0 if init == "axis_splits" else SOME_FEATURES)
    else:
        raise ValueError(f"init must be one of {get_args(Init)}, got {init!r}")
    return InitialTree(tree, leaf_of_rows(tree, route(tree, data.X)))


def from_routers(routers: Tree, data: TrainingData, least_rows: int) -> InitialTree:
    """Return a tree that starts with given routers; its leaves are constant.

    A node that fewer rows reach becomes a leaf, and one that sends all rows to one side goes.

    Parameters
    ----------
    routers : Tree
        Its leaves do not matter.
    least_rows : int
        The fewest rows of a router.
    """
    if routers.n_features != n_features_of(data.X):
        raise ValueError(
            f"the tree of init has {routers.n_features} features, X has {n_features_of(data.X)}"
        )
    majority = int(np.bincount(data.y, weights=data.weight, minlength=data.n_classes).argmax())
    sizes = route(routers, data.X).sizes

    def after_empty(node: int) -> int:
        while not routers.is_leaf[node] and sizes[node] >= least_rows:
            full = [int(child) for child in routers.children[node] if sizes[child] > 0]
            if len(full) == 2:
                break
            node = full[0]
        return node

    queue = [after_empty(0)]
    children: list[tuple[int, int]] = []
    nodes: list[Router | Leaf] = []
    for node in queue:  # the queue grows while we walk it
        if routers.is_leaf[node] or sizes[node] < least_rows:
            nodes.append(Leaf.constant(majority))
            children.append((NO_CHILD, NO_CHILD))
        else:
            nodes.append(routers.router(node))
            children.append((len(queue), len(queue) + 1))
            queue += [after_empty(int(child)) for child in routers.children[node]]
    shape = {"n_features": routers.n_features, "n_classes": data.n_classes}
    tree = Tree.build(np.array(children), nodes, **shape)
    return InitialTree(tree, leaf_of_rows(tree, route(tree, data.X)))


def _blank(shape: int | Tree, n_features: int, n_classes: int, class_id: int) -> Tree:
    """Return a tree whose routers and leaves are constant."""
    if isinstance(shape, int):
        return Tree.complete(shape, n_features=n_features, n_classes=n_classes, class_id=class_id)
    nodes = [Leaf.constant(class_id) if leaf else Router.constant(0) for leaf in shape.is_leaf]
    return Tree.build(shape.children, nodes, n_features=n_features, n_classes=n_classes)


# -- hyperplanes -----------------------------------------------------------------------------------


def node_seed(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """Return the seed of a node (or round) that depends on the seed and its number alone."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))


def _node_rng(seed: np.random.SeedSequence, node: int) -> np.random.Generator:
    return np.random.default_rng(node_seed(seed, node))


def _random_tree(tree: Tree, seed: np.random.SeedSequence) -> Tree:
    """Give every router Gaussian weights of unit length and no bias (paper 001, appendix D)."""
    features = np.arange(tree.n_features, dtype=INDEX)
    routers = {}
    for node in np.flatnonzero(~tree.is_leaf):
        w = _node_rng(seed, int(node)).standard_normal(tree.n_features)
        routers[int(node)] = Router(features, (w / np.linalg.norm(w)).astype(PARAM), 0.0)
    return tree.replace(routers)


Direction: TypeAlias = Callable[[Matrix, AccumArray, np.random.Generator], AccumArray]


def _random_direction(X: Matrix, weight: AccumArray, rng: np.random.Generator) -> AccumArray:
    return rng.standard_normal(int(X.shape[1]))


def _product(X: Any, w: AnyArray) -> AnyArray:
    """Return X w, without the warnings of BLAS about lanes that it does not use."""
    with np.errstate(invalid="ignore"):
        return np.asarray(X @ w).ravel()


def _principal_direction(X: Matrix, weight: AccumArray, rng: np.random.Generator) -> AccumArray:
    """Return the first principal direction of some rows, by power iteration without centring X.

    Of very many rows, a regular sample says it well enough.
    """
    every = max(1, X.shape[0] // _PCA_ROWS)
    X, weight = X[::every], weight[::every]
    share = (weight / weight.sum()).astype(PARAM)
    mean = _product(X.T, share)
    w = rng.standard_normal(mean.size).astype(PARAM)
    for _ in range(_POWER_STEPS):
        projection = share * (_product(X, w) - mean @ w)
        w = _product(X.T, projection) - mean * projection.sum()
        norm = np.linalg.norm(w)
        if norm == 0.0:
            return rng.standard_normal(mean.size)
        w /= norm
    return w.astype(ACCUM)


def _median_tree(
    tree: Tree,
    data: TrainingData,
    seed: np.random.SeedSequence,
    direction: Direction,
    spread: AccumArray | None,
) -> Tree:
    """Split every node's rows at the median of their projection, from the root down."""
    reach: dict[int, IndexArray] = {0: np.arange(data.n_rows, dtype=INDEX)}
    features = np.arange(tree.n_features, dtype=INDEX)
    routers = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows = reach.pop(node)
        router = Router.constant(0)
        weight = data.weight[rows]
        if np.count_nonzero(weight) > 1:
            local = as_matrix(data.X)[rows]
            rng = _node_rng(seed, node)
            if spread is None:
                w = direction(local, weight, rng).astype(PARAM)
            else:
                w = (direction(local / spread.astype(PARAM), weight, rng) / spread).astype(PARAM)
            used = np.flatnonzero(w)
            cut = _weighted_median(_product(local, w), weight)
            router = Router(features[used], w[used], -cut)
        side = choose_child(router, data.X, rows)
        left, right = tree.children[node]
        reach[int(left)], reach[int(right)] = rows[side == 0], rows[side == 1]
        routers[node] = router
    return tree.replace(routers)


def _axis_tree(tree: Tree, data: TrainingData, seed: np.random.SeedSequence, share: float) -> Tree:
    """Split every node's rows by the feature and value that tell most of their classes.

    So decision trees (CART) begin. Each split is by the best of a share of the features.
    """
    if not isinstance(data.X, np.ndarray):
        raise ValueError("init: splits by one feature are for dense rows; use another init")
    reach: dict[int, IndexArray] = {0: np.flatnonzero(data.weight).astype(INDEX)}
    routers = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows = reach.pop(node)
        router = purest_router(data, rows, share, node_seed(seed, node)) or Router.constant(0)
        side = choose_child(router, data.X, rows)
        left, right = tree.children[node].tolist()
        reach[left], reach[right] = rows[side == 0], rows[side == 1]
        routers[node] = router
    return tree.replace(routers)


def purest_router(
    data: TrainingData, rows: IndexArray, share: float, seed: np.random.SeedSequence
) -> Router | None:
    """Return the split by one feature that tells most of the classes of some rows, if any does.

    Parameters
    ----------
    share : float
        Of the features, that are looked at.
    """
    rng = np.random.default_rng(seed)
    if rows.size > _AXIS_ROWS:
        rows = np.sort(rng.choice(rows, _AXIS_ROWS, replace=False))
    n_features = n_features_of(data.X)
    n_tried = max(1, round(share * n_features))
    features = np.sort(rng.choice(n_features, n_tried, replace=False)).astype(INDEX)
    assert isinstance(data.X, np.ndarray)
    split = purest_split(data.X[rows], data.y[rows], data.weight[rows], features)
    if split is None:
        return None
    return Router(np.array(split[:1], dtype=INDEX), np.ones(1, dtype=PARAM), -split[1])


def _weighted_median(values: AnyArray, weight: AccumArray) -> float:
    """Return a value with half of the weight on either side: midway between two rows."""
    order = np.argsort(values, kind="stable")
    ranked = values[order].astype(ACCUM)
    below = np.cumsum(weight[order])
    at = int(np.searchsorted(below, below[-1] / 2.0))
    after = int(np.searchsorted(ranked, ranked[at], side="right"))
    return float(0.5 * (ranked[at] + ranked[min(after, ranked.size - 1)]))


# -- clusters --------------------------------------------------------------------------------------


def _cluster_assignment(
    tree: Tree, data: TrainingData, depth: int, init: Init, seed: np.random.SeedSequence
) -> IndexArray:
    """Return the leaf of each row by Algorithm 2."""
    n_leaves = 2**depth
    X = as_matrix(data.X)
    if init == "class_clusters":
        points, point_mass, present = _class_prototypes(data, X)
    else:
        points, point_mass = X, data.weight
    n_clusters = min(n_leaves, points.shape[0])
    state = int(np.random.default_rng(seed).integers(2**31 - 1))
    with warnings.catch_warnings():  # fewer distinct points than leaves: some leaves stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: IndexArray = KMeans(n_clusters, n_init=1, random_state=state).fit_predict(
            points, sample_weight=point_mass
        )
    leaf_of_cluster = merge_order(*_cluster_means(points, point_mass, labels, n_leaves))
    leaf_of_point = np.flatnonzero(tree.is_leaf).astype(INDEX)[leaf_of_cluster[labels]]
    if init == "row_clusters":
        return leaf_of_point
    leaf_of_class = np.full(data.n_classes, tree.n_nodes - 1, dtype=INDEX)
    leaf_of_class[present] = leaf_of_point
    return leaf_of_class[data.y]


def _class_prototypes(data: TrainingData, X: Matrix) -> tuple[Matrix, AccumArray, IndexArray]:
    """Return the mean of each class that has weight, its weight, and its id."""
    mass = np.asarray(
        np.bincount(data.y, weights=data.weight, minlength=data.n_classes), dtype=ACCUM
    )
    present = np.flatnonzero(mass).astype(INDEX)
    averaging = sp.csr_matrix(
        (data.weight / np.maximum(mass, 1e-300)[data.y], (data.y, np.arange(data.n_rows))),
        shape=(data.n_classes, data.n_rows),
    )[present]
    return cast(Matrix, averaging @ X), mass[present], present


def _cluster_means(
    points: Matrix, mass: AccumArray, labels: IndexArray, n_clusters: int
) -> tuple[AccumArray, AccumArray]:
    members = sp.csr_matrix(
        (mass, (labels, np.arange(labels.size))), shape=(n_clusters, labels.size)
    )
    total = np.asarray(np.bincount(labels, weights=mass, minlength=n_clusters), dtype=ACCUM)
    sums = cast(Matrix, members @ points)
    dense = np.asarray(sums) if isinstance(sums, np.ndarray) else sums.toarray()
    return dense / np.maximum(total, 1e-300)[:, None], total


def merge_order(means: AccumArray, mass: AccumArray) -> IndexArray:
    """Pair clusters level by level, closest first, and return each cluster's leaf from the left.

    Parameters
    ----------
    means : ndarray of shape (2^depth, n_features)
    mass : ndarray of shape (2^depth,)

    Returns
    -------
    leaf : ndarray of shape (2^depth,)
        Position of each cluster among the leaves, so that every subtree is a supercluster.
    """
    members = [[i] for i in range(mass.size)]
    means, mass = means.astype(ACCUM), mass.astype(ACCUM)
    while len(members) > 1:
        pairs = _closest_pairs(means)
        first, second = np.array(pairs).T
        members = [members[a] + members[b] for a, b in pairs]
        total = mass[first] + mass[second]
        share = np.where(total > 0.0, mass[first] / np.maximum(total, 1e-300), 0.5)[:, None]
        means = share * means[first] + (1.0 - share) * means[second]
        mass = total
    leaf = np.empty(len(members[0]), dtype=INDEX)
    leaf[members[0]] = np.arange(len(members[0]))
    return leaf


def _closest_pairs(means: AccumArray) -> list[tuple[int, int]]:
    """Return a perfect matching of an even number of points: the closest two, then the next."""
    square = (means**2).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2.0 * means @ means.T
    upper = np.triu_indices(len(means), 1)
    order = np.argsort(distance[upper], kind="stable")
    free = np.ones(len(means), dtype=np.bool_)
    pairs = []
    for a, b in zip(upper[0][order], upper[1][order], strict=True):
        if free[a] and free[b]:
            free[a] = free[b] = False
            pairs.append((int(a), int(b)))
    return pairs


# -- balanced clusters -----------------------------------------------------------------------------


def _balanced_assignment(
    tree: Tree, data: TrainingData, seed: np.random.SeedSequence
) -> IndexArray:
    """Halve the classes from the root down, so that each leaf gets nearly the same number."""
    X = as_matrix(data.X)
    prototypes, _, present = _class_prototypes(data, X)
    prototypes = normalize(prototypes)
    leaf_of_class = np.full(data.n_classes, tree.n_nodes - 1, dtype=INDEX)
    groups: dict[int, IndexArray] = {0: np.arange(present.size, dtype=INDEX)}
    for node in range(tree.n_nodes):
        group = groups.pop(node)
        if tree.is_leaf[node]:
            leaf_of_class[present[group]] = node
            continue
        right = halve(used_columns(prototypes[group]), _node_rng(seed, node))
        groups[int(tree.children[node, 0])] = group[~right]
        groups[int(tree.children[node, 1])] = group[right]
    return leaf_of_class[data.y]

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

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, BoolArray, IndexArray
from thinleaf.arrays.rows import as_matrix, n_features_of
from thinleaf.model.routing import choose_child, leaf_of_rows, route
from thinleaf.model.tree import Leaf, Router, Tree
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

_SOME_FEATURES = 0.5

_HALVE_STARTS = 3
_HALVE_STEPS = 20
_MANY_POINTS = 20_000
_LAST_STEPS = 3
"""Points above which a sample is halved first, and steps over all of them."""

_FEW_VALUES = 16
"""Columns for each value above which used ones are found by sorting values."""


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
        tree = _axis_tree(tree, data, seed, 1.0 if init == "axis_splits" else _SOME_FEATURES)
    else:
        raise ValueError(f"init must be one of {get_args(Init)}, got {init!r}")
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
    n_tried = max(1, round(share * tree.n_features))
    routers = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows, rng = reach.pop(node), _node_rng(seed, node)
        some = rows
        if rows.size > _AXIS_ROWS:
            some = np.sort(rng.choice(rows, _AXIS_ROWS, replace=False))
        features = np.sort(rng.choice(tree.n_features, n_tried, replace=False)).astype(INDEX)
        split = purest_split(data.X[some], data.y[some], data.weight[some], features)
        router = Router.constant(0)
        if split is not None:
            at = np.array(split[:1], dtype=INDEX)
            router = Router(at, np.ones(1, dtype=PARAM), -split[1])
        side = choose_child(router, data.X, rows)
        left, right = tree.children[node].tolist()
        reach[left], reach[right] = rows[side == 0], rows[side == 1]
        routers[node] = router
    return tree.replace(routers)


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
        right = _halve(_used_columns(prototypes[group]), _node_rng(seed, node))
        groups[int(tree.children[node, 0])] = group[~right]
        groups[int(tree.children[node, 1])] = group[right]
    return leaf_of_class[data.y]


def _halve(points: Matrix, rng: np.random.Generator) -> BoolArray:
    """Split points of unit length into two halves by spherical 2-means; return the second's mask.

    The best of a few starts, by the similarity of the points to their half's mean. Of very many
    points, a sample is halved, and then the others with it.
    """
    n_points = points.shape[0]
    if n_points > _MANY_POINTS:
        return _halve_many(points, rng)
    best: BoolArray = np.arange(n_points) >= (n_points + 1) // 2
    best_value = -np.inf
    if n_points <= 2:
        return best
    for _ in range(_HALVE_STARTS):
        first, second = rng.choice(n_points, 2, replace=False)
        axis = _sum(points, [second]) - _sum(points, [first])
        right = np.zeros(n_points, dtype=np.bool_)
        for _ in range(_HALVE_STEPS):
            before = right
            rank = np.argsort(_product(points, axis), kind="stable")
            right = np.zeros(n_points, dtype=np.bool_)
            right[rank[(n_points + 1) // 2 :]] = True
            if np.array_equal(right, before):
                break
            left_sum, right_sum = _sum(points, ~right), _sum(points, right)
            axis = _unit(right_sum) - _unit(left_sum)
        value = float(np.linalg.norm(left_sum) + np.linalg.norm(right_sum))
        if value > best_value:
            best, best_value = right, value
    return best


def _halve_many(points: Matrix, rng: np.random.Generator) -> BoolArray:
    """Return the halves of very many points: those of a sample, moved by a few steps over all."""
    some = np.sort(rng.choice(points.shape[0], _MANY_POINTS, replace=False))
    sample = points[some]
    right = _halve(sample, rng)
    axis = _unit(_sum(sample, right)) - _unit(_sum(sample, ~right))
    for _ in range(_LAST_STEPS):
        rank = np.argsort(_product(points, axis), kind="stable")
        halves: BoolArray = np.zeros(points.shape[0], dtype=np.bool_)
        halves[rank[(points.shape[0] + 1) // 2 :]] = True
        axis = _unit(_sum(points, halves)) - _unit(_sum(points, ~halves))
    return halves


def _unit(v: AccumArray) -> AccumArray:
    return v / max(float(np.linalg.norm(v)), 1e-300)


def _sum(points: Matrix, which: AnyArray | list[int]) -> AccumArray:
    members = np.zeros(points.shape[0], dtype=ACCUM)
    members[which] = 1.0
    return np.asarray(points.T @ members, dtype=ACCUM)


def _used_columns(points: Matrix) -> Matrix:
    """Return sparse points without the columns in which they have nothing.

    Deep in a tree points are few, and sums over all columns would take most of the time.
    """
    if isinstance(points, np.ndarray):
        return points
    if _FEW_VALUES * points.nnz < points.shape[1]:
        used, local = np.unique(points.indices, return_inverse=True)
    else:
        occurs = np.zeros(points.shape[1], dtype=np.bool_)
        occurs[points.indices] = True
        used = np.flatnonzero(occurs).astype(INDEX)
        local = (np.cumsum(occurs) - 1)[points.indices]
    shape = (points.shape[0], max(used.size, 1))
    return sp.csr_matrix((points.data, local.reshape(-1), points.indptr), shape=shape)

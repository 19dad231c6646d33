"""Readable twins of the kernels: one row, one node at a time, in float64, dense input.

Nothing here is fast and nothing here shares code with the library, apart from its value types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from thinleaf._dtypes import NO_CHILD
from thinleaf.model.probability import Backoff
from thinleaf.model.tree import Leaf, Router, Tree
from thinleaf.softmaxtree.objective import Objective, Penalty

# -- structure -------------------------------------------------------------------------------------


def descendants(tree: Tree, node: int = 0) -> list[int]:
    """Return a node and everything below it, in preorder."""
    left, right = (int(child) for child in tree.children[node])
    if left == NO_CHILD:
        return [node]
    return [node, *descendants(tree, left), *descendants(tree, right)]


def depths(tree: Tree, node: int = 0, depth: int = 0) -> dict[int, int]:
    """Return the depth of a node and of everything below it."""
    out = {node: depth}
    for child in tree.children[node]:
        if child != NO_CHILD:
            out |= depths(tree, int(child), depth + 1)
    return out


# -- routing and scoring ---------------------------------------------------------------------------


def side(router: Router, x: np.ndarray) -> int:
    """Return the child that a router sends a row to."""
    score = float(router.bias)
    for feature, weight in zip(router.features, router.weights, strict=True):
        score += float(weight) * float(x[feature])
    return 1 if score >= 0.0 else 0


def path(tree: Tree, x: np.ndarray, node: int = 0) -> list[int]:
    """Return the nodes that a row visits, from ``node`` to its leaf."""
    if tree.children[node, 0] == NO_CHILD:
        return [node]
    child = int(tree.children[node, side(tree.router(node), x)])
    return [node, *path(tree, x, child)]


def leaf_of(tree: Tree, x: np.ndarray, node: int = 0) -> int:
    """Return the leaf that a row reaches from ``node``."""
    return path(tree, x, node)[-1]


def reach_sets(tree: Tree, X: np.ndarray) -> list[set[int]]:
    """Return the rows that reach each node."""
    out: list[set[int]] = [set() for _ in range(tree.n_nodes)]
    for i, x in enumerate(X):
        for node in path(tree, x):
            out[node].add(i)
    return out


def path_probability(
    tree: Tree, x: np.ndarray, node: int = 0, p: float = 1.0, *, certain: bool = False
) -> dict[int, float]:
    """Return, for a node and everything below it, how probably a row goes there.

    With ``certain``, a router without weights has no doubt.
    """
    out = {node: p}
    left, right = (int(child) for child in tree.children[node])
    if left == NO_CHILD:
        return out
    router = tree.router(node)
    score = float(router.bias) + float(router.weights.astype(np.float64) @ x[router.features])
    go_right = 1.0 / (1.0 + np.exp(-score))
    if certain and not router.weights.any():
        go_right = float(score >= 0.0)
    out |= path_probability(tree, x, left, p * (1.0 - go_right), certain=certain)
    return out | path_probability(tree, x, right, p * go_right, certain=certain)


def leaf_scores(leaf: Leaf, x: np.ndarray) -> np.ndarray:
    """Return Wx + b of a leaf, one score for each of its classes."""
    scores = leaf.bias.astype(np.float64)
    for feature, weights in zip(leaf.features, leaf.weights, strict=True):
        scores = scores + float(x[feature]) * weights.astype(np.float64)
    return scores


def log_sum_exp(scores: np.ndarray) -> float:
    wide = np.asarray(scores, dtype=np.float64)
    return float(wide.max() + np.log(np.exp(wide - wide.max()).sum()))


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(np.asarray(scores, dtype=np.float64) - log_sum_exp(scores))


def outcome(leaf: Leaf, x: np.ndarray, label: int) -> tuple[float, bool]:
    """Return a row's cross-entropy at a leaf (∞ if its class is absent), and if it is right."""
    classes = leaf.classes.tolist()
    if label not in classes:
        return np.inf, False
    scores = leaf_scores(leaf, x)
    slot = classes.index(label)
    return log_sum_exp(scores) - scores[slot], int(np.argmax(scores)) == slot


def predict(tree: Tree, x: np.ndarray) -> int:
    """Return the top class of the leaf that a row reaches."""
    leaf = tree.leaf(leaf_of(tree, x))
    return int(leaf.classes[np.argmax(leaf_scores(leaf, x))])


# -- probabilities over all classes ----------------------------------------------------------------


def leaf_distribution(
    tree: Tree, node: int, x: np.ndarray, backoff: Backoff | None = None, epsilon: float = 0.0
) -> np.ndarray:
    """Return what a leaf says of every class: its softmax, and the classes outside it."""
    leaf = tree.leaf(node)
    k, inside = leaf.classes.size, softmax(leaf_scores(leaf, x))
    if backoff is None:
        each = min(epsilon, 0.999 / k)
        p = np.full(tree.n_classes, each)
        p[leaf.classes] = inside
        return p / (1.0 + each * (tree.n_classes - k))
    q = backoff.prior.copy()
    for t in range(backoff.ptr[node], backoff.ptr[node + 1]):
        q[backoff.ids[t]] += backoff.counts[t]
    q[leaf.classes] = 0.0
    if not q.any():
        return inside
    p = backoff.mass[node] * q / q.sum()
    p[leaf.classes] = (1.0 - backoff.mass[node]) * inside
    return p


def beam_search(tree: Tree, x: np.ndarray, beam: int) -> dict[int, float]:
    """Return the leaves of the most probable paths, level by level, with probabilities."""
    paths = {0: 1.0}
    while any(tree.children[node, 0] != NO_CHILD for node in paths):
        below: dict[int, float] = {}
        for node, p in paths.items():
            if tree.children[node, 0] == NO_CHILD:
                below[node] = p
            else:
                reached = path_probability(tree, x, node, p)
                below |= {int(child): reached[int(child)] for child in tree.children[node]}
        kept = sorted(below, key=below.__getitem__, reverse=True)[:beam]
        paths = {node: below[node] for node in kept}
    total = sum(paths.values())
    return {leaf: p / total for leaf, p in paths.items()}


def class_probability(
    tree: Tree,
    x: np.ndarray,
    beam: int = 1,
    backoff: Backoff | None = None,
    epsilon: float = 0.0,
) -> np.ndarray:
    """Return the probability of every class: of one path's leaf, or mixed over those of a beam."""
    leaves = {leaf_of(tree, x): 1.0} if beam == 1 else beam_search(tree, x, beam)
    parts = [w * leaf_distribution(tree, i, x, backoff, epsilon) for i, w in leaves.items()]
    return np.sum(parts, axis=0)


def soft_probability(
    tree: Tree, x: np.ndarray, backoff: Backoff | None = None, epsilon: float = 0.0
) -> np.ndarray:
    """Return the probability of every class when all paths are followed."""
    p = path_probability(tree, x)
    leaves = [node for node in p if tree.children[node, 0] == NO_CHILD]
    parts = [p[i] * leaf_distribution(tree, i, x, backoff, epsilon) for i in leaves]
    return np.sum(parts, axis=0)


def dequantized(tree: Tree, weights: str) -> Tree:
    """Return the tree whose leaf weights are what is left of them in a smaller type."""
    leaves = {}
    for node in np.flatnonzero(tree.is_leaf).tolist():
        leaf = tree.leaf(node)
        W = leaf.weights
        if weights == "float16":
            W = W.astype(np.float16)
        elif weights == "int8":
            top = np.abs(W).max(axis=0, initial=0.0)
            scale = np.where(top > 0.0, top / np.float32(127.0), np.float32(1.0))
            W = np.rint(W / scale) * scale
        leaves[node] = Leaf(leaf.classes, leaf.features, W.astype(np.float32), leaf.bias)
    return tree.replace(leaves)


# -- losses ----------------------------------------------------------------------------------------


def row_loss(objective: Objective, cross_entropy: float, correct: bool) -> float:
    """Return one row's loss by the three ways of section 4.1."""
    if objective.absent == "zero_one":
        return 0.0 if correct else 1.0
    if objective.absent == "constant" and np.isinf(cross_entropy):
        return objective.beta
    return cross_entropy


def loss_from(
    tree: Tree, node: int, x: np.ndarray, label: int, objective: Objective
) -> tuple[float, bool]:
    """Send one row down from a node; return its loss there and whether it is right."""
    cross_entropy, correct = outcome(tree.leaf(leaf_of(tree, x, node)), x, label)
    return row_loss(objective, cross_entropy, correct), correct


def tree_losses(
    tree: Tree, X: np.ndarray, y: np.ndarray, objective: Objective
) -> tuple[np.ndarray, np.ndarray]:
    """Return every row's loss and outcome."""
    pairs = [loss_from(tree, 0, x, int(label), objective) for x, label in zip(X, y, strict=True)]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=bool)


def penalty_of(penalty: Penalty, weights: np.ndarray) -> float:
    wide = weights.astype(np.float64)
    return float(penalty.l1 * np.abs(wide).sum() + penalty.ridge / 2.0 * (wide**2).sum())


def objective_of(
    tree: Tree, X: np.ndarray, y: np.ndarray, weight: np.ndarray, objective: Objective
) -> float:
    """Return E (equation 1); an infinite loss counts as β."""
    losses, _ = tree_losses(tree, X, y, objective)
    finite = [v if np.isfinite(v) else objective.beta for v in losses]
    total = float(sum(w * v for w, v in zip(weight, finite, strict=True)))
    for node in range(tree.n_nodes):
        item = tree.node(node)
        which = objective.routers if isinstance(item, Router) else objective.leaves
        total += penalty_of(which, item.weights)
    return total


# -- node problems ---------------------------------------------------------------------------------


def logistic_loss(
    X: np.ndarray, target: np.ndarray, weight: np.ndarray, W: np.ndarray, b: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return Σ cᵢ log(1 + exp(-ỹᵢ(w·xᵢ + b))) with its gradients; ``W`` has shape (d, 1)."""
    score = X @ W[:, 0] + b[0]
    sign = np.where(target == 1, 1.0, -1.0)
    loss = weight @ np.logaddexp(0.0, -sign * score)
    slope = -weight * sign * np.exp(-np.logaddexp(0.0, sign * score))
    return float(loss), (X.T @ slope)[:, None], np.array([slope.sum()])


def softmax_loss(
    X: np.ndarray, target: np.ndarray, weight: np.ndarray, W: np.ndarray, b: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return Σ sᵢ (log Σ exp(scores) - own score) with its gradients; ``W`` has shape (d, k)."""
    scores = X @ W + b
    top = scores.max(axis=1, keepdims=True)
    log_sum = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
    own = scores[np.arange(target.size), target]
    slope = np.exp(scores - log_sum[:, None])
    slope[np.arange(target.size), target] -= 1.0
    slope *= weight[:, None]
    return float(weight @ (log_sum - own)), X.T @ slope, slope.sum(axis=0)


Loss = Callable[..., tuple[float, np.ndarray, np.ndarray]]


def squared_hinge(
    X: np.ndarray, target: np.ndarray, weight: np.ndarray, n_targets: int, ridge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, biases and dual variables of each class against the others.

    Coordinate descent in the dual, row after row, until nothing moves. The bias is a weight of one
    more feature, whose value is the length of a usual row.
    """
    square = (X**2).sum(axis=1)
    length = np.sqrt(weight @ square / weight.sum())
    wide = np.column_stack([X, np.full(len(X), length)])
    slack = 0.5 * ridge / weight
    W = np.zeros((wide.shape[1], n_targets))
    alpha = np.zeros((len(X), n_targets))
    for c in range(n_targets):
        y = np.where(target == c, 1.0, -1.0)
        for _ in range(20_000):
            before = alpha[:, c].copy()
            for i, x in enumerate(wide):
                gradient = y[i] * (x @ W[:, c]) - 1.0 + slack[i] * alpha[i, c]
                new = max(alpha[i, c] - gradient / (x @ x + slack[i]), 0.0)
                W[:, c] += (new - alpha[i, c]) * y[i] * x
                alpha[i, c] = new
            if np.abs(alpha[:, c] - before).max() <= 1e-7 * max(alpha[:, c].max(), 1e-30):
                break
    return W[:-1], W[-1] * length, alpha


def squared_hinge_objective(
    X: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    ridge: float,
    W: np.ndarray,
    b: np.ndarray,
) -> float:
    """Return what the margins of each class against the others cost, summed over the classes."""
    mean_square = weight @ (X**2).sum(axis=1) / weight.sum()
    y = np.where(target[:, None] == np.arange(W.shape[1]), 1.0, -1.0)
    missing = np.maximum(1.0 - y * (X @ W + b), 0.0)
    cost = (W**2).sum() + (b**2).sum() / mean_square
    return float((weight @ missing**2).sum() + 0.5 * ridge * cost)


def minimum(
    loss: Loss, X: np.ndarray, target: np.ndarray, weight: np.ndarray, k: int, penalty: Penalty
) -> float:
    """Return the least penalised loss: L-BFGS-B in float64 on W = P - N with P, N ≥ 0."""
    d = X.shape[1]

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        P, N = theta[: 2 * d * k].reshape(2, d, k)
        b = theta[2 * d * k :]
        W = P - N
        smooth, dW, db = loss(X, target, weight, W, b)
        dW = dW + penalty.ridge * W
        smooth += penalty.l1 * (P + N).sum() + penalty.ridge / 2.0 * (W**2).sum()
        gradient = np.concatenate([(dW + penalty.l1).ravel(), (penalty.l1 - dW).ravel(), db])
        return smooth, gradient

    theta, least = np.zeros(2 * d * k + k), np.inf
    for _ in range(10):  # it may stop early: start again where it stopped
        found = minimize(
            value,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * d * k) + [(None, None)] * k,
            options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30},
        )
        theta = found.x
        if found.fun >= least * (1.0 - 1e-9):
            break
        least = float(found.fun)
    return float(found.fun)


# -- growth ----------------------------------------------------------------------------------------


def merge_order(means: np.ndarray, mass: np.ndarray) -> list[int]:
    """Return the leaf of each cluster by Algorithm 2: at each depth, merge the closest two left."""
    clusters: list[tuple[list[int], np.ndarray, float]] = [
        ([i], means[i], float(mass[i])) for i in range(len(mass))
    ]
    while len(clusters) > 1:
        parents = []
        while clusters:
            a, b = min(
                combinations(range(len(clusters)), 2),
                key=lambda pair: np.linalg.norm(clusters[pair[0]][1] - clusters[pair[1]][1]),
            )
            first, second = clusters[a], clusters[b]
            total = first[2] + second[2]
            mean = (first[2] * first[1] + second[2] * second[1]) / total
            parents.append((first[0] + second[0], mean, total))
            clusters = [c for at, c in enumerate(clusters) if at not in (a, b)]
        clusters = parents
    return np.argsort(clusters[0][0]).tolist()


Nested = tuple  # ("leaf", classes, features, weights, bias) or ("router", …, left, right)


def nested(tree: Tree, node: int = 0) -> Nested:
    """Return a subtree as nested tuples, free of node numbers."""
    if tree.children[node, 0] == NO_CHILD:
        return _nested_leaf(tree.leaf(node))
    left, right = (nested(tree, int(child)) for child in tree.children[node])
    return _nested_router(tree.router(node), left, right)


def pruned(tree: Tree, reached: Sequence[bool] | None = None, node: int = 0) -> Nested:
    """Return a subtree without dead children, routers without weights, and pure subtrees."""
    left, right = (int(child) for child in tree.children[node])
    if left == NO_CHILD:
        leaf = tree.leaf(node)
        pure = leaf.classes.size == 1
        return _nested_leaf(Leaf.constant(int(leaf.classes[0])) if pure else leaf)
    if reached is not None and reached[left] != reached[right]:
        return pruned(tree, reached, left if reached[left] else right)
    router = tree.router(node)
    if not any(router.weights):
        return pruned(tree, reached, right if router.bias >= 0.0 else left)
    below = pruned(tree, reached, left), pruned(tree, reached, right)
    classes = [c[1] for c in below if c[0] == "leaf"]
    if len(classes) == 2 and classes[0] == classes[1] and len(classes[0]) == 1:
        return below[0]
    return _nested_router(router, *below)


def _nested_leaf(leaf: Leaf) -> Nested:
    parts = (leaf.classes, leaf.features, leaf.weights, leaf.bias)
    return ("leaf", *(tuple(part.ravel().tolist()) for part in parts))


def _nested_router(router: Router, left: Nested, right: Nested) -> Nested:
    features, weights = tuple(router.features.tolist()), tuple(router.weights.tolist())
    return ("router", features, weights, float(router.bias), left, right)

"""A LOMTree that owns its arrays: they grow as :mod:`thinleaf.online.lom_tree` asks."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    NO_CHILD,
    OFFSET,
    PARAM,
    AccumArray,
    IndexArray,
    OffsetArray,
)
from thinleaf.arrays.rows import Rows, n_rows_of
from thinleaf.online.growable import (
    check_models,
    check_scales,
    check_tables,
    first_models,
    learn_in_pieces,
    require,
    with_models,
    with_slots,
)
from thinleaf.online.linear_models import Scratch, new_models, new_scratch
from thinleaf.online.lom_tree import (
    DEEPEST,
    LEFT,
    MAJORITY,
    N_ROUTERS,
    PARENT,
    RIGHT,
    ROOT,
    ROUTER,
    SEEN,
    LomTree,
    Settings,
    find_leaves,
    learn_rows,
)
from thinleaf.online.scaled_rows import Stream, longest, new_scales
from thinleaf.online.softmax_form import Unrolled, breadth_first, no_weights, plain_weights
from thinleaf.online.tables import (
    EMPTY,
    LOG_SIZE,
    START,
    contents,
    enlarged,
    first_owners,
    new_tables,
    padded,
)

_AHEAD = 1.0 + 1e-9
"""What puts the prediction before labels that are as frequent."""


class LomTreeModel:
    """A LOMTree and its settings.

    Parameters
    ----------
    n_features : int
    settings : Settings
    dense : bool
        Whether rows are dense.
    """

    def __init__(self, n_features: int, settings: Settings, *, dense: bool) -> None:
        self.settings = settings
        self._n_features = n_features
        self.state = LomTree(
            _new_nodes(1),
            np.zeros((1, 4), dtype=ACCUM),
            new_tables(1, 3, ACCUM),
            new_models(1, n_features, 0, dense=dense),
            new_scales(n_features),
            np.array([1, 0, 0], dtype=OFFSET),
        )

    def learn(self, stream: Stream, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned."""
        scratch = self._scratch(stream.X)

        def step(done: int, predicted: IndexArray, needed: OffsetArray) -> int:
            return learn_rows(self.state, stream, done, self.settings, scratch, predicted, needed)

        return learn_in_pieces(step, self._enlarge, stream.order.size, 3)

    def predict(self, X: Rows) -> IndexArray:
        """Return the most frequent label of the leaf that each row reaches."""
        labels: IndexArray = self.state.nodes[self.leaves(X), MAJORITY]
        return labels

    def leaves(self, X: Rows) -> IndexArray:
        """Return the leaf that each row reaches."""
        out = np.empty(n_rows_of(X), dtype=INDEX)
        find_leaves(self.state, X, self._scratch(X), out)
        return out

    def shortlists(self, X: Rows) -> tuple[IndexArray, AccumArray]:
        """Return the leaf that each row reaches, and the logarithms of its label counts."""
        leaves = self.leaves(X)
        logs = {leaf: np.log(self._counts(leaf)[1]) for leaf in np.unique(leaves).tolist()}
        scores = np.zeros((leaves.size, max(log.size for log in logs.values())), dtype=ACCUM)
        for leaf, log in logs.items():
            scores[leaves == leaf, : log.size] = log
        return leaves, scores

    def candidates(self, node: int) -> IndexArray:
        """Return the labels that a leaf has seen, or that of its parent."""
        return self._counts(node)[0]

    def outside(self, node: int) -> float:
        """Return the estimated probability of labels that a leaf has not seen."""
        return float(0.5 / (self._counts(node)[1].sum() + 1.0))

    def _counts(self, leaf: int) -> tuple[IndexArray, AccumArray]:
        """Return the labels of a leaf, its prediction first, and their counts."""
        table = self.state.labels
        start = int(table.owners[leaf, START])
        majority = self.state.nodes[leaf, MAJORITY]
        if start == EMPTY:
            return np.array([majority], dtype=INDEX), np.ones(1, dtype=ACCUM)
        slots = slice(start, start + (1 << int(table.owners[leaf, LOG_SIZE])))
        keys, counts = table.keys[slots], table.values[slots, SEEN]
        held = keys != EMPTY
        order = np.lexsort((keys[held], keys[held] != majority))
        counts = counts[held][order]
        counts[0] *= _AHEAD
        return keys[held][order], counts

    def unrolled(self, n_classes: int) -> Unrolled:
        """Return the tree that predicts as this model does now."""
        state = self.state
        children, source = breadth_first(ROOT, self._next_nodes)
        is_leaf = children[:, 0] == NO_CHILD
        router = np.where(is_leaf, 0, state.nodes[source, ROUTER])
        counts = [
            self._counts(node) if leaf else (np.empty(0, INDEX), np.empty(0, ACCUM))
            for node, leaf in zip(source.tolist(), is_leaf, strict=True)
        ]
        # f(x) > 0 leads right here; there, f(x) >= 0 does, so that sides are swapped
        return Unrolled(
            children,
            router,
            np.where(is_leaf, 0, -state.routers.bias[router, 0]).astype(PARAM),
            -plain_weights(state.routers, state.scales, state.routers.bias.shape[0]),
            [labels for labels, _ in counts],
            [np.log(count).astype(PARAM) for _, count in counts],
            np.array([self.outside(node) for node in source], dtype=ACCUM),
            no_weights(n_classes, self._n_features),
        )

    def _next_nodes(self, node: int) -> tuple[int, int] | None:
        left, right = self.state.nodes[node, : RIGHT + 1].tolist()
        return None if left == NO_CHILD else (right, left)

    def trimmed(self, n_classes: int) -> LomTree:
        """Return the state without room for what is to come."""
        state = self.state
        n, n_routers = state.sizes[: N_ROUTERS + 1].tolist()
        return LomTree(
            state.nodes[:n],
            state.stats[:n],
            first_owners(state.labels, n),
            first_models(state.routers, max(n_routers, 1), 0),
            state.scales,
            state.sizes,
        )

    def check(self, n_classes: int) -> None:
        """Raise ``ValueError`` unless kernels may work with a state that was stored."""
        state, n_features = self.state, self._n_features
        n, n_routers = state.nodes.shape[0], (state.nodes.shape[0] - 1) // 2
        require(state.nodes.shape == (n, 5) and n % 2 == 1, "nodes must have five columns")
        sizes = state.sizes
        require(sizes.shape == (3,) and sizes[:DEEPEST].tolist() == [n, n_routers], "sizes differ")
        require(state.stats.shape == (n, 4), "stats must have four columns")
        majority = state.nodes[:, MAJORITY]
        require(bool(np.all((majority >= EMPTY) & (majority < n_classes))), "labels out of range")
        depth = _check_structure(state.nodes)
        require(depth <= sizes[DEEPEST] <= self.settings.max_depth, "the tree is too deep")
        check_tables("labels", state.labels, n, n_classes)
        held = contents(state.labels, n)  # room for all tables is made by that of the root
        known = bool(np.all(np.isin(held.keys, held.keys[: held.ptr[1]])))
        require(known, "a node has labels that the root has not")
        check_models("routers", state.routers, max(n_routers, 1), n_features, 0)
        check_scales(state.scales, n_features)

    def _scratch(self, X: Rows) -> Scratch:
        return new_scratch(longest(X), 0, dense=isinstance(X, np.ndarray))

    def _enlarge(self, nodes: int, labels: int, routing: int) -> None:
        state = self.state
        held = state.nodes.shape[0]
        if nodes > held:
            nodes = max(nodes, 2 * held)
            state = state._replace(
                nodes=np.concatenate([state.nodes, _new_nodes(nodes - held)]),
                stats=padded(state.stats, nodes, 0),
            )
        nodes = state.nodes.shape[0]
        self.state = state._replace(
            labels=enlarged(state.labels, nodes, labels),
            routers=with_slots(with_models(state.routers, max(nodes // 2, 1)), routing),
        )


def _new_nodes(n_nodes: int) -> IndexArray:
    return np.full((n_nodes, 5), NO_CHILD, dtype=INDEX)


def _check_structure(nodes: IndexArray) -> int:
    """Raise ``ValueError`` unless nodes are a tree, each inner one with a router; return its depth.

    Nodes take each other's places over time, so children may come before their parent.
    """
    n = nodes.shape[0]
    require(bool(np.all((nodes[:, :PARENT] >= NO_CHILD) & (nodes[:, :PARENT] < n))), "no tree")
    inner = np.flatnonzero(nodes[:, LEFT] != NO_CHILD)
    require(np.array_equal(np.sort(nodes[inner, ROUTER]), np.arange(inner.size)), "no routers")
    require(nodes[ROOT, PARENT] == NO_CHILD, "the root must have no parent")
    level, n_reached, depth = np.array([ROOT]), 1, 0
    while True:
        level = level[nodes[level, LEFT] != NO_CHILD]
        below = nodes[level, :PARENT]
        n_reached += below.size
        require(bool(np.all(below >= 0)) and n_reached <= n, "no tree")
        require(bool(np.all(nodes[below, PARENT] == level[:, None])), "a parent is wrong")
        if below.size == 0:
            break
        level, depth = below.ravel(), depth + 1
    require(n_reached == n, "no tree")
    return depth

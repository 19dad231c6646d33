"""A LOMTree that owns its arrays: they grow as :mod:`thinleaf.online.lom_tree` asks."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, OFFSET, AccumArray, IndexArray
from thinleaf.kernels.rows import Rows, n_rows_of
from thinleaf.online.growing import with_models, with_slots
from thinleaf.online.linear import Scratch, new_models, new_scratch
from thinleaf.online.lom_tree import (
    MAJORITY,
    SEEN,
    LomTree,
    Settings,
    find_leaves,
    learn_rows,
)
from thinleaf.online.rows import Stream, longest, new_scales
from thinleaf.online.tables import EMPTY, LOG_SIZE, START, enlarged, new_tables, padded

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
        predicted = np.empty(stream.order.size, dtype=INDEX)
        needed = np.zeros(3, dtype=OFFSET)
        done = 0
        while True:
            done = learn_rows(self.state, stream, done, self.settings, scratch, predicted, needed)
            if done == predicted.size:
                return predicted
            self._enlarge(*needed.tolist())

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
            routers=with_slots(with_models(state.routers, nodes), routing),
        )


def _new_nodes(n_nodes: int) -> IndexArray:
    return np.full((n_nodes, 5), NO_CHILD, dtype=INDEX)

"""A Recall Tree that owns its arrays: they grow as :mod:`thinleaf.online.recall_tree` asks."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, OFFSET, AccumArray, IndexArray
from thinleaf.kernels.rows import Rows, n_rows_of
from thinleaf.online.frozen import FrozenRecallTree
from thinleaf.online.growing import with_models, with_slots
from thinleaf.online.histogram import (
    HELD,
    MOST_CANDIDATES,
    TOTAL,
    enlarged_histograms,
    new_histograms,
)
from thinleaf.online.linear import Scratch, new_models, new_scratch
from thinleaf.online.recall_tree import (
    DEPTH,
    RecallTree,
    Settings,
    learn_rows,
    predict_rows,
    score_rows,
)
from thinleaf.online.rows import Stream, longest, new_scales


class RecallTreeModel:
    """A Recall Tree and its settings.

    Parameters
    ----------
    n_features : int
    settings : Settings
    dense : bool
        Whether rows are dense.
    """

    def __init__(self, n_features: int, settings: Settings, *, dense: bool) -> None:
        self.settings = settings
        self.state = RecallTree(
            _new_nodes(1),
            new_histograms(1, settings.max_candidates or MOST_CANDIDATES),
            new_models(1, n_features, 0, dense=dense),
            new_models(1, n_features, 1, dense=dense),
            new_scales(n_features),
            np.array([1, settings.max_candidates], dtype=OFFSET),
        )

    def learn(self, stream: Stream, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned.

        Returns
        -------
        predicted : ndarray of shape (n_rows,)
            Class ids, -1 where there was no class yet.
        """
        regressors = with_models(self.state.regressors, n_classes)
        self.state = self.state._replace(regressors=regressors)
        scratch = self._scratch(stream.X)
        predicted = np.empty(stream.order.size, dtype=INDEX)
        needed = np.zeros(5, dtype=OFFSET)
        done = 0
        while True:
            done = learn_rows(self.state, stream, done, self.settings, scratch, predicted, needed)
            if done == predicted.size:
                return predicted
            self._enlarge(*needed.tolist())

    def predict(self, X: Rows) -> IndexArray:
        """Return the best candidate of each row."""
        best = np.empty(n_rows_of(X), dtype=INDEX)
        predict_rows(self.state, X, self.settings, self._scratch(X), best)
        return best

    def shortlists(self, X: Rows) -> tuple[IndexArray, AccumArray]:
        """Return the node that each row reaches, and the scores of its candidates."""
        nodes = np.empty(n_rows_of(X), dtype=INDEX)
        scores = np.empty((nodes.size, self.state.histograms.candidates.shape[1]), dtype=ACCUM)
        score_rows(self.state, X, self.settings, self._scratch(X), nodes, scores)
        return nodes, scores

    def candidates(self, node: int) -> IndexArray:
        """Return the classes that a node's scores are of."""
        histograms = self.state.histograms
        return histograms.candidates[node, : histograms.n_candidates[node]]

    def outside(self, node: int) -> float:
        """Return the share of labels at a node that are no candidates, half a label added."""
        stats = self.state.histograms.stats[node]
        return float((max(stats[TOTAL] - stats[HELD], 0.0) + 0.5) / (stats[TOTAL] + 1.0))

    def freeze(self) -> FrozenRecallTree:
        """Return a copy that only predicts, quickly for single rows, too."""
        return FrozenRecallTree(self.state, self.settings)

    def _scratch(self, X: Rows) -> Scratch:
        return new_scratch(longest(X), self.settings.max_depth, dense=isinstance(X, np.ndarray))

    def _enlarge(self, nodes: int, counts: int, paths: int, weights: int, routing: int) -> None:
        state = self.state
        held = state.nodes.shape[0]
        if nodes > held:
            more = _new_nodes(max(nodes, 2 * held) - held)
            state = state._replace(nodes=np.concatenate([state.nodes, more]))
        nodes = state.nodes.shape[0]
        self.state = state._replace(
            histograms=enlarged_histograms(state.histograms, nodes, counts),
            routers=with_slots(with_models(state.routers, nodes), routing),
            regressors=with_slots(state.regressors, weights, nodes, paths),
        )


def _new_nodes(n_nodes: int) -> IndexArray:
    nodes = np.full((n_nodes, 3), NO_CHILD, dtype=INDEX)
    nodes[:, DEPTH] = 0
    return nodes

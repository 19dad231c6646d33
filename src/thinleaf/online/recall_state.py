"""A Recall Tree that lives: it grows its arrays as kernels ask for room, and can be stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, NO_CHILD, OFFSET, AccumArray, IndexArray
from thinleaf.kernels.rows import Rows
from thinleaf.online.histogram import MOST_CANDIDATES, enlarged_histograms, new_histograms
from thinleaf.online.linear import Models, new_models, new_scratch
from thinleaf.online.recall_tree import (
    DEPTH,
    RecallTree,
    Settings,
    learn_rows,
    predict_rows,
    score_rows,
)
from thinleaf.online.rows import longest, new_scales
from thinleaf.online.tables import Tables, enlarged, padded


class OnlineRecallTree:
    """A Recall Tree and its settings."""

    def __init__(self, n_features: int, settings: Settings, *, dense: bool) -> None:
        self.settings = settings
        width = settings.max_candidates or MOST_CANDIDATES
        self.tree = RecallTree(
            _new_nodes(1),
            new_histograms(1, width),
            new_models(1, n_features, 0, dense=dense),
            new_models(1, n_features, 1, dense=dense),
            new_scales(n_features),
            np.array([1, settings.max_candidates], dtype=OFFSET),
        )

    def learn(self, X: Rows, labels: IndexArray, weights: AccumArray, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned."""
        regressors = _with_models(self.tree.regressors, n_classes)
        self.tree = self.tree._replace(regressors=regressors)
        scratch = new_scratch(longest(X), self.settings.max_depth, dense=isinstance(X, np.ndarray))
        predicted = np.empty(labels.size, dtype=INDEX)
        needed = np.zeros(5, dtype=OFFSET)
        done = 0
        while True:
            done = learn_rows(
                self.tree, X, done, labels, weights, self.settings, scratch, predicted, needed
            )
            if done == labels.size:
                return predicted
            self._enlarge(*needed.tolist())

    def predict(self, X: Rows, n_rows: int) -> IndexArray:
        scratch = new_scratch(longest(X), self.settings.max_depth, dense=isinstance(X, np.ndarray))
        nodes = np.empty(n_rows, dtype=INDEX)
        best = np.empty(n_rows, dtype=INDEX)
        predict_rows(self.tree, X, self.settings, scratch, nodes, best)
        return best

    def _enlarge(self, nodes: int, counts: int, paths: int, weights: int, routing: int) -> None:
        tree = self.tree
        more = max(nodes, 2 * tree.nodes.shape[0]) - tree.nodes.shape[0]
        if nodes > tree.nodes.shape[0]:
            tree = tree._replace(nodes=np.concatenate([tree.nodes, _new_nodes(more)]))
        nodes = tree.nodes.shape[0]
        self.tree = tree._replace(
            histograms=enlarged_histograms(tree.histograms, nodes, counts),
            routers=_with_slots(_with_models(tree.routers, nodes), routing, 0, 0),
            regressors=_with_slots(tree.regressors, weights, nodes, paths),
        )


def _new_nodes(n_nodes: int) -> IndexArray:
    nodes = np.full((n_nodes, 3), NO_CHILD, dtype=INDEX)
    nodes[:, DEPTH] = 0
    return nodes


def _with_models(models: Models, n_models: int) -> Models:
    if n_models <= models.bias.shape[0]:
        return models
    n_models = max(n_models, 2 * models.bias.shape[0])
    models = models._replace(bias=padded(models.bias, n_models, 0))
    if not isinstance(models.weights, Tables):
        models = models._replace(weights=padded(models.weights, n_models, 0))
    return models


def _with_slots(models: Models, slots: int, n_extra: int, extra_slots: int) -> Models:
    weights = models.weights
    if isinstance(weights, Tables):
        weights = enlarged(weights, 0, slots)
    return models._replace(weights=weights, extra=enlarged(models.extra, n_extra, extra_slots))

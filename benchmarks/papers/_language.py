"""What tables of language models say of a softmax tree: errors, perplexities, size and time."""

from __future__ import annotations

from typing import Any

import numpy as np

from thinleaf.measuring import metrics
from thinleaf.measuring.latency import batch_latency

COLUMNS = [
    "top-1 error %",
    "top-5 error %",
    "perplexity of covered rows",
    "coverage %",
    "smoothed perplexity",
    "depth",
    "leaves",
    "mean k",
    "FLOPs",
    "µs a row",
]

Rows = tuple[np.ndarray, np.ndarray]


def language_figures(model: Any, valid: Rows, test: Rows) -> list[float]:
    """Return the columns for a fitted tree; ε is chosen on the validation rows.

    Rows whose word the training part lacks count as errors, and have no probability.
    """
    X, y = test
    top, _ = model.predict_topk(X, 5)
    hard = metrics.perplexity(_probability(model, X, y)[0])
    epsilon = metrics.tune_epsilon(*_probability(model, *valid))
    shape = metrics.summarize(model.tree_)
    return [
        100 * float(np.mean(top[:, 0] != y)),
        100 * metrics.top_k_error(y, top),
        hard.value,
        100 * hard.coverage,
        metrics.smoothed_perplexity(*_probability(model, X, y), epsilon),
        shape.depth,
        shape.n_leaves,
        shape.mean_leaf_classes,
        model.mean_flops(X),
        batch_latency(lambda: model.predict(X), len(y)).median,
    ]


def _probability(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of known words the probability in their leaf, and how many words that leaf lacks."""
    known = np.isin(y, model.classes_)
    return model.label_proba(X[known], y[known], smooth=False), model.n_absent(X[known])

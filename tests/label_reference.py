"""Readable twins of the kernels of label trees: one row, one node at a time, in float64."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import NO_CHILD
from thinleaf.labeltree.model import LabelTreeModel


def node_probas(model: LabelTreeModel, n: int, w: np.ndarray) -> np.ndarray:
    """Return g_n(w), the distribution over the children of a node."""
    scores = model.weights[n].astype(np.float64) @ w + model.bias[n]
    if model.tree.arity == 2:
        scores = np.array([0.0, scores[0]])
    scores = np.where(model.tree.children[n] == NO_CHILD, -np.inf, scores)
    p = np.exp(scores - scores.max())
    return p / p.sum()


def representation(model: LabelTreeModel, x: np.ndarray) -> np.ndarray:
    return model.scale * (x.astype(np.float64) @ model.U)


def label_probas(model: LabelTreeModel, x: np.ndarray) -> np.ndarray:
    """Return the probability of every label, each as the product along its path."""
    w = representation(model, x)
    nodes = [node_probas(model, n, w) for n in range(model.tree.n_nodes)]
    return np.array(
        [
            np.prod([nodes[n][j] for n, j in model.tree.path(label)])
            for label in range(model.tree.n_labels)
        ]
    )


def log_likelihood(model: LabelTreeModel, x: np.ndarray, label: int) -> float:
    """Equation 5 of one example."""
    w = representation(model, x)
    return sum(float(np.log(node_probas(model, n, w)[j])) for n, j in model.tree.path(label))


def negligible(arity: int) -> float:
    """Return by how much the probability of a child may be off to be left alone."""
    return min(3.35e-4, 0.01 / (arity if arity > 2 else 1))


def step(model: LabelTreeModel, x: np.ndarray, label: int, rate: float, *, log: bool = True):
    """Return U, weights and bias after one example of algorithm 1."""
    U, weights, bias = (a.astype(np.float64) for a in (model.U, model.weights, model.bias))
    w = representation(model, x)
    rate = rate / (1.0 + 0.25 * rate * float(w @ w))
    delta = np.zeros_like(w)
    for n, target in model.tree.path(label):
        p = node_probas(model, n, w)
        error = np.eye(p.size)[target] - p
        error[np.abs(error) < negligible(model.tree.arity)] = 0.0
        g = error * (1.0 if log else p[target])
        if model.tree.arity == 2:
            g = g[1:]
        delta += g @ model.weights[n].astype(np.float64)
        weights[n] += rate * np.outer(g, w)
        bias[n] += rate * g
    U += rate * np.outer(model.scale * x, delta)
    return U, weights, bias

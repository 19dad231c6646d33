"""A flat softmax for thousands of classes: mini-batches with AdaGrad on the cross-entropy.

AdaGrad suits features of very different frequency. A step touches the weights of the features in
its batch alone, so a pass over sparse rows costs seconds even with thousands of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import INDEX, PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import as_matrix, n_features_of
from thinleaf.baselines.linear import single_leaf
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.tao import TrainingData

_START = 1e-8
"""What the sums of squared gradients begin with."""


@dataclass(frozen=True)
class PassRecord:
    """What is known after a pass over the rows."""

    number: int
    loss: float


@dataclass(frozen=True)
class Steps:
    """How to descend.

    Attributes
    ----------
    n_passes : int
    batch_size : int
    rate : float
        The length of AdaGrad's steps.
    """

    n_passes: int
    batch_size: int
    rate: float


def descend(
    data: TrainingData,
    steps: Steps,
    rng: np.random.Generator,
    progress: Callable[[PassRecord], None] | None = None,
) -> tuple[Tree, list[PassRecord]]:
    """Fit one softmax over all classes, without penalties.

    Returns
    -------
    tree : Tree
        Of one leaf.
    history : list of PassRecord
        With the mean loss of each pass, of every batch before its step.
    """
    X = sp.csr_array(as_matrix(data.X))
    weight = data.weight / data.weight.mean()
    state = _State.start(n_features_of(data.X), data.n_classes)
    history = []
    for number in range(1, steps.n_passes + 1):
        order = rng.permutation(data.n_rows)
        loss = 0.0
        for begin in range(0, order.size, steps.batch_size):
            rows = order[begin : begin + steps.batch_size]
            loss += state.step(X[rows], data.y[rows], weight[rows], steps.rate)
        history.append(PassRecord(number, loss / order.size))
        if progress is not None:
            progress(history[-1])
    features = np.arange(n_features_of(data.X), dtype=INDEX)
    return single_leaf(data, features, state.W, state.b), history


@dataclass(frozen=True)
class _State:
    """Weights and biases, and the sums of their squared gradients."""

    W: ParamArray
    b: ParamArray
    W_squares: ParamArray
    b_squares: ParamArray

    @classmethod
    def start(cls, n_features: int, n_classes: int) -> _State:
        shape = (n_features, n_classes)
        return cls(
            np.zeros(shape, PARAM),
            np.zeros(n_classes, PARAM),
            np.full(shape, _START, PARAM),
            np.full(n_classes, _START, PARAM),
        )

    def step(self, X: sp.csr_array, y: IndexArray, weight: AccumArray, rate: float) -> float:
        """Take one step on a batch; return its loss before it."""
        features, local = np.unique(X.indices, return_inverse=True)
        X = sp.csr_array((X.data, local.astype(INDEX), X.indptr), (y.size, features.size))
        P: ParamArray = X @ self.W[features] + self.b
        P -= P.max(axis=1, keepdims=True)
        np.exp(P, out=P)
        P /= P.sum(axis=1, keepdims=True)
        own = (np.arange(y.size), y)
        loss = -float(weight @ np.log(np.maximum(P[own], 1e-30)))
        P[own] -= 1.0
        P *= weight.astype(PARAM)[:, None]
        gradient: ParamArray = X.T.tocsr() @ P
        so_far = self.W_squares[features]
        so_far += gradient * gradient
        self.W_squares[features] = so_far
        gradient /= np.sqrt(so_far, out=so_far)
        self.W[features] -= PARAM(rate) * gradient
        b_gradient = P.sum(axis=0)
        self.b_squares[:] += b_gradient * b_gradient
        self.b[:] -= PARAM(rate) * b_gradient / np.sqrt(self.b_squares)
        return loss

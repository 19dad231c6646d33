"""Output layers of a language model: p(word | r), by a label tree or by a flat softmax.

Both are trained by Adagrad on the mean log-likelihood of a batch. A tree is re-assigned by
equation 12 under a depth limit (algorithm 3).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray, ParamArray
from thinleaf.labeltree.assign import Criterion, assign_labels
from thinleaf.labeltree.bilinear import LogBilinear
from thinleaf.labeltree.kernels.batch_steps import ascend, train_batch
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.model import LabelTreeNodes, Moves, initial_parameters
from thinleaf.labeltree.statistics import Statistics


class Output(Protocol):
    """What a language model needs of its output layer."""

    def train(
        self, R: ParamArray, y: IndexArray, rate: float, collect: bool
    ) -> tuple[float, ParamArray]:
        """Take a step; return the sum of losses, and the gradient with respect to R."""
        ...

    def label_log_proba(self, R: ParamArray, y: IndexArray) -> ParamArray:
        """Return the log-probability of one word of each row."""
        ...

    def log_proba(self, R: ParamArray) -> ParamArray:
        """Return the log-probability of every word."""
        ...

    def topk(self, R: ParamArray, k: int) -> tuple[IndexArray, ParamArray]:
        """Return the k most probable words, best first, and their log-probabilities."""
        ...


class _Memory(NamedTuple):
    """Sums of squared gradients (Adagrad), and what nodes know of their words."""

    weight_squares: ParamArray
    bias_squares: ParamArray
    statistics: Statistics


class TreeOutput:
    """A label tree over the words.

    Parameters
    ----------
    nodes : LabelTreeNodes
    max_depth : int or None
        Of the trees that it is re-assigned to.
    criterion : {"log_likelihood", "probability"}
        Equation 12 or 10.
    inertia : float
        By what factor another child must be better for a word to leave its own.
    """

    def __init__(
        self,
        nodes: LabelTreeNodes,
        max_depth: int | None = None,
        criterion: Criterion = "log_likelihood",
        inertia: float = 1.0,
    ) -> None:
        self.max_depth, self.inertia = max_depth, inertia
        self.criterion: Criterion = criterion
        self.nodes = nodes
        self._memory: _Memory | None = None

    @classmethod
    def start(
        cls,
        tree: LabelTree,
        dim: int,
        max_depth: int | None = None,
        criterion: Criterion = "log_likelihood",
        inertia: float = 1.0,
    ) -> TreeOutput:
        """Return what training starts from: nodes that know nothing."""
        nodes = LabelTreeNodes(tree, *initial_parameters(tree, dim))
        return cls(nodes, max_depth, criterion, inertia)

    @property
    def tree(self) -> LabelTree:
        """The tree as it is now."""
        return self.nodes.tree

    @property
    def memory(self) -> _Memory:
        """What training remembers, from its first step on."""
        if self._memory is None:
            weights, bias = self.nodes.weights, self.nodes.bias
            statistics = Statistics.zeros(self.tree, weights.shape[2])
            self._memory = _Memory(np.zeros_like(weights), np.zeros_like(bias), statistics)
        return self._memory

    def forget(self) -> None:
        """Keep only what prediction needs."""
        self._memory = None

    def train(
        self, R: ParamArray, y: IndexArray, rate: float, collect: bool
    ) -> tuple[float, ParamArray]:
        """Take a step; return the sum of losses, and the gradient with respect to R."""
        delta = np.empty_like(R)
        tree, (weight_squares, bias_squares, statistics) = self.tree, self.memory
        loss = train_batch(
            R, y, rate, collect, self.nodes.weights, self.nodes.bias,
            weight_squares, bias_squares,
            tree.path_ptr, tree.path_nodes, tree.path_branches,
            statistics.sum_probas, statistics.counts,
            statistics.label_sums, statistics.label_counts, delta,
        )  # fmt: skip
        return loss, delta

    def assign(self) -> None:
        """Re-assign the words; nodes that stay keep their parameters."""
        if self.tree.n_nodes == 0:
            return
        weight_squares, bias_squares, statistics = self.memory
        tree, origin, statistics = assign_labels(
            self.tree,
            statistics,
            self.nodes.weights,
            self.nodes.bias,
            criterion=self.criterion,
            max_depth=self.max_depth,
            inertia=self.inertia,
        )
        moves = Moves.of(self.tree, tree, origin)
        self.nodes = self.nodes.rebuilt(tree, origin)
        self._memory = _Memory(
            _kept(weight_squares, origin, moves), _kept(bias_squares, origin, moves), statistics
        )

    def label_log_proba(self, R: ParamArray, y: IndexArray) -> ParamArray:
        """Return the log-probability of one word of each row."""
        return self.nodes.label_log_proba(R, y)

    def log_proba(self, R: ParamArray) -> ParamArray:
        """Return the log-probability of every word."""
        return self.nodes.log_proba(R)

    def topk(self, R: ParamArray, k: int) -> tuple[IndexArray, ParamArray]:
        """Return the k most probable words, by branch and bound."""
        return self.nodes.topk(R, k)


class FlatOutput:
    """A softmax over all words, whose weights are the embeddings U, as in section 6."""

    def __init__(self, core: LogBilinear, n_words: int) -> None:
        self._core = core
        self._n_words = n_words
        self.bias: ParamArray = np.zeros((1, n_words), dtype=PARAM)
        self.bias_squares: ParamArray = np.zeros_like(self.bias)

    @property
    def _words(self) -> ParamArray:
        return self._core.U[: self._n_words]

    def train(
        self, R: ParamArray, y: IndexArray, rate: float, collect: bool
    ) -> tuple[float, ParamArray]:
        """Take a step; return the sum of losses, and the gradient with respect to R."""
        logp = self.log_proba(R)
        rows = np.arange(y.size)
        loss = -float(logp[rows, y].sum(dtype=np.float64))
        g = np.exp(logp, out=logp)
        g *= np.float32(-1.0 / y.size)
        g[rows, y] += np.float32(1.0 / y.size)
        delta: ParamArray = g @ self._words
        ascend(self._words, g.T @ R, self._core.U_squares[: self._n_words], rate)
        ascend(self.bias, g.sum(axis=0, keepdims=True), self.bias_squares, rate)
        return loss, delta

    def label_log_proba(self, R: ParamArray, y: IndexArray) -> ParamArray:
        """Return the log-probability of one word of each row."""
        out: ParamArray = self.log_proba(R)[np.arange(y.size), y]
        return out

    def log_proba(self, R: ParamArray) -> ParamArray:
        """Return the log-probability of every word."""
        scores: ParamArray = R @ self._words.T
        scores += self.bias
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    def topk(self, R: ParamArray, k: int) -> tuple[IndexArray, ParamArray]:
        """Return the k most probable words, best first, and their log-probabilities."""
        logp = self.log_proba(R)
        top = np.argsort(-logp, axis=1, kind="stable")[:, :k].astype(INDEX)
        return top, np.take_along_axis(logp, top, axis=1)


def _kept(old: AnyArray, origin: IndexArray, moves: Moves) -> ParamArray:
    """Return squared gradients of nodes that stay, and of leaves wherever they have moved."""
    out = np.zeros((origin.size, *old.shape[1:]), dtype=PARAM)
    out[origin >= 0] = old[origin[origin >= 0]]
    if old.shape[1] > 1:
        out[moves.target] = old[moves.source]
    return out

"""Online one-against-all: every class has a regressor, and every example teaches all of them."""

from __future__ import annotations

from typing import NamedTuple

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
from thinleaf.kernels._jit import bare_kernel, bare_part
from thinleaf.online.growable import (
    check_models,
    check_scales,
    first_models,
    learn_in_pieces,
    require,
    with_models,
    with_slots,
)
from thinleaf.online.linear_models import (
    MOST_MODELS,
    Learning,
    Models,
    Scratch,
    learn,
    new_models,
    new_scratch,
    score,
)
from thinleaf.online.scaled_rows import Row, Scales, Stream, longest, new_scales, observe, prepare
from thinleaf.online.softmax_form import Unrolled, no_weights, plain_weights
from thinleaf.online.tables import EMPTY
from thinleaf.online.weights import n_slots, slots_needed


class OneVsAll(NamedTuple):
    """One regressor for each class."""

    regressors: Models
    scales: Scales
    n_classes: OffsetArray
    """Classes that have arrived or been announced, of shape (1,)."""


class OneVsAllModel:
    """One-against-all and its settings.

    Parameters
    ----------
    n_features : int
    settings : Learning
    dense : bool
        Whether rows are dense.
    """

    def __init__(self, n_features: int, settings: Learning, *, dense: bool) -> None:
        self.settings = settings
        self._n_features = n_features
        self.state = OneVsAll(
            new_models(1, n_features, 0, dense=dense),
            new_scales(n_features),
            np.zeros(1, dtype=OFFSET),
        )

    def announce(self, n_classes: int) -> None:
        """Let so many classes take part from now on, whether they have arrived or not."""
        self.state.n_classes[0] = max(n_classes, self.state.n_classes[0])

    def learn(self, stream: Stream, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned."""
        n_models = max(n_classes, int(self.state.n_classes[0]))
        regressors = with_models(self.state.regressors, n_models)
        self.state = self.state._replace(regressors=regressors)
        scratch = self._scratch(stream.X)

        def step(done: int, predicted: IndexArray, needed: OffsetArray) -> int:
            return _learn_rows(self.state, stream, done, self.settings, scratch, predicted, needed)

        return learn_in_pieces(step, self._enlarge, stream.order.size, 1)

    def predict(self, X: Rows) -> IndexArray:
        """Return the class with the highest score."""
        best: IndexArray = self.shortlists(X)[1].argmax(axis=1).astype(INDEX)
        return best

    def shortlists(self, X: Rows) -> tuple[IndexArray, AccumArray]:
        """Return zeros, and the scores of all classes."""
        scores = np.empty((n_rows_of(X), int(self.state.n_classes[0])), dtype=ACCUM)
        _score_rows(self.state, X, self._scratch(X), scores)
        return np.zeros(scores.shape[0], dtype=INDEX), scores

    def candidates(self, node: int) -> IndexArray:
        """Return all classes."""
        return np.arange(int(self.state.n_classes[0]), dtype=INDEX)

    def outside(self, node: int) -> float:
        """Return 0: there are no other classes."""
        return 0.0

    def unrolled(self, n_classes: int) -> Unrolled:
        """Return the tree that predicts as this model does now: one leaf."""
        state, classes = self.state, self.candidates(0)
        return Unrolled(
            np.full((1, 2), NO_CHILD, dtype=INDEX),
            np.zeros(1, dtype=INDEX),
            np.zeros(1, dtype=PARAM),
            no_weights(1, self._n_features),
            [classes],
            [state.regressors.bias[classes, 0]],
            np.zeros(1, dtype=ACCUM),
            plain_weights(state.regressors, state.scales, n_classes),
        )

    def trimmed(self, n_classes: int) -> OneVsAll:
        """Return the state without room for what is to come."""
        return self.state._replace(regressors=first_models(self.state.regressors, n_classes, 0))

    def check(self, n_classes: int) -> None:
        """Raise ``ValueError`` unless kernels may work with a state that was stored."""
        state = self.state
        fits = state.n_classes.shape == (1,) and 0 < state.n_classes[0] <= n_classes
        require(fits, "n_classes is out of range")
        check_models("regressors", state.regressors, n_classes, self._n_features, 0)
        check_scales(state.scales, self._n_features)

    def _enlarge(self, weights: int) -> None:
        regressors = with_slots(self.state.regressors, weights)
        self.state = self.state._replace(regressors=regressors)

    def _scratch(self, X: Rows) -> Scratch:
        return new_scratch(longest(X), 0, dense=isinstance(X, np.ndarray))


@bare_part
def _score_block(model: OneVsAll, row: Row, first: int, scratch: Scratch) -> int:
    """Score the next classes from ``first`` on; return their number."""
    n = int(min(model.n_classes[0] - first, MOST_MODELS))
    for c in range(n):
        scratch.models[c] = first + c
    score(model.regressors, row, scratch.models, n, scratch)
    return n


@bare_kernel
def _learn_rows(
    model: OneVsAll,
    stream: Stream,
    first: int,
    learning: Learning,
    scratch: Scratch,
    predicted: IndexArray,
    needed: OffsetArray,
) -> int:
    """Predict each row, then learn it; return the first place that there was no room for."""
    for place in range(first, stream.order.size):
        i = stream.order[place]
        label, weight = stream.labels[i], stream.weights[i]
        length = observe(stream.X, i, model.scales)
        n = prepare(stream.X, i, model.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        n_before = model.n_classes[0]
        needed[0] = slots_needed(model.regressors.weights, row, max(n_before, label + 1))
        if needed[0] > n_slots(model.regressors.weights):
            return place
        model.n_classes[0] = max(n_before, label + 1)
        model.scales.norm[0] += weight
        model.scales.norm[1] += weight * length
        best, best_score = EMPTY, -np.inf
        for start in range(0, model.n_classes[0], MOST_MODELS):
            n = _score_block(model, row, start, scratch)
            for c in range(n):
                if start + c < n_before and scratch.score[c] > best_score:
                    best, best_score = start + c, scratch.score[c]
            positive = label - start if start <= label < start + n else EMPTY
            regressors, scales = model.regressors, model.scales
            learn(regressors, row, scratch.models, n, positive, weight, learning, scales, scratch)
        predicted[place] = best
    return stream.order.size


@bare_kernel
def _score_rows(model: OneVsAll, X: Rows, scratch: Scratch, scores: AccumArray) -> None:
    for i in range(scores.shape[0]):
        n = prepare(X, i, model.scales, scratch.idx, scratch.val)
        row = Row(scratch.idx, scratch.val, n, scratch.path, np.int64(0))
        for start in range(0, scores.shape[1], MOST_MODELS):
            n = _score_block(model, row, start, scratch)
            for c in range(n):
                scores[i, start + c] = scratch.score[c]

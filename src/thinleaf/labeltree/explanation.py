"""Explanations of label trees: the path of a label, and what its nodes say.

A label tree has no leaves to choose in: all is decided on the path. The score of a branch is linear
in the representation of a row, which is linear in its features, so each of these has its share.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray, ParamArray
from thinleaf.arrays.rows import CSR, Rows
from thinleaf.model.explanation.explainer import Explainer
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.explanation.sums import additive
from thinleaf.model.explanation.values import (
    Against,
    Answer,
    Candidate,
    Change,
    Contribution,
    Explanation,
    Path,
    Route,
    Score,
    Step,
)

if TYPE_CHECKING:
    from thinleaf.labeltree.predictor import LabelTreePredictor
    from thinleaf.labeltree.word_features import WordFeatures

_N_ADDED = 5


class LabelTreeExplainer(Explainer):
    """Explains label trees.

    Parameters
    ----------
    predictor : LabelTreePredictor
    """

    def __init__(self, predictor: LabelTreePredictor) -> None:
        self._predictor, self._model = predictor, predictor.model

    def explain(
        self, x: AnyArray, values: AnyArray | None, *, against: int | None, top: int,
        names: FeatureNames,
    ) -> Explanation:  # fmt: skip
        """Explain one sample."""
        model, labels = self._model, self._predictor.label_list
        rows: Rows = x[None]
        if values is not None:
            rows = CSR(np.array([0, x.size], dtype=INDEX), x, values, model.U.shape[0])
        walk = _Walk(self._predictor, rows, names)
        ids = model.topk(rows, top)[0][0].tolist()
        if self._predictor.greedy:
            ids = list(dict.fromkeys([int(model.descend(rows)[0]), *ids]))[:top]
        answers = tuple(Answer(labels[i], p, (p,), 0.0) for i, p in walk.probabilities(ids))
        path = Path(
            0,
            1.0,
            ids[0],
            model.tree.n_nodes + ids[0],
            1,
            0.0,
            partial(walk.steps, ids[0]),
            lambda: (Candidate(labels[ids[0]], 1.0, None),),
        )
        why_not = None
        if against is not None:
            ((_, p),) = walk.probabilities([against])
            answer = Answer(labels[against], p, (p,), 0.0)
            why_not = Against(answer, (walk.route(against, ids[0]),))
        return Explanation(answers, (path,), len(labels), 1, 1, 1.0, why_not, names)


class _Walk:
    """One sample in a label tree."""

    def __init__(self, predictor: LabelTreePredictor, rows: Rows, names: FeatureNames) -> None:
        self._model, self._labels = predictor.model, predictor.label_list
        self._rows, self._names = rows, names
        self.features, self.values = _entries(rows)
        U = self._model.U[self.features].astype(ACCUM)
        self._embedded = self.values.astype(ACCUM)[:, None] * (self._model.scale * U)

    def probabilities(self, ids: list[int]) -> list[tuple[int, float]]:
        """Return labels with their probabilities."""
        one = self._model
        logs = [one.label_log_proba(self._rows, np.array([i], dtype=INDEX))[0] for i in ids]
        return list(zip(ids, np.exp(np.array(logs, dtype=ACCUM)).tolist(), strict=True))

    def steps(self, label: int) -> tuple[Step, ...]:
        """Return the nodes on the path of a label."""
        tree = self._model.tree
        at = slice(int(tree.path_ptr[label]), int(tree.path_ptr[label + 1]))
        nodes, branches = tree.path_nodes[at], tree.path_branches[at]
        if nodes.size == 0:
            return ()
        scores = self._model.node_scores(self._rows, nodes).astype(ACCUM)
        weights, bias = (a[nodes].astype(ACCUM) for a in (self._model.weights, self._model.bias))
        if tree.arity == 2:  # one output: the score of the second child over the first
            scores, bias = (np.pad(a, ((0, 0), (1, 0))) for a in (scores, bias))
            weights = np.pad(weights, ((0, 0), (1, 0), (0, 0)))
        scores[~tree.present[nodes]] = -np.inf
        step = np.arange(nodes.size)
        rest = scores.copy()
        rest[step, branches] = -np.inf
        others = rest.argmax(axis=1)
        total = scores[step, branches] - scores[step, others]
        amounts = self._embedded @ (weights[step, branches] - weights[step, others]).T
        apart = additive(total, bias[step, branches] - bias[step, others], amounts)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return tuple(
            Step(
                int(nodes[i]),
                i,
                int(branches[i]),
                int(others[i]),
                tree.arity,
                self._score(total[i], apart[0][i], apart[1][:, i], apart[2][i]),
                float(p[i, branches[i]]),
                float(p[i, others[i]]),
            )
            for i in range(nodes.size)
        )

    def _score(self, total: float, bias: float, amounts: AccumArray, rounding: float) -> Score:
        return Score(
            float(total), float(bias), float(rounding), self.features, self.values, amounts,
            self._names,
        )  # fmt: skip

    def route(self, label: int, taken: int) -> Route:
        """Return the way to a label, and where it parts from that to another one."""
        tree, steps = self._model.tree, self.steps(label)
        fork = None
        if label != taken:
            pairs = zip(tree.path(label), tree.path(taken), strict=False)
            fork = next(d for d, (own, other) in enumerate(pairs) if own != other)
        changes = tuple(self._turned(step) for step in steps if step.margin.total < 0.0)
        return Route(
            0,
            label,
            tree.n_nodes + label,
            1,
            float(np.prod([step.probability for step in steps])),
            label == taken,
            fork,
            steps,
            Candidate(self._labels[label], 1.0, None),
            None,
            changes,
        )

    def _turned(self, step: Step) -> Change:
        """Return what would make a node take the branch that it does not."""
        lead = step.margin.reversed()
        return Change(step, lead, lead.enough(lead.total), self._added(step, lead))

    def _added(self, step: Step, lead: Score) -> tuple[Contribution, ...]:
        """Return features that the sample lacks; terms of texts are hashes and have no names."""
        if self._names.text is not None:
            return ()
        weights, model = self._model.weights[step.node], self._model
        if weights.shape[0] == 1:
            toward = weights[0] if step.branch == 1 else -weights[0]
        else:
            toward = weights[step.branch] - weights[step.other]
        speaks = model.scale * (model.U @ toward)
        speaks[self.features] = 0.0
        best = np.argsort(-speaks, kind="stable")[:_N_ADDED].tolist()
        return tuple(
            Contribution(f, self._names.name(f), lead.total / float(speaks[f]), lead.total)
            for f in best
            if speaks[f] > 0.0
        )


def names_for(x: Any, words: WordFeatures | None, names: FeatureNames) -> FeatureNames:
    """Return the terms of a text, where a model takes texts; else names as they are."""
    if words is None or not isinstance(x, str):
        return names
    from thinleaf.text.term_names import TextNames

    return TextNames(x, lambda text: words.transform([text]).indices, words.ngrams)


def _entries(rows: Rows) -> tuple[IndexArray, ParamArray]:
    """Return the features of a row and their values; what occurs several times is one entry."""
    if not isinstance(rows, CSR):
        features = np.flatnonzero(rows[0]).astype(INDEX)
        return features, rows[0][features]
    features, place = np.unique(rows.indices, return_inverse=True)
    return features, np.bincount(place, rows.data, features.size).astype(rows.data.dtype)

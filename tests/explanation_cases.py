"""What must hold of every explanation, whatever model it is of."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from thinleaf.model.explanation.values import Explanation, Score

_EPSILON = 2.0**-23


def scores_of(e: Explanation) -> list[Score]:
    """Return every score of an explanation."""
    scores = []
    for path in e.paths:
        scores += [step.margin for step in path.steps]
        scores += [c.score for c in path.candidates if c.score is not None]
    for route in () if e.against is None else e.against.routes:
        scores += [step.margin for step in route.steps]
        scores += [change.lead for change in route.changes]
        scores += [c.score for c in (route.candidate, route.rival) if c and c.score]
    return scores


def check_sum(score: Score, slack: float = 4.0) -> None:
    """The parts of a score add up to it, in several orders, and rounding is that of float32."""
    parts = [score.bias, *score.amounts.tolist(), score.rounding]
    assert sum(parts) == score.total
    assert sum(reversed(parts)) == score.total
    assert sum(sorted(parts)) == score.total
    named = [part.amount for part in score.contributions]
    assert score.bias + sum(named) + score.rounding == score.total
    size = abs(score.bias) + np.abs(score.amounts).sum() + abs(score.total)
    assert abs(score.rounding) <= slack * (len(parts) + 8) * _EPSILON * size


def check_explanation(e: Explanation, model: Any, x: Any, slack: float = 4.0) -> None:
    """What an explanation says adds up, and is what the model predicts."""
    for score in scores_of(e):
        check_sum(score, slack)
    for answer in (*e.answers, *([] if e.against is None else [e.against.answer])):
        assert sum(answer.parts) + answer.rounding == answer.probability
        assert abs(answer.rounding) < 1e-9
        assert len(answer.parts) == len(e.paths)
    assert abs(sum(path.weight for path in e.paths) - 1.0) < 1e-9
    weights = [path.weight for path in e.paths]
    assert weights == sorted(weights, reverse=True)
    top = model.predict_topk_one(x, k=len(e.answers))
    assert [answer.label for answer in e.answers] == [label for label, _ in top]
    np.testing.assert_allclose([a.probability for a in e.answers], [p for _, p in top], rtol=1e-6)
    for path in e.paths:
        assert [step.depth for step in path.steps] == list(range(len(path.steps)))
        for step in path.steps:
            assert step.branch != step.other
            p, other = step.probability, step.other_probability
            assert p + other <= 1.0 + 1e-6
            assert (p >= other) == (step.margin.total >= 0.0) or abs(p - other) < 1e-6
    whole = json.loads(json.dumps(e.to_dict()))
    assert whole["probability"] == e.probability
    for path, own in zip(whole["paths"], e.paths, strict=True):
        for step, shown in itertools.zip_longest(path["steps"], own.steps):
            margin = step["margin"]
            amounts = [part["amount"] for part in margin["contributions"]]
            total = margin["bias"] + sum(amounts) + margin["other_features"] + margin["rounding"]
            assert total == margin["total"] == shown.margin.total
    for few in e.to_dict(top=1)["paths"]:
        for step in few["steps"]:
            margin = step["margin"]
            amounts = [part["amount"] for part in margin["contributions"]]
            assert len(amounts) <= 1
            total = margin["bias"] + sum(amounts) + margin["other_features"] + margin["rounding"]
            assert total == margin["total"]
    assert str(e)
    assert e.to_html()

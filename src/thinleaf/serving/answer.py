"""From the bytes of a request to the bytes of an answer: parse, predict, write.

Runs on any thread: it reads a model that nobody changes. The answers have the same fields as those
of ``thinleaf predict --json``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thinleaf.serving.limits import Limits
from thinleaf.serving.request import Asked, RequestError, Shape, finite, parse
from thinleaf.text.columns import Columns

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.recipe import Recipe


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Answerer:
    """A model that answers requests.

    Parameters
    ----------
    model : FrozenModel
    recipe : Recipe
        How texts become rows, if the model does not take them itself.
    """

    def __init__(self, model: FrozenModel, recipe: Recipe) -> None:
        self.model = model
        self._features = None if model.takes_texts else recipe.text
        self.shape = _shape(model, recipe)

    def top(self, samples: Any, k: int) -> tuple[list[list[Any]], list[list[float]]]:
        """Return the k most probable labels of checked samples, and their probabilities."""
        if self._features is not None:
            samples = self._features.transform(samples)
        elif self.model.takes_texts and len(samples) == 1:
            pairs = self.model.predict_topk_one(samples[0], k=k)
            return [[label for label, _ in pairs]], [[p for _, p in pairs]]
        labels, p = self.model.predict_topk(samples, k)
        return labels.tolist(), p.tolist()

    def labels(self, samples: Any) -> list[Any]:
        """Return the label of each checked sample."""
        if self._features is not None:
            samples = self._features.transform(samples)
        elif self.model.takes_texts and len(samples) == 1:
            return [self.model.predict_one(samples[0])]
        found: list[Any] = self.model.predict(samples).tolist()
        return found

    def rejects(self, samples: Any, precision: float) -> list[bool]:
        """Return which checked samples get no label, so that so many of the others are right."""
        model: Any = self.model
        found: list[bool] = model.rejects(samples, precision).tolist()
        return found


def _shape(model: FrozenModel, recipe: Recipe) -> Shape:
    sizes = (model.n_features, model.n_classes, getattr(model, "rejection", None) is not None)
    made = recipe.input
    if isinstance(made, Columns) and made.lone is None:
        return Shape("records", *sizes, tuple(made.texts), tuple(made.numeric))
    texts = model.takes_texts or recipe.text is not None
    return Shape("texts" if texts else "rows", *sizes)


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    Attributes
    ----------
    body : bytes
        JSON.
    n_rows : int
    n_rejected : int
        Of these, how many got no label.
    """

    body: bytes
    n_rows: int
    n_rejected: int


def answer(body: bytes, answerer: Answerer, version: str, limits: Limits) -> Answer:
    """Answer a request.

    Raises
    ------
    RequestError
        If it cannot be answered.
    """
    asked = parse(body, answerer.shape, limits)
    try:
        found = predictions(asked, answerer)
    except ValueError as error:  # what a model refuses
        raise RequestError(422, str(error)) from error
    content: dict[str, Any] = found[0] if asked.single else {"predictions": found}
    text = _ENCODER.encode(content | {"model": version})
    n_rejected = sum(one.get("rejected", False) for one in found)
    return Answer(text.encode(), asked.n_rows, n_rejected)


def predictions(asked: Asked, answerer: Answerer) -> list[dict[str, Any]]:
    """Return an answer for each sample, as JSON holds it."""
    if asked.top_k is None and not asked.proba and asked.min_proba is None:
        found: list[dict[str, Any]] = [{"label": label} for label in answerer.labels(asked.samples)]
        rejected = [False] * asked.n_rows
    else:
        top, p = answerer.top(asked.samples, asked.top_k or 1)
        found = [_one(asked, labels, ps) for labels, ps in zip(top, p, strict=True)]
        least = asked.min_proba or 0.0
        rejected = [not ps[0] >= least for ps in p]
    if asked.reject is not None:
        more = answerer.rejects(asked.samples, asked.reject)
        rejected = [one or other for one, other in zip(rejected, more, strict=True)]
    return list(map(_marked, found, rejected)) if asked.may_reject else found


def _one(asked: Asked, labels: list[Any], p: list[float]) -> dict[str, Any]:
    if asked.top_k is None:
        return {"label": labels[0]} | ({"probability": finite(p[0])} if asked.proba else {})
    probabilities = {"probabilities": [finite(value) for value in p]} if asked.proba else {}
    return {"labels": labels} | probabilities


def _marked(answer: dict[str, Any], rejected: bool) -> dict[str, Any]:
    """Return an answer that says whether it is one."""
    if not rejected:
        return answer | {"rejected": False}
    if "label" in answer:
        return answer | {"label": None, "rejected": True}
    return {name: [] for name in answer} | {"rejected": True}

"""Who explains: a predictor has an explainer, and models say what features are called."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AnyArray
from thinleaf.arrays.checks import is_whole
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.explanation.values import Explanation
from thinleaf.model.predictor import Predictor


class Explainer(ABC):
    """Explains what one predictor does; made once for it."""

    @abstractmethod
    def explain(
        self, x: AnyArray, values: AnyArray | None, *, against: int | None, top: int,
        names: FeatureNames,
    ) -> Explanation:  # fmt: skip
        """Explain one sample.

        Parameters
        ----------
        x, values : ndarray
            A dense row and None, or indices and values, all finite and in range.
        against : int, optional
            Another class.
        top : int
            How many answers, and candidates of a leaf.
        names : FeatureNames
        """


def explained(
    predictor: Predictor, x: Any, values: Any, against: Any, top: Any, names: FeatureNames
) -> Explanation:
    """Return why a predictor gives its label to one sample.

    See :meth:`thinleaf.model.predictor.Predictions.explain`.
    """
    if not is_whole(top) or top < 1:
        raise ValueError(f"top must be a whole number above 0, got {top!r}")
    top = min(int(top), predictor.labels.size)
    explainer = predictor.explainer
    row, row_values = checked_sample(*predictor.sample_of(x, values), predictor.n_features)
    names = predictor.names_for(x, names)
    other = None if against is None else _class_of(predictor, against)
    return explainer.explain(row, row_values, against=other, top=top, names=names)


def checked_sample(
    x: AnyArray, values: AnyArray | None, n_features: int
) -> tuple[AnyArray, AnyArray | None]:
    """Return a sample as it is, if it fits the model; ``ValueError`` if it does not."""
    if values is None:
        if x.size != n_features:
            raise ValueError(f"x has {x.size} features, but the model expects {n_features}")
    elif x.size != values.size or bool(np.any((x < 0) | (x >= n_features))):
        raise ValueError(
            f"indices must lie in 0..{n_features - 1}, and there must be as many values"
        )
    if not np.all(np.isfinite(x if values is None else values)):
        raise ValueError("x contains NaN or infinity, or is too large for float32")
    return x, values


def _class_of(predictor: Predictor, label: Any) -> int:
    try:
        return predictor.label_list.index(label)
    except ValueError:
        raise ValueError(f"the model has no class {label!r}: see its labels") from None


def sigmoid(score: Any) -> Any:
    """Return σ of scores, without overflow."""
    if isinstance(score, float):
        z = math.exp(-abs(score))
        return 1.0 / (1.0 + z) if score >= 0.0 else z / (1.0 + z)
    return np.exp(-np.logaddexp(0.0, -np.asarray(score, dtype=ACCUM)))

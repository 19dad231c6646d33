"""What the features of one sample of a model of texts are called."""

from __future__ import annotations

from typing import Any

from thinleaf.model.explanation.names import FeatureNames
from thinleaf.text.inputs import Input, Texts
from thinleaf.text.term_names import TextNames


class InputNames(FeatureNames):
    """Names that an input gives to its features: of tables, and of rows of a model of texts.

    Parameters
    ----------
    made : Input
    """

    def __init__(self, made: Input) -> None:
        super().__init__()
        self._made = made

    def name(self, feature: int) -> str:
        """Return what a feature stands for."""
        return self._made.feature_name(feature)


def names_for(x: Any, made: Input) -> FeatureNames:
    """Return what the features of one sample of a model of texts are called."""
    lone = getattr(made, "lone", None)
    made = made if lone is None else lone
    if not isinstance(x, str) or not isinstance(made, Texts):
        return InputNames(made)
    features = made.features
    hashed = features.kind == "hashing"
    return TextNames(
        x,
        lambda text: features.row_of(text)[0],
        0 if features.kind == "chars" else features.ngram_range[1],
        known=None if hashed else made.feature_name,
        chars=(features.n_word_terms, features.n_features) if not hashed else (0, 0),
        quoted=features.kind == "both",
    )

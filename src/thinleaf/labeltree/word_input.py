"""What a label tree of texts knows of them: what says when not to answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AnyArray
from thinleaf.labeltree.texts import text_list
from thinleaf.labeltree.word_features import WordFeatures
from thinleaf.model.file_parts import Section
from thinleaf.text.inputs import Input, word_salad
from thinleaf.text.known_terms import Evidence


class WordInput(Input):
    """Texts as they are: the predictor of a label tree makes rows of them itself.

    Parameters
    ----------
    words : WordFeatures
        Fitted.
    """

    kind = "words"

    def __init__(self, words: WordFeatures) -> None:
        self.words = words

    @property
    def n_features(self) -> int:
        """How many terms there are."""
        return self.words.n_features

    def rows(self, X: Any, n_jobs: int = 1) -> Any:
        """Return the texts as a list."""
        return text_list(X)

    def one(self, x: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return the terms of a text, and their values."""
        row = self.words.transform([x])
        return row.indices, row.data

    def evidence(self, X: Any) -> Evidence:
        """Return how many words of each text are known, and how many it has."""
        n_known, n_words = self.words.known_words(text_list(X))
        return Evidence(n_known.astype(ACCUM), n_words.astype(ACCUM))

    def fitted_to(self, X: Any) -> WordInput:
        """Return the terms of other texts."""
        words = self.words
        fresh = WordFeatures(words.ngrams, words.n_buckets, words.min_count, words.pooling)
        return WordInput(fresh.fit(text_list(X)))

    def nonsense(self, X: Any, rng: np.random.Generator) -> list[str]:
        """Return texts of random words."""
        return word_salad(text_list(X), rng)

    def feature_name(self, feature: int) -> str:
        """Return the number of a term: its words are not kept."""
        return f"term {feature}"

    def section(self) -> Section:
        """Raise an error: the file of a label tree holds the terms elsewhere."""
        raise NotImplementedError("terms of a label tree are arrays of its own file")

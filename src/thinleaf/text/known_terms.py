"""How much of a text its features know: what says that a text is a foreign one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray

if TYPE_CHECKING:
    from thinleaf.text.features import TextFeatures

_WORDS = re.compile(r"\w+")


class Evidence(NamedTuple):
    """What features know of some samples.

    Attributes
    ----------
    n_known : ndarray of shape (n_samples,)
        How many terms of a sample are features, each as often as it occurs.
    n_terms : ndarray of shape (n_samples,)
        How many terms it has.
    """

    n_known: AccumArray
    n_terms: AccumArray


class KnownTerms:
    """Counts the terms of texts that are features.

    Where words are features, terms are words, or the shortest sequences of them that may be
    features. Else they are the longest sequences of characters: short ones are all known.

    Parameters
    ----------
    features : TextFeatures
        Fitted.
    """

    def __init__(self, features: TextFeatures) -> None:
        self._reader = features.reader_of_known_terms()

    def evidence(self, texts: list[str]) -> Evidence:
        """Return what is known of each text; if terms are hashed, that is all."""
        if self._reader is None:
            return all_known(texts)
        from thinleaf.text.encoding import all_encoded  # these start a compiler
        from thinleaf.text.kernels.known import known_of_texts

        joined, text_ptr = all_encoded(texts)
        n_known, n_terms = np.empty((2, len(texts)), dtype=ACCUM)
        content = np.frombuffer(joined, dtype=np.uint8)
        known_of_texts(self._reader.table_for(joined), content, text_ptr, n_known, n_terms)
        return Evidence(n_known, n_terms)


def all_known(texts: list[str]) -> Evidence:
    """Return that every word of texts is known: where features are not terms."""
    n_words = np.array([len(_WORDS.findall(text)) for text in texts], dtype=ACCUM)
    return Evidence(n_words, n_words)

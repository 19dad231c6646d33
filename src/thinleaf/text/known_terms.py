"""How much of a text its features know: what says that a text is a foreign one."""

from __future__ import annotations

import re
from collections.abc import Callable
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
        self._terms: frozenset[str] | None = None
        if features.kind == "hashing":
            return
        self._split: Callable[[str, int], list[str]]
        if features.kind == "chars":
            self._length, self._split = features.char_range[1], _characters
        else:
            self._length, self._split = features.ngram_range[0], _words
        self._terms = frozenset(features.feature_names())

    def evidence(self, texts: list[str]) -> Evidence:
        """Return what is known of each text; if terms are hashed, that is all."""
        if self._terms is None:
            return all_known(texts)
        n_known, n_terms = np.empty((2, len(texts)), dtype=ACCUM)
        is_known = self._terms.__contains__
        for i, text in enumerate(texts):
            terms = self._split(text.lower(), self._length)
            n_terms[i] = len(terms)
            n_known[i] = sum(map(is_known, terms))
        return Evidence(n_known, n_terms)


def all_known(texts: list[str]) -> Evidence:
    """Return that every word of texts is known: where features are not terms."""
    n_words = np.array([len(_WORDS.findall(text)) for text in texts], dtype=ACCUM)
    return Evidence(n_words, n_words)


def _words(text: str, length: int) -> list[str]:
    words: list[str] = _WORDS.findall(text)
    if length == 1:
        return words
    return [" ".join(words[end - length : end]) for end in range(length, len(words) + 1)]


def _characters(text: str, length: int) -> list[str]:
    terms = []
    for word in text.split():
        padded = f" {word} "
        last = max(len(padded) - length, 0)
        terms += [padded[start : start + length] for start in range(last + 1)]
    return terms

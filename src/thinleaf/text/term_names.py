"""Terms and words of one text, behind the features that it has."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from thinleaf._dtypes import AccumArray, AnyArray, IndexArray
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.explanation.values import Word

_WORDS = re.compile(r"\w+")
_CHUNKS = re.compile(r"\S+")


class TextNames(FeatureNames):
    """Terms of one text.

    Parameters
    ----------
    text : str
    known : callable, optional
        Names a feature, if features have names; else terms of the text are looked for whose
        features they are.
    features_of : callable
        From a text to the features of its terms.
    n_words : int
        Words in the longest term.
    chars : (int, int), optional
        The features that are sequences of characters instead of words: from, to.
    quoted : bool
        Whether the names of these are between quotes.
    """

    def __init__(
        self,
        text: str,
        features_of: Callable[[str], AnyArray],
        n_words: int,
        *,
        known: Callable[[int], str] | None = None,
        chars: tuple[int, int] = (0, 0),
        quoted: bool = False,
    ) -> None:
        super().__init__()
        self.text: str = text
        self._features_of, self._n_words, self._known = features_of, n_words, known
        self._chars, self._quoted = chars, quoted

    def name(self, feature: int) -> str:
        """Return the term of a feature."""
        if self._known is not None:
            return self._known(feature)
        return " | ".join(self._terms.get(feature, ())) or f"bucket {feature}"

    @cached_property
    def _tokens(self) -> list[tuple[str, int]]:
        """The words in lower case, and the number of the chunk that each is in."""
        found = []
        for number, chunk in enumerate(self._chunks):
            words: list[str] = _WORDS.findall(chunk.group().lower())
            found += [(word, number) for word in words]
        return found

    @cached_property
    def _chunks(self) -> list[re.Match[str]]:
        """What stands between white space."""
        return list(_CHUNKS.finditer(self.text))

    def _sequences(self) -> dict[str, list[int]]:
        """Return sequences of words, each with the chunks that its occurrences are in."""
        out: dict[str, list[int]] = {}
        for n in range(1, self._n_words + 1):
            for start in range(len(self._tokens) - n + 1):
                part = self._tokens[start : start + n]
                sequence = " ".join(word for word, _ in part)
                out.setdefault(sequence, []).extend(number for _, number in part)
        return out

    @cached_property
    def _terms(self) -> dict[int, list[str]]:
        """The sequences of words that each feature may stand for: of hashes, several may collide.

        A sequence is known by its features less those of the shorter ones in it.
        """
        own: dict[int, list[str]] = {}
        features: dict[str, set[int]] = {}
        for sequence in self._sequences():
            found = set(np.asarray(self._features_of(sequence)).tolist())
            words = sequence.split()
            shorter = (
                features.get(" ".join(words[a:b]), set())
                for a, b in ((0, len(words) - 1), (1, len(words)))
                if len(words) > 1
            )
            features[sequence] = found
            for feature in found.difference(*shorter):
                own.setdefault(feature, []).append(sequence)
        return own

    def words(self, features: IndexArray, amounts: AccumArray) -> tuple[Word, ...]:
        """Return the words, each with its share of the terms that it is part of."""
        shares = [0.0] * len(self._chunks)
        sequences = self._sequences()
        padded = [f" {chunk.group().lower()} " for chunk in self._chunks]
        for feature, amount in zip(features.tolist(), amounts.tolist(), strict=True):
            if amount == 0.0:
                continue
            if self._chars[0] <= feature < self._chars[1]:
                term = self.name(feature)
                term = term[1:-1] if self._quoted else term
                places = [number for number, chunk in enumerate(padded) if term in chunk]
            elif self._known is not None:
                places = sequences.get(self._known(feature), [])
            else:
                places = [n for term in self._terms.get(feature, ()) for n in sequences[term]]
            for number in places:
                shares[number] += amount / len(places)
        return tuple(
            Word(chunk.group(), chunk.start(), chunk.end(), share)
            for chunk, share in zip(self._chunks, shares, strict=True)
        )

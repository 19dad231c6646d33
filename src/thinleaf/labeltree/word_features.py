"""Texts as bags of words and n-grams with ids, as fastText makes them.

Words are those of the reader of all texts (:mod:`thinleaf.text.kernels.tokens`), in lower case.
Sequences of 2 to n words are hashed into buckets; a bucket, like a word, is a feature if training
texts have it often enough. tf-idf, with terms as they are written, is elsewhere, in
``thinleaf.text.features``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, PARAM, AnyArray, IndexArray, OffsetArray
from thinleaf.arrays.rows import CSR
from thinleaf.labeltree.kernels import words as kernels
from thinleaf.text.encoding import all_encoded, kinds_in

Pooling: TypeAlias = Literal["mean", "sum"]

_FIRST_TABLE = 1 << 16


class WordFeatures:
    """Words and n-grams of training texts, and the rows of any texts.

    Parameters
    ----------
    ngrams : int
        The most words in a term.
    n_buckets : int
        What sequences of words are hashed into.
    min_count : int
        How often a term must occur in the training texts.
    pooling : {"mean", "sum"}
        Whether the values of a row are one over the number of its terms, or one.

    Examples
    --------
    >>> features = WordFeatures(ngrams=2).fit(["a broken arm", "a broken leg"])
    >>> features.n_features  # a, broken, arm, leg, a broken, broken arm, broken leg
    7
    """

    def __init__(
        self,
        ngrams: int = 1,
        n_buckets: int = 2_000_000,
        min_count: int = 1,
        pooling: Pooling = "mean",
    ) -> None:
        self.ngrams = ngrams
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.pooling: Pooling = pooling
        self.term_keys: AnyArray = np.empty(0, dtype=np.uint64)
        self.keys: AnyArray = np.zeros(1, dtype=np.uint64)
        self.ids: IndexArray = np.zeros(1, dtype=INDEX)

    @property
    def n_features(self) -> int:
        """The number of terms."""
        return self.term_keys.size

    def fit(self, texts: Iterable[str]) -> WordFeatures:
        """Learn which terms there are."""
        self._learn(*_hashes(texts))
        return self

    def fit_transform(self, texts: Iterable[str]) -> CSR:
        """Learn the terms of texts and return their rows."""
        hashes, text_ptr = _hashes(texts)
        self._learn(hashes, text_ptr)
        return self._rows(hashes, text_ptr)

    def transform(self, texts: Iterable[str]) -> CSR:
        """Return a row for each text; terms that are not known are left out.

        Returns
        -------
        rows : CSR
            Terms in the order of the text; one that occurs twice is there twice.
        """
        return self._rows(*_hashes(texts))

    def known_words(self, texts: Iterable[str]) -> tuple[OffsetArray, OffsetArray]:
        """Return how many words of each text are terms, and how many it has."""
        hashes, text_ptr = _hashes(texts)
        indptr: IndexArray = np.zeros(text_ptr.size, dtype=INDEX)
        indices: IndexArray = np.empty(hashes.size, dtype=INDEX)
        kernels.find_terms(
            hashes, text_ptr, 1, self.n_buckets, self.keys, self.ids, indptr, indices
        )
        return np.diff(indptr).astype(OFFSET), np.diff(text_ptr)

    def _learn(self, hashes: AnyArray, text_ptr: OffsetArray) -> None:
        keys = np.zeros(_FIRST_TABLE, dtype=np.uint64)
        counts: OffsetArray = np.zeros(_FIRST_TABLE, dtype=OFFSET)
        at, n_used = 0, 0
        while at < text_ptr.size - 1:
            at, n_used = kernels.add_terms(
                hashes, text_ptr, at, self.ngrams, self.n_buckets, keys, counts, n_used
            )
            if at < text_ptr.size - 1:
                larger = np.zeros(4 * keys.size, dtype=np.uint64)
                larger_counts: OffsetArray = np.zeros(4 * keys.size, dtype=OFFSET)
                kernels.rehash(keys, counts, larger, larger_counts)
                keys, counts = larger, larger_counts
        self._set(np.sort(keys[counts >= self.min_count]))

    def with_terms(self, term_keys: AnyArray) -> WordFeatures:
        """Take terms that have been learned before, by ascending key."""
        self._set(term_keys)
        return self

    def _set(self, term_keys: AnyArray) -> None:
        size = 1 << max(1, (2 * term_keys.size).bit_length())
        self.term_keys = term_keys
        self.keys = np.zeros(size, dtype=np.uint64)
        self.ids = np.zeros(size, dtype=INDEX)
        kernels.fill_table(term_keys, self.keys, self.ids)

    def _rows(self, hashes: AnyArray, text_ptr: OffsetArray) -> CSR:
        if hashes.size * self.ngrams > np.iinfo(INDEX).max:
            raise ValueError("the texts have more than 2^31 - 1 terms: give fewer at once")
        indptr: IndexArray = np.zeros(text_ptr.size, dtype=INDEX)
        indices: IndexArray = np.empty(hashes.size * self.ngrams, dtype=INDEX)
        kernels.find_terms(
            hashes, text_ptr, self.ngrams, self.n_buckets, self.keys, self.ids, indptr, indices
        )
        indices = indices[: indptr[-1]].copy()
        data = np.ones(indices.size, dtype=PARAM)
        if self.pooling == "mean":
            sizes = np.diff(indptr)
            data = np.repeat((1.0 / np.maximum(sizes, 1)).astype(PARAM), sizes)
        return CSR(indptr, indices, data, self.n_features)


def _hashes(texts: Iterable[str]) -> tuple[AnyArray, OffsetArray]:
    """Return the hash of every word, and where each text's words begin."""
    documents = list(texts)
    for text in documents:
        if not isinstance(text, str):
            raise ValueError(f"texts must be strings, got {text!r}")
    content, content_ptr = all_encoded(documents)
    text_ptr: OffsetArray = np.zeros(len(documents) + 1, dtype=OFFSET)
    hashes = np.empty((len(content) + len(documents)) // 2 + 1, dtype=np.uint64)
    n_words = kernels.hash_words(
        np.frombuffer(content, dtype=np.uint8), content_ptr, kinds_in(content), hashes, text_ptr
    )
    return hashes[:n_words], text_ptr

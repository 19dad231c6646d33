"""The terms of a reader, learned from texts or read from a file: flat arrays, no Python strings.

Terms stand in UTF-8 one after the other, those of words before those of characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, PARAM, AnyArray, OffsetArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.text.kernels.counting import count_grams, take_grams
from thinleaf.text.kernels.rows import fill_slots

ARRAYS: Final[Mapping[str, Any]] = {"term_bytes": np.uint8, "term_ptr": OFFSET, "idf": PARAM}
"""What is stored of a vocabulary."""

_MAX_INT = int(np.iinfo(INDEX).max)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Terms and their inverse document frequencies.

    Attributes
    ----------
    term_bytes : ndarray of uint8
        The terms in UTF-8.
    term_ptr : ndarray of int64 of shape (n_terms + 1,)
        Where each begins and ends.
    idf : ndarray of float32 of shape (n_terms,)
    n_words : int
        How many terms are words; those that follow are sequences of characters.
    """

    term_bytes: AnyArray
    term_ptr: OffsetArray
    idf: ParamArray
    n_words: int

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return self.idf.size

    @cached_property
    def terms(self) -> list[str]:
        """The terms as strings."""
        joined = self.term_bytes.tobytes()
        return [joined[begin:end].decode() for begin, end in pairwise(self.term_ptr.tolist())]

    @cached_property
    def slots(self) -> AnyArray:
        """The table in which kernels look terms up; ``ValueError`` if a term is there twice."""
        slots = np.zeros(2 << max(1, (2 * self.n_terms - 1).bit_length()), dtype=np.uint64)
        n_twice = fill_slots(self.term_bytes, self.term_ptr, self.idf, self.n_words, slots)
        if n_twice > 0:
            raise ValueError(f"text features: {n_twice} terms occur twice")
        return slots

    def __add__(self, chars: Vocabulary) -> Vocabulary:
        """Return words and characters side by side."""
        return Vocabulary(
            np.concatenate([self.term_bytes, chars.term_bytes]),
            np.concatenate([self.term_ptr, chars.term_ptr[1:] + self.term_ptr[-1]]),
            np.concatenate([self.idf, chars.idf]),
            self.n_words,
        )

    def taken(self, chosen: AnyArray) -> Vocabulary:
        """Return some of the terms, in the order given; all of them are words, or none."""
        term_bytes, term_ptr = _taken(self.term_bytes, self.term_ptr, chosen)
        n_words = chosen.size if self.n_words else 0
        return Vocabulary(term_bytes, term_ptr, self.idf[chosen], n_words)

    def unknown(self, other: Vocabulary, *, is_chars: bool) -> Vocabulary:
        """Return the terms of words, or of characters, of another one that this one lacks."""
        terms = self.terms[self.n_words :] if is_chars else self.terms[: self.n_words]
        known = set(terms)
        lacking = [i for i, term in enumerate(other.terms) if term not in known]
        return other.taken(np.array(lacking, dtype=np.int64))

    def blocks(self) -> tuple[Vocabulary, Vocabulary]:
        """Return words and characters apart."""
        chosen = np.arange(self.n_terms)
        words, chars = chosen[: self.n_words], chosen[self.n_words :]
        return self.taken(words), replace(self, n_words=0).taken(chars)

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return copies of the arrays."""
        return {name: getattr(self, name).copy() for name in ARRAYS}


def learn(
    table: OffsetArray,
    content: bytes,
    text_ptr: OffsetArray,
    *,
    min_df: int,
    max_features: int | None,
    is_chars: bool,
) -> Vocabulary:
    """Return the frequent terms of texts, in the order of their characters.

    Parameters
    ----------
    table : ndarray of int64
        Of a reader of words, or of characters.
    content : bytes
        The texts in UTF-8.
    text_ptr : ndarray of int64
        Where each begins and ends.
    min_df : int
        In how many texts a term must be.
    max_features : int or None
        The most terms: the most frequent are kept, and of equals the first in order.
    is_chars : bool

    Raises
    ------
    ValueError
        If there is no such term.
    """
    n_texts = text_ptr.size - 1
    totals, n_with, pool, pool_ptr = count_grams(
        table, np.frombuffer(content, dtype=np.uint8), text_ptr
    )
    if totals.size == 0:
        hint = "" if is_chars else ": they have no word; characters may do (kind='chars')"
        raise ValueError(f"no terms in {n_texts} texts to learn from{hint}")
    kept = np.flatnonzero(n_with >= min_df)
    if is_chars:
        kept = kept[_storable(pool, pool_ptr, kept, content)]
    if kept.size == 0:
        raise ValueError(
            f"no term is in {min_df} of the {n_texts} texts: lower min_df, or give more texts"
        )
    if max_features is not None and kept.size > max_features:
        least = np.partition(totals[kept], kept.size - max_features)[kept.size - max_features]
        sure, equals = kept[totals[kept] > least], kept[totals[kept] == least]
        equals = equals[_order(pool, pool_ptr, equals)[: max_features - sure.size]]
        kept = np.concatenate([sure, equals])
    kept = kept[_order(pool, pool_ptr, kept)]
    term_bytes, term_ptr = _taken(pool, pool_ptr, kept)
    n_words = 0 if is_chars else kept.size
    return Vocabulary(term_bytes, term_ptr, _idf(n_with[kept], n_texts), n_words)


def idf_among(own: ParamArray, n_own: int, known: ParamArray, min_df: int) -> ParamArray:
    """Return the inverse document frequencies of terms among all texts, old and new.

    How many old texts there were is not kept: a term of ``min_df`` texts, which most vocabularies
    have, says it.

    Parameters
    ----------
    own : ndarray
        Of the terms, among the new texts alone.
    n_own : int
        How many texts these are.
    known : ndarray
        Of the old terms, among the old texts.
    min_df : int
        In how many texts a term must be.
    """
    n_with = np.round((n_own + 1) / np.exp(own.astype(np.float64) - 1.0)) - 1.0
    n_old = (min_df + 1) * np.exp(float(known.max(initial=1.0)) - 1.0) - 1.0
    return _idf(n_with, n_own + round(n_old))


def _idf(n_with: AnyArray, n_texts: int) -> ParamArray:
    """Return the smoothed inverse document frequency, in the steps of scikit-learn."""
    idf: ParamArray = np.full(n_with.size, n_texts + 1, dtype=PARAM)
    idf /= n_with.astype(PARAM) + PARAM(1.0)
    np.log(idf, out=idf)
    idf += 1.0
    return idf


def _taken(pool: AnyArray, pool_ptr: OffsetArray, chosen: AnyArray) -> tuple[AnyArray, OffsetArray]:
    ptr = offsets(pool_ptr[chosen + 1] - pool_ptr[chosen])
    out = np.empty(ptr[-1], dtype=np.uint8)
    take_grams(pool, pool_ptr, chosen.astype(OFFSET), out)
    return out, ptr


def _each(pool: AnyArray, pool_ptr: OffsetArray, chosen: AnyArray) -> list[bytes]:
    taken, ptr = _taken(pool, pool_ptr, chosen)
    joined = taken.tobytes()
    return [joined[begin:end] for begin, end in pairwise(ptr.tolist())]


def _order(pool: AnyArray, pool_ptr: OffsetArray, chosen: AnyArray) -> list[int]:
    """Return the order by characters, which is that of bytes in UTF-8."""
    each = _each(pool, pool_ptr, chosen)
    by_bytes: Callable[[int], bytes] = each.__getitem__
    return sorted(range(len(each)), key=by_bytes)


def _storable(pool: AnyArray, pool_ptr: OffsetArray, kept: AnyArray, content: bytes) -> AnyArray:
    """Return which terms are UTF-8: no file can hold those with half of a surrogate pair."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return np.array([_is_utf8(term) for term in _each(pool, pool_ptr, kept)], dtype=bool)
    return np.ones(kept.size, dtype=bool)


def _is_utf8(term: bytes) -> bool:
    try:
        term.decode()
    except UnicodeDecodeError:
        return False
    return True


def checked(arrays: Any, n_words: int | None) -> Vocabulary:
    """Return the vocabulary that stored arrays are.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        As :meth:`Vocabulary.to_arrays` makes them, it is hoped.
    n_words : int or None
        None if all terms are words.

    Raises
    ------
    ValueError
        If they are not.
    """
    check_arrays(arrays, ARRAYS)
    content, ptr, idf = (arrays[name] for name in ARRAYS)
    n_terms = ptr.size - 1
    if not 1 <= n_terms <= _MAX_INT:
        raise ValueError(f"text features: term_ptr has {ptr.size} entries, for {n_terms} terms")
    if ptr[0] != 0 or ptr[-1] != content.size or np.any(ptr[1:] <= ptr[:-1]):
        raise ValueError(
            f"text features: term_ptr must ascend from 0 to {content.size}, the size of term_bytes"
        )
    _check_utf8(content, ptr)
    _check_idf(idf, n_terms)
    if n_words is None:
        n_words = n_terms
    elif not 0 <= n_words <= n_terms:
        raise ValueError(f"text features: {n_words} of {n_terms} terms cannot be words")
    vocabulary = Vocabulary(content.copy(), ptr.copy(), idf.copy(), n_words)
    _ = vocabulary.slots  # so that a term that occurs twice is found here
    return vocabulary


def check_arrays(arrays: Any, expected: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` unless there are these vectors, and no others."""
    if not isinstance(arrays, Mapping) or set(arrays) != set(expected):
        found = sorted(map(str, arrays)) if isinstance(arrays, Mapping) else arrays
        raise ValueError(f"text features: arrays must be {sorted(expected)}, got {found}")
    for name, dtype in expected.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
            raise ValueError(
                f"text features: {name} must be a vector of {np.dtype(dtype)}, "
                f"got {getattr(array, 'dtype', type(array).__name__)} "
                f"of shape {getattr(array, 'shape', None)}"
            )


def _check_utf8(content: AnyArray, ptr: AnyArray) -> None:
    """Raise ``ValueError`` unless all is UTF-8 and no term begins within a character."""
    try:
        content.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"text features: a term is not UTF-8: {error}") from error
    within = (content[ptr[:-1]] & 0xC0) == 0x80
    if within.any():
        raise ValueError(
            f"text features: a term is not UTF-8: number {int(within.argmax())} begins within a "
            "character"
        )


def _check_idf(idf: AnyArray, n_terms: int) -> None:
    if idf.size != n_terms:
        raise ValueError(f"text features: {idf.size} entries of idf for {n_terms} terms")
    if not np.all(np.isfinite(idf)) or np.any(idf <= 0.0):
        raise ValueError("text features: idf must be positive and finite")

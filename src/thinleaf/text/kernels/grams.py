"""N-grams of words and of characters, the keys of them, and their hashes as scikit-learn has them.

The key of an n-gram of up to seven bytes is these bytes themselves, and their number in the highest
byte; that of a longer one is a hash, and who looks it up compares bytes. So equal keys of short
n-grams are equal n-grams. Keys are never zero.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf.kernels._jit import inlined, strict_part
from thinleaf.model.kernels.addresses import int64_at, uint8_at, uint64_at
from thinleaf.text.kernels.memory import eight_bytes_at
from thinleaf.text.kernels.tokens import FNV_OFFSET, stir, width_of

MOST_SHORT = 7
"""Bytes of the longest n-gram whose key says all."""

WORDS = np.uint64(0)
CHARS = np.uint64(8 << 56)
"""What tells keys of characters from those of words."""

NGRAM = np.uint64(116049371)
"""What a hash is multiplied by before the next word's is added."""

_LONG = np.uint64(128 << 56)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOWER_HALF = np.int64(0xFFFFFFFF)
_BLANK = 32


@inlined
def is_long(key):
    """Whether equal keys do not mean equal n-grams."""
    return key >= _LONG


@inlined
def short_key(first_bytes, size, block):
    """Return the key of an n-gram of one to seven bytes, the lowest of ``first_bytes``."""
    n = np.uint64(size)
    kept = first_bytes & (_ALL >> (np.uint64(64) - (n << np.uint64(3))))
    return kept | (n << np.uint64(56)) | block


@inlined
def long_key(h, block):
    """Return the key of an n-gram of more bytes."""
    return (h >> np.uint64(8)) | _LONG | block


@strict_part
def word_grams(buffer_at, spans_at, hashes_at, n_words, low, high, keys_at, grams_at):
    """Fill keys and places of the sequences of ``low`` to ``high`` words; return their number."""
    spans, hashes = int64_at(spans_at), uint64_at(hashes_at)
    keys, grams = uint64_at(keys_at), int64_at(grams_at)
    n = 0
    for i in range(n_words):
        begin = spans[i] >> 32
        h = hashes[i]
        for j in range(i, min(i + high, n_words)):
            if j > i:
                h = h * NGRAM + hashes[j]
            if j - i + 1 >= low:
                end = spans[j] & _LOWER_HALF
                if end - begin <= MOST_SHORT:
                    first = eight_bytes_at(buffer_at + begin)
                    keys[n] = short_key(first, end - begin, WORDS)
                else:
                    keys[n] = long_key(h, WORDS)
                grams[n] = (begin << 32) | end
                n += 1
    return n


@strict_part
def char_grams(buffer_at, size, low, high, keys_alone, keys_at, grams_at):
    """Do the same for sequences of characters that lie within a word and the spaces around it.

    A word that has with its spaces fewer than ``low`` characters is one n-gram, too. With
    ``keys_alone``, the places of those whose keys say all may be left out.
    """
    buffer, keys = uint8_at(buffer_at), uint64_at(keys_at)
    bytes_alone = keys_alone and low == high and high <= MOST_SHORT
    n, word = 0, 0
    while word + 1 < size:
        stop = word + 1
        any_byte = np.uint8(0)
        while buffer[stop] != _BLANK:
            any_byte |= buffer[stop]
            stop += 1
        begin = word
        if bytes_alone and any_byte < 0x80 and stop + 1 - word >= low:
            for at in range(word, stop + 2 - low):
                keys[n] = short_key(eight_bytes_at(buffer_at + at), low, CHARS)
                n += 1
            begin = stop + 1
        while begin <= stop:
            n = _grams_from(
                buffer_at, begin, stop + 1, begin == word, low, high, keys_at, grams_at, n
            )
            begin += width_of(buffer[begin])
        word = stop
    return n


@inlined
def _grams_from(buffer_at, begin, stop, is_first, low, high, keys_at, grams_at, n):
    """Fill in the n-grams that begin at one character; return the number of all."""
    buffer, keys, grams = uint8_at(buffer_at), uint64_at(keys_at), int64_at(grams_at)
    first = eight_bytes_at(buffer_at + begin)
    h = FNV_OFFSET
    hashed, end, length = begin, begin, 0
    while length < high and end < stop:
        end += width_of(buffer[end])
        length += 1
        if length >= low or (is_first and end == stop):
            if end - begin <= MOST_SHORT:
                keys[n] = short_key(first, end - begin, CHARS)
            else:
                while hashed < end:
                    h = stir(h, buffer[hashed])
                    hashed += 1
                keys[n] = long_key(h, CHARS)
            grams[n] = (begin << 32) | end
            n += 1
    return n


@strict_part
def key_of_term(term_at, size, is_chars):
    """Return the key that the readers give to an n-gram with these bytes."""
    term = uint8_at(term_at)
    block = CHARS if is_chars else WORDS
    if size <= MOST_SHORT:
        first = np.uint64(0)
        for i in range(size):
            first |= np.uint64(term[i]) << np.uint64(8 * i)
        return short_key(first, size, block)
    h, total = FNV_OFFSET, np.uint64(0)
    n_words = 0
    for i in range(size):
        if term[i] == _BLANK and not is_chars:
            total = h if n_words == 0 else total * NGRAM + h
            n_words += 1
            h = FNV_OFFSET
        else:
            h = stir(h, term[i])
    return long_key(h if n_words == 0 else total * NGRAM + h, block)


@strict_part
def same_bytes(a, b, size):
    """Return whether so many bytes at two addresses are the same; there are at least eight."""
    for i in range(0, size - 8, 8):
        if eight_bytes_at(a + i) != eight_bytes_at(b + i):
            return False
    return eight_bytes_at(a + size - 8) == eight_bytes_at(b + size - 8)


# -- MurmurHash3, 32 bits --------------------------------------------------------------------------

_32_BITS = np.uint64(0xFFFFFFFF)


@inlined
def _times(a, b):
    return (a * b) & _32_BITS


@inlined
def _rotated(a, n):
    return ((a << np.uint64(n)) | (a >> np.uint64(32 - n))) & _32_BITS


@inlined
def _scrambled(k):
    return _times(_rotated(_times(k, np.uint64(0xCC9E2D51)), 15), np.uint64(0x1B873593))


@strict_part
def murmur_hash(at, size):
    """Return MurmurHash3 (x86, 32 bits, seed 0) of so many bytes, without a sign."""
    content = uint8_at(at)
    h = np.uint64(0)
    n_whole = size - size % 4
    for i in range(0, n_whole, 4):
        k = np.uint64(content[i]) | (np.uint64(content[i + 1]) << np.uint64(8))
        k |= np.uint64(content[i + 2]) << np.uint64(16)
        k |= np.uint64(content[i + 3]) << np.uint64(24)
        h = _rotated(h ^ _scrambled(k), 13)
        h = (h * np.uint64(5) + np.uint64(0xE6546B64)) & _32_BITS
    if n_whole < size:
        k = np.uint64(0)
        for i in range(n_whole, size):
            k |= np.uint64(content[i]) << np.uint64(8 * (i - n_whole))
        h ^= _scrambled(k)
    h ^= np.uint64(size)
    h = _times(h ^ (h >> np.uint64(16)), np.uint64(0x85EBCA6B))
    h = _times(h ^ (h >> np.uint64(13)), np.uint64(0xC2B2AE35))
    return h ^ (h >> np.uint64(16))

"""Which n-grams texts have, how often, and in how many of them: how a vocabulary is learned.

N-grams are numbered as they are first met. Tables grow as they fill.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray, OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import fetch, int64_at, uint8_at, uint64_at
from thinleaf.text.kernels.grams import (
    char_grams,
    is_long,
    same_bytes,
    word_grams,
)
from thinleaf.text.kernels.rows import (
    CHAR_HIGH,
    CHAR_LOW,
    KINDS,
    N_KINDS,
    WORD_HIGH,
    WORD_LOW,
    kept,
    scratch_in,
    scratch_size,
    slot_of,
)
from thinleaf.text.kernels.tokens import read_pieces, read_words

_EMPTY = np.uint64(0)
_AHEAD = 12
_FIRST_BITS = 14
_PADDING = 8
_LOWER_HALF = np.int64(0xFFFFFFFF)


@strict_kernel
def count_grams(
    table: OffsetArray, content: AnyArray, text_ptr: OffsetArray
) -> tuple[OffsetArray, IndexArray, AnyArray, OffsetArray]:
    """Count the n-grams of texts, words or characters.

    Parameters
    ----------
    table : ndarray of int64
        That of a reader of one block; it needs no terms (:mod:`thinleaf.text.kernels.rows`).
    content : ndarray of uint8
        The texts.
    text_ptr : ndarray of int64
        Where each begins and ends.

    Returns
    -------
    totals, n_texts : ndarray of shape (n_grams,)
        How often each n-gram occurs, and in how many texts.
    pool : ndarray of uint8
        Their bytes.
    pool_ptr : ndarray of int64 of shape (n_grams + 1,)
    """
    longest = 0
    for text in range(text_ptr.size - 1):
        longest = max(longest, text_ptr[text + 1] - text_ptr[text])
    memory = np.empty(scratch_size(table, longest), dtype=np.int64)
    bits = _FIRST_BITS
    slots = _empty_slots(bits)
    totals = np.empty(1 << (bits - 1), dtype=np.int64)
    n_texts = np.empty(totals.size, dtype=np.int32)
    last = np.empty(totals.size, dtype=np.int32)
    pool_ptr = np.empty(totals.size + 1, dtype=np.int64)
    pool = np.empty(8 * totals.size, dtype=np.uint8)
    pool_ptr[0] = 0
    n_grams = 0
    for text in range(text_ptr.size - 1):
        size = text_ptr[text + 1] - text_ptr[text]
        scratch = scratch_in(memory.ctypes.data, table, size)
        n = _read(table, content.ctypes.data + text_ptr[text], size, scratch)
        while n_grams + n > totals.size:
            bits += 1
            slots = _rehashed(slots, bits)
            totals = _twice(totals, n_grams, 0)
            n_texts, last = _twice(n_texts, n_grams, 0), _twice(last, n_grams, 0)
            pool_ptr = _twice(pool_ptr, n_grams + 1, 0)
        keys, grams = uint64_at(scratch.keys), int64_at(scratch.grams)
        for i in range(min(n, _AHEAD)):
            fetch(slots.ctypes.data + 16 * slot_of(keys[i], bits))
        for i in range(n):
            if i + _AHEAD < n:
                fetch(slots.ctypes.data + 16 * slot_of(keys[i + _AHEAD], bits))
            begin = grams[i] >> 32
            length = (grams[i] & _LOWER_HALF) - begin
            gram_at = scratch.buffer + begin
            at = _slot_of_gram(slots, bits, keys[i], gram_at, length, pool, pool_ptr)
            if slots[2 * at] == _EMPTY:
                if pool_ptr[n_grams] + length + _PADDING > pool.size:
                    pool = _twice(pool, pool_ptr[n_grams], length + _PADDING)
                _copy(gram_at, pool, pool_ptr[n_grams], length)
                pool_ptr[n_grams + 1] = pool_ptr[n_grams] + length
                slots[2 * at], slots[2 * at + 1] = keys[i], np.uint64(n_grams)
                totals[n_grams], n_texts[n_grams], last[n_grams] = 0, 0, -1
                n_grams += 1
            gram = np.int64(slots[2 * at + 1])
            totals[gram] += 1
            if last[gram] != text:
                last[gram] = text
                n_texts[gram] += 1
    n_grams = kept(n_grams, memory)
    return totals[:n_grams], n_texts[:n_grams], pool, pool_ptr[: n_grams + 1]


@strict_part
def _read(table, text_at, size, scratch):
    """Fill in the n-grams of one text; return their number."""
    kinds, n_kinds = table[KINDS], table[N_KINDS]
    if table[WORD_HIGH] > 0:
        n_words = read_words(
            text_at, size, kinds, n_kinds, scratch.buffer, scratch.spans, scratch.hashes
        )
        return word_grams(
            scratch.buffer, scratch.spans, scratch.hashes, n_words,
            table[WORD_LOW], table[WORD_HIGH], scratch.keys, scratch.grams,
        )  # fmt: skip
    end = read_pieces(text_at, size, kinds, n_kinds, scratch.buffer)
    return char_grams(
        scratch.buffer, end, table[CHAR_LOW], table[CHAR_HIGH], False, scratch.keys, scratch.grams
    )


@strict_part
def _slot_of_gram(slots, bits, key, gram_at, length, pool, pool_ptr):
    """Return the slot of an n-gram, or the empty one where it would go."""
    mask = (1 << bits) - 1
    at = slot_of(key, bits)
    while slots[2 * at] != _EMPTY:
        if slots[2 * at] == key:
            if not is_long(key):
                return at
            gram = np.int64(slots[2 * at + 1])
            begin = pool_ptr[gram]
            if pool_ptr[gram + 1] - begin == length and same_bytes(
                gram_at, pool.ctypes.data + begin, length
            ):
                return at
        at = (at + 1) & mask
    return at


@strict_part
def _empty_slots(bits):
    slots = np.empty(2 << bits, dtype=np.uint64)
    for at in range(slots.size):
        slots[at] = _EMPTY
    return slots


@strict_part
def _rehashed(slots, bits):
    """Return a larger table with the same entries."""
    larger = _empty_slots(bits)
    mask = (1 << bits) - 1
    for old in range(0, slots.size, 2):
        if slots[old] != _EMPTY:
            at = slot_of(slots[old], bits)
            while larger[2 * at] != _EMPTY:
                at = (at + 1) & mask
            larger[2 * at], larger[2 * at + 1] = slots[old], slots[old + 1]
    return larger


@inlined
def _twice(array, n, more):
    """Return an array of twice the size and more that begins with the same n entries."""
    larger = np.empty(2 * array.size + more, dtype=array.dtype)
    for i in range(n):
        larger[i] = array[i]
    return larger


@inlined
def _copy(source_at, target, begin, size):
    source = uint8_at(source_at)
    for i in range(size):
        target[begin + i] = source[i]


@strict_kernel
def take_grams(pool: AnyArray, pool_ptr: OffsetArray, chosen: OffsetArray, out: AnyArray) -> None:
    """Fill in the bytes of some n-grams, one after the other."""
    at = 0
    for gram in chosen:
        for i in range(pool_ptr[gram], pool_ptr[gram + 1]):
            out[at] = pool[i]
            at += 1

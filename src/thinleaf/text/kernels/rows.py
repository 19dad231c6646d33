"""The row of a text: what of its n-grams is known, how often, weighted, and of length one.

A reader arrives as a table of numbers and addresses, which are named below. Terms stand in an
open-addressed table of pairs: the key of a term (:mod:`thinleaf.text.kernels.grams`), and an entry,
its id in the upper half and its inverse document frequency in the lower one. An entry is all that
is kept of an n-gram that was found, so entries in order are a row in order. Of hashed n-grams an
entry is the bucket, and whether it counts positive.

Values are computed as scikit-learn does: float32, but lengths in float64.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import fetch, float32_at, int64_at, uint64_at
from thinleaf.text.kernels.grams import (
    char_grams,
    is_long,
    key_of_term,
    murmur_hash,
    same_bytes,
    word_grams,
)
from thinleaf.text.kernels.memory import address_of
from thinleaf.text.kernels.tokens import read_pieces, read_words

NUMBERS = (
    "is_hashing", "word_low", "word_high", "char_low", "char_high", "n_kinds", "n_word_terms",
    "slot_bits", "id_bits", "n_buckets", "signed", "n_tf",
)  # fmt: skip
"""What a table begins with. A block that there is not has 0 as ``high``."""

ARRAYS = ("kinds", "slots", "term_ptr", "term_bytes", "tf")
"""The arrays whose addresses follow."""

(
    IS_HASHING, WORD_LOW, WORD_HIGH, CHAR_LOW, CHAR_HIGH, N_KINDS, N_WORD_TERMS, SLOT_BITS, ID_BITS,
    N_BUCKETS, SIGNED, N_TF, KINDS, SLOTS, TERM_PTR, TERM_BYTES, TF,
) = range(len(NUMBERS) + len(ARRAYS))  # fmt: skip

_AHEAD = 12
"""How many look-ups before its turn a slot is fetched."""
_FEW = 64
"""Up to so many entries are compared each with each."""
_LANES = 32
"""So many at a time: a whole number of vectors."""
_DIGIT = 9
_EMPTY = np.uint64(0)
_LOWER_HALF = np.uint64(0xFFFFFFFF)
_UPPER_HALF = np.int64(-(1 << 32))
_LAST = np.int64((1 << 63) - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Scratch(NamedTuple):
    """Addresses of memory for one text at a time."""

    buffer: Any  # its words, one space apart
    spans: Any
    hashes: Any
    keys: Any
    grams: Any
    found: Any


@inlined
def most_grams(table, size):
    """Return how many n-grams a text of so many bytes can have at the most, in either block."""
    words = (size // 2 + 1) * max(table[WORD_HIGH] - table[WORD_LOW] + 1, 0)
    chars = (size + 2) * max(table[CHAR_HIGH] - table[CHAR_LOW] + 1, 0)
    return words, chars


@inlined
def scratch_size(table, size):
    """Return how many numbers of 64 bits are needed for a text of so many bytes."""
    words, chars = most_grams(table, size)
    return size // 8 + 4 + 2 * (size // 2 + 1) + 3 * (words + chars) + _LANES


@inlined
def scratch_in(memory_at, table, size):
    """Return which part of memory is for what."""
    words, chars = most_grams(table, size)
    spans = memory_at + 8 * (size // 8 + 4)
    hashes = spans + 8 * (size // 2 + 1)
    keys = hashes + 8 * (size // 2 + 1)
    grams = keys + 8 * (words + chars + _LANES)
    return Scratch(memory_at, spans, hashes, keys, grams, grams + 8 * (words + chars))


# -- terms -----------------------------------------------------------------------------------------


@inlined
def slot_of(key, bits):
    """Return the slot at which to begin to look for a key."""
    return np.int64(((key ^ (key >> np.uint64(32))) * _GOLDEN) >> np.uint64(64 - bits))


@strict_kernel
def fill_slots(
    term_bytes: AnyArray, term_ptr: OffsetArray, idf: ParamArray, n_words: int, slots: AnyArray
) -> int:
    """Enter terms into an empty table; return how many are there twice."""
    n_slots = slots.size // 2
    bits = 0
    while 1 << bits < n_slots:
        bits += 1
    n_twice = 0
    base = term_bytes.ctypes.data
    for term in range(idf.size):
        begin, size = term_ptr[term], term_ptr[term + 1] - term_ptr[term]
        key = key_of_term(base + begin, size, term >= n_words)
        at = slot_of(key, bits)
        while slots[2 * at] != _EMPTY:
            if slots[2 * at] == key:
                other = np.int64(slots[2 * at + 1] >> np.uint64(32))
                same = term_ptr[other + 1] - term_ptr[other] == size
                if not is_long(key) or (
                    same and same_bytes(base + begin, base + term_ptr[other], size)
                ):
                    n_twice += 1
                    break
            at = (at + 1) & (n_slots - 1)
        if slots[2 * at] == _EMPTY:
            slots[2 * at] = key
            slots[2 * at + 1] = (np.uint64(term) << np.uint64(32)) | np.uint64(
                np.float32(idf[term]).view(np.uint32)
            )
    return n_twice


@strict_part
def find_terms(table, scratch, first, n):
    """Fill in the entries of n-grams that are terms, from ``first`` on; return where they end."""
    keys, grams, found = uint64_at(scratch.keys), int64_at(scratch.grams), uint64_at(scratch.found)
    slots, bits = uint64_at(table[SLOTS]), table[SLOT_BITS]
    term_ptr = int64_at(table[TERM_PTR])
    mask = (1 << bits) - 1
    for i in range(min(n, _AHEAD)):
        fetch(table[SLOTS] + 16 * slot_of(keys[i], bits))
    end = first
    for i in range(n):
        if i + _AHEAD < n:
            fetch(table[SLOTS] + 16 * slot_of(keys[i + _AHEAD], bits))
        key = keys[i]
        at = slot_of(key, bits)
        while slots[2 * at] != _EMPTY:
            if slots[2 * at] == key:
                entry = slots[2 * at + 1]
                same = True
                if is_long(key):
                    term = np.int64(entry >> np.uint64(32))
                    begin = grams[i] >> 32
                    size = (grams[i] & np.int64(0xFFFFFFFF)) - begin
                    same = term_ptr[term + 1] - term_ptr[term] == size and same_bytes(
                        scratch.buffer + begin, table[TERM_BYTES] + term_ptr[term], size
                    )
                if same:
                    found[end] = entry
                    end += 1
                    break
            at = (at + 1) & mask
    return end


@strict_part
def _hash_all(table, scratch, n):
    """Fill in the bucket and the sign of n-grams; return their number."""
    grams, found = int64_at(scratch.grams), uint64_at(scratch.found)
    mask = np.uint64(table[N_BUCKETS] - 1)
    for i in range(n):
        begin = grams[i] >> 32
        h = murmur_hash(scratch.buffer + begin, (grams[i] & np.int64(0xFFFFFFFF)) - begin)
        negative = h >> np.uint64(31)
        if negative > np.uint64(0):  # the absolute value of the hash as a signed number
            # of -2^31, which has none, scikit-learn makes 2^31 - n_buckets: the same bucket
            h = (np.uint64(1) << np.uint64(32)) - h
        positive = np.uint64(1) if table[SIGNED] == 0 else np.uint64(1) - negative
        found[i] = ((h & mask) << np.uint64(32)) | positive
    return n


# -- entries in order ------------------------------------------------------------------------------


@inlined
def _sort_few(entries_at, spare_at, more_at, n):
    """Sort entries by counting for each how many come before it: without branches, in vectors."""
    entries, out, keys = int64_at(entries_at), int64_at(more_at), int64_at(spare_at)
    for i in range(n):  # no key comes twice
        keys[i] = (entries[i] & _UPPER_HALF) | np.int64(i)
    whole = (n + _LANES - 1) & -_LANES
    for i in range(n, whole):
        keys[i] = _LAST
    for i in range(n):
        key, rank = keys[i], np.int64(0)
        for j in range(whole):
            rank += np.int64(keys[j] < key)
        out[rank] = entries[i]
    for i in range(n):
        entries[i] = out[i]


@strict_part
def _sort(entries_at, spare_at, more_at, n, bits):
    """Sort entries by id, of so many bits, with so much room to spare, twice."""
    if n <= _FEW:
        _sort_few(entries_at, spare_at, more_at, n)
        return
    a, b = uint64_at(entries_at), uint64_at(spare_at)
    n_passes = (bits + _DIGIT - 1) // _DIGIT
    digit = (bits + n_passes - 1) // n_passes
    counts = np.empty(1 << digit, dtype=np.int32)
    mask = np.uint64(counts.size - 1)
    for number in range(n_passes):
        shift = np.uint64(32 + number * digit)
        for i in range(counts.size):
            counts[i] = 0
        for i in range(n):
            counts[(a[i] >> shift) & mask] += 1
        at = 0
        for i in range(counts.size):
            size = counts[i]
            counts[i] = at
            at += size
        for i in range(n):
            place = (a[i] >> shift) & mask
            b[counts[place]] = a[i]
            counts[place] += 1
        a, b = b, a
    if n_passes % 2 == 1:
        for i in range(n):
            b[i] = a[i]


@strict_part
def weigh(table, entries_at, n, idx_at, val_at):
    """Fill in indices and values from sorted entries; return their number."""
    entries, tf = uint64_at(entries_at), float32_at(table[TF])
    n_tf, n_words, hashing = table[N_TF], table[N_WORD_TERMS], table[IS_HASHING] == 1
    size, n_of_words = 0, 0
    words, chars = 0.0, 0.0
    i = 0
    while i < n:
        entry = entries[i]
        term = entry >> np.uint64(32)
        count, value = 0, np.float32(0.0)
        while i < n and entries[i] >> np.uint64(32) == term:
            count += 1 if not hashing or entries[i] & np.uint64(1) == np.uint64(1) else -1
            i += 1
        if hashing:
            value = np.float32(count)
        else:
            idf = np.uint32(entry & _LOWER_HALF).view(np.float32)
            if count < n_tf:
                value = tf[count] * idf
            else:
                value = (np.float32(np.log(float(count))) + np.float32(1.0)) * idf
        idx_at[size], val_at[size] = np.int32(term), value
        size += 1
        if np.int64(term) < n_words:
            words += np.float64(value * value)
            n_of_words = size
        else:
            chars += np.float64(value * value)
    share = np.sqrt(0.5) if words > 0.0 and chars > 0.0 else 1.0
    words, chars = np.sqrt(words) / share, np.sqrt(chars) / share
    for t in range(size):
        length = words if t < n_of_words else chars
        if length > 0.0:
            val_at[t] = np.float32(np.float64(val_at[t]) / length)
    return size


# -- rows ------------------------------------------------------------------------------------------


@strict_part
def read_word_grams(table, text_at, size, scratch):
    """Fill in the keys of the n-grams of words of a text; return their number."""
    n_words = read_words(
        text_at, size, table[KINDS], table[N_KINDS], scratch.buffer, scratch.spans, scratch.hashes
    )
    return word_grams(
        scratch.buffer, scratch.spans, scratch.hashes, n_words,
        table[WORD_LOW], table[WORD_HIGH], scratch.keys, scratch.grams,
    )  # fmt: skip


@strict_part
def read_char_grams(table, text_at, size, scratch):
    """Fill in the keys of the n-grams of characters of a text; return their number."""
    end = read_pieces(text_at, size, table[KINDS], table[N_KINDS], scratch.buffer)
    return char_grams(
        scratch.buffer, end, table[CHAR_LOW], table[CHAR_HIGH], True, scratch.keys, scratch.grams
    )


@strict_part
def entries_of_text(table, text_at, size, scratch):
    """Fill in the entries of a text of so many bytes, in order; return their number."""
    n_found = 0
    if table[WORD_HIGH] > 0:
        n = read_word_grams(table, text_at, size, scratch)
        if table[IS_HASHING] == 1:
            n_found = _hash_all(table, scratch, n)
        else:
            n_found = find_terms(table, scratch, 0, n)
        _sort(scratch.found, scratch.keys, scratch.grams, n_found, table[ID_BITS])
    if table[CHAR_HIGH] > 0:
        n = read_char_grams(table, text_at, size, scratch)
        # terms of characters come after those of words, which are in order already
        n_words, n_found = n_found, find_terms(table, scratch, n_found, n)
        found, n_chars = scratch.found + 8 * n_words, n_found - n_words
        _sort(found, scratch.keys, scratch.grams, n_chars, table[ID_BITS])
    return n_found


@inlined
def row_of_text(table, text_at, size, scratch, idx_at, val_at):
    """Fill in the row of a text of so many bytes; return its entries.

    There must be room for as many as there are n-grams (:func:`most_grams`).
    """
    n = entries_of_text(table, text_at, size, scratch)
    return weigh(table, scratch.found, n, idx_at, val_at)


@inlined
def pairs_of_text(table, text):
    """Return the row of one text, a ``bytes`` object, as two arrays."""
    size = len(text)
    memory = np.empty(scratch_size(table, size), dtype=np.int64)
    words, chars = most_grams(table, size)
    idx = np.empty(words + chars, dtype=np.int32)
    val = np.empty(words + chars, dtype=np.float32)
    scratch = scratch_in(memory.ctypes.data, table, size)
    n = row_of_text(table, address_of(text), size, scratch, idx, val)
    n = kept(n, memory)
    return idx[:n], val[:n]


@strict_part
def kept(n, memory):
    """Return a number that was computed through addresses within an array.

    An array is freed after its last use, and an address is none.
    """
    return n


@strict_kernel
def row(table: OffsetArray, text: bytes) -> tuple[IndexArray, ParamArray]:
    """Return the row of one text."""
    idx, val = pairs_of_text(table, text)
    return idx.copy(), val.copy()


@strict_kernel
def rows(
    table: OffsetArray,
    content: AnyArray,
    text_ptr: OffsetArray,
    begin: int,
    end: int,
    sizes: IndexArray,
) -> tuple[IndexArray, ParamArray]:
    """Return the rows of some texts, one after the other; fill in how many entries each has."""
    longest = 0
    for text in range(begin, end):
        longest = max(longest, text_ptr[text + 1] - text_ptr[text])
    memory = np.empty(scratch_size(table, longest), dtype=np.int64)
    words, chars = most_grams(table, longest)
    most = words + chars
    idx = np.empty(max(most, 16 * (end - begin)), dtype=np.int32)
    val = np.empty(idx.size, dtype=np.float32)
    n = 0
    for text in range(begin, end):
        if n + most > idx.size:
            idx, val = _larger(idx, n, most), _larger(val, n, most)
        size = text_ptr[text + 1] - text_ptr[text]
        scratch = scratch_in(memory.ctypes.data, table, size)
        at = content.ctypes.data + text_ptr[text]
        sizes[text] = row_of_text(table, at, size, scratch, idx[n:], val[n:])
        n += sizes[text]
    n = kept(n, memory)
    return idx[:n], val[:n]


@inlined
def _larger(array, n, more):
    out = np.empty(2 * array.size + more, dtype=array.dtype)
    for i in range(n):
        out[i] = array[i]
    return out

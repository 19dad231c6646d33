"""Words and n-grams of texts: hashed, counted, and turned into feature ids, as fastText does.

Words are found and hashed by the reader of all texts (:mod:`thinleaf.text.kernels.tokens`). The key
of a word is its 64-bit FNV-1a hash, made even; that of an n-gram is its bucket, made odd: a bucket
may stand for several n-grams, so keys are not those of exact terms. They are looked up in an
open-addressed table.
"""

# mypy: disable-error-code="no-any-return, no-untyped-def, no-untyped-call, return-value"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.labeltree.kernels.search import descend, search
from thinleaf.text.kernels.grams import NGRAM
from thinleaf.text.kernels.memory import address_of
from thinleaf.text.kernels.tokens import read_words

_EMPTY = np.uint64(0)


@strict_kernel
def hash_words(
    content: AnyArray,
    content_ptr: OffsetArray,
    kinds: AnyArray,
    hashes: AnyArray,
    text_ptr: OffsetArray,
) -> int:
    """Fill the hash of each word, and where each text's words begin; return their number.

    Parameters
    ----------
    content, content_ptr : ndarray
        Texts in lower case, in UTF-8, and where each begins and ends.
    kinds : ndarray of uint8
        What each character is.
    hashes, text_ptr : ndarray
        To be filled: a text of n bytes has at most n // 2 + 1 words.
    """
    longest = 0
    for text in range(content_ptr.size - 1):
        longest = max(longest, content_ptr[text + 1] - content_ptr[text])
    memory = np.empty(_memory_for(longest), dtype=np.int64)
    n_words = 0
    for text in range(content_ptr.size - 1):
        begin, size = content_ptr[text], content_ptr[text + 1] - content_ptr[text]
        hashes_at = hashes.ctypes.data + 8 * n_words
        n_words += _hash_text(content.ctypes.data + begin, size, kinds, memory, hashes_at)
        text_ptr[text + 1] = n_words
    return n_words


@inlined
def _memory_for(size):
    """Return how many numbers of 64 bits the reader of a text of so many bytes needs."""
    return size // 8 + 4 + size // 2 + 1


@strict_part
def _hash_text(text_at, size, kinds, memory, hashes_at):
    spans_at = memory.ctypes.data
    buffer_at = spans_at + 8 * (size // 2 + 1)
    return read_words(text_at, size, kinds.ctypes.data, kinds.size, buffer_at, spans_at, hashes_at)


@inlined
def word_key(h: np.uint64) -> np.uint64:
    """Return the key of a word: even, and not that of an empty slot."""
    return max(h & ~np.uint64(1), np.uint64(2))


@inlined
def ngram_key(h: np.uint64, n_buckets: np.uint64) -> np.uint64:
    """Return the key of an n-gram: odd."""
    return np.uint64(2) * (h % n_buckets) + np.uint64(1)


@inlined
def slot_of(key: np.uint64, keys: AnyArray) -> int:
    """Return the slot of a key, or the empty one where it would go."""
    mask = np.uint64(keys.size - 1)
    z = (key ^ (key >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    at = (z >> np.uint64(20)) & mask
    while keys[at] != _EMPTY and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@strict_kernel
def add_terms(
    hashes: AnyArray,
    text_ptr: OffsetArray,
    first: int,
    n_max: int,
    n_buckets: int,
    keys: AnyArray,
    counts: OffsetArray,
    n_used: int,
) -> tuple[int, int]:
    """Count the terms of texts from ``first`` on, until half of the table is used.

    Returns
    -------
    next : int
        The first text that is not counted yet.
    n_used : int
    """
    buckets = np.uint64(n_buckets)
    for text in range(first, text_ptr.size - 1):
        begin, end = text_ptr[text], text_ptr[text + 1]
        if 2 * (n_used + (end - begin) * n_max) > keys.size:
            return text, n_used
        for i in range(begin, end):
            h = hashes[i]
            for length in range(1, min(n_max, end - i) + 1):
                if length == 1:
                    key = word_key(h)
                else:
                    h = h * NGRAM + hashes[i + length - 1]
                    key = ngram_key(h, buckets)
                at = slot_of(key, keys)
                if keys[at] == _EMPTY:
                    keys[at] = key
                    n_used += 1
                counts[at] += 1
    return text_ptr.size - 1, n_used


@strict_kernel
def rehash(
    keys: AnyArray, values: OffsetArray, new_keys: AnyArray, new_values: OffsetArray
) -> None:
    """Copy a table into a larger empty one."""
    for at in range(keys.size):
        if keys[at] != _EMPTY:
            slot = slot_of(keys[at], new_keys)
            new_keys[slot] = keys[at]
            new_values[slot] = values[at]


@strict_kernel
def fill_table(term_keys: AnyArray, keys: AnyArray, ids: IndexArray) -> None:
    """Fill an empty table with the position of each key."""
    for term in range(term_keys.size):
        at = slot_of(term_keys[term], keys)
        keys[at] = term_keys[term]
        ids[at] = term


@strict_kernel
def find_terms(
    hashes: AnyArray,
    text_ptr: OffsetArray,
    n_max: int,
    n_buckets: int,
    keys: AnyArray,
    ids: IndexArray,
    indptr: IndexArray,
    indices: IndexArray,
) -> None:
    """Fill the ids of the known terms of each text, in the order of the text."""
    buckets = np.uint64(n_buckets)
    n_found = 0
    for text in range(text_ptr.size - 1):
        end = text_ptr[text + 1]
        for i in range(text_ptr[text], end):
            h = hashes[i]
            for length in range(1, min(n_max, end - i) + 1):
                if length == 1:
                    key = word_key(h)
                else:
                    h = h * NGRAM + hashes[i + length - 1]
                    key = ngram_key(h, buckets)
                at = slot_of(key, keys)
                if keys[at] != _EMPTY:
                    indices[n_found] = ids[at]
                    n_found += 1
        indptr[text + 1] = n_found


@strict_kernel
def predict_text(
    content: bytes,
    kinds: AnyArray,
    n_max: int,
    n_buckets: int,
    mean: bool,
    greedy: bool,
    keys: AnyArray,
    ids: IndexArray,
    U: ParamArray,
    weights: ParamArray,
    bias: ParamArray,
    children: IndexArray,
    depth: int,
) -> int:
    """Return the most probable label of one text."""
    arity = children.shape[1]
    w = np.zeros(U.shape[1], dtype=np.float32)
    size = len(content)
    hashes = np.empty(size // 2 + 1, dtype=np.uint64)
    memory = np.empty(_memory_for(size), dtype=np.int64)
    n_words = _hash_text(address_of(content), size, kinds, memory, hashes.ctypes.data)
    buckets = np.uint64(n_buckets)
    n_found = 0
    for i in range(n_words):
        h = hashes[i]
        for length in range(1, min(n_max, n_words - i) + 1):
            if length == 1:
                key = word_key(h)
            else:
                h = h * NGRAM + hashes[i + length - 1]
                key = ngram_key(h, buckets)
            at = slot_of(key, keys)
            if keys[at] != _EMPTY:
                f = ids[at]
                n_found += 1
                for t in range(w.size):
                    w[t] += U[f, t]
    if mean and n_found > 0:
        w *= np.float32(1.0) / np.float32(n_found)
    logp = np.empty(arity, dtype=np.float32)
    if greedy:
        return descend(w, weights, bias, children, logp)
    stack = np.empty(depth * (arity - 1) + 2, dtype=np.int32)
    stack_score = np.empty(stack.size, dtype=np.float32)
    labels = np.empty(1, dtype=np.int32)
    scores = np.empty(1, dtype=np.float32)
    search(w, weights, bias, children, logp, stack, stack_score, labels, scores)
    return labels[0]

"""How many n-grams of a text are terms: what says that a text is a foreign one.

The table is that of a reader (:mod:`thinleaf.text.kernels.rows`) of one block, whose n-grams are
all of one length.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray, AnyArray, OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.text.kernels.memory import address_of
from thinleaf.text.kernels.rows import (
    WORD_HIGH,
    find_terms,
    kept,
    read_char_grams,
    read_word_grams,
    scratch_in,
    scratch_size,
)


@strict_part
def _count(table, text_at, size, scratch):
    """Return how many n-grams of a text are terms, and how many there are."""
    if table[WORD_HIGH] > 0:
        n = read_word_grams(table, text_at, size, scratch)
    else:
        n = read_char_grams(table, text_at, size, scratch)
    return find_terms(table, scratch, 0, n), n


@inlined
def known_in(table, text):
    """Return how many n-grams of a text, a ``bytes`` object, are terms, and how many there are."""
    size = len(text)
    memory = np.empty(scratch_size(table, size), dtype=np.int64)
    n_known, n = _count(table, address_of(text), size, scratch_in(memory.ctypes.data, table, size))
    return kept(n_known, memory), n


@strict_kernel
def known_of_texts(
    table: OffsetArray,
    content: AnyArray,
    text_ptr: OffsetArray,
    n_known: AccumArray,
    n_terms: AccumArray,
) -> None:
    """Fill in both for each of some texts."""
    longest = 0
    for text in range(n_known.size):
        longest = max(longest, text_ptr[text + 1] - text_ptr[text])
    memory = np.empty(scratch_size(table, longest), dtype=np.int64)
    for text in range(n_known.size):
        size = text_ptr[text + 1] - text_ptr[text]
        scratch = scratch_in(memory.ctypes.data, table, size)
        found, n = _count(table, content.ctypes.data + text_ptr[text], size, scratch)
        n_known[text], n_terms[text] = kept(found, memory), n

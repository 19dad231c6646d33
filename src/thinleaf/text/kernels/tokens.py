r"""Where the words of a text are: runs of ``\w`` or what white space separates, in UTF-8.

Both readers copy what they find to a buffer in which words are one space apart, so that every
n-gram is a run of its bytes: ``"the arm"`` for words, ``" the arm "`` for characters. Texts are
lower-cased UTF-8 as Python encodes it; lone surrogates take three bytes.

``kinds`` is a table over code points (:mod:`thinleaf.text.characters`).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf.kernels._jit import inlined, strict_part
from thinleaf.model.kernels.addresses import int64_at, uint8_at

OTHER, WORD, SPACE = range(3)
"""What a character may be."""

FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)

_BLANK = 32


@inlined
def stir(h, byte):
    """Return a hash (64-bit FNV-1a) after one more byte."""
    return (h ^ np.uint64(byte)) * FNV_PRIME


@inlined
def width_of(byte):
    """Return how many bytes the character has whose first byte this is."""
    if byte < 0x80:
        return 1
    if byte < 0xE0:
        return 2
    return 3 if byte < 0xF0 else 4


@inlined
def code_point(text, at, width):
    """Return the character of so many bytes that begins at ``at``."""
    code = np.int64(text[at])
    if width > 1:
        code &= 0x7F >> width
        for i in range(1, width):
            code = (code << 6) | (np.int64(text[at + i]) & 0x3F)
    return code


@strict_part
def read_words(text_at, size, kinds_at, n_kinds, buffer_at, spans_at, hashes_at):
    r"""Copy the runs of ``\w``, one space apart; fill where each stands, and its hash.

    Returns
    -------
    n_words : int
        As many spans, each the beginning times 2^32 plus the end.
    """
    text, kinds, buffer = uint8_at(text_at), uint8_at(kinds_at), uint8_at(buffer_at)
    spans, hashes = int64_at(spans_at), int64_at(hashes_at)
    n_words, end, begin = 0, 0, -1
    h = FNV_OFFSET
    at = 0
    while at < size:
        width = width_of(text[at])
        code = code_point(text, at, width)
        if code < n_kinds and kinds[code] == WORD:
            if begin < 0:
                if n_words > 0:
                    buffer[end] = _BLANK
                    end += 1
                begin, h = end, FNV_OFFSET
            for i in range(at, at + width):
                buffer[end] = text[i]
                h = stir(h, text[i])
                end += 1
        elif begin >= 0:
            spans[n_words], hashes[n_words] = (begin << 32) | end, np.int64(h)
            n_words += 1
            begin = -1
        at += width
    if begin >= 0:
        spans[n_words], hashes[n_words] = (begin << 32) | end, np.int64(h)
        n_words += 1
    return n_words


@strict_part
def read_pieces(text_at, size, kinds_at, n_kinds, buffer_at):
    """Copy what white space separates, one space apart, with a space at either end.

    Returns
    -------
    end : int
        The bytes of the buffer; 0 if there is only white space.
    """
    text, kinds, buffer = uint8_at(text_at), uint8_at(kinds_at), uint8_at(buffer_at)
    end = 0
    inside = False
    at = 0
    while at < size:
        width = width_of(text[at])
        code = code_point(text, at, width)
        if code < n_kinds and kinds[code] == SPACE:
            inside = False
        else:
            if not inside:
                buffer[end] = _BLANK
                end += 1
                inside = True
            for i in range(at, at + width):
                buffer[end] = text[i]
                end += 1
        at += width
    if end > 0:
        buffer[end] = _BLANK
        end += 1
    return end

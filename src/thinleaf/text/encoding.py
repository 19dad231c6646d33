"""Strings as the bytes that compiled readers take: in lower case, in UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AnyArray, OffsetArray
from thinleaf.arrays.ragged import offsets
from thinleaf.text.characters import character_kinds

_MAX_BYTES = int(np.iinfo(INDEX).max) - 64
_N_ASCII = 128


def encoded(text: str) -> bytes:
    """Return one text in lower case, in UTF-8; half of a surrogate pair takes three bytes.

    Raises
    ------
    ValueError
        If it is no string, or one of 2 GB.
    """
    try:
        content = text.lower().encode()
    except UnicodeEncodeError:
        content = text.lower().encode("utf-8", "surrogatepass")
    except AttributeError:
        raise ValueError(f"text must be a string, got {type(text).__name__}") from None
    if len(content) > _MAX_BYTES:
        raise ValueError(f"the text has more than {_MAX_BYTES} bytes")
    return content


def all_encoded(texts: Sequence[str]) -> tuple[bytes, OffsetArray]:
    """Return texts one after the other, and where each begins and ends.

    Raises
    ------
    ValueError
        If one of them has 2 GB.
    """
    whole = "".join(texts)
    if whole.isascii():  # then lower case does not depend on what is beside a character
        sizes = np.fromiter(map(len, texts), dtype=OFFSET, count=len(texts))
        _check_sizes(sizes)
        return whole.lower().encode(), offsets(sizes)
    try:
        parts = [text.lower().encode() for text in texts]
    except UnicodeEncodeError:
        parts = [text.lower().encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.fromiter(map(len, parts), dtype=OFFSET, count=len(parts))
    _check_sizes(sizes)
    return b"".join(parts), offsets(sizes)


def _check_sizes(sizes: OffsetArray) -> None:
    if sizes.size and sizes.max() > _MAX_BYTES:
        raise ValueError(f"text {int(sizes.argmax())} has more than {_MAX_BYTES} bytes")


def kinds_in(content: bytes) -> AnyArray:
    """Return the table of characters that suffices for an encoded text."""
    return character_kinds(_N_ASCII) if content.isascii() else character_kinds()

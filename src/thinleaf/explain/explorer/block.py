"""Arrays and JSON values as text that a page carries: planes of bytes, deflated, in base64.

The bytes of an array stand in planes, first the lowest byte of all numbers: the upper ones are
alike, and deflate finds that. Nothing of it can end the element that it stands in.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from thinleaf._dtypes import AnyArray

_KINDS = ("u1", "i1", "u8", "f2", "f4", "f8")
_LEVEL = 9
_MUCH = 1 << 25
"""Bytes from which a block is deflated in less time."""


class Block:
    """What is packed together.

    Parameters
    ----------
    values : mapping
        Whatever JSON can hold.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.values = dict(values or {})
        self._entries: list[tuple[str, str, int]] = []
        self._planes: list[bytes] = []

    def add(self, name: str, array: AnyArray) -> None:
        """Add numbers as they are; integers of other types than the script knows, as int32."""
        kind = array.dtype.str[1:]
        if kind not in _KINDS:
            kind, array = "i4", array.astype(np.int32)
        self._append(name, kind, array)

    def add_rising(self, name: str, array: AnyArray) -> None:
        """Add integers that mostly rise: by their differences."""
        steps: AnyArray = np.diff(array.astype(np.int64), prepend=0)
        self._append(name, "d4", (steps & 0xFFFFFFFF).astype(np.uint32))

    def add_strings(self, name: str, strings: Iterable[str]) -> None:
        """Add strings; half of a surrogate pair becomes a question mark."""
        kept = [text.encode("utf-8", "replace").decode() for text in strings]
        self.add(f"{name}.utf8", np.frombuffer("".join(kept).encode(), dtype=np.uint8))
        lengths = [len(text) + sum(c > "\uffff" for c in text) for text in kept]
        self.add(f"{name}.sizes", np.array(lengths, dtype=np.int32))

    def _append(self, name: str, kind: str, array: AnyArray) -> None:
        array = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        self._entries.append((name, kind, int(array.size)))
        width = array.dtype.itemsize
        self._planes.append(array.view(np.uint8).reshape(-1, width).T.tobytes())

    def packed(self) -> str:
        """Return the text."""
        header = json.dumps(
            {"values": self.values, "arrays": self._entries}, allow_nan=False, ensure_ascii=True
        ).encode()
        content = b"".join([len(header).to_bytes(4, "little"), header, *self._planes])
        level = _LEVEL if len(content) < _MUCH else 6
        return base64.b64encode(zlib.compress(content, level)).decode("ascii")

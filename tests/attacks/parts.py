"""A model file taken apart and put together again, well or badly; shares no code with the library.

The format: eight bytes with the length of a JSON header, the header, the arrays. The header has an
entry for each array (dtype, shape, where its bytes begin and end) and one for metadata, which is
JSON again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32,
    "I8": np.int8, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_, "U32": np.uint32,
}  # fmt: skip
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}


@dataclass
class Parts:
    """What a model file holds."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Parts:
        """Take a good file apart."""
        return cls.parse(path.read_bytes())

    @classmethod
    def parse(cls, content: bytes) -> Parts:
        """Take the content of a good file apart."""
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        metadata = json.loads(header.pop("__metadata__")["thinleaf"])
        arrays = {}
        for name, entry in header.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(content[begin:end], dtype=DTYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"]).copy()
        return cls(arrays, metadata)

    def header(self) -> dict[str, Any]:
        """Return the header that describes the arrays as they are."""
        out: dict[str, Any] = {"__metadata__": {"thinleaf": json.dumps(self.metadata)}}
        at = 0
        for name, array in self._in_order():
            end = at + array.nbytes
            shape = list(array.shape)
            out[name] = {"dtype": CODES[array.dtype], "shape": shape, "data_offsets": [at, end]}
            at = end
        return out

    def data(self) -> bytes:
        """Return the bytes of the arrays."""
        return b"".join(array.tobytes() for _, array in self._in_order())

    def with_header(self, change: Callable[[dict[str, Any]], Any]) -> bytes:
        """Return the file with a changed header; a change returns what to write, or None."""
        header = self.header()
        changed = change(header)
        return framed(json.dumps(header if changed is None else changed), self.data())

    def __bytes__(self) -> bytes:
        return framed(json.dumps(self.header()), self.data())

    def _in_order(self) -> list[tuple[str, np.ndarray]]:
        """Large items first, so that every array is aligned."""
        return sorted(self.arrays.items(), key=lambda item: -item[1].dtype.itemsize)


def framed(header: str | bytes, data: bytes) -> bytes:
    """Return a file of a header, padded with blanks, and data."""
    encoded = header.encode() if isinstance(header, str) else header
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded + data

"""Blocks hold what was put into them, in letters that end no element."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np

from thinleaf.explain.explorer.block import Block

WIDTHS = {"u1": 1, "i1": 1, "f2": 2, "i4": 4, "d4": 4, "f4": 4, "u8": 8, "f8": 8}


def unpacked(text: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return values and arrays, as the script reads them."""
    content = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + size])
    at, arrays = 4 + size, {}
    for name, kind, n in header["arrays"]:
        planes = np.frombuffer(content, np.uint8, n * WIDTHS[kind], at).reshape(WIDTHS[kind], n)
        raw = np.ascontiguousarray(planes.T)
        array = raw.view({"d4": "<i4"}.get(kind, "<" + kind)).ravel()
        arrays[name] = np.cumsum(array, dtype=np.int32) if kind == "d4" else array
        at += n * WIDTHS[kind]
    assert at == len(content)
    return header["values"], arrays


def test_arrays_come_back():
    rng = np.random.default_rng(0)
    arrays = {
        "bytes": rng.integers(256, size=7).astype(np.uint8),
        "small": rng.integers(-128, 128, size=7).astype(np.int8),
        "ids": rng.integers(-(2**31), 2**31, size=9).astype(np.int32),
        "long": np.arange(5, dtype=np.int64),
        "keys": rng.integers(2**63, size=4).astype(np.uint64),
        "half": rng.normal(size=3).astype(np.float16),
        "float": rng.normal(size=11).astype(np.float32),
        "double": rng.normal(size=11),
        "none": np.empty(0, dtype=np.float32),
    }
    block = Block({"a": [1, "</script>"]})
    for name, array in arrays.items():
        block.add(name, array)
    rising = np.array([3, 5, 5, 1000, 2, -1, 2**31 - 1], dtype=np.int32)
    block.add_rising("rising", rising)
    text = block.packed()
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    values, found = unpacked(text)
    assert values == {"a": [1, "</script>"]}
    assert np.array_equal(found.pop("rising"), rising)
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)


def test_strings_are_counted_as_in_javascript():
    texts = ["", "é", "\U0001f600x", "</script>", "\ud800", "\u2028"]
    block = Block()
    block.add_strings("names", texts)
    _, found = unpacked(block.packed())
    whole = found["names.utf8"].tobytes().decode().encode("utf-16-le")
    ends = np.cumsum(found["names.sizes"])
    parts = [whole[2 * b : 2 * e] for b, e in zip([0, *ends[:-1]], ends, strict=True)]
    assert [part.decode("utf-16-le") for part in parts] == [
        text.replace("\ud800", "?") for text in texts
    ]

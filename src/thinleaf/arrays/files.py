"""Files of arrays: safetensors with JSON metadata, written whole or not at all, read with distrust.

A file is read by mapping it into memory: its arrays are read-only views, and no page is touched
before it is needed; or all of it at once. The header is checked strictly before any array is made.
What the arrays mean is checked by whoever asked for them: models, label trees and checkpoints are
written and read here alike. No pickle is ever read. Where files may be written is in ``replace``.
"""

from __future__ import annotations

import codecs
import json
import math
import mmap
import os
import stat
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.replace import replace_file

_KEY = "thinleaf"
_MAX_HEADER = 16_000_000
_LOOKED_AT = 1024
_GZIP = b"\x1f\x8b"
_MAX_DEPTH = 64


_DTYPES: dict[str, type] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32,
    "I8": np.int8, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip

_ORDER = ("I64", "F64", "F32", "I32", "F16", "U16", "I8", "U8", "BOOL")
"""Types in the order that safetensors stores them in."""


class ModelFileError(ValueError):
    """A file is not what it should be."""


def write_arrays(path: Path, arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> None:
    """Write arrays and JSON metadata; at any moment there is the old file or the new one."""
    from safetensors import SafetensorError  # slow to import, and reading does without
    from safetensors.numpy import save_file

    text = json.dumps(metadata, allow_nan=False)
    strict_json(text)  # what could not be read is not written
    for name, array in arrays.items():
        require(array.dtype in _DTYPES.values(), f"a file holds no {array.dtype} ({name!r})")
    names = sum(len(name) + 200 for name in arrays)
    require(2 * len(text) + names < _MAX_HEADER, "the metadata are too long for a file")
    try:
        with replace_file(path) as temporary:
            save_file(
                {name: np.ascontiguousarray(array) for name, array in arrays.items()},
                temporary,
                {_KEY: text},
            )
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error


def bytes_of_file(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> int:
    """Return the size of the file that :func:`write_arrays` would write, to the byte."""
    text = json.dumps(metadata, allow_nan=False)
    kinds = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
    # as safetensors lays them out: by type, then by name
    order = sorted(arrays, key=lambda name: (_ORDER.index(kinds[arrays[name].dtype]), name))
    at = 0
    header: dict[str, dict[str, Any]] = {"__metadata__": {_KEY: text}}
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": kinds[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return 8 + -(-len(written) // 8) * 8 + at


def read_arrays(path: Path, *, mapped: bool = True) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Read what :func:`write_arrays` wrote; :class:`ModelFileError` if the file is broken.

    Parameters
    ----------
    path : Path
    mapped : bool
        Map the file into memory. If it is then cut short or written over in place, arrays change,
        or the process ends by a signal. Otherwise arrays are of a private copy.

    Returns
    -------
    arrays : dict
        Read-only views of the file, which stays open as long as one of them lives, or of the copy.
    metadata : dict
    """
    if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        raise ModelFileError(f"{path} is no regular file: store what it gives in one first")
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
        _check_kind(path, start)
        if mapped:
            content: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            content = start + file.read()
    return arrays_in(content, path)


def arrays_in(
    content: mmap.mmap | bytes, path: str | os.PathLike[str]
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the arrays and the metadata of what a file holds; the path is for messages."""
    size = len(content)
    try:
        length = int.from_bytes(content[:8], "little")
        require(length <= min(size - 8, _MAX_HEADER), "its header is too long")
        header = strict_json(content[8 : 8 + length])
        metadata = strict_json(_metadata_text(header))
        require(isinstance(metadata, dict), "its metadata is no object")
        arrays = _map_arrays(memoryview(content)[8 + length :], header)
    except ValueError as error:
        message = f"{path} is not a thinleaf file, or is damaged: {error}"
        raise ModelFileError(message) from error
    return arrays, metadata


def _check_kind(path: Path, start: bytes) -> None:
    """Refuse what is evidently another kind of file, by its first bytes, and say what it is."""
    if start.startswith(_GZIP):
        raise ModelFileError(f"{path} is not a model file: it is compressed with gzip, unpack it")
    if len(start) and _is_text(start):
        raise ModelFileError(
            f"{path} is not a model file: it looks like text. If it holds examples, train a model "
            f"on them with `thinleaf train {path} -o model.thinleaf`, and give that one"
        )
    if len(start) < 8:
        raise ModelFileError(f"{path} is not a thinleaf file: it has {len(start)} bytes")


def _is_text(start: bytes) -> bool:
    """Return whether a file that begins so is UTF-8 without control characters."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # the end may be cut
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c.isspace() for c in text)


def file_format(path: Path) -> str | None:
    """Return what a file says it is, such as ``"thinleaf model"``."""
    name = read_arrays(path)[1].get("format")
    return name if isinstance(name, str) else None


def strict_json(text: bytes | str) -> Any:
    """Parse JSON; duplicate keys, NaN, infinity and deep nesting are errors."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        require(len(out) == len(items), "a JSON object has a key twice")
        return out

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    def number(digits: str) -> float:
        value = float(digits)
        require(math.isfinite(value), f"{digits} is too large")
        return value

    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        parsed = json.loads(
            text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number
        )
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error
    level = [parsed]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    require(not level, "JSON is nested too deeply")
    return parsed


def _metadata_text(header: Any) -> str:
    require(isinstance(header, dict), "its header is no object")
    metadata = header.pop("__metadata__", None)
    require(isinstance(metadata, dict) and isinstance(metadata.get(_KEY), str), "no metadata")
    return str(metadata[_KEY])


def _map_arrays(content: memoryview, header: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return the arrays that a header describes; they must fill the file without gap or overlap."""
    spans: list[tuple[int, int]] = []
    arrays: dict[str, AnyArray] = {}
    for name, entry in header.items():
        require(
            isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"},
            f"array {name!r} needs dtype, shape and data_offsets",
        )
        dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        if dtype is None:
            raise ValueError(f"array {name!r} has an unknown dtype")
        shape, offsets = _sizes(name, entry["shape"]), _sizes(name, entry["data_offsets"])
        require(len(shape) <= 4 and len(offsets) == 2, f"array {name!r} has a bad shape")
        begin, end = offsets
        itemsize = np.dtype(dtype).itemsize
        require(begin <= end <= len(content), f"array {name!r} lies outside the file")
        require(math.prod(shape) * itemsize == end - begin, f"array {name!r} has a wrong length")
        spans.append((begin, end))
        array = np.frombuffer(content[begin:end], dtype=np.uint8)
        if array.ctypes.data % itemsize:
            array = array.copy()
        arrays[name] = array.view(dtype).reshape(shape)
    at = 0
    for begin, end in sorted(spans):
        require(begin == at, "arrays overlap or leave gaps")
        at = end
    require(at == len(content), "the file is longer than its arrays")
    return arrays


def _sizes(name: str, values: Any) -> list[int]:
    valid = isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)
    require(valid, f"array {name!r} has a bad shape or bad offsets")
    return list(values)


def typed(metadata: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return an entry of some metadata, which must be of a type."""
    value = metadata[name]
    if type(value) is not kind:
        raise TypeError(f"{name} must be {kind.__name__}, is {type(value).__name__}")
    return value


def pack_strings(texts: list[str], name: str) -> dict[str, AnyArray]:
    """Return strings as one array of UTF-8 and one of offsets."""
    encoded = [text.encode("utf-8") for text in texts]
    ptr = offsets([len(text) for text in encoded])
    return {
        f"{name}.utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.ptr": ptr,
    }


def unpack_strings(arrays: Mapping[str, AnyArray], name: str) -> list[str]:
    """Return what :func:`pack_strings` packed; ``ValueError`` if that cannot be."""
    try:
        utf8, ptr = arrays[f"{name}.utf8"], arrays[f"{name}.ptr"]
    except KeyError as error:
        raise ValueError(f"{error} is missing") from error
    require(utf8.dtype == np.uint8 and utf8.ndim == 1, f"{name}.utf8 must be bytes")
    valid = ptr.dtype == np.int64 and ptr.ndim == 1 and ptr.size > 0 and ptr[0] == 0
    require(valid and ptr[-1] == utf8.size, f"{name}.ptr must rise from 0 to {utf8.size}")
    require(bool(np.all(ptr[:-1] <= ptr[1:])), f"{name}.ptr must rise from 0 to {utf8.size}")
    content = utf8.tobytes()
    return [content[a:b].decode("utf-8") for a, b in pairwise(ptr.tolist())]

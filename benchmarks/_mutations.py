"""Random changes to good model files: of their bytes, of what the header says, of the arrays."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tests.attacks.parts import CODES, Parts, framed

Random: TypeAlias = np.random.Generator
Mutation: TypeAlias = Callable[[Random, Sequence[bytes]], bytes]

INTEGERS = [
    0, 1, -1, 2, 3, 7, 8, 255, 256, 2**15, 2**16 - 1, 2**16, 2**24, 2**31 - 1, 2**31, -(2**31),
    2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30,
]  # fmt: skip
REALS = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 1.0, -1.0, 1.0 + 1e-9, 5e-324, 1e-45, 1e-30, 1e30,
    65504.0, 65520.0, 3.4e38, 1e39, 1e308, -1e308,
]  # fmt: skip


def mutated(rng: Random, good: Sequence[bytes]) -> tuple[str, bytes]:
    """Return a kind of mutation, and one of some good files so mutated."""
    kind = str(rng.choice(list(MUTATIONS)))
    content = good[0]
    while content in good:
        content = MUTATIONS[kind](rng, good)
    return kind, content


def _one(rng: Random, good: Sequence[bytes]) -> bytes:
    return good[int(rng.integers(len(good)))]


def _header_end(content: bytes) -> int:
    return 8 + int.from_bytes(content[:8], "little")


# -- bytes -----------------------------------------------------------------------------------------


def _flip(rng: Random, good: Sequence[bytes]) -> bytes:
    """Change up to eight bytes, in the header as often as in the arrays."""
    content = bytearray(_one(rng, good))
    end = _header_end(content)
    begin, stop = [(0, 8), (8, end), (end, len(content))][int(rng.choice(3, p=[0.1, 0.4, 0.5]))]
    for _ in range(rng.integers(1, 9)):
        at = int(rng.integers(begin, stop))
        content[at] = rng.choice([0, 0x7F, 0x80, 0xFF, content[at] ^ (1 << rng.integers(8))])
    return bytes(content)


def _cut(rng: Random, good: Sequence[bytes]) -> bytes:
    """Cut the end off, or something out."""
    content = _one(rng, good)
    a, b = np.sort(rng.integers(0, len(content) + 1, size=2)).tolist()
    if rng.random() < 0.3:
        a, b = max(len(content) - int(rng.integers(1, 17)), 0), len(content)
    return content[:a] + (b"" if rng.random() < 0.5 else content[b:])


def _splice(rng: Random, good: Sequence[bytes]) -> bytes:
    """Put a piece of a file over, or into, another one."""
    content, other = _one(rng, good), _one(rng, good)
    begin, at = int(rng.integers(len(other))), int(rng.integers(len(content)))
    piece = other[begin : begin + int(rng.integers(1, 200))]
    return content[:at] + piece + content[at + (len(piece) if rng.random() < 0.7 else 0) :]


# -- the header ------------------------------------------------------------------------------------


def _header_numbers(rng: Random, good: Sequence[bytes]) -> bytes:
    """Replace numbers in the text of the header."""
    content = _one(rng, good)
    end = _header_end(content)
    text = content[8:end].decode()
    for _ in range(rng.integers(1, 4)):
        found = list(re.finditer(r"-?\d+(\.\d+)?(e-?\d+)?", text))
        at = found[int(rng.integers(len(found)))]
        near = int(float(at[0])) + int(rng.integers(-8, 9)) if float(at[0]) < 1e18 else 0
        new = str(rng.choice([str(near), str(_pick(rng, INTEGERS)), "1.5", "-0", "1e5", "NaN"]))
        text = text[: at.start()] + new + text[at.end() :]
    return framed(text, content[end:])


def _header_entries(rng: Random, good: Sequence[bytes]) -> bytes:
    """Exchange offsets, shapes, dtypes or names of two arrays; drop or change one."""
    parts = Parts.parse(_one(rng, good))
    header = parts.header()
    for _ in range(rng.integers(1, 3)):
        names = [name for name in header if name != "__metadata__"]
        a, b = rng.choice(names, size=2, replace=False).tolist()
        what = str(rng.choice(["data_offsets", "shape", "dtype", "name", "drop", "any"]))
        if what == "name":
            header[a], header[b] = header[b], header[a]
        elif what == "drop":
            del header[a]
        elif what == "any":
            _change_json(rng, header[a])
        elif what in header[a] and what in header[b]:
            header[a][what], header[b][what] = header[b][what], header[a][what]
    return framed(json.dumps(header), parts.data())


def _change_metadata(rng: Random, parts: Parts) -> None:
    for _ in range(rng.integers(1, 4)):
        _change_json(rng, parts.metadata)


def _change_json(rng: Random, tree: Any) -> None:
    """Replace, drop or exchange values anywhere in JSON."""
    slots: list[tuple[Any, Any]] = []
    level = [tree]
    while level:
        holder = level.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        slots += [(holder, key) for key in keys]
        level += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    if not slots:
        return
    holder, key = slots[int(rng.integers(len(slots)))]
    other, other_key = slots[int(rng.integers(len(slots)))]
    action = rng.random()
    if action < 0.1:
        del holder[key]
    elif action < 0.2 and not isinstance(holder[key], dict | list):
        holder[key] = copy.deepcopy(other[other_key])
    elif action < 0.3 and isinstance(holder, dict):
        holder[str(rng.choice(["", "a.b", "tree", "é", "\ud800", "x" * 300]))] = holder[key]
    else:
        holder[key] = _hostile_json(rng, holder[key])


def _hostile_json(rng: Random, value: Any) -> Any:
    if isinstance(value, int) and rng.random() < 0.4:
        return value + int(rng.integers(-2, 3))
    deep: Any = []
    for _ in range(int(rng.integers(1, 100))):
        deep = [deep]
    choices = [
        None, True, False, "", "x", "int8", "float16", "float32", "str", "object", "int64", "\0",
        "\ud800", "é" * 100, [], {}, [[]], {"a": {}}, [0] * 50, deep, "training",
        _pick(rng, INTEGERS), _pick(rng, INTEGERS), float(_pick(rng, REALS)),
    ]  # fmt: skip
    return _pick(rng, choices)


# -- arrays ----------------------------------------------------------------------------------------


def _change_values(rng: Random, parts: Parts) -> None:
    """Replace entries by extreme or by slightly different ones."""
    for _ in range(rng.integers(1, 4)):
        name = _pick(rng, [name for name, array in parts.arrays.items() if array.size])
        flat = parts.arrays[name].reshape(-1)
        at = int(rng.integers(flat.size))
        if flat.dtype.kind == "f":
            value = _pick(rng, REALS) if rng.random() < 0.7 else -1e6 * float(flat[at])
        elif rng.random() < 0.5:
            value = _pick(rng, INTEGERS)
        else:
            value = int(flat[at]) + int(rng.integers(-3, 4))
        with np.errstate(all="ignore"):
            if flat.dtype.kind != "f":
                info = np.iinfo(np.uint8 if flat.dtype == np.bool_ else flat.dtype)
                value = min(max(value, int(info.min)), int(info.max))
            target = flat.view(np.uint8) if flat.dtype == np.bool_ else flat
            target[at] = value


def _change_lengths(rng: Random, parts: Parts) -> None:
    """Make an array longer or shorter, turn it around, or put another one in its place."""
    name, other = rng.choice(list(parts.arrays), size=2).tolist()
    array = parts.arrays[name]
    flat = array.reshape(-1)
    n = int(rng.integers(1, 5))
    changes: list[Callable[[], np.ndarray]] = [
        lambda: flat[:-n],
        lambda: flat[n:],
        lambda: np.append(flat, flat[:n]),
        lambda: np.append(flat, np.zeros(n, flat.dtype)),
        lambda: flat[::-1].copy(),
        lambda: np.sort(flat),
        lambda: rng.permutation(flat),
        lambda: flat[:0],
        lambda: flat.reshape(1, -1),
        lambda: np.full_like(flat, flat[0]) if flat.size else flat,
        lambda: parts.arrays[other],
        lambda: np.resize(flat, 10 * flat.size),
        lambda: flat.view(_pick(rng, [d for d in CODES if d.itemsize == flat.dtype.itemsize])),
    ]
    parts.arrays[name] = np.ascontiguousarray(_pick(rng, changes)())


def _of_parts(*changes: Callable[[Random, Parts], None]) -> Mutation:
    def mutation(rng: Random, good: Sequence[bytes]) -> bytes:
        parts = Parts.parse(_one(rng, good))
        before = after = bytes(parts)
        while after == before:  # not all changes change something
            for _ in range(1 if len(changes) == 1 else int(rng.integers(2, 5))):
                _pick(rng, changes)(rng, parts)
            after = bytes(parts)
        return after

    return mutation


def _pick(rng: Random, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


MUTATIONS: dict[str, Mutation] = {
    "bytes changed": _flip,
    "cut": _cut,
    "spliced": _splice,
    "numbers in the header": _header_numbers,
    "entries of the header": _header_entries,
    "metadata": _of_parts(_change_metadata),
    "entries of arrays": _of_parts(_change_values),
    "lengths of arrays": _of_parts(_change_lengths),
    "several of them": _of_parts(_change_metadata, _change_values, _change_lengths),
}

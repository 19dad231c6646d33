"""The attacks. Each takes the parts of a good file and returns the bytes of a bad one.

``ATTACKS`` are for ``load`` or, within leaves, the first prediction that reaches them;
``TRAINING_ATTACKS`` for ``load_estimator``; ``TEXT_ATTACKS`` for ``TextFeatures.from_arrays``;
``TABLE_ATTACKS`` for a model of columns, what it reads and when it rejects. An
attack on what a file does not have returns None.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tests.attacks.parts import Parts, framed

Attack: TypeAlias = Callable[[Parts], bytes | None]

ATTACKS: dict[str, Attack] = {}
TRAINING_ATTACKS: dict[str, Attack] = {}
TEXT_ATTACKS: dict[str, Attack] = {}
TABLE_ATTACKS: dict[str, Attack] = {}

MAX32, MAX64 = 2**31 - 1, 2**63 - 1


def attack(function: Attack) -> Attack:
    """Add a function to the corpus."""
    ATTACKS[function.__name__] = function
    return function


def with_array(name: str, change: Callable[[np.ndarray], Any]) -> Attack:
    """Return the attack that changes an array."""

    def changed(parts: Parts) -> bytes | None:
        if name not in parts.arrays or parts.arrays[name].size < 2:
            return None
        before = parts.arrays[name]
        try:
            after = np.asarray(change(before.copy()), dtype=before.dtype)
        except OverflowError:  # narrow arrays do not hold such numbers
            return None
        if before.shape == after.shape and np.array_equal(before, after):
            return None
        parts.arrays[name] = after
        return bytes(parts)

    return changed


def with_metadata(change: Callable[[dict[str, Any]], Any]) -> Attack:
    """Return the attack that changes the metadata in place, or returns others."""

    def changed(parts: Parts) -> bytes:
        other = change(parts.metadata)
        parts.metadata = parts.metadata if other is None else other
        return bytes(parts)

    return changed


def put(at: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[at] = value
        return array

    return change


# -- structure -------------------------------------------------------------------------------------

CHILD = "tree.child"
ATTACKS |= {
    "cycle to the root": with_array(CHILD, put(0, 0)),
    "cycle below the root": with_array(CHILD, lambda a: np.where(a > 2, 1, a)),
    "shared children": with_array(CHILD, lambda a: np.where(a >= 0, 1, a)),
    "child before its parent": with_array(CHILD, lambda a: np.where(a >= 0, a.max() - a + 1, a)),
    "child beyond the end": with_array(CHILD, put(0, MAX32)),
    "leaf beyond the end": with_array(CHILD, put(-1, -MAX32 - 1)),
    "one leaf twice": with_array(CHILD, put(-1, -1)),
    "only routers": with_array(CHILD, lambda a: 2 * np.arange(a.size) + 1),
    "only leaves": with_array(CHILD, lambda a: -1 - np.arange(a.size)),
    "no nodes": with_array(CHILD, lambda a: a[:0]),
    "a node more": with_array(CHILD, lambda a: np.append(a, -a.size)),
}


# -- every array -----------------------------------------------------------------------------------

IDS = ["dense_at", "router_idx", "class_ids", "feat_idx", "rank", "extra_ids", "slot"]
POINTERS = ["router_ptr", "class_ptr", "feat_ptr", "block_ptr", "row_ptr", "extra_ptr"]
FLOATS = [
    "bias", "dense_val", "router_val", "leaf_bias", "scale", "block", "entry", "inside", "outside",
    "prior", "extra",
]  # fmt: skip
STRINGS = ["labels", "features"]


def _not_finite(value: float, at: int) -> Callable[[np.ndarray], Any]:
    def change(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind == "f":
            array[at] = value
        return array

    return change


for _name in IDS:
    _array = f"tree.{_name}"
    _large = 2**16 - 1 if _name == "slot" else MAX32
    ATTACKS |= {
        f"{_name} too large": with_array(_array, put(-1, _large)),
        f"{_name} too large at first": with_array(_array, put(0, _large)),
    }
    if _name not in ("slot", "dense_at"):
        ATTACKS |= {
            f"{_name} negative": with_array(_array, put(0, -1)),
            f"{_name} very negative": with_array(_array, put(-1, -MAX32 - 1)),
            f"{_name} the same": with_array(_array, lambda a: np.full_like(a, a[0])),
        }
# the same class may be an extra twice, and all routers may be rows of -1, that is, compressed
ATTACKS.pop("extra_ids the same")
ATTACKS["dense_at very negative"] = with_array("tree.dense_at", put(0, -2))

for _name in POINTERS:
    _array = f"tree.{_name}"
    ATTACKS |= {
        f"{_name} from 1": with_array(_array, put(0, 1)),
        f"{_name} from -1": with_array(_array, put(0, -1)),
        f"{_name} too far": with_array(_array, put(-1, 2**62)),
        f"{_name} too far within": with_array(_array, put(1, 2**62)),
        f"{_name} negative within": with_array(_array, put(-2, -(2**62))),
        f"{_name} wraps around": with_array(
            _array, lambda a: np.concatenate([[0, MAX64, -MAX64 - 1, -1], a[4:]])
        ),
        f"{_name} falls": with_array(_array, lambda a: np.concatenate([a[:1], a[:0:-1]])),
        f"{_name} empty": with_array(_array, lambda a: a[:0]),
    }

for _name in FLOATS:
    _array = f"tree.{_name}"
    for _value in (np.nan, np.inf, -np.inf):
        for _at in (0, -1):
            ATTACKS[f"{_value} in {_name} at {_at}"] = with_array(_array, _not_finite(_value, _at))

for _name in (*IDS, *POINTERS, *FLOATS, "child"):
    _array = f"tree.{_name}"
    ATTACKS |= {
        f"{_name} longer": with_array(_array, lambda a: np.append(a, a[-1:])),
        f"{_name} shorter": with_array(_array, lambda a: a[:-1]),
        f"{_name} as a matrix": with_array(_array, lambda a: a[None]),
    }


def _dtype(name: str) -> Attack:
    def changed(parts: Parts) -> bytes | None:
        array = parts.arrays[f"tree.{name}"]
        other = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.float64}[array.dtype.itemsize]
        other = np.dtype(other)
        if array.size == 0:
            return None
        if other == array.dtype:
            other = np.dtype({1: np.int8, 8: np.int64}.get(array.dtype.itemsize, np.float16))
        parts.arrays[f"tree.{name}"] = array.view(other)
        return bytes(parts)

    return changed


def _missing(name: str) -> Attack:
    def changed(parts: Parts) -> bytes | None:
        return bytes(parts) if parts.arrays.pop(name, None) is not None else None

    return changed


for _name in (*IDS, *POINTERS, *FLOATS, "child"):
    ATTACKS[f"{_name} of another dtype"] = _dtype(_name)
    ATTACKS[f"{_name} missing"] = _missing(f"tree.{_name}")
for _name in ("labels", "labels.utf8", "labels.ptr", "features.utf8", "features.ptr"):
    ATTACKS[f"{_name} missing"] = _missing(_name)


@attack
def negative_masses(parts: Parts) -> bytes:
    parts.arrays["tree.inside"][:] = -0.5
    return bytes(parts)


@attack
def masses_above_one(parts: Parts) -> bytes:
    parts.arrays["tree.inside"][:] = 1e300
    return bytes(parts)


@attack
def negative_outside(parts: Parts) -> bytes:
    parts.arrays["tree.outside"][0] = -1e300
    return bytes(parts)


@attack
def prior_above_one(parts: Parts) -> bytes:
    parts.arrays["tree.prior"][:] = 2.0
    return bytes(parts)


@attack
def rank_against_the_prior(parts: Parts) -> bytes:
    parts.arrays["tree.prior"][:] = np.linspace(0.1, 0.9, parts.arrays["tree.prior"].size)
    parts.arrays["tree.rank"][:] = np.arange(parts.arrays["tree.rank"].size)
    return bytes(parts)


# -- the frame -------------------------------------------------------------------------------------

ATTACKS |= {
    "nothing": lambda parts: b"",
    "seven bytes": lambda parts: bytes(7),
    "eight zeros": lambda parts: bytes(8),
    "a megabyte of zeros": lambda parts: bytes(2**20),
    "no header": lambda parts: bytes(8) + parts.data(),
    "header of 2**63": lambda parts: (2**63).to_bytes(8, "little") + bytes(parts)[8:],
    "header of 2**64 - 1": lambda parts: b"\xff" * 8 + bytes(parts)[8:],
    "header of 2**40": lambda parts: (2**40).to_bytes(8, "little") + bytes(parts)[8:],
    "header as long as the file": lambda parts: (
        len(bytes(parts)).to_bytes(8, "little") + bytes(parts)[8:]
    ),
    "header to the end of the file": lambda parts: (
        (len(bytes(parts)) - 8).to_bytes(8, "little") + bytes(parts)[8:]
    ),
    "header cut short": lambda parts: (20).to_bytes(8, "little") + bytes(parts)[8:],
    "half a file": lambda parts: bytes(parts)[: len(bytes(parts)) // 2],
    "a byte less": lambda parts: bytes(parts)[:-1],
    "a byte more": lambda parts: bytes(parts) + b"\0",
    "twice": lambda parts: 2 * bytes(parts),
    "other text": lambda parts: b"PK\x03\x04" + bytes(parts),
    "a pickle": lambda parts: b"\x80\x04\x95cos\nsystem\n(S'false'\ntR." + bytes(parts),
    "header is not UTF-8": lambda parts: framed(b'{"\xff\xfe": 1}', parts.data()),
    "header in UTF-16": lambda parts: framed(json.dumps(parts.header()).encode("utf-16"), b""),
    "header with a byte order mark": lambda parts: framed(
        b"\xef\xbb\xbf" + json.dumps(parts.header()).encode(), parts.data()
    ),
    "header is a list": lambda parts: framed("[]", b""),
    "header is a number": lambda parts: framed("1", b""),
    "header is null": lambda parts: framed("null", b""),
    "header is empty": lambda parts: framed("{}", b""),
    "header is cut JSON": lambda parts: framed(json.dumps(parts.header())[:-3], parts.data()),
    "header has NaN": lambda parts: framed('{"a": NaN}', b""),
    "header has a huge number": lambda parts: framed('{"a": ' + "9" * 100_000 + "}", b""),
    "deep lists": lambda parts: framed("[" * 100_000 + "]" * 100_000, b""),
    "deep objects": lambda parts: framed('{"a":' * 100_000 + "1" + "}" * 100_000, b""),
    "open lists": lambda parts: framed("[" * 1_000_000, b""),
    "a long string": lambda parts: framed('{"' + "a" * 5_000_000, b""),
    "header of 17 MB": lambda parts: framed("[" + "{}," * 5_666_666 + "{}]", b""),
    "many empty lists": lambda parts: framed("[" + "[]," * 300_000 + "[]]", b""),
}


@attack
def duplicate_array(parts: Parts) -> bytes:
    text = json.dumps(parts.header())
    entry = json.dumps({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})
    return framed(f'{text[:-1]}, "tree.bias": {entry}}}', parts.data())


@attack
def duplicate_key_of_an_array(parts: Parts) -> bytes:
    text = json.dumps(parts.header()).replace('"dtype"', '"dtype": "I8", "dtype"', 1)
    return framed(text, parts.data())


@attack
def duplicate_metadata(parts: Parts) -> bytes:
    text = json.dumps(parts.header())
    return framed(f'{text[:-1]}, "__metadata__": {{"thinleaf": "{{}}"}}}}', parts.data())


def _metadata_text(change: Callable[[str], str]) -> Attack:
    def changed(parts: Parts) -> bytes:
        header = parts.header()
        header["__metadata__"]["thinleaf"] = change(json.dumps(parts.metadata))
        return framed(json.dumps(header), parts.data())

    return changed


ATTACKS |= {
    "duplicate key in metadata": _metadata_text(lambda text: f'{text[:-1]}, "beam": 2}}'),
    "duplicate key in the summary": _metadata_text(
        lambda text: text.replace('"summary": {', '"summary": {"a": 1, "a": 2, ', 1)
    ),
    "metadata is no JSON": _metadata_text(lambda text: text[:-1]),
    "metadata has NaN": _metadata_text(
        lambda text: text.replace('"summary": {', '"summary": {"a": NaN, ', 1)
    ),
    "metadata has -Infinity": _metadata_text(
        lambda text: text.replace('"summary": {', '"summary": {"a": -Infinity, ', 1)
    ),
    "metadata has 1e999": _metadata_text(
        lambda text: text.replace('"summary": {', '"summary": {"a": 1e999, ', 1)
    ),
    "metadata is nested deeply": _metadata_text(
        lambda text: text.replace(
            '"summary": {', '"summary": {"a": ' + "[" * 500 + "]" * 500 + ", ", 1
        )
    ),
    "metadata is nested too deeply to parse": _metadata_text(
        lambda text: text.replace(
            '"summary": {', '"summary": {"a": ' + "[" * 50_000 + "]" * 50_000 + ", ", 1
        )
    ),
    "metadata has two values": _metadata_text(lambda text: text + text),
}


def _header(change: Callable[[dict[str, Any]], Any]) -> Attack:
    return lambda parts: parts.with_header(change)


def _entry(name: str, **changes: Any) -> Attack:
    return _header(lambda header: header[name].update(changes))


def _overlap(header: dict[str, Any]) -> None:
    size = header["tree.bias"]["data_offsets"][1] - header["tree.bias"]["data_offsets"][0]
    begin = header["tree.inside"]["data_offsets"][0]
    header["tree.bias"]["data_offsets"] = [begin, begin + size]


def _swap(header: dict[str, Any]) -> None:
    header["tree.bias"]["data_offsets"].reverse()


def _shift(by: int) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        for name, entry in header.items():
            if name != "__metadata__":
                entry["data_offsets"] = [offset + by for offset in entry["data_offsets"]]

    return change


def _gap(parts: Parts) -> bytes:
    header = parts.header()
    _shift(8)(header)
    return framed(json.dumps(header), bytes(8) + parts.data())


ATTACKS |= {
    "metadata missing": _header(lambda header: header.pop("__metadata__") and None),
    "metadata of others": _header(lambda header: header.update({"__metadata__": {"format": "pt"}})),
    "metadata as an object": _header(
        lambda header: header.update({"__metadata__": {"thinleaf": {"format": 1}}})
    ),
    "metadata as a list": _header(lambda header: header.update({"__metadata__": []})),
    "metadata as null": _header(lambda header: header.update({"__metadata__": None})),
    "overlap": _header(_overlap),
    "all in one place": _header(
        lambda header: (
            [entry.update(data_offsets=[0, 8]) for entry in list(header.values())[1:]] and None
        )
    ),
    "swapped offsets": _header(_swap),
    "negative offsets": _header(_shift(-8)),
    "offsets beyond the file": _header(_shift(8)),
    "gap": _gap,
    "2**60 entries": _entry("tree.bias", shape=[2**60]),
    "2**60 bytes": _entry("tree.bias", shape=[2**58], data_offsets=[0, 2**60]),
    "a shape that wraps around": _entry("tree.bias", shape=[2**62, 4]),
    "a shape beyond 64 bits": _entry("tree.bias", shape=[2**70]),
    "many axes": _entry("tree.bias", shape=[1] * 100),
    "no entries in many axes": _entry(
        "tree.bias", shape=[2**61, 2**61, 0, 2**61], data_offsets=[0, 0]
    ),
    "negative shape": _entry("tree.bias", shape=[-1]),
    "negative axes": _entry("tree.bias", shape=[-1, -1]),
    "fractional shape": _entry("tree.bias", shape=[1.0]),
    "shape of true": _entry("tree.bias", shape=[True]),
    "shape of a string": _entry("tree.bias", shape="3"),
    "shape of null": _entry("tree.bias", shape=None),
    "shape of objects": _entry("tree.bias", shape=[{}]),
    "no axes": _entry("tree.bias", shape=[]),
    "three offsets": _entry("tree.bias", data_offsets=[0, 4, 8]),
    "offsets of floats": _entry("tree.bias", data_offsets=[0.0, 4.0]),
    "offsets of null": _entry("tree.bias", data_offsets=None),
    "offsets of 2**63": _entry("tree.bias", data_offsets=[2**63, 2**63 + 4]),
    "unknown dtype": _entry("tree.bias", dtype="F8_E4M3"),
    "dtype of numpy": _entry("tree.bias", dtype="float32"),
    "dtype of objects": _entry("tree.bias", dtype="O"),
    "dtype null": _entry("tree.bias", dtype=None),
    "dtype as a list": _entry("tree.bias", dtype=["F32"]),
    "float64 for float32": _entry("tree.bias", dtype="F64"),
    "int32 for float32": _entry("tree.bias", dtype="I32"),
    "an array without a dtype": _header(lambda header: header["tree.bias"].pop("dtype") and None),
    "an array with more": _entry("tree.bias", strides=[0]),
    "an array as a list": _header(lambda header: header.update({"tree.bias": []})),
    "an array as null": _header(lambda header: header.update({"tree.bias": None})),
}


@attack
def extra_array(parts: Parts) -> bytes:
    parts.arrays["other"] = np.zeros(4)
    return bytes(parts)


@attack
def extra_array_of_the_tree(parts: Parts) -> bytes:
    parts.arrays["tree.weights"] = np.zeros(4)
    return bytes(parts)


@attack
def extra_array_of_the_labels(parts: Parts) -> bytes:
    parts.arrays["labels.more"] = np.zeros(4)
    return bytes(parts)


@attack
def names_that_were_not_announced_or_are_not_there(parts: Parts) -> bytes:
    parts.metadata["feature_names"] = not parts.metadata["feature_names"]
    return bytes(parts)


@attack
def many_sections_and_arrays(parts: Parts) -> bytes:
    """Quadratic time would show."""
    for i in range(2_000):
        parts.arrays[f"s{i}x.a"] = np.zeros(0)
    parts.metadata["sections"] |= {f"s{i}": {} for i in range(2_000)}
    return bytes(parts)


# -- metadata --------------------------------------------------------------------------------------

WRONG: list[Any] = [None, True, -1, 1.5, "x", [], {}, [1], {"a": 1}, 10**9, 10**400, "1", ""]
RIGHT: dict[str, tuple[type, ...]] = {
    "format": (), "version": (), "n_features": (), "n_classes": (), "sparse": (bool,),
    "weights": (), "beam": (), "labels": (), "feature_names": (bool,), "summary": (dict,),
    "sections": (),
}  # fmt: skip


def _set(name: str, value: Any) -> Attack:
    return with_metadata(lambda metadata: metadata.update({name: value}))


for _name, _types in RIGHT.items():
    ATTACKS[f"{_name} is missing"] = with_metadata(lambda m, n=_name: m.pop(n) and None)
    for _value in WRONG:
        if type(_value) not in _types and not (_name == "sections" and _value == {}):
            ATTACKS[f"{_name} is {str(_value)[:20]!r} ({type(_value).__name__})"] = _set(
                _name, _value
            )
ATTACKS |= {
    "other format": _set("format", "thinleaf checkpoint 1"),
    "version 5": _set("version", 5),
    "version 0": _set("version", 0),
    "version 1.0": _set("version", 1.0),
    "version true": _set("version", True),
    "beam 0": _set("beam", 0),
    "beam 10**9": _set("beam", 10**9),
    "beam true": _set("beam", True),
    "no temperature": with_metadata(
        lambda m: {k: v for k, v in m.items() if k != "temperature"} | {"version": 3}
    ),
    **{
        f"temperature {value}": with_metadata(
            lambda m, t=value: m.update(
                {"version": 3, "n_trees": m.get("n_trees", 1), "temperature": t}
            )
        )
        for value in (0.0, -1.0, 1e300, 1e-300, 2, True, None, "2", [2.0])
    },
    "sparse as a number": _set("sparse", 1),
    "the other layout": with_metadata(lambda m: m.update(sparse=not m["sparse"])),
    "one feature more": with_metadata(lambda m: m.update(n_features=m["n_features"] + 1)),
    "2**31 features": _set("n_features", 2**31),
    "2**31 - 1 features": _set("n_features", MAX32),
    "no features": _set("n_features", 0),
    "one class more": with_metadata(lambda m: m.update(n_classes=m["n_classes"] + 1)),
    "one class less": with_metadata(lambda m: m.update(n_classes=m["n_classes"] - 1)),
    "2**31 - 1 classes": _set("n_classes", MAX32),
    "other weights": with_metadata(
        lambda m: m.update(weights="float16" if m["weights"] == "int8" else "int8")
    ),
    "float64 weights": _set("weights", "float64"),
    "labels of another kind": with_metadata(
        lambda m: m.update(labels="str" if m["labels"] != "str" else "int64")
    ),
    "labels as objects": with_metadata(
        lambda m: m.update(labels="bool" if m["labels"] != "bool" else "float64")
    ),
    "a section that is no object": _set("sections", {"a": 1}),
    "a section of the tree": _set("sections", {"tree": {}}),
    "a section of the labels": _set("sections", {"labels": {}}),
    "a section without a name": _set("sections", {"": {}}),
    "a section with a dot": _set("sections", {"a.b": {}}),
    "metadata is a list": with_metadata(lambda m: []),
    "metadata is a string": with_metadata(lambda m: "thinleaf"),
    "metadata is empty": with_metadata(lambda m: {"format": "thinleaf model"}),
}


# -- labels and names ------------------------------------------------------------------------------

for _name in STRINGS:
    ATTACKS |= {
        f"{_name} are not UTF-8": with_array(f"{_name}.utf8", put(0, 0xFF)),
        f"{_name} have a surrogate": with_array(
            f"{_name}.utf8", lambda a: np.concatenate([[0xED, 0xA0, 0x80], a[3:]])
        ),
        f"{_name} are too few": with_array(f"{_name}.ptr", lambda a: np.delete(a, 1)),
        f"{_name} are too many": with_array(f"{_name}.ptr", lambda a: np.insert(a, 1, a[1])),
        f"{_name} begin late": with_array(f"{_name}.ptr", put(0, 1)),
        f"{_name} are huge": with_array(f"{_name}.ptr", put(-1, 2**62)),
        f"{_name} are huge within": with_array(f"{_name}.ptr", put(1, 2**62)),
        f"{_name} wrap around": with_array(
            f"{_name}.ptr", lambda a: np.concatenate([[0, MAX64, -MAX64 - 1, -1], a[4:]])
        ),
        f"{_name} go back": with_array(f"{_name}.ptr", put(1, -5)),
        f"{_name} have no offsets": with_array(f"{_name}.ptr", lambda a: a[:0]),
    }


@attack
def labels_the_same(parts: Parts) -> bytes:
    if "labels" in parts.arrays:
        parts.arrays["labels"][:] = parts.arrays["labels"][0]
    else:
        n = parts.arrays["labels.ptr"].size - 1
        parts.arrays["labels.utf8"] = np.full(n, ord("a"), dtype=np.uint8)
        parts.arrays["labels.ptr"] = np.arange(n + 1)
    return bytes(parts)


@attack
def labels_the_same_but_for_a_zero_byte(parts: Parts) -> bytes | None:
    """Fixed-width strings drop zero bytes at the end."""
    if parts.metadata["labels"] != "str":
        return None
    n = parts.arrays["labels.ptr"].size - 1
    texts = [b"a", b"a\0", *(str(i).encode() for i in range(n - 2))]
    parts.arrays["labels.utf8"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
    parts.arrays["labels.ptr"] = np.cumsum([0, *map(len, texts)])
    return bytes(parts)


def _labels(dtype: type, *first: Any) -> Attack:
    def changed(parts: Parts) -> bytes | None:
        labels = parts.arrays.get("labels")
        if labels is None or labels.dtype != dtype:
            return None
        for at, value in enumerate(first):
            labels.view(np.uint8 if dtype is np.bool_ else dtype)[at] = value
        return bytes(parts)

    return changed


ATTACKS |= {
    "a label is NaN": _labels(np.float64, np.nan),
    "two labels are NaN": _labels(np.float64, np.nan, np.nan),
    "a label is infinite": _labels(np.float64, np.inf),
    "labels are 0.0 and -0.0": _labels(np.float64, 0.0, -0.0),
    "labels are bytes": _labels(np.bool_, 0, 2),
}


# -- for load_estimator ----------------------------------------------------------------------------


def _training(change: Callable[[dict[str, Any]], Any]) -> Attack:
    return with_metadata(lambda metadata: change(metadata["sections"]["training"]) and None)


def _fitted(**values: Any) -> Attack:
    return _training(lambda section: section["fitted"].update(values))


def _parameters(**values: Any) -> Attack:
    return _training(lambda section: section["parameters"].update(values))


TRAINING_ATTACKS |= {
    "no section": with_metadata(lambda m: m["sections"].pop("training") and None),
    "empty section": with_metadata(lambda m: m["sections"].update(training={})),
    "unknown estimator": _training(lambda s: s.update(estimator="LogisticRegression")),
    "a class of ours that is none": _training(lambda s: s.update(estimator="load_estimator")),
    "a private name": _training(lambda s: s.update(estimator="__builtins__")),
    "estimator as a list": _training(lambda s: s.update(estimator=["SoftmaxTreeClassifier"])),
    "estimator null": _training(lambda s: s.update(estimator=None)),
    "fitted null": _training(lambda s: s.update(fitted=None)),
    "fitted as a list": _training(lambda s: s.update(fitted=["epsilon_"])),
    "fitted as a string": _training(lambda s: s.update(fitted="epsilon_")),
    "parameters null": _training(lambda s: s.update(parameters=None)),
    "parameters as a list": _training(lambda s: s.update(parameters=[1])),
    "parameters as a string": _training(lambda s: s.update(parameters="ab")),
    "unknown parameter": _parameters(other=1),
    "parameter self": _parameters(self=1),
    "parameter of another type": _parameters(max_sweeps="many"),
    "parameter out of range": _parameters(max_sweeps=-1),
    "a path": _parameters(checkpoint="model"),
    "unknown attribute": _fitted(tree_=1),
    "a method": _fitted(predict="x"),
    "a class attribute": _fitted(__class__="x"),
    "another width": _fitted(n_features_in_=3),
    "width as true": _fitted(n_features_in_=True),
    "epsilon as a string": _fitted(epsilon_="x"),
    "epsilon negative": _fitted(epsilon_=-1.0),
    "epsilon null": _fitted(epsilon_=None),
    "epsilon huge": _fitted(epsilon_=10**400),
    "sparse as a string": _fitted(sparse_input_="yes"),
    "history as a number": _fitted(history_=3),
    "history of numbers": _fitted(history_=[3]),
    "coverage as a list": _fitted(coverage_=[]),
    "rounds as a string": _fitted(n_iter_="x"),
}
for _key in ("coverage_", "epsilon_", "history_", "n_features_in_", "n_iter_", "sparse_input_"):
    TRAINING_ATTACKS[f"no {_key}"] = _training(lambda s, k=_key: s["fitted"].pop(k))
for _key in ("estimator", "fitted", "parameters"):
    TRAINING_ATTACKS[f"no {_key}"] = _training(lambda s, k=_key: s.pop(k))
for _name in ("router_ptr", "class_ptr", "feat_ptr", "block_ptr"):
    _array = f"training.tree.{_name}"
    TRAINING_ATTACKS |= {
        f"{_name} too far": with_array(_array, put(1, 2**62)),
        f"{_name} negative": with_array(_array, put(1, -1)),
        f"{_name} wraps around": with_array(
            _array, lambda a: np.concatenate([[0, MAX64, -MAX64 - 1, -1], a[4:]])
        ),
    }
for _name in ("router_val", "bias", "leaf_bias", "block_val"):
    TRAINING_ATTACKS[f"NaN in {_name}"] = with_array(f"training.tree.{_name}", put(0, np.nan))
for _name in ("router_idx", "class_ids", "feat_idx"):
    TRAINING_ATTACKS[f"{_name} too large"] = with_array(f"training.tree.{_name}", put(-1, MAX32))
    TRAINING_ATTACKS[f"{_name} negative"] = with_array(f"training.tree.{_name}", put(0, -1))
for _name in ("children", "router_ptr", "class_ids", "block_val", "bias"):
    TRAINING_ATTACKS[f"{_name} missing"] = _missing(f"training.tree.{_name}")
TRAINING_ATTACKS |= {
    "cycle": with_array("training.tree.children", lambda a: np.where(a > 0, 0, a)),
    "shared children": with_array("training.tree.children", lambda a: np.where(a > 0, 1, a)),
    "children in one row": with_array("training.tree.children", lambda a: a.ravel()),
    "mass of one": with_array("training.backoff.mass", lambda a: np.ones_like(a)),
    "mass of NaN": with_array("training.backoff.mass", put(0, np.nan)),
    "a short mass": with_array("training.backoff.mass", lambda a: a[:-1]),
    "prior of zero": with_array("training.backoff.prior", put(0, 0.0)),
    "prior of 1e308": with_array("training.backoff.prior", lambda a: np.full_like(a, 1e308)),
    "counts of infinity": with_array("training.backoff.counts", put(0, np.inf)),
    "counts negative": with_array("training.backoff.counts", put(0, -1.0)),
    "ids too large": with_array("training.backoff.ids", put(0, MAX32)),
    "offsets that wrap around": with_array(
        "training.backoff.ptr", lambda a: np.concatenate([[0, MAX64, -MAX64 - 1, -1], a[4:]])
    ),
    "no counts": _missing("training.backoff.counts"),
}


# -- for TextFeatures.from_arrays ------------------------------------------------------------------


def _text(**values: Any) -> Attack:
    return with_metadata(lambda metadata: metadata["sections"]["text"].update(values))


TEXT_ATTACKS |= {
    "version 2": _text(version=2),
    "another kind": _text(kind="pickle"),
    "hashing with terms": _text(kind="hashing"),
    "a pattern": _text(token_pattern="(a+)+$"),
    "many words": _text(ngram_range=[1, 10**9]),
    "words as a string": _text(ngram_range="12"),
    "many buckets": _text(n_buckets=2**60),
    "terms are not UTF-8": with_array("text.term_bytes", put(0, 0xFF)),
    "terms twice": with_array("text.term_bytes", lambda a: np.full_like(a, ord("a"))),
    "terms too long": with_array("text.term_ptr", put(1, 2**62)),
    "terms wrap around": with_array(
        "text.term_ptr", lambda a: np.concatenate([[0, MAX64, -MAX64 - 1, -1], a[4:]])
    ),
    "terms missing": _missing("text.term_ptr"),
    "idf of NaN": with_array("text.idf", put(0, np.nan)),
    "idf of infinity": with_array("text.idf", put(0, np.inf)),
    "idf negative": with_array("text.idf", put(0, -1.0)),
    "idf too short": with_array("text.idf", lambda a: a[:-1]),
}


# -- for a model of columns ------------------------------------------------------------------------


def _filled(name: str, value: float) -> Attack:
    def changed(parts: Parts) -> bytes:
        parts.arrays[name] = np.full_like(parts.arrays[name], value)
        return bytes(parts)

    return changed


def _longer(name: str) -> Attack:
    def changed(parts: Parts) -> bytes:
        parts.arrays[name] = np.append(parts.arrays[name], parts.arrays[name])
        return bytes(parts)

    return changed


def _section(name: str, **values: Any) -> Attack:
    return with_metadata(lambda metadata: metadata["sections"][name].update(values))


def _without(section: str, key: str) -> Attack:
    return with_metadata(lambda metadata: metadata["sections"][section].pop(key) and None)


def _column(at: int, **values: Any) -> Attack:
    return with_metadata(
        lambda metadata: metadata["sections"]["columns"]["texts"][at].update(values)
    )


def _dropped(metadata: dict[str, Any]) -> None:
    del metadata["sections"]["columns"]["texts"][0]


def _renamed(before: str, after: str) -> Attack:
    def changed(parts: Parts) -> bytes:
        parts.arrays[after] = parts.arrays.pop(before)
        return bytes(parts)

    return changed


TABLE_ATTACKS |= {
    "columns: another version": _section("columns", version=9),
    "columns: more metadata": _section("columns", path="/etc/passwd"),
    "columns: texts as an object": _section("columns", texts={"title": {}}),
    "columns: numbers as a string": _section("columns", numeric="price"),
    "columns: a name that is none": _section("columns", numeric=[1]),
    "columns: one more number": _section("columns", numeric=["price", "size"]),
    "columns: a text and a number": _section("columns", numeric=["title"]),
    "columns: a name twice": _column(0, name="body"),
    "columns: another kind": _column(0, kind="pickle"),
    "columns: columns in columns": _column(0, kind="columns"),
    "columns: metadata as a list": _column(1, metadata=[]),
    "columns: a column without its terms": with_metadata(_dropped),
    "columns: terms of another column": _renamed("columns.1.idf", "columns.2.idf"),
    "columns: terms of none": _renamed("columns.1.idf", "columns.idf"),
    "columns: terms too long": with_array("columns.0.term_ptr", put(1, 2**62)),
    "columns: idf of NaN": with_array("columns.1.idf", put(0, np.nan)),
    "columns: no mean": _missing("columns.mean"),
    "columns: a longer mean": _longer("columns.mean"),
    "columns: mean of infinity": _filled("columns.mean", np.inf),
    "columns: scale of zero": _filled("columns.scale", 0.0),
    "columns: scale below zero": _filled("columns.scale", -1.0),
    "columns: scale of NaN": _filled("columns.scale", np.nan),
    "rejection: another version": _section("rejection", version=2),
    "rejection: no rows": _section("rejection", rows=0),
    "rejection: rows as a text": _section("rejection", rows="9"),
    "rejection: more metadata": _section("rejection", names=[]),
    "rejection: weights of NaN": with_array("rejection.weights", put(0, np.nan)),
    "rejection: too few weights": with_array("rejection.weights", lambda a: a[:-1]),
    "rejection: scores that fall": with_array("rejection.scores", lambda a: a[::-1]),
    "rejection: scores of infinity": with_array("rejection.scores", put(-1, np.inf)),
    "rejection: fewer probabilities": with_array("rejection.probability", lambda a: a[:-1]),
    "rejection: probabilities that fall": with_array("rejection.probability", put(-1, -1.0)),
    "rejection: precision of NaN": with_array("rejection.precision", put(3, np.nan)),
    "rejection: no precision": _missing("rejection.precision"),
    "input: another version": _section("input", version=9),
    "input: version 1 with columns": _section("input", version=1),
    "input: another format": _section("input", format="pickle"),
    "input: a format of lines": _section("input", format="tsv"),
    "input: a flag that is none": _section("input", header=1),
    "input: columns as a string": _section("input", text_column="title"),
    "input: numbers of columns with a header": _section("input", text_column=[1, 2]),
    "input: names of columns without one": _section("input", header=False),
    "input: texts and features": _section("input", feature_columns=["price"]),
    "input: no columns": _section("input", text_column=[]),
    "input: a number of features": _section("input", n_features=7),
    "input: a label that is a list": _section("input", label_column=["topic"]),
    "input: more metadata": _section("input", path="/etc/passwd"),
    "input: no format": _without("input", "format"),
}

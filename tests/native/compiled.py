"""The C header, compiled and called from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
NATIVE = Path(__file__).parents[2] / "src" / "thinleaf" / "native"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
DENSE, PAIRS, TEXT = 1, 2, 4

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="there is no C compiler (gcc)"
)


@cache
def folder() -> Path:
    """Return a directory for what is compiled, as long as the process lives."""
    made = tempfile.TemporaryDirectory(prefix="thinleaf-native")
    folder.kept = made  # type: ignore[attr-defined]
    return Path(made.name)


@cache
def compiled(source: str, *options: str, shared: bool = False) -> Path:
    """Return a program, or a library, of a source file of this directory."""
    target = folder() / f"{Path(source).stem}{abs(hash((source, options)))}"
    command = [
        "gcc",
        *STRICT,
        "-O2",
        *options,
        f"-I{NATIVE}",
        str(HERE / source),
        "-o",
        str(target),
    ]
    command += ["-shared", "-fPIC"] if shared else []
    subprocess.run([*command, "-lm"], check=True)
    return target


@cache
def library(*options: str) -> ctypes.CDLL:
    """Return the functions of ``driver.c``."""
    lib = ctypes.CDLL(str(compiled("driver.c", *options, shared=True)))
    lib.d_open.restype = ctypes.c_void_p
    lib.d_sizes.restype = lib.d_label_int.restype = lib.d_row.restype = ctypes.c_int64
    lib.d_lower.restype = ctypes.c_int64
    lib.d_label.restype = ctypes.c_void_p
    lib.d_error.restype = ctypes.c_char_p
    lib.d_label_float.restype = ctypes.c_double
    for name in ("d_exp", "d_log", "d_log1p"):
        getattr(lib, name).restype = ctypes.c_double
        getattr(lib, name).argtypes = [ctypes.c_double]
    lib.d_half.restype = ctypes.c_float
    if hasattr(lib, "d_votes"):
        lib.d_votes.restype = ctypes.c_double
    return lib


class NativeError(Exception):
    """A negative status."""

    def __init__(self, status: int) -> None:
        super().__init__(library().d_error(status).decode())
        self.status = status


class Native:
    """A model file, opened by the header."""

    def __init__(
        self, content: bytes, *options: str, check: bool = True, text_bytes: int = 4096
    ) -> None:
        self.lib = library(*options)
        status = ctypes.c_int()
        self.handle = None
        opened = self.lib.d_open(
            content, ctypes.c_size_t(len(content)), int(check), ctypes.c_size_t(text_bytes),
            ctypes.byref(status),
        )  # fmt: skip
        if status.value:
            raise NativeError(status.value)
        self.handle = ctypes.c_void_p(opened)
        names = ["n_features", "n_classes", "n_trees", "depth", "text", "label_kind"]
        for i, name in enumerate(names):
            setattr(self, name, self.lib.d_sizes(self.handle, i))

    def __del__(self) -> None:
        if self.handle is not None:
            self.lib.d_close(self.handle)

    def label(self, class_id: int) -> Any:
        """Return the label of a class."""
        if self.label_kind == 3:
            n = ctypes.c_size_t()
            at = self.lib.d_label(self.handle, class_id, ctypes.byref(n))
            return ctypes.string_at(at, n.value).decode()
        if self.label_kind == 1:
            return self.lib.d_label_float(self.handle, class_id)
        value = self.lib.d_label_int(self.handle, class_id)
        return bool(value) if self.label_kind == 2 else value

    def predict(self, x: Any, values: Any = None) -> int:
        """Return the class of one input."""
        return _checked(self.lib.d_predict(self.handle, *_input(x, values)))

    def topk(self, x: Any, values: Any = None, k: int = 3) -> tuple[list[int], np.ndarray]:
        """Return the best classes of one input, and their probabilities."""
        ids, p = np.empty(max(k, 1), dtype=np.int32), np.empty(max(k, 1))
        given = _input(x, values)
        _checked(self.lib.d_topk(self.handle, *given, k, _at(ids), _at(p)))
        return ids.tolist(), p

    def path(self, x: Any, values: Any = None, tree: int = 0) -> tuple[list[Any], int]:
        """Return the steps of one input, and where they end."""
        steps = np.empty(self.depth + 1, dtype=[("node", "i4"), ("branch", "i4"), ("score", "f4")])
        end = ctypes.c_int32()
        n = _checked(
            self.lib.d_path(
                self.handle, *_input(x, values), tree, _at(steps), steps.size, ctypes.byref(end)
            )
        )
        return steps[:n].tolist(), end.value

    def row(self, text: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return indices and values of a text."""
        idx, val = np.empty(20_000, dtype=np.int32), np.empty(20_000, dtype=np.float32)
        size = ctypes.c_size_t(len(text))
        most = ctypes.c_int64(idx.size)
        n = _checked(self.lib.d_row(self.handle, text, size, _at(idx), _at(val), most))
        return idx[:n], val[:n]


def _checked(status: int) -> int:
    if status < 0:
        raise NativeError(status)
    return status


def _at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _input(x: Any, values: Any) -> tuple[Any, ...]:
    """Return kind, addresses and size of an input; arrays live as long as the tuple."""
    if isinstance(x, bytes):
        return TEXT, x, None, ctypes.c_size_t(len(x))
    if values is None:
        row = np.ascontiguousarray(x, dtype=np.float32)
        return DENSE, row.ctypes.data_as(ctypes.c_void_p), None, ctypes.c_size_t(row.size)
    idx, val = np.ascontiguousarray(x, dtype=np.int32), np.ascontiguousarray(values, dtype="f4")
    at = idx.ctypes.data_as(ctypes.c_void_p), val.ctypes.data_as(ctypes.c_void_p)
    return PAIRS, *at, ctypes.c_size_t(idx.size)

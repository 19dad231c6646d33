"""What travels between processes: values in parcels, and the work that is done on them there.

A parcel is a pickle with the large arrays beside it, so that what carries it (an object store, a
memory-mapped file) can hand these over without copying them. They come out of it as writable
arrays, though nobody may write to them: to a kernel, read-only arrays are another signature, and it
would be compiled once more.
"""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from thinleaf._dtypes import AnyArray
from thinleaf._version import __version__
from thinleaf.arrays.rows import as_writable

Parcel: TypeAlias = tuple[bytes, list[AnyArray]]

_ASIDE = 4096
"""Bytes from which on an array stands beside the pickle."""


@dataclass(frozen=True)
class Failure:
    """An error in a task: the error in a pickle, if it can be in one, and how it came about."""

    error: bytes | None
    kind: str
    message: str
    traceback: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return an error as it can travel."""
        text = "".join(traceback.format_exception(error))
        try:
            packed = pickle.dumps(error.with_traceback(None))
            pickle.loads(packed)
        except Exception:
            packed = None
        return cls(packed, type(error).__qualname__, str(error), text)

    def raise_here(self, where: str) -> None:
        """Raise the error, with a note that says where it comes from."""
        if self.error is None:
            error: Exception = RuntimeError(f"{self.kind}: {self.message}")
        else:
            error = pickle.loads(self.error)
        error.add_note(f"in a task on {where}:\n{self.traceback}")
        raise error


@dataclass(frozen=True)
class Outcome:
    """What a task sends back.

    Attributes
    ----------
    results : list
        One an item; fewer if there is a failure.
    seconds : list of float
        That each item took.
    failure : Failure or None
    """

    results: list[Any]
    seconds: list[float]
    failure: Failure | None = None


def pack(value: Any, pickler: type[Any] = pickle.Pickler) -> Parcel:
    """Return a value as a parcel.

    Parameters
    ----------
    value : object
    pickler : class
        ``pickle.Pickler``, or one that also takes functions of no module.
    """
    aside: list[AnyArray] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < _ASIDE:
            return True
        aside.append(np.frombuffer(view, dtype=np.uint8))
        return False

    file = BytesIO()
    packer = _packer(pickler)  # type: ignore[arg-type]
    packer(file, protocol=5, buffer_callback=keep_inside).dump(value)
    return file.getvalue(), aside


@lru_cache
def _packer(pickler: type[Any]) -> type[Any]:
    """Return a pickler by which read-only arrays come out writable."""

    class Packer(pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is np.ndarray and not value.flags.writeable:
                return as_writable(value).__reduce_ex__(5)
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(value)

    return Packer


def unpack(parcel: Parcel, *, copy: bool = False) -> Any:
    """Return what was packed; its arrays are those of the parcel, or copies."""
    content, aside = parcel
    buffers = [np.array(array) if copy else as_writable(np.asarray(array)) for array in aside]
    return pickle.loads(content, buffers=buffers)


def n_bytes(parcel: Parcel) -> int:
    """Return the size of a parcel."""
    return len(parcel[0]) + sum(int(array.nbytes) for array in parcel[1])


def work(version: str, counts: Sequence[int], batch: Parcel, *shared: Parcel) -> Parcel:
    """Do a task: apply a function to some items; this is what runs in other processes.

    Parameters
    ----------
    version : str
        Of the package that sends the task.
    counts : sequence of int
        How many parcels each shared value comes in: the value itself, and the changes to it.
    batch : Parcel
        The function and its items.
    shared : Parcel
        Of the values that all items read.

    Returns
    -------
    outcome : Parcel
        Of an :class:`Outcome`.
    """
    os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")
    results: list[Any] = []
    seconds: list[float] = []
    try:
        if version != __version__:
            raise RuntimeError(
                f"the task is of thinleaf {version}, but this machine has {__version__}: install "
                "the same version everywhere"
            )
        with threadpool_limits(limits=1):
            values = list(_values(counts, shared))
            function, items = unpack(batch)
            for item in items:
                began = time.perf_counter()
                results.append(function(*values, item))
                seconds.append(time.perf_counter() - began)
    except Exception as error:
        return pack(Outcome([], [], Failure.of(error)))
    return pack(Outcome(results, seconds))


def _values(counts: Sequence[int], parcels: Sequence[Parcel]) -> Iterator[Any]:
    at = 0
    for count in counts:
        value = unpack(parcels[at])
        if count > 1:
            changes = [unpack(parcel) for parcel in parcels[at + 1 : at + count]]
            patch = changes[0][0]
            value = patch(value, [change for _, change in changes])
        yield value
        at += count

"""The model that answers now, and how another takes its place.

A file is read, checked and tried in full before its model is put in place by one assignment. A
request keeps the model that it began with, so none is lost and none is answered by two. A file that
is broken changes nothing but what is said of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from dataclasses import dataclass
from typing import Any

from thinleaf.serving.answer import Answerer, answer
from thinleaf.serving.limits import Limits
from thinleaf.serving.request import RequestError
from thinleaf.text.opening import open_model

log = logging.getLogger("thinleaf.serving")

Signature = tuple[int, int, int]

_QUICK_SECONDS = 1e-3
_ATTEMPTS = 3


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model that answers.

    Attributes
    ----------
    answerer : Answerer
    version : str
        The beginning of the SHA-256 of its file.
    loaded_at : float
        Seconds since the epoch.
    seconds : float
        That loading took.
    quick : bool
        Whether one sample takes less than a millisecond, so that no thread is worth while.
    """

    answerer: Answerer
    version: str
    loaded_at: float
    seconds: float
    quick: bool


class Slot:
    """Holds the model of a file, and replaces it when the file is.

    Parameters
    ----------
    path : path-like
    limits : Limits
    beam, temperature : int, float, optional
        Of every model that is loaded.
    encoder : callable, optional
        What makes rows of texts, if the models are trained with one.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or holds no valid model.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: Limits,
        beam: int | None = None,
        temperature: float | None = None,
        encoder: Any = None,
    ) -> None:
        self.path = os.fspath(path)
        self._limits, self._beam, self._temperature = limits, beam, temperature
        self._encoder = encoder
        self._lock = threading.Lock()
        self.n_reloads = self.n_failures = 0
        self.failure: str | None = None
        """Why the file that is there now is not in use, if so."""
        self._seen = signature(self.path)
        self.current = self._load()

    def changed(self) -> bool:
        """Return whether the file is another than the one that was last tried."""
        try:
            return signature(self.path) != self._seen
        except OSError as error:
            self._seen = (0, 0, 0)  # if the same file comes back, it is taken up again
            return self._fail(f"{self.path}: {error.strerror}")

    def reload(self) -> bool:
        """Load the file and put its model in place; return whether that was done.

        Takes as long as loading does: call it on a thread of its own.
        """
        with self._lock:
            try:
                self._seen = signature(self.path)
                loaded = self._load()
                before, after = self.current.answerer.shape, loaded.answerer.shape
                if before.kind != after.kind:
                    raise ValueError(
                        f"the new model takes {after.kind}, but the one that answers takes "
                        f"{before.kind}: start the server anew for that"
                    )
            except OSError as error:
                return self._fail(f"{self.path}: {error.strerror or error}")
            except (ValueError, MemoryError) as error:
                return self._fail(str(error) or type(error).__name__)
            except Exception as error:  # whatever a file may do: the old model stays
                log.exception("a new model cannot be loaded")
                return self._fail(f"{type(error).__name__}: {error}")
            self.current = loaded
            self.n_reloads += 1
            self.failure = None
            log.info("model %s is in place, loaded in %.2f s", loaded.version, loaded.seconds)
            return True

    def _fail(self, why: str) -> bool:
        if why != self.failure:
            log.error("the model file is not taken up, the old one stays: %s", why)
            self.n_failures += 1
        self.failure = why
        return False

    def _load(self) -> Loaded:
        """Return the model of the file; it must be the same file before and after."""
        for _ in range(_ATTEMPTS):
            started = time.perf_counter()
            before = signature(self.path)
            version = _digest(self.path)
            model, recipe = open_model(self.path, self._beam, self._temperature, self._encoder)
            if hasattr(model, "check"):
                model.check()
            if signature(self.path) == before:
                self._seen = before
                answerer = Answerer(model, recipe)
                quick = _try(answerer, self._limits) < _QUICK_SECONDS
                seconds = time.perf_counter() - started
                return Loaded(answerer, version, time.time(), seconds, quick)
        raise ValueError(f"{self.path} changes while it is read")


def signature(path: str) -> Signature:
    """Return what tells a file from another of the same name: time, number and size."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino, found.st_size


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _try(answerer: Answerer, limits: Limits) -> float:
    """Answer some requests, so that all code is compiled; return the seconds that one takes.

    Raises
    ------
    ValueError
        If the model cannot answer, for want of its encoder.
    """
    shape = answerer.shape
    one = {"texts": b'"a word"', "rows": b'{"indices":[0],"values":[1]}'}.get(shape.kind)
    if one is None:
        record: dict[str, str | int] = dict.fromkeys(shape.text_columns, "a")
        one = json.dumps(record | dict.fromkeys(shape.numeric_columns, 0)).encode()
    name, names = (field.encode() for field in shape.fields)
    bodies = [
        b'{"%s":%s}' % (name, one),
        b'{"%s":%s,"top_k":1,"proba":true}' % (name, one),
        b'{"%s":[%s,%s]}' % (names, one, one),
        b'{"%s":[%s,%s],"top_k":1,"proba":true}' % (names, one, one),
    ]
    if shape.rejects:
        bodies += [b'{"%s":%s,"reject":0.5}' % (name, one)]
    if shape.kind == "rows":
        dense = b"[%s]" % b",".join([b"0"] * shape.n_features)
        if shape.n_features <= 10_000:
            bodies += [b'{"row":%s}' % dense, b'{"row":%s,"proba":true}' % dense]
    seconds = 0.0
    for body in bodies:
        try:
            answer(body, answerer, "", limits)
        except RequestError as error:
            raise ValueError(error.message) from error
        started = time.perf_counter()
        answer(body, answerer, "", limits)
        seconds = max(seconds, time.perf_counter() - started)
    return seconds

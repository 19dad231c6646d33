"""A model file that the compiled header answers for.

:class:`NativeModel` takes one sample at a time without NumPy. Its other answers come from
:mod:`thinleaf.native.predictor`, which needs NumPy; what is no prediction comes from the model that
Python makes of the same bytes. Both are made when they are first needed.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.native.predictor import NativePredictions

_Model: Any = import_module("thinleaf.native._compiled").Model
"""Of the extension: ``ImportError`` where it was not built."""

_TREE = 0
_READABLE = 0
_ANSWERED = frozenset(
    {
        "label_proba", "labels", "predict", "predict_log_proba", "predict_proba",
        "predict_proba_sparse", "predict_topk", "predict_topk_one",
    }
)  # fmt: skip
_REJECTING = frozenset({"confidence", "rejects", "rejection"})


class NativeModel(_Model):  # type: ignore[misc]
    """What :func:`thinleaf.load` gives where the extension was built.

    To ``isinstance`` it is the class that Python has for such a file, such as
    :class:`thinleaf.FrozenTree`, and it has all attributes of that.

    Parameters
    ----------
    content : buffer
        Of the file: bytes, or what it is mapped to.
    path : path-like
        For messages.

    Raises
    ------
    ValueError
        If the header refuses it.
    """

    if TYPE_CHECKING:
        _n_features: int
        _n_classes: int
        _kind: int
        _text: int
        _hashing: int

        def _run(
            self, what: int, k: int, a: Any, b: Any, c: Any, begin: int, end: int, ids: Any, p: Any
        ) -> Any:
            """Fill in ids and p for some samples; return a status, or what leaves hold."""

    def __new__(cls, content: Any, path: str | os.PathLike[str]) -> NativeModel:
        """Open the file."""
        model: NativeModel = super().__new__(cls, content)
        return model

    def __init__(self, content: Any, path: str | os.PathLike[str]) -> None:
        self._content, self._path = content, path

    @property
    def is_plain(self) -> bool:
        """Whether rows, or texts that the header reads, are all that it takes."""
        if self._kind != _TREE or self._text == _READABLE:
            return True
        return not {"text", "columns", "encoder"} & self._metadata["sections"].keys()

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        import json  # quick: the header has checked it

        size = int.from_bytes(self._content[:8], "little")
        about = json.loads(json.loads(self._content[8 : 8 + size])["__metadata__"]["thinleaf"])
        return dict(about)

    @property
    def layout_sections(self) -> dict[str, Any]:
        """What the file says of data files; of a label tree also how texts become its rows."""
        from thinleaf.model.file_parts import Section

        said = self._metadata["sections"]
        own = () if self._kind == _TREE else ("text",)
        return {name: Section({}, said[name]) for name in ("input", *own) if name in said}

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self._n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._n_classes

    @property
    def takes_texts(self) -> bool:
        """Whether input is texts instead of rows."""
        return self._text == _READABLE

    @cached_property
    def _answers(self) -> NativePredictions:
        from thinleaf.native.predictor import predictions_of

        return predictions_of(self)

    @cached_property
    def _whole(self) -> Any:
        """The model that Python makes of the file."""
        from thinleaf.arrays.files import arrays_in
        from thinleaf.model.model_file import model_of

        return model_of(*arrays_in(self._content, self._path), self._path)

    def _predict_one(self, *args: Any, **named: Any) -> Any:
        """Answer for what is not as the extension takes it: it is converted, or refused."""
        return self._answers.predict_one(*args, **named)

    def __getattr__(self, name: str) -> Any:
        """Return what is not here from who has it."""
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        known = name in _ANSWERED or (name in _REJECTING and self._rejects_here)
        found = getattr(self._answers if known else self._whole, name)
        if name in _ANSWERED and name != "labels":
            self.__dict__[name] = found
        return found

    @property
    def _rejects_here(self) -> bool:
        return self._kind == _TREE and self.takes_texts

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._whole), *object.__dir__(self)})

    def __repr__(self) -> str:
        return repr(self._whole)

    def __reduce__(self) -> Any:
        """Pickle the model that Python makes: a mapped file is not for other processes."""
        return self._whole.__reduce__()

    def __copy__(self) -> NativeModel:
        return self

    def __deepcopy__(self, memo: Any) -> NativeModel:
        return self

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What ``isinstance`` sees: if nobody has imported the class, nobody asks for it."""
        module, name = "thinleaf.model.frozen", "FrozenTree"
        if self._kind != _TREE:
            module, name = "thinleaf.labeltree.frozen", "FrozenLabelTree"
        elif self.takes_texts:
            module, name = "thinleaf.text.frozen", "FrozenTextTree"
        return getattr(sys.modules.get(module), name, NativeModel)

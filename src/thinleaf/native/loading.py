"""``thinleaf.load``: models that the compiled header answers for, where it can.

Neither NumPy nor a compiler is imported to open a file, nor to predict one sample: a process
answers in milliseconds. Where the extension was not built, or ``THINLEAF_NATIVE=0`` is set, models
are those of :func:`thinleaf.model.model_file.load`; so are those that the header does not know.
"""

from __future__ import annotations

import os
from typing import Any

_SMALLEST = 8
_DIRECT = (0, -13)  # texts are read by the header; or the model takes none


def load(path: str | os.PathLike[str], *, mapped: bool = True, encoder: Any = None) -> Any:
    """Open a model file.

    The file is mapped into memory, not read: a large one opens in milliseconds, and processes share
    its pages. Its structure is checked at once, each leaf when a row first reaches it. To save
    another model under its name is safe. To change the file in place, or to copy another one over
    it, is not: the process would end by a signal. ``mapped=False`` reads a private copy instead.

    Parameters
    ----------
    path : path-like
    mapped : bool
        Whether to map the file, or to read all of it now.
    encoder : callable, optional
        What makes rows of texts, if the model was trained with an encoder: no model file holds one.
        Another one than that of the training is refused.

    Returns
    -------
    model : FrozenTree, FrozenTextTree or FrozenLabelTree
        One of texts takes lists of strings, and rows, too. Where the extension was built, it
        predicts with that; all else is the same.

    Raises
    ------
    ModelFileError
        If the file is damaged, or is none of ours.
    """
    found = None if encoder is not None else compiled_model(path, mapped=mapped)
    if found is not None:
        return found
    from thinleaf.model import model_file

    return model_file.load(path, mapped=mapped, encoder=encoder)


def compiled_model(path: str | os.PathLike[str], *, mapped: bool = True) -> Any:
    """Return a model that the compiled header answers for; None where that cannot be.

    What is wrong with a file is not said here: who opens it in Python will find out.
    """
    if os.environ.get("THINLEAF_NATIVE", "1") == "0":
        return None
    try:
        from thinleaf.native.model import NativeModel
    except ImportError:  # it was not built
        return None
    content = _content(path, mapped)
    if content is None:
        return None
    try:
        model = NativeModel(content, path)
    except ValueError:
        return None
    return model if model._text in _DIRECT and model.is_plain else None


def _content(path: str | os.PathLike[str], mapped: bool) -> Any:
    """Return what a regular file holds, or None."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size < _SMALLEST:
                return None
            if not mapped:
                return file.readall()
            import mmap

            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None

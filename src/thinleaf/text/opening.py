"""Opening a model file as programs that run for long or read data do: the model and its recipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.recipe import Recipe

COPIED = 1 << 28
"""Bytes of the largest model file of which a copy is read: it may then change or go."""


def is_mapped(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is mapped: a small one is read, and may then change or go."""
    return Path(path).stat().st_size > COPIED


def open_model(
    path: str | os.PathLike[str],
    beam: int | None = None,
    temperature: float | None = None,
    encoder: Any = None,
) -> tuple[FrozenModel, Recipe]:
    """Return a model, with another beam if one is given, and how it reads data.

    Parameters
    ----------
    path : path-like
    beam : int, optional
        Paths that a row takes; the default is the model's.
    temperature : float, optional
        What routers' scores are divided by; the default is the model's.
    encoder : callable, optional
        What makes rows of texts, if the model was trained with one.

    Raises
    ------
    ModelFileError
        If the file is damaged, or is none of ours.
    ValueError
        If the model has no beam, or takes no encoder or another one.
    """
    from thinleaf.model.model_file import load  # starts a compiler
    from thinleaf.text.recipe import Recipe

    model: FrozenModel = load(path, mapped=is_mapped(path), encoder=encoder)
    recipe = Recipe.of_model(model)
    if beam is not None or temperature is not None:
        if not hasattr(model, "with_beam"):
            raise ValueError(
                "--beam and --temperature are for softmax trees: a label tree is searched exactly"
            )
        model = model.with_beam(beam or model.beam, temperature=temperature)
    return model, recipe

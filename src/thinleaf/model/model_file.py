"""Model files: safetensors with JSON metadata, written whole and checked before they are used.

:func:`load` opens a file of any format. That of softmax trees and forests is here; others are
listed with where their reader is, which is imported when such a file is met.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.files import (
    ModelFileError,
    bytes_of_file,
    pack_strings,
    read_arrays,
    typed,
    unpack_strings,
    write_arrays,
)
from thinleaf.model.file_parts import (
    LABEL_TREE_FORMAT,
    TEXT_SECTIONS,
    Section,
    label_arrays,
    pack_labels,
    section_arrays,
    unpack_labels,
    unpack_sections,
)
from thinleaf.model.narrow import OF_NARROW, is_narrow
from thinleaf.model.packing import PackedTree, array_dtypes

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenModel, FrozenTree

FORMAT = "thinleaf model"
VERSION = 4
"""Of trees with narrow arrays. Files with a temperature are 3, of forests 2, other ones 1; these
say less."""

READERS = {
    FORMAT: ("thinleaf.model.model_file", "frozen_tree"),
    LABEL_TREE_FORMAT: ("thinleaf.labeltree.frozen", "frozen_label_tree"),
}
"""Module and function that make a model of the arrays and metadata of a file."""

TEXT_TREE = ("thinleaf.text.frozen", "FrozenTextTree")
"""Module and class of softmax trees whose file says how texts become rows."""


def load(path: str | os.PathLike[str], *, mapped: bool = True, encoder: Any = None) -> Any:
    """Open a model file as :func:`thinleaf.load` does, for Python alone to predict with.

    Its structure is checked at once, each leaf when a row first reaches it.
    """
    model = model_of(*read_arrays(Path(path), mapped=mapped), path)
    if encoder is None:
        return model
    if not hasattr(model, "with_encoder"):
        raise ValueError(f"{path} holds a model that takes no encoder")
    return model.with_encoder(encoder)


def model_of(
    arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any], path: str | os.PathLike[str]
) -> Any:
    """Return the model of a file's arrays and metadata; :class:`ModelFileError` if there is none.

    Parameters
    ----------
    arrays, metadata
        Of :func:`~thinleaf.arrays.files.read_arrays`.
    path : path-like
        For messages.
    """
    try:
        name = metadata.get("format")
        if not isinstance(name, str) or name not in READERS:
            raise ValueError(f"its format is not {' or '.join(map(repr, READERS))}")
        module, function = READERS[name]
        reader: Callable[..., FrozenModel] = getattr(import_module(module), function)
        with np.errstate(all="ignore"):
            return reader(arrays, metadata)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} is no valid model file: {error}") from error


def write_model(
    path: str | os.PathLike[str],
    arrays: Mapping[str, AnyArray],
    metadata: Mapping[str, Any],
    summary: Mapping[str, Any],
    sections: Mapping[str, Section],
) -> None:
    """Write the arrays and metadata of a model, and what every model file carries beside them."""
    write_arrays(Path(path), *_whole(arrays, metadata, summary, sections))


def _whole(
    arrays: Mapping[str, AnyArray],
    metadata: Mapping[str, Any],
    summary: Mapping[str, Any],
    sections: Mapping[str, Section],
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return all arrays and metadata of a file."""
    about = {
        "summary": dict(summary),
        "sections": {name: dict(part.metadata) for name, part in sections.items()},
    }
    return {**arrays, **section_arrays(sections)}, {**metadata, **about}


def check_version(metadata: Mapping[str, Any], newest: int) -> int:
    """Return the format version of a file; ``ValueError`` if it cannot be read."""
    version = metadata.get("version")
    if type(version) is not int or not 1 <= version <= newest:
        raise ValueError(
            f"its format version is {version!r}, this thinleaf reads up to {newest}: "
            "update thinleaf, or save the model again"
        )
    return version


def other_sections(
    arrays: Mapping[str, AnyArray], own: set[str], metadata: Mapping[str, Any]
) -> dict[str, Section]:
    """Return the sections of a file, made of the arrays that are not the model's own."""
    others = {name: array for name, array in arrays.items() if name not in own}
    return unpack_sections(others, typed(metadata, "sections", dict))


def save(model: FrozenTree, path: str | os.PathLike[str]) -> None:
    """Write a softmax tree or forest."""
    write_model(path, *_contents(model), model.summary, model.sections)


def file_bytes(model: FrozenTree) -> int:
    """Return the size of the file that :func:`save` would write, to the byte."""
    return bytes_of_file(*_whole(*_contents(model), model.summary, model.sections))


def _contents(model: FrozenTree) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the arrays and metadata of a softmax tree or forest."""
    packed, names = model.packed, model.feature_names
    narrow = is_narrow(packed)
    arrays = {f"tree.{name}": array for name, array in packed.arrays().items()}
    labels, kind = pack_labels(model.labels)
    arrays |= labels
    if names is not None:
        arrays |= pack_strings(names, "features")
    metadata = {
        "format": FORMAT,
        "version": 1,
        "n_features": model.n_features,
        "n_classes": model.n_classes,
        "sparse": packed.sparse,
        "weights": packed.weights,
        "beam": int(model.beam),
        "labels": kind,
        "feature_names": names is not None,
    }
    if model.n_trees > 1 or model.temperature != 1.0 or narrow:
        metadata |= {"version": 2, "n_trees": model.n_trees}
    if model.temperature != 1.0 or narrow:
        metadata |= {"version": 3, "temperature": model.temperature}
    if narrow:
        metadata |= {"version": VERSION}
    return arrays, metadata


def frozen_tree(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> FrozenTree:
    """Return the softmax tree or forest of a file; ``ValueError`` if it is damaged."""
    version = check_version(metadata, VERSION)
    weights = typed(metadata, "weights", str)
    if weights not in ("float32", "float16", "int8"):
        raise ValueError(f"unknown weights {weights!r}")
    names = [
        name for name in array_dtypes(weights) if name not in OF_NARROW or f"tree.{name}" in arrays
    ]
    packed = PackedTree(
        typed(metadata, "n_features", int),
        typed(metadata, "n_classes", int),
        typed(metadata, "sparse", bool),
        weights,
        1 if version == 1 else typed(metadata, "n_trees", int),
        **{name: arrays[f"tree.{name}"] for name in names},
    )
    if version < 4 and is_narrow(packed):
        raise ValueError(f"a file of format version {version} has no narrow arrays")
    packed.validate()
    named = typed(metadata, "feature_names", bool)
    kind = typed(metadata, "labels", str)
    own = {f"tree.{name}" for name in names}
    own |= label_arrays(kind)
    own |= {"features.utf8", "features.ptr"} if named else set()
    sections = other_sections(arrays, own, metadata)
    return _class_for(sections)(
        packed,
        unpack_labels(arrays, kind, packed.n_classes),
        feature_names=unpack_strings(arrays, "features") if named else None,
        beam=typed(metadata, "beam", int),
        temperature=1.0 if version < 3 else typed(metadata, "temperature", float),
        summary=typed(metadata, "summary", dict),
        sections=sections,
        checked=False,
    )


def _class_for(sections: Mapping[str, Section]) -> type[FrozenTree]:
    from thinleaf.model.frozen import FrozenTree

    if not any(name in sections for name in TEXT_SECTIONS):
        return FrozenTree
    module, name = TEXT_TREE
    found: type[FrozenTree] = getattr(import_module(module), name)
    return found

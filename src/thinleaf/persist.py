"""Files of arrays: safetensors with JSON metadata, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from thinleaf._dtypes import AnyArray
from thinleaf.tree import Tree, TreeError, array_names

_KEY = "thinleaf"


class ModelFileError(ValueError):
    """A file is not what it should be."""


def write_arrays(path: Path, arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> None:
    """Write arrays and JSON metadata; at any moment there is the old file or the new one."""
    content = save(
        {name: array.copy() for name, array in arrays.items()},
        {_KEY: json.dumps(metadata, allow_nan=False)},
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_arrays(path: Path) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return what :func:`write_arrays` wrote; :class:`ModelFileError` if the file is broken."""
    content = path.read_bytes()
    try:
        arrays = load(content)
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        metadata = json.loads(header["__metadata__"][_KEY])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a thinleaf file, or is damaged: {error}") from error
    if not isinstance(metadata, dict):
        raise ModelFileError(f"{path} is not a thinleaf file: its metadata is no object")
    return arrays, metadata


def tree_arrays(tree: Tree, prefix: str) -> dict[str, AnyArray]:
    """Return a tree's arrays under names that begin with a prefix."""
    return {prefix + name: getattr(tree, name) for name in array_names()}


def tree_from_arrays(
    arrays: Mapping[str, AnyArray], prefix: str, *, n_features: int, n_classes: int
) -> Tree:
    """Return the tree of some arrays, validated."""
    try:
        tree = Tree(
            n_features, n_classes, **{name: arrays[prefix + name] for name in array_names()}
        )
        tree.validate()
    except (KeyError, TreeError) as error:
        raise ModelFileError(f"the file holds no valid tree {prefix!r}: {error}") from error
    return tree

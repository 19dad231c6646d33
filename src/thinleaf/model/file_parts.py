"""Parts of a model file: trees, labels, and sections that others add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.files import ModelFileError, pack_strings, typed, unpack_strings
from thinleaf.model.tree import Tree, TreeError, array_names

TEXT_SECTIONS = ("text", "columns", "encoder")
"""Sections that say how texts become rows: a model with one of them takes texts."""

LABEL_TREE_FORMAT = "thinleaf label tree"
"""What metadata say of a file with a label tree: who finds one can tell how to open it."""


@dataclass(frozen=True)
class Section:
    """Some arrays and JSON metadata that belong together."""

    arrays: Mapping[str, AnyArray]
    metadata: Mapping[str, Any]


# -- what several kinds of file hold ---------------------------------------------------------------


def tree_arrays(tree: Tree, prefix: str) -> dict[str, AnyArray]:
    """Return a tree's arrays under names that begin with a prefix."""
    names = array_names()
    if tree.entry_val.size:
        names += array_names(sparse=True)
    return {prefix + name: getattr(tree, name) for name in names}


def tree_from_arrays(
    arrays: Mapping[str, AnyArray], prefix: str, *, n_features: int, n_classes: int
) -> Tree:
    """Return the tree of some arrays, validated; its arrays are copies."""
    try:
        names = array_names()
        if f"{prefix}entry_ptr" in arrays:
            names += array_names(sparse=True)
        tree = Tree(n_features, n_classes, **{name: arrays[prefix + name].copy() for name in names})
        tree.validate()
    except (KeyError, TreeError) as error:
        raise ModelFileError(f"the file holds no valid tree {prefix!r}: {error}") from error
    return tree


def section_arrays(sections: Mapping[str, Section]) -> dict[str, AnyArray]:
    """Return the arrays of all sections under names that begin with that of theirs."""
    return {
        f"{name}.{key}": array
        for name, section in sections.items()
        for key, array in section.arrays.items()
    }


def unpack_sections(
    arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]
) -> dict[str, Section]:
    """Return sections from the arrays that are nothing else's, and from their metadata."""
    parts: dict[str, dict[str, AnyArray]] = {name: {} for name in metadata}
    for full_name, array in arrays.items():
        section, _, name = full_name.partition(".")
        if section not in parts:
            raise ValueError(f"array {full_name!r} belongs to nothing")
        parts[section][name] = array
    return {name: Section(part, typed(metadata, name, dict)) for name, part in parts.items()}


_STRINGS = ("str", "object")


_NUMBERS = {"int64": np.int64, "float64": np.float64, "bool": np.bool_}


def pack_labels(labels: AnyArray) -> tuple[dict[str, AnyArray], str]:
    """Return labels as arrays, and what kind they are: a dtype, "str" or "object"."""
    if labels.dtype.kind in "iu" and labels.size and int(labels.max()) < 2**63:
        return {"labels": labels.astype(np.int64)}, "int64"
    if labels.dtype.kind == "f":
        return {"labels": labels.astype(np.float64)}, "float64"
    if labels.dtype.kind == "b":
        return {"labels": labels}, "bool"
    if all(isinstance(label, str) for label in labels.tolist()):
        return pack_strings(
            labels.tolist(), "labels"
        ), "str" if labels.dtype.kind == "U" else "object"
    raise ValueError(
        "a model file holds labels that are integers, floats, booleans or strings; "
        f"these are {labels.dtype} such as {labels.tolist()[0]!r}"
    )


def label_arrays(kind: str) -> set[str]:
    """Return the names of the arrays that labels of a kind are stored in."""
    return {"labels.utf8", "labels.ptr"} if kind in _STRINGS else {"labels"}


def unpack_labels(arrays: Mapping[str, AnyArray], kind: str, n_classes: int) -> AnyArray:
    """Return what :func:`pack_labels` packed; ``ValueError`` if that cannot be."""
    if kind in _NUMBERS:
        labels = arrays["labels"]
        if labels.dtype != _NUMBERS[kind] or labels.shape != (n_classes,):
            raise ValueError(f"labels must be {n_classes} of {kind}")
        if kind == "bool" and np.any(labels.view(np.uint8) > 1):
            raise ValueError("a label is neither true nor false")
        if kind == "float64" and not np.all(np.isfinite(labels)):
            raise ValueError("a label is NaN or infinite")
    elif kind in _STRINGS:
        texts = unpack_strings(arrays, "labels")
        longest = max(map(len, texts), default=0)
        labels = np.empty(len(texts), dtype=object)
        labels[:] = texts
        # a fixed-width array takes the longest label's room for each: not if a file abuses that
        if kind == "str" and longest * len(texts) <= 16 * sum(map(len, texts)) + 2**22:
            labels = labels.astype(str)
    else:
        raise ValueError(f"unknown kind of labels {kind!r}")
    if len(set(labels.tolist())) != labels.size:
        raise ValueError("a label occurs twice")
    return labels

"""Which layout a file has, from its name and its first lines, where the caller does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from thinleaf.datasets.first_lines import NAMES, could_be, evident_format
from thinleaf.datasets.formats import (
    FORMATS,
    HASHED_FEATURES,
    Format,
    Layout,
    is_index,
    vw_blocks,
    without_comment,
)
from thinleaf.datasets.lines import DataFileError

Auto: TypeAlias = Literal["auto"]

_SUFFIXES: Final[dict[str, Format]] = {
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".vw": "vw",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
    ".tsv": "tsv",
}


def is_decided(
    name: str, format: Format | Auto, zero_based: bool | Auto, hashed: bool | Auto
) -> bool:
    """Return whether :func:`find_layout` can do without lines."""
    known = format_of_name(name) if format == "auto" else format
    if known == "libsvm":
        return zero_based != "auto"
    if known == "vw":
        return hashed != "auto"
    return known is not None


def find_layout(
    name: str,
    sample: Sequence[str],
    format: Format | Auto,
    zero_based: bool | Auto,
    hashed: bool | Auto,
    n_features: int | None,
) -> Layout:
    """Return the layout of a file with whatever is ``"auto"`` decided.

    Parameters
    ----------
    name : str
        The name of the file.
    sample : sequence of str
        Its first lines.
    format, zero_based, hashed, n_features
        As in :func:`~thinleaf.datasets.reader.open_examples`.

    Raises
    ------
    DataFileError
        If the format cannot be told.
    """
    lines = [line for line in sample if line.strip()]
    if format == "auto":
        format = format_of_name(name) or format_of_lines(name, lines)
    if format == "libsvm":
        if zero_based == "auto":
            zero_based = has_index_zero(lines)
        return Layout(format, zero_based=zero_based, n_features=n_features)
    if format == "vw":
        if hashed == "auto":
            hashed = not has_plain_indices(lines)
        if hashed and n_features is None:
            n_features = HASHED_FEATURES
        return Layout(format, hashed=hashed, n_features=n_features)
    return Layout(format)


def format_of_name(name: str) -> Format | None:
    """Return the format that the end of a file's name stands for, or None."""
    return _SUFFIXES.get(PurePath(name.lower().removesuffix(".gz")).suffix)


def format_of_lines(name: str, lines: Sequence[str]) -> Format:
    """Return the only format that all lines could be of."""
    if not lines:
        raise DataFileError(f"{name}: no example in the file, so its format cannot be told")
    possible = [format for format in FORMATS if could_be(format, lines)]
    if len(possible) == 1:
        return possible[0]
    found = f"could be {' or '.join(possible)}" if possible else f"is none of {', '.join(FORMATS)}"
    evident = evident_format(lines)
    if not possible and evident is not None:
        found += f", but looks like {NAMES[evident]}: write lines as one of those"
    raise DataFileError(
        f"{name}: the format cannot be told: by its first lines the file {found}; pass format=..."
    )


def has_index_zero(lines: Sequence[str]) -> bool:
    """Return whether LIBSVM lines have a feature 0."""
    words = (word for line in lines for word in without_comment(line).split())
    return any(re.match("0+:", word) for word in words)


def has_plain_indices(lines: Sequence[str]) -> bool:
    """Return whether all features of VW lines are integers of one namespace."""
    blocks = [block for line in lines for block in vw_blocks(line.partition("|")[2])]
    namespaces = {namespace.partition(":")[0] for namespace, items in blocks if items}
    names = {item.partition(":")[0] for _, items in blocks for item in items}
    return len(namespaces) <= 1 and all(map(is_index, names))

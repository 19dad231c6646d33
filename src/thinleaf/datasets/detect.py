"""Which layout a file has, from its name and its first lines, where the caller does not say."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from thinleaf.datasets.compressed import plain_suffix
from thinleaf.datasets.first_lines import (
    NAMES,
    could_be,
    evident_format,
    has_header,
    has_keys,
    names_of_columns,
    refuse_missing_header,
)
from thinleaf.datasets.formats import (
    HASHED_FEATURES,
    LINE_FORMATS,
    TABLE_FORMATS,
    Format,
    Labels,
    Layout,
    is_index,
    vw_blocks,
    without_comment,
)
from thinleaf.datasets.lines import DataFileError
from thinleaf.datasets.tables.arrow_file import binary_format
from thinleaf.datasets.tables.columns import Wanted, has_known_text

Auto: TypeAlias = Literal["auto"]

_SUFFIXES: Final[dict[str, Format]] = {
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".vw": "vw",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True)
class Asked:
    """What a caller says of a file, as in :func:`~thinleaf.datasets.reader.open_examples`.

    Attributes
    ----------
    format, zero_based, hashed, n_features, labels, check_lines, default_format
        As there.
    wanted : Wanted
        Its columns.
    """

    format: Format | Auto
    zero_based: bool | Auto
    hashed: bool | Auto
    n_features: int | None
    labels: Labels
    check_lines: bool
    default_format: Format | None
    wanted: Wanted

    def is_decided(self, name: str) -> bool:
        """Return whether the layout can be told without lines."""
        known = format_of_name(name) if self.format == "auto" else self.format
        if known == "libsvm":
            return self.zero_based != "auto"
        if known == "vw":
            return self.hashed != "auto"
        return known is not None or self.default_format is not None


def find_format(name: str, sample: Sequence[str], asked: Asked) -> Format:
    """Return the format of a file of lines: as told, else by its name, else by its first lines.

    Tab-separated texts with a header, and any lines that begin with the columns that are wanted,
    are a table.

    Raises
    ------
    DataFileError
        If it cannot be told.
    ValueError
        If columns are wanted of a format that has none.
    """
    lines = [line for line in sample if line.strip()]
    wanted = asked.wanted
    format = format_of_name(name) if asked.format == "auto" else asked.format
    if format in TABLE_FORMATS:
        return format
    may_have_names = asked.labels != "none" or bool(wanted.needed)
    if asked.check_lines and format in (None, "tsv") and may_have_names:
        if has_header(lines, wanted.needed):
            return "csv"
        if has_keys(lines, wanted.needed, wanted.well_known):
            return "jsonl"
    if wanted.any and asked.default_format is None:
        if format is None:
            return "jsonl" if lines and evident_format(lines) == "jsonl" else "csv"
        if format != "tsv" or asked.format == "tsv":
            raise ValueError(
                f"{name}: columns are for csv, jsonl, parquet and arrow files, but it is {format}; "
                "lines with a header can be read with --format csv (in Python, format='csv')"
            )
        return "csv"
    if format is not None:
        return format
    if asked.default_format is None:
        return format_of_lines(name, lines)
    if wanted.needed and asked.default_format == "tsv":
        names = names_of_columns(lines)
        if wanted.well_known and has_known_text(names):
            return "csv"
        refuse_missing_header(name, names, wanted.needed)
    return asked.default_format


def format_of_source(source: Any) -> Format | None:
    """Return the format that a file's name stands for or, of Parquet and Arrow, its first bytes."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = str(os.fspath(source))
    return format_of_name(path) or binary_format(path)


def find_layout(format: Format, sample: Sequence[str], asked: Asked) -> Layout:
    """Return the layout of lines of a format with whatever is ``"auto"`` decided.

    Parameters
    ----------
    format : {"libsvm", "vw", "fasttext", "tsv"}
    sample : sequence of str
        The first lines.
    asked : Asked
    """
    lines = [line for line in sample if line.strip()]
    zero_based, hashed, n_features = asked.zero_based, asked.hashed, asked.n_features
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
    return _SUFFIXES.get(plain_suffix(name))


def format_of_lines(name: str, lines: Sequence[str]) -> Format:
    """Return the only format that all lines could be of, where each is an example.

    JSON objects are JSON lines, too; CSV without a header cannot be told from texts with commas.
    """
    if not lines:
        raise DataFileError(f"{name}: no example in the file, so its format cannot be told")
    evident = evident_format(lines)
    if evident == "jsonl":
        return "jsonl"
    possible = [format for format in LINE_FORMATS if could_be(format, lines)]
    if len(possible) == 1:
        return possible[0]
    found = f"is none of {', '.join(LINE_FORMATS)}"
    if possible:
        found = f"could be {' or '.join(possible)}"
    elif evident == "json":
        found += ", but looks like JSON: write one object a line"
    elif evident is not None:
        found += f", but looks like {NAMES[evident]}"
    give = "pass format='csv' (--format csv)" if evident == "csv" else "pass format=... (--format)"
    raise DataFileError(
        f"{name}: the format cannot be told: by its first lines the file {found}; {give}"
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

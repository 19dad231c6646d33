"""What first lines look like; and those that a file should not have: a header, another format.

A text may be anything, so lines of any format can be read as texts, and would be answered. Here
they are refused where they are evident. Commas, braces and times of day do not make them so: all
lines that are looked at must agree.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from thinleaf.datasets.formats import (
    FEATURE_FORMATS,
    TEXT_FORMATS,
    Column,
    Format,
    Labels,
    Layout,
    libsvm_indices,
    without_comment,
)
from thinleaf.datasets.lines import BadLine, DataFileError, excerpt
from thinleaf.datasets.tables.columns import has_columns, has_known, has_text, is_header, quoted
from thinleaf.datasets.tables.dialect import DELIMITERS

NAMES: Final = {
    "csv": "CSV",
    "jsonl": "JSON",
    "json": "JSON",
    "libsvm": "LIBSVM",
    "vw": "Vowpal Wabbit",
    "fasttext": "fastText",
    "tsv": "tab-separated",
}
_EXAMPLES: Final = {
    "libsvm": "label index:value ...",
    "vw": "label |namespace feature:value ...",
    "fasttext": "__label__label text",
    "tsv": "label, tab, text",
}
_FEW = 3
"""Lines that there must be before commas or tabs alone say something."""

_BEGINS_ITEM = re.compile("[0-9]+:")
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}")
_VW_VALUE = re.compile(r"[^\s:|]+:[+-]?[0-9.]+")
# One word, a comma and no space, from either end of the line; "1,000 men" is a number.
_LABEL_FIRST = re.compile(r"(?![0-9]{1,3},[0-9]{3}\b)[^\s,]+,(?=\S)")
_LABEL_LAST = re.compile(r".*\S,[^\s,]+")
# What a name of a column may be: no sentence, and nothing that a blank begins or ends.
_NAME = re.compile(r"[^\W\d][^\s,;|]{0,30}(?: [^\s,;|]{1,30}){0,2}")
_CAN_BE_GIVEN: Final = (*TEXT_FORMATS, "csv", "jsonl")


def refuse_other_format(name: str, lines: Sequence[str], layout: Layout, labels: Labels) -> None:
    """Raise :class:`DataFileError` if lines are evidently of another format than a layout's.

    Lines that have no label are the same in all formats of texts.
    """
    lines = [line for line in lines if line.strip()]
    if not lines or (layout.format != "tsv" and could_be(layout.format, lines)):
        return
    found = evident_format(lines)
    own = layout.format
    if found in (None, own) or (labels == "none" and found in TEXT_FORMATS):
        return
    remedy = "write them so"
    if own not in FEATURE_FORMATS:
        if found in _CAN_BE_GIVEN:
            remedy = f"give --format {found}"
        remedy += f", or {_option(own)} to take them as they are"
    raise DataFileError(
        f"{name}: the first lines look like {NAMES[found]}, but should be {NAMES[own]} "
        f"({_EXAMPLES[own]}): {remedy}"
    )


def could_be(format: Format, lines: Sequence[str]) -> bool:
    """Return whether all lines, none of which is blank, could be of a format."""
    if format == "libsvm":
        lines = [without_comment(line) for line in lines]
        return any(":" in line for line in lines) and all(map(_is_like_libsvm, lines))
    if format == "vw":
        return all("|" in line and len(line.partition("|")[0].split()) <= 3 for line in lines)
    if format == "fasttext":
        return all(any(word.startswith("__label__") for word in line.split()) for line in lines)
    return all("\t" in line for line in lines)


def evident_format(lines: Sequence[str]) -> str | None:
    """Return the format that all lines, none of which is blank, are evidently of, or None.

    Examples
    --------
    >>> from thinleaf.datasets.first_lines import evident_format
    >>> evident_format(['{"label": "cat", "text": "it purrs"}'])
    'jsonl'
    >>> evident_format(["Fever, unspecified", "Pain {acute}, chronic", "Cough at 12:30"])
    """
    if all(map(_is_json, lines)):
        return "jsonl" if all(line.lstrip().startswith("{") for line in lines) else "json"
    if lines[0].strip() in ("[", "{", "[{"):
        return "json"
    if could_be("fasttext", lines):
        return "fasttext"
    if _is_libsvm(lines):
        return "libsvm"
    if len(lines) > 1 and could_be("vw", lines) and all(map(_has_vw_value, lines)):
        return "vw"
    if len(lines) < _FEW:
        return None
    if could_be("tsv", lines):
        return "tsv"
    return "csv" if _is_csv(lines) else None


def has_header(lines: Sequence[str], columns: Sequence[Column] = ()) -> bool:
    """Return whether the first line that is not blank names columns, whatever separates them.

    Parameters
    ----------
    lines : sequence of str
    columns : sequence of str or int
        Names of which the line has all, if there are any; else well-known ones will do.
    """
    line = next((line for line in lines if line.strip()), "")
    for delimiter in DELIMITERS:
        names = [name.strip().strip('"') for name in line.split(delimiter)]
        if len(names) > 1 and is_header(names):
            return True
        named = [column for column in columns if isinstance(column, str)]
        if named and len(named) == len(columns) and has_columns(names, named):
            return True
    return _is_table_with_tabs(lines)


def _is_table_with_tabs(lines: Sequence[str]) -> bool:
    """Return whether lines have as many fields as a first one of names, one of them well known.

    A text after a label may have tabs, too, but hardly in all lines as many, after such a line.
    """
    first, *others = [line.split("\t") for line in lines if line.strip()] or [[]]
    names = [name.strip().strip('"') for name in first]
    if len(names) < 3 or not others or any(len(fields) != len(names) for fields in others):
        return False
    named = all(not name or _NAME.fullmatch(name) for name in names)
    recurs = any(
        name == cell for fields in others for name, cell in zip(first, fields, strict=True)
    )
    return named and has_known(names) and len(set(names)) == len(names) and not recurs


def has_keys(
    lines: Sequence[str], columns: Sequence[Column] = (), well_known: bool = False
) -> bool:
    """Return whether lines are JSON objects with some keys.

    If none are given, or ``well_known`` ones will do, it is enough that one of them has a text.
    """
    lines = [line for line in lines if line.strip()]
    if not lines or evident_format(lines) != "jsonl":
        return False
    keys = list(json.loads(lines[0]))
    if columns and all(column in keys for column in columns):
        return True
    return has_text(keys) if well_known or not columns else False


def names_of_columns(lines: Sequence[str]) -> list[str]:
    """Return the names in a first line that looks like a header and like nothing else, or none.

    A tab may follow a label, and does not separate names here.
    """
    line = next((line for line in lines if line.strip()), "")
    for delimiter in DELIMITERS.replace("\t", ""):
        names = [name.strip('"') for name in line.split(delimiter)]
        if len(names) > 1 and all(map(_NAME.fullmatch, names)):
            return names
    return []


def refuse_missing_header(name: str, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raise :class:`DataFileError` if there is a header, which lacks columns."""
    if names:
        raise DataFileError(
            f"{name}: the first line looks like a header, but has no {quoted(columns)}: give "
            f"--text-column (in Python, text_column), or {_option('tsv')} if lines are texts"
        )


def refuse_header(line: str, layout: Layout) -> None:
    """Raise :class:`BadLine` if the first line of tab-separated texts names its columns."""
    if layout.format == "tsv" and is_header(line.split("\t")):
        raise BadLine(
            f"{excerpt(line)} is a header, not an example",
            f"give {_option('csv')} to read columns by their names, or {_option('tsv')} if it is "
            "an example",
        )


def _option(format: str) -> str:
    return f"--format {format} (in Python, format={format!r})"


def _is_like_libsvm(line: str) -> bool:
    words = line.split()
    features = words if words and ":" in words[0] else words[1:]
    return all(_BEGINS_ITEM.match(word) for word in features)


def _is_json(line: str) -> bool:
    if not line.lstrip().startswith(("{", "[")):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(item, dict) for item in values)


def _is_libsvm(lines: Sequence[str]) -> bool:
    """Return whether lines have ascending index:value pairs, two in all, and not times of day."""
    items: list[str] = []
    for line in lines:
        words = without_comment(line).split()
        features = words if words and libsvm_indices(words[:1]) else words[1:]
        indices = libsvm_indices(features)
        if not indices or any(a >= b for a, b in pairwise(indices)):
            return False
        items += features
    return len(items) > 1 and not all(map(_TIME.fullmatch, items))


def _has_vw_value(line: str) -> bool:
    return any(map(_VW_VALUE.fullmatch, line.partition("|")[2].split()))


def _has_broken_fields(lines: Sequence[str]) -> bool:
    """Return whether lines are records of one width, with line breaks between quotes."""
    if not any(line.count('"') % 2 for line in lines):
        return False
    try:
        records = list(csv.reader(f"{line}\n" for line in lines))[:-1]  # the last may be cut
    except csv.Error:
        return False
    widths = {len(record) for record in records}
    broken = any("\n" in field for record in records for field in record)
    return len(records) > 1 and len(widths) == 1 and widths != {1} and broken


def _is_csv(lines: Sequence[str]) -> bool:
    if any("\t" in line for line in lines):
        return False
    if all(map(_LABEL_FIRST.match, lines)) or all(map(_LABEL_LAST.fullmatch, lines)):
        return True
    if _has_broken_fields(lines):
        return True
    if not all('"' in line for line in lines[1:]):
        return False
    try:
        widths = {len(fields) for fields in csv.reader(lines)}
    except csv.Error:
        return False
    quoted = [line for line in lines[1:] if line.startswith('"') or ',"' in line]
    return len(widths) == 1 and widths != {1} and len(quoted) == len(lines) - 1

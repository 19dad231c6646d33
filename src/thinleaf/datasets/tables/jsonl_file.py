"""Files with a JSON object a line: keys are columns."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any, Final

from thinleaf.datasets.formats import Labels, Layout
from thinleaf.datasets.lines import BadLine, DataFileError, Lines, LinesAhead, decode, readable
from thinleaf.datasets.tables.columns import (
    GIVE_TEXT,
    Columns,
    Wanted,
    find_columns,
    quoted,
)

_ODD_ESCAPE: Final = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_REMEDY: Final = 'write one object a line, such as {"label": "cat", "text": "it purrs"}'


class JsonlTable(LinesAhead):
    """The objects of a file of JSON lines; as :class:`~thinleaf.datasets.tables.csv_file.CsvTable`.

    Keys that are wanted are looked for in each object, whatever the first lines have.
    """

    def __init__(
        self,
        lines: Lines,
        first_lines: list[tuple[int, str | bytes]],
        wanted: Wanted,
        labels: Labels,
    ) -> None:
        super().__init__(lines, first_lines)
        sample = _objects(first_lines)
        while not sample and (item := next(lines, None)) is not None:
            first_lines.append(item)
            sample = _objects(first_lines[-1:])
            if not sample and readable(*item).strip():
                break  # it is not JSON: reading says so
        self._keys, self.columns = self._find(sample, wanted, labels)
        self._label_at = self.columns.label
        self.layout: Layout = self.columns.layout("jsonl")

    def content(self, number: int, raw: str | bytes) -> list[str]:
        """Return the values of the columns in a line, as strings; none of a blank line."""
        line = decode(number, raw)
        if not line or line.isspace():
            return []
        record = _parsed(line)
        try:
            fields = [_string(record[name], name) for name in self._keys]
        except KeyError:
            fields = [self._value(record, i) for i in range(len(self._keys))]
        if "\\u" in line and _ODD_ESCAPE.search(line):
            _check_characters(fields)
        return fields

    def _value(self, record: dict[str, Any], i: int) -> str:
        name = self._keys[i]
        if name in record:
            return _string(record[name], name)
        if i == self._label_at:
            return ""
        raise BadLine(f"no key {name!r}", f"the object has {quoted(record, 'key')}")

    def _find(
        self, sample: list[dict[str, Any]], wanted: Wanted, labels: Labels
    ) -> tuple[list[str], Columns]:
        """Return the keys to read, and the columns that they become."""
        if any(isinstance(column, int) for column in wanted.named):
            raise DataFileError(f"{self.name}: keys of JSON have names, not numbers: {GIVE_TEXT}")
        present: list[Any] = list(dict.fromkeys(chain.from_iterable(sample)))
        wanted = wanted.for_names(present)
        # Keys that are wanted stand first, whether the sample has them or not.
        names = list(dict.fromkeys([*wanted.named, *present]))
        if not names:
            names = ["text", "label"]  # no line is an object, which reading tells
        records = [[_lenient(record.get(name)) for name in names] for record in sample]
        try:
            found = find_columns(names, records, wanted, labels)
        except BadLine as error:
            raise DataFileError(f"{self.name}: {error}") from error
        used, columns = found.narrowed()
        return [names[i] for i in used], columns


def _objects(lines: list[tuple[int, str | bytes]]) -> list[dict[str, Any]]:
    found = []
    for number, raw in lines:
        try:
            found.append(_parsed(decode(number, raw)))
        except BadLine:
            continue
    return found


def _parsed(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadLine(f"no JSON ({error.msg}, at column {error.colno})", _REMEDY) from error
    except (ValueError, RecursionError) as error:
        raise BadLine(f"no JSON ({error})", _REMEDY) from error
    if not isinstance(record, dict):
        raise BadLine("a JSON value that is no object", _REMEDY)
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _string(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    kind = "an array" if isinstance(value, list) else "an object"
    raise BadLine(f"{kind} at {name!r}", "write a string or a number there")


def _lenient(value: Any) -> str:
    try:
        return _string(value, "")
    except BadLine:
        return "{}"


def _check_characters(fields: list[str]) -> None:
    """Refuse what an escape may stand for, but no text may have."""
    for field in fields:
        try:
            field.encode()
        except UnicodeError as error:
            raise BadLine("half of a surrogate pair", "write valid Unicode") from error
        if "\0" in field:
            raise BadLine("a NUL character", "remove it")

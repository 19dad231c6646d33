"""What the fields of one record say: a text or a row of numbers, and a label."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from thinleaf.datasets.formats import Labels, Row, RowParser, Text, TextParser, is_plain
from thinleaf.datasets.lines import BadLine, excerpt
from thinleaf.datasets.tables.columns import Columns, is_number

_MAX_VALUE = 3.4028234e38
"""Of single precision."""


def record_parser(columns: Columns, labels: Labels) -> RowParser | TextParser:
    """Return what makes an example of the fields of a record, all of them strings."""
    if columns.features:
        return NumberFields(columns, labels)
    return (ApartFields if columns.apart else TextFields)(columns, labels)


class _Fields:
    def __init__(self, columns: Columns, labels: Labels) -> None:
        self._names = columns.names
        self._width = len(columns.names)
        self._label_at = columns.label
        self._required = labels == "required"

    def _is_blank(self, fields: Sequence[str]) -> bool:
        """Return whether a record of another width than it should have is blank; else complain."""
        if not fields or (len(fields) == 1 and fields[0].isspace()):
            return True
        n = len(fields)
        raise BadLine(
            f"{n} field{'s' * (n > 1)}, where there should be {self._width}",
            "quote a field that has delimiters, quotes or line breaks in it",
        )

    def _label(self, fields: Sequence[str]) -> str | None:
        if self._label_at is None:
            return None
        label = fields[self._label_at].strip()
        if not label:
            if self._required:
                name = self._names[self._label_at]
                raise BadLine(f"an empty label in column {name!r}", "write one, or leave it out")
            return None
        if "\n" in label or "\r" in label:
            raise BadLine(f"a label with a line break, {excerpt(label)}", "write it on one line")
        return label

    def _bad_number(self, i: int, cell: str) -> BadLine | None:
        """Return what is wrong with a cell that should hold a finite number."""
        value = float(cell) if is_number(cell) else float("nan")
        if isfinite(value) and abs(value) <= _MAX_VALUE:
            return None
        return BadLine(
            f"{excerpt(cell)} in column {self._names[i]!r} is no finite number",
            "write one such as 0.5; if the column has texts, give --text-column",
        )


class TextFields(_Fields):
    """The texts of some columns, a line each, and a label."""

    def __init__(self, columns: Columns, labels: Labels) -> None:
        super().__init__(columns, labels)
        self._text_at = columns.text
        self._only = columns.text[0] if len(columns.text) == 1 else None

    def __call__(self, fields: Sequence[str]) -> Text | None:
        """Return what a record says; None if it is blank."""
        if len(fields) != self._width and self._is_blank(fields):
            return None
        label = self._label(fields)
        if self._only is not None:
            return Text(label, fields[self._only])
        return Text(label, "\n".join([fields[i] for i in self._text_at]))


class ApartFields(TextFields):
    """The same, and each text and number of the columns for itself."""

    def __init__(self, columns: Columns, labels: Labels) -> None:
        super().__init__(columns, labels)
        self._numeric_at = columns.numeric

    def __call__(self, fields: Sequence[str]) -> Text | None:
        """Return what a record says; None if it is blank."""
        found = super().__call__(fields)
        if found is None:
            return None
        texts = [fields[i] for i in self._text_at]
        return found._replace(cells=[*texts, *(self._number(i, fields) for i in self._numeric_at)])

    def _number(self, i: int, fields: Sequence[str]) -> float:
        problem = self._bad_number(i, fields[i])
        if problem is not None:
            raise problem
        return float(fields[i])


class NumberFields(_Fields):
    """The numbers of some columns, none of which is empty, and a label."""

    def __init__(self, columns: Columns, labels: Labels) -> None:
        super().__init__(columns, labels)
        self._at = columns.features
        self._indices = list(range(len(columns.features)))

    def __call__(self, fields: Sequence[str]) -> Row | None:
        """Return what a record says; None if it is blank."""
        if len(fields) != self._width and self._is_blank(fields):
            return None
        cells = [fields[i] for i in self._at]
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = [float("nan")]
        if not (sum(map(abs, values)) <= _MAX_VALUE and is_plain("".join(cells))):
            self._refuse(cells)
        return Row(self._label(fields), self._indices, values)

    def _refuse(self, cells: Sequence[str]) -> None:
        """Raise :class:`BadLine` for the first cell without a number, if there is one."""
        for i, cell in zip(self._at, cells, strict=True):
            problem = self._bad_number(i, cell)
            if problem is not None:
                raise problem

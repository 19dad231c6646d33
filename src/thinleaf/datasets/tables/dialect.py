"""How a CSV file is written: what separates its fields, whether they are quoted, its header."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from thinleaf.datasets.formats import Column
from thinleaf.datasets.lines import MAX_LINE
from thinleaf.datasets.tables.columns import Wanted, has_columns, has_known, is_number

DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True)
class Dialect:
    """How records are written: as RFC 4180 says, but for the delimiter.

    Attributes
    ----------
    delimiter : str
    quoted : bool
        Whether a quote at the beginning of a field quotes it. Where tabs separate fields that are
        never quoted, it is an ordinary character.
    """

    delimiter: str = ","
    quoted: bool = True

    def reader(self, lines: Iterable[str]) -> Any:
        """Return Python's reader of records."""
        if csv.field_size_limit() < MAX_LINE:  # of all readers in the process: it is only raised
            csv.field_size_limit(MAX_LINE)
        quoting: Any = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quoting=quoting, strict=True)

    def sample(self, lines: Iterable[str]) -> Iterator[list[str] | None]:
        """Yield the records of lines that are not blank, and None for what is no record."""
        reader = self.reader(lines)
        while True:
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield None
            else:
                if record:
                    yield record


_DIALECTS: Final = (*map(Dialect, DELIMITERS), Dialect("\t", quoted=False))


def find_dialect(lines: Sequence[str], columns: Sequence[Column]) -> Dialect:
    r"""Return the dialect of the first lines: that in which most records are as wide as the first.

    Parameters
    ----------
    lines : sequence of str
        With their ends.
    columns : sequence of str or int
        Those that must be there: a dialect whose first record has them comes before all others.

    Examples
    --------
    >>> from thinleaf.datasets.tables.dialect import find_dialect
    >>> find_dialect(["text;label\n", "well, yes;answer\n"], [])
    Dialect(delimiter=';', quoted=True)
    """

    def fit(dialect: Dialect) -> tuple[bool, float, int]:
        records = list(dialect.sample(lines))
        if not records or records[0] is None:
            return False, 0.0, 0
        width = len(records[0])
        n_alike = sum(record is not None and len(record) == width for record in records)
        has = bool(columns) and has_columns([name.strip() for name in records[0]], columns)
        return (has, n_alike / len(records), width) if width > 1 else (has, 0.0, 0)

    return max(_DIALECTS, key=fit)  # the first of the best


def has_header(records: Sequence[Sequence[str]], wanted: Wanted) -> bool:
    """Return whether the first record names the columns.

    It does if a column is wanted by name or one is well known. It does not if two of its fields are
    the same, if one is a number, or is also in another record at the same place.
    """
    if wanted.header != "auto":
        return wanted.header
    first, *others = records
    columns = [*wanted.needed, *(() if wanted.label is None else (wanted.label,))]
    if any(isinstance(column, str) and not column.strip().isdigit() for column in columns):
        return True
    if has_known(first):
        return True
    names = [name.strip() for name in first]
    if len(set(names)) < len(names) or any(map(is_number, names)):
        return False
    return not any(
        name == cell.strip() for record in others for name, cell in zip(names, record, strict=False)
    )

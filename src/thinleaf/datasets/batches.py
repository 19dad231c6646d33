"""Examples as they come in, one by one, until a batch of them is taken."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM
from thinleaf.datasets.examples import Examples, FeatureRows, TextRows, offsets
from thinleaf.datasets.formats import Layout, RowParser, TextParser
from thinleaf.datasets.lines import BadLine

UnknownFeatures: TypeAlias = Literal["raise", "drop"]


class Batch(Protocol):
    """The examples of the batch that is being read."""

    n_dropped: int

    def add(self, number: int, record: int, content: Any) -> bool:
        """Read a line, or the fields of a record that begins there; return whether it has one."""
        ...

    def __len__(self) -> int: ...

    def take(self) -> Examples:
        """Return the examples so far and begin anew."""
        ...


class _RowBatch:
    def __init__(self, layout: Layout, parse: RowParser, unknown: UnknownFeatures) -> None:
        self.n_dropped = 0
        self._parse = parse
        self._base = 0 if layout.zero_based or layout.format == "vw" else 1
        self._fixed = layout.n_features
        self._n_features = layout.n_features or 0
        self._drop = unknown == "drop"
        self._clear()

    def _clear(self) -> None:
        # Arrays, not lists: four bytes an entry instead of forty.
        self._lengths: list[int] = []
        self._indices = array("i")
        self._values = array("f")
        self._labels: list[str | None] = []
        self._weights: list[float] = []
        self._numbers: list[int] = []
        self._records: list[int] = []

    def add(self, number: int, record: int, content: Any) -> bool:
        row = self._parse(content)
        if row is None:
            return False
        n_known = len(row.indices)
        if self._fixed is not None:
            n_known = bisect_left(row.indices, self._fixed)
            if n_known < len(row.indices) and not self._drop:
                raise BadLine(
                    f"feature {row.indices[n_known] + self._base} is beyond the "
                    f"{self._fixed} features that are known",
                    "give a larger n_features, or unknown_features='drop'",
                )
        elif row.indices:
            self._n_features = max(self._n_features, row.indices[-1] + 1)
        self.n_dropped += len(row.indices) - n_known
        self._lengths.append(n_known)
        self._indices.extend(row.indices[:n_known])
        self._values.extend(row.values[:n_known])
        self._labels.append(row.label)
        self._weights.append(row.weight)
        self._numbers.append(number)
        self._records.append(record)
        return True

    def __len__(self) -> int:
        return len(self._labels)

    def take(self) -> FeatureRows:
        rows = FeatureRows(
            offsets(np.array(self._lengths)),
            np.array(self._indices, dtype=INDEX),
            np.array(self._values, dtype=PARAM),
            self._n_features,
            self._labels,
            np.array(self._weights, dtype=ACCUM),
            np.array(self._numbers, dtype=OFFSET),
            np.array(self._records, dtype=OFFSET),
        )
        self._clear()
        return rows


class _TextBatch:
    def __init__(self, parse: TextParser, names: Sequence[str]) -> None:
        self.n_dropped = 0
        self._parse = parse
        self._names = names
        self._clear()

    def _clear(self) -> None:
        self._texts: list[str] = []
        self._cells: list[Sequence[str | float]] = []
        self._labels: list[str | None] = []
        self._numbers: list[int] = []
        self._records: list[int] = []

    def add(self, number: int, record: int, content: Any) -> bool:
        found = self._parse(content)
        if found is None:
            return False
        self._texts.append(found.text)
        if self._names:
            self._cells.append(found.cells)
        self._labels.append(found.label)
        self._numbers.append(number)
        self._records.append(record)
        return True

    def __len__(self) -> int:
        return len(self._labels)

    def take(self) -> TextRows:
        numbers, records = (
            np.array(found, dtype=OFFSET) for found in (self._numbers, self._records)
        )
        columns: dict[str, list[Any]] | None = None
        if self._names:
            columns = {
                name: [cells[i] for cells in self._cells] for i, name in enumerate(self._names)
            }
        rows = TextRows(self._texts, self._labels, numbers, records, columns)
        self._clear()
        return rows


def new_batch(
    layout: Layout,
    parse: RowParser | TextParser,
    unknown_features: UnknownFeatures,
    names: Sequence[str] = (),
) -> Batch:
    """Return an empty batch for what a parser of a layout's lines or records reads.

    Columns that are kept apart have names.
    """
    if layout.has_texts:
        return _TextBatch(cast("TextParser", parse), names)
    return _RowBatch(layout, cast("RowParser", parse), unknown_features)

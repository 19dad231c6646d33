"""Parquet and Arrow files, read batch by batch through pyarrow (extra ``arrow``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from thinleaf.datasets.formats import Format, Labels, Layout
from thinleaf.datasets.lines import BadLine, DataFileError, Source, excerpt
from thinleaf.datasets.tables.columns import Columns, Wanted, find_columns

BINARY_FORMATS: Final[tuple[Format, ...]] = ("parquet", "arrow")
_MAGIC: Final[dict[bytes, Literal["parquet", "arrow"]]] = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_NAMES: Final = {"parquet": "Parquet", "arrow": "Arrow"}
_BATCH: Final = 4096
_SAMPLE: Final = 1000


def binary_format(path: str) -> Literal["parquet", "arrow"] | None:
    """Return the format of a file that begins as one of Parquet or Arrow; None of any other."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError:
        return None  # whoever opens it says why
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


class ArrowTable:
    """The rows of a Parquet or Arrow file; as :class:`~thinleaf.datasets.tables.csv_file.CsvTable`.

    Parameters
    ----------
    source : path or binary file object
        A file object must be one that can be sought in.
    format : {"parquet", "arrow"}
    wanted : Wanted
    labels : {"required", "optional", "none"}
    """

    idle = False

    def __init__(
        self, source: Source, format: Literal["parquet", "arrow"], wanted: Wanted, labels: Labels
    ) -> None:
        name = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        self.name = name or _name_of(source)
        self._kind = _NAMES[format]
        self._pa = _pyarrow(self._kind, self.name)
        self._own: Any = None
        self._number = 0
        if name is None and not (hasattr(source, "seek") and hasattr(source, "read")):
            raise DataFileError(f"{self.name}: a stream cannot be {self._kind}: give a file")
        if name is not None:
            self._own = source = open(name, "rb")  # noqa: SIM115  - closed by close()
        try:
            self._open(source, format, wanted, labels)
        except BaseException:
            self.close()
            raise

    def _open(self, source: Any, format: Format, wanted: Wanted, labels: Labels) -> None:
        try:
            file: Any = _ParquetFile(source) if format == "parquet" else _ArrowFile(source)
        except (self._pa.ArrowException, OSError) as error:
            raise DataFileError(
                f"{self.name}: this is no {self._kind} file, or a damaged one ({_line(error)})"
            ) from error
        names = list(file.names)
        found = self._found(names, [], wanted, labels, file)
        used, self.columns = found.narrowed()
        for i in used:
            self._check_type(names[i], file.types[i])
        self._batches: Iterable[Any] = file.batches(used)
        self.layout: Layout = self.columns.layout(format)

    def _found(
        self, names: list[str], records: list[list[str]], wanted: Wanted, labels: Labels, file: Any
    ) -> Columns:
        """Return the columns by their names alone or, if that does not do, by some rows, too."""
        try:
            return find_columns(names, records, wanted, labels)
        except BadLine as error:
            if records or not names or wanted.needed:
                raise DataFileError(f"{self.name}: {error}") from error
        every = list(range(len(names)))
        for batch in self._guarded(file.batches(every)):
            columns = [_values(column.slice(0, _SAMPLE)) for column in batch.columns]
            records = [list(map(_lenient, row)) for row in zip(*columns, strict=True)]
            if records:
                break
        return self._found(names, records or [[""] * len(names)], wanted, labels, file)

    def _check_type(self, name: str, type: Any) -> None:
        types = self._pa.types
        plain = type.value_type if types.is_dictionary(type) else type
        if types.is_nested(plain) or "binary" in str(plain):
            raise DataFileError(
                f"{self.name}: column {name!r} has values of type {type}: there must be strings "
                "or numbers"
            )

    def __iter__(self) -> Iterator[tuple[int, list[str] | BadLine]]:
        for batch in self._guarded(self._batches):
            columns = [_values(column) for column in batch.columns]
            for record in zip(*columns, strict=True):
                self._number += 1
                yield self._number, list(record)

    def content(self, number: int, record: list[Any]) -> list[str]:
        """Return the values of a row's columns as strings."""
        fields = [cell if type(cell) is str else _string(cell) for cell in record]
        for field in fields:
            if "\0" in field:
                raise BadLine("a NUL character", "remove it")
        return fields

    def shown(self, number: int, record: list[Any]) -> str:
        """Return what a row looks like."""
        return f"the row has {excerpt(', '.join(map(str, record)))}"

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._own is not None:
            self._own.close()

    def _guarded(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches; what is wrong with the file becomes our error."""
        try:
            yield from batches
        except (self._pa.ArrowException, OSError) as error:
            raise DataFileError(
                f"{self.name}:{self._number + 1}: the {self._kind} data is damaged or cut short "
                f"here or in the rows that follow ({_line(error)}): fetch or write the file again"
            ) from error


class _ParquetFile:
    def __init__(self, source: Any) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(source)
        self.names = self._file.schema_arrow.names
        self.types = self._file.schema_arrow.types

    def batches(self, columns: list[int]) -> Iterator[Any]:
        """Yield some columns, row group by row group, in small batches."""
        if len(columns) == len(self.names):  # names may then occur twice
            yield from (batch.select(columns) for batch in self._file.iter_batches(_BATCH))
            return
        names = [self.names[i] for i in columns]
        for batch in self._file.iter_batches(_BATCH, columns=names):
            yield batch.select(names)


class _ArrowFile:
    def __init__(self, source: Any) -> None:
        from pyarrow import ipc

        self._source, self._start = source, source.tell()
        in_blocks = source.read(6) == b"ARROW1"
        source.seek(self._start)
        self._again = ipc.open_stream
        self._file = ipc.open_file(source) if in_blocks else None
        schema = (self._file or ipc.open_stream(source)).schema
        self.names, self.types = schema.names, schema.types

    def batches(self, columns: list[int]) -> Iterator[Any]:
        """Yield some columns, batch by batch."""
        for batch in self._all():
            for start in range(0, batch.num_rows, _BATCH):
                yield batch.slice(start, _BATCH).select(columns)

    def _all(self) -> Iterator[Any]:
        if self._file is not None:
            for i in range(self._file.num_record_batches):
                yield self._file.get_batch(i)
        else:
            self._source.seek(self._start)
            yield from self._again(self._source)


def _values(column: Any) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = []
        for cell in column:
            try:
                values.append(cell.as_py())
            except UnicodeDecodeError:
                values.append(_NOT_UTF8)
    return values


class _NotUtf8:
    def __str__(self) -> str:
        return "(not UTF-8)"


_NOT_UTF8: Final = _NotUtf8()


def _string(value: Any) -> str:
    if value is None or value != value:  # NaN is how pandas says None
        return ""
    if value is _NOT_UTF8:
        raise BadLine("a text that is not UTF-8", "write valid strings")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _lenient(value: Any) -> str:
    return str(value) if value is _NOT_UTF8 else _string(value)


def _name_of(source: Any) -> str:
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _pyarrow(kind: str, name: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{name}: {kind} files need pyarrow: pip install 'thinleaf[arrow]'"
        ) from error
    return pyarrow

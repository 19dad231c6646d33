"""Data files for training and prediction, plain or compressed, or a stream.

LIBSVM, VW, fastText and TSV files have an example a line; CSV, JSON lines, Parquet and Arrow files
have columns. :func:`open_examples` gives batches in bounded memory, :func:`read_examples`
everything at once. What a line says is in ``formats``, what a record says in ``tables``, how a
layout is found in ``detect``, what comes out in ``examples``. Features of texts are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias, get_args

from thinleaf.arrays.checks import is_whole
from thinleaf.datasets.batches import UnknownFeatures, new_batch
from thinleaf.datasets.detect import Asked, Auto
from thinleaf.datasets.examples import Examples, concatenate
from thinleaf.datasets.feeds import Feed, open_feed
from thinleaf.datasets.formats import (
    FORMATS,
    MAX_INDEX,
    Column,
    Format,
    Labels,
    RowParser,
    TextParser,
)
from thinleaf.datasets.lines import BadLine, DataFileError, Source
from thinleaf.datasets.tables.columns import Columns, Wanted

OnError: TypeAlias = Literal["raise", "skip"]

BATCH_SIZE: Final = 4096
_KEPT_MESSAGES = 10


class ExampleReader:
    """An iterator over batches of examples that counts what it meets; see :func:`open_examples`.

    Attributes
    ----------
    name : str
        What messages call the file.
    layout : Layout
        How the file is read, with everything decided that was ``"auto"``.
    columns : Columns or None
        Of a table, the columns that are read.
    n_rows : int
        Examples so far.
    n_blank : int
        Lines without an example so far: blank ones, and those with nothing but a comment.
    n_skipped : int
        Lines, or records of a table, so far that could not be read.
    skipped : list of str
        What is wrong with the first ten of them.
    """

    def __init__(
        self,
        feed: Feed,
        parse: RowParser | TextParser,
        on_error: OnError,
        unknown_features: UnknownFeatures,
        batch_size: int,
        empty_batches: bool,
    ) -> None:
        self.name = feed.name
        self.layout = feed.layout
        self.columns: Columns | None = feed.columns
        self.n_rows = 0
        self.n_blank = 0
        self.n_skipped = 0
        self.skipped: list[str] = []
        self._feed = feed
        self._items = iter(feed)
        self._n_items = 0
        self._on_error = on_error
        self._batch_size = batch_size
        self._empty_batches = empty_batches
        self._ended = False
        names: list[str] = []
        if feed.columns is not None and feed.columns.apart:
            names = [str(feed.columns.names[i]) for i in feed.columns.inputs]
        self._batch = new_batch(feed.layout, parse, unknown_features, names)
        self._failure: DataFileError | None = None

    @property
    def n_dropped(self) -> int:
        """Entries so far whose feature is unknown."""
        return self._batch.n_dropped

    @property
    def n_lines(self) -> int:
        """Lines so far, or records of a table without its header."""
        return self.n_rows + self.n_blank + self.n_skipped

    def __iter__(self) -> Iterator[Examples]:
        return self

    def __next__(self) -> Examples:
        if self._failure is not None:
            raise self._failure
        try:
            self._fill()
        except DataFileError as error:
            if not len(self._batch):
                raise
            self._failure = error  # first what comes before it
        if self._ended and not len(self._batch):
            self._check_any()
            raise StopIteration
        self.n_rows += len(self._batch)
        return self._batch.take()

    def read_all(self) -> Examples:
        """Return all batches that are left, of which there must be one, as one."""
        return concatenate(list(self))

    def _fill(self) -> None:
        for number, raw in self._items:
            self._n_items += 1
            self._read(number, raw)
            has_some = len(self._batch) > 0 or self._empty_batches
            if len(self._batch) == self._batch_size or (has_some and self._feed.idle):
                return
        self._ended = True

    def _read(self, number: int, raw: Any) -> None:
        try:
            content = self._feed.content(number, raw)
            self.n_blank += not self._batch.add(number, self._n_items, content)
        except BadLine as error:
            message = f"{self.name}:{number}: {error}; {self._feed.shown(number, raw)}"
            if self._on_error == "raise":
                raise DataFileError(message) from error
            self.n_skipped += 1
            if len(self.skipped) < _KEPT_MESSAGES:
                self.skipped.append(message)

    def _check_any(self) -> None:
        """Raise an error if the whole file held no example."""
        if self.n_rows:
            return
        if self.n_skipped:
            raise DataFileError(
                f"{self.name}: none of {self.n_skipped} lines can be read as {self.layout.format}; "
                f"the first: {self.skipped[0]}"
            )
        raise DataFileError(f"{self.name}: no example in the file: is it the right one?")

    def close(self) -> None:
        """Close the file, unless it was given open."""
        self._feed.close()

    def __enter__(self) -> ExampleReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_examples(
    source: Source,
    *,
    format: Format | Auto = "auto",
    zero_based: bool | Auto = "auto",
    hashed: bool | Auto = "auto",
    n_features: int | None = None,
    labels: Labels = "required",
    on_error: OnError = "raise",
    unknown_features: UnknownFeatures = "raise",
    batch_size: int = BATCH_SIZE,
    empty_batches: bool = False,
    check_lines: bool | None = None,
    text_column: Column | Sequence[Column] | None = None,
    label_column: Column | None = None,
    feature_columns: Sequence[Column] | None = None,
    header: bool | Auto = "auto",
    default_format: Format | None = None,
    numeric_column: Column | Sequence[Column] | None = None,
    apart: bool = False,
    well_known: bool = False,
) -> ExampleReader:
    r"""Open a data file to read it in batches.

    Parameters
    ----------
    source : path or file object
        A file, which may be compressed with gzip or zstd, or an open stream of text or bytes, such
        as ``sys.stdin.buffer``. Text is UTF-8. A stream is not closed.
    format : {"auto", "libsvm", "vw", "fasttext", "tsv", "csv", "jsonl", "parquet", "arrow"}
        By default what the name says (``.svm``, ``.libsvm``, ``.svmlight``, ``.vw``, ``.ft``,
        ``.fasttext``, ``.tsv``, ``.csv``, ``.jsonl``, ``.ndjson``, each also with ``.gz`` or
        ``.zst``; ``.parquet``, ``.pq``, ``.arrow``, ``.feather``, ``.ipc``), else what the first
        1,000 lines can be. A TSV file with a header such as ``label``, tab, ``text`` is read as
        CSV. Parquet and Arrow files need the extra ``arrow``, and so does zstd before Python 3.14.
    zero_based : bool or "auto"
        LIBSVM: whether the first feature is 0, not 1. By default it is if the first 1,000 lines
        have a feature 0; else a later one is an error.
    hashed : bool or "auto"
        VW: whether a feature's number is a hash of its namespace and name. If not, names are
        integers from 0, all in one namespace. By default hashed, unless the first 1,000 lines have
        such integers only.
    n_features : int, optional
        The number of features of sparse rows: without it, those that occur, or 2¹⁸ if hashed.
    labels : {"required", "optional", "none"}
        Whether a line must have a label, may have one, or has none. With "optional", the label is
        missing if a LIBSVM line begins with ``index:value``, a VW line has no word before its bar
        other than a tag, a fastText line no ``__label__``, a TSV line no tab or nothing before it;
        of a table, if the field is empty, or there is no such column. With "none", the whole line
        is features or text.
    on_error : {"raise", "skip"}
        What to do about a line that cannot be read. Skipped ones are counted and described in the
        reader. A file that ends too early is always an error.
    unknown_features : {"raise", "drop"}
        What to do about features beyond ``n_features``: call the line unreadable, or leave them out
        and count them.
    batch_size : int
        Rows a batch. The last one may have less, and so may those of a
        :class:`~thinleaf.datasets.live.LiveStream`.
    empty_batches : bool
        Of a :class:`~thinleaf.datasets.live.LiveStream`, also give a batch without rows where only
        lines without an example have arrived, so that each line can be answered at once.
    check_lines : bool, optional
        Whether to refuse a file whose first lines are evidently of another format, and a first line
        that is evidently a header. By default if ``format`` is "auto".
    text_column : str, int or sequence of these, optional
        The column of the texts, by its name or its number from 1: of a CSV, Parquet or Arrow file
        a column, of a JSON line a key. Several become one text, a line each. By default a column
        with a well-known name such as ``text``, or that which is left.
    label_column : str or int, optional
        The column of the labels; by default one with a well-known name such as ``label``, or that
        which is left.
    feature_columns : sequence of str or int, optional
        Columns of numbers, to be read as rows of features. By default, if no column is evidently
        one of texts, all but the labels if those have numbers only.
    header : bool or "auto"
        CSV: whether the first record names the columns. By default it does, unless it looks like an
        example: two of its fields are the same, one is a number, or also in a later record.
    default_format : str, optional
        The format if neither the name nor the first lines say one; columns are then of use only
        where the file turns out to have them.
    numeric_column : str, int or sequence of these, optional
        Columns of numbers beside those of texts.
    apart : bool
        Whether examples have the columns of a record one by one, too, in ``columns``; they have if
        there are numeric ones.
    well_known : bool
        Whether a column with a well-known name will do where that of the texts, or of the labels,
        is missing.

    Returns
    -------
    ExampleReader
        An iterator over batches, to use once, and in a ``with`` statement: :class:`FeatureRows` of
        LIBSVM and VW files and of tables of numbers, :class:`TextRows` of all others. Blank lines
        are passed over; rows know their line.

    Raises
    ------
    DataFileError
        If the layout cannot be told, or is evidently another one. Iteration raises it for lines
        that cannot be read, after a batch with what comes before them, and at the end of a file
        without examples.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from thinleaf.datasets import open_examples
    >>> with open_examples(io.StringIO("cat 1:0.5 3:2\ndog 2:1\n")) as reader:
    ...     batches = list(reader)
    >>> reader.layout.format, reader.layout.zero_based
    ('libsvm', False)
    >>> batches[0].labels
    ['cat', 'dog']
    >>> batches[0].to_csr().toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]], dtype=float32)

    A table, in which a field may have commas and line breaks:

    >>> table = 'id,title,kind\n1,"Lamp, red",lamp\n2,"Chair\nof oak",chair\n'
    >>> with open_examples(
    ...     io.StringIO(table), format="csv", text_column="title", label_column="kind"
    ... ) as reader:
    ...     rows = reader.read_all()
    >>> rows.texts, rows.labels, rows.lines.tolist()
    (['Lamp, red', 'Chair\nof oak'], ['lamp', 'chair'], [2, 3])
    """
    _check_choice("format", format, ("auto", *FORMATS))
    _check_choice("zero_based", zero_based, ("auto", False, True))
    _check_choice("hashed", hashed, ("auto", False, True))
    _check_choice("labels", labels, get_args(Labels))
    _check_choice("on_error", on_error, get_args(OnError))
    _check_choice("unknown_features", unknown_features, get_args(UnknownFeatures))
    _check_count("batch_size", batch_size, MAX_INDEX)
    if n_features is not None:
        _check_count("n_features", n_features, MAX_INDEX + 1)
    _check_choice("header", header, ("auto", False, True))
    wanted = Wanted(
        _columns("text_column", text_column),
        _column("label_column", label_column),
        _columns("feature_columns", feature_columns),
        header,
        _columns("numeric_column", numeric_column),
        apart,
        well_known,
    )
    if wanted.text and wanted.features:
        raise ValueError("give text_column or feature_columns, not both")
    check_lines = format == "auto" if check_lines is None else check_lines
    feed, parse = open_feed(
        source,
        Asked(format, zero_based, hashed, n_features, labels, check_lines, default_format, wanted),
    )
    return ExampleReader(feed, parse, on_error, unknown_features, batch_size, empty_batches)


def read_examples(
    source: Source,
    *,
    format: Format | Auto = "auto",
    zero_based: bool | Auto = "auto",
    hashed: bool | Auto = "auto",
    n_features: int | None = None,
    labels: Labels = "required",
    text_column: Column | Sequence[Column] | None = None,
    label_column: Column | None = None,
    feature_columns: Sequence[Column] | None = None,
    header: bool | Auto = "auto",
) -> Examples:
    r"""Read a whole data file, each line of which must be readable.

    Parameters are those of :func:`open_examples`, which can also skip lines.

    Returns
    -------
    FeatureRows or TextRows
        All batches as one.

    Examples
    --------
    >>> import io
    >>> from thinleaf.datasets import label_array, read_examples
    >>> rows = read_examples(io.StringIO("7\tbroken arm\n12\tcommon cold\n"))
    >>> rows.texts
    ['broken arm', 'common cold']
    >>> label_array(rows.labels)
    array([ 7, 12])
    """
    with open_examples(
        source,
        format=format,
        zero_based=zero_based,
        hashed=hashed,
        n_features=n_features,
        labels=labels,
        text_column=text_column,
        label_column=label_column,
        feature_columns=feature_columns,
        header=header,
    ) as reader:
        return reader.read_all()


def _columns(name: str, given: Column | Sequence[Column] | None) -> tuple[Column, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or is_whole(given):
        given = (given,)  # type: ignore[assignment]
    if not isinstance(given, Sequence):
        raise ValueError(f"{name} must be names or numbers of columns, got {given!r}")
    return tuple(column for one in given if (column := _column(name, one)) is not None)


def _column(name: str, given: Any) -> Column | None:
    if given is None or isinstance(given, str):
        return given
    if not is_whole(given) or given < 1:
        raise ValueError(f"{name} must be a name, or a number from 1, got {given!r}")
    return int(given)


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _check_count(name: str, value: Any, highest: int) -> None:
    if not is_whole(value) or not 1 <= value <= highest:
        raise ValueError(f"{name} must be an integer in 1..{highest}, got {value!r}")

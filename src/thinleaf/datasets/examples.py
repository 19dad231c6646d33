"""What a data file becomes: sparse rows or texts, their labels and the lines that they are from.

Plain data. How files are read is in ``reader``; labels stay the tokens that the file has until
:func:`label_array` has seen all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, AccumArray, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays import ragged

if TYPE_CHECKING:
    import scipy.sparse as sp

LabelKind: TypeAlias = Literal["int", "float", "str"]
"""What labels are: the dtype that :func:`label_array` gives them."""

_INT = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_MOST_WHOLE = 2.0**53
"""Below it, each whole number is a float of its own."""


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Sparse rows as a CSR triple: features of a row ascend, and none occurs twice.

    Attributes
    ----------
    indptr : ndarray of shape (n_rows + 1,)
        Offsets of the rows, int32.
    indices : ndarray of shape (n_stored,)
        Features from 0, int32.
    data : ndarray of shape (n_stored,)
        Values, float32.
    n_features : int
        As given or as the layout fixes it; else one more than the largest feature so far.
    labels : list of str or None
        The label of each row as it is written; None where the line has none.
    weights : ndarray of shape (n_rows,)
        The importance of each row, 1 unless the file says otherwise, float64.
    lines : ndarray of shape (n_rows,)
        The number of each row's line, or of the first line of its record, from 1, int64.
    records : ndarray of shape (n_rows,), optional
        The number of each row's record, from 1, without a header; by default ``lines``.
    """

    indptr: IndexArray
    indices: IndexArray
    data: ParamArray
    n_features: int
    labels: list[str | None]
    weights: AccumArray
    lines: OffsetArray
    records: OffsetArray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def to_csr(self) -> sp.csr_matrix:
        """Return the rows as a matrix of shape (n_rows, n_features) that shares the arrays."""
        import scipy.sparse as sp  # slow to import

        return sp.csr_matrix(
            (self.data, self.indices, self.indptr), shape=(len(self), self.n_features), copy=False
        )


@dataclass(frozen=True, eq=False)
class TextRows:
    """Raw texts.

    Attributes
    ----------
    texts : list of str
    labels : list of str or None
        The label of each text as it is written; None where the line has none.
    lines : ndarray of shape (n_rows,)
        The number of each text's line, or of the first line of its record, from 1, int64.
    records : ndarray of shape (n_rows,), optional
        The number of each text's record, from 1, without a header; by default ``lines``.
    columns : dict of str to list, optional
        Of a table whose columns were asked for one by one, those of texts, then those of numbers.
        ``texts`` are then the texts of a record, a line each.
    """

    texts: list[str]
    labels: list[str | None]
    lines: OffsetArray
    records: OffsetArray | None = None
    columns: dict[str, list[Any]] | None = None

    def __len__(self) -> int:
        return len(self.labels)


Examples: TypeAlias = FeatureRows | TextRows


def concatenate(batches: Sequence[Examples]) -> Examples:
    """Return batches of one kind, at least one of them, as one.

    Raises
    ------
    ValueError
        If there are batches of both kinds, or more than 2³¹ - 1 stored entries.
    """
    lines = np.concatenate([batch.lines for batch in batches])
    records = np.concatenate([record_numbers(batch) for batch in batches])
    labels = [label for batch in batches for label in batch.labels]
    texts = [batch for batch in batches if isinstance(batch, TextRows)]
    if len(texts) == len(batches):
        columns = None
        if (first := texts[0].columns) is not None:
            columns = {
                name: [cell for batch in texts for cell in (batch.columns or {})[name]]
                for name in first
            }
        joined = [text for batch in texts for text in batch.texts]
        return TextRows(joined, labels, lines, records, columns)
    rows = [batch for batch in batches if isinstance(batch, FeatureRows)]
    if texts:
        raise ValueError("sparse rows and texts cannot be concatenated")
    lengths = np.concatenate([np.diff(batch.indptr) for batch in rows])
    return FeatureRows(
        offsets(lengths),
        np.concatenate([batch.indices for batch in rows], dtype=INDEX),
        np.concatenate([batch.data for batch in rows], dtype=PARAM),
        max(batch.n_features for batch in rows),
        labels,
        np.concatenate([batch.weights for batch in rows]),
        lines,
        records,
    )


def record_numbers(examples: Examples) -> OffsetArray:
    """Return the number of each example's record, or of its line if those are the records."""
    return examples.lines if examples.records is None else examples.records


def take(examples: Examples, rows: AnyArray) -> Examples:
    """Return some of the examples, in the order given."""
    labels = [examples.labels[i] for i in rows]
    records = record_numbers(examples)[rows]
    if isinstance(examples, TextRows):
        columns = None
        if examples.columns is not None:
            columns = {name: [cells[i] for i in rows] for name, cells in examples.columns.items()}
        texts = [examples.texts[i] for i in rows]
        return TextRows(texts, labels, examples.lines[rows], records, columns)
    X = examples.to_csr()[rows]
    return FeatureRows(
        X.indptr.astype(INDEX),
        X.indices.astype(INDEX),
        X.data,
        examples.n_features,
        labels,
        examples.weights[rows],
        examples.lines[rows],
        records,
    )


def offsets(lengths: AnyArray) -> IndexArray:
    """Return where rows of some lengths begin and end; ValueError if int32 cannot say."""
    ends = ragged.offsets(lengths)
    if ends[-1] > np.iinfo(INDEX).max:
        raise ValueError(f"{ends[-1]} stored entries are more than 2^31 - 1: read in batches")
    return ends.astype(INDEX)


def label_kind(labels: Sequence[str | None]) -> LabelKind:
    """Return what all labels can be read as without confusing two: int, else float, else str.

    Numbers with leading zeros, such as postal codes, are strings; so are integers beyond 64 bits,
    and codes such as 1.1 and 1.10. Floats are whole numbers, written such as 2.0.
    """
    distinct = set(labels)
    if all(label is not None and _is_int(label) for label in distinct):
        return "int"
    if all(label is not None and _is_whole_float(label) for label in distinct):
        return "float"
    return "str"


def label_array(labels: Sequence[str | None], kind: LabelKind | None = None) -> AnyArray:
    """Return labels as one array of integers, floats or strings.

    Parameters
    ----------
    labels : sequence of str
    kind : {"int", "float", "str"}, optional
        The default is what :func:`label_kind` finds. Give that of the training labels for labels
        to compare with them.

    Raises
    ------
    ValueError
        If a label is missing or not of the kind.

    Examples
    --------
    >>> from thinleaf.datasets import label_array
    >>> label_array(["3", "+12"])
    array([ 3, 12])
    >>> label_array(["3", "012"])
    array(['3', '012'], dtype='<U3')
    """
    known = [label for label in labels if label is not None]
    if len(known) < len(labels):
        raise ValueError(f"{len(labels) - len(known)} of {len(labels)} rows have no label")
    if kind is None:
        kind = label_kind(labels)
    if kind == "str":
        return np.array(known, dtype=np.str_)
    readable = _is_int if kind == "int" else _is_float
    bad = next((label for label in dict.fromkeys(known) if not readable(label)), None)
    if bad is not None:
        raise ValueError(f"the label {bad!r} is no {kind}, which labels should be")
    if kind == "int":
        return np.array([int(label) for label in known], dtype=np.int64)
    return np.array([float(label) for label in known], dtype=np.float64)


def _is_int(label: str) -> bool:
    limits = np.iinfo(np.int64)
    return bool(_INT.fullmatch(label)) and limits.min <= int(label) <= limits.max


def _is_whole_float(label: str) -> bool:
    return _is_float(label) and float(label).is_integer() and abs(float(label)) < _MOST_WHOLE


def _is_float(label: str) -> bool:
    return bool(_FLOAT.fullmatch(label)) and bool(np.isfinite(float(label)))

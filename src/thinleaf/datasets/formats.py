"""Formats and layouts of data files, and what one line says where a line is an example.

Lines come from ``lines``, examples are put together in ``batches``; files with columns are read in
``tables``.

========  ============================================================  =============
format    a line                                                        an example is
========  ============================================================  =============
libsvm    ``label index:value index:value ... # comment``               a sparse row
vw        ``label [importance] ['tag] |namespace feature[:value] ...``  a sparse row
fasttext  ``__label__label words``                                      a text
tsv       ``label<TAB>text``                                            a text
========  ============================================================  =============

A parser takes a decoded line and returns an example, or None where a line holds none; it raises
:class:`~thinleaf.datasets.lines.BadLine` for what it cannot read. An example has one label at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from math import isfinite
from operator import lt
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from thinleaf._dtypes import INDEX, PARAM
from thinleaf.datasets.lines import BadLine, excerpt

Format: TypeAlias = Literal["libsvm", "vw", "fasttext", "tsv", "csv", "jsonl", "parquet", "arrow"]
Column: TypeAlias = str | int
"""The name of a column, or its number from 1."""

Labels: TypeAlias = Literal["required", "optional", "none"]

FEATURE_FORMATS: Final[tuple[Format, ...]] = ("libsvm", "vw")
TEXT_FORMATS: Final[tuple[Format, ...]] = ("fasttext", "tsv")
LINE_FORMATS: Final = FEATURE_FORMATS + TEXT_FORMATS
"""Those in which a line is an example, and nothing has a name."""

TABLE_FORMATS: Final[tuple[Format, ...]] = ("csv", "jsonl", "parquet", "arrow")
"""Those with named columns, of texts or of numbers."""

FORMATS: Final = LINE_FORMATS + TABLE_FORMATS

HASHED_FEATURES: Final = 1 << 18
"""The number of features that names are hashed to, unless another one is given."""

MAX_INDEX: Final = int(np.iinfo(INDEX).max) - 1
_MAX_VALUE = float(np.finfo(PARAM).max)

_VALUE = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_IS_VALUE = re.compile(_VALUE)
_IS_ITEM = re.compile(rf"[+-]?[0-9]{{1,10}}:{_VALUE}")
_IS_NAME_OF_INDEX = re.compile("[0-9]{1,10}")
_BEGINS_ITEM = re.compile(r"[+-]?[0-9]+:")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_FASTTEXT_LABEL = re.compile(r"(?<!\S)__label__(\S*)")


@dataclass(frozen=True)
class Layout:
    """How a file is laid out: all that must be the same when a model sees another file.

    Attributes
    ----------
    format : {"libsvm", "vw", "fasttext", "tsv", "csv", "jsonl", "parquet", "arrow"}
    zero_based : bool
        LIBSVM: whether the first feature is 0, not 1.
    hashed : bool
        VW: whether features are found by a hash of namespace and name. If not, names are integers
        from 0, and all are of one namespace.
    n_features : int or None
        Of sparse rows, if that is fixed. It always is where names are hashed.
    text_column : tuple of str or int
        Of a table, the columns that texts are in, by name or, if there is no header, by number
        from 1. Several become one text, a line each.
    label_column : str, int or None
        Of a table, the column of the labels.
    feature_columns : tuple of str or int
        Of a table of numbers, the columns that are features.
    header : bool
        Of a CSV file, whether its first record names the columns. Other tables name them always.
    """

    format: Format
    zero_based: bool = False
    hashed: bool = False
    n_features: int | None = None
    text_column: tuple[Column, ...] = ()
    label_column: Column | None = None
    feature_columns: tuple[Column, ...] = ()
    header: bool = True

    @property
    def has_texts(self) -> bool:
        """Whether examples are texts, not rows of features."""
        return self.format not in FEATURE_FORMATS and not self.feature_columns


class Row(NamedTuple):
    """A sparse row: ascending features, finite values."""

    label: str | None
    indices: list[int]
    values: list[float]
    weight: float = 1.0


class Text(NamedTuple):
    """A raw text; of columns that are kept apart, also their texts and numbers."""

    label: str | None
    text: str
    cells: Sequence[str | float] = ()


RowParser: TypeAlias = Callable[[Any], Row | None]
TextParser: TypeAlias = Callable[[Any], Text | None]
"""What takes a line, or of a table the fields of a record."""


def line_parser(layout: Layout, labels: Labels) -> RowParser | TextParser:
    """Return what reads lines of a format in which each is an example."""
    if layout.format == "libsvm":
        return LibsvmParser(layout, labels)
    if layout.format == "vw":
        return VwParser(layout, labels)
    return FasttextParser(labels) if layout.format == "fasttext" else TsvParser(labels)


def without_comment(line: str) -> str:
    """Return a LIBSVM line up to a ``#`` that begins a word."""
    return _COMMENT.sub("", line) if "#" in line else line


def libsvm_indices(words: Sequence[str]) -> list[int]:
    """Return the indices of ``index:value`` words; none if one of the words is no such pair."""
    if not all(map(_IS_ITEM.fullmatch, words)):
        return []
    return [int(word.partition(":")[0]) for word in words]


class LibsvmParser:
    """LIBSVM and SVMlight lines.

    Indices ascend and none occurs twice. A line whose first word is an ``index:value`` has no
    label. A ``#`` within a word is part of it.
    """

    def __init__(self, layout: Layout, labels: Labels) -> None:
        self._labels = labels
        self._base = 0 if layout.zero_based else 1

    def __call__(self, line: str) -> Row | None:
        """Return what a line says."""
        line = without_comment(line)
        words = line.split(None, 1)
        if not words:
            return None
        label: str | None = None
        if self._labels == "none" or _BEGINS_ITEM.match(words[0]):
            if self._labels == "required":
                raise BadLine("no label before the first feature", "write label index:value ...")
            items = line
        else:
            label, items = words[0], words[1] if len(words) > 1 else ""
            _check_single(label)
        indices, values = self._numbers(items)
        self._check_indices(indices)
        _check_values(values)
        return Row(label, indices, values)

    def _numbers(self, text: str) -> tuple[list[int], list[float]]:
        items = text.split()
        if not is_plain(text) and not all(map(_IS_ITEM.fullmatch, items)):
            raise _bad_item(items)
        try:
            pairs = [item.split(":") for item in items]
            indices = [int(index) - self._base for index, _ in pairs]
            values = [float(value) for _, value in pairs]
        except ValueError as error:
            raise _bad_item(items) from error
        return indices, values

    def _check_indices(self, indices: list[int]) -> None:
        if not indices:
            return
        if not all(map(lt, indices, indices[1:])):
            before, after = next(pair for pair in pairwise(indices) if pair[0] >= pair[1])
            raise BadLine(
                f"index {after + self._base} after {before + self._base}",
                "sort the indices of a line, and give each once",
            )
        if indices[0] < 0:
            other = ", or from 0 with zero_based=True" if self._base else ""
            raise BadLine(
                f"index {indices[0] + self._base} is below {self._base}",
                f"features are counted from {self._base}{other}",
            )
        if indices[-1] > MAX_INDEX:
            raise BadLine(f"index {indices[-1] + self._base} is too large", "renumber the features")


class VwParser:
    """Lines of Vowpal Wabbit.

    As there, a last word before the bar that touches it or begins with ``'`` is a tag, a feature
    without value has value 1, a namespace may have a weight, and values of one feature are added.
    """

    def __init__(self, layout: Layout, labels: Labels) -> None:
        self._labels = labels
        self._n_buckets = (layout.n_features or HASHED_FEATURES) if layout.hashed else None
        self._namespace: str | None = None

    def __call__(self, line: str) -> Row | None:
        """Return what a line says."""
        if not line.strip():
            return None
        head, bar, body = line.partition("|")
        if not bar:
            raise BadLine("no bar '|'", "write label |namespace feature:value ...")
        label, weight = self._label(head)
        row: dict[int, float] = {}
        for word, items in vw_blocks(body):
            namespace, colon, number = word.partition(":")
            scale = _number(number, word) if colon else 1.0
            names, values = _vw_pairs(items)
            for index, value in zip(self._indices(namespace, names), values, strict=True):
                row[index] = row.get(index, 0.0) + scale * value
        indices = sorted(row)
        summed = [row[index] for index in indices]
        _check_values(summed)
        return Row(label, indices, summed, weight)

    def _label(self, head: str) -> tuple[str | None, float]:
        """Return the label and importance in what is before the first bar."""
        words = head.split()
        tag = bool(words) and (words[-1].startswith("'") or not head[-1].isspace())
        if tag:
            words.pop()
        if not words:
            if self._labels == "required":
                touch = "a word that touches the bar is a tag; " if tag else ""
                raise BadLine("no label", f"{touch}write label |namespace feature:value ...")
            return None, 1.0
        label = words[0]
        if self._labels == "none":
            raise BadLine(f"a label, {excerpt(label)}", "read the file as one that has labels")
        _check_single(label)
        if ":" in label:
            raise BadLine(f"a label with a cost, {excerpt(label)}", "give one label, without cost")
        if len(words) > 2:
            raise BadLine(
                f"{len(words)} words before the bar", "give one label, and its importance at most"
            )
        weight = _number(words[1], words[1]) if len(words) == 2 else 1.0
        if weight < 0.0:
            raise BadLine(f"importance {excerpt(words[1])} is negative", "give a number from 0")
        return label, weight

    def _indices(self, namespace: str, names: list[str]) -> list[int]:
        if self._n_buckets is not None:
            return [_hash(namespace, name) % self._n_buckets for name in names]
        bad = next((name for name in names if not is_index(name)), None)
        if bad is not None:
            raise BadLine(
                f"feature {excerpt(bad)} is no integer in 0..{MAX_INDEX}",
                "read the file with hashed=True",
            )
        if names and self._namespace is None:
            self._namespace = namespace
        if names and namespace != self._namespace:
            raise BadLine(
                f"namespace {namespace!r} beside {self._namespace!r}",
                "read the file with hashed=True, so that their features are told apart",
            )
        return [int(name) for name in names]


class FasttextParser:
    """Lines of fastText: a word that begins with ``__label__``, mostly the first, is the label."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def __call__(self, line: str) -> Text | None:
        """Return what a line says."""
        if not line.strip():
            return None
        if self._labels == "none":
            return Text(None, line)
        found = _FASTTEXT_LABEL.findall(line)
        if len(found) > 1:
            raise BadLine(f"{len(found)} labels", "one is allowed: give each text one class")
        if not found:
            if self._labels == "required":
                raise BadLine("no label", "write __label__name, then the text")
            return Text(None, line)
        if not found[0]:
            raise BadLine("an empty label", "write __label__name, without a space between them")
        return Text(found[0], _FASTTEXT_LABEL.sub("", line).strip())


class TsvParser:
    """Lines with a label, a tab and a text, which may have more tabs in it."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def __call__(self, line: str) -> Text | None:
        """Return what a line says."""
        if not line.strip():
            return None
        if self._labels == "none":
            return Text(None, line)
        head, tab, text = line.partition("\t")
        label = head.strip()
        if not tab:
            if self._labels == "required":
                raise BadLine("no tab", "write the label, a tab and the text")
            return Text(None, line)
        if not label and self._labels == "required":
            raise BadLine("an empty label", "write the label, a tab and the text")
        return Text(label or None, text)


def vw_blocks(body: str) -> Iterator[tuple[str, list[str]]]:
    """Split what is after the first bar of a VW line into namespaces and their features."""
    for block in body.split("|"):
        words = block.split()
        namespace = words.pop(0) if words and not block[0].isspace() else ""
        yield namespace, words


def is_index(name: str) -> bool:
    """Return whether the name of a VW feature can be its number."""
    return bool(_IS_NAME_OF_INDEX.fullmatch(name)) and int(name) <= MAX_INDEX


def _vw_pairs(items: list[str]) -> tuple[list[str], list[float]]:
    """Return names and values of features; the value is 1 if there is none."""
    pairs = [item.partition(":") for item in items]
    names = [name for name, _, _ in pairs]
    if not all(names):
        raise BadLine(f"feature {excerpt(items[names.index('')])} has no name", "write name:value")
    plain = is_plain("".join([value for _, _, value in pairs]))
    try:
        values = [float(value) if colon else 1.0 for _, colon, value in pairs]
    except ValueError:
        plain = False
    if not plain:
        values = [
            _number(value, item) if colon else 1.0
            for item, (_, colon, value) in zip(items, pairs, strict=True)
        ]
    return names, values


@lru_cache(maxsize=1 << 18)
def _hash(namespace: str, name: str) -> int:
    """Return a hash that is the same in every process; one word cannot hold the space between."""
    key = f"{namespace} {name}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")


def is_plain(numbers: str) -> bool:
    """Return whether numbers have no underscores or foreign digits, which Python would read."""
    return numbers.isascii() and "_" not in numbers


def _number(text: str, word: str) -> float:
    """Return the finite number that a word has or is."""
    if not _IS_VALUE.fullmatch(text) or not isfinite(float(text)):
        raise BadLine(f"no finite number in {excerpt(word)}", "write one such as 0.5")
    return float(text)


def _check_single(label: str) -> None:
    """Refuse the labels ``1,2`` of multi-label files."""
    if "," in label:
        raise BadLine(
            f"several labels, {excerpt(label)}",
            "one is allowed: give each line one class, whose name has no comma",
        )


def _check_values(values: list[float]) -> None:
    # The sum of sizes is no number or too large if one of them is, and else only on the very edge.
    if sum(map(abs, values)) <= _MAX_VALUE:
        return
    for value in values:
        if not abs(value) <= _MAX_VALUE:
            raise BadLine(f"value {value} is not finite in single precision", "scale or remove it")


def _bad_item(items: Iterable[str]) -> BadLine:
    """Return what is wrong with the first word that is no ``index:value``."""
    bad = next((item for item in items if not _IS_ITEM.fullmatch(item)), "")
    return BadLine(
        f"{excerpt(bad)} is not index:value with finite numbers",
        "write one label, then pairs such as 3:0.5",
    )

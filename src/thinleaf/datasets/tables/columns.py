"""Which columns of a table are texts, labels or features: as told, or where it is clear."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from thinleaf.datasets.formats import Column, Format, Labels, Layout
from thinleaf.datasets.lines import BadLine

LABEL_NAMES: Final = frozenset(
    ("label", "labels", "class", "classes", "category", "categories", "code", "intent", "target",
     "y")
)  # fmt: skip
TEXT_NAMES: Final = frozenset(
    ("text", "texts", "sentence", "document", "description", "content", "title", "review",
     "message", "query", "utterance", "x")
)  # fmt: skip
OTHER_NAMES: Final = frozenset(("id", "index", "weight", "split", ""))
"""Names of columns that are neither."""

_SHOWN = 20
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

GIVE_TEXT: Final = "give --text-column (in Python, text_column), more than once to join several"
GIVE_LABEL: Final = "give --label-column (in Python, label_column)"


@dataclass(frozen=True)
class Wanted:
    """What a caller says of a table's columns.

    Attributes
    ----------
    text : tuple of str or int
    label : str, int or None
    features : tuple of str or int
    header : bool or "auto"
    numeric : tuple of str or int
        Columns of numbers beside texts.
    apart : bool
        Whether the columns of a record are kept apart, beside the text that they become.
    well_known : bool
        Whether a column with a well-known name will do where that of the texts, or of the labels,
        is missing.
    """

    text: tuple[Column, ...] = ()
    label: Column | None = None
    features: tuple[Column, ...] = ()
    header: bool | Literal["auto"] = "auto"
    numeric: tuple[Column, ...] = ()
    apart: bool = False
    well_known: bool = False

    @property
    def any(self) -> bool:
        """Whether a column is named."""
        return bool(self.named)

    @property
    def needed(self) -> tuple[Column, ...]:
        """The columns without which nothing can be read, whatever the labels."""
        return (self.text or self.features) + self.numeric

    @property
    def named(self) -> tuple[Column, ...]:
        """All columns that are wanted."""
        return self.needed + (() if self.label is None else (self.label,))

    def for_names(self, names: Sequence[Column]) -> Wanted:
        """Return what is wanted of columns with these names: one that is missing may stand back."""
        if not self.well_known:
            return self
        found = self
        if len(self.text) == 1 and not has_columns(names, self.text) and has_known_text(names):
            found = replace(found, text=())
        known = _known(names, LABEL_NAMES, "label", ()) is not None
        if known and self.label is not None and not has_columns(names, [self.label]):
            found = replace(found, label=None)
        return found


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    Attributes
    ----------
    names : tuple of str or int
        Of all columns, in order; their numbers from 1 if they have no names.
    text : tuple of int
        Positions of those that texts are in.
    label : int or None
        Position of that of the labels.
    features : tuple of int
        Positions of those that are features.
    numeric : tuple of int
        Positions of those with numbers beside texts.
    apart : bool
        Whether the columns of a record are kept apart.
    """

    names: tuple[Column, ...]
    text: tuple[int, ...]
    label: int | None
    features: tuple[int, ...] = ()
    numeric: tuple[int, ...] = ()
    apart: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        """Positions of all but the labels."""
        return self.text + self.features + self.numeric

    def narrowed(self) -> tuple[list[int], Columns]:
        """Return the positions of what is read, and the columns of a table that has nothing else.

        Labels are the last of them.
        """
        used = [*self.inputs, *([] if self.label is None else [self.label])]
        ends = [len(self.text), len(self.text + self.features), len(self.inputs)]
        columns = Columns(
            tuple(self.names[i] for i in used),
            tuple(range(ends[0])),
            None if self.label is None else ends[2],
            tuple(range(ends[0], ends[1])),
            tuple(range(ends[1], ends[2])),
            self.apart,
        )
        return used, columns

    def layout(self, format: Format) -> Layout:
        """Return what is to be remembered of them."""
        return Layout(
            format,
            n_features=len(self.features) or None,
            text_column=tuple(self.names[i] for i in self.text),
            label_column=None if self.label is None else self.names[self.label],
            feature_columns=tuple(self.names[i] for i in self.features),
            header=not self.names or isinstance(self.names[0], str),
        )

    def described(self) -> str:
        """Return what is read from which columns."""
        used = {*self.inputs, *(() if self.label is None else (self.label,))}
        parts = []
        if self.text:
            parts.append(f"texts are in {quoted(self.names[i] for i in self.text)}")
        if self.features:
            parts.append(f"features are in {quoted(self.names[i] for i in self.features)}")
        if self.numeric:
            parts.append(f"numbers in {quoted(self.names[i] for i in self.numeric)}")
        if self.label is not None:
            parts.append(f"labels in {quoted([self.names[self.label]])}")
        rest = len(self.names) - len(used)
        if rest:
            parts.append(f"{rest} other column{'s are' if rest > 1 else ' is'} passed over")
        header = "" if isinstance(self.names[0], str) else "there is no header; "
        return header + ", ".join(parts)


def quoted(names: Iterable[Column], what: str = "column") -> str:
    """Return names for a message: "columns 'a', 'b'"."""
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{what}{'s' * (len(shown) != 1)} {', '.join(shown[:_SHOWN])}{more}"


def key(name: Column) -> str:
    """Return a name as it is compared with well-known ones."""
    return str(name).strip().strip("#\"' ").lower()


def is_header(names: Iterable[str]) -> bool:
    """Return whether names are evidently those of columns: a label, a text, and nothing unknown."""
    keys = {key(name) for name in names}
    known = LABEL_NAMES | TEXT_NAMES | OTHER_NAMES
    return bool(keys & LABEL_NAMES) and bool(keys & TEXT_NAMES) and keys <= known


def has_known(names: Iterable[str]) -> bool:
    """Return whether one of the names is well known as that of labels or texts."""
    return any(key(name) in LABEL_NAMES | TEXT_NAMES for name in names)


def has_text(names: Iterable[str]) -> bool:
    """Return whether one of the names is well known as that of texts."""
    return any(key(name) in TEXT_NAMES for name in names)


def has_known_text(names: Sequence[Column]) -> bool:
    """Return whether it is clear by well-known names which column has the texts."""
    return _known(names, TEXT_NAMES, "text", ()) is not None


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number."""
    return bool(_NUMBER.fullmatch(cell.strip()))


def position(names: Sequence[Column], column: Column) -> int:
    """Return where a column is.

    A name is looked for as it is, then without regard to case; digits may also be a number from 1.

    Raises
    ------
    BadLine
        If there is no such column, or more than one.
    """
    if isinstance(column, str):
        wanted = column.strip()
        found = [i for i, name in enumerate(names) if str(name) == wanted] or [
            i for i, name in enumerate(names) if str(name).lower() == wanted.lower()
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise BadLine(
                f"{len(found)} columns are called {column!r}",
                f"rename them, or give the number of one, from 1 to {len(names)}",
            )
        if not (wanted.isascii() and wanted.isdigit()):
            if names and isinstance(names[0], int):
                raise BadLine(
                    f"no column {column!r}, for the file has no header",
                    f"give the column's number, from 1 to {len(names)}",
                )
            raise BadLine(f"no column {column!r}", f"the file has {quoted(names)}")
        column = int(wanted[:9])
    if not 1 <= column <= len(names):
        raise BadLine(f"no column {column}", f"the file has {len(names)}, {quoted(names)}")
    return column - 1


def has_columns(names: Sequence[Column], columns: Iterable[Column]) -> bool:
    """Return whether all columns are there."""
    try:
        return all(position(names, column) >= 0 for column in columns)
    except BadLine:
        return False


def find_columns(
    names: Sequence[Column], records: Sequence[Sequence[str]], wanted: Wanted, labels: Labels
) -> Columns:
    """Return the columns to read: those that are wanted, and others where it is clear.

    It is where names are well known, where only one column is left, and where of two columns one
    has longer cells and the other fewer different ones.

    Parameters
    ----------
    names : sequence of str or int
        Of the columns.
    records : sequence of sequence of str
        Some of the records, of the same width.
    wanted : Wanted
    labels : {"required", "optional", "none"}
        Unless they are required, a wanted column of labels may be missing.

    Raises
    ------
    BadLine
        If a column is missing, or it is not clear which it is.
    """
    names = tuple(name.strip() if isinstance(name, str) else name for name in names)
    wanted = wanted.for_names(names)
    text = tuple(position(names, column) for column in wanted.text)
    features = tuple(position(names, column) for column in wanted.features)
    numeric = tuple(position(names, column) for column in wanted.numeric)
    inputs = text + features + numeric
    _refuse_twice(names, inputs)
    label = None
    if labels != "none":
        if wanted.label is None:
            label = _known(names, LABEL_NAMES, "label", inputs)
        elif labels == "required" or has_columns(names, [wanted.label]):
            label = position(names, wanted.label)
    if label is not None and label in inputs:
        raise BadLine(f"{quoted([names[label]])} cannot be label and input", GIVE_LABEL)
    free = [i for i in range(len(names)) if i not in (*inputs, label)]
    if not text and not features:
        text, features, label = _find_inputs(names, records, label, free, labels)
        if features and numeric:
            raise BadLine(f"which of {quoted(names)} has the texts is not clear", GIVE_TEXT)
    if label is None and labels == "required":
        free = [i for i in free if i not in text and key(names[i]) not in OTHER_NAMES]
        if not free:
            raise BadLine(f"there is no column of labels beside {quoted(names)}", "add one")
        if len(free) > 1:
            raise BadLine(f"which of {quoted(names)} has the labels is not clear", GIVE_LABEL)
        label = free[0]
    return Columns(names, text, label, features, numeric, wanted.apart or bool(numeric))


def _refuse_twice(names: Sequence[Column], inputs: Sequence[int]) -> None:
    """Raise :class:`BadLine` if a column is wanted more than once."""
    for i in inputs:
        if inputs.count(i) > 1:
            raise BadLine(f"column {names[i]!r} is named more than once", "name it once")


def _find_inputs(
    names: tuple[Column, ...],
    records: Sequence[Sequence[str]],
    label: int | None,
    free: Sequence[int],
    labels: Labels,
) -> tuple[tuple[int, ...], tuple[int, ...], int | None]:
    """Return the columns of texts or of features, and that of labels if it follows."""
    taken = set() if label is None else {label}
    known = _known(names, TEXT_NAMES, "text", taken)
    if known is not None:
        return (known,), (), label
    free = [i for i in free if key(names[i]) not in OTHER_NAMES] or list(free)
    several = [i for i in free if key(names[i]) in TEXT_NAMES]
    if several:
        found = " or ".join(repr(names[i]) for i in several)
        raise BadLine(f"texts could be in {found}", GIVE_TEXT)
    if label is not None and free and _are_numbers(records, free):
        return (), tuple(free), label
    if len(free) == 1 and (label is not None or labels != "required"):
        return (free[0],), (), label
    if len(free) == 2 and label is None and labels != "none":
        pair = _text_and_label(records, free)
        if pair is not None:
            return (pair[0],), (), pair[1]
    raise BadLine(f"which of {quoted(names)} has the texts is not clear", GIVE_TEXT)


def _known(
    names: Sequence[Column], known: frozenset[str], best: str, taken: Iterable[int]
) -> int | None:
    """Return the only column whose name is well known, or the only one of the best known."""
    for wanted in ({best}, known):
        found = [i for i, name in enumerate(names) if i not in taken and key(name) in wanted]
        if len(found) == 1:
            return found[0]
    return None


def _are_numbers(records: Sequence[Sequence[str]], columns: Sequence[int]) -> bool:
    """Return whether all cells of columns that are not empty are numbers, some in each."""
    for i in columns:
        cells = [record[i] for record in records if record[i].strip()]
        if not cells or not all(map(is_number, cells)):
            return False
    return True


def _text_and_label(
    records: Sequence[Sequence[str]], columns: Sequence[int]
) -> tuple[int, int] | None:
    """Return which of two columns is longer and which has fewer values, if that is not one."""
    if len(records) < 2:
        return None
    length = {i: sum(len(record[i]) for record in records) for i in columns}
    values = {i: len({record[i] for record in records}) for i in columns}
    text = max(columns, key=length.__getitem__)
    label = min(columns, key=length.__getitem__)
    if length[text] == length[label] or values[label] > values[text]:
        return None
    return text, label

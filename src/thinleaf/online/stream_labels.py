"""Labels of a stream: each gets the next class id when it first arrives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray


class _Sorted(NamedTuple):
    classes: AnyArray
    columns: IndexArray
    ranks: IndexArray
    label_list: list[Any]


class Arrivals:
    """Labels in the order of their arrival; to find one takes the same time however many there are.

    Parameters
    ----------
    labels : ndarray
        By class id.
    """

    def __init__(self, labels: AnyArray) -> None:
        self._ids: dict[Any, int] = {}
        self._by_id: list[Any] = []
        self._labels = labels[:0]
        self._new: list[AnyArray] = []
        self._sorted: _Sorted | None = None
        self.add(labels)

    @classmethod
    def from_columns(cls, classes: AnyArray, columns: IndexArray) -> Arrivals:
        """Return the labels with these :attr:`classes` and :attr:`columns`."""
        if not np.array_equal(np.sort(columns), np.arange(classes.size)):
            raise ValueError("the order in which labels have arrived is damaged")
        labels = np.empty_like(classes)
        labels[columns] = classes
        return cls(labels)

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self._ids)

    @property
    def labels(self) -> AnyArray:
        """Labels by class id."""
        if self._new:
            old = [self._labels] if self._labels.size else []
            self._labels = np.concatenate([*old, *self._new])
            self._new = []
        return self._labels

    @property
    def classes(self) -> AnyArray:
        """Labels in ascending order."""
        return self._in_order.classes

    @property
    def columns(self) -> IndexArray:
        """Class ids in the order of :attr:`classes`."""
        return self._in_order.columns

    @property
    def ranks(self) -> IndexArray:
        """The place of each class id in :attr:`classes`."""
        return self._in_order.ranks

    @property
    def label_list(self) -> list[Any]:
        """Labels in ascending order, as Python values."""
        return self._in_order.label_list

    @property
    def _in_order(self) -> _Sorted:
        """The labels sorted, once for all calls until a new one arrives."""
        if self._sorted is None:
            columns = np.argsort(self.labels, kind="stable").astype(INDEX)
            ranks = np.empty_like(columns)
            ranks[columns] = np.arange(columns.size)
            classes = self.labels[columns]
            self._sorted = _Sorted(classes, columns, ranks, classes.tolist())
        return self._sorted

    def new_among(self, *parts: AnyArray) -> AnyArray:
        """Return labels that have not arrived yet, each once, in the order in which they come.

        Raises
        ------
        ValueError
            If numbers and strings are mixed.
        """
        some = [labels[:1] for labels in (self._labels, *self._new[:1], *parts) if labels.size]
        kinds = [_kind(labels) for labels in some]
        for kind in kinds[1:]:
            if kind != kinds[0]:
                raise ValueError(f"labels are {kind}, but those of earlier calls are {kinds[0]}")
        found: list[AnyArray] = []
        seen: set[Any] = set()
        for labels in parts:
            values, first = np.unique(labels, return_index=True)
            new = [
                i
                for value, i in zip(values.tolist(), first.tolist(), strict=True)
                if value not in self._ids and value not in seen
            ]
            seen.update(labels[new].tolist())
            if new:
                found.append(labels[np.sort(new)])
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def add(self, labels: AnyArray) -> None:
        """Give new labels the next class ids."""
        for label in labels.tolist():
            self._ids[label] = len(self._ids)
        if labels.size:
            self._new.append(labels)
            self._sorted = None

    def id_of(self, label: Any) -> int | None:
        """Return the class id of a label, None if it has not arrived."""
        return self._ids.get(label)

    def label_of(self, class_id: int) -> Any:
        """Return the label of a class id, as a Python value."""
        if len(self._by_id) != len(self._ids):
            self._by_id = list(self._ids)
        return self._by_id[class_id]

    def ids(self, y: AnyArray) -> IndexArray:
        """Return the class ids of labels, all of which have arrived."""
        values, inverse = np.unique(y, return_inverse=True)
        ids = np.array([self._ids[value] for value in values.tolist()], dtype=INDEX)
        return ids[inverse]


def _kind(labels: AnyArray) -> str:
    kind = labels.dtype.kind
    if kind == "O":
        kind = np.asarray(labels.tolist()).dtype.kind
    return "numbers" if kind in "biuf" else "strings"

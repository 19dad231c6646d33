"""Labels of a stream: each gets the next class id when it first arrives."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray


class Arrivals:
    """Labels in the order of their arrival.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,)
        By class id.
    """

    def __init__(self, labels: AnyArray) -> None:
        self.labels = labels
        self._sorter = np.argsort(labels, kind="stable")

    @classmethod
    def from_columns(cls, classes: AnyArray, columns: IndexArray) -> Arrivals:
        """Return the labels with these :attr:`classes` and :attr:`columns`."""
        if not np.array_equal(np.sort(columns), np.arange(classes.size)):
            raise ValueError("the order in which labels have arrived is damaged")
        labels = np.empty_like(classes)
        labels[columns] = classes
        return cls(labels)

    @property
    def classes(self) -> AnyArray:
        """Labels in ascending order."""
        return self.labels[self._sorter]

    @property
    def columns(self) -> IndexArray:
        """Class ids in the order of :attr:`classes`."""
        return self._sorter.astype(INDEX)

    def with_labels(self, y: AnyArray) -> Arrivals:
        """Return these labels and, after them, those of ``y`` that are new."""
        if y.size == 0:
            return self
        if self.labels.size and _kind(self.labels) != _kind(y):
            raise ValueError(
                f"labels are {_kind(y)}, but those of earlier calls are {_kind(self.labels)}"
            )
        values, first = np.unique(y, return_index=True)
        new = first[~np.isin(values, self.labels)] if self.labels.size else first
        if new.size == 0:
            return self
        arrived = y[np.sort(new)]
        return Arrivals(np.concatenate([self.labels, arrived]) if self.labels.size else arrived)

    def ids(self, y: AnyArray) -> IndexArray:
        """Return the class ids of labels, all of which have arrived."""
        at = np.searchsorted(self.labels, y, sorter=self._sorter)
        return self._sorter[at].astype(INDEX)


def _kind(labels: AnyArray) -> str:
    kind = labels.dtype.kind
    if kind == "O":
        kind = np.asarray(labels.tolist()).dtype.kind
    return "numbers" if kind in "biuf" else "strings"

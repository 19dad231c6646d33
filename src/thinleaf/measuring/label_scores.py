"""Precision, recall, F1 and support of each label, and their means, from counts.

The definitions are scikit-learn's, with its ``zero_division=0``: a label that is never predicted
has a precision of 0, one that no row has, a recall of 0. Means are over the labels that occur, in
the data or among the predictions.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, BoolArray, OffsetArray
from thinleaf.arrays.replace import replace_file

COLUMNS = ("label", "known", "precision", "recall", "f1", "support", "predicted", "right")


@dataclass(frozen=True)
class Means:
    """Means of precision, recall and F1 over labels."""

    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True, eq=False)
class LabelScores:
    """What a model does on the rows of each label.

    Attributes
    ----------
    labels : list
        As Python values: those of the model that occur, in its order, then those it does not know.
    known : ndarray of shape (n_labels,)
        Whether the model knows the label.
    support : ndarray of shape (n_labels,)
        Rows that have the label.
    predicted : ndarray of shape (n_labels,)
        Rows that are given the label.
    right : ndarray of shape (n_labels,)
        Rows that have the label and are given it.

    Examples
    --------
    >>> import numpy as np
    >>> from thinleaf.measuring.label_scores import LabelScores
    >>> scores = LabelScores.of(
    ...     ["a", "b", "c"], np.array([2, 2, 0]), np.array([3, 1, 0]), np.array([2, 1, 0]), {}
    ... )
    >>> scores.labels, scores.precision, scores.recall
    (['a', 'b'], array([0.66666667, 1.        ]), array([1. , 0.5]))
    """

    labels: list[Any]
    known: BoolArray
    support: OffsetArray
    predicted: OffsetArray
    right: OffsetArray

    @classmethod
    def of(
        cls,
        labels: list[Any],
        support: OffsetArray,
        predicted: OffsetArray,
        right: OffsetArray,
        unknown: dict[Any, int],
    ) -> LabelScores:
        """Return the scores of the labels that occur.

        Parameters
        ----------
        labels : list
            Of the model.
        support, predicted, right : ndarray of shape (n_classes,)
        unknown : dict
            Rows by label of the labels that the model does not know.
        """
        occurs = np.flatnonzero((support > 0) | (predicted > 0))
        zeros = np.zeros(len(unknown), dtype=np.int64)
        more = np.fromiter(unknown.values(), dtype=np.int64, count=len(unknown))
        return cls(
            [labels[i] for i in occurs] + list(unknown),
            np.repeat([True, False], [occurs.size, len(unknown)]),
            np.concatenate([support[occurs], more]),
            np.concatenate([predicted[occurs], zeros]),
            np.concatenate([right[occurs], zeros]),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def precision(self) -> AccumArray:
        """Of the rows that are given a label, the share that has it."""
        return _ratio(self.right, self.predicted)

    @property
    def recall(self) -> AccumArray:
        """Of the rows that have a label, the share that is given it."""
        return _ratio(self.right, self.support)

    @property
    def f1(self) -> AccumArray:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self.right, self.support + self.predicted)

    @property
    def macro(self) -> Means:
        """Means in which every label counts the same."""
        return self._means(np.ones(len(self), dtype=ACCUM))

    @property
    def weighted(self) -> Means:
        """Means in which a label counts as often as rows have it."""
        return self._means(self.support.astype(ACCUM))

    def _means(self, weights: AccumArray) -> Means:
        if not weights.sum():
            return Means(0.0, 0.0, 0.0)
        scores = (self.precision, self.recall, self.f1)
        return Means(*(float(np.average(score, weights=weights)) for score in scores))

    def worst(self, n: int | None = None) -> list[int]:
        """Return the positions of the labels with the lowest F1; of equal ones, more rows first."""
        order = np.lexsort((np.arange(len(self)), -self.support, self.f1))
        return [int(i) for i in order[:n]]

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the figures of each label by name, as JSON holds them."""
        columns = [self.labels, self.known, self.precision, self.recall, self.f1]
        columns += [self.support, self.predicted, self.right]
        plain = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        for row in zip(*plain, strict=True):
            yield dict(zip(COLUMNS, row, strict=True))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table of all labels; a file of that name is replaced."""
        with (
            replace_file(path) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(row | {"known": int(row["known"])} for row in self.records())


def _ratio(part: OffsetArray, whole: OffsetArray) -> AccumArray:
    out = np.zeros(part.size, dtype=ACCUM)
    np.divide(part, whole, out=out, where=whole > 0)
    return out

"""Which labels are taken for which: counted sparsely, with a few examples of each pair.

Memory is bounded. Beyond a million pairs the rarest are forgotten; examples are kept of the pairs
that are most frequent so far, so one that becomes frequent later has later examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thinleaf._dtypes import OFFSET, AccumArray, AnyArray, OffsetArray

MOST_PAIRS = 1 << 20
MOST_WITH_EXAMPLES = 1 << 14
MOST_LABELS = 1 << 17
_LONGEST = 300
_BUFFERED = 1 << 16


@dataclass(frozen=True)
class Example:
    """A row that is wrong.

    Attributes
    ----------
    number : int
        Of the row, or of its line in a file.
    probability : float
        Of the label that it was given.
    text : str or None
        If there is one; a long one is cut.
    """

    number: int
    probability: float
    text: str | None = None


@dataclass(frozen=True)
class ConfusedPair:
    """Rows of one label that are given another.

    Attributes
    ----------
    label : object
        That the rows have.
    predicted : object
        That they are given.
    count : int
    share : float
        Of the rows that have the label.
    examples : tuple of Example
    """

    label: Any
    predicted: Any
    count: int
    share: float
    examples: tuple[Example, ...] = ()


class Confusions:
    """Counts pairs of a row's class and another that it was given.

    Parameters
    ----------
    n_classes : int
    n_examples : int
        Of each pair.
    most_pairs : int
        Beyond these, the rarer half is forgotten.
    most_with_examples : int
        Pairs with examples, likewise.
    """

    def __init__(
        self,
        n_classes: int,
        n_examples: int = 3,
        most_pairs: int = MOST_PAIRS,
        most_with_examples: int = MOST_WITH_EXAMPLES,
    ) -> None:
        self._n_classes, self._n_examples = n_classes, n_examples
        self._most_pairs, self._most_with_examples = most_pairs, most_with_examples
        self._keys = np.empty(0, dtype=OFFSET)
        self._counts = np.empty(0, dtype=OFFSET)
        self._pending: list[OffsetArray] = []
        self._n_pending = 0
        self._examples: dict[int, list[Example]] = {}
        self.complete = True
        """False once pairs have been forgotten: counts may then be too low."""

    def add(
        self,
        classes: AnyArray,
        predicted: AnyArray,
        numbers: AnyArray,
        confidence: AccumArray,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Count rows that are wrong.

        Parameters
        ----------
        classes, predicted : ndarray of shape (n_wrong,)
        numbers : ndarray of shape (n_wrong,)
            Of the rows.
        confidence : ndarray of shape (n_wrong,)
            Of the predicted class.
        texts : sequence of str, optional
        """
        keys = classes.astype(OFFSET) * self._n_classes + predicted
        self._pending.append(keys)
        self._n_pending += keys.size
        if self._n_examples:
            for i, key in enumerate(keys.tolist()):
                of_pair = self._examples.setdefault(key, [])
                if len(of_pair) < self._n_examples:
                    text = None if texts is None else shortened(texts[i])
                    of_pair.append(Example(int(numbers[i]), float(confidence[i]), text))
        if self._n_pending > max(_BUFFERED, self._keys.size):
            self._merge()
        if len(self._examples) > self._most_with_examples:
            self._forget_examples()

    def __len__(self) -> int:
        self._merge()
        return self._keys.size

    def pairs(self, n: int) -> list[tuple[int, int, int, tuple[Example, ...]]]:
        """Return the most frequent pairs: class, predicted, count and examples."""
        self._merge()
        order = np.argsort(-self._counts, kind="stable")[:n]
        return [
            (*divmod(key, self._n_classes), count, tuple(self._examples.get(key, ())))
            for key, count in zip(
                *(a[order].tolist() for a in (self._keys, self._counts)), strict=True
            )
        ]

    def _merge(self) -> None:
        if not self._pending:
            return
        new, n_new = np.unique(np.concatenate(self._pending), return_counts=True)
        keys, where = np.unique(np.concatenate([self._keys, new]), return_inverse=True)
        counts = np.zeros(keys.size, dtype=OFFSET)
        np.add.at(counts, where, np.concatenate([self._counts, n_new]))
        self._pending, self._n_pending = [], 0
        if keys.size > self._most_pairs:
            frequent = np.sort(np.argsort(-counts, kind="stable")[: self._most_pairs // 2])
            keys, counts, self.complete = keys[frequent], counts[frequent], False
        self._keys, self._counts = keys, counts

    def _forget_examples(self) -> None:
        self._merge()
        kept = {key: self._examples[key] for key in self._frequent(self._most_with_examples // 2)}
        self._examples = kept

    def _frequent(self, n: int) -> list[int]:
        """Return the keys with examples that are most frequent so far."""
        keys = np.fromiter(self._examples, dtype=OFFSET, count=len(self._examples))
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        counts = np.where(self._keys[at] == keys, self._counts[at], 0)
        return [int(key) for key in keys[np.lexsort((keys, -counts))[:n]]]


class UnknownLabels:
    """Counts labels that a model does not know; of very many, the first are named.

    Parameters
    ----------
    most : int
        Labels that are named.
    """

    def __init__(self, most: int = MOST_LABELS) -> None:
        self._most = most
        self.counts: dict[Any, int] = {}
        self.n_rows = 0
        self.complete = True
        """False once there were more labels than are named."""

    def add(self, labels: Sequence[Any]) -> None:
        """Count the label of each row that has an unknown one."""
        for label in labels:
            if label in self.counts or len(self.counts) < self._most:
                self.counts[label] = self.counts.get(label, 0) + 1
            else:
                self.complete = False
        self.n_rows += len(labels)


def shortened(text: str) -> str:
    """Return a text that is not too long to show."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

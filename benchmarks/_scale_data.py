"""Synthetic sets with as many classes as one likes: no real set here has a million.

What is like real text sets: label frequencies follow Zipf's law; classes stand in a hierarchy (30
in a topic, 30 topics in a field) and share most of their words with their neighbours; words of the
language are frequent, those of a class rare; rows are short and of unit length. What is not:
words are drawn one by one, and every class has the same share of words of its own. So errors say
how systems compare and how they grow with the number of classes, not what they would be elsewhere.

Rows are made in chunks by a hash of class and word, so that nothing is held but what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

_OWN, _TOPIC, _FIELD = 0.4, 0.65, 0.8
"""Up to which share words are the class's own, its topic's, its field's; the rest are anyone's."""

_N_WORDS = (10, 60, 400)
"""Of a class, a topic and a field."""

_FANOUT = 30


@dataclass(frozen=True)
class Scale:
    """A set of some size.

    Attributes
    ----------
    n_classes, n_rows : int
    n_features : int
        Words; by default grows with the square root of the classes.
    seed : int
    chunk : int
        Rows that are made at a time.
    """

    n_classes: int
    n_rows: int
    n_features: int
    seed: int = 0
    chunk: int = 250_000

    @classmethod
    def of(cls, n_classes: int, rows_a_class: float = 10.0) -> Scale:
        """Return the usual size for a number of classes."""
        return cls(n_classes, int(n_classes * rows_a_class), int(1000 * np.sqrt(n_classes)))

    def chunks(self, part: int = 0, n_rows: int | None = None) -> Iterator[tuple]:
        """Yield rows and labels; parts, such as 0 to train and 1 to test, differ."""
        left = self.n_rows if n_rows is None else n_rows
        number = 0
        while left > 0:
            rng = np.random.default_rng([self.seed, part, number])
            y = self._labels(min(self.chunk, left), rng)
            yield self._rows(y, rng), y
            left, number = left - y.size, number + 1

    def whole(self, part: int = 0, n_rows: int | None = None) -> tuple:
        """Return all rows of a part at once."""
        parts = list(self.chunks(part, n_rows))
        return sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])

    def _labels(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw labels by Zipf's law, flattened at the top; frequent ones stand anywhere."""
        rank = np.arange(self.n_classes)
        total = np.cumsum((rank + 20.0) ** -0.8)
        drawn = np.searchsorted(total, rng.random(n) * total[-1], side="right")
        places = np.random.default_rng([self.seed, 99]).permutation(self.n_classes)
        return places[np.minimum(drawn, self.n_classes - 1)]

    def _rows(self, y: np.ndarray, rng: np.random.Generator) -> sp.csr_matrix:
        sizes = 6 + rng.poisson(10, y.size)
        label = np.repeat(y, sizes)
        kind, at = rng.random(label.size), rng.random(label.size)
        word = np.floor(float(self.n_features) ** at).astype(np.int64) - 1  # of the language
        groups = (label, label // _FANOUT, label // _FANOUT**2)
        limits = (0.0, _OWN, _TOPIC, _FIELD)
        for level, group in enumerate(groups):
            mine = (limits[level] <= kind) & (kind < limits[level + 1])
            number = np.floor(_N_WORDS[level] * at[mine] ** 1.5).astype(np.uint64)
            word[mine] = _hash(group[mine].astype(np.uint64), number, level) % self.n_features
        row = np.repeat(np.arange(y.size), sizes)
        shape = (y.size, self.n_features)
        X = sp.csr_matrix((np.ones(row.size, np.float32), (row, word)), shape=shape)
        X.sum_duplicates()
        rarity = np.log1p(np.arange(self.n_features, dtype=np.float32) + 1.0)  # few are frequent
        X.data = (1.0 + np.log(X.data)) * rarity[X.indices]
        norms = np.sqrt(np.add.reduceat(np.square(X.data), X.indptr[:-1]))
        X.data /= np.repeat(norms, np.diff(X.indptr))
        return X


def _hash(group: np.ndarray, number: np.ndarray, level: int) -> np.ndarray:
    """Return words of groups: the same for the same arguments, and like random ones."""
    x = group * np.uint64(0x9E3779B97F4A7C15) + number * np.uint64(0xC2B2AE3D27D4EB4F)
    x += np.uint64(level + 1) * np.uint64(0x165667B19E3779F9)
    for shift in (31, 27, 33):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(0xBF58476D1CE4E5B9)
    return (x >> np.uint64(20)).astype(np.int64)

"""Progressive validation: the error of predictions made before their examples were learned.

An honest estimate while every example is new (Blum, Kalai & Langford 1999), which is to say in the
first pass. Recorded after 1, 2, 4, 8, … examples.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from thinleaf._dtypes import OFFSET, IndexArray, OffsetArray


@dataclass(frozen=True)
class ProgressRecord:
    """Share of mistakes after so many examples, and of those since the last record."""

    examples: int
    loss: float
    loss_since_last: float

    def as_dict(self) -> dict[str, float]:
        """Return the record as users get it."""
        return asdict(self)


class ProgressiveLoss:
    """Counts examples and mistakes."""

    def __init__(self) -> None:
        self.n_examples = 0
        self.n_mistakes = 0
        self.records: list[ProgressRecord] = []
        self._at_records: list[tuple[int, int]] = [(0, 0)]

    @property
    def loss(self) -> float:
        """Share of mistakes so far."""
        return self.n_mistakes / max(self.n_examples, 1)

    @property
    def n_until_record(self) -> int:
        """Examples up to the next record."""
        return max(1, 2 * self._at_records[-1][0]) - self.n_examples

    def add(self, predicted: IndexArray, labels: IndexArray) -> ProgressRecord | None:
        """Count examples, at most :attr:`n_until_record`; return a record if it is time for one."""
        due = labels.size == self.n_until_record
        self.n_examples += labels.size
        self.n_mistakes += int(np.count_nonzero(predicted != labels))
        if not due:
            return None
        self._record()
        return self.records[-1]

    def as_array(self) -> OffsetArray:
        """Return all there is to know, of shape (n_records + 2, 2)."""
        counts = [*self._at_records, (self.n_examples, self.n_mistakes)]
        return np.array(counts, dtype=OFFSET)

    @classmethod
    def from_array(cls, counts: OffsetArray) -> ProgressiveLoss:
        """Return what :meth:`as_array` was taken from; raise ``ValueError`` if there is no such."""
        n = len(counts) - 2
        due = [0] + [1 << i for i in range(n)]
        valid = (
            n >= 0
            and counts.shape == (n + 2, 2)
            and counts[:-1, 0].tolist() == due
            and due[-1] <= counts[-1, 0] < max(1, 2 * due[-1])
            and bool(np.all((counts[:, 1] >= 0) & (counts[:, 1] <= counts[:, 0])))
        )
        if not valid:
            raise ValueError("the stored progressive loss is damaged")
        out = cls()
        for n_examples, n_mistakes in counts[1:-1].tolist():
            out.n_examples, out.n_mistakes = n_examples, n_mistakes
            out._record()
        out.n_examples, out.n_mistakes = counts[-1].tolist()
        return out

    def _record(self) -> None:
        n_before, mistakes_before = self._at_records[-1]
        self._at_records.append((self.n_examples, self.n_mistakes))
        since = (self.n_mistakes - mistakes_before) / (self.n_examples - n_before)
        self.records.append(ProgressRecord(self.n_examples, self.loss, since))

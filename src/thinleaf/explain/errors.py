"""Why rows are predicted wrong: the router sent them elsewhere, or the leaf chose another class.

The difference says what to do: a wider beam can mend the first kind, and only better leaves or more
trees the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.rows import Rows, n_rows_of, rows_between
from thinleaf.explain.overview import frozen_tree
from thinleaf.model.frozen import FrozenTree

_BATCH = 4096
_WORTH = 0.02


@dataclass(frozen=True)
class BeamErrors:
    """Errors with one beam, by cause.

    Attributes
    ----------
    beam : int
    wrong : int
        Rows that are predicted wrong.
    by_routing : int
        Those whose class is in none of the leaves that they reach.
    in_leaf : int
        Those whose class is in a leaf that they reach, but another one wins.
    unknown : int
        Those whose class the model does not have.
    """

    beam: int
    wrong: int
    by_routing: int
    in_leaf: int
    unknown: int


@dataclass(frozen=True)
class Confusion:
    """A class that is taken for another, by cause, with the model's own beam."""

    label: Any
    predicted: Any
    n: int
    by_routing: int
    in_leaf: int


@dataclass(frozen=True)
class ErrorCauses:
    """Errors on some rows by cause. Print it for a table and advice.

    Attributes
    ----------
    n_rows : int
    own_beam : int
        Of the model.
    beams : tuple of BeamErrors
        With one path, wider beams, and the model's own.
    confusions : tuple of Confusion
        The most frequent ones, with the model's own beam.
    """

    n_rows: int
    own_beam: int
    beams: tuple[BeamErrors, ...]
    confusions: tuple[Confusion, ...]

    @property
    def own(self) -> BeamErrors:
        """The errors with the model's own beam."""
        return next(entry for entry in self.beams if entry.beam == self.own_beam)

    @property
    def best(self) -> BeamErrors:
        """The narrowest beam with the fewest errors."""
        return min(self.beams, key=lambda entry: (entry.wrong, entry.beam))

    @property
    def advice(self) -> str:
        """What would help."""
        own, best = self.own, self.best
        if own.wrong == 0:
            return "there are no errors on these rows"
        share = f"{100 * own.by_routing / own.wrong:.0f} % of the errors are by routing"
        if best.beam > own.beam and own.wrong - best.wrong >= max(1, _WORTH * own.wrong):
            return (
                f"{share}; a beam of {best.beam} has {own.wrong - best.wrong:,} errors fewer of "
                f"{own.wrong:,}: it helps"
            )
        if own.by_routing > own.in_leaf:
            return f"{share}, but wider beams do not help here: more trees may"
        return f"{share}; most are made in the leaves: a wider beam does not help, more trees may"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return asdict(self) | {"advice": self.advice}

    def __str__(self) -> str:
        """Return a table and advice."""
        lines = ["beam   error  by routing  in the leaf  unknown class"]
        for entry in self.beams:
            parts = (entry.wrong, entry.by_routing, entry.in_leaf, entry.unknown)
            error, routing, leaf, unknown = (f"{100 * n / self.n_rows:.2f} %" for n in parts)
            own = "*" if entry.beam == self.own_beam else " "
            lines.append(
                f"{entry.beam:3}{own}  {error:>7}  {routing:>10}  {leaf:>11}  {unknown:>13}"
            )
        lines.append(f"{self.n_rows:,} rows; {self.advice}")
        if self.confusions:
            lines += ["", "   n  by routing  in the leaf  class, taken for"]
            lines += [
                f"{c.n:4}  {c.by_routing:10}  {c.in_leaf:11}  {c.label}, {c.predicted}"
                for c in self.confusions
            ]
        return "\n".join(lines)


def error_causes(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    *,
    beams: Sequence[int] = (1, 2, 4, 8),
    n_confusions: int = 10,
    n_jobs: int = 1,
) -> ErrorCauses:
    """Return why rows are predicted wrong, with several beams.

    Parameters
    ----------
    model : FrozenTree or estimator
    X : rows, or texts
    y : array-like of shape (n_rows,)
        Labels; the model need not know all of them.
    beams : sequence of int
        Beams to try beside the model's own, at its temperature.
    n_confusions : int
        How many confusions to name.
    n_jobs : int
        Threads.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.errors import error_causes
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X[:1200], y[:1200])
    >>> causes = error_causes(ast, X[1200:], y[1200:])
    >>> causes.own.wrong == causes.own.by_routing + causes.own.in_leaf
    True
    """
    frozen = frozen_tree(model)
    rows, labels = frozen._rows(X), np.asarray(y)
    if labels.shape != (n_rows_of(rows),):
        raise ValueError(f"y must have one label a row ({n_rows_of(rows)}), got {labels.shape}")
    known = {label: i for i, label in enumerate(frozen.labels.tolist())}
    ids = np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    entries = []
    confusions: tuple[Confusion, ...] = ()
    for beam in sorted({*beams, frozen.beam}):
        wide = frozen if beam == frozen.beam else frozen.with_beam(beam)
        predicted, held = _found(wide, rows, ids, n_jobs)
        wrong = predicted != ids
        entries.append(
            BeamErrors(
                int(beam),
                int(wrong.sum()),
                int((wrong & ~held & (ids >= 0)).sum()),
                int((wrong & held).sum()),
                int((ids < 0).sum()),
            )
        )
        if beam == frozen.beam:
            confusions = _confusions(frozen, labels, predicted, wrong, held, ids, n_confusions)
    return ErrorCauses(int(ids.size), frozen.beam, tuple(entries), confusions)


def _found(model: FrozenTree, rows: Rows, ids: AnyArray, n_jobs: int) -> tuple[AnyArray, AnyArray]:
    """Return the predicted class of each row, and whether its own is in a leaf that it reaches."""
    predictor = model.predictor
    predicted = predictor.top_class(rows, n_jobs).astype(np.int64)
    held = np.zeros(ids.size, dtype=np.bool_)
    for begin in range(0, ids.size, _BATCH):
        end = min(begin + _BATCH, ids.size)
        part = _rows_of(rows, begin, end)
        P = predictor.sparse_probabilities(part, n_jobs)
        of_row = np.repeat(np.arange(end - begin), np.diff(P.indptr))
        found = of_row[P.indices == ids[begin:end][of_row]]
        held[begin + found] = True
    return predicted, held


def _rows_of(rows: Rows, begin: int, end: int) -> Rows:
    part = rows_between(rows, begin, end)
    if isinstance(part, np.ndarray):
        return part
    first, last = int(part.indptr[0]), int(part.indptr[-1])
    return part._replace(
        indptr=part.indptr - part.indptr[0],
        indices=part.indices[first:last],
        data=part.data[first:last],
    )


def _confusions(
    model: FrozenTree,
    labels: AnyArray,
    predicted: AnyArray,
    wrong: AnyArray,
    held: AnyArray,
    ids: AnyArray,
    n: int,
) -> tuple[Confusion, ...]:
    pairs: Counter[tuple[Any, int]] = Counter()
    routed: Counter[tuple[Any, int]] = Counter()
    for i in np.flatnonzero(wrong & (ids >= 0)).tolist():
        pair = (labels[i].item() if hasattr(labels[i], "item") else labels[i], int(predicted[i]))
        pairs[pair] += 1
        routed[pair] += not held[i]
    names = model.labels.tolist()
    return tuple(
        Confusion(label, names[other], count, routed[label, other], count - routed[label, other])
        for (label, other), count in pairs.most_common(n)
    )

"""Progress of a fit on standard error: lines, and on a terminal a bar that redraws itself."""

from __future__ import annotations

import sys
from typing import TextIO

from thinleaf.baselines.adagrad import PassRecord
from thinleaf.labeltree.training import EpochRecord
from thinleaf.online.progressive import ProgressRecord
from thinleaf.softmaxtree.growth.expand import Grown
from thinleaf.softmaxtree.tao import SweepRecord

_WIDTH = 24
_CLEAR = "\r\x1b[2K"


class _Lines:
    """What a fit says: each line begins with the name of the estimator.

    Parameters
    ----------
    name : str
    total : int
        How many steps there are at the most, for classes that say so.
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(self, name: str, total: int = 0, stream: TextIO | None = None) -> None:
        self._name = name
        self._total = total
        self._stream = stream or sys.stderr
        self._is_drawn = False

    def _say(self, text: str) -> None:
        """Write a line; on a terminal, in the place of a bar."""
        self._write(f"{_CLEAR if self._is_drawn else ''}{self._name}: {text}\n")
        self._is_drawn = False

    def _draw(self, n_done: int, text: str) -> None:
        """Show how far it is: a bar where it can be redrawn, elsewhere a line."""
        if not self._stream.isatty():
            self._say(text)
            return
        filled = round(_WIDTH * n_done / self._total)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        self._write(f"{_CLEAR}{bar} {self._name}: {text}")
        self._is_drawn = True

    def close(self) -> None:
        """Leave a bar standing."""
        if self._is_drawn:
            self._write("\n")
            self._is_drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class SweepBar(_Lines):
    """Shows each sweep as it ends."""

    def __call__(self, record: SweepRecord) -> None:
        """Show one more sweep."""
        self._draw(record.sweep, _sweep(record, self._total))


class RoundLines(_Lines):
    """Shows the sweeps of a round of growth as they end, then the round."""

    def sweep(self, grown: Grown) -> None:
        """Show one more sweep over the whole tree."""
        assert grown.sweeps is not None  # it is called after a sweep
        record = grown.sweeps.best.history[-1]
        self._draw(record.sweep, f"round {len(grown.history)}, {_sweep(record, self._total)}")

    def round(self, grown: Grown) -> None:
        """Show the round that has just ended."""
        record = grown.history[-1]
        text = f"round {record.round}  "
        if record.round:
            text += f"{record.accepted} of {record.tried} leaves expanded  "
        text += (
            f"{record.n_leaves} leaves of {record.mean_leaf_classes:.1f} classes, "
            f"depth {record.depth}  {_errors(record.train_error, record.validation_error)}"
        )
        self._say(f"{text}  {record.seconds:.1f} s")


class TreeLines(_Lines):
    """Shows each tree of a forest as it is done."""

    def __call__(self, n_done: int, error: float | None) -> None:
        """Show one more tree, with the error of the forest so far."""
        held_out = "" if error is None else f"  held-out error {100 * error:.2f} %"
        self._say(f"tree {n_done}/{self._total}{held_out}")


class ProgressLines(_Lines):
    """Shows progressive validation loss as a line whenever there is a record."""

    def __call__(self, record: ProgressRecord) -> None:
        """Show a record."""
        self._say(
            f"{record.examples} examples  progressive loss {100 * record.loss:.2f} %  "
            f"since last {100 * record.loss_since_last:.2f} %"
        )


class EpochLines(_Lines):
    """Shows each epoch of a label tree as it ends."""

    def __call__(self, record: EpochRecord) -> None:
        """Show one more epoch."""
        self._say(
            f"epoch {record.epoch}/{self._total}  loss {record.loss:.4f}  "
            f"depth {record.depth}, mean {record.mean_depth:.2f}"
        )


class PassLines(_Lines):
    """Shows each pass over the rows as it ends."""

    def __call__(self, record: PassRecord) -> None:
        """Show one more pass."""
        self._say(f"pass {record.number}/{self._total}  train loss {record.loss:.3f}")


def _sweep(record: SweepRecord, max_sweeps: int) -> str:
    return (
        f"sweep {record.sweep}/{max_sweeps}  "
        f"{_errors(record.train_error, record.validation_error)}  "
        f"objective {record.objective:.6g}  {record.seconds:.1f} s"
    )


def _errors(train: float, validation: float | None) -> str:
    held = "" if validation is None else f"  validation error {100 * validation:.2f} %"
    return f"train error {100 * train:.2f} %{held}"

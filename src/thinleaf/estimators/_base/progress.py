"""Progress of a fit: a bar that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TextIO

from thinleaf.baselines.adagrad import PassRecord
from thinleaf.labeltree.training import EpochRecord
from thinleaf.online.progressive import ProgressRecord
from thinleaf.softmaxtree.growth.expand import Grown
from thinleaf.softmaxtree.tao import SweepRecord

_WIDTH = 24


class SweepBar:
    """Shows each sweep as it ends."""

    def __init__(self, name: str, max_sweeps: int, stream: TextIO | None = None) -> None:
        self._name = name
        self._max_sweeps = max_sweeps
        self._stream = stream or sys.stderr

    def __call__(self, record: SweepRecord) -> None:
        """Show one more sweep."""
        done = record.sweep / self._max_sweeps
        text = (
            f"{self._name}: sweep {record.sweep}/{self._max_sweeps}  "
            f"train error {100 * record.train_error:.2f} %  "
        )
        if record.validation_error is not None:
            text += f"validation error {100 * record.validation_error:.2f} %  "
        text += f"objective {record.objective:.6g}  {record.seconds:.1f} s"
        if self._stream.isatty():
            filled = round(_WIDTH * done)
            bar = "█" * filled + "░" * (_WIDTH - filled)
            self._stream.write(f"\r\x1b[2K{bar} {text}")
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the last line standing."""
        if self._stream.isatty():
            self._stream.write("\n")


class RoundLines:
    """Shows each round of growth as a line, and on a terminal the sweeps of the current one."""

    def __init__(self, name: str, max_sweeps: int, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._name = name
        self._sweeps = SweepBar(name, max_sweeps, self._stream)

    def sweep(self, record: SweepRecord) -> None:
        """Show one more sweep, where it can be overwritten."""
        if self._stream.isatty():
            self._sweeps(record)

    def round(self, grown: Grown) -> None:
        """Show the round that has just ended."""
        record = grown.history[-1]
        text = f"{self._name}: round {record.round}  "
        if record.round:
            text += f"{record.accepted} of {record.tried} leaves expanded  "
        text += (
            f"{record.n_leaves} leaves of {record.mean_leaf_classes:.1f} classes, "
            f"depth {record.depth}  train error {100 * record.train_error:.2f} %  "
        )
        if record.validation_error is not None:
            text += f"validation error {100 * record.validation_error:.2f} %  "
        clear = "\r\x1b[2K" if self._stream.isatty() else ""
        self._stream.write(f"{clear}{text}{record.seconds:.1f} s\n")
        self._stream.flush()


class TreeLines:
    """Shows each tree of a forest as it is done."""

    def __init__(self, name: str, n_trees: int, stream: TextIO | None = None) -> None:
        self._name = name
        self._n_trees = n_trees
        self._stream = stream or sys.stderr

    def __call__(self, n_done: int, error: float | None) -> None:
        """Show one more tree, with the error of the forest so far."""
        text = f"{self._name}: tree {n_done}/{self._n_trees}"
        if error is not None:
            text += f"  held-out error {100 * error:.2f} %"
        self._stream.write(text + "\n")
        self._stream.flush()


class ProgressLines:
    """Shows progressive validation loss as a line whenever there is a record."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = stream or sys.stderr

    def __call__(self, record: ProgressRecord) -> None:
        """Show a record."""
        self._stream.write(
            f"{self._name}: {record.examples} examples  progressive loss "
            f"{100 * record.loss:.2f} %  since last {100 * record.loss_since_last:.2f} %\n"
        )
        self._stream.flush()


class EpochLines:
    """Shows each epoch as it ends."""

    def __init__(self, name: str, epochs: int, stream: TextIO | None = None) -> None:
        self._name = name
        self._epochs = epochs
        self._stream = stream or sys.stderr

    def __call__(self, record: EpochRecord) -> None:
        """Show one more epoch."""
        self._stream.write(
            f"{self._name}: epoch {record.epoch}/{self._epochs}  loss {record.loss:.4f}  "
            f"depth {record.depth}, mean {record.mean_depth:.2f}\n"
        )
        self._stream.flush()


class PassLines:
    """Shows each pass over the rows as it ends."""

    def __init__(self, name: str, n_passes: int, stream: TextIO | None = None) -> None:
        self._name = name
        self._n_passes = n_passes
        self._stream = stream or sys.stderr

    def __call__(self, record: PassRecord) -> None:
        """Show one more pass."""
        self._stream.write(
            f"{self._name}: pass {record.number}/{self._n_passes}  train loss {record.loss:.3f}\n"
        )
        self._stream.flush()

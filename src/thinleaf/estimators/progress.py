"""Progress of a fit: a bar that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TextIO

from thinleaf.tao import SweepRecord

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

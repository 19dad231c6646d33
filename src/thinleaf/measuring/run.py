"""Runs entries one after the other, each in a process of its own, under a time limit."""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from thinleaf.measuring.entries import Entry
from thinleaf.measuring.split import Split

Progress = Callable[[Entry, str], None]

_COMPILE_SECONDS = 300.0
"""What loading and compiling may take beside the limit."""

_BEAT_SECONDS = 30.0
"""How often to say that an entry is still at it."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """How an entry went.

    Attributes
    ----------
    name : str
    figures : dict
        Those of :class:`~thinleaf.measuring.measure.Figures` and ``peak_bytes``, the most memory
        of the process, with its libraries and the data; empty if it failed.
    failed : str or None
        Why there are no figures.
    """

    name: str
    figures: dict[str, Any]
    failed: str | None = None


def compare(
    split: Split,
    entries: Sequence[Entry],
    *,
    limit: float | None = None,
    progress: Progress = lambda entry, stage: None,
) -> Iterator[Result]:
    """Yield the result of each entry as it is there.

    Parameters
    ----------
    split : Split
    entries : sequence of Entry
    limit : float, optional
        Seconds for training and measuring one entry; then it is stopped, and has failed. Before
        that it may load and compile for five minutes longer than this: only the first run on a
        machine compiles.
    progress : callable
        Is called with the entry and what it does: "loading", "compiling", "training", "measuring";
        and while that takes long, every half minute with the seconds behind it: "training, 30 s".
    """
    with tempfile.TemporaryDirectory(prefix="thinleaf-") as name:
        split.save(Path(name))
        for entry in entries:
            yield _run(Path(name), entry, limit, progress)


def _run(folder: Path, entry: Entry, limit: float | None, progress: Progress) -> Result:
    with (
        (folder / "messages").open("w+", encoding="utf-8", errors="replace") as messages,
        subprocess.Popen(
            [sys.executable, "-m", "thinleaf.measuring.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            encoding="utf-8",
            env=os.environ | dict.fromkeys(_THREADS, "1"),
            process_group=0,  # not a session: Linux may schedule sessions apart from each other
        ) as process,
    ):
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # it has died already
                process.stdin.write(json.dumps(asdict(entry)) + "\n")
                process.stdin.flush()
            result = _follow(entry, process.stdout, limit, progress)
        finally:
            _end(process)
        return result if result.figures or result.failed else _crashed(entry, process, messages)


def _follow(entry: Entry, events: IO[str], limit: float | None, progress: Progress) -> Result:
    """Return what a process says in the end; neither figures nor failure if it just ends."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in events:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    result = Result(entry.name, {})
    stage, since = "loading", time.monotonic()
    allowed = math.inf if limit is None else limit + _COMPILE_SECONDS
    deadline = since + allowed
    while True:
        try:
            line = lines.get(timeout=max(0.0, min(_BEAT_SECONDS, deadline - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= deadline:
                return replace(result, failed=f"stopped after {allowed:g} s")
            progress(entry, f"{stage}, {time.monotonic() - since:.0f} s")
            continue
        if line is None:
            return result
        event = json.loads(line)
        if "stage" not in event:
            return Result(entry.name, event.get("figures", {}), event.get("failed"))
        stage, since = event["stage"], time.monotonic()
        progress(entry, stage)
        if stage == "training" and limit is not None:
            allowed, deadline = limit, since + limit


def _end(process: subprocess.Popen[str]) -> None:
    """End a process with all that it has started, if it has not ended."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # what it has not read
            process.stdin.close()


def _crashed(entry: Entry, process: subprocess.Popen[str], messages: IO[str]) -> Result:
    """Return why a process ended without a word."""
    messages.seek(0)
    said = [line.strip() for line in messages if line.strip()]
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        why = f"the process was ended by {name}"
        why += ": perhaps there was not enough memory" if name == "SIGKILL" else ""
    else:
        why = f"the process ended with code {process.returncode}"
    return Result(entry.name, {}, f"{why}; {said[-1]}" if said else why)

"""The process that measures one entry: ``python -m thinleaf.measuring.worker FOLDER < entry``.

It reads the split from the folder and the entry as a line of JSON from standard input, and writes
what it does to standard output, one JSON object a line: ``{"stage": ...}``, at the end
``{"figures": ...}`` or ``{"failed": ...}``. What libraries print goes to standard error. When
standard input ends, so does the process: whoever started it is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from thinleaf.measuring.entries import Entry

Say = Callable[..., None]


def run(folder: Path, entry: Entry, say: Say) -> None:
    """Measure one entry and say how it went."""
    say(stage="loading")
    try:
        from thinleaf.measuring.measure import measure, peak_bytes
        from thinleaf.measuring.split import Split

        split = Split.load(folder)
        system = entry.system()
        obstacle = system.obstacle(split)
        if obstacle is not None:
            say(failed=obstacle)
            return
        say(stage="compiling")
        with suppress(Exception):  # if it fails on all rows too, that is what the row says
            system.rehearse(split)
        figures = asdict(measure(system, split, lambda name: say(stage=name)))
    except MemoryError:
        say(failed="not enough memory")
    except Exception as error:  # whatever a model or a library raises is what its row says
        say(failed=" ".join(f"{type(error).__name__}: {error}".split()))
    else:
        say(figures=figures | {"peak_bytes": peak_bytes()})


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Measure the entry of standard input."""
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(**event: Any) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    warnings.simplefilter("ignore")
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    peer = given.pop("peer")
    run(Path(sys.argv[1]), Entry(**given, peer=None if peer is None else tuple(peer)), say)


if __name__ == "__main__":
    main()

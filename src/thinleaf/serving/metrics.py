"""What a server counts, in the text format of Prometheus.

Counted on the event loop alone, so nothing is locked. Names of paths are those that exist: a client
cannot make more series by asking for what does not.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from thinleaf._version import __version__
from thinleaf.serving.slot import Slot

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts requests, rows and seconds."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self.in_flight = 0
        self.n_rows = self.n_rejected = 0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a response."""
        self._requests[path, status] += 1
        if path == "/predict":
            self._buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def text(self, slot: Slot) -> str:
        """Return all figures."""
        return "\n".join(self._lines(slot)) + "\n"

    def _lines(self, slot: Slot) -> Iterator[str]:
        yield from _family("thinleaf_requests_total", "counter", "Responses by path and status.")
        for (path, status), n in sorted(self._requests.items()):
            yield f'thinleaf_requests_total{{path="{path}",status="{status}"}} {n}'
        name = "thinleaf_predict_seconds"
        yield from _family(name, "histogram", "Seconds from a request to its response.")
        total = 0
        for edge, n in zip((*map(str, BUCKETS), "+Inf"), self._buckets, strict=True):
            total += n
            yield f'{name}_bucket{{le="{edge}"}} {total}'
        yield f"{name}_sum {self._seconds:.9g}"
        yield f"{name}_count {total}"
        shape, loaded = slot.current.answerer.shape, slot.current
        yield from _family("thinleaf_model_info", "gauge", "The model that answers.")
        yield (
            f'thinleaf_model_info{{version="{loaded.version}",thinleaf="{__version__}",'
            f'input="{shape.kind}"}} 1'
        )
        reloads = "thinleaf_reloads_total"
        yield from _family(reloads, "counter", "Model files that were taken up, or not.")
        yield f'{reloads}{{result="ok"}} {slot.n_reloads}'
        yield f'{reloads}{{result="failed"}} {slot.n_failures}'
        single = [
            ("thinleaf_rows_total", "counter", "Texts or rows answered.", self.n_rows),
            ("thinleaf_rejected_rows_total", "counter", "Rows that got no label.", self.n_rejected),
            ("thinleaf_in_flight", "gauge", "Requests being answered.", self.in_flight),
            ("thinleaf_model_classes", "gauge", "Labels of the model.", shape.n_classes),
            ("thinleaf_model_loaded_timestamp_seconds", "gauge", "When the model was put in place.",
             f"{loaded.loaded_at:.3f}"),
            ("thinleaf_model_load_seconds", "gauge", "How long loading took.",
             f"{loaded.seconds:.6f}"),
            ("thinleaf_reload_failed", "gauge", "1 if the file that is there is not in use.",
             int(slot.failure is not None)),
            ("process_start_time_seconds", "gauge", "When the server started.",
             f"{self._started:.3f}"),
        ]  # fmt: skip
        memory = resident_bytes()
        if memory is not None:
            single.append(("process_resident_memory_bytes", "gauge", "Memory in use.", memory))
        for name, kind, about, value in single:
            yield from _family(name, kind, about)
            yield f"{name} {value}"


def _family(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def resident_bytes() -> int | None:
    """Return the memory that this process has, where the system says so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")

"""The clock, where those look for it who measure: :mod:`thinleaf.model.latency`."""

from thinleaf.model.latency import (
    MOST_SECONDS,
    N_BATCHES,
    N_PASSES,
    N_SINGLE,
    Latency,
    Stopwatch,
    batch_latency,
    best_of,
    model_latencies,
    prepared_rows,
    repeated,
    seconds_of,
    single_latency,
)

__all__ = [
    "MOST_SECONDS",
    "N_BATCHES",
    "N_PASSES",
    "N_SINGLE",
    "Latency",
    "Stopwatch",
    "batch_latency",
    "best_of",
    "model_latencies",
    "prepared_rows",
    "repeated",
    "seconds_of",
    "single_latency",
]

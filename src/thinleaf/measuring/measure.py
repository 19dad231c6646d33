"""What is measured of a system: the columns of the table."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import AccumArray
from thinleaf.measuring.latency import N_SINGLE, Stopwatch, batch_latency, single_latency
from thinleaf.measuring.metrics import perplexity, top_k_error
from thinleaf.measuring.split import Split
from thinleaf.measuring.systems import System

TOP_K = 5


@dataclass(frozen=True)
class Figures:
    """Figures of a system on the test part; None where it has no such figure.

    Attributes
    ----------
    train_seconds : float
        Without compilation and without making rows of texts.
    error, top_k_error : float
        Shares of all test rows; k is 5, or the number of classes if that is smaller.
    perplexity : float
        Over the test rows whose class the training part has; with what classes get that a row's
        leaf does not hold. Infinite if one has no probability at all.
    coverage, covered_perplexity : float
        Share of these rows whose leaf holds their class, and the perplexity over them from the
        leaves alone: the papers' figures.
    depth, leaves : int
    mean_leaf_classes : float
    flops : float
        Mean multiplications of a prediction.
    single_us : float
        Microseconds of a call for one row, its input prepared: how they are measured is in
        :mod:`thinleaf.measuring.latency`.
    batch_us : float
        Microseconds a row when all test rows are predicted in one call.
    bytes : int
        Of the arrays of the model that is deployed, or of its file.
    """

    train_seconds: float
    error: float
    top_k_error: float | None = None
    perplexity: float | None = None
    coverage: float | None = None
    covered_perplexity: float | None = None
    depth: int | None = None
    leaves: int | None = None
    mean_leaf_classes: float | None = None
    flops: float | None = None
    single_us: float | None = None
    batch_us: float | None = None
    bytes: int | None = None


FIGURES = tuple(field.name for field in fields(Figures))


def measure(
    system: System, split: Split, stage: Callable[[str], None] = lambda name: None
) -> Figures:
    """Fit a system and measure it.

    Parameters
    ----------
    system : System
    split : Split
    stage : callable
        Is called with what is done next: "training", then "measuring".
    """
    stage("training")
    with Stopwatch() as watch:
        system.fit(split)
    stage("measuring")
    error = float(np.mean(system.predict(split) != split.y_test))
    top = system.top_classes(split, min(TOP_K, split.n_classes))
    times: dict[str, Any] = system.measured() or {
        "train_seconds": watch.seconds,
        **latencies(system, split),
    }
    return Figures(
        **times,
        error=error,
        top_k_error=None if top is None else top_k_error(split.y_test, _known_only(top)),
        **_probabilities(system.label_proba(split)),
        **system.shape(split),
        bytes=system.nbytes(),
    )


def _known_only(top: Any) -> Any:
    """Return classes, -1 for none as one that no row has."""
    return np.where(np.asarray(top) < 0, -2, top)


def _probabilities(p: tuple[AccumArray, AccumArray] | None) -> dict[str, Any]:
    if p is None:
        return {}
    smooth, held = p
    if smooth.size == 0:
        return {}
    covered = perplexity(held)
    whole = perplexity(smooth)
    return {
        "perplexity": whole.value if whole.coverage == 1.0 else math.inf,
        "coverage": covered.coverage,
        "covered_perplexity": covered.value,
    }


def latencies(system: System, split: Split) -> dict[str, float]:
    """Return ``single_us`` and ``batch_us`` of a fitted system."""
    samples = system.samples(split, min(N_SINGLE, split.y_test.size))
    return {
        "single_us": single_latency(system.one(), samples).median,
        "batch_us": batch_latency(system.batch(split), split.y_test.size).median,
    }


def peak_bytes() -> int | None:
    """Return the most memory that this process, or one that it has started, has had.

    Libraries and data are included. None where the system does not say.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    below = unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would also count the process that has started this one
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"))
        if found is not None:
            return max(1024 * int(found[1]), below)
    return max(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, below)

"""``thinleaf bench model``: how fast a model is here, and what beams and small weights do."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._data import open_model, row_batches
from thinleaf.cli._output import Output, at_temperature, percent, size, table

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree

BEAMS = (1, 2, 4, 8)
_N_SINGLE = 1000
_N_LOADS = 5
_MAX_DENSE = 1 << 27


def bench_model(
    model: options.ModelFile,
    data: options.DataFile,
    limit: Annotated[int, typer.Option(min=1, help="Rows at the most.")] = 10_000,
    repeats: Annotated[int, typer.Option(min=1, help="Times that the batch is predicted.")] = 20,
    temperature: options.Temperature = None,
    jobs: options.Jobs = 1,
    format: options.DataFormat = None,
    on_error: options.OnError = "raise",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure latency, size and load time; error against latency of beams; smaller weights."""
    import numpy as np

    from thinleaf.text.recipe import KnownLabels

    output = Output(json, quiet)
    opened, recipe = open_model(model)
    if opened.takes_texts or not hasattr(opened, "packed"):
        raise ValueError("bench model is about beams and weights of softmax trees, not label trees")
    frozen = cast("FrozenTree", opened)
    frozen = frozen.with_beam(frozen.beam, temperature=temperature)
    X, tokens, text_us = _read(
        row_batches(recipe, data, output, format=format, labels="required", on_error=on_error),
        limit,
    )
    ids = KnownLabels(frozen.labels).ids(tokens)
    measure = Measurement(rows_for(frozen, [X]), ids, repeats, jobs)
    with output.progress("measuring", "models", len(BEAMS) + 2) as advance:
        record: dict[str, Any] = {
            "model": model,
            "rows": int(ids.size),
            "classes": frozen.n_classes,
            "file_bytes": Path(model).stat().st_size,
            "bytes": frozen.nbytes,
            "load_ms": 1e3
            * float(np.median([_seconds(partial(open_model, model)) for _ in range(_N_LOADS)])),
            "reading_us_per_row": text_us,
        }
        advance(1)
        record["temperature"] = frozen.temperature
        record["beams"] = []
        for beam in BEAMS:
            record["beams"].append({"beam": beam} | measure(frozen.with_beam(beam)))
            advance(1)
        record["weights"] = _weights(frozen, measure)
        advance(1)
    output.result(record, _text(record))


class Measurement:
    """Errors and latencies of models on the same rows.

    Parameters
    ----------
    X : {ndarray, csr_matrix} of shape (n_rows, n_features)
    ids : ndarray of shape (n_rows,)
        The rows' classes; -1 is one that the models do not know.
    repeats : int
    jobs : int
    """

    def __init__(self, X: Any, ids: Any, repeats: int, jobs: int) -> None:
        self._X, self._ids, self._repeats, self._jobs = X, ids, repeats, jobs
        self._single = [single_row(X, i) for i in range(min(_N_SINGLE, ids.size))]

    def error(self, model: FrozenTree) -> float:
        """Return the share of rows whose label is not found."""
        import numpy as np

        found = model.predict(self._X) == model.labels[self._ids]
        return float(1.0 - np.mean(found & (self._ids >= 0)))

    def __call__(self, model: FrozenTree) -> dict[str, Any]:
        """Return error and latencies: microseconds a call of one row, and a row of the batch."""
        import numpy as np

        for row in self._single[:50]:
            model.predict_one(*row)
        single = 1e6 * np.array(
            [_seconds(partial(model.predict_one, *row)) for row in self._single]
        )
        call = partial(model.predict, self._X, n_jobs=self._jobs)
        batch = 1e6 * np.array([_seconds(call) for _ in range(self._repeats)]) / self._ids.size
        return {
            "error": self.error(model),
            "single_us": _spread(single),
            "batch_us": _spread(batch),
        }


def rows_for(model: FrozenTree, parts: list[Any]) -> Any:
    """Return sparse rows as whoever predicts with a model has them: dense, if it is laid out so."""
    import scipy.sparse as sp

    X = sp.csr_matrix(sp.vstack(parts, format="csr"))
    if not model.packed.sparse and X.shape[0] * X.shape[1] <= _MAX_DENSE:
        return X.toarray()
    X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
    return X


def single_row(X: Any, i: int) -> tuple[Any, ...]:
    """Return the arguments of ``predict_one`` for a row: itself, or its indices and values."""
    if not hasattr(X, "indptr"):
        return (X[i],)
    own = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[own], X.data[own]


def _read(batches: Any, limit: int) -> tuple[Any, list[str | None], float]:
    """Return at most so many rows, their labels, and microseconds a row that reading took."""
    import scipy.sparse as sp

    started = time.perf_counter()
    rows, labels = [], []
    for examples, X in batches:
        rows.append(X)
        labels += examples.labels
        if len(labels) >= limit:
            break
    X = sp.vstack(rows, format="csr")[:limit]
    us = 1e6 * (time.perf_counter() - started) / len(labels)
    return X, labels[:limit], us


def _weights(model: FrozenTree, measure: Measurement) -> list[dict[str, Any]]:
    kinds = ("float32", "float16", "int8") if model.packed.weights == "float32" else ()
    models = [model.quantized(kind) for kind in kinds] or [model]  # type: ignore[arg-type]
    return [
        {"weights": other.packed.weights, "error": measure.error(other), "bytes": other.nbytes}
        for other in models
    ]


def _spread(times: Any) -> dict[str, float]:
    import numpy as np

    return {
        "median": float(np.median(times)),
        "best": float(times.min()),
        "p99": float(np.percentile(times, 99)),
    }


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _text(record: dict[str, Any]) -> str:
    def times(spread: dict[str, float]) -> list[str]:
        return [f"{spread[name]:.2f}" for name in ("median", "best", "p99")]

    beams = [
        [str(e["beam"]), percent(e["error"]), *times(e["single_us"]), *times(e["batch_us"])]
        for e in record["beams"]
    ]
    weights = [[e["weights"], percent(e["error"]), size(e["bytes"])] for e in record["weights"]]
    beam = f"beam{at_temperature(record['temperature'])}"
    head = (beam, "error", "one row µs", "best", "p99", "batch µs a row", "best", "p99")
    return "\n".join(
        [
            f"{record['rows']:,} rows, {record['classes']:,} classes",
            f"file {size(record['file_bytes'])}, in memory {size(record['bytes'])}, opened in "
            f"{record['load_ms']:.1f} ms",
            f"reading lines into rows {record['reading_us_per_row']:.1f} µs a row",
            "",
            table(head, beams),
            "",
            table(("weights", "error", "size"), weights),
        ]
    )

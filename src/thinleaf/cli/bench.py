"""``thinleaf bench model``: how fast a model is here, and what beams and small weights do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs, check_jobs
from thinleaf.cli._data import open_model, row_batches
from thinleaf.cli._output import Output, at_temperature, percent, size, table

if TYPE_CHECKING:
    from thinleaf.measuring.deployed import Measurement
    from thinleaf.model.frozen import FrozenTree

BEAMS = (1, 2, 4, 8)
_N_LOADS = 5


def bench_model(
    model: options.ModelFile,
    data: options.DataFile,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Rows at the most.")] = 10_000,
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="Times that the batch is predicted.")
    ] = 20,
    temperature: options.Temperature = None,
    encoder: options.Encoder = None,
    jobs: options.Jobs = 1,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure latency, size and load time; error against latency of beams; smaller weights."""
    check_jobs(jobs)
    check_inputs(model, data)
    import numpy as np

    from thinleaf.measuring.deployed import Measurement, rows_for
    from thinleaf.measuring.latency import repeated
    from thinleaf.text.recipe import KnownLabels

    output = Output(json, quiet)
    opened, recipe = open_model(model, encoder=encoder, jobs=jobs)
    if not hasattr(opened, "packed"):
        raise ValueError("bench model is about beams and weights of softmax trees, not label trees")
    frozen = cast("FrozenTree", opened)
    frozen = frozen.with_beam(frozen.beam, temperature=temperature)
    X, tokens, text_us = _read(
        row_batches(
            recipe,
            data,
            output,
            format=format,
            labels="required",
            on_error=on_error,
            text_column=text_column or None,
            label_column=label_column,
            header=header,
        ),
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
            "load_ms": 1e3 * float(np.median(repeated(_N_LOADS, partial(open_model, model)))),
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


def _read(batches: Any, limit: int) -> tuple[Any, list[str | None], float]:
    """Return at most so many rows, their labels, and microseconds a row that reading took."""
    import scipy.sparse as sp

    from thinleaf.measuring.latency import Stopwatch

    rows, labels = [], []
    with Stopwatch() as watch:
        for examples, X in batches:
            rows.append(X)
            labels += examples.labels
            if len(labels) >= limit:
                break
    X = sp.vstack(rows, format="csr")[:limit]
    return X, labels[:limit], 1e6 * watch.seconds / len(labels)


def _weights(model: FrozenTree, measure: Measurement) -> list[dict[str, Any]]:
    kinds = ("float32", "float16", "int8") if model.packed.weights == "float32" else ()
    models = [model.quantized(kind) for kind in kinds] or [model]  # type: ignore[arg-type]
    return [
        {"weights": other.packed.weights, "error": measure.error(other), "bytes": other.nbytes}
        for other in models
    ]


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

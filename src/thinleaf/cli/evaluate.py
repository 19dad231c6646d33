"""``thinleaf evaluate``: errors and probabilities of a model on labelled data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs, check_jobs
from thinleaf.cli._data import open_model, row_batches
from thinleaf.cli._output import Output, at_temperature, percent, table

if TYPE_CHECKING:
    from thinleaf._dtypes import IndexArray
    from thinleaf.model.frozen import FrozenModel


def evaluate(
    model: options.ModelFile,
    data: options.DataFile,
    top_k: Annotated[int, typer.Option(metavar="K", min=1, help="Of the top-k error.")] = 5,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    jobs: options.Jobs = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure errors, perplexity and speed on labelled data."""
    check_jobs(jobs)
    check_inputs(model, data)
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature)
    from thinleaf.text.recipe import KnownLabels

    known = KnownLabels(frozen.labels)
    evaluation = Evaluation(frozen, min(top_k, frozen.n_classes), jobs)
    for examples, X in row_batches(
        recipe, data, output, format=format, labels="required", on_error=on_error,
        text_column=text_column or None, label_column=label_column, header=header,
    ):  # fmt: skip
        evaluation.add(X, known.ids(examples.labels))
    record = evaluation.record()
    output.result(record, _text(record))


class Evaluation:
    """Adds up what a model does, batch by batch.

    A row whose label the model does not know is an error; it has no probability, so it is left out
    of perplexity and coverage.

    Parameters
    ----------
    model : FrozenModel
    top_k : int
    jobs : int
    """

    def __init__(self, model: FrozenModel, top_k: int, jobs: int) -> None:
        from thinleaf.measuring.latency import Stopwatch

        self._model, self._top_k, self._jobs = model, top_k, jobs
        self._n_rows = self._n_known = self._n_wrong = self._n_missed = self._n_covered = 0
        self._loss = self._covered_loss = 0.0
        self._watch = Stopwatch()

    def add(self, X: Any, ids: IndexArray) -> None:
        """Count rows with their classes; -1 is an unknown one."""
        import numpy as np

        model, jobs, known = self._model, self._jobs, ids >= 0
        if self._n_rows == 0:
            model.predict(X[:1])  # so that loading code is not measured
        with self._watch:
            labels = model.predict(X, n_jobs=jobs)
        top, _ = model.predict_topk(X, self._top_k, n_jobs=jobs)
        truth = model.labels[ids]
        self._n_rows += ids.size
        self._n_known += int(known.sum())
        self._n_wrong += int(np.count_nonzero((labels != truth) | ~known))
        hit = (top == truth[:, None]).any(axis=1) & known
        self._n_missed += ids.size - int(hit.sum())
        if known.any():
            held = model.label_proba(X[known], truth[known], smooth=False, n_jobs=jobs)
            p = model.label_proba(X[known], truth[known], n_jobs=jobs)
            self._n_covered += int(np.count_nonzero(held))
            self._covered_loss -= float(np.log(held[held > 0.0]).sum())
            with np.errstate(divide="ignore"):
                self._loss -= float(np.log(p).sum())

    def record(self) -> dict[str, Any]:
        """Return all figures."""
        n_rows, n_known, n_covered = self._n_rows, self._n_known, self._n_covered
        return {
            "rows": n_rows,
            "unknown_labels": n_rows - n_known,
            "error": self._n_wrong / n_rows,
            "top_k": self._top_k,
            "top_k_error": self._n_missed / n_rows,
            "perplexity": _perplexity(self._loss, n_known),
            "coverage": n_covered / n_known if n_known else None,
            "covered_perplexity": _perplexity(self._covered_loss, n_covered),
            "beam": self._model.beam,
            "temperature": self._model.temperature,
            "us_per_row": 1e6 * self._watch.seconds / n_rows,
        }


def _perplexity(loss: float, n: int) -> float | None:
    if n == 0:
        return None
    return math.exp(loss / n) if loss / n < 700.0 else math.inf


def _text(record: dict[str, Any]) -> str:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.4g}"

    paths = f"beam {record['beam']}{at_temperature(record['temperature'])}"
    rows = [
        ("rows", f"{record['rows']:,}"),
        ("rows whose label the model does not know", f"{record['unknown_labels']:,}"),
        ("error", percent(record["error"])),
        (f"top-{record['top_k']} error", percent(record["top_k_error"])),
        ("perplexity", number(record["perplexity"])),
        ("coverage: rows whose leaves hold their label", percent(record["coverage"])),
        ("perplexity of these, from their leaves alone", number(record["covered_perplexity"])),
        (f"prediction, {paths}", f"{record['us_per_row']:.2f} µs a row"),
    ]
    return table(("", ""), rows).lstrip("\n")

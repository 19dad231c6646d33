"""``thinleaf predict``: labels for the lines of a file or of standard input, as they arrive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import STDIN, check_inputs, check_jobs
from thinleaf.cli._data import name_of, note_left_out, open_model, source
from thinleaf.cli._output import Output, to_json

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenModel


def predict(
    model: options.ModelFile,
    data: options.DataFile = STDIN,
    top_k: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Give this many labels a row, best first."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Give each label with its probability.")
    ] = False,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    unlabelled: Annotated[
        bool,
        typer.Option("--unlabelled", help="Lines have no label: all of a line is the input."),
    ] = False,
    format: options.DataFormat = None,
    on_error: options.OnError = "raise",
    jobs: options.Jobs = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the label of each line.

    One line of output a line of input; it is empty where that is blank or was left out. With
    --proba or --top-k, columns are separated by tabs.
    """
    check_jobs(jobs)
    check_inputs(model, data)
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature)
    predictor = Predictor(frozen, top_k, proba, jobs)
    labels: Literal["none", "optional"] = "none" if unlabelled else "optional"
    # a bar would be drawn into the answers, or between what is typed
    bar = Output(quiet=quiet or data == STDIN or sys.stdout.isatty())
    with (
        recipe.open(
            source(data), format=format, labels=labels, on_error=on_error, empty_batches=True
        ) as reader,
        bar.progress(name_of(data), "rows") as advance,
    ):
        n_answered = 0
        for examples in reader:
            found = predictor(recipe.rows(examples)) if len(examples) else iter(())
            answers = zip(examples.lines.tolist(), found, strict=True)
            if json:
                _write(to_json({"line": line} | answer) for line, answer in answers)
            else:
                _write(_aligned(n_answered, answers, reader.n_lines))
            n_answered = reader.n_lines
            advance(len(examples))
    if not json:
        _write([""] * (reader.n_lines - n_answered))
    note_left_out(reader, output)


class Predictor:
    """Gives answers as they are written in JSON.

    Parameters
    ----------
    model : FrozenModel
    top_k : int or None
    proba : bool
    jobs : int
    """

    def __init__(self, model: FrozenModel, top_k: int | None, proba: bool, jobs: int) -> None:
        if top_k is not None and top_k > model.n_classes:
            raise ValueError(f"--top-k is {top_k}, but the model has {model.n_classes} classes")
        self._model, self._top_k, self._proba, self._jobs = model, top_k, proba, jobs

    def __call__(self, X: Any) -> Iterator[dict[str, Any]]:
        """Yield an answer for each row."""
        if self._top_k is None and not self._proba:
            for label in self._model.predict(X, n_jobs=self._jobs).tolist():
                yield {"label": label}
            return
        top, p = self._model.predict_topk(X, self._top_k or 1, n_jobs=self._jobs)
        for labels, probabilities in zip(top.tolist(), p.tolist(), strict=True):
            if self._top_k is None:
                yield {"label": labels[0], "probability": probabilities[0]}
            elif self._proba:
                yield {"labels": labels, "probabilities": probabilities}
            else:
                yield {"labels": labels}


def _aligned(
    n_lines: int, answers: Iterator[tuple[int, dict[str, Any]]], n_read: int
) -> Iterator[str]:
    """Yield answers as columns, each at the line of its input, up to the line last read."""
    for line, answer in answers:
        yield from [""] * (line - n_lines - 1)
        n_lines = line
        labels = answer.get("labels", [answer.get("label")])
        p = answer.get("probabilities", [answer.get("probability")])
        if p == [None]:
            yield "\t".join(map(str, labels))
        else:
            pairs = zip(labels, p, strict=True)
            yield "\t".join(f"{label}\t{value:.6g}" for label, value in pairs)
    yield from [""] * (n_read - n_lines)


def _write(lines: Any) -> None:
    """Write lines in UTF-8, as data files are, and at once."""
    content = "".join(f"{line}\n" for line in lines).encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()

"""``thinleaf predict``: labels for the lines of a file or of standard input, as they arrive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import STDIN, check_between, check_inputs, check_jobs
from thinleaf.cli._data import name_of, note_columns, note_left_out, open_model, source
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
    reject: Annotated[
        float | None,
        typer.Option(
            metavar="PRECISION",
            help="Leave texts without a label so that this share of the others is right, by what "
            "training rows say.",
        ),
    ] = None,
    min_proba: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Leave rows without a label whose best one is less probable."
        ),
    ] = None,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    unlabelled: Annotated[
        bool,
        typer.Option("--unlabelled", help="Lines have no label: all of a line is the input."),
    ] = False,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    jobs: options.Jobs = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the label of each line, or of each record of a table.

    One line of output a line or record of input; it is empty where that is blank or was left out.
    With --proba or --top-k, columns are separated by tabs. A row that --reject or --min-proba
    leaves without a label has an empty column instead.
    """
    check_jobs(jobs)
    check_between("reject", reject, 1.0)
    check_between("min-proba", min_proba, 1.0)
    check_inputs(model, data)
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature)
    from thinleaf.datasets.examples import record_numbers

    predictor = Predictor(frozen, top_k, proba, jobs, reject, min_proba)
    labels: Literal["none", "optional"] = "none" if unlabelled else "optional"
    # a bar would be drawn into the answers, or between what is typed
    bar = Output(quiet=quiet or data == STDIN or sys.stdout.isatty())
    with (
        recipe.open(
            source(data),
            format=format,
            labels=labels,
            on_error=on_error,
            empty_batches=True,
            text_column=text_column or None,
            header=header,
        ) as reader,
        bar.progress(name_of(data), "rows") as advance,
    ):
        n_answered = 0
        note_columns(reader, output, recipe)
        for examples in reader:
            found: Iterator[dict[str, Any]] = iter(())
            if len(examples):
                found = predictor(recipe.rows(examples), getattr(examples, "texts", None))
            if json:
                answers = zip(examples.lines.tolist(), found, strict=True)
                _write(to_json({"line": line} | answer) for line, answer in answers)
            else:
                answers = zip(record_numbers(examples).tolist(), found, strict=True)
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
    reject, min_proba : float, optional
        Wanted precision, and least probability.
    """

    def __init__(
        self,
        model: FrozenModel,
        top_k: int | None,
        proba: bool,
        jobs: int,
        reject: float | None = None,
        min_proba: float | None = None,
    ) -> None:
        if top_k is not None and top_k > model.n_classes:
            raise ValueError(f"--top-k is {top_k}, but the model has {model.n_classes} classes")
        if reject is not None and getattr(model, "rejection", None) is None:
            raise ValueError(
                "--reject is for models of texts that have learned when to reject: train one with "
                "a few hundred rows or more, or give --min-proba"
            )
        self._model, self._top_k, self._proba, self._jobs = model, top_k, proba, jobs
        self._reject, self._min_proba = reject, min_proba

    def __call__(self, X: Any, texts: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield an answer for each row."""
        answers = self._answers(X)
        if self._reject is None and self._min_proba is None:
            return answers
        return map(_marked, answers, self._rejected(X, texts).tolist())

    def _rejected(self, X: Any, texts: list[str] | None) -> Any:
        import numpy as np

        rejected = np.zeros(X.shape[0], dtype=bool)
        if self._reject is not None:
            model: Any = self._model
            rejected |= model.rejects(texts, self._reject, n_jobs=self._jobs)
        if self._min_proba is not None:
            _, p = self._model.predict_topk(X, 1, n_jobs=self._jobs)
            rejected |= p[:, 0] < self._min_proba
        return rejected

    def _answers(self, X: Any) -> Iterator[dict[str, Any]]:
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


def _marked(answer: dict[str, Any], rejected: bool) -> dict[str, Any]:
    """Return an answer that says whether it is one."""
    if not rejected:
        return answer | {"rejected": False}
    if "labels" not in answer:
        return answer | {"label": None, "rejected": True}
    return {name: [] for name in answer} | {"rejected": True}


def _aligned(
    n_lines: int, answers: Iterator[tuple[int, dict[str, Any]]], n_read: int
) -> Iterator[str]:
    """Yield answers as columns, each at the line of its input, up to the line last read."""
    for line, answer in answers:
        yield from [""] * (line - n_lines - 1)
        n_lines = line
        labels = answer.get("labels", [answer.get("label")])
        p = answer.get("probabilities", [answer.get("probability")])
        labels = ["" if label is None else label for label in labels]
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

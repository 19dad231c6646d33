"""What ``thinleaf predict`` does, once its arguments are read: neither typer nor rich is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from thinleaf.cli._checks import STDIN, check_between, check_inputs, check_jobs
from thinleaf.cli._data import (
    name_of,
    note_columns,
    note_left_out,
    open_predictor,
    rows_for,
    source,
)
from thinleaf.cli._output import Output, to_json

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenModel


def predict_lines(
    model: str,
    data: str = STDIN,
    *,
    top_k: int | None = None,
    proba: bool = False,
    reject: float | None = None,
    min_proba: float | None = None,
    beam: int | None = None,
    temperature: float | None = None,
    encoder: str | None = None,
    unlabelled: bool = False,
    format: str | None = None,
    text_column: Sequence[str] | None = None,
    header: bool | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    jobs: int = 1,
    output_format: Literal["text", "csv", "json"] | None = None,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Write an answer for each line; the parameters are those of the verb."""
    check_jobs(jobs)
    check_between("reject", reject, 1.0)
    check_between("min-proba", min_proba, 1.0)
    check_inputs(model, data)
    if json and output_format not in (None, "json"):
        raise ValueError(f"--json and --output-format {output_format} exclude each other")
    output = Output(json, quiet)
    frozen, recipe = open_predictor(model, beam, temperature, encoder, jobs)
    from thinleaf.datasets.examples import record_numbers

    predictor = Predictor(frozen, top_k, proba, jobs, reject, min_proba)
    kind = "json" if json else output_format or "text"
    as_csv = CsvAnswers(top_k, proba, reject is not None or min_proba is not None)
    if kind == "csv":
        _write([as_csv.header])
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
                found = predictor(rows_for(frozen, recipe, examples), recipe.samples(examples))
            if kind != "text":
                answers = zip(examples.lines.tolist(), found, strict=True)
                write = to_json if kind == "json" else as_csv
                _write(write({"line": line} | answer) for line, answer in answers)
            else:
                answers = zip(record_numbers(examples).tolist(), found, strict=True)
                _write(_aligned(n_answered, answers, reader.n_lines))
            n_answered = reader.n_lines
            advance(len(examples))
    if kind == "text":
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

    def __call__(self, X: Any, samples: Any = None) -> Iterator[dict[str, Any]]:
        """Yield an answer for each row; rejection is told by texts or columns."""
        answers = self._answers(X)
        if self._reject is None and self._min_proba is None:
            return answers
        return map(_marked, answers, self._rejected(X, samples).tolist())

    def _rejected(self, X: Any, samples: Any) -> Any:
        import numpy as np

        rejected: Any = np.zeros((), dtype=bool)
        if self._reject is not None:
            model: Any = self._model
            rejected = rejected | model.rejects(samples, self._reject, n_jobs=self._jobs)
        if self._min_proba is not None:
            _, p = self._model.predict_topk(X, 1, n_jobs=self._jobs)
            rejected = rejected | (p[:, 0] < self._min_proba)
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
        labels = ["" if label is None else one_line(label) for label in labels]
        if p == [None]:
            yield "\t".join(labels)
        else:
            pairs = zip(labels, p, strict=True)
            yield "\t".join(f"{label}\t{value:.6g}" for label, value in pairs)
    yield from [""] * (n_read - n_lines)


def one_line(label: Any) -> str:
    r"""Return a label as a column of a line: tabs and line breaks are escaped.

    Examples
    --------
    >>> from thinleaf.cli._predicting import one_line
    >>> print(one_line("of two\nlines"))
    of two\nlines
    """
    return str(label).translate(_ESCAPES)


_ESCAPES = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


class CsvAnswers:
    """Answers as records of CSV (RFC 4180), without line ends.

    Parameters
    ----------
    top_k : int or None
    proba, marked : bool
        Whether answers have probabilities, and whether they say that they were rejected.
    """

    def __init__(self, top_k: int | None, proba: bool, marked: bool) -> None:
        ends = [""] if top_k is None else [f"_{i}" for i in range(1, top_k + 1)]
        self._n = len(ends)
        names = [f"{name}{end}" for end in ends for name in ("label", "probability")[: 1 + proba]]
        self.header = ",".join(["line", *names, *(["rejected"] if marked else [])])

    def __call__(self, answer: dict[str, Any]) -> str:
        """Return an answer as a record; what was rejected has empty cells."""
        import csv
        import io

        padding = [None] * self._n
        labels = answer.get("labels", [answer.get("label")])
        columns = [[*labels, *padding][: self._n]]
        if "probability" in answer or "probabilities" in answer:
            p = answer.get("probabilities", [answer.get("probability")])
            columns.append([*(f"{value:.6g}" for value in p), *padding][: self._n])
        cells = [answer["line"], *(cell for pair in zip(*columns, strict=True) for cell in pair)]
        if "rejected" in answer:
            cells.append("true" if answer["rejected"] else "false")
        buffer = io.StringIO(newline="")
        csv.writer(buffer).writerow(cells)
        return buffer.getvalue().removesuffix("\r\n")


def _write(lines: Any) -> None:
    """Write lines in UTF-8, as data files are, and at once."""
    content = "".join(f"{line}\n" for line in lines).encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()

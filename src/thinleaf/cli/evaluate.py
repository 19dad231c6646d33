"""``thinleaf evaluate``: errors, labels, confusions and probabilities of a model on data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_figure, check_inputs, check_jobs, check_output
from thinleaf.cli._data import name_of, open_model, row_batches
from thinleaf.cli._output import Output, at_temperature, percent, table

if TYPE_CHECKING:
    from thinleaf.measuring import Evaluation
    from thinleaf.measuring.confusions import ConfusedPair


_LONGEST = 60
"""Characters of a label or a text on a terminal."""


def evaluate(
    model: options.ModelFile,
    data: options.DataFile,
    top_k: Annotated[int, typer.Option(metavar="K", min=1, help="Of the top-k error.")] = 5,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    encoder: options.Encoder = None,
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write precision, recall and F1 of all labels."),
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a report: a page of one file.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the reliability diagram: .png, .svg or .pdf."),
    ] = None,
    show: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Worst labels and most confused pairs to show."),
    ] = 5,
    pairs: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Confused pairs in JSON and in the report."),
    ] = 50,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, max=100, help="Examples of each pair.")
    ] = 3,
    bins: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Of the reliability table.")
    ] = 15,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    jobs: options.Jobs = 1,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure errors, labels, confusions, reliability and speed on labelled data."""
    check_jobs(jobs)
    check_inputs(model, data)
    _check_outputs(model, data, csv, html, plot)
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature, encoder, jobs)
    from thinleaf.measuring.tally import Tally
    from thinleaf.text.recipe import KnownLabels

    known = KnownLabels(frozen.labels)
    tally = Tally(
        frozen, top_k=top_k, n_bins=bins, n_pairs=max(pairs, show), n_examples=examples,
        n_jobs=jobs, unit="line",
    )  # fmt: skip
    for batch, X in row_batches(
        recipe, data, output, format=format, labels="required", on_error=on_error,
        text_column=text_column or None, label_column=label_column, header=header,
    ):  # fmt: skip
        ids = known.ids(batch.labels)
        tally.add(X, ids, batch.labels, batch.lines, getattr(batch, "texts", None))
    found = tally.result()
    if csv is not None:
        found.to_csv(csv)
    if html is not None:
        found.to_html(html, title=f"{Path(model).name} on {name_of(data)}")
    if plot is not None:
        from thinleaf.explain.reliability import write_figure

        write_figure(found.plot(), Path(plot))
    output.result(found.to_dict(), _text(found, show))


def _check_outputs(
    model: str, data: str, csv: str | None, html: str | None, plot: str | None
) -> None:
    others = [("the model file", model), ("the data file", data)]
    for what, path in (("the table", csv), ("the report", html), ("the figure", plot)):
        if path is None:
            continue
        check_output(what, path, others)
        others.append((f"also {what}", path))
    if plot is not None:
        check_figure(plot)


def _text(found: Evaluation, n_shown: int) -> str:
    parts = [_head(found)]
    unknown = list(found.unknown_labels.items())
    if unknown and n_shown:
        listed = ", ".join(f"{_short(name)} ({n:,})" for name, n in unknown[:n_shown])
        more = f", and {len(unknown) - n_shown:,} more" if len(unknown) > n_shown else ""
        parts.append(f"labels that the model does not know: {listed}{more}")
    if n_shown:
        parts.append(_worst(found, n_shown))
    if n_shown and found.pairs:
        shown = found.pairs[:n_shown]
        lines = [line for pair in shown for line in _pair(pair, found.unit)]
        parts.append("\n".join([f"most confused, of {found.n_pairs:,} pairs", *lines]))
    return "\n\n".join(parts)


def _head(found: Evaluation) -> str:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.4g}"

    def scores(means: Any) -> str:
        return f"{means.precision:.4f}, {means.recall:.4f}, {means.f1:.4f}"

    paths = f"beam {found.beam}{at_temperature(found.temperature)}"
    rows = [
        ("rows", f"{found.rows:,}"),
        ("rows whose label the model does not know", f"{found.unknown_rows:,}"),
        ("error", percent(found.error)),
        (f"top-{found.top_k} error", percent(found.top_k_error)),
        ("perplexity", number(found.perplexity)),
        ("coverage: rows whose leaves hold their label", percent(found.coverage)),
        ("perplexity of these, from their leaves alone", number(found.covered_perplexity)),
        (f"prediction, {paths}", f"{found.us_per_row:.2f} µs a row"),
        ("precision, recall, F1: mean over labels", scores(found.labels.macro)),
        ("the same, weighted by rows", scores(found.labels.weighted)),
        ("expected calibration error", percent(found.reliability.ece)),
        ("Brier score of the label given", f"{found.reliability.brier:.4f}"),
    ]
    return table(("", ""), rows).lstrip("\n")


def _worst(found: Evaluation, n: int) -> str:
    scores = found.labels
    precision, recall, f1 = scores.precision, scores.recall, scores.f1
    rows = [
        (
            f"  {_short(scores.labels[i])}",
            *(f"{score[i]:.3f}" for score in (precision, recall, f1)),
            f"{scores.support[i]:,}",
        )
        for i in scores.worst(n)
    ]
    head = f"worst of {len(scores):,} labels"
    return table((head, "precision", "recall", "F1", "rows"), rows)


def _pair(pair: ConfusedPair, unit: str) -> list[str]:
    names = f"{_short(pair.label)} → {_short(pair.predicted)}"
    lines = [f"  {names}: {pair.count:,} rows, {percent(pair.share)} of the label"]
    if pair.examples:
        example = pair.examples[0]
        said = f"{unit} {example.number:,}"
        lines.append(f"    {said}" + ("" if example.text is None else f": {_short(example.text)}"))
    return lines


def _short(value: Any) -> str:
    """Return what fits on a line of a terminal, and cannot steer it."""
    text = "".join(c if c.isprintable() else "�" for c in str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

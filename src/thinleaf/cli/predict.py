"""``thinleaf predict``: labels for the lines of a file or of standard input, as they arrive."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import STDIN
from thinleaf.cli._predicting import predict_lines


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
    encoder: options.Encoder = None,
    unlabelled: Annotated[
        bool,
        typer.Option("--unlabelled", help="Lines have no label: all of a line is the input."),
    ] = False,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    jobs: options.Jobs = 1,
    output_format: Annotated[
        Literal["text", "csv", "json"] | None,
        typer.Option(
            help="Of the answers: columns between tabs, CSV with a header, or JSON lines.",
            show_default="text",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the label of each line, or of each record of a table.

    One line of output a line or record of input; it is empty where that is blank or was left out.
    With --proba or --top-k, columns are separated by tabs. A row that --reject or --min-proba
    leaves without a label has an empty column instead. Tabs and line breaks within a label are
    escaped. CSV and JSON have a record a row, with the number of its line.
    """
    predict_lines(
        model, data,
        top_k=top_k, proba=proba, reject=reject, min_proba=min_proba, beam=beam,
        temperature=temperature, encoder=encoder, unlabelled=unlabelled, format=format,
        text_column=text_column, header=header, on_error=on_error, jobs=jobs,
        output_format=output_format, json=json, quiet=quiet,
    )  # fmt: skip

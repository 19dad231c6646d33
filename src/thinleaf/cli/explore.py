"""``thinleaf explore``: a page in which a model's tree can be walked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs, check_output
from thinleaf.cli._data import name_of, open_model, row_batches
from thinleaf.cli._output import Output, size


def explore(
    model: options.ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA", help="Data whose rows are counted at the nodes and shown as examples."
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = "tree.html",
    title: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the page.", show_default="name of the model file"),
    ] = None,
    examples: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=100,
            help="Rows of each leaf to show, right and wrong ones. They stand in the page as they "
            "are: 0 for data that must not be passed on.",
        ),
    ] = 4,
    max_mb: Annotated[
        float,
        typer.Option(
            metavar="MB", min=0.5, help="Largest size of the page; above it, parts are left out."
        ),
    ] = 25.0,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="If the model does not fit, leave out leaves; else it answers approximately.",
        ),
    ] = False,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page in which the tree can be walked: one file that works offline.

    The page shows nodes with their features, classes, rows and examples, and answers what is typed
    into it as the model does.
    """
    check_inputs(model, data)
    check_output("the page", out, [("the model file", model), ("the data file", data)])
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature)
    from thinleaf.explain.explorer import NodeCounts, rows_in_words, write_page
    from thinleaf.text.recipe import KnownLabels

    name = None if frozen.feature_names else recipe.feature_name
    counts = None
    if data is not None:
        counts = NodeCounts(frozen, n_examples=examples, name=name_of(data))
        known = KnownLabels(frozen.labels)
        for batch, X in row_batches(
            recipe, data, output, format=format, on_error=on_error,
            text_column=text_column or None, label_column=label_column, header=header,
        ):  # fmt: skip
            samples = recipe.samples(batch)
            if samples is None or isinstance(samples, dict):
                samples = rows_in_words(frozen, X if samples is None else samples, name)
            counts.add(X, known.ids(batch.labels), batch.labels, samples, batch.lines)
    page = write_page(
        frozen,
        out,
        counts,
        title=title or Path(model).stem,
        max_mb=max_mb,
        exact=exact,
        feature_name=name,
    )
    lines = [f"{out}: {size(page.nbytes)}; open it in a browser", *page.notes]
    output.result(asdict(page), "\n".join(lines))

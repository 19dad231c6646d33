"""``thinleaf demo``: a tree, a forest and a flat softmax on diagnosis texts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_figure
from thinleaf.cli._output import Output


def demo(
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=100, help="Train on the first rows only.", show_default="all"
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where to draw error against latency: .svg, .png or .pdf; replaces what is there.",
            show_default="thinleaf-demo.svg if nothing else is there, none with --json",
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a tree, a forest and a flat softmax on ICD-10-CM diagnosis texts; compare them."""
    if figure is not None:
        check_figure(figure)

    from rich.console import Console

    from thinleaf.demo import draw, run

    output = Output(json, quiet)
    console = Console(stderr=json, quiet=json and quiet)
    outcome = run(console, rows, say=output.note, verbose=not quiet)
    if figure is not None or not json:
        output.note(draw(outcome.figures, None if figure is None else Path(figure)))
    if json:
        record = {
            name.replace(", ", "_").replace(" ", "_"): asdict(one)
            for name, one in outcome.figures.items()
        }
        output.result(record | {"row_us": outcome.row_us}, "")

"""``thinleaf demo``: a tree beside a flat softmax on diagnosis texts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._output import Output


def demo(
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=100, help="Train on the first rows only.", show_default="all"
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a tree and a flat softmax on ICD-10-CM diagnosis texts, and compare them."""
    from rich.console import Console

    from thinleaf.demo import run

    console = Console(stderr=json, quiet=json and quiet)
    comparison = run(console, rows, quiet=quiet)
    if json:
        record = {
            "tree": asdict(comparison.tree_figures),
            "flat_softmax": asdict(comparison.flat_figures),
        }
        Output(json, quiet).result(record, "")

"""``thinleaf export``: a model file in another form."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs, check_output
from thinleaf.cli._output import Output

Form: TypeAlias = Literal["c", "wasm", "json", "onnx"]


def export(
    model: options.ModelFile,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="PATH", help="The file to write; for wasm, a new directory."
        ),
    ],
    to: Annotated[Form, typer.Option(help="The form.")] = "c",
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Of the array in C.")
    ] = "thinleaf_model",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a model as C source, as a folder for the web, as JSON or as an ONNX graph.

    C source is the file as an array, for programs that include thinleaf.h; `python -m
    thinleaf.native` says where that is.
    """
    check_inputs(model)
    if to != "wasm":
        check_output("a model", output, [("the model file", model)])
    from thinleaf.native.exporting import export as write

    try:
        written = write(model, to, output, name=name)
    except ImportError as error:
        raise ValueError(str(error)) from error
    sizes = {str(path): path.stat().st_size for path in written}
    said = Output(json, quiet)
    said.done({"written": sizes}, f"{sum(sizes.values()):,} bytes in {output}")

"""``thinleaf explain``: why one text or row gets its label."""

from __future__ import annotations

import io
import json as json_module
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import STDIN, check_inputs
from thinleaf.cli._data import open_model
from thinleaf.cli._output import Output, to_json

if TYPE_CHECKING:
    from thinleaf.model.explanation.values import Explanation
    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.recipe import Recipe

_MOST_NAMES = 1_000_000
"""Features that are named one by one."""


def explain(
    model: options.ModelFile,
    input: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A text; or a row: numbers, index:value pairs, or a JSON list; or a JSON object "
            "of columns. - reads a line for each from standard input.",
        ),
    ] = STDIN,
    against: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Also say why it is not this label."),
    ] = None,
    top: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Labels to explain, and features of each score."),
    ] = 5,
    paths: Annotated[
        int, typer.Option(metavar="N", min=1, help="Paths to show, the weightiest.")
    ] = 3,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain a label: the path, what pushed the input along it, what decided in the leaf.

    With --against, also where the paths of the two labels part, and what would have to change.
    """
    check_inputs(model)
    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam, temperature)
    frozen = _with_names(frozen, recipe)
    other = None if against is None else _label(frozen, against)
    for number, line in enumerate(_lines(input)):
        found = frozen.explain(_sample(line, frozen, recipe), against=other, top=top)
        if not json and number:
            typer.echo("")
        _write(found, output, top, paths)


def _lines(given: str) -> Iterator[str]:
    if given != STDIN:
        yield given
        return
    for line in sys.stdin:
        if line.strip():
            yield line.rstrip("\n")


def _write(found: Explanation, output: Output, top: int, paths: int) -> None:
    if output.as_json:
        typer.echo(to_json(found.to_dict(top)))
    elif sys.stdout.isatty():
        from rich.console import Console

        from thinleaf.model.explanation.in_words import rich_text

        Console(highlight=False).print(rich_text(found, top, paths))
    else:
        typer.echo(found.to_text(top, paths))


def _label(model: FrozenModel, label: str) -> Any:
    from thinleaf.text.recipe import KnownLabels

    class_id = int(KnownLabels(model.labels).ids([label])[0])
    if class_id < 0:
        raise ValueError(f"--against: the model has no class {label!r}")
    return model.labels.tolist()[class_id]


def _with_names(model: FrozenModel, recipe: Recipe) -> FrozenModel:
    """Return a model whose features are called as in data files."""
    if model.takes_texts or model.feature_names is not None or recipe.layout is None:
        return model
    if model.n_features > _MOST_NAMES:
        return model
    names = [recipe.feature_name(feature) for feature in range(model.n_features)]
    names = [f"feature {name}" if name.isdecimal() else name for name in names]
    return model.replaced(feature_names=names)


def _sample(line: str, model: FrozenModel, recipe: Recipe) -> Any:
    """Return an input as the model takes it."""
    if model.takes_texts:
        columns = _parsed(line) if line.lstrip().startswith("{") else None
        return columns if isinstance(columns, dict) else line
    numbers = _numbers(line)
    if numbers is not None:
        if len(numbers) != model.n_features:
            raise ValueError(
                f"the row has {len(numbers)} numbers, but the model expects {model.n_features} "
                "features; a sparse row is written as index:value pairs"
            )
        return numbers
    with recipe.open(
        io.BytesIO(line.encode() + b"\n"),
        format=None if recipe.layout is not None else "libsvm",
        labels="none",
    ) as reader:
        for examples in reader:
            return recipe.rows(examples)
    raise ValueError("there is no row to explain")


def _numbers(line: str) -> list[float] | None:
    """Return numbers between brackets, commas or spaces; None if they are something else."""
    found = _parsed(line) if line.lstrip().startswith("[") else line.replace(",", " ").split()
    try:
        return [float(value) for value in found] or None
    except (TypeError, ValueError):
        return None


def _parsed(line: str) -> Any:
    try:
        return json_module.loads(line)
    except ValueError:
        return None

"""``thinleaf inspect``: a model's tree in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._data import open_model, row_batches
from thinleaf.cli._label_tree import LabelTreeModel
from thinleaf.cli._output import Output, percent


def inspect(
    model: options.ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Data whose rows are counted at the leaves."),
    ] = None,
    routers: Annotated[int, typer.Option(min=0, help="Routers to show, from the top.")] = 3,
    leaves: Annotated[int, typer.Option(min=0, help="Leaves to show, the largest.")] = 5,
    features: Annotated[int, typer.Option(min=0, help="Features to show of a node.")] = 6,
    classes: Annotated[int, typer.Option(min=0, help="Classes to show of a leaf.")] = 8,
    beam: options.Beam = None,
    format: options.DataFormat = None,
    on_error: options.OnError = "raise",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the tree: sizes, depth profile, top routers, largest leaves, and how it was trained."""
    import numpy as np

    from thinleaf.explain.text import LeafCounts, describe, render
    from thinleaf.recipe import KnownLabels

    output = Output(json, quiet)
    frozen, recipe = open_model(model, beam)
    if isinstance(frozen, LabelTreeModel):
        batches = None
        if data is not None:
            batches = row_batches(recipe, data, output, format=format, on_error=on_error)
        record, text = frozen.describe(batches, n_children=leaves, n_labels=classes)
        output.result(record, "\n".join([text, "", "training", *_training_lines(frozen.summary)]))
        return
    counts = None
    if data is not None:
        counts, known = LeafCounts(frozen), KnownLabels(frozen.labels)
        for examples, X in row_batches(recipe, data, output, format=format, on_error=on_error):
            labelled = np.array([label is not None for label in examples.labels])
            counts.add(X, known.ids(examples.labels), labelled)
    view = describe(
        frozen,
        feature_name=None if frozen.feature_names else recipe.feature_name,
        counts=counts,
        n_routers=routers,
        n_leaves=leaves,
        n_features=features,
        n_labels=classes,
    )
    output.result(
        asdict(view) | {"summary": frozen.summary, "sections": sorted(frozen.sections)},
        "\n".join([render(view), "", "training", *_training_lines(frozen.summary)]),
    )


def _training_lines(summary: Mapping[str, Any]) -> list[str]:
    plain = {k: v for k, v in summary.items() if v is not None and not isinstance(v, dict)}
    return [
        f"  {name.replace('_', ' ')}: {percent(value) if name.endswith('error') else value}"
        for name, value in plain.items()
    ]

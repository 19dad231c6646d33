"""``thinleaf inspect``: a model's tree in words, and what each tree of a forest adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs
from thinleaf.cli._data import open_model, row_batches
from thinleaf.cli._label_tree import describe as describe_label_tree
from thinleaf.cli._output import Output, percent, size, table

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree


def inspect(
    model: options.ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Data whose rows are counted at the leaves."),
    ] = None,
    routers: Annotated[
        int, typer.Option(metavar="N", min=0, help="Routers to show, from the top.")
    ] = 3,
    leaves: Annotated[
        int, typer.Option(metavar="N", min=0, help="Leaves to show, the largest.")
    ] = 5,
    features: Annotated[
        int, typer.Option(metavar="N", min=0, help="Features to show of a node.")
    ] = 6,
    classes: Annotated[
        int, typer.Option(metavar="N", min=0, help="Classes to show of a leaf.")
    ] = 8,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    encoder: options.Encoder = None,
    format: options.DataFormat = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    on_error: options.OnError = "raise",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the tree: sizes, depth profile, top routers, largest leaves, and how it was trained.

    With data, also how many rows reach each leaf, and of a forest, the error against the latency of
    its first trees.
    """
    check_inputs(model, data)
    output = Output(json, quiet)
    import numpy as np

    from thinleaf.arrays.files import file_format
    from thinleaf.explain.tree_text import LeafCounts, describe, render
    from thinleaf.model.file_parts import LABEL_TREE_FORMAT
    from thinleaf.text.recipe import KnownLabels

    reading: dict[str, Any] = {
        "format": format,
        "on_error": on_error,
        "text_column": text_column or None,
        "label_column": label_column,
        "header": header,
    }
    if file_format(Path(model)) == LABEL_TREE_FORMAT and (beam, temperature) == (None, None):
        _inspect_label_tree(model, data, output, leaves, classes, **reading)
        return
    opened, recipe = open_model(model, beam, temperature, encoder)
    frozen = cast("FrozenTree", opened)
    counts, curve = None, None
    if data is not None:
        counts, known = LeafCounts(frozen), KnownLabels(frozen.labels)
        curve = ForestCurve(frozen) if frozen.n_trees > 1 else None
        for examples, X in row_batches(recipe, data, output, **reading):
            labelled = np.array([label is not None for label in examples.labels])
            ids = known.ids(examples.labels)
            counts.add(X, ids, labelled)
            if curve is not None:
                curve.add(X[labelled], ids[labelled])
    view = describe(
        frozen,
        feature_name=None if frozen.feature_names else recipe.feature_name,
        counts=counts,
        n_routers=routers,
        n_leaves=leaves,
        n_features=features,
        n_labels=classes,
    )
    record = asdict(view) | {"summary": frozen.summary, "sections": sorted(frozen.sections)}
    lines = [render(view)]
    if curve is not None:
        record["curve"] = curve.measured()
        lines += ["", curve_table(record["curve"])]
    output.result(record, "\n".join([*lines, "", "training", *_training_lines(frozen.summary)]))


def _inspect_label_tree(
    path: str, data: str | None, output: Output, leaves: int, classes: int, **reading: Any
) -> None:
    """Show a label tree, also that of a language model."""
    from thinleaf.arrays.files import read_arrays

    batches = None
    if data is not None:
        batches = row_batches(open_model(path)[1], data, output, **reading)
    record, text = describe_label_tree(path, batches, n_children=leaves, n_labels=classes)
    metadata = read_arrays(Path(path))[1]
    summary = {"estimator": metadata["estimator"], **metadata["summary"]}
    record |= {"summary": summary, "sections": sorted(metadata["sections"])}
    output.result(record, "\n".join([text, "", "training", *_training_lines(summary)]))


class ForestCurve:
    """Error, latency and size of the first 1, 2, 4, … trees of a forest.

    Parameters
    ----------
    model : FrozenTree
    """

    def __init__(self, model: FrozenTree) -> None:
        self._model = model
        self._rows: list[Any] = []
        self._ids: list[Any] = []

    def add(self, X: Any, ids: Any) -> None:
        """Take more labelled rows."""
        self._rows.append(X)
        self._ids.append(ids)

    def measured(self) -> list[dict[str, Any]]:
        """Return a record for each number of trees; none without labelled rows."""
        import numpy as np

        from thinleaf.measuring.deployed import Measurement, rows_for

        ids = np.concatenate(self._ids) if self._ids else np.empty(0, int)
        if ids.size == 0:
            return []
        measure = Measurement(rows_for(self._model, self._rows), ids, repeats=5, jobs=1)
        return [
            {"trees": model.n_trees, "bytes": model.nbytes} | measure(model)
            for model in self._model.prefixes()
        ]


def curve_table(curve: list[dict[str, Any]]) -> str:
    """Return the curve as a table."""
    rows = [
        [
            str(e["trees"]),
            percent(e["error"]),
            f"{e['single_us']['median']:.2f}",
            f"{e['batch_us']['best']:.2f}",
            size(e["bytes"]),
        ]
        for e in curve
    ]
    return table(("trees", "error", "one row µs", "batch µs a row", "size"), rows)


def _training_lines(summary: Mapping[str, Any]) -> list[str]:
    plain = {k: v for k, v in summary.items() if v is not None and not isinstance(v, dict)}
    return [
        f"  {name.replace('_', ' ')}: {percent(value) if name.endswith('error') else value}"
        for name, value in plain.items()
    ]

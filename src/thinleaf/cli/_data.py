"""From the arguments of a command to models and rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinleaf.cli._checks import STDIN
from thinleaf.cli._output import Output

if TYPE_CHECKING:
    from thinleaf.datasets import ExampleReader
    from thinleaf.datasets.examples import Examples
    from thinleaf.datasets.lines import Source
    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.recipe import Recipe

_DENSE_SHARE = 0.1


def open_model(
    path: str,
    beam: int | None = None,
    temperature: float | None = None,
    encoder: str | None = None,
    jobs: int = 1,
) -> tuple[FrozenModel, Recipe]:
    """Return a model, with another beam or its encoder if one is given, and how it reads data."""
    from thinleaf.cli._texts import sentence_encoder
    from thinleaf.text.opening import open_model as open_file

    model, recipe = open_file(path, beam, temperature, sentence_encoder(encoder, jobs))
    if temperature is not None:
        from thinleaf.cli import _options as options

        options.check_temperature(temperature, model.beam)
    return model, recipe


def open_predictor(
    path: str,
    beam: int | None = None,
    temperature: float | None = None,
    encoder: str | None = None,
    jobs: int = 1,
) -> tuple[FrozenModel, Recipe]:
    """Do as :func:`open_model` for what only predicts: without a compiler, if that can be."""
    if beam is None and temperature is None and encoder is None:
        from thinleaf.native.loading import compiled_model
        from thinleaf.text.opening import is_mapped

        found = compiled_model(path, mapped=is_mapped(path))
        sections = {} if found is None else found.layout_sections
        if found is not None and "text" not in sections:
            from thinleaf.text.recipe import Recipe

            return found, Recipe.of(sections, found.n_features, raw=found.takes_texts)
    return open_model(path, beam, temperature, encoder, jobs)


def rows_for(model: FrozenModel, recipe: Recipe, examples: Examples) -> Any:
    """Return examples as a model takes them; rows for the extension need no matrix of SciPy."""
    from thinleaf.datasets import FeatureRows

    if isinstance(examples, FeatureRows) and hasattr(model, "layout_sections"):
        from thinleaf.arrays.rows import CSR

        return CSR(examples.indptr, examples.indices, examples.data, examples.n_features)
    return recipe.rows(examples)


def source(data: str) -> Source:
    """Return what to read: a path, or standard input as its lines arrive."""
    if data != STDIN:
        return data
    from typing import cast

    from thinleaf.datasets import LiveStream

    return cast("Source", LiveStream(sys.stdin.buffer))  # type: ignore[arg-type]


def name_of(data: str) -> str:
    """Return what to call the data."""
    return "standard input" if data == STDIN else Path(data).name


def row_batches(
    recipe: Recipe, data: str, output: Output, **options: Any
) -> Iterator[tuple[Examples, Any]]:
    """Yield the examples of a data file in batches, each also as rows; then say what was left out.

    Parameters
    ----------
    recipe : Recipe
    data : str
    output : Output
    **options
        Of :meth:`~thinleaf.text.recipe.Recipe.open`.
    """
    with (
        recipe.open(source(data), **options) as reader,
        output.progress(name_of(data), "rows") as advance,
    ):
        note_columns(reader, output, recipe)
        for examples in reader:
            yield examples, recipe.rows(examples)
            advance(len(examples))
    note_left_out(reader, output)


def note_columns(reader: ExampleReader, output: Output, recipe: Recipe | None = None) -> None:
    """Say what is read from which columns, where that was not clear from the model.

    Parameters
    ----------
    reader : ExampleReader
    output : Output
    recipe : Recipe, optional
        Of the model, if there is one already.
    """
    own = None if recipe is None else recipe.layout
    if reader.columns is None:
        if own is not None and own.text_column:
            wanted = ", ".join(map(repr, own.text_column))
            output.note(f"{reader.name} has no columns, such as {wanted}: each line is a text")
    elif own is None or (own.text_column, own.feature_columns) != (
        reader.layout.text_column,
        reader.layout.feature_columns,
    ):
        output.note(f"{reader.name}: {reader.columns.described()}")


def note_left_out(reader: ExampleReader, output: Output) -> None:
    """Say which lines and entries of a file were left out."""
    if reader.n_skipped:
        output.note(f"warning: {reader.n_skipped:,} lines were left out; {reader.skipped[0]}")
    if reader.n_dropped:
        output.note(
            f"warning: {reader.n_dropped:,} entries were left out: the model does not know their "
            "features"
        )


def read_all(data: str, output: Output, **layout: Any) -> tuple[ExampleReader, Examples]:
    """Return the labelled examples of a whole file, and the reader that knows how it is laid out.

    Parameters
    ----------
    data : str
    output : Output
    **layout
        Of :func:`~thinleaf.datasets.open_examples`.
    """
    from thinleaf.datasets import concatenate, open_examples

    with (
        open_examples(source(data), labels="required", **layout) as reader,
        output.progress(f"reading {name_of(data)}", "rows") as advance,
    ):
        note_columns(reader, output)
        batches = []
        for batch in reader:
            batches.append(batch)
            advance(len(batch))
    note_left_out(reader, output)
    return reader, concatenate(batches)


def prepare_rows(
    reader: ExampleReader, examples: Examples, text_settings: dict[str, Any], rows: str
) -> tuple[Recipe, Any]:
    """Return how lines become rows, and the rows to train on, dense or sparse.

    Texts become rows here for label trees alone.
    """
    from thinleaf.datasets import FeatureRows
    from thinleaf.text.recipe import Recipe

    if isinstance(examples, FeatureRows):
        layout = replace(reader.layout, n_features=examples.n_features)
        X = examples.to_csr()
        n_values = X.shape[0] * X.shape[1]
        dense = rows == "dense" or (rows == "auto" and X.nnz >= _DENSE_SHARE * n_values)
        return Recipe(examples.n_features, layout), X.toarray() if dense else X
    from thinleaf.text.features import TextFeatures

    features = TextFeatures(**text_settings).fit(examples.texts)
    return Recipe(features.n_features, reader.layout, features), features.transform(examples.texts)

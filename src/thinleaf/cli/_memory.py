"""Training on a file that is larger than the memory that may be used."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from thinleaf.arrays.amounts import as_bytes
from thinleaf.cli._checks import STDIN
from thinleaf.cli._data import name_of, note_columns
from thinleaf.cli._output import Output

if TYPE_CHECKING:
    from thinleaf.text.recipe import Recipe


@dataclass(frozen=True)
class FittedFile:
    """How the lines of a file become rows, what is told of the fit, and if Ctrl-C ended it."""

    recipe: Recipe
    record: dict[str, Any]
    interrupted: bool


def check_memory(memory: str, model: str, data: str, dry_run: bool) -> None:
    """Refuse what ``--memory`` is not for."""
    as_bytes(memory)
    if model not in ("ast", "st"):
        raise ValueError("--memory is for --model ast and --model st")
    if data == STDIN:
        raise ValueError("--memory needs a file: standard input cannot be read twice")
    if dry_run:
        raise ValueError("--dry-run reads the whole file: leave out --memory")


def fit_within(
    estimator: Any, data: str, output: Output, rows: str, layout: dict[str, Any]
) -> FittedFile:
    """Fit an estimator to a file within its ``max_memory``.

    Parameters
    ----------
    estimator : estimator
    data : str
    output : Output
    rows : {"auto", "dense", "sparse"}
    layout : dict
        Of :func:`~thinleaf.datasets.open_examples`.
    """
    from thinleaf.datasets import open_examples
    from thinleaf.measuring.latency import Stopwatch
    from thinleaf.text.recipe import Recipe

    with open_examples(data, labels="required", **layout) as reader:
        note_columns(reader, output)
        if reader.layout.has_texts:
            raise ValueError(
                f"--memory is for rows of features (LIBSVM, VW, tables of numbers), but "
                f"{reader.name} has texts"
            )
        found = reader.layout
    with Stopwatch() as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit_shards([data], rows=rows, **layout)
    messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    for message in messages:
        output.note(f"warning: {message}")
    width = int(estimator.n_features_in_)
    record = {
        "data": name_of(data),
        "rows": estimator._n_shard_rows,
        "fit_seconds": round(watch.seconds, 3),
    }
    if hasattr(estimator, "n_parts_"):
        record["parts"] = estimator.n_parts_
    interrupted = any(message.startswith("interrupted") for message in messages)
    return FittedFile(Recipe(width, replace(found, n_features=width)), record, interrupted)

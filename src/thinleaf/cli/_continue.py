"""``thinleaf train --continue``: a model file learns more rows, and becomes another file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thinleaf.cli._checks import check_inputs, check_jobs, check_output
from thinleaf.cli._data import name_of, note_columns, note_left_out, open_model, source
from thinleaf.cli._output import Output, percent, size
from thinleaf.cli._texts import hush, model_of, sentence_encoder

if TYPE_CHECKING:
    from thinleaf.datasets.examples import Examples, LabelKind
    from thinleaf.text.recipe import Recipe

_TAKEN = {
    "data", "output", "continue_", "jobs", "format", "text_column", "label_column", "header",
    "on_error", "encoder", "json", "quiet", "trainable",
}  # fmt: skip
"""Options of ``train`` that mean something here; the model knows the others."""


def check_given(context: typer.Context) -> None:
    """Refuse options that say how to train from the start."""
    for name in context.params:
        given = context.get_parameter_source(name)
        if name not in _TAKEN and given is not None and given.name == "COMMANDLINE":
            option = "--" + name.rstrip("_").replace("_", "-")
            raise ValueError(
                f"--continue goes on with the model as it was trained: leave out {option}"
            )


def continue_training(
    model: str,
    data: str,
    output: str | None,
    out: Output,
    *,
    jobs: int,
    encoder: str | None,
    **layout: Any,
) -> None:
    """Let a model learn a labelled file, and write what it has become.

    Parameters
    ----------
    model : str
        A model file that was written with ``--trainable``; it stays as it is.
    data : str
    output : str or None
    out : Output
    jobs : int
    encoder : str or None
        Directory of a sentence encoder, for models that need one.
    **layout
        Of :meth:`~thinleaf.text.recipe.Recipe.open`.
    """
    check_jobs(jobs)
    if output is None:
        raise typer.BadParameter("give the model file to write", param_hint="'--output' / '-o'")
    check_inputs(model, data)
    check_output("a model", output, [("the data file", data), ("the model to go on with", model)])
    from thinleaf.estimators import load_estimator

    estimator = load_estimator(model, encoder=sentence_encoder(encoder, jobs))
    if not hasattr(estimator, "update"):
        raise ValueError(
            f"{model} is a {type(model_of(estimator)).__name__}: --continue is for softmax trees "
            "and forests"
        )
    before, recipe = open_model(model, encoder=encoder, jobs=jobs)
    examples, n_skipped = _read(recipe, data, out, layout)
    for each in {id(e): e for e in (estimator, model_of(estimator))}.values():
        each.set_params(n_jobs=jobs)
    _update(estimator, recipe, examples)
    report = model_of(estimator).update_
    record = {
        "data": name_of(data),
        "rows": len(examples),
        "skipped_lines": n_skipped,
        "continued": Path(model).name,
        "fit_seconds": round(report.seconds, 3),
        "new_classes": len(report.new_classes),
        "new_features": report.n_new_features,
        "changed_leaves": report.n_leaves,
        "changed_routers": report.n_routers,
        "error_before": report.error_before,
        "error_after": report.error_after,
    }
    frozen = _frozen(estimator, before).with_summary(**record)
    frozen.save(output)
    written = Path(output).stat().st_size
    text = (
        f"{report.n_rows:,} rows, {len(report.new_classes):,} new classes, "
        f"{report.n_new_features:,} new terms, {report.seconds:.2f} s\n"
        f"leaves changed: {report.n_leaves:,}, routers: {report.n_routers:,}; error on the new "
        f"rows {percent(report.error_before)} before, {percent(report.error_after)} after\n"
        f"wrote {output}, {size(written)}"
    )
    out.done(frozen.summary | {"output": output, "file_bytes": written} | frozen.figures, text)


def _read(recipe: Recipe, data: str, out: Output, layout: dict[str, Any]) -> tuple[Examples, int]:
    """Return the labelled examples of a file, and how many lines were left out."""
    from thinleaf.datasets import concatenate

    with (
        recipe.open(source(data), labels="required", **layout) as reader,
        out.progress(f"reading {name_of(data)}", "rows") as advance,
    ):
        note_columns(reader, out, recipe)
        batches = []
        for batch in reader:
            batches.append(batch)
            advance(len(batch))
    note_left_out(reader, out)
    return concatenate(batches), reader.n_skipped


def _update(estimator: Any, recipe: Recipe, examples: Examples) -> None:
    from thinleaf.datasets import FeatureRows, label_array

    weight = examples.weights if isinstance(examples, FeatureRows) else None
    samples = recipe.samples(examples)
    X = recipe.rows(examples) if samples is None else samples
    kinds: dict[str, LabelKind] = {"i": "int", "f": "float"}
    kind = kinds.get(estimator.classes_.dtype.kind, "str")
    estimator.update(X, label_array(examples.labels, kind), sample_weight=weight)


def _frozen(estimator: Any, before: Any) -> Any:
    """Return the model that is written: as the one before was, with what trains it."""
    from thinleaf.estimators._base.storable import training_section

    hush(estimator)
    frozen = estimator.freeze(beam=1, weights=before.packed.weights)
    sections = {name: part for name, part in before.sections.items() if name == "input"}
    frozen = frozen.with_sections(**sections, training=training_section(estimator))
    return frozen.with_beam(before.beam, temperature=before.temperature)

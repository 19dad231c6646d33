"""``thinleaf train``: from a data file to a model file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._auto import auto_settings, deploy_with, summary_of
from thinleaf.cli._auto import dry_run as cost_of
from thinleaf.cli._checks import check_between, check_inputs, check_jobs, check_output
from thinleaf.cli._continue import check_given, continue_training
from thinleaf.cli._data import name_of, prepare_rows, read_all
from thinleaf.cli._estimator import given_executor, given_parameters, make_estimator
from thinleaf.cli._label_tree import check_options, take_ngrams
from thinleaf.cli._memory import check_memory, fit_within
from thinleaf.cli._output import Output, percent, size
from thinleaf.cli._parameters import ModelChoice
from thinleaf.cli._texts import (
    column_names,
    hush,
    model_of,
    sentence_encoder,
    text_classifier,
    text_options,
)

if TYPE_CHECKING:
    from thinleaf.datasets.examples import Examples
    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.recipe import Recipe

_TEXT, _FILE, _TREE, _BUDGET = "Texts", "Data file", "Tree", "Budget"


def train(
    context: typer.Context,
    data: options.DataFile,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The model file; an existing one is replaced."
        ),
    ] = None,
    model: Annotated[
        ModelChoice,
        typer.Option(
            help="Adaptive softmax tree, or one of fixed depth; a forest of them; online: Recall "
            "Tree, LOMTree, one-against-all; or label tree. auto is --auto."
        ),
    ] = "ast",
    continue_: Annotated[
        str | None,
        typer.Option(
            "--continue",
            metavar="MODEL",
            help="Go on with a model file that was written with --trainable: it learns the rows, "
            "also of new labels, and -o names the file that it becomes. MODEL stays as it is.",
        ),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Try several models, and take the best that keeps --max-us, --max-mb and "
            "--max-seconds.",
            rich_help_panel=_BUDGET,
        ),
    ] = False,
    max_us: Annotated[
        float | None,
        typer.Option(metavar="US", help="Microseconds of a prediction.", rich_help_panel=_BUDGET),
    ] = None,
    max_mb: Annotated[
        float | None,
        typer.Option(
            metavar="MB",
            help="Size of the model file, in millions of bytes.",
            rich_help_panel=_BUDGET,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what training would cost: seconds, memory, size of the model.",
            rich_help_panel=_BUDGET,
        ),
    ] = False,
    validation: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the rows to choose the best tree by."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all random choices.")] = 0,
    jobs: options.Jobs = -1,
    executor: Annotated[
        Literal["threads", "ray", "joblib"],
        typer.Option(help="ast, st, forest: where to train: here, on a cluster, or by joblib."),
    ] = "threads",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --executor ray: the cluster, as ray.init takes it, such as auto.",
            show_default="RAY_ADDRESS, else this machine",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="ast, st: most memory, such as 4G. A file of rows of features that would take "
            "more is trained on part by part.",
        ),
    ] = None,
    beam: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Paths that a row takes in prediction; auto, which is for ast, takes those that "
            "training found.",
        ),
    ] = "1",
    temperature: Annotated[
        float,
        typer.Option(
            metavar="T",
            min=0.001,
            max=1000.0,
            help="With --beam: what the scores of routers are divided by.",
        ),
    ] = 1.0,
    weights: Annotated[
        Literal["float32", "float16", "int8"], typer.Option(help="Type of the leaf weights.")
    ] = "float32",
    trainable: Annotated[
        bool,
        typer.Option("--trainable", help="Also keep what load_estimator needs to train on."),
    ] = False,
    contraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="ast, forest: leaves of k classes become leaves of this share of k.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="ast, forest: rounds of growth.", rich_help_panel=_TREE
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="ast, forest: growth ends after this time. With --auto, training does.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="ast: file to go on from after a stop.", rich_help_panel=_TREE
        ),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="forest: number of trees. With --auto, at the most.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=24, help="st, forest: depth of a tree.", rich_help_panel=_TREE
        ),
    ] = None,
    leaf_classes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="st, forest: most classes of a leaf.", rich_help_panel=_TREE
        ),
    ] = None,
    max_sweeps: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Sweeps, in a round or in all.", rich_help_panel=_TREE
        ),
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="recall, lom, ova: passes over the rows.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    max_candidates: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="recall: most classes that a node scores.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any parameter of the estimator; repeatable.",
            rich_help_panel=_TREE,
        ),
    ] = None,
    format: Annotated[
        options.AutoFormat,
        typer.Option(
            help="By default told by the file. If given, first lines are not checked for being of "
            "another, or a header.",
            rich_help_panel=_FILE,
        ),
    ] = "auto",
    text_column: options.TextColumn = None,
    numeric_column: options.NumericColumn = None,
    separate_columns: options.SeparateColumns = False,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    rows: Annotated[
        Literal["auto", "dense", "sparse"],
        typer.Option(
            help="How to train on rows of features: dense if a tenth of the values is not zero.",
            rich_help_panel=_FILE,
        ),
    ] = "auto",
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based",
            help="LIBSVM: the first feature.",
            show_default="told by the file",
            rich_help_panel=_FILE,
        ),
    ] = None,
    hashed: Annotated[
        bool | None,
        typer.Option(
            "--hashed/--not-hashed",
            help="VW: find features by a hash of their names.",
            show_default="told by the file",
            rich_help_panel=_FILE,
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of features.",
            show_default="those that occur, or 2^18 hashes",
            rich_help_panel=_FILE,
        ),
    ] = None,
    on_error: options.OnError = "raise",
    text: Annotated[
        Literal["auto", "words", "chars", "both", "hashing", "tfidf"] | None,
        typer.Option(
            help="How texts become rows: words, characters within words, or both, weighted by "
            "tf-idf; or hashes of words. auto lets the texts choose; tfidf is words.",
            show_default="auto, or words with --ngrams, --min-df or --max-features",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    ngrams: Annotated[
        str | None,
        typer.Option(
            metavar="LOW-HIGH",
            help="Words in a term.",
            show_default="1-2",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    min_df: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Texts that a term must be in; not of hashes.",
            show_default="2",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    max_features: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Most terms; not of hashes.",
            show_default="200000",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="hashing: number of features, a power of two.",
            show_default="262144",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Directory of a sentence encoder, whose vectors are the features: tokenizer.json "
            "and an ONNX file (extra embed). The model file does not hold it: give it again to "
            "predict.",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    rejection: Annotated[
        bool,
        typer.Option(
            "--rejection/--no-rejection",
            help="Find out when not to answer, for predict --reject: by a second fit to four "
            "fifths of the texts.",
            rich_help_panel=_TEXT,
        ),
    ] = True,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a tree on a labelled file, and write a model file that predict, evaluate etc. take."""
    out = Output(json, quiet)
    if continue_ is not None:
        check_given(context)
        continue_training(
            continue_, data, output, out, jobs=jobs, encoder=encoder, on_error=on_error,
            format=None if format == "auto" else format, text_column=text_column or None,
            label_column=label_column, header=header,
        )  # fmt: skip
        return
    settings = {
        "contraction": contraction,
        "max_rounds": max_rounds,
        "max_seconds": max_seconds,
        "checkpoint": checkpoint,
        "n_estimators": trees,
        "depth": depth,
        "leaf_classes": leaf_classes,
        "max_sweeps": max_sweeps,
        "n_passes": passes,
        "max_candidates": max_candidates,
        "validation_fraction": validation,
        "max_memory": memory,
        "random_state": seed,
        "verbose": int(not quiet),
    }
    width = options.beam_width(beam)
    chosen = {
        "--beam": width != 1,
        "--temperature": temperature != 1.0,
        "--weights": weights != "float32",
        "--trainable": trainable and max_mb is not None,
    }
    name, settings = auto_settings(auto, model, settings, max_us, max_mb, chosen)
    model = name  # type: ignore[assignment]
    if width == "auto" and model != "ast":
        raise ValueError("--beam auto is for --model ast: other models look for none")
    settings |= given_executor(executor, address)
    given = given_parameters(model, settings, set_ or [], general={"n_jobs": jobs})
    if "beam" in given:
        raise ValueError("beam is not set by --set: give --beam")
    text_settings = text_options(
        text,
        ngram_range=None if ngrams is None else _ngram_range(ngrams),
        min_df=min_df,
        max_features=max_features,
        n_buckets=buckets,
    )
    apart = separate_columns or bool(numeric_column)
    if encoder is not None and (text is not None or text_settings):
        raise ValueError("--encoder makes the features: leave out --text, --ngrams and the like")
    if model == "label-tree":
        check_options(width, temperature, weights, trainable, apart, encoder)
    else:
        options.check_temperature(temperature, width)
    check_between("contraction", contraction, 1.0)
    check_between("validation_fraction", validation, 1.0)
    check_between("max_seconds", max_seconds)
    if buckets is not None and buckets.bit_count() != 1:
        raise ValueError(f"n_buckets must be a power of two, got {buckets}")
    check_jobs(jobs)
    if memory is not None:
        check_memory(memory, model, data, dry_run)
    if output is None and not dry_run:
        raise typer.BadParameter("give the model file to write", param_hint="'--output' / '-o'")
    check_inputs(data)
    if output is not None:
        check_output("a model", output, [("the data file", data)])
    if checkpoint is not None:
        others = [("the data file", data), ("the model file", output)]
        check_output("a checkpoint", checkpoint, others)
    encode = sentence_encoder(encoder, jobs)
    estimator = make_estimator(model, given)
    layout: dict[str, Any] = {
        "format": format,
        "zero_based": "auto" if zero_based is None else zero_based,
        "hashed": "auto" if hashed is None else hashed,
        "n_features": n_features,
        "on_error": on_error,
        "text_column": text_column,
        "numeric_column": numeric_column,
        "apart": apart,
        "label_column": label_column,
        "header": "auto" if header is None else header,
    }
    if memory is not None:
        fitted = fit_within(estimator, data, out, rows, layout)
        assert output is not None
        done = _freeze(estimator, fitted.recipe, weights, trainable)
        _write(done, estimator, fitted.record, output, width, temperature, out)
        if fitted.interrupted:
            raise KeyboardInterrupt
        return
    reader, examples = read_all(data, out, **layout)
    if apart and reader.columns is None:
        raise ValueError(f"{reader.name} has no columns: it is a {reader.layout.format} file")
    if text is not None and not reader.layout.has_texts:
        raise ValueError(f"--text is for texts, but {reader.name} is a {reader.layout.format} file")
    if encoder is not None and not reader.layout.has_texts:
        raise ValueError(f"--encoder is for texts, but {reader.name} has rows of features")
    of_words = model == "label-tree" and text is None and reader.layout.has_texts
    if of_words:
        take_ngrams(estimator, text_settings)
        text_settings = {}
    if not reader.layout.has_texts or (model == "label-tree" and not of_words):
        recipe, X = prepare_rows(reader, examples, text_settings, rows)
    else:
        from thinleaf.text.recipe import Recipe

        recipe = Recipe(0, reader.layout, raw=of_words)
        names: dict[str, list[str]] = {}
        if apart:
            X, names = examples.columns, column_names(reader)  # type: ignore[union-attr]
        else:
            X = examples.texts  # type: ignore[union-attr]
        estimator = text_classifier(
            estimator, text_settings, encode, random_state=seed, rejection=rejection, **names
        )
    if dry_run:
        cost_of(estimator, X, examples, out)
        return
    if model == "auto":
        texts = reader.layout.has_texts
        deploy_with(estimator.model if texts else estimator, None if texts else recipe)
    from thinleaf.measuring.latency import Stopwatch

    with Stopwatch() as watch:
        interrupted = _fit(estimator, X, examples, out)
    record: dict[str, Any] = {
        "data": name_of(data),
        "rows": len(examples),
        "skipped_lines": reader.n_skipped,
        "fit_seconds": round(watch.seconds, 3),
    }
    frozen = _freeze(estimator, recipe, None if model == "auto" else weights, trainable)
    assert output is not None
    _write(frozen, estimator, record, output, None if model == "auto" else width, temperature, out)
    if interrupted:
        raise KeyboardInterrupt


def _write(
    frozen: Any,
    estimator: Any,
    record: dict[str, Any],
    output: str,
    width: int | Literal["auto"] | None,
    temperature: float,
    out: Output,
) -> None:
    """Write a model file, and say what is in it."""
    if width is not None and hasattr(frozen, "with_beam"):
        if width == "auto":
            width, temperature = model_of(estimator)._paths("auto")
        frozen = frozen.with_beam(width, temperature=temperature)
    frozen = frozen.with_summary(**(record | _errors(model_of(estimator))))
    frozen.save(output)
    figures = {"output": output, "file_bytes": Path(output).stat().st_size} | frozen.figures
    out.done(frozen.summary | figures, _text(frozen, output))


def _ngram_range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        low, high = int(first), int(last or first)
    except ValueError:
        low, high = 0, 0
    if not 1 <= low <= high:
        raise typer.BadParameter(f"{text!r} is not LOW-HIGH", param_hint="--ngrams")
    return low, high


def _fit(estimator: Any, X: Any, examples: Examples, output: Output) -> bool:
    """Fit; return whether Ctrl-C ended it early."""
    from thinleaf.datasets import FeatureRows, label_array

    weight = examples.weights if isinstance(examples, FeatureRows) else None
    if weight is not None and (weight == 1.0).all():
        weight = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, label_array(examples.labels), sample_weight=weight)
    messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    for message in messages:
        output.note(f"warning: {message}")
    return any(message.startswith("interrupted") for message in messages)


def _freeze(estimator: Any, recipe: Recipe, weights: Any, trainable: bool) -> FrozenModel:
    from thinleaf.estimators._base.storable import training_section

    hush(estimator)
    sections = recipe.sections()
    if trainable:
        sections["training"] = training_section(estimator)
    model: FrozenModel = estimator.freeze(**({} if weights is None else {"weights": weights}))
    return model.with_sections(**sections)


def _errors(estimator: Any) -> dict[str, Any]:
    """Return the errors of the round or the sweep whose tree was kept, or of the stream."""
    if hasattr(estimator, "frontier_"):
        return summary_of(estimator)
    if hasattr(estimator, "progressive_loss_"):
        return {"progressive_loss": estimator.progressive_loss_}
    if hasattr(estimator, "estimators_"):
        seen = estimator.history_[: len(estimator.estimators_)]
        name = "out_of_bag_error" if estimator.oob_score else "validation_error"
        return {name: seen[-1]["error"] if seen else None}
    if "loss" in estimator.history_[-1]:  # a label tree
        return {name: estimator.history_[-1][name] for name in ("loss", "depth", "mean_depth")}
    best = getattr(estimator, "best_round_", None)
    if best is None:
        best = max(estimator.best_sweep_, 1) - 1
    entry = estimator.history_[best]
    return {name: entry[name] for name in ("train_error", "validation_error")}


_ERRORS = {
    "train_error": "training error",
    "validation_error": "validation error",
    "out_of_bag_error": "out-of-bag error",
    "progressive_loss": "progressive loss",
}


def _text(model: FrozenModel, output: str) -> str:
    summary = model.summary
    errors = [
        f", {words} {percent(summary[name])}"
        for name, words in _ERRORS.items()
        if summary.get(name) is not None
    ]
    if "loss" in summary:
        errors = [f", training loss {summary['loss']:.4g}"]
    return (
        f"{summary['estimator']}: {summary['rows']:,} rows, {model.n_features:,} features, "
        f"{model.n_classes:,} classes, {summary['fit_seconds']:.1f} s\n"
        f"{model.shape}{''.join(errors)}\n{_chosen(summary)}"
        f"wrote {output}, {size(Path(output).stat().st_size)}"
    )


def _chosen(summary: dict[str, Any]) -> str:
    """Return what a fit to a budget has chosen."""
    if "chosen" not in summary:
        return ""
    return f"chosen: {summary['chosen']}, {summary['us']:.3g} µs a prediction\n"

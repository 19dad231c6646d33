"""``thinleaf bench compare``: models, baselines and other libraries side by side on data."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import STDIN, check_figure, check_inputs
from thinleaf.cli._data import name_of, note_left_out, prepare_rows, read_all, source
from thinleaf.cli._estimator import given_parameters, make_estimator
from thinleaf.cli._output import Output, percent
from thinleaf.cli._parameters import MODELS

if TYPE_CHECKING:
    from thinleaf.datasets.examples import Examples
    from thinleaf.measuring import Entry, Split
    from thinleaf.measuring.run import Result

ALL, NONE = "all", "none"


def compare(
    data: options.DataFile,
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Data to test on.", show_default="a part of DATA"),
    ] = None,
    held_out: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Without --test: share of DATA to test on, at random."),
    ] = 0.2,
    models: Annotated[
        str,
        typer.Option(metavar="NAMES", help=f"Ours, by commas; all, none, or {', '.join(MODELS)}."),
    ] = ALL,
    peers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Other libraries, by commas; all, none, or numpy, sklearn, lightgbm, vw, "
            "fasttext, napkinxc, pecos.",
        ),
    ] = NONE,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="MODEL.NAME=VALUE", help="A parameter of a model; repeatable."
        ),
    ] = None,
    limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=1.0, help="Time for each model.")
    ] = 600.0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all random choices.")] = 0,
    format: Annotated[
        options.AutoFormat, typer.Option(help="By default told by the file.")
    ] = "auto",
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    header: options.Header = None,
    rows: Annotated[
        Literal["auto", "dense", "sparse"],
        typer.Option(help="How to train on rows of features, as in train."),
    ] = "auto",
    on_error: options.OnError = "raise",
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw error against latency: .png, .svg or .pdf."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Write the table as Markdown.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train models on the same rows, one after the other, and measure them alike."""
    parameters = _parameters(models, set_ or [], seed)
    _check_files(data, test, held_out, plot)
    from thinleaf.measuring import compare as run
    from thinleaf.measuring.report import NOTE, to_markdown, to_records, to_text

    output = Output(json, quiet)
    entries = _entries(parameters, peers)
    columns = {
        "text_column": text_column or None,
        "label_column": label_column,
        "header": "auto" if header is None else header,
    }
    split = _read(
        data, test, held_out, seed, output, rows, format=format, on_error=on_error, **columns
    )
    facts = _facts(split, data, test)
    results: list[Result] = []

    try:
        with output.status() as show, _tidy_end():

            def say(entry: Entry, stage: str) -> None:
                show(f"{len(results) + 1}/{len(entries)} {entry.name}: {stage}")

            for result in run(split, entries, limit=limit, progress=say):
                results.append(result)
                output.note(f"{len(results)}/{len(entries)} {_line(result)}")
    finally:  # what is there after Ctrl-C is worth having, too
        if results:
            table = to_markdown(results) if markdown else to_text(results)
            record = facts | {"seed": seed, "limit_seconds": limit, "models": to_records(results)}
            text = f"{_facts_text(facts)}\n\n{table}\n\n{NOTE}"
            output.result(record, table if quiet and not json else text)
        if plot is not None:
            _draw(results, plot, output)


@contextmanager
def _tidy_end() -> Iterator[None]:
    """Let a request to end, SIGTERM, end the models' processes and remove their files first."""

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # no signals come here
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _names(given: str, known: Sequence[str], option: str) -> list[str]:
    if given in (ALL, NONE):
        return list(known) if given == ALL else []
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"{name!r} is not one of all, none, {', '.join(known)}", param_hint=option
            )
    return list(dict.fromkeys(names))


def _parameters(models: str, assignments: Sequence[str], seed: int) -> dict[str, dict[str, Any]]:
    """Return which of our models to compare, and what to set, its names checked."""
    wanted = _names(models, MODELS, "--models")
    own: dict[str, list[str]] = {name: [] for name in wanted}
    for text in assignments:
        model, dot, assignment = text.partition(".")
        if not dot or "=" in model:
            raise typer.BadParameter(f"{text!r} is not MODEL.NAME=VALUE", param_hint="--set")
        if model not in own:
            raise typer.BadParameter(
                f"{model!r} is not among the models: {', '.join(wanted)}", param_hint="--set"
            )
        own[model].append(assignment)
    general = {"random_state": seed, "n_jobs": 1}
    return {name: given_parameters(name, {}, given, general) for name, given in own.items()}


def _entries(parameters: Mapping[str, Mapping[str, Any]], peers: str) -> list[Entry]:
    """Return what to compare, checked before any data is read."""
    from thinleaf.measuring import Entry
    from thinleaf.measuring.peers import PEERS

    entries = [
        Entry.of_model(name, make_estimator(name, given)) for name, given in parameters.items()
    ]
    for name in _names(peers, list(PEERS), "--peers"):
        entries += Entry.of_peer(name)
    if not entries:
        raise typer.BadParameter("there is nothing to compare", param_hint="--models")
    return entries


def _check_files(data: str, test: str | None, held_out: float, plot: str | None) -> None:
    """Complain before a long run, not after it."""
    if test == STDIN == data:
        raise ValueError("only one of the files can be standard input")
    if test is None and not 0.0 < held_out < 1.0:
        raise ValueError(f"--held-out must be between 0 and 1, got {held_out}")
    check_inputs(data, test)
    if plot is not None:
        check_figure(plot)


def _read(
    data: str,
    test: str | None,
    held_out: float,
    seed: int,
    output: Output,
    rows: str,
    **reading: Any,
) -> Split:
    """Return training and test part; features of texts are those of the training part."""
    import numpy as np

    from thinleaf.datasets import TextRows, concatenate, label_array, label_kind, take
    from thinleaf.measuring import Split

    reader, examples = read_all(data, output, **reading)
    held: Examples
    if test is None:
        n_held = round(held_out * len(examples))
        if not 0 < n_held < len(examples):
            raise ValueError(
                f"--held-out {held_out} leaves no rows to train or to test on: there are "
                f"{len(examples)}"
            )
        order = np.random.default_rng(seed).permutation(len(examples))
        held = take(examples, np.sort(order[:n_held]))
        examples = take(examples, np.sort(order[n_held:]))
        recipe, X = prepare_rows(reader, examples, {}, rows)
    else:
        recipe, X = prepare_rows(reader, examples, {}, rows)
        with recipe.open(
            source(test), labels="required", on_error=reading["on_error"]
        ) as test_reader:
            held = concatenate(list(test_reader))
        note_left_out(test_reader, output)
    kind = label_kind([*examples.labels, *held.labels])
    X_held: Any = recipe.rows(held)
    return Split.of(
        X,
        label_array(examples.labels, kind),
        X_held if hasattr(X, "indptr") else X_held.toarray(),
        label_array(held.labels, kind),
        examples.texts if isinstance(examples, TextRows) else None,
        held.texts if isinstance(held, TextRows) else None,
    )


def _facts(split: Split, data: str, test: str | None) -> dict[str, Any]:
    return {
        "data": name_of(data),
        "test": None if test is None else name_of(test),
        "train_rows": int(split.y_train.size),
        "test_rows": int(split.y_test.size),
        "unknown_labels": int((~split.known).sum()),
        "features": int(split.X_train.shape[1]),
        "sparse": split.sparse,
        "classes": split.n_classes,
    }


def _facts_text(facts: dict[str, Any]) -> str:
    kind = "sparse" if facts["sparse"] else "dense"
    unknown = facts["unknown_labels"]
    missing = f", {unknown:,} of them with labels that no training row has" if unknown else ""
    return (
        f"{facts['data']}: {facts['train_rows']:,} training and {facts['test_rows']:,} test "
        f"rows{missing}; {facts['features']:,} {kind} features, {facts['classes']:,} classes"
    )


def _line(result: Result) -> str:
    if result.failed is not None:
        return f"{result.name}: {result.failed}"
    figures = result.figures
    seconds = figures["train_seconds"]
    return f"{result.name}: error {percent(figures['error'])}, trained in {seconds:.3g} s"


def _draw(results: Sequence[Result], path: str, output: Output) -> None:
    from thinleaf.explain.frontier import write_frontier

    points = {
        result.name: (result.figures["single_us"], result.figures["error"])
        for result in results
        if result.failed is None
    }
    if not points:
        output.note("there is nothing to draw: no model has figures")
        return
    write_frontier(points, Path(path), "thinleaf bench compare")
    output.note(f"wrote {path}")

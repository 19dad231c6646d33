"""The app: its verbs, and how errors end a command."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from thinleaf._version import __version__
from thinleaf.cli import (
    bench,
    compare,
    demo,
    evaluate,
    explain,
    explore,
    export,
    inspect,
    predict,
    serve,
    train,
    warmup,
)
from thinleaf.cli._endings import (
    CLOSED_PIPE,
    EXPECTED,
    INTERRUPTED,
    WRONG,
    discard_output,
    message,
)

OTHER_NAMES = {
    "benchmark": "bench",
    "browse": "explore",
    "classify": "predict",
    "compile": "warmup",
    "convert": "export",
    "describe": "inspect",
    "fit": "train",
    "info": "inspect",
    "learn": "train",
    "plot": "bench compare",
    "run": "serve",
    "score": "evaluate",
    "server": "serve",
    "show": "inspect",
    "test": "evaluate",
    "view": "explore",
    "visualize": "explore",
    "why": "explain",
}
"""What other programs call our verbs."""


class PlainHelp:
    """Help without Python's names of types, where names of arguments and options say enough."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters: arguments and flags have no type to show."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: ""
            elif getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return parameters


class Verb(PlainHelp, TyperCommand):
    """One verb."""


class Verbs(PlainHelp, TyperGroup):
    """Runs a verb; what goes wrong with data, models and parameters becomes one line."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a verb; one that is called otherwise here is named."""
        name = args[0].lower()
        if name not in self.commands:
            verb = OTHER_NAMES.get(name)
            if verb is None and get_close_matches(name, ["compare"]):
                verb = "bench compare"
            if verb is not None and not ctx.resilient_parsing:
                ctx.fail(f"No such command {args[0]!r}. Did you mean 'thinleaf {verb}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that was asked for."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except EXPECTED as error:
            typer.echo(f"error: {message(error, ctx.invoked_subcommand)}", err=True)
            raise typer.Exit(WRONG) from error


class Measuring(PlainHelp, TyperGroup):
    """``bench MODEL DATA`` is short for ``bench model MODEL DATA``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the verb to be "model" if there is none, but not if one is misspelt."""
        if args and args[0] not in [*self.commands, *ctx.help_option_names]:
            misspelt = get_close_matches(args[0], self.commands) and not os.path.exists(args[0])
            args = args if misspelt else ["model", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="thinleaf",
    cls=Verbs,
    help="Classification into thousands of classes with deep paths and thin leaves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Verb)(train.train)
app.command(cls=Verb)(predict.predict)
app.command(cls=Verb)(evaluate.evaluate)
app.command(cls=Verb)(inspect.inspect)
app.command(cls=Verb)(explain.explain)
app.command(cls=Verb)(explore.explore)
app.command(cls=Verb)(serve.serve)
app.command(cls=Verb)(export.export)
measuring = typer.Typer(
    cls=Measuring, no_args_is_help=True, help="Measure a model, or compare models on data."
)
measuring.command("model", cls=Verb)(bench.bench_model)
measuring.command("compare", cls=Verb)(compare.compare)
app.add_typer(measuring, name="bench")
app.command(cls=Verb)(warmup.warmup)
app.command(cls=Verb)(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thinleaf {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass

"""The app: its verbs, and how errors end a command."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thinleaf._version import __version__
from thinleaf.cli import bench, compare, demo, evaluate, inspect, predict, train, warmup

WRONG = 1
INTERRUPTED = 130
CLOSED_PIPE = 141


class Verbs(TyperGroup):
    """Runs a verb; what goes wrong with data, models and parameters becomes one line."""

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
            _discard_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except (ValueError, OSError, MemoryError, ModuleNotFoundError) as error:
            typer.echo(f"error: {_message(error)}", err=True)
            raise typer.Exit(WRONG) from error


class Measuring(TyperGroup):
    """``bench MODEL DATA`` is short for ``bench model MODEL DATA``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the verb to be "model" if there is none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["model", *args]
        return super().parse_args(ctx, args)


def _message(error: Exception) -> str:
    """Return what is wrong on one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(str(error).split()) or type(error).__name__


def _discard_output() -> None:
    """Send what is still to be written nowhere, so that the interpreter ends without a word."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file
        sys.stdout = None


app = typer.Typer(
    name="thinleaf",
    cls=Verbs,
    help="Classification into thousands of classes with deep paths and thin leaves.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train.train)
app.command()(predict.predict)
app.command()(evaluate.evaluate)
app.command()(inspect.inspect)
measuring = typer.Typer(
    cls=Measuring, no_args_is_help=True, help="Measure a model, or compare models on data."
)
measuring.command("model")(bench.bench_model)
measuring.command("compare")(compare.compare)
app.add_typer(measuring, name="bench")
app.command()(warmup.warmup)
app.command()(demo.demo)


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


def main() -> None:
    """Run the command line."""
    app(prog_name="thinleaf")

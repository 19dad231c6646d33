"""``thinleaf warmup``: compile ahead, so that later processes start at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._output import Output


def warmup(
    training: Annotated[
        bool, typer.Option("--training", help="Compile what training needs, too.")
    ] = False,
    heads: Annotated[
        bool,
        typer.Option("--heads", help="Compile what output layers of networks need (extra torch)."),
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compile all that prediction needs, once on a machine; other processes then load it."""
    from thinleaf.warmup import steps, warm_up

    output = Output(json, quiet)
    with output.progress("compiling", "steps", len(steps(training, heads))) as advance:
        done = warm_up(training=training, heads=heads, progress=lambda name: advance(1))
    if done.cache_directory is None:
        raise ValueError(
            "no directory for compiled code can be written, so nothing was kept: set "
            "NUMBA_CACHE_DIR to one that can"
        )
    output.done(
        asdict(done),
        f"{done.n_compiled} compiled and {done.n_loaded} loaded in {done.seconds:.1f} s; compiled "
        f"code is in {done.cache_directory}",
    )

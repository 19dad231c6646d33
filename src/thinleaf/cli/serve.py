"""``thinleaf serve``: labels over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thinleaf.cli import _options as options
from thinleaf.cli._checks import check_inputs
from thinleaf.cli._output import Output
from thinleaf.cli._texts import sentence_encoder


def serve(
    model: options.ModelFile,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 is any that is free.")
    ] = 8000,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Bytes of a request's body.")
    ] = 4 << 20,
    max_batch: Annotated[
        int, typer.Option(metavar="N", min=1, help="Texts or rows of a request.")
    ] = 1024,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="Seconds for reading a body, and again for its answer.",
        ),
    ] = 10.0,
    grace: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1.0, help="Seconds for requests that have begun, at the end."
        ),
    ] = 30.0,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Threads that predict.", show_default="one a core"),
    ] = None,
    watch: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.0, help="Seconds between looks at the file; 0 for none."
        ),
    ] = 1.0,
    beam: options.Beam = None,
    temperature: options.Temperature = None,
    encoder: options.Encoder = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write a line a request to standard error.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Answer requests for labels over HTTP.

    A model file that is replaced is taken up without a lost request; SIGHUP takes it up at once,
    SIGTERM and Ctrl-C end the server when requests that have begun are answered.
    """
    check_inputs(model)
    from thinleaf.serving.app import create_app
    from thinleaf.serving.run import listen, run

    app = create_app(
        model,
        max_body=max_body,
        max_batch=max_batch,
        timeout=timeout,
        threads=threads,
        watch=watch,
        beam=beam,
        temperature=temperature,
        encoder=sentence_encoder(encoder),
    )
    shape = app.state.slot.current.answerer.shape
    listening = listen(host, port)
    address = f"[{host}]" if ":" in host else host
    Output(quiet=quiet).note(
        f"{Path(model).name}: {shape.n_classes:,} classes, takes {shape.in_words}; "
        f"http://{address}:{listening.getsockname()[1]}/"
    )
    run(app, listening, access_log=access_log, grace=grace)

"""Where the command ``thinleaf`` begins.

``thinleaf predict`` with plain arguments is read here, without typer: a line is answered before
that would be imported. Whatever is not plain goes to the app, which says what is wrong with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from thinleaf.cli._endings import (
    CLOSED_PIPE,
    EXPECTED,
    INTERRUPTED,
    WRONG,
    discard_output,
    message,
)

_FLAGS = {
    "--proba": "proba", "--unlabelled": "unlabelled", "--json": "json", "--quiet": "quiet",
    "-q": "quiet",
}  # fmt: skip


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise ValueError
    return int(text)


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError
        return text

    return read


_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--top-k": ("top_k", _count),
    "--jobs": ("jobs", _count),
    "--reject": ("reject", float),
    "--min-proba": ("min_proba", float),
    "--on-error": ("on_error", _one_of("raise", "skip")),
    "--output-format": ("output_format", _one_of("text", "csv", "json")),
}


def plain_arguments(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of ``predict``; None if typer is to read them.

    Examples
    --------
    >>> from thinleaf.cli._main import plain_arguments
    >>> plain_arguments(["predict", "model.thinleaf", "--top-k", "3"])
    {'top_k': 3, 'model': 'model.thinleaf'}
    >>> plain_arguments(["predict", "model.thinleaf", "--top-k", "three"])
    """
    if not arguments or arguments[0] != "predict":
        return None
    found: dict[str, Any] = {}
    places = []
    rest = iter(arguments[1:])
    for argument in rest:
        name, sign, value = argument.partition("=")
        if argument in _FLAGS:
            found[_FLAGS[argument]] = True
        elif name in _VALUES:
            parameter, read = _VALUES[name]
            try:
                found[parameter] = read(value if sign else next(rest, ""))
            except ValueError:
                return None
        elif argument.startswith("-") and argument != "-":
            return None
        else:
            places.append(argument)
    if not 1 <= len(places) <= 2 or "" in places:
        return None
    return found | dict(zip(("model", "data"), places, strict=False))


def main() -> None:
    """Run the command line."""
    plain = plain_arguments(sys.argv[1:])
    if plain is None or any(name.endswith("_COMPLETE") for name in os.environ):
        from thinleaf.cli._app import app

        app(prog_name="thinleaf")
    else:
        sys.exit(_predict(plain))


def _predict(arguments: dict[str, Any]) -> int:
    """Predict, and return the exit code."""
    from thinleaf.cli._predicting import predict_lines

    if arguments.get("quiet"):
        os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")
    try:
        predict_lines(**arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return CLOSED_PIPE
    except EXPECTED as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return WRONG
    return 0

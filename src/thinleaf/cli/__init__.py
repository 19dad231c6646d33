"""The command line, ``thinleaf``: one thin module a verb, over what the library offers in Python.

Nothing heavy is imported before a verb needs it, so that help comes at once. Exit codes: 0 all is
well; 1 data, a model or a parameter is wrong, as one line on standard error says; 2 the command was
misspelt; 130 Ctrl-C; 141 whoever read the output is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinleaf.cli._main import main

if TYPE_CHECKING:
    from thinleaf.cli._app import app as app

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    """Import the app when it is asked for: ``thinleaf predict`` does without typer."""
    if name == "app":
        from thinleaf.cli._app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

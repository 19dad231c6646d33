"""The command line, ``thinleaf``: one thin module a verb, over what the library offers in Python.

Nothing heavy is imported before a verb needs it, so that help comes at once. Exit codes: 0 all is
well; 1 data, a model or a parameter is wrong, as one line on standard error says; 2 the command was
misspelt; 130 Ctrl-C; 141 whoever read the output is gone.
"""

from thinleaf.cli._app import app, main

__all__ = ["app", "main"]

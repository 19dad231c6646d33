"""Answers over HTTP: an ASGI app over a model file, and the server that runs it.

:func:`create_app` gives the app for any ASGI server; ``thinleaf serve`` runs it under uvicorn. It
needs the extra ``serve``. What a request may say is in :mod:`thinleaf.serving.request`, what is
answered in :mod:`thinleaf.serving.answer`: neither knows HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.serving.app import create_app as create_app
    from thinleaf.serving.limits import Limits as Limits

__all__ = ["Limits", "create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from thinleaf.serving.app import create_app

        return create_app
    if name == "Limits":
        from thinleaf.serving.limits import Limits

        return Limits
    raise AttributeError(f"module 'thinleaf.serving' has no attribute {name!r}")

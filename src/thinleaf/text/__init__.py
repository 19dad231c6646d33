"""Texts as rows, models that take them, and the recipes that model files carry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.text.choice import choose_features as choose_features
    from thinleaf.text.features import TextFeatures as TextFeatures
    from thinleaf.text.sentence_encoder import SentenceEncoder as SentenceEncoder

_EXPORTS = {
    "SentenceEncoder": "thinleaf.text.sentence_encoder",
    "TextFeatures": "thinleaf.text.features",
    "choose_features": "thinleaf.text.choice",
}

__all__ = ["SentenceEncoder", "TextFeatures", "choose_features"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: it is slow to import."""
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

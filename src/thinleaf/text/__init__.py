"""Texts as rows, and the recipes that model files carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.text.features import TextFeatures as TextFeatures

__all__ = ["TextFeatures"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: scikit-learn is slow to import."""
    if name == "TextFeatures":
        from thinleaf.text.features import TextFeatures

        return TextFeatures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

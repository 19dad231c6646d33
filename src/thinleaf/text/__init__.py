"""Texts as rows, and the recipes that model files carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.text.choice import choose_features as choose_features
    from thinleaf.text.features import TextFeatures as TextFeatures

__all__ = ["TextFeatures", "choose_features"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: compiled code is slow to import."""
    if name == "TextFeatures":
        from thinleaf.text.features import TextFeatures

        return TextFeatures
    if name == "choose_features":
        from thinleaf.text.choice import choose_features

        return choose_features
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

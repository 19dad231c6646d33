"""Texts as users of label trees have them."""

from __future__ import annotations

from typing import Any


def is_text(X: Any) -> bool:
    """Whether input is a sequence of strings, of which some may be missing, rather than of rows."""
    if isinstance(X, str):
        raise ValueError("give a list of texts, not one string")
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or len(X) == 0:
        return False
    return isinstance(next((x for x in X if not (x is None or isinstance(x, float))), None), str)


def text_list(X: Any) -> list[str]:
    """Return the input of a model of texts as a list; ``ValueError`` if it is something else."""
    none = hasattr(X, "__len__") and getattr(X, "ndim", 1) == 1 and len(X) == 0
    if not none and not is_text(X):
        raise ValueError("this model was fitted to texts: give a list of strings")
    return list(X)

"""What features are called, in an explanation of one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thinleaf._dtypes import AccumArray, IndexArray

if TYPE_CHECKING:
    from thinleaf.model.explanation.values import Word


class FeatureNames:
    """Names of the features of rows; a model of texts knows terms and words instead.

    Parameters
    ----------
    names : sequence of str, optional
        By default, features have the numbers of their columns.
    """

    text: str | None = None
    """The input, if it was a text."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names = names

    def name(self, feature: int) -> str:
        """Return the name of a feature."""
        return f"feature {feature}" if self._names is None else self._names[feature]

    def words(self, features: IndexArray, amounts: AccumArray) -> tuple[Word, ...]:
        """Return the words of a text with their shares in the amounts of features."""
        return ()

"""What rows do in a tree: how many reach each leaf, how many are predicted wrong, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AnyArray, IndexArray, OffsetArray
from thinleaf.explain.explorer.outline import Outline, outline_of
from thinleaf.model.frozen import FrozenModel, FrozenTree

LONGEST = 300
"""Characters of a text that a page shows."""

_MOST_TEXT = 3_000_000
"""Characters of all examples."""


class NodeCounts:
    """Counts rows at leaves, batch by batch.

    Where a model takes several paths, a row counts at the leaf of the most probable one; whether it
    is predicted right is told by all. In a label tree it counts at the leaf of its predicted label.

    Parameters
    ----------
    model : FrozenModel
    n_examples : int
        How many rows of each leaf to keep that are predicted right, and how many that are not.
    name : str, optional
        What to call the rows.
    """

    def __init__(self, model: FrozenModel, *, n_examples: int = 4, name: str = "data") -> None:
        self.outline: Outline = outline_of(model)
        self.name = name
        self._model, self._n_examples = model, n_examples
        self._single = model
        if isinstance(model, FrozenTree) and model.beam > 1:
            self._single = model.with_beam(1)
        n_leaves = self.outline.n_leaves
        self.n_rows: OffsetArray = np.zeros(n_leaves, dtype=OFFSET)
        self.n_labelled: OffsetArray = np.zeros(n_leaves, dtype=OFFSET)
        self.n_wrong: OffsetArray = np.zeros(n_leaves, dtype=OFFSET)
        self.total, self.labelled, self.wrong = 0, 0, 0
        self._n_characters = 0
        self._kept: dict[tuple[int, bool], int] = {}
        self.examples: list[dict[str, Any]] = []

    def add(
        self,
        X: Any,
        ids: IndexArray | None = None,
        labels: Sequence[Any] | None = None,
        texts: Sequence[str | None] | None = None,
        numbers: Sequence[int] | AnyArray | None = None,
    ) -> None:
        """Count more rows.

        Parameters
        ----------
        X : whatever the model takes
        ids : ndarray of shape (n_rows,), optional
            Class ids; a label that the model does not know is -1, and so is a missing one.
        labels : sequence, optional
            The labels as they are written; None where there is none. Needed with ``ids``.
        texts : sequence of str, optional
            How to show the rows; None leaves one out.
        numbers : sequence of int, optional
            Which row of the data each is.
        """
        predicted = self._classes(X)
        n = predicted.size
        if n == 0:
            return
        if labels is not None and len(labels) != n:
            raise ValueError(f"there are {n} rows in X, but {len(labels)} labels in y")
        leaves = self._leaves(X, predicted)
        known = np.full(n, -1, dtype=INDEX) if ids is None else np.asarray(ids)
        labels = [None] * n if labels is None else labels
        labelled = np.array([label is not None for label in labels])
        wrong = labelled & (known != predicted)
        for counted, rows in (
            (self.n_rows, slice(None)), (self.n_labelled, labelled), (self.n_wrong, wrong),
        ):  # fmt: skip
            counted += np.bincount(leaves[rows].ravel(), minlength=counted.size)
        first = self.total
        self.total += n
        self.labelled += int(labelled.sum())
        self.wrong += int(wrong.sum())
        if texts is None or self._n_examples == 0:
            return
        for row in range(n):
            text = texts[row]
            if text is not None and self._n_characters < _MOST_TEXT:
                number = first + row + 1 if numbers is None else int(numbers[row])
                self._keep(leaves[row], bool(wrong[row]), text, labels[row], predicted[row], number)

    def _keep(
        self, leaves: AnyArray, wrong: bool, text: str, label: Any, predicted: int, number: int
    ) -> None:
        wanted = [
            leaf for leaf in leaves.tolist() if self._kept.get((leaf, wrong), 0) < self._n_examples
        ]
        if not wanted:
            return
        for leaf in wanted:
            self._kept[leaf, wrong] = self._kept.get((leaf, wrong), 0) + 1
        shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        self._n_characters += len(shown)
        self.examples.append(
            {
                "leaves": wanted,
                "text": shown,
                "whole": len(text) <= LONGEST,
                "label": None if label is None else str(label),
                "predicted": int(predicted),
                "wrong": wrong,
                "number": number,
            }
        )

    def _classes(self, X: Any) -> IndexArray:
        model = self._model
        predicted: IndexArray = model._predictor.top_class(model._rows(X))
        return predicted

    def _leaves(self, X: Any, predicted: IndexArray) -> IndexArray:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees)."""
        if isinstance(self._single, FrozenTree):
            nodes = self._single.apply(X).reshape(predicted.size, -1)
            return self.outline.leaf[nodes]
        return self.outline.leaf_of_class[predicted][:, None]

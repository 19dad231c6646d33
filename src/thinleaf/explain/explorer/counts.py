"""What rows do in a tree: how many reach each leaf, how many are predicted wrong, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AnyArray, IndexArray, OffsetArray
from thinleaf.arrays.rows import Rows, take_rows
from thinleaf.explain.explorer.outline import Outline, outline_of
from thinleaf.model.frozen import FrozenModel, FrozenTree

LONGEST = 300
"""Characters of a text that a page shows."""

_MOST_TEXT = 3_000_000
"""Characters of all examples."""

_BETWEEN_CELLS = " | "
_N_SAMPLED = 1000
_N_SAMPLES = 2
"""Rows of a batch that are kept to compare models on, and of how many batches."""


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
        self.samples: list[Rows] = []
        self._class_rows: dict[int, int] = {}
        self._n_characters = 0
        self._kept: dict[tuple[int, bool], int] = {}
        self.examples: list[dict[str, Any]] = []

    def add(
        self,
        X: Any,
        ids: IndexArray | None = None,
        labels: Sequence[Any] | None = None,
        texts: Sequence[str | Sequence[str] | None] | None = None,
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
        texts : sequence of str or of lists of str, optional
            How to show the rows, of tables a list of cells each; None leaves a row out.
        numbers : sequence of int, optional
            Which row of the data each is.
        """
        rows = self._model._rows(X)
        predicted = self._model._predictor.top_class(rows)
        n = predicted.size
        if n == 0:
            return
        if labels is not None and len(labels) != n:
            raise ValueError(f"there are {n} rows in X, but {len(labels)} labels in y")
        leaves = self._leaves(rows, predicted)
        known = np.full(n, -1, dtype=INDEX) if ids is None else np.asarray(ids)
        labels = [None] * n if labels is None else labels
        labelled = np.array([label is not None for label in labels])
        wrong = labelled & (known != predicted)
        for counted, which in (
            (self.n_rows, slice(None)), (self.n_labelled, labelled), (self.n_wrong, wrong),
        ):  # fmt: skip
            counted += np.bincount(leaves[which].ravel(), minlength=counted.size)
        self._count_classes(leaves, np.where(labelled, known, predicted))
        if isinstance(self._model, FrozenTree) and len(self.samples) < _N_SAMPLES:
            at = np.unique(np.linspace(0, n - 1, min(n, _N_SAMPLED)).astype(INDEX))
            self.samples.append(take_rows(rows, at))
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
        self,
        leaves: AnyArray,
        wrong: bool,
        content: str | Sequence[str],
        label: Any,
        predicted: int,
        number: int,
    ) -> None:
        wanted = [
            leaf for leaf in leaves.tolist() if self._kept.get((leaf, wrong), 0) < self._n_examples
        ]
        if not wanted:
            return
        for leaf in wanted:
            self._kept[leaf, wrong] = self._kept.get((leaf, wrong), 0) + 1
        cells = None if isinstance(content, str) else list(content)
        text = content if isinstance(content, str) else _BETWEEN_CELLS.join(content)
        whole = len(text) <= LONGEST
        shown = text if whole else text[: LONGEST - 1] + "…"
        self._n_characters += len(shown) * (1 if cells is None else 2)
        example = {
            "leaves": wanted,
            "text": shown,
            "whole": whole,
            "label": None if label is None else str(label),
            "predicted": int(predicted),
            "wrong": wrong,
            "number": number,
        }
        self.examples.append(example if cells is None or not whole else example | {"cells": cells})

    def _count_classes(self, leaves: IndexArray, classes: IndexArray) -> None:
        n_classes = len(self._model.labels)
        keys = leaves.astype(OFFSET)[classes >= 0] * n_classes + classes[classes >= 0][:, None]
        for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
            self._class_rows[int(key)] = self._class_rows.get(int(key), 0) + int(count)

    @property
    def class_rows(self) -> OffsetArray:
        """How many rows of each class reach each leaf that has it, as ``outline.class_ids``.

        By their labels, or by what is predicted where they have none.
        """
        n_classes, out = len(self._model.labels), self.outline
        leaf = np.repeat(np.arange(out.n_leaves, dtype=OFFSET), np.diff(out.class_ptr))
        keys = (leaf * n_classes + out.class_ids).tolist()
        return np.array([self._class_rows.get(key, 0) for key in keys], dtype=OFFSET)

    def _leaves(self, rows: Any, predicted: IndexArray) -> IndexArray:
        """Return the leaf of each row in each tree, of shape (n_rows, n_trees)."""
        if isinstance(self._single, FrozenTree):
            nodes = self._single.predictor.leaves(rows).reshape(predicted.size, -1)
            return self.outline.leaf[nodes]
        return self.outline.leaf_of_class[predicted][:, None]

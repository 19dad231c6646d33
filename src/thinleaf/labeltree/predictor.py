"""The predictor of label trees, for rows and for texts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.rows import CSR, Rows, n_rows_of, rows_between
from thinleaf.execution import executor_for
from thinleaf.labeltree.kernels.words import predict_text
from thinleaf.labeltree.model import LabelTreeModel
from thinleaf.labeltree.word_features import WordFeatures
from thinleaf.model.predictor import Predictor
from thinleaf.text.encoding import encoded, kinds_in

if TYPE_CHECKING:
    from thinleaf.model.explanation.explainer import Explainer
    from thinleaf.model.explanation.names import FeatureNames

_MIN_PIECE = 256
"""Rows that are worth a thread."""


class LabelTreePredictor(Predictor):
    """Answers with a label tree; every label has a probability, and none is outside.

    Parameters
    ----------
    model : LabelTreeModel
    labels : ndarray of shape (n_labels,)
    words : WordFeatures or None
        The terms of texts, if the model takes a list of texts instead of rows.
    greedy : bool
        Whether the label of a row is found by the most probable child of each node; else by branch
        and bound, which finds the most probable one.
    """

    def __init__(
        self, model: LabelTreeModel, labels: AnyArray, words: WordFeatures | None, *, greedy: bool
    ) -> None:
        self.model, self.labels, self.words, self.greedy = model, labels, words, greedy
        self.label_list, self.n_features = labels.tolist(), model.U.shape[0]
        self._depth = model.tree.depth

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        model, words = self.model, self.words
        arrays = [model.U, model.weights, model.bias, model.tree.children]
        arrays += [] if words is None else [words.keys, words.ids]
        return sum(array.nbytes for array in arrays)

    def top_class(self, rows: Rows | list[str], n_jobs: int = 1) -> IndexArray:
        """Return the label of each row."""
        if self.greedy:
            (ids,) = self._in_pieces(rows, n_jobs, lambda part: (self.model.descend(part),))
            return ids
        return self.top_k(rows, 1, n_jobs)[0][:, 0]

    def top_k(
        self, rows: Rows | list[str], k: int, n_jobs: int = 1
    ) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable labels by branch and bound, without computing all."""
        ids, scores = self._in_pieces(rows, n_jobs, lambda part: self.model.topk(part, k))
        return ids, np.exp(scores.astype(ACCUM))

    def probabilities(self, rows: Rows | list[str], n_jobs: int = 1) -> AccumArray:
        """Return the probability of every label."""
        out: AccumArray = np.exp(self.log_probabilities(rows, n_jobs))
        out /= out.sum(axis=1, keepdims=True)
        return out

    def log_probabilities(self, rows: Rows | list[str], n_jobs: int = 1) -> AccumArray:
        """Return the logarithm of :meth:`probabilities`, without underflow."""
        (out,) = self._in_pieces(rows, n_jobs, lambda part: (self.model.log_proba(part),))
        return out.astype(ACCUM)

    def probability_of(
        self, rows: Rows | list[str], ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one label of each row."""
        return np.exp(self.model.label_log_proba(self.as_rows(rows), ids).astype(ACCUM))

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the label of one sample; of a text, as fast as that goes."""
        words, model = self.words, self.model
        if words is None:
            return super().top_class_one(x, values)
        self.rows_of_one(x, values)  # or say what is wrong
        content = encoded(x)
        return predict_text(
            content, kinds_in(content),
            words.ngrams, words.n_buckets, words.pooling == "mean", self.greedy,
            words.keys, words.ids,
            model.U, model.weights, model.bias, model.tree.children, self._depth,
        )  # fmt: skip

    def rows_of_one(self, x: Any, values: Any) -> Rows | list[str]:
        """Return one sample as rows, or a text in a list."""
        if self.words is None:
            if isinstance(x, str):
                raise ValueError("a string is for models of texts; this one was fitted to rows")
            rows: Rows = super().rows_of_one(x, values)
            return rows
        if not isinstance(x, str) or values is not None:
            raise ValueError(f"a text must be a string, got {x!r}")
        return [x]

    def sample_of(self, x: Any, values: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one sample: a dense row and None, or indices and values."""
        rows = self.as_rows(self.rows_of_one(x, values))
        return (rows.indices, rows.data) if isinstance(rows, CSR) else (rows[0], None)

    def names_for(self, x: Any, names: FeatureNames) -> FeatureNames:
        """Return the terms of a text; names of features as they are."""
        from thinleaf.labeltree.explanation import names_for

        return names_for(x, self.words, names)

    @property
    def explainer(self) -> Explainer:
        """What explains its answers."""
        from thinleaf.labeltree.explanation import LabelTreeExplainer

        return LabelTreeExplainer(self)

    def as_rows(self, rows: Rows | list[str]) -> Rows:
        """Return rows as they are, and texts as rows of their terms."""
        return rows if self.words is None else self.words.transform(rows)  # type: ignore[arg-type, return-value]

    def _in_pieces(
        self,
        rows: Rows | list[str],
        n_jobs: int,
        function: Callable[[Rows], tuple[AnyArray, ...]],
    ) -> tuple[AnyArray, ...]:
        """Return arrays of all rows; several threads make parts of them if there are many rows."""
        n_rows = len(rows) if isinstance(rows, list) else n_rows_of(rows)
        if n_jobs == 1 or n_rows < 2 * _MIN_PIECE:
            return function(self.as_rows(rows))

        def part(cut: tuple[int, int]) -> Rows | list[str]:
            return rows[slice(*cut)] if isinstance(rows, list) else rows_between(rows, *cut)

        with executor_for(n_jobs) as executor:
            n_pieces = 4 * executor.n_workers if executor.n_workers > 1 else 1
            n_pieces = min(n_pieces, n_rows // _MIN_PIECE)
            cuts = np.linspace(0, n_rows, n_pieces + 1).astype(int).tolist()
            done = executor.map(lambda cut: function(self.as_rows(part(cut))), list(pairwise(cuts)))
        return tuple(np.concatenate(parts) for parts in zip(*done, strict=True))

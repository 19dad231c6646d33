"""Softmax trees that take texts: the form that is deployed, and that a model file of texts gives.

Only how input becomes rows is different from :class:`thinleaf.FrozenTree`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy.typing as npt

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.rows import Rows
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import PackedTree
from thinleaf.text.inputs import Input, is_rows, text_list
from thinleaf.text.predictor import StoredInput, TextPredictor
from thinleaf.text.rejecting import RejectingPredictions, check_precision
from thinleaf.text.rejection import Rejection, stored_rejection


class FrozenTextTree(RejectingPredictions, FrozenTree):
    """A :class:`thinleaf.FrozenTree`, or a forest, that takes texts.

    Made by :meth:`thinleaf.TextClassifier.freeze` or :func:`thinleaf.load`. All that predicts takes
    a list of strings, a column of pandas, Polars or Arrow, or a table if it was trained on columns;
    single samples are a string, or a mapping from columns to values. Rows of features are taken as
    by other models.

    Parameters
    ----------
    packed, labels, **options
        As of :class:`thinleaf.FrozenTree`; one of ``sections`` says how texts become rows.
    source : StoredInput, optional
        What was made of that section.

    Examples
    --------
    >>> from thinleaf import TextClassifier
    >>> texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 10
    >>> labels = ["fracture", "fracture", "fever", "fever"] * 10
    >>> model = TextClassifier(features="words", random_state=0).fit(texts, labels).freeze()
    >>> model.predict_one("a broken toe")
    'fracture'
    """

    _predictor: TextPredictor

    def __init__(
        self,
        packed: PackedTree,
        labels: npt.ArrayLike,
        *,
        source: StoredInput | None = None,
        **options: Any,
    ) -> None:
        super().__init__(packed, labels, **options)
        if source is None or not source.is_of(self._sections, packed.n_features):
            source = StoredInput(self._sections, packed.n_features)
        self._source = self._predictor.source = source

    def _predictor_of(
        self, packed: PackedTree, labels: AnyArray, beam: int, temperature: float, checked: bool
    ) -> TextPredictor:
        return TextPredictor(packed, labels, beam, temperature, checked=checked)

    @property
    def input(self) -> Input:
        """How samples become rows."""
        return self._source.input

    @property
    def _text_input(self) -> Input:
        return self._source.input

    @property
    def _found_rejection(self) -> Rejection | None:
        return self.rejection

    @cached_property
    def rejection(self) -> Rejection | None:
        """When not to answer, or None if the file does not say."""
        return stored_rejection(self._sections)

    def with_encoder(self, encoder: Any) -> Self:
        """Return the same model with the encoder that it was trained with.

        Parameters
        ----------
        encoder : callable
            From a list of texts to an array with a row for each.

        Raises
        ------
        ValueError
            If the model takes none, or was trained with another one.
        """
        made = self.input.attached(encoder)
        return self.replaced(source=StoredInput(self._sections, self.n_features, made))

    @property
    def takes_texts(self) -> bool:
        """Whether input is texts instead of rows: it may be."""
        return True

    def __repr__(self) -> str:
        """Return the shape in one line."""
        return super().__repr__().replace("FrozenTree", type(self).__name__, 1)

    def _labels(self, X: Any, n_jobs: int | None) -> AnyArray:
        direct = None if is_rows(X) else self._predictor.direct
        if direct is None:
            return super()._labels(X, n_jobs)
        return self._predictor.labels[direct.many(text_list(X), self._threads(n_jobs))]

    def _label_or_none(self, x: Any, reject: float) -> Any:
        direct = self._predictor.direct if type(x) is str else None
        if direct is None or not direct.knows_terms:
            return super()._label_or_none(x, reject)
        check_precision(reject)
        class_id = direct.sure(x, self._known_rejection(), reject)
        return None if class_id < 0 else self._predictor.label_list[class_id]

    def _rows(self, X: Any) -> Rows:
        return self._rows_in(X, None)

    def _rows_in(self, X: Any, n_jobs: int | None) -> Rows:
        if is_rows(X):
            return super()._rows(X)
        return self.input.rows(X, self._threads(n_jobs))

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"source": self._source}

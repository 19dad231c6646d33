"""Models of texts that may say "I don't know"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import AccumArray, AnyArray, BoolArray
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.predictor import Predictions
from thinleaf.text.inputs import Input, is_rows
from thinleaf.text.known_terms import Evidence
from thinleaf.text.rejection import Rejection, signs


class RejectingPredictions(Predictions):
    """Predictions of texts, of which those that are not sure enough may be left out."""

    _no_rejection = "train a TextClassifier with rejection=True on a few hundred texts or more"
    """What to do where it is not known when to reject."""

    if TYPE_CHECKING:

        @property
        def _text_input(self) -> Input | None:
            """How texts become rows."""

        @property
        def _found_rejection(self) -> Rejection | None:
            """When not to answer, or None if the training has not found out."""

    def predict(
        self,
        X: Any,
        *,
        n_jobs: int | None = None,
        reject: float | None = None,
        reject_label: Any = None,
    ) -> AnyArray:
        """Return the label of each text: the most probable one.

        Parameters
        ----------
        X : sequence of str, table, or rows of features
        n_jobs : int, optional
            Threads; -1 is all cores. By default what the estimator says, or one.
        reject : float, optional
            Wanted precision, such as 0.95: texts are left without a label so that this share of the
            others is right, by what held-out rows of the training say. Texts without any known
            term, and those whose label is more likely wrong than right, are left out in any case.
        reject_label : object, optional
            What these texts get instead of None.

        Returns
        -------
        y : ndarray of shape (n_texts,)
            With ``reject``, and without ``reject_label``, of objects.
        """
        if reject is None:
            return self._labels(X, n_jobs)
        rows, rejected = self._rejected(X, reject, n_jobs)
        predictor = self._predictor
        labels = predictor.labels[predictor.top_class(rows, self._threads(n_jobs))].astype(object)
        labels[rejected] = reject_label
        return labels if reject_label is None else np.array(labels.tolist())

    def _labels(self, X: Any, n_jobs: int | None) -> AnyArray:
        """Return the label of each text, whether it is sure or not."""
        return super().predict(X, n_jobs=n_jobs)

    def rejects(self, X: Any, reject: float, *, n_jobs: int | None = None) -> BoolArray:
        """Return which texts ``predict(X, reject=reject)`` leaves without a label.

        Parameters
        ----------
        X, reject, n_jobs
            As for :meth:`predict`.

        Returns
        -------
        mask : ndarray of shape (n_texts,)
        """
        return self._rejected(X, reject, n_jobs)[1]

    def predict_one(
        self, x: Any, values: Any = None, *, reject: float | None = None, reject_label: Any = None
    ) -> Any:
        """Return the label of one text, sample or row.

        Parameters
        ----------
        x : str, mapping of columns to values, or row
            Rows as for other models.
        values : ndarray, optional
            Of a sparse row.
        reject, reject_label
            As for :meth:`predict`.

        Returns
        -------
        label : int, float, bool or str, or ``reject_label``
        """
        if reject is None:
            predictor = self._predictor
            return predictor.label_list[predictor.top_class_one(x, values)]
        if not isinstance(x, str | Mapping):
            raise ValueError("reject is for texts: of rows it is not known which terms are unknown")
        label = self._label_or_none(x, reject)
        return reject_label if label is None else label

    def _label_or_none(self, x: Any, reject: float) -> Any:
        """Return the label of one sample, or None if it is rejected."""
        return self.predict([x], reject=reject)[0]

    def confidence(self, X: Any, *, n_jobs: int | None = None) -> AccumArray:
        """Return how likely the predicted label of each text is right.

        Held-out rows of the training say how often a label was right that had such a probability,
        mass outside its leaf, and share of unknown terms.

        Parameters
        ----------
        X : sequence of str, or table
        n_jobs : int, optional

        Returns
        -------
        c : ndarray of shape (n_texts,)
            0 for texts without any known term.
        """
        rejection = self._known_rejection()
        rows, known = self._rows_and_evidence(X, n_jobs)
        return rejection.confidence(self._signs(rows, known, n_jobs), known)

    def _names_for(self, x: Any) -> FeatureNames:
        made = self._text_input
        if made is None:
            return super()._names_for(x)
        from thinleaf.text.explained import names_for

        return names_for(x, made)

    def _rejected(self, X: Any, reject: float, n_jobs: int | None) -> tuple[Any, BoolArray]:
        check_precision(reject)
        rejection = self._known_rejection()
        rows, known = self._rows_and_evidence(X, n_jobs)
        return rows, ~rejection.answers(self._signs(rows, known, n_jobs), known, reject)

    def _signs(self, rows: Any, known: Evidence, n_jobs: int | None) -> AccumArray:
        """Return what speaks for or against the labels of some texts."""
        return signs(self._predictor, rows, known, self._threads(n_jobs))

    def _rows_and_evidence(self, X: Any, n_jobs: int | None) -> tuple[Any, Evidence]:
        made = self._text_input
        if made is None or is_rows(X):
            raise ValueError("reject is for texts: of rows it is not known which terms are unknown")
        return made.rows(X, self._threads(n_jobs)), made.evidence(X)

    def _known_rejection(self) -> Rejection:
        found = self._found_rejection
        if found is None:
            raise ValueError(f"the model does not know when to reject: {self._no_rejection}")
        return found


def check_precision(reject: Any) -> None:
    """Raise ``ValueError`` unless a wanted precision is between 0 and 1."""
    number = isinstance(reject, int | float | np.number) and not isinstance(reject, bool)
    if not number or not 0.0 < reject < 1.0:
        raise ValueError(f"reject is a wanted precision between 0 and 1, got {reject!r}")

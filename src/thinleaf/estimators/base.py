"""What every tree classifier does once it has a tree: freeze, predict, save."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.estimators.files import training_section, training_summary
from thinleaf.inputs import as_rows
from thinleaf.kernels.rows import Rows
from thinleaf.metrics import mean_flops
from thinleaf.packing import WeightType, pack
from thinleaf.predictor import FrozenTree
from thinleaf.probability import Backoff, Outside
from thinleaf.tree import Tree


class BaseTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction with a fitted ``tree_``; subclasses fit it.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray of shape (n_classes,)
    backoff_ : Backoff or None
        If None, classes outside a leaf get ``epsilon_`` before renormalising.
    epsilon_ : float
    sparse_input_ : bool
        Whether the training rows were sparse: what the frozen form is laid out for.
    """

    tree_: Tree
    classes_: AnyArray
    backoff_: Backoff | None
    epsilon_: float
    sparse_input_: bool

    def freeze(self, *, beam: int = 1, weights: WeightType = "float32") -> FrozenTree:
        """Return the model in the form that is deployed: packed, immutable, without training.

        Parameters
        ----------
        beam : int
            How many paths a row takes; 1 is the papers' single path.
        weights : {"float32", "float16", "int8"}
            Type of the leaf weights; see :meth:`FrozenTree.quantization_report`.

        Returns
        -------
        model : FrozenTree
        """
        model = self._predictor
        if weights != "float32":
            model = model.quantized(weights)
        return model.with_beam(beam) if beam != 1 else model

    def save(self, path: str | os.PathLike[str], *, trainable: bool = False) -> None:
        """Write the frozen model to a file that :func:`thinleaf.load` opens.

        Parameters
        ----------
        path : path-like
        trainable : bool
            Also write what :func:`thinleaf.load_estimator` needs to give this estimator back.
        """
        model = self.freeze()
        if trainable:
            model = model.with_sections(training=training_section(self))
        model.save(path)

    def predict(self, X: Any) -> AnyArray:
        """Return the top class of the leaf that each row reaches.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        return self._predictor.predict(self._rows(X), n_jobs=self._n_threads)

    def predict_proba(self, X: Any) -> AccumArray:
        """Return the probability of every class; rows sum to one.

        With many classes the result is large: prefer ``predict_topk`` or ``label_proba``.

        Returns
        -------
        P : ndarray of shape (n_rows, n_classes)
        """
        return self._predictor.predict_proba(self._rows(X), n_jobs=self._n_threads)

    def predict_log_proba(self, X: Any) -> AccumArray:
        """Return the logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            out: AccumArray = np.log(self.predict_proba(X))
        return out

    def predict_topk(self, X: Any, k: int = 5) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable classes and their probabilities, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        k : int

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        probabilities : ndarray of shape (n_rows, k)
            As in ``predict_proba``, without ever making that matrix.
        """
        return self._predictor.predict_topk(self._rows(X), k, n_jobs=self._n_threads)

    def label_proba(self, X: Any, y: npt.ArrayLike, *, smooth: bool = True) -> AccumArray:
        """Return the probability of one given label for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Known labels.
        smooth : bool
            False leaves classes outside a leaf at zero: what coverage and the papers' perplexity
            are computed from.

        Returns
        -------
        p : ndarray of shape (n_rows,)
        """
        rows = self._rows(X)
        return self._predictor.label_proba(rows, y, smooth=smooth, n_jobs=self._n_threads)

    def n_absent(self, X: Any) -> IndexArray:
        """Return how many classes the leaf that each row reaches lacks."""
        leaves = self.apply(X)
        sizes = np.diff(self.tree_.class_ptr)[leaves]
        return (self.classes_.size - sizes).astype(INDEX)

    def apply(self, X: Any) -> IndexArray:
        """Return the node of the leaf that each row reaches.

        Returns
        -------
        leaves : ndarray of shape (n_rows,)
        """
        return self._predictor.apply(self._rows(X), n_jobs=self._n_threads)

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction; see :mod:`thinleaf.metrics`."""
        rows = self._rows(X)
        return mean_flops(self.tree_, rows)

    # -- shared steps ------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM))

    @property
    def _n_threads(self) -> int:
        n_jobs = getattr(self, "n_jobs", None)
        return int(n_jobs) if isinstance(n_jobs, Integral) else 1

    @property
    def _predictor(self) -> FrozenTree:
        """The frozen form of ``tree_``, made when it is first needed."""
        check_is_fitted(self)
        cached = self.__dict__.get("_frozen")
        if cached is None or cached[0] is not self.tree_:
            cached = (self.tree_, self._freeze())
            self._frozen = cached
        return cached[1]

    def _freeze(self) -> FrozenTree:
        outside = Outside.of(self.tree_, self.backoff_, self.epsilon_)
        names = getattr(self, "feature_names_in_", None)
        return FrozenTree(
            pack(self.tree_, outside, sparse=self.sparse_input_),
            self.classes_,
            feature_names=None if names is None else [str(name) for name in names],
            summary=training_summary(self),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_frozen"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""What every tree classifier does once it has a tree: predict, and be frozen and stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.rows import Rows, as_rows
from thinleaf.estimators._base.classifier import SparseInputClassifier
from thinleaf.estimators._base.storable import Storable, Types, check_types, training_summary
from thinleaf.model.cost import mean_flops
from thinleaf.model.file_parts import tree_arrays, tree_from_arrays
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.probability import Backoff, Outside
from thinleaf.model.tree import Tree

_FITTED: Types = {
    "coverage_": (float, int), "epsilon_": (float, int), "history_": (list,),
    "n_features_in_": (int,), "n_iter_": (int,), "sparse_input_": (bool,),
}  # fmt: skip
_OF_SOME: Types = {"best_round_": (int,), "best_sweep_": (int,), "ended_": (str,)}
"""Fitted attributes that are plain values, and their types."""


class BaseFrozenClassifier(SparseInputClassifier, Storable):
    """Prediction through the frozen form, whatever that is made of."""

    classes_: AnyArray

    def predict(self, X: Any) -> AnyArray:
        """Return the most probable class of each row.

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

    def apply(self, X: Any) -> IndexArray:
        """Return the node of the leaf that each row reaches.

        Returns
        -------
        leaves : ndarray of shape (n_rows,), or (n_rows, n_trees) of a forest
        """
        return self._predictor.apply(self._rows(X), n_jobs=self._n_threads)

    # -- shared steps ------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM))

    @property
    def _n_threads(self) -> int:
        n_jobs = getattr(self, "n_jobs", None)
        return int(n_jobs) if isinstance(n_jobs, Integral) else 1


class BaseTreeClassifier(BaseFrozenClassifier):
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
    backoff_: Backoff | None
    epsilon_: float
    sparse_input_: bool

    def n_absent(self, X: Any) -> IndexArray:
        """Return how many classes the leaf that each row reaches lacks."""
        leaves = self.apply(X)
        sizes = np.diff(self.tree_.class_ptr)[leaves]
        return (self.classes_.size - sizes).astype(INDEX)

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction; see :mod:`thinleaf.metrics`."""
        rows = self._rows(X)
        return mean_flops(self.tree_, rows)

    # -- frozen and stored -------------------------------------------------------------------------

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
            summary=training_summary(self) | {"coverage": float(self.coverage_)},
        )

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays: dict[str, AnyArray] = tree_arrays(self.tree_, "tree.")
        if self.backoff_ is not None:
            arrays |= {f"backoff.{f.name}": getattr(self.backoff_, f.name) for f in fields(Backoff)}
        names = [*_FITTED, *_OF_SOME]
        return arrays, {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        check_types(fitted, _FITTED, _OF_SOME)
        if fitted["n_features_in_"] != model.n_features:
            raise ValueError(f"the estimator has {fitted['n_features_in_']} features")
        if not fitted["epsilon_"] >= 0.0 or not math.isfinite(fitted["epsilon_"]):
            raise ValueError(f"epsilon_ cannot be {fitted['epsilon_']}")
        if not all(type(entry) is dict for entry in fitted["history_"]):
            raise ValueError("history_ must be a list of objects")
        for name, value in fitted.items():
            setattr(self, name, value)
        size = {"n_features": model.n_features, "n_classes": model.n_classes}
        self.classes_ = model.labels.copy()
        self.tree_ = tree_from_arrays(arrays, "tree.", **size)
        self.backoff_ = None
        if "backoff.mass" in arrays:
            self.backoff_ = Backoff(
                **{f.name: arrays[f"backoff.{f.name}"].copy() for f in fields(Backoff)}
            )
            self.backoff_.validate(self.tree_)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_frozen"}

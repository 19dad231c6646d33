"""What every tree classifier does once it has a tree: be frozen, which predicts, and stored."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.estimators._base.classifier import SparseInputClassifier, made_once
from thinleaf.estimators._base.storable import Trainable, Types, check_types, training_summary
from thinleaf.model.cost import mean_flops
from thinleaf.model.file_parts import tree_arrays, tree_from_arrays
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.importance import importances, nodes_of
from thinleaf.model.packing import pack
from thinleaf.model.predictor import Predictor
from thinleaf.model.probability import Backoff, Outside
from thinleaf.model.tree import Tree

_FITTED: Types = {
    "coverage_": (float, int), "epsilon_": (float, int), "history_": (list,),
    "n_features_in_": (int,), "n_iter_": (int,), "sparse_input_": (bool,),
}  # fmt: skip
_OF_SOME: Types = {
    "beam_": (int,), "best_round_": (int,), "best_sweep_": (int,), "ended_": (str,),
    "leaf_loss_": (str,), "leaf_strength_": (float, int), "n_parts_": (int,),
    "sharpness_": (float, int),
    "temperature_": (float, int),
}  # fmt: skip
"""Fitted attributes that are plain values, and their types."""


class BaseFrozenClassifier(SparseInputClassifier, Trainable):
    """Prediction through the frozen form, whatever that is made of."""

    classes_: AnyArray

    @abstractmethod
    def _trees(self) -> tuple[Tree, ...]:
        """Return what was trained: while these are the same, so is the frozen form."""

    @abstractmethod
    def _packed_form(self) -> FrozenTree:
        """Return the frozen form, made anew."""

    def _frozen_form(self) -> FrozenTree:
        """Return the frozen form, made when it is first needed."""
        check_is_fitted(self)
        return made_once(self, self._trees(), self._packed_form)

    def _training(self) -> dict[str, Any]:
        """Return a summary of the training; parameters may have been changed since."""
        return self.__dict__.get("_trained_with") or training_summary(self)

    @property
    def _predictor(self) -> Predictor:
        model = self._frozen_form()
        beam, temperature = self._paths()
        if beam != 1:
            model = model.with_beam(beam, temperature=temperature)
        return model._predictor

    def apply(self, X: Any) -> IndexArray:
        """Return the node of the leaf that each row reaches.

        Returns
        -------
        leaves : ndarray of shape (n_rows,), or (n_rows, n_trees) of a forest
        """
        rows, model = self._rows(X), self._frozen_form()
        leaves = model._predictor.leaves(rows, self._n_threads)
        return leaves[:, 0] if model.n_trees == 1 else leaves


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
    node_weight_ : ndarray of shape (n_nodes,)
        Weight of the training rows that reach each node.
    feature_spread_ : ndarray of shape (n_features,)
        Standard deviation of each feature in the training rows.
    """

    tree_: Tree
    backoff_: Backoff | None
    epsilon_: float
    sparse_input_: bool
    node_weight_: AccumArray
    feature_spread_: AccumArray

    @property
    def feature_importances_(self) -> AccumArray:
        """How much each feature decides, of shape (n_features,); they sum to one.

        At a node: how far its weights for the feature differ between the branches or classes, times
        the feature's standard deviation, times the share of training rows that reach the node.
        """
        if not hasattr(self, "node_weight_"):
            raise AttributeError(
                "there are no importances: the estimator is not fitted, or comes from a file of an "
                "earlier version; thinleaf.explain.overview.feature_importances takes rows instead"
            )
        return importances(nodes_of(self.tree_), self.node_weight_, self.feature_spread_)

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

    def _trees(self) -> tuple[Tree, ...]:
        return (self.tree_,)

    def _packed_form(self) -> FrozenTree:
        outside = Outside.of(self.tree_, self.backoff_, self.epsilon_)
        names = getattr(self, "feature_names_in_", None)
        return FrozenTree(
            pack(self.tree_, outside, sparse=self.sparse_input_),
            self.classes_,
            feature_names=None if names is None else [str(name) for name in names],
            summary=self._training() | {"coverage": float(self.coverage_)},
        )

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays: dict[str, AnyArray] = tree_arrays(self.tree_, "tree.")
        if self.backoff_ is not None:
            arrays |= {f"backoff.{f.name}": getattr(self.backoff_, f.name) for f in fields(Backoff)}
        if hasattr(self, "node_weight_"):
            arrays |= {"reach": self.node_weight_, "spread": self.feature_spread_}
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
        if "reach" in arrays:
            widths = {"reach": self.tree_.n_nodes, "spread": model.n_features}
            for name, width in widths.items():
                array = arrays.get(name, np.empty(0))
                if array.shape != (width,) or array.dtype != ACCUM or not np.all(array >= 0.0):
                    raise ValueError(f"{name} does not fit the tree")
            self.node_weight_ = arrays["reach"].copy()
            self.feature_spread_ = arrays["spread"].copy()
        self.backoff_ = None
        if "backoff.mass" in arrays:
            self.backoff_ = Backoff(
                **{f.name: arrays[f"backoff.{f.name}"].copy() for f in fields(Backoff)}
            )
            self.backoff_.validate(self.tree_)

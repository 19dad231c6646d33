"""What a model file carries of an estimator: a summary, and on demand all that training left."""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from thinleaf._dtypes import AnyArray
from thinleaf._version import __version__
from thinleaf.persist import (
    ModelFileError,
    Section,
    file_format,
    tree_arrays,
    tree_from_arrays,
)
from thinleaf.predictor import load
from thinleaf.probability import Backoff

_NEEDED: dict[str, tuple[type, ...]] = {
    "coverage_": (float, int), "epsilon_": (float, int), "history_": (list,),
    "n_features_in_": (int,), "n_iter_": (int,), "sparse_input_": (bool,),
}  # fmt: skip
_FITTED = _NEEDED | {"best_round_": (int,), "best_sweep_": (int,), "ended_": (str,)}
"""Fitted attributes that are plain values, and their types."""

_LOCAL = ("checkpoint",)
"""Parameters that name files: they stay on the machine, and no model file may set them."""


def training_summary(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what a model file tells of the training: estimator, version, plain parameters."""
    parameters = _parameters(estimator)
    return {
        "estimator": type(estimator).__name__,
        "thinleaf": __version__,
        "parameters": {k: v for k, v in parameters.items() if _is_json(v) and v is not None},
        "coverage": float(estimator.coverage_),
    }


def training_section(estimator: BaseEstimator) -> Section:
    """Return all that :func:`load_estimator` needs, beside the frozen model."""
    parameters = plain_parameters(estimator, "save with trainable=False, or ")
    arrays: dict[str, AnyArray] = tree_arrays(estimator.tree_, "tree.")
    if estimator.backoff_ is not None:
        arrays |= {
            f"backoff.{f.name}": getattr(estimator.backoff_, f.name) for f in fields(Backoff)
        }
    fitted = {
        name: _plain(getattr(estimator, name)) for name in _FITTED if hasattr(estimator, name)
    }
    metadata = {"estimator": type(estimator).__name__, "parameters": parameters, "fitted": fitted}
    return Section(arrays, metadata)


def load_estimator(path: str | os.PathLike[str]) -> Any:
    """Return the estimator that ``save(path, trainable=True)``, or ``save`` of a label tree, wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator : estimator
        Fitted. It predicts as before; ``warm_start`` of a softmax tree goes on from its tree.

    Raises
    ------
    ModelFileError
        If the file is damaged, or holds only what prediction needs.
    """
    from thinleaf.estimators import label_files

    if file_format(Path(path)) == label_files.FORMAT:
        return label_files.read_label_tree(path).estimator
    model = load(path)
    if "training" not in model.sections:
        raise ModelFileError(
            f"{path} holds only what prediction needs: open it with thinleaf.load, or save the "
            "estimator with trainable=True"
        )
    try:
        with np.errstate(all="ignore"):
            estimator = _rebuild(model.sections["training"], model.n_features, model.n_classes)
            estimator.classes_ = model.labels.copy()
            if model.feature_names is not None:
                estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
            estimator.freeze()  # the tree and what it gives to classes outside leaves fit
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} holds no valid estimator: {error}") from error
    return estimator


def _rebuild(section: Section, n_features: int, n_classes: int) -> Any:
    from thinleaf import estimators

    name, fitted = section.metadata["estimator"], section.metadata["fitted"]
    if name not in estimators.TREE_CLASSIFIERS:
        raise ValueError(f"unknown estimator {name!r}")
    if type(fitted) is not dict or not _NEEDED.keys() <= fitted.keys() <= _FITTED.keys():
        raise ValueError("unknown fitted attributes")
    for key, value in fitted.items():
        if type(value) not in _FITTED[key]:
            raise ValueError(f"{key} cannot be {type(value).__name__}")
    if fitted["n_features_in_"] != n_features:
        raise ValueError(f"the estimator has {fitted['n_features_in_']} features")
    if not fitted["epsilon_"] >= 0.0 or not math.isfinite(fitted["epsilon_"]):
        raise ValueError(f"epsilon_ cannot be {fitted['epsilon_']}")
    parameters = dict(section.metadata["parameters"])
    if not all(type(entry) is dict for entry in fitted["history_"]):
        raise ValueError("history_ must be a list of objects")
    if any(parameters.get(local) is not None for local in _LOCAL):
        raise ValueError("a model file may not name other files")
    estimator = getattr(estimators, name)(**parameters)
    estimator._validate_params()
    for key, value in fitted.items():
        setattr(estimator, key, value)
    size = {"n_features": n_features, "n_classes": n_classes}
    estimator.tree_ = tree_from_arrays(section.arrays, "tree.", **size)
    estimator.backoff_ = None
    if "backoff.mass" in section.arrays:
        arrays = {f.name: section.arrays[f"backoff.{f.name}"].copy() for f in fields(Backoff)}
        estimator.backoff_ = Backoff(**arrays)
        estimator.backoff_.validate(estimator.tree_)
    return estimator


def plain_parameters(
    estimator: BaseEstimator, instead: str = "", *, given_tree: bool = False
) -> dict[str, Any]:
    """Return the parameters as JSON holds them; ``ValueError`` if one cannot be held.

    Parameters
    ----------
    estimator : BaseEstimator
    instead : str
        What else the user may do.
    given_tree : bool
        Whether ``tree`` is a tree. It is then left out: the model has it.
    """
    parameters = _parameters(estimator) | ({"tree": None} if given_tree else {})
    for name, value in parameters.items():
        if not _is_json(value):
            raise ValueError(
                f"{name} cannot be written to a model file: it is a {type(value).__name__}; "
                f"{instead}set a plain value"
            )
    return parameters


def _parameters(estimator: BaseEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: _plain(value) for name, value in parameters.items() if name not in _LOCAL}


def _plain(value: Any) -> Any:
    """Return a Python number for a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


def _is_json(value: Any) -> bool:
    """Return whether a value comes back from JSON as it was."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False

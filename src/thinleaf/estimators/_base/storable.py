"""Estimators in model files: the frozen model, a summary, and on demand all that training left."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from thinleaf._dtypes import AnyArray
from thinleaf._version import __version__
from thinleaf.arrays.files import ModelFileError, file_format
from thinleaf.estimators._base.documented import Documented
from thinleaf.model.file_parts import LABEL_TREE_FORMAT, Section
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.model_file import load
from thinleaf.model.packing import WeightType

_LOCAL = ("checkpoint", "executor", "max_memory")
"""Parameters about files or machines: they stay here, and no model file may set them."""

_NESTED = ("estimator", "model")
"""Parameters that are estimators themselves."""


class Storable(Documented):
    """An estimator that can be frozen and saved."""

    @classmethod
    def _for_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return parameters as JSON holds them."""
        return parameters

    @classmethod
    def _from_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return what :meth:`_for_file` was given; ``ValueError`` if that cannot be."""
        return parameters

    @abstractmethod
    def _frozen_form(self) -> Any:
        """Return the frozen form, with a beam of 1."""

    def freeze(
        self, *, beam: int | Literal["auto"] | None = None, weights: WeightType = "float32"
    ) -> Any:
        """Return the model in the form that is deployed: packed, immutable, without training.

        Parameters
        ----------
        beam : int or "auto", optional
            How many paths a row takes; 1 is the papers' single path. ``"auto"`` is what an adaptive
            tree has found in ``fit``, ``beam_`` at ``temperature_``. By default, the ``beam`` of
            the estimator.
        weights : {"float32", "float16", "int8"}
            Type of the leaf weights; see :meth:`FrozenTree.quantization_report`.

        Returns
        -------
        model : FrozenTree or FrozenLabelTree
            A label tree has neither beams nor smaller weights.
        """
        model = self._frozen_form()
        width, temperature = self._paths(beam)
        if (width, weights) != (1, "float32") and not hasattr(model, "with_beam"):
            raise ValueError("beam and weights are for softmax trees, not for label trees")
        if weights != "float32":
            model = model.quantized(weights)
        return model if width == 1 else model.with_beam(width, temperature=temperature)

    def _paths(self, beam: int | Literal["auto"] | None = None) -> tuple[int, float]:
        """Return how many paths a row takes, and the temperature of their routers."""
        width: int | Literal["auto"] = getattr(self, "beam", 1) if beam is None else beam
        if width != "auto":
            return width, 1.0
        if not hasattr(self, "beam_"):
            raise ValueError(
                "beam='auto' is for a RecallTreeClassifier, or for an "
                "AdaptiveSoftmaxTreeClassifier that decides by held-out rows and has enough of "
                f"them: this {type(self).__name__} has not looked for a beam, give a number"
            )
        return int(self.beam_), float(self.temperature_)


class Trainable(Storable):
    """One whose file may hold, beside the frozen model, all that training left."""

    @abstractmethod
    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return what ``fit`` has left: arrays, and values that JSON can hold."""

    @abstractmethod
    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        """Take over what :meth:`_stored` returned; raise ``ValueError`` if it cannot be."""

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


def training_summary(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what a model file tells of the training: estimator, version, plain parameters."""
    return {"thinleaf": __version__} | _summary(estimator)


def _summary(estimator: BaseEstimator) -> dict[str, Any]:
    parameters = {
        name: _summary(value) if isinstance(value, Storable) else value
        for name, value in _parameters(estimator).items()
    }
    return {
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in parameters.items() if _is_json(v) and v is not None},
    }


def training_section(estimator: Trainable) -> Section:
    """Return all that :func:`load_estimator` needs, beside the frozen model."""
    arrays, fitted = estimator._stored()
    values = {name: plain(value) for name, value in fitted.items()}
    return Section(arrays, described(estimator) | {"fitted": values})


def described(estimator: BaseEstimator) -> dict[str, Any]:
    """Return class and parameters of an estimator, as JSON holds them: what :func:`build` takes."""
    parameters = plain_parameters(estimator, "save with trainable=False, or ")
    return {"estimator": type(estimator).__name__, "parameters": parameters}


def load_estimator(path: str | os.PathLike[str], *, encoder: Any = None) -> Any:
    """Return the estimator that ``save(path, trainable=True)``, or ``save`` of a label tree, wrote.

    Parameters
    ----------
    path : path-like
    encoder : callable, optional
        The encoder of a :class:`TextClassifier` that was trained with one; see
        :func:`thinleaf.load`.

    Returns
    -------
    estimator : the class that was saved
        Fitted. It predicts as before; ``warm_start`` or ``partial_fit`` go on from there.

    Raises
    ------
    ModelFileError
        If the file is damaged, or holds only what prediction needs.
    """
    from thinleaf.estimators._base import label_tree_files as label_files

    if file_format(Path(path)) == LABEL_TREE_FORMAT:
        if encoder is not None:
            raise ValueError(f"{path} holds a label tree, which takes no encoder")
        return label_files.read_label_tree(path)
    model = load(path, encoder=encoder)
    if "training" not in model.sections:
        raise ModelFileError(
            f"{path} holds only what prediction needs: open it with thinleaf.load, or save the "
            "estimator with trainable=True"
        )
    try:
        with np.errstate(all="ignore"):
            estimator = rebuild(model.sections["training"], model)
            if model.feature_names is not None:
                estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
            again = estimator.freeze()
            if (again.n_features, again.n_classes) != (model.n_features, model.n_classes):
                raise ValueError("the estimator is not that of the frozen model")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} holds no valid estimator: {error}") from error
    return estimator


def rebuild(section: Section, model: Any) -> Any:
    """Return the estimator that :func:`training_section` tells of, and a frozen model."""
    estimator = build(section.metadata)
    estimator._restore(section.arrays, section.metadata["fitted"], model)
    return estimator


def build(description: Mapping[str, Any]) -> Any:
    """Return the estimator, not fitted, that :func:`described` has described.

    Raises
    ------
    ValueError
        If there is no such estimator, or if it does not take the parameters.
    """
    from thinleaf import estimators

    if not isinstance(description, Mapping):
        raise ValueError("unknown estimator")
    name, parameters = description["estimator"], dict(description["parameters"])
    if name not in estimators.STORABLE:
        raise ValueError(f"unknown estimator {name!r}")
    if any(parameters.get(local) is not None for local in _LOCAL):
        raise ValueError("a model file may not name other files or machines")
    for nested in _NESTED:
        if type(parameters.get(nested)) is dict:
            parameters[nested] = build(parameters[nested])
    cls = getattr(estimators, name)
    estimator = cls(**cls._from_file(parameters))
    estimator._validate_params()
    return estimator


Types = Mapping[str, tuple[type, ...]]


def check_types(values: Mapping[str, Any], needed: Types, optional: Types | None = None) -> None:
    """Raise ``ValueError`` unless values have the names and types that are asked for."""
    types = {**needed, **(optional or {})}
    if type(values) is not dict:
        raise ValueError("unknown fitted attributes")
    if not needed.keys() <= values.keys() <= types.keys():
        raise ValueError("unknown fitted attributes")
    for name, value in values.items():
        if type(value) not in types[name]:
            raise ValueError(f"{name} cannot be {type(value).__name__}")


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
    for name in _NESTED:
        nested = parameters.get(name)
        if isinstance(nested, Storable):
            plain_nested = plain_parameters(nested, instead)
            parameters[name] = {"estimator": type(nested).__name__, "parameters": plain_nested}
    for name, value in parameters.items():
        if not _is_json(value):
            raise ValueError(
                f"{name} cannot be written to a model file: it is a {type(value).__name__}; "
                f"{instead}set a plain value"
            )
    return parameters


def json_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return those parameters that JSON can hold."""
    return {name: value for name, value in _parameters(estimator).items() if _is_json(value)}


def _parameters(estimator: BaseEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    if isinstance(estimator, Storable):
        parameters = estimator._for_file(parameters)
    return {name: plain(value) for name, value in parameters.items() if name not in _LOCAL}


def plain(value: Any) -> Any:
    """Return a Python number for a NumPy one."""
    return value.item() if isinstance(value, np.generic) else value


def _is_json(value: Any) -> bool:
    """Return whether a value comes back from JSON as it was."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False

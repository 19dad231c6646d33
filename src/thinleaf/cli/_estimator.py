"""From options to an estimator: names are checked at once, values before any data is read."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import typer

from thinleaf.cli._parameters import (
    CLASSES,
    check_parameters,
    names_of_model,
    parameters_of,
    trees_are_fixed,
)

_PRESETS: dict[str, dict[str, Any]] = {"huffman": {"tree": "huffman"}}


def given_parameters(
    model: str,
    options: Mapping[str, Any],
    assignments: Sequence[str],
    general: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the parameters to set, whose names have been checked, without importing estimators.

    Parameters
    ----------
    model : str
        One of ``MODELS``.
    options : mapping
        Parameters that have options of their own; None is not given.
    assignments : sequence of str
        ``name=value``, each a Python value or else a string. They win.
    general : mapping, optional
        Parameters for those estimators that have them.

    Raises
    ------
    ValueError
        If the estimator has no such parameter.
    """
    given = {name: value for name, value in options.items() if value is not None}
    given |= dict(map(parse_assignment, assignments))
    check_parameters(model, given)
    known = names_of_model(model, given)
    own = {name: value for name, value in (general or {}).items() if name in known}
    return _PRESETS.get(model, {}) | own | given


def given_executor(name: str, address: str | None) -> dict[str, Any]:
    """Return the parameter of estimators that says where to train, if it is not the usual one.

    Raises
    ------
    ValueError
        If there is an address, but no cluster.
    ModuleNotFoundError
        If Ray is not installed.
    """
    if address is not None and name != "ray":
        raise ValueError("--address is that of a Ray cluster: give --executor ray, too")
    if name == "threads":
        return {}
    if name == "ray" and find_spec("ray") is None:
        raise ModuleNotFoundError("--executor ray needs Ray: pip install 'thinleaf[ray]'")
    if address is None:
        return {"executor": name}
    from thinleaf.execution import Ray

    return {"executor": Ray(address)}


def make_estimator(model: str, given: Mapping[str, Any]) -> Any:
    """Return an estimator with the parameters that :func:`given_parameters` gave.

    Raises
    ------
    ValueError
        If the estimator does not take a value.
    """
    from thinleaf import estimators

    estimator = getattr(estimators, CLASSES[model])()
    if model == "forest":  # a name that the forest does not have is one of its trees
        kind = CLASSES["st" if trees_are_fixed(given) else "ast"]
        estimator.estimator = getattr(estimators, kind)()
        own = parameters_of(CLASSES[model])
        given = {
            name if name in own or "__" in name else f"estimator__{name}": value
            for name, value in given.items()
        }
    estimator.set_params(**given)
    estimator._validate_params()
    if hasattr(estimator, "_check_combinations"):
        estimator._check_combinations()
    return estimator


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"{text!r} is not name=value", param_hint="--set")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()

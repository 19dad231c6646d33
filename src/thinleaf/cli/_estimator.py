"""From options to an estimator: names and values are checked before any data is read."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import typer

ModelChoice: TypeAlias = Literal["ast", "st", "forest", "recall", "lom", "ova", "label-tree"]

_CLASSES = {
    "ast": "AdaptiveSoftmaxTreeClassifier",
    "st": "SoftmaxTreeClassifier",
    "forest": "SoftmaxForestClassifier",
    "recall": "RecallTreeClassifier",
    "lom": "LOMTreeClassifier",
    "ova": "OnlineOneVsAllClassifier",
    "label-tree": "LabelTreeClassifier",
    "huffman": "LabelTreeClassifier",
    "flat": "FlatSoftmaxClassifier",
    "one-vs-all": "OneVsAllClassifier",
    "mach": "MACHClassifier",
    "ds": "DoubleSamplingClassifier",
}
_PRESETS: dict[str, dict[str, Any]] = {"huffman": {"tree": "huffman"}}

MODELS = tuple(_CLASSES)
"""All names, those that ``train`` does not take too."""


def make_estimator(
    model: str,
    options: Mapping[str, Any],
    assignments: Sequence[str],
    general: Mapping[str, Any] | None = None,
) -> Any:
    """Return an estimator whose parameters have been checked.

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
        If the estimator has no such parameter, or does not take the value.
    """
    from thinleaf import estimators

    chosen = dict(map(parse_assignment, assignments))
    cls = getattr(estimators, _CLASSES[model])
    estimator = cls()
    if model == "forest":
        wanted = {name for name, value in options.items() if value is not None} | chosen.keys()
        fixed = bool(wanted & {"depth", "leaf_classes", "estimator__depth"})
        kind = "SoftmaxTreeClassifier" if fixed else "AdaptiveSoftmaxTreeClassifier"
        estimator.estimator = getattr(estimators, kind)()
    known = _names(estimator)
    given = dict(_PRESETS.get(model, {}))
    given |= {name: value for name, value in (general or {}).items() if name in known}
    given |= {name: value for name, value in options.items() if value is not None}
    given |= chosen
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"{cls.__name__} (model {model}) has no parameter {unknown[0]!r}; it has "
            f"{', '.join(known)}"
        )
    estimator.set_params(**{known[name]: value for name, value in given.items()})
    estimator._validate_params()
    if hasattr(estimator, "_check_combinations"):
        estimator._check_combinations()
    return estimator


def _names(estimator: Any) -> dict[str, str]:
    """Return the parameters by name: a forest's own, and those of its trees where names differ."""
    own = {name: name for name in estimator._get_param_names()}
    if own.pop("estimator", None) is None:
        return own
    trees = estimator.estimator._get_param_names()
    full = {f"estimator__{name}": f"estimator__{name}" for name in trees}
    return {name: f"estimator__{name}" for name in trees} | full | own


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"{text!r} is not name=value", param_hint="--set")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()

"""Models by name, and the names of their parameters, without importing what trains them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

ModelChoice: TypeAlias = Literal[
    "ast", "st", "forest", "recall", "lom", "ova", "label-tree", "auto"
]
"""What ``train`` takes."""

CLASSES = {
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
    "auto": "AutoTreeClassifier",
}
MODELS = tuple(name for name in CLASSES if name != "auto")
"""What is compared: all names but that of a fit to a budget, those that ``train`` lacks too."""

_SOURCES = Path(__file__).parents[1] / "estimators"


@cache
def parameters_of(cls: str) -> frozenset[str]:
    """Return the parameters of an estimator's class: the arguments of its own constructor.

    They are read from its source, which takes milliseconds; to import it takes seconds.
    """
    for path in _SOURCES.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if f"\nclass {cls}(" in text:
            return frozenset(_arguments(ast.parse(text), cls))
    from thinleaf import estimators  # installed without sources

    return frozenset(getattr(estimators, cls)._get_param_names())


def _arguments(module: ast.Module, cls: str) -> list[str]:
    body = next(n.body for n in module.body if isinstance(n, ast.ClassDef) and n.name == cls)
    own = next(n for n in body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    return [argument.arg for argument in (*own.args.args, *own.args.kwonlyargs)][1:]


def names_of_model(model: str, given: Iterable[str] = ()) -> frozenset[str]:
    """Return the parameters that a model takes: of a forest also those of its trees.

    Parameters
    ----------
    model : str
    given : iterable of str
        The parameters that are to be set, on which the kind of a forest's trees depends.
    """
    names = parameters_of(CLASSES[model])
    if model != "forest":
        return names
    trees = parameters_of(CLASSES["st" if trees_are_fixed(given) else "ast"])
    return (names - {"estimator"}) | trees | {f"estimator__{name}" for name in trees}


def trees_are_fixed(given: Iterable[str]) -> bool:
    """Return whether the trees of a forest have a fixed depth."""
    return not {"depth", "leaf_classes", "estimator__depth"}.isdisjoint(given)


def check_parameters(model: str, given: Iterable[str]) -> None:
    """Raise ``ValueError`` for the first name that is no parameter of a model, with what may be."""
    given = list(given)
    known = names_of_model(model, given)
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return
    others = [
        f"--model {other}"
        for other in get_args(ModelChoice)
        if unknown in names_of_model(other, given)
    ]
    near = get_close_matches(unknown, known, n=1)
    if others:
        hint = f": use {' or '.join(others)}"
    elif near:
        hint = f": did you mean {near[0]!r}? It has {', '.join(sorted(known))}"
    else:
        hint = f"; it has {', '.join(sorted(known))}"
    raise ValueError(f"{CLASSES[model]} (model {model}) has no parameter {unknown!r}{hint}")

"""Small classification problems as users have them, and when two fitted models are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests import reference
from tests.strategies import FORMATS, blobs, dense_of
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    DoubleSamplingClassifier,
    FlatSoftmaxClassifier,
    MACHClassifier,
    OneVsAllClassifier,
    SoftmaxTreeClassifier,
    Tree,
)
from thinleaf.softmaxtree.objective import Objective, Penalty

formats = pytest.mark.parametrize("kind", FORMATS)

PENALTIES = {"router_l1": 0.05, "router_ridge": 0.5, "leaf_l1": 0.05, "leaf_ridge": 0.1}


def problem(seed: int = 0, kind: str = "dense", **options: Any) -> tuple[Any, np.ndarray]:
    """Return blobs as a float64 matrix or a scipy CSR matrix, and classes 0, 1, …"""
    data = blobs(seed, kind=kind, **options)
    return in_format(dense_of(data.X), kind), data.y


def in_format(X: np.ndarray, kind: str) -> Any:
    return X if kind == "dense" else sp.csr_matrix(X)


def quick(**params: Any) -> SoftmaxTreeClassifier:
    """Return a classifier that trains in milliseconds and whose leaves lack some classes."""
    defaults = {"depth": 2, "leaf_classes": 3, "max_sweeps": 4, "random_state": 0, "beta": 5.0}
    return SoftmaxTreeClassifier(**(defaults | PENALTIES | params))


def adaptive(**params: Any) -> AdaptiveSoftmaxTreeClassifier:
    """Return a classifier that grows three rounds, as in the paper, in a fraction of a second."""
    defaults = {
        "contraction": 0.7,
        "decisions": "training",
        "max_sweeps": 3,
        "expansion_sweeps": 3,
        "max_rounds": 3,
        "random_state": 0,
        "beta": 5.0,
    }
    return AdaptiveSoftmaxTreeClassifier(**(defaults | PENALTIES | params))


def baselines() -> dict[str, Any]:
    """Return the classifiers that trees are compared with, by name."""
    return {
        "flat": FlatSoftmaxClassifier(),
        "adagrad": FlatSoftmaxClassifier(solver="adagrad", n_passes=20, random_state=0),
        "one-vs-all": OneVsAllClassifier(),
        "mach": MACHClassifier(4, 5, random_state=0),
        "ds": DoubleSamplingClassifier(random_state=0),
    }


def objective_of(clf: SoftmaxTreeClassifier, X: Any, y: np.ndarray) -> float:
    """Return E of a fitted tree whose penalties were given, row by row, with unit weights."""
    objective = Objective(
        clf.absent,
        clf.beta,
        Penalty(clf.router_l1, clf.router_ridge),
        Penalty(clf.leaf_l1, clf.leaf_ridge),
    )
    dense = X.toarray() if sp.issparse(X) else X
    rows = dense.astype(np.float32)
    return reference.objective_of(clf.tree_, rows, y, np.ones(y.size), objective)


def assert_same_tree(a: Tree, b: Tree) -> None:
    """Equal to the last bit."""
    assert (a.n_features, a.n_classes) == (b.n_features, b.n_classes)
    for name, value in vars(a).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(b, name), err_msg=name, strict=True)


Classifier = SoftmaxTreeClassifier | AdaptiveSoftmaxTreeClassifier


def assert_same_model(a: Classifier, b: Classifier) -> None:
    """Equal to the last bit: the tree, how training went, and what absent classes get."""
    assert_same_tree(a.tree_, b.tree_)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert untimed(a.history_) == untimed(b.history_)
    for name in ("n_iter_", "best_sweep_", "best_round_", "ended_"):
        assert getattr(a, name, None) == getattr(b, name, None), name
    assert (a.coverage_, a.epsilon_) == (b.coverage_, b.epsilon_)
    assert (a.backoff_ is None) == (b.backoff_ is None)
    if a.backoff_ is not None:
        for name, value in vars(a.backoff_).items():
            np.testing.assert_array_equal(value, getattr(b.backoff_, name), err_msg=name)


def untimed(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history without what differs from run to run."""
    return [
        {
            key: untimed(value) if key == "sweeps" else value
            for key, value in record.items()
            if not key.endswith("seconds")
        }
        for record in history
    ]

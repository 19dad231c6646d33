"""From what users give to ``fit`` to rows, class ids and weights that can be trained on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from thinleaf._dtypes import PARAM, AnyArray
from thinleaf.arrays.checks import as_weights, class_ids
from thinleaf.arrays.rows import as_rows
from thinleaf.softmaxtree.solvers.problem import NodeSolution
from thinleaf.softmaxtree.tao import TrainingData, canonical


def read_training(
    estimator: BaseEstimator,
    X: Any,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    class_weight: Any = None,
    known: AnyArray | None = None,
) -> tuple[TrainingData, AnyArray]:
    """Return the rows with their class ids and weights, and the classes that these are of.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets the attributes that scikit-learn's validation sets.
    X, y, sample_weight
        Of ``fit``.
    class_weight : dict or "balanced", optional
    known : ndarray of shape (n_classes,), optional
        Classes of an earlier fit, which is continued.
    """
    X, labels = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=PARAM, reset=known is None
    )
    check_classification_targets(labels)
    weight = as_weights(sample_weight, labels.size)
    classes = np.unique(labels) if known is None else known
    ids = class_ids(classes, labels)
    if class_weight == "balanced":
        mass = np.bincount(ids, weights=weight, minlength=classes.size)
        weight = weight * (mass.sum() / np.count_nonzero(mass) / np.maximum(mass, 1e-300))[ids]
    elif class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, labels)
        as_weights(weight, ids.size)
    used = weight > 0.0
    if not used.all():
        X, ids, weight = X[used], ids[used], weight[used]
    return canonical(TrainingData(as_rows(X), ids, weight, classes.size)), classes


def warn_unsolved(solutions: Sequence[NodeSolution], max_newton: int) -> None:
    """Warn if some problems were not solved to the tolerance asked for."""
    n_left = sum(not solution.converged for solution in solutions)
    if n_left:
        warnings.warn(
            f"{n_left} of {len(solutions)} problems are not solved after {max_newton} Newton "
            "steps: raise max_newton, tol or ridge",
            ConvergenceWarning,
            stacklevel=3,
        )

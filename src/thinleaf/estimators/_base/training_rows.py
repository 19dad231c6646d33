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
from sklearn.utils.validation import check_X_y, validate_data

from thinleaf._dtypes import ACCUM, PARAM, AnyArray
from thinleaf.arrays.checks import as_weights, check_real, class_ids
from thinleaf.arrays.rows import as_rows
from thinleaf.softmaxtree.solvers.problem import NodeSolution
from thinleaf.softmaxtree.tao import TrainingData, canonical


def checked_training(
    estimator: BaseEstimator, X: Any, y: Any, *, reset: bool = True, hashed: bool = False
) -> tuple[Any, AnyArray]:
    """Return rows and labels that can be trained on; ``ValueError`` says what is wrong with them.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets the attributes that scikit-learn's validation sets.
    X, y
        Of ``fit``.
    reset : bool
        Whether these are the first rows; else they must have the features of the first ones.
    hashed : bool
        Whether rows may have any number of features, since these are hashed.
    """
    check_real(X)
    if y is not None:
        check_one_type(y)
        _check_missing(np.asarray(y))
    if hashed:
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=PARAM, estimator=estimator)
    else:
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=PARAM, reset=reset)
    check_labels(y)
    return X, np.asarray(y)


def check_labels(y: AnyArray) -> None:
    """Raise ``ValueError`` unless labels are those of classes, and none is missing."""
    _check_storable(y)
    if y.ndim == 1 and y.dtype.kind == "U" and y.size:
        return  # strings are classes: to sort them would take time
    _check_missing(y)
    try:
        with warnings.catch_warnings():  # that most labels are different is usual here
            warnings.filterwarnings("ignore", message="The number of unique classes")
            check_classification_targets(y)
    except TypeError as error:  # they cannot be sorted
        raise ValueError(f"labels must all be integers or all be strings: {error}") from error


def check_one_type(y: Any) -> None:
    """Raise ``ValueError`` if some labels are strings, of which NumPy would make all of them."""
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return
    labels = y.tolist() if hasattr(y, "tolist") else y
    if not isinstance(labels, list | tuple):
        return
    types = {type(label) for label in labels}
    strings = {kind for kind in types if issubclass(kind, str)}
    if not strings or strings == types:
        return
    _check_missing(np.array([*labels, None], dtype=object)[:-1])
    others = ", ".join(sorted(kind.__name__ for kind in types - strings))
    raise ValueError(
        f"labels must all be integers or all be strings: some are str, others {others}; make "
        "strings of all of them, or numbers"
    )


_LARGEST = np.iinfo(np.int64).max
_SURROGATES = (0xD800, 0xDFFF)


def _check_storable(y: AnyArray) -> None:
    """Raise ``ValueError`` for labels that no model file can hold: better now than when saving."""
    if y.dtype.kind == "u" and y.size and int(y.max()) > _LARGEST:
        raise ValueError(f"labels must be below 2^63, got {int(y.max())}: make strings of them")
    if y.dtype.kind == "U" and y.dtype.itemsize and y.size:
        codes = np.ascontiguousarray(y).view(np.uint32)
        odd = bool(np.any((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])))
    else:
        odd = y.dtype.kind == "O" and any(
            isinstance(label, str) and not _is_unicode(label) for label in y.ravel().tolist()
        )
    if odd:
        raise ValueError("a label has half of a surrogate pair, which no file holds: mend it")


def _is_unicode(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_missing(y: AnyArray) -> None:
    if y.dtype.kind not in "Of":
        return
    missing = [i for i, label in enumerate(y.ravel().tolist()) if _is_missing(label)]
    if missing:
        raise ValueError(
            f"y has missing labels (None or NaN): {len(missing)}, the first in row {missing[0]}; "
            "leave these rows out, or give them a label of their own"
        )


def _is_missing(label: Any) -> bool:
    nan = isinstance(label, float) and label != label
    return label is None or nan or type(label).__name__ in ("NAType", "NaTType")


def check_magnitude(X: Any) -> None:
    """Raise ``ValueError`` if the squared length of a checked row is too large for float32."""
    values = X.data if hasattr(X, "indptr") else X
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    limit = float(np.finfo(PARAM).max)
    if largest**2 * X.shape[1] <= limit:
        return
    wide = X.astype(ACCUM)
    squares = (wide.multiply(wide) if hasattr(X, "indptr") else np.square(wide)).sum(axis=1)
    if np.max(squares) > limit:
        raise ValueError(
            f"X has values as large as {largest:.3g}, whose squares overflow in training: scale "
            "the features, for example with sklearn.preprocessing.MaxAbsScaler"
        )


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
    X, labels = checked_training(estimator, X, y, reset=known is None)
    check_magnitude(X)
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
            stacklevel=5,
        )

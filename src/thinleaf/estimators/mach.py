"""MACH, which hashes classes into buckets, as a scikit-learn classifier."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thinleaf.arrays.rows import mean_square_norm
from thinleaf.baselines.mach import Mach, Merge, as_probabilities, draw_buckets
from thinleaf.baselines.scoring import ScoringPredictor
from thinleaf.estimators._base.classifier import SparseInputClassifier
from thinleaf.estimators._base.documented import Documented
from thinleaf.estimators._base.executors import EXECUTORS
from thinleaf.estimators._base.one_leaf import CLASS_WEIGHT, SOLVING, penalty_of
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.tao_classifier import LEAF_RIDGE
from thinleaf.estimators._base.training_rows import read_training, warn_unsolved
from thinleaf.execution import ExecutorChoice, executor_for
from thinleaf.softmaxtree.solvers.problem import Precision

_FLOOR = 1e-3
"""No class has less than this share of what all would have if they had the same probability."""


class MACHClassifier(SparseInputClassifier, Documented):
    """R softmaxes over B buckets of classes, merged as in a count-min sketch.

    A model of K classes has R·B outputs instead of K: smaller and faster to train where K is large.
    A prediction merges R numbers for each of the K classes.

    It is no tree, so it can neither be frozen nor written to a model file; pickle it.

    Parameters
    ----------
    n_buckets : int, optional
        B, at least 2. By default 2·√K, at most K.
    n_repetitions : int
        R.
    merge : {"mean", "median", "min"}
        How the probabilities of a class's buckets become its score: the paper's unbiased estimate
        from their mean, their median, or their minimum as in a count-min sketch.
    l1 : float
        ℓ₁ penalty on the sum of losses of each softmax.
    ridge : float, optional
        Ridge penalty, ``ridge/2·‖W‖²`` on the sum of losses. By default 0.005 times the mean
        squared length of the rows, as for the leaves of trees.
    tol : float
        Precision of each softmax, relative to the loss of the best constant model.
    max_newton : int
        Newton steps at the most in each softmax.
    class_weight : dict or "balanced", optional
    random_state : int, RandomState or None
        Of the buckets.
    n_jobs : int, optional
        Threads; -1 is all cores. The result does not depend on it.
    executor : {"threads", "ray", "joblib"} or object
        Where softmaxes are fitted; see :class:`SoftmaxTreeClassifier`.

    Attributes
    ----------
    model_ : Mach
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import MACHClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MACHClassifier(n_buckets=4, n_repetitions=6, random_state=0).fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.8
    True
    """

    _parameter_constraints: dict[str, list[Any]] = (
        SOLVING
        | CLASS_WEIGHT
        | {
            "n_buckets": [Interval(Integral, 2, None, closed="left"), None],
            "n_repetitions": [Interval(Integral, 1, None, closed="left")],
            "merge": [StrOptions(set(get_args(Merge)))],
            "random_state": ["random_state"],
            "n_jobs": [Integral, None],
            "executor": EXECUTORS,
        }
    )

    model_: Mach

    def __init__(
        self,
        n_buckets: int | None = None,
        n_repetitions: int = 8,
        *,
        merge: Merge = "mean",
        l1: float = 0.01,
        ridge: float | None = None,
        tol: float = 1e-3,
        max_newton: int = 50,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: ExecutorChoice = "threads",
    ) -> None:
        self.n_buckets = n_buckets
        self.n_repetitions = n_repetitions
        self.merge = merge
        self.l1 = l1
        self.ridge = ridge
        self.tol = tol
        self.max_newton = max_newton
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Draw buckets and train a softmax for each repetition."""
        data, classes = read_training(self, X, y, sample_weight, self.class_weight)
        rng = np.random.default_rng(seed_sequence(self.random_state))
        wanted = self.n_buckets or math.ceil(2.0 * math.sqrt(classes.size))
        n_buckets = min(wanted, classes.size)
        buckets = draw_buckets(classes.size, n_buckets, self.n_repetitions, rng)
        penalty = penalty_of(self.l1, self.ridge, LEAF_RIDGE * mean_square_norm(data.X))
        precision = Precision(self.tol, self.max_newton)
        with executor_for(self.n_jobs, self.executor) as executor:
            model, solutions = Mach.fit(data, buckets, penalty, precision, executor)
        warn_unsolved(solutions, self.max_newton)
        self.model_ = model
        self.classes_ = classes

    @property
    def nbytes_(self) -> int:
        """Bytes of the arrays that prediction uses."""
        return self.model_.nbytes

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction, those of all softmaxes."""
        return self.model_.mean_flops(self._rows(X))

    @property
    def _predictor(self) -> ScoringPredictor:
        check_is_fitted(self)
        scores = partial(self.model_.scores, merge=self.merge)
        floored = partial(as_probabilities, floor=_FLOOR / self.classes_.size)
        return ScoringPredictor(self.classes_, self.n_features_in_, scores, floored, self.nbytes_)

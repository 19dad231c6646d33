"""One-vs-all, K binary problems, as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy.typing as npt

from thinleaf.baselines.linear import one_vs_all
from thinleaf.estimators._base.executors import EXECUTORS
from thinleaf.estimators._base.one_leaf import CLASS_WEIGHT, SOLVING, BaseLinearClassifier
from thinleaf.estimators._base.tao_classifier import ROUTER_RIDGE
from thinleaf.estimators._base.training_rows import warn_unsolved
from thinleaf.execution import ExecutorChoice, executor_for


class OneVsAllClassifier(BaseLinearClassifier):
    """A binary logistic regression for each class against all others; the highest score wins.

    The K problems are independent of each other and run in threads. As in a flat softmax, a
    prediction costs K·D multiplications. :class:`~thinleaf.OnlineOneVsAllClassifier` learns such
    regressors from a stream.

    Parameters
    ----------
    l1 : float
        ℓ₁ penalty on the sum of losses of each binary problem.
    ridge : float, optional
        Ridge penalty, ``ridge/2·‖w‖²`` on the sum of losses. By default 0.1 times the mean squared
        length of the rows, as for the routers of trees, which are such problems too.
    tol : float
        Precision of each problem, relative to the loss of the best constant model.
    max_newton : int
        Newton steps at the most in each problem.
    class_weight : dict or "balanced", optional
    n_jobs : int, optional
        Threads; -1 is all cores. The result does not depend on it.
    executor : {"threads", "ray", "joblib"} or object
        Where problems are solved; see :class:`SoftmaxTreeClassifier`.

    Attributes
    ----------
    tree_ : Tree
        With one leaf, whose scores are the log-odds of the binary problems.
    classes_ : ndarray of shape (n_classes,)
    history_ : list of dict
        The objective of each class's problem, the number of steps and whether they were enough.
    n_iter_ : int
        Newton steps, of the problem with the most.
    coverage_ : float
        1: no class is outside.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Notes
    -----
    Probabilities are the odds p/(1 - p) of the binary problems, divided by their sum: the softmax
    of the log-odds. Binary problems do not know of each other, so this is not calibrated.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import OneVsAllClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = OneVsAllClassifier().fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.85
    True
    """

    _parameter_constraints: dict[str, list[Any]] = (
        SOLVING | CLASS_WEIGHT | {"n_jobs": [Integral, None], "executor": EXECUTORS}
    )

    def __init__(
        self,
        *,
        l1: float = 0.01,
        ridge: float | None = None,
        tol: float = 1e-4,
        max_newton: int = 50,
        class_weight: Any = None,
        n_jobs: int | None = None,
        executor: ExecutorChoice = "threads",
    ) -> None:
        self.l1 = l1
        self.ridge = ridge
        self.tol = tol
        self.max_newton = max_newton
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.executor = executor

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train one regressor a class."""
        data, classes = self._read(X, y, sample_weight)
        penalty = self._penalty(data, ROUTER_RIDGE)
        with executor_for(self.n_jobs, self.executor) as executor:
            tree, solutions = one_vs_all(data, penalty, self._precision(), executor)
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        history = [
            {"objective": s.objective, "n_iter": s.n_iter, "converged": s.converged}
            for s in solutions
        ]
        warn_unsolved(solutions, self.max_newton)
        self._keep(tree, data, classes, history)

"""The flat softmax that trees are compared with, as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf.baselines.adagrad import Steps, descend
from thinleaf.baselines.linear import flat_softmax
from thinleaf.estimators._base.one_leaf import CLASS_WEIGHT, SOLVING, BaseLinearClassifier
from thinleaf.estimators._base.progress import PassLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.tao_classifier import LEAF_RIDGE
from thinleaf.estimators._base.training_rows import warn_unsolved
from thinleaf.execution import executor_for
from thinleaf.model.tree import Tree


class FlatSoftmaxClassifier(BaseLinearClassifier):
    """One softmax over all K classes: what a tree avoids, and a tree of depth 0.

    A prediction costs K·D multiplications, and the model is a block of D·K weights.

    Parameters
    ----------
    solver : {"newton", "adagrad"}
        The solver of the trees' leaves, which minimises the penalised loss; or mini-batches with
        AdaGrad, without penalties, which takes seconds a pass where thousands of classes would take
        the other minutes or hours.
    l1 : float
        newton: ℓ₁ penalty on the sum of losses.
    ridge : float, optional
        newton: ridge penalty, ``ridge/2·‖W‖²`` on the sum of losses. By default 0.005 times the
        mean squared length of the rows, as for the leaves of trees.
    tol : float
        newton: precision, relative to the loss of the best constant model.
    max_newton : int
        newton: steps at the most.
    n_passes : int
        adagrad: passes over the rows.
    batch_size : int
        adagrad: rows a step.
    learning_rate : float
        adagrad: the length of steps.
    class_weight : dict or "balanced", optional
    random_state : int, RandomState or None
        adagrad: of the order of the rows. newton is deterministic.
    n_jobs : int, optional
        Threads of predictions of batches; -1 is all cores. Training takes one.
    verbose : int
        adagrad: 1 shows the loss of each pass on standard error.

    Attributes
    ----------
    tree_ : Tree
        With one leaf.
    classes_ : ndarray of shape (n_classes,)
    history_ : list of dict
        newton: one with the objective, the number of steps and whether they were enough. adagrad:
        number and mean loss of each pass.
    n_iter_ : int
        Newton steps, or passes.
    coverage_ : float
        1: no class is outside.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import FlatSoftmaxClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = FlatSoftmaxClassifier().fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.85
    True
    >>> clf.freeze().n_leaves
    1
    """

    _parameter_constraints: dict[str, list[Any]] = (
        SOLVING
        | CLASS_WEIGHT
        | {
            "solver": [StrOptions({"newton", "adagrad"})],
            "n_passes": [Interval(Integral, 1, None, closed="left")],
            "batch_size": [Interval(Integral, 1, None, closed="left")],
            "learning_rate": [Interval(Real, 0, None, closed="neither")],
            "random_state": ["random_state"],
            "n_jobs": [Integral, None],
            "verbose": ["verbose"],
        }
    )

    def __init__(
        self,
        *,
        solver: Literal["newton", "adagrad"] = "newton",
        l1: float = 0.01,
        ridge: float | None = None,
        tol: float = 1e-4,
        max_newton: int = 50,
        n_passes: int = 8,
        batch_size: int = 1024,
        learning_rate: float = 1.0,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.solver = solver
        self.l1 = l1
        self.ridge = ridge
        self.tol = tol
        self.max_newton = max_newton
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train the softmax."""
        data, classes = self._read(X, y, sample_weight)
        tree: Tree
        with executor_for(1):  # linear algebra on one thread, so that sums are the same everywhere
            if self.solver == "newton":
                penalty = self._penalty(data, LEAF_RIDGE)
                tree, solution = flat_softmax(data, penalty, self._precision())
                self.n_iter_ = solution.n_iter
                history = [
                    {
                        "objective": solution.objective,
                        "n_iter": solution.n_iter,
                        "converged": solution.converged,
                    }
                ]
                warn_unsolved([solution], self.max_newton)
            else:
                rng = np.random.default_rng(seed_sequence(self.random_state))
                steps = Steps(self.n_passes, self.batch_size, self.learning_rate)
                lines = PassLines(type(self).__name__, self.n_passes) if self.verbose else None
                tree, records = descend(data, steps, rng, lines)
                self.n_iter_ = len(records)
                history = [asdict(record) for record in records]
        self._keep(tree, data, classes, history)

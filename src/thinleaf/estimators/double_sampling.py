"""(π, κ)-double sampling, a reduction to one binary problem, as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import AccumArray
from thinleaf.baselines.double_sampling import Scorer, draw_pairs, fit_weights, joint_map
from thinleaf.baselines.scoring import ScoringPredictor
from thinleaf.estimators._base.classifier import SparseInputClassifier
from thinleaf.estimators._base.documented import Documented
from thinleaf.estimators._base.one_leaf import SOLVING
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.training_rows import read_training, warn_unsolved
from thinleaf.execution import executor_for
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import Precision


class DoubleSamplingClassifier(SparseInputClassifier, Documented):
    """(π, κ)-DS: one binary classifier over few features of a row and a class together.

    Training is fast for any number of classes, and rare classes count as much as frequent ones. The
    model is little more than counts of terms by class, and its accuracy is modest. Meant for texts,
    as sparse rows; dense rows are compared with the means of classes.

    It is no tree, so it can neither be frozen nor written to a model file; pickle it.

    Parameters
    ----------
    n_examples : int
        π: rows that are drawn of each class, at the most.
    n_adversaries : int
        κ: classes that each of them is paired with.
    l1 : float
        ℓ₁ penalty on the sum of losses of the binary problem.
    ridge : float
        Ridge penalty, ``ridge/2·‖w‖²`` on the sum of losses.
    tol : float
        Precision, relative to the loss of the best constant model.
    max_newton : int
        Newton steps at the most.
    random_state : int, RandomState or None
        Of the pairs.

    Attributes
    ----------
    w_ : ndarray of shape (n_joint,)
        Weights of the joint features; see :mod:`thinleaf.baselines.double_sampling`.
    scorer_ : Scorer
        Scores rows with all classes.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Notes
    -----
    The binary problem gives log-odds of one class against another one as a difference of scores.
    Probabilities are the softmax of the scores, which has those odds.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import DoubleSamplingClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DoubleSamplingClassifier(random_state=0).fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.8
    True
    """

    _parameter_constraints: dict[str, list[Any]] = SOLVING | {
        "n_examples": [Interval(Integral, 1, None, closed="left")],
        "n_adversaries": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    scorer_: Scorer

    def __init__(
        self,
        n_examples: int = 10,
        n_adversaries: int = 20,
        *,
        l1: float = 0.0,
        ridge: float = 1.0,
        tol: float = 1e-4,
        max_newton: int = 50,
        random_state: Any = None,
    ) -> None:
        self.n_examples = n_examples
        self.n_adversaries = n_adversaries
        self.l1 = l1
        self.ridge = ridge
        self.tol = tol
        self.max_newton = max_newton
        self.random_state = random_state

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Draw pairs of rows and classes, and train the binary classifier."""
        data, classes = read_training(self, X, y, sample_weight)
        rng = np.random.default_rng(seed_sequence(self.random_state))
        joint = joint_map(data)
        pairs = draw_pairs(data, self.n_examples, self.n_adversaries, rng)
        penalty, precision = Penalty(self.l1, self.ridge), Precision(self.tol, self.max_newton)
        with executor_for(1):  # linear algebra on one thread, so that sums are the same everywhere
            w, solutions = fit_weights(joint, data, pairs, penalty, precision)
        warn_unsolved(solutions, self.max_newton)
        self.w_ = w
        self.scorer_ = joint.scorer(self.w_)
        self.classes_ = classes

    @property
    def nbytes_(self) -> int:
        """Bytes of the arrays that prediction uses."""
        return self.scorer_.nbytes

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction."""
        return self.scorer_.mean_flops(self._rows(X))

    @property
    def _predictor(self) -> ScoringPredictor:
        check_is_fitted(self)
        scores = self.scorer_.scores
        return ScoringPredictor(self.classes_, self.n_features_in_, scores, _softmax, self.nbytes_)


def _softmax(scores: AccumArray) -> AccumArray:
    P: AccumArray = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P

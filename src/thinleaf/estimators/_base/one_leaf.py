"""What flat softmax and one-vs-all have in common: a single leaf over all classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.rows import CSR, mean_square_norm
from thinleaf.estimators._base.storable import training_summary
from thinleaf.estimators._base.training_rows import read_training
from thinleaf.estimators._base.tree_classifier import BaseTreeClassifier
from thinleaf.model.importance import feature_spread
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import TrainingData

SOLVING: dict[str, list[Any]] = {
    "l1": [Interval(Real, 0, None, closed="left")],
    "ridge": [Interval(Real, 0, None, closed="left"), None],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_newton": [Interval(Integral, 1, None, closed="left")],
}
"""Parameters of all baselines: how our solvers solve their problems."""

CLASS_WEIGHT: dict[str, list[Any]] = {"class_weight": [dict, StrOptions({"balanced"}), None]}


class BaseLinearClassifier(BaseTreeClassifier):
    """A tree of one leaf.

    No class is outside the leaf: coverage is one, and there is nothing to back off to.
    """

    l1: float
    ridge: float | None
    tol: float
    max_newton: int
    class_weight: Any

    def _read(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None
    ) -> tuple[TrainingData, AnyArray]:
        return read_training(self, X, y, sample_weight, self.class_weight)

    def _penalty(self, data: TrainingData, default: float) -> Penalty:
        return penalty_of(self.l1, self.ridge, default * mean_square_norm(data.X))

    def _precision(self) -> Precision:
        return Precision(self.tol, self.max_newton)

    def _keep(
        self, tree: Tree, data: TrainingData, classes: AnyArray, history: list[dict[str, Any]]
    ) -> None:
        """Take over what was fitted."""
        self.classes_ = classes
        self.tree_ = tree
        self.sparse_input_ = isinstance(data.X, CSR)
        self.node_weight_ = np.array([float(data.weight.sum())])
        self.feature_spread_ = feature_spread(data.X)
        self.coverage_ = 1.0
        self.backoff_ = None
        self.epsilon_ = 0.0
        self.history_ = history
        self._trained_with = training_summary(self)


def penalty_of(l1: float, ridge: float | None, default: float) -> Penalty:
    """Return the penalty with a ridge term that follows the scale of the input if none is given."""
    return Penalty(l1, default if ridge is None else ridge)

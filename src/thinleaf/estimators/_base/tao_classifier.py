"""What the Softmax Tree and the Adaptive Softmax Tree have in common: all but the structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf._dtypes import INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.rows import CSR, Rows, mean_square_norm
from thinleaf.estimators._base.executors import EXECUTORS
from thinleaf.estimators._base.large_fits import BaseLargeFits
from thinleaf.estimators._base.storable import training_summary
from thinleaf.estimators._base.training_rows import read_training
from thinleaf.estimators._base.updating import UpdatingClassifier
from thinleaf.execution import ExecutorChoice
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.importance import feature_spread
from thinleaf.model.probability import Backoff, tune_epsilon
from thinleaf.model.routing import leaf_of_rows, losses, route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.hierarchy import Hierarchy
from thinleaf.softmaxtree.growth.initial_tree import Init, Way
from thinleaf.softmaxtree.growth.memory import Memory
from thinleaf.softmaxtree.objective import Absent, Objective, Penalty
from thinleaf.softmaxtree.parts.join import weight_of_nodes
from thinleaf.softmaxtree.parts.partition import GUEST_FLOOR
from thinleaf.softmaxtree.solvers.problem import Precision
from thinleaf.softmaxtree.tao import Settings, TrainingData

DENSE_OVERLAP = 0.05
SPARSE_OVERLAP = 0.01
L1 = 0.01
ROUTER_RIDGE = 0.1
LEAF_RIDGE = 0.005


class BaseTaoClassifier(UpdatingClassifier, BaseLargeFits):
    """Reading data, objective and probabilities of the trees that TAO trains.

    Parameters are those of :class:`~thinleaf.SoftmaxTreeClassifier`.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "init": [StrOptions({"auto", *get_args(Init)})],
        "hierarchy": [Mapping, None],
        "router_l1": [Interval(Real, 0, None, closed="left"), None],
        "leaf_l1": [Interval(Real, 0, None, closed="left"), None],
        "router_ridge": [Interval(Real, 0, None, closed="left"), None],
        "leaf_ridge": [Interval(Real, 0, None, closed="left"), None],
        "absent": [StrOptions({"constant", "zero_one", "drop"})],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "overlap": [Interval(Real, 0, 0.5, closed="right"), StrOptions({"auto"}), None],
        "monotone": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_newton": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "zero_probability": [StrOptions({"backoff", "epsilon", "none"})],
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "keep_rows": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "executor": EXECUTORS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        init: Init | Tree | Literal["auto"],
        hierarchy: Mapping[Any, Any] | None,
        router_l1: float | None,
        leaf_l1: float | None,
        router_ridge: float | None,
        leaf_ridge: float | None,
        absent: Absent,
        beta: float,
        overlap: float | Literal["auto"] | None,
        monotone: bool,
        tol: float,
        max_newton: int,
        validation_fraction: float | None,
        patience: int,
        zero_probability: str,
        epsilon: float | None,
        keep_rows: int | Literal["auto"],
        class_weight: Any,
        max_memory: int | str | None,
        random_state: Any,
        n_jobs: int | None,
        executor: ExecutorChoice,
        verbose: int,
    ) -> None:
        self.init = init
        self.hierarchy = hierarchy
        self.router_l1 = router_l1
        self.leaf_l1 = leaf_l1
        self.router_ridge = router_ridge
        self.leaf_ridge = leaf_ridge
        self.absent = absent
        self.beta = beta
        self.overlap = overlap
        self.monotone = monotone
        self.tol = tol
        self.max_newton = max_newton
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.zero_probability = zero_probability
        self.epsilon = epsilon
        self.keep_rows = keep_rows
        self.class_weight = class_weight
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor
        self.verbose = verbose

    # -- before training ---------------------------------------------------------------------------

    def _check_combinations(self) -> None:
        if self.monotone and self.absent == "drop":
            raise ValueError(
                "monotone=True needs a finite loss for absent classes: use absent='constant' or "
                "'zero_one'"
            )
        if self.monotone and self.overlap is not None:
            raise ValueError(
                "monotone=True needs overlap=None: nodes that also learn from rows beside their "
                "path do not minimise the objective"
            )
        if (
            self.zero_probability == "epsilon"
            and self.epsilon is None
            and self.validation_fraction is None
        ):
            raise ValueError(
                "zero_probability='epsilon' needs epsilon, or validation_fraction to tune it on"
            )

    def _check_in_parts(self) -> None:
        if self.monotone:
            raise ValueError(
                "monotone=True is for rows that are trained on together: these take more than "
                "max_memory allows"
            )
        if self.zero_probability == "epsilon" and self.epsilon is None:
            raise ValueError("give epsilon: rows that take more than max_memory do not choose it")

    def _held_share(self) -> float | None:
        """Return the share of rows that decide in a fit part by part."""
        return self.validation_fraction

    def _part_floor(self, X: Rows) -> float | None:
        """Return the smallest path probability of guests of a part; None: there are none."""
        if self.overlap is None:
            return None
        return GUEST_FLOOR if self.overlap == "auto" else max(GUEST_FLOOR, float(self.overlap))

    def _read(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        known: AnyArray | None = None,
    ) -> tuple[TrainingData, AnyArray]:
        """Return the rows with their class ids and weights, and the classes that these are of."""
        data, classes = read_training(self, X, y, sample_weight, self.class_weight, known)
        if self.hierarchy is not None:
            self._hierarchy = Hierarchy.of(self.hierarchy, classes)
        return data, classes

    @classmethod
    def _for_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return parameters without hierarchy and tree to start from, which belong to the data."""
        init = parameters["init"]
        return parameters | {"hierarchy": None, "init": "auto" if isinstance(init, Tree) else init}

    def _split(
        self, data: TrainingData, seed: np.random.SeedSequence
    ) -> tuple[TrainingData, TrainingData | None]:
        if self.validation_fraction is None:
            return data, None
        n_held = round(self.validation_fraction * data.n_rows)
        if not 0 < n_held < data.n_rows:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves no rows to train or to "
                f"validate on: there are {data.n_rows}"
            )
        order = np.random.default_rng(seed).permutation(data.n_rows)
        return data.take(np.sort(order[n_held:])), data.take(np.sort(order[:n_held]))

    def _init(self, data: TrainingData) -> Way:
        if self.hierarchy is not None:
            return self._hierarchy
        if self.init != "auto" and not isinstance(self.init, Tree):
            return self.init
        return "balanced_clusters" if isinstance(data.X, CSR) else "pca_median"

    def _settings(self, data: TrainingData, leaf_limits: IndexArray) -> Settings:
        """Return settings in the units of the input."""
        scale = mean_square_norm(data.X)
        router_ridge = ROUTER_RIDGE * scale if self.router_ridge is None else self.router_ridge
        leaf_ridge = LEAF_RIDGE * scale if self.leaf_ridge is None else self.leaf_ridge
        objective = Objective(
            self.absent,
            self.beta,
            Penalty(L1 if self.router_l1 is None else self.router_l1, router_ridge),
            Penalty(L1 if self.leaf_l1 is None else self.leaf_l1, leaf_ridge),
        )
        precision = Precision(self.tol, self.max_newton)
        overlap = self.overlap
        if overlap == "auto":
            overlap = SPARSE_OVERLAP if isinstance(data.X, CSR) else DENSE_OVERLAP
        return Settings(objective, leaf_limits, precision, self.monotone, overlap)

    # -- after training ----------------------------------------------------------------------------

    def _finish(
        self,
        tree: Tree,
        data: TrainingData,
        held: TrainingData | None,
        outside_scale: float = 1.0,
        epsilon: float | None = None,
    ) -> None:
        """Take over a pruned tree, and estimate what classes outside its leaves get.

        How much that is on rows that were not fitted is known from ``held``, or is
        ``outside_scale`` times what fitted rows say; ``epsilon`` is that of such rows.
        """
        tree.validate()
        reach = route(tree, data.X)
        self.tree_ = tree
        self.sparse_input_ = isinstance(data.X, CSR)
        self.node_weight_ = weight_of_nodes(reach, data.weight)
        self.feature_spread_ = feature_spread(data.X)
        absent = np.isinf(losses(tree, data.X, data.y, reach)[0])
        self.coverage_ = 1.0 - float(data.weight[absent].sum() / data.weight.sum())
        self.backoff_ = None
        self.epsilon_ = 0.0
        if self.zero_probability == "backoff":
            backoff = Backoff.estimate(tree, reach, data.y, data.weight)
            if outside_scale != 1.0:
                backoff = backoff.capped(tree, outside_scale)
            self.backoff_ = backoff if held is None else _calibrated(backoff, tree, held)
        elif self.zero_probability == "epsilon":
            self.epsilon_ = epsilon or self.epsilon or tuned_epsilon(tree, held)
        self.__dict__.pop("update_", None)
        self.__dict__.pop("memory_", None)
        if self.keep_rows != 0:
            self.memory_ = Memory.of(data, self.keep_rows)
        self._trained_with = training_summary(self)

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays, fitted = super()._stored()
        return arrays | self._memory_arrays(), fitted

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        super()._restore(arrays, fitted, model)
        self._restore_memory(arrays, model)

    # -- going on ----------------------------------------------------------------------------------

    def _members(self) -> Sequence[BaseTaoClassifier]:
        return [self]

    def _take_members(self, members: list[BaseTaoClassifier]) -> None:
        self.__dict__.update(vars(members[0]))

    def _settings_for_update(self, data: TrainingData) -> tuple[Settings, float]:
        """Return the settings of the training, and what scores of leaves were multiplied by."""
        return self._settings(data, np.empty(0, INDEX)), 1.0


def _calibrated(backoff: Backoff, tree: Tree, held: TrainingData) -> Backoff:
    """Scale the outside masses so that on held-out rows they are right on average."""
    reach = route(tree, held.X)
    absent = np.isinf(losses(tree, held.X, held.y, reach)[0])
    expected = held.weight @ backoff.mass[leaf_of_rows(tree, reach)]
    observed = held.weight[absent].sum() + 0.5 * held.weight.mean()
    return backoff.capped(tree, scale=float(observed / max(expected, 1e-12)))


def tuned_epsilon(tree: Tree, held: TrainingData | None) -> float:
    """Return the ε that suits held-out rows best."""
    assert held is not None  # _check_combinations saw to it
    reach = route(tree, held.X)
    probability = np.exp(-losses(tree, held.X, held.y, reach)[0])
    sizes = np.diff(tree.class_ptr)[leaf_of_rows(tree, reach)]
    absent: AccumArray = (held.n_classes - sizes).astype(np.float64)
    return tune_epsilon(probability, absent, held.weight)

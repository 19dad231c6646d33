"""The Softmax Tree of paper 001 as a scikit-learn classifier."""

from __future__ import annotations

import math
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from thinleaf._dtypes import INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.estimators.base import BaseTreeClassifier
from thinleaf.estimators.inputs import as_rows, as_weights, class_ids, mean_square_norm
from thinleaf.estimators.progress import SweepBar
from thinleaf.execution import Executor, executor_for
from thinleaf.growth.init import Init, InitialTree, initial_tree
from thinleaf.growth.prune import prune
from thinleaf.inference import leaf_of_rows, losses, route
from thinleaf.kernels.rows import CSR
from thinleaf.objective import Absent, Objective, Penalty
from thinleaf.probability import Backoff, tune_epsilon
from thinleaf.solvers.problem import Precision
from thinleaf.tao import (
    Settings,
    TaoResult,
    TrainingData,
    Validation,
    canonical,
    optimize,
)

_ROUTER_RIDGE = 0.2
_LEAF_RIDGE = 0.005
_ROWS_PER_LEAF = 100


class SoftmaxTreeClassifier(BaseTreeClassifier):
    """A tree of sparse hyperplanes with a small softmax in each leaf, of fixed depth.

    Trained by Tree Alternating Optimization: sweeps over the tree, each of which fits every leaf to
    the rows that reach it and every router to send its rows to the child that does better.

    Parameters
    ----------
    depth : int, optional
        Depth of the complete tree that training starts from; 0 is a flat softmax. By default
        log₂ K for dense and half of that for sparse input, K being the number of classes, but never
        so deep that a leaf has fewer than 100 rows on average.
    leaf_classes : int, optional
        The most classes that a leaf may hold: k. By default four times its fair share K/2^depth,
        and at least 8.
    init : {"auto", "random", "random_median", "pca_median", "class_clusters", "row_clusters", \
"balanced_clusters"}
        The initial tree: random hyperplanes; splits at the median along a random or the first
        principal direction; paper 001's greedy merging of k-means clusters of class means or of
        rows; or classes halved from the root down by spherical 2-means. ``"auto"`` is
        ``"pca_median"`` for dense and ``"balanced_clusters"`` for sparse input.
    max_sweeps : int
        Sweeps at the most; training stops earlier if a sweep changes nothing.
    router_l1, leaf_l1 : float
        ℓ₁ penalties λ and μ on the sum of losses; they make weights sparse.
    router_ridge, leaf_ridge : float, optional
        Ridge penalties, ``ridge/2·‖w‖²`` on the sum of losses. By default 0.2 and 0.005 times the
        mean squared length of the rows, so that they follow the scale of the input.
    absent : {"constant", "zero_one", "drop"}
        Loss of a row whose class is not in the leaf it reaches: the constant ``beta``; 0/1 loss for
        all rows; or none, routers then ignore such rows (the paper finds that this fails).
    beta : float
        The constant.
    monotone : bool
        Take a node's new parameters only if they do not raise the objective. Safe, but it settles
        for worse trees.
    tol : float
        Precision of node problems, relative to the loss of the best constant model.
    max_newton : int
        Newton steps at the most in a node problem; the next sweep goes on from there.
    validation_fraction : float, optional
        Share of the rows held out. The tree with the lowest error on them is kept, and training
        stops after ``patience`` sweeps without a lower one; by default, that with the lowest
        objective.
    patience : int
        Used with ``validation_fraction``.
    zero_probability : {"backoff", "epsilon", "none"}
        What classes outside a leaf get: a share of the leaf's estimated outside mass; ``epsilon``
        each, renormalised; or zero.
    epsilon : float, optional
        For ``zero_probability="epsilon"``. By default it is tuned on the validation part.
    class_weight : dict or "balanced", optional
    warm_start : bool
        Go on from the tree of the previous fit instead of an initial tree.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; -1 is all cores. The result does not depend on it.
    verbose : int
        1 shows progress on standard error.

    Attributes
    ----------
    tree_ : Tree
        The trained tree, without dead, pure and redundant parts.
    classes_ : ndarray of shape (n_classes,)
    history_ : list of dict
        One a sweep: sweep, objective, train_error, validation_error, n_solved, seconds.
    best_sweep_ : int
        The sweep whose tree was kept; 0 if none was better than the tree before.
    n_iter_ : int
        Sweeps done.
    coverage_ : float
        Share of training weight whose class is in the leaf that the row reaches.
    backoff_ : Backoff or None
    epsilon_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import SoftmaxTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxTreeClassifier(depth=2, leaf_classes=6, random_state=0).fit(X, y)
    >>> clf.tree_.n_leaves
    4
    >>> clf.score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "depth": [Interval(Integral, 0, 24, closed="both"), None],
        "leaf_classes": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"auto", *get_args(Init)})],
        "max_sweeps": [Interval(Integral, 1, None, closed="left")],
        "router_l1": [Interval(Real, 0, None, closed="left")],
        "leaf_l1": [Interval(Real, 0, None, closed="left")],
        "router_ridge": [Interval(Real, 0, None, closed="left"), None],
        "leaf_ridge": [Interval(Real, 0, None, closed="left"), None],
        "absent": [StrOptions({"constant", "zero_one", "drop"})],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "monotone": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_newton": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "zero_probability": [StrOptions({"backoff", "epsilon", "none"})],
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        depth: int | None = None,
        leaf_classes: int | None = None,
        *,
        init: Init | Literal["auto"] = "auto",
        max_sweeps: int = 30,
        router_l1: float = 0.01,
        leaf_l1: float = 0.01,
        router_ridge: float | None = None,
        leaf_ridge: float | None = None,
        absent: Absent = "constant",
        beta: float = 10.0,
        monotone: bool = False,
        tol: float = 1e-4,
        max_newton: int = 20,
        validation_fraction: float | None = None,
        patience: int = 10,
        zero_probability: str = "backoff",
        epsilon: float | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.leaf_classes = leaf_classes
        self.init = init
        self.max_sweeps = max_sweeps
        self.router_l1 = router_l1
        self.leaf_l1 = leaf_l1
        self.router_ridge = router_ridge
        self.leaf_ridge = leaf_ridge
        self.absent = absent
        self.beta = beta
        self.monotone = monotone
        self.tol = tol
        self.max_newton = max_newton
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.zero_probability = zero_probability
        self.epsilon = epsilon
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> SoftmaxTreeClassifier:
        """Train the tree.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels: integers or strings.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        self._check_combinations()
        previous = getattr(self, "tree_", None) if self.warm_start else None
        X, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=PARAM, reset=previous is None
        )
        check_classification_targets(labels)
        seed = _seed_sequence(self.random_state)
        known = None if previous is None else self.classes_
        data, classes = self._training_data(X, labels, sample_weight, known)
        data, held = self._split(data, seed)
        with executor_for(self.n_jobs) as executor:
            start = self._initial(data, seed) if previous is None else InitialTree(previous)
            result = self._optimize(start, data, held, executor)
        self.classes_ = classes
        self._finish(result, data, held)
        return self

    # -- steps of a fit ----------------------------------------------------------------------------

    def _check_combinations(self) -> None:
        if self.monotone and self.absent == "drop":
            raise ValueError(
                "monotone=True needs a finite loss for absent classes: use absent='constant' or "
                "'zero_one'"
            )
        if (
            self.zero_probability == "epsilon"
            and self.epsilon is None
            and self.validation_fraction is None
        ):
            raise ValueError(
                "zero_probability='epsilon' needs epsilon, or validation_fraction to tune it on"
            )

    def _training_data(
        self,
        X: Any,
        labels: AnyArray,
        sample_weight: npt.ArrayLike | None,
        known: AnyArray | None,
    ) -> tuple[TrainingData, AnyArray]:
        """Return the rows with their class ids and weights, and the classes that these are of."""
        weight = as_weights(sample_weight, labels.size)
        classes = np.unique(labels) if known is None else known
        y = class_ids(classes, labels)
        if self.class_weight == "balanced":
            mass = np.bincount(y, weights=weight, minlength=classes.size)
            weight = weight * (mass.sum() / np.count_nonzero(mass) / np.maximum(mass, 1e-300))[y]
        elif self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, labels)
            as_weights(weight, y.size)
        used = weight > 0.0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        return canonical(TrainingData(as_rows(X), y, weight, classes.size)), classes

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
        order = np.random.default_rng(_child_seed(seed, 1)).permutation(data.n_rows)
        return data.take(np.sort(order[n_held:])), data.take(np.sort(order[:n_held]))

    def _initial(self, data: TrainingData, seed: np.random.SeedSequence) -> InitialTree:
        sparse = isinstance(data.X, CSR)
        depth = self.depth
        if depth is None:
            wanted = math.log2(max(data.n_classes, 2)) * (0.5 if sparse else 1.0)
            affordable = math.log2(max(data.n_rows / _ROWS_PER_LEAF, 1.0))
            depth = int(min(math.ceil(wanted), affordable))
        init = self.init
        if init == "auto":
            init = "balanced_clusters" if sparse else "pca_median"
        return initial_tree(data, depth, init, _child_seed(seed, 0))

    def _objective(self, data: TrainingData) -> Objective:
        scale = mean_square_norm(data.X)
        router_ridge = _ROUTER_RIDGE * scale if self.router_ridge is None else self.router_ridge
        leaf_ridge = _LEAF_RIDGE * scale if self.leaf_ridge is None else self.leaf_ridge
        return Objective(
            self.absent,
            self.beta,
            Penalty(self.router_l1, router_ridge),
            Penalty(self.leaf_l1, leaf_ridge),
        )

    def _leaf_limits(self, start: InitialTree) -> IndexArray:
        n_classes = start.tree.n_classes
        limit = self.leaf_classes
        if limit is None:
            limit = max(8, math.ceil(4 * n_classes / start.tree.n_leaves))
        return np.full(start.tree.n_nodes, min(limit, n_classes), dtype=INDEX)

    def _optimize(
        self,
        start: InitialTree,
        data: TrainingData,
        held: TrainingData | None,
        executor: Executor,
    ) -> TaoResult:
        settings = Settings(
            self._objective(data),
            self._leaf_limits(start),
            Precision(self.tol, self.max_newton),
            self.monotone,
        )
        bar = SweepBar(type(self).__name__, self.max_sweeps) if self.verbose else None
        result = optimize(
            start.tree,
            data,
            settings,
            executor,
            max_sweeps=self.max_sweeps,
            assignment=start.assignment,
            validation=None if held is None else Validation(held, self.patience),
            progress=bar,
        )
        if bar is not None:
            bar.close()
        return result

    def _finish(self, result: TaoResult, data: TrainingData, held: TrainingData | None) -> None:
        reach = route(result.tree, data.X)
        tree, _ = prune(result.tree, reach.sizes > 0)
        tree.validate()
        reach = route(tree, data.X)
        self.tree_ = tree
        self.history_ = [asdict(record) for record in result.history]
        self.best_sweep_ = result.best_sweep
        self.n_iter_ = len(result.history)
        absent = np.isinf(losses(tree, data.X, data.y, reach)[0])
        self.coverage_ = 1.0 - float(data.weight[absent].sum() / data.weight.sum())
        self.backoff_ = None
        self.epsilon_ = 0.0
        if self.zero_probability == "backoff":
            backoff = Backoff.estimate(tree, reach, data.y, data.weight)
            self.backoff_ = backoff if held is None else _calibrated(backoff, tree, held)
        elif self.zero_probability == "epsilon":
            self.epsilon_ = self.epsilon or _tuned_epsilon(tree, held)


def _calibrated(backoff: Backoff, tree: Any, held: TrainingData) -> Backoff:
    """Scale the outside masses so that on held-out rows they are right on average."""
    reach = route(tree, held.X)
    absent = np.isinf(losses(tree, held.X, held.y, reach)[0])
    expected = held.weight @ backoff.mass[leaf_of_rows(tree, reach)]
    observed = held.weight[absent].sum() + 0.5 * held.weight.mean()
    return backoff.capped(tree, scale=float(observed / max(expected, 1e-12)))


def _tuned_epsilon(tree: Any, held: TrainingData | None) -> float:
    assert held is not None  # _check_combinations saw to it
    reach = route(tree, held.X)
    probability = np.exp(-losses(tree, held.X, held.y, reach)[0])
    sizes = np.diff(tree.class_ptr)[leaf_of_rows(tree, reach)]
    absent: AccumArray = (held.n_classes - sizes).astype(np.float64)
    return tune_epsilon(probability, absent, held.weight)


def _seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return the root of all randomness of a fit; an int gives the same one each time."""
    if isinstance(random_state, Integral):
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31 - 1)))


def _child_seed(seed: np.random.SeedSequence, step: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(step,))

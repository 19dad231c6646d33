"""Forests of softmax trees: the trees err differently, and each costs a microsecond."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import INDEX, AccumArray, AnyArray, BoolArray, IndexArray
from thinleaf.arrays.checks import as_weights, class_ids, is_whole
from thinleaf.arrays.rows import as_rows
from thinleaf.estimators._base.executors import EXECUTORS
from thinleaf.estimators._base.out_of_bag import Votes, WeightedRows
from thinleaf.estimators._base.progress import TreeLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import (
    Types,
    build,
    check_types,
    described,
    plain,
    training_summary,
)
from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier
from thinleaf.estimators._base.training_rows import checked_training
from thinleaf.estimators._base.updating import UpdatingClassifier
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.softmax_tree import SoftmaxTreeClassifier
from thinleaf.execution import ExecutorChoice, executor_for
from thinleaf.model.forest import Forest, with_features
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.adapt import Recipe
from thinleaf.softmaxtree.growth.initial_tree import node_seed
from thinleaf.softmaxtree.growth.memory import Memory
from thinleaf.softmaxtree.growth.trial import LeafKind
from thinleaf.softmaxtree.tao import TrainingData, canonical

_FITTED: Types = {
    "n_features_in_": (int,), "sparse_input_": (bool,), "history_": (list,), "drawn_from_": (dict,)
}  # fmt: skip
_Like: TypeAlias = tuple[Recipe | None, LeafKind | None]
_ROWS, _FEATURES, _HELD = 2, 3, 4
"""What is drawn from a tree's seed beside the tree: each has a seed of its own."""


class SoftmaxForestClassifier(UpdatingClassifier):
    """Softmax trees that differ, their probabilities averaged.

    Parameters
    ----------
    estimator : SoftmaxTreeClassifier or AdaptiveSoftmaxTreeClassifier, optional
        What each tree is; by default the latter with its defaults. Trees differ by their
        ``random_state``; if their ``init`` is ``"auto"``, they start from splits along random
        directions (dense input) or from random clusterings of the classes (sparse input).
    n_estimators : int
        Number of trees. The first m of a forest are the forest of m trees.
    bootstrap : bool
        Train each tree on as many rows as there are, drawn with replacement.
    max_features : float
        Share of the features that each tree sees, drawn without replacement.
    oob_score : bool
        With ``bootstrap``: look at the error on the rows that trees were not trained on.
    validation_fraction : float, optional
        Share of the rows that no tree is trained on, to look at the error on.
    patience : int, optional
        Stop when this many more trees have not lowered the error that is looked at, and keep the
        trees up to the lowest.
    warm_start : bool
        Keep the trees of the previous fit, and add those that ``n_estimators`` is larger by. To
        look at an error, give the same rows in the same order.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Trees trained at a time, and threads of prediction; -1 is all cores. The result does not
        depend on it. The threads within a tree are the ``n_jobs`` of ``estimator``.
    executor : {"threads", "ray", "joblib"} or object
        Where trees are trained; see :class:`SoftmaxTreeClassifier`. Those within a task are trained
        with the ``executor`` of ``estimator``.
    verbose : int
        1 shows each tree on standard error.

    Attributes
    ----------
    estimators_ : list
        The fitted trees; each predicts by itself.
    classes_ : ndarray of shape (n_classes,)
    history_ : list of dict
        If an error was looked at: n_trees, and the error of the first as many trees; None if there
        was no row to look at.
    oob_error_ : float
        With ``oob_score``; NaN if no row was out of bag.
    drawn_from_ : dict
        What the trees' rows were drawn from: n_rows, bootstrap and validation_fraction.
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Notes
    -----
    Ctrl-C keeps the trees that are done, but not those that other threads are training; if there
    is none, ``KeyboardInterrupt`` is raised.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import SoftmaxForestClassifier, SoftmaxTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> tree = SoftmaxTreeClassifier(depth=3, max_sweeps=5)
    >>> forest = SoftmaxForestClassifier(tree, n_estimators=4, random_state=0).fit(X, y)
    >>> forest.prefix(2).freeze().n_trees
    2
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "estimator": [SoftmaxTreeClassifier, AdaptiveSoftmaxTreeClassifier, None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "oob_score": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "executor": EXECUTORS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: BaseTaoClassifier | None = None,
        n_estimators: int = 8,
        *,
        bootstrap: bool = False,
        max_features: float = 1.0,
        oob_score: bool = False,
        validation_fraction: float | None = None,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: ExecutorChoice = "threads",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.oob_score = oob_score
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor
        self.verbose = verbose

    # -- training ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train the trees."""
        self._check_combinations()
        trees = list(getattr(self, "estimators_", [])) if self.warm_start else []
        if len(trees) > self.n_estimators:
            raise ValueError(
                f"warm_start keeps {len(trees)} trees, so n_estimators cannot be "
                f"{self.n_estimators}: take prefix({self.n_estimators}) of the forest"
            )
        if any(tree.zero_probability != self._base().zero_probability for tree in trees):
            raise ValueError("the trees of a forest must have the same zero_probability")
        X, labels = checked_training(self, X, y, reset=not trees)
        classes = self.classes_ if trees else np.unique(labels)
        weight = as_weights(sample_weight, labels.size)
        if isinstance(self._base().class_weight, dict):  # of labels, where trees have class ids
            weight = weight * compute_sample_weight(self._base().class_weight, labels)
        rows = WeightedRows(X, class_ids(classes, labels), weight)
        drawn_from = {
            "n_rows": int(labels.size),
            "bootstrap": bool(self.bootstrap),
            "validation_fraction": plain(self.validation_fraction),
        }
        if trees:
            self._check_drawn(drawn_from)
            rows = rows.with_all(classes.size)
        seeds = tree_seeds(self.random_state, self.n_estimators)
        seeds[: len(trees)] = [tree.random_state for tree in trees]
        rows, votes = self._held_out(rows, classes.size, seeds[0])
        if votes is not None:
            for tree in trees:
                votes.add(tree, self._unseen(tree.random_state, rows))
        trees_before = bool(trees)
        interrupted = self._grow(trees, seeds, rows, votes, classes)
        if self.patience is not None and votes is not None:
            trees = trees[: votes.best]
        self.classes_ = classes
        self.sparse_input_ = bool(sp.issparse(X))
        self.drawn_from_ = drawn_from
        self.estimators_ = trees
        self.history_ = [] if votes is None else votes.history
        self._trained_with = training_summary(self)
        self.__dict__.pop("update_", None)
        if not trees_before:
            self._remember(rows, classes.size)
        self._find_oob_error()
        if interrupted:
            warnings.warn(f"interrupted: {len(trees)} tree(s) are kept", stacklevel=4)

    def _remember(self, rows: WeightedRows, n_classes: int) -> None:
        """Keep some rows of each class, once for all trees."""
        self.__dict__.pop("memory_", None)
        most, used = self._base().keep_rows, rows.weight > 0.0
        if most != 0:
            data = TrainingData(as_rows(rows.X[used]), rows.y[used], rows.weight[used], n_classes)
            self.memory_ = Memory.of(canonical(data), most)

    def _members(self) -> Sequence[BaseTaoClassifier]:
        return self.estimators_

    def _take_members(self, members: list[BaseTaoClassifier]) -> None:
        self.estimators_ = members

    def _columns_of(self, member: BaseTaoClassifier) -> BoolArray | None:
        if self.max_features == 1.0 or not hasattr(member, "feature_spread_"):
            return None
        columns: BoolArray = member.feature_spread_ > 0.0
        return columns

    def _check_drawn(self, drawn_from: dict[str, Any]) -> None:
        """Refuse to look at errors of trees that may have been trained on the rows."""
        looked_at = self.oob_score or self.validation_fraction is not None
        if looked_at and drawn_from != self.drawn_from_:
            raise ValueError(
                "errors of trees of an earlier fit need the rows, bootstrap and "
                f"validation_fraction of that fit: these were {self.drawn_from_}, and are "
                f"{drawn_from}"
            )

    def _find_oob_error(self) -> None:
        self.__dict__.pop("oob_error_", None)
        if self.oob_score:
            error = self.history_[len(self.estimators_) - 1]["error"]
            self.oob_error_ = float("nan") if error is None else error

    def _check_combinations(self) -> None:
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score=True needs bootstrap=True: else no row is out of bag")
        if self.oob_score and self.validation_fraction is not None:
            raise ValueError("look at one error: oob_score or validation_fraction")
        if self.patience is not None and not self.oob_score and self.validation_fraction is None:
            raise ValueError(
                "patience needs an error to look at: set validation_fraction, or bootstrap and "
                "oob_score"
            )
        base = self._base()
        base._validate_params()
        base._check_combinations()
        if getattr(base, "checkpoint", None) is not None:
            raise ValueError("the trees of a forest cannot share a checkpoint: set it to None")

    def _base(self) -> BaseTaoClassifier:
        return AdaptiveSoftmaxTreeClassifier() if self.estimator is None else self.estimator

    def _held_out(
        self, rows: WeightedRows, n_classes: int, seed: int
    ) -> tuple[WeightedRows, Votes | None]:
        """Return the rows to train on, and the votes on rows that trees do not know, if asked for.

        Rows that are held out keep their place with no weight: their classes stay known.
        """
        if self.validation_fraction is None:
            return rows, Votes(rows, n_classes) if self.oob_score else None
        n_rows = rows.y.size
        n_held = round(self.validation_fraction * n_rows)
        if not 0 < n_held < n_rows:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves no rows to train or to "
                f"validate on: there are {n_rows}"
            )
        weight = rows.weight.copy()
        weight[_rng(seed, _HELD).permutation(n_rows)[:n_held]] = 0.0
        return rows._replace(weight=weight), Votes(rows, n_classes)

    def _grow(
        self,
        trees: list[BaseTaoClassifier],
        seeds: list[int],
        rows: WeightedRows,
        votes: Votes | None,
        classes: AnyArray,
    ) -> bool:
        """Add trees until there are enough, or more do not help; return whether interrupted.

        Trees are judged in their order, those that were trained beside each other too.
        """
        lines = TreeLines(type(self).__name__, self.n_estimators) if self.verbose else None
        with executor_for(self.n_jobs, self.executor) as executor, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted", UserWarning)  # a tree that is dropped
            plan = clone(self).set_params(executor="threads")  # of the tasks
            given = [executor.share(value) for value in (rows, classes)]
            while len(trees) < self.n_estimators and not self._enough(votes):
                # the first one finds what the others can do without looking
                n_next = executor.n_workers if trees else 1
                some = seeds[len(trees) : len(trees) + n_next]
                fit = partial(_fit_tree, plan, _like(trees))
                try:
                    fitted = executor.map(fit, some, shared=given, coarse=True)
                except KeyboardInterrupt:
                    fitted = []
                for tree in fitted:
                    if tree.ended_ == "interrupted" or self._enough(votes):
                        break
                    trees.append(tree)
                    if votes is not None:
                        votes.add(tree, self._unseen(tree.random_state, rows))
                    if lines is not None:
                        lines(len(trees), None if votes is None else votes.history[-1]["error"])
                if not fitted or any(tree.ended_ == "interrupted" for tree in fitted):
                    if not trees:
                        raise KeyboardInterrupt
                    return True
        return False

    def _enough(self, votes: Votes | None) -> bool:
        """Return whether more trees have not helped for a while."""
        if self.patience is None or votes is None:
            return False
        return len(votes.history) - votes.best >= self.patience

    def _fit_tree(
        self, rows: WeightedRows, classes: AnyArray, like: _Like | None, seed: int
    ) -> BaseTaoClassifier:
        """Return a tree that is trained on its share of rows and features, like the first one."""
        tree: BaseTaoClassifier = clone(self._base()).set_params(random_state=seed, keep_rows=0)
        if isinstance(tree, AdaptiveSoftmaxTreeClassifier) and like is not None:
            tree._recipe, tree._known_kind = like
        if isinstance(tree.class_weight, dict):
            tree.class_weight = None  # it is part of the rows' weights
        if tree.init == "auto":
            tree._is_varied = True
            tree.init = "balanced_clusters" if sp.issparse(rows.X) else "random_median"
        n_features = rows.X.shape[1]
        features = self._features(seed, n_features)
        X = rows.X if features is None else rows.X[:, features]
        weight = rows.weight * self._draws(seed, rows)
        tree.fit(X, rows.y, weight)
        tree.classes_ = classes
        if features is not None:
            tree.tree_ = with_features(tree.tree_, features, n_features)
            tree.n_features_in_ = n_features
            spread = np.zeros(n_features)
            spread[features] = tree.feature_spread_
            tree.feature_spread_ = spread
        return tree

    def _draws(self, seed: int, rows: WeightedRows) -> AnyArray:
        """Return how often a tree's sample has each row."""
        if not self.bootstrap:
            return np.ones(rows.y.size)
        used = np.flatnonzero(rows.weight > 0.0)
        drawn = used[_rng(seed, _ROWS).integers(used.size, size=used.size)]
        return np.bincount(drawn, minlength=rows.y.size)

    def _unseen(self, seed: int, rows: WeightedRows) -> IndexArray:
        """Return the rows that a tree has to be judged by: out of bag, or held out for all."""
        weight = rows.weight * (self._draws(seed, rows) if self.oob_score else 1.0)
        return np.flatnonzero(weight == 0.0).astype(INDEX)

    def _features(self, seed: int, n_features: int) -> IndexArray | None:
        """Return the features that a tree sees, ascending, unless it is all."""
        n = max(1, round(self.max_features * n_features))
        if n >= n_features:
            return None
        return np.sort(_rng(seed, _FEATURES).permutation(n_features)[:n]).astype(INDEX)

    # -- the forest --------------------------------------------------------------------------------

    def prefix(self, n_estimators: int) -> Self:
        """Return the first trees as a forest: faster, smaller, with more errors.

        It is the forest that ``fit`` with as many trees would have given, and shares them.
        """
        check_is_fitted(self)
        n = len(self.estimators_)
        if not is_whole(n_estimators) or not 1 <= n_estimators <= n:
            raise ValueError(f"n_estimators must be an integer in 1..{n}, got {n_estimators!r}")
        out = copy.copy(self)
        out.estimator = None if self.estimator is None else clone(self.estimator)
        out.n_estimators = int(n_estimators)
        out.estimators_ = self.estimators_[:n_estimators]
        out.history_ = self.history_[:n_estimators]
        out._trained_with = training_summary(out)
        if hasattr(self, "oob_error_"):
            out._find_oob_error()
        return out

    @property
    def feature_importances_(self) -> AccumArray:
        """The mean of the trees' importances, of shape (n_features,); they sum to one."""
        if not hasattr(self, "estimators_"):
            raise AttributeError("there are no importances before fit")
        each = [tree.feature_importances_ for tree in self.estimators_]
        out: AccumArray = np.mean(each, axis=0)
        return out

    def mean_flops(self, X: Any) -> float:
        """Return the mean multiplications of a prediction; see :mod:`thinleaf.metrics`."""
        check_is_fitted(self)
        return float(sum(tree.mean_flops(X) for tree in self.estimators_))

    def _trees(self) -> tuple[Tree, ...]:
        return tuple(tree.tree_ for tree in self.estimators_)

    def _packed_form(self) -> FrozenTree:
        trees = self.estimators_
        forest = Forest.of([tree.tree_ for tree in trees])
        backoffs = [tree.backoff_ for tree in trees if tree.backoff_ is not None]
        if len(backoffs) not in (0, len(trees)):
            raise ValueError("some trees have a back-off, and some do not")
        backoff = forest.backoff(backoffs) if backoffs else None
        epsilon = float(np.mean([tree.epsilon_ for tree in trees]))
        names = getattr(self, "feature_names_in_", None)
        return FrozenTree(
            pack(
                forest,
                Outside.of(forest, backoff, epsilon),
                sparse=self.sparse_input_,
                n_trees=len(trees),
            ),
            self.classes_,
            feature_names=None if names is None else [str(name) for name in names],
            summary=self._training(),
        )

    # -- files -------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        check_is_fitted(self)
        arrays: dict[str, AnyArray] = {}
        trees = []
        for i, tree in enumerate(self.estimators_):
            own, fitted = tree._stored()
            arrays |= {f"{i}.{name}": array for name, array in own.items()}
            values = {name: plain(value) for name, value in fitted.items()}
            trees.append(described(tree) | {"fitted": values})
        arrays |= self._memory_arrays()
        return arrays, {name: getattr(self, name) for name in _FITTED} | {"trees": trees}

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        check_types(fitted, {**_FITTED, "trees": (list,)})
        if fitted["n_features_in_"] != model.n_features:
            raise ValueError(f"the estimator has {fitted['n_features_in_']} features")
        if len(fitted["trees"]) != model.n_trees:
            raise ValueError(f"the estimator has {len(fitted['trees'])} trees")
        errors = [e.get("error") for e in fitted["history_"] if type(e) is dict]
        known = all(error is None or type(error) in (int, float) for error in errors)
        needed = len(fitted["trees"]) if self.oob_score else 0
        if not known or len(errors) != len(fitted["history_"]) or len(errors) < needed:
            raise ValueError("history_ must be a list of objects with errors")
        for name in _FITTED:
            setattr(self, name, fitted[name])
        self.classes_ = model.labels.copy()
        self.estimators_ = []
        for i, description in enumerate(fitted["trees"]):
            tree = build(description)
            if not isinstance(tree, BaseTaoClassifier):
                raise ValueError(f"a forest cannot have a {type(tree).__name__}")
            prefix = f"{i}."
            own = {n[len(prefix) :]: a for n, a in arrays.items() if n.startswith(prefix)}
            tree._restore(own, description["fitted"], model)
            self.estimators_.append(tree)
        self._restore_memory(arrays, model)
        self._find_oob_error()


def _like(trees: list[BaseTaoClassifier]) -> _Like | None:
    """Return what other trees need not look for, because the first one has."""
    first = trees[0] if trees else None
    return first._like_this() if isinstance(first, AdaptiveSoftmaxTreeClassifier) else None


def _fit_tree(
    forest: SoftmaxForestClassifier,
    like: _Like | None,
    rows: WeightedRows,
    classes: AnyArray,
    seed: int,
) -> BaseTaoClassifier:
    """Train a tree; this is the task that executors get."""
    return forest._fit_tree(rows, classes, like, seed)


def tree_seeds(random_state: Any, n: int) -> list[int]:
    """Return the seeds of trees, each a function of the forest's seed and its number."""
    seed = seed_sequence(random_state)
    return [int(node_seed(seed, i).generate_state(1)[0]) >> 1 for i in range(n)]


def _rng(seed: int, what: int) -> np.random.Generator:
    return np.random.default_rng(node_seed(np.random.SeedSequence(seed), what))

"""The Adaptive Softmax Tree of paper 000 as a scikit-learn classifier."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.arrays.replace import check_writable
from thinleaf.arrays.rows import CSR
from thinleaf.estimators._base.progress import RoundLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier
from thinleaf.execution import executor_for
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.checkpoint import Checkpoint, fingerprint
from thinleaf.softmaxtree.growth.expand import Grown, Growth, best_round, grow
from thinleaf.softmaxtree.growth.initial_tree import Init, InitialTree, initial_tree, node_seed
from thinleaf.softmaxtree.objective import Absent
from thinleaf.softmaxtree.tao import TrainingData

_CLASSES_PER_LEAF = 50
_ROUNDS = 5
_ROWS_PER_CLASS = 20
_FAIR_SHARES = 4
_LIMITS = {"max_rounds", "max_depth", "max_leaves", "max_seconds", "patience"}
_NOT_SHAPING = _LIMITS | {
    "checkpoint",
    "class_weight",
    "epsilon",
    "n_jobs",
    "random_state",
    "verbose",
    "zero_probability",
}
"""What a tree depends on in another way: class weights are in those of the rows."""


class AdaptiveSoftmaxTreeClassifier(BaseTaoClassifier):
    """A softmax tree that grows: deep where it must be, with thin leaves.

    Training starts from a shallow tree with wide softmaxes. In each round it tries to replace every
    leaf by a small tree with fewer classes a leaf, keeps those that err hardly more on the rows
    that reach the leaf, and optimises the whole tree again.

    Parameters
    ----------
    contraction : float
        α: a leaf of k classes is replaced by leaves of αk. Smaller gives shallower trees with
        thinner leaves.
    tolerance : float
        ρ: a replacement may make this many times the training errors of the leaf; none if the leaf
        makes none. Smaller gives smaller trees.
    initial_contraction : float, optional
        α₀: leaves of the initial tree hold α₀·K of the K classes. By default α, but no more than
        four times a leaf's fair share.
    initial_depth : int, optional
        Δ₀, of the initial tree. By default 2, and more for many classes: so that a leaf's fair
        share is at most 50 of them.
    expansion_depth : int
        Of a replacement, 1 or 2.
    init : {"auto", "random", "random_median", "pca_median", "class_clusters", "row_clusters", \
"balanced_clusters"}
        How the initial tree and replacements start; see :class:`SoftmaxTreeClassifier`.
    max_sweeps : int
        Sweeps over the whole tree in a round, at the most.
    expansion_sweeps : int
        Sweeps over a replacement, at the most.
    max_rounds : int or "auto", optional
        Rounds of growth at the most; None is no limit. ``"auto"`` is 5 for dense input with 20 rows
        a class and more, and where validation rows choose the best round; else 0: on text the
        initial tree, with small ``overlap``, had the fewest errors of all, and rounds trade errors
        for fewer multiplications.
    max_depth, max_leaves : int, optional
        Limits of growth; less depth keeps more classes in a leaf.
    max_seconds : float, optional
        Growth ends at the first sweep over the whole tree, or the first leaf to expand, after this
        time. Results then depend on the machine.
    router_l1, leaf_l1, router_ridge, leaf_ridge, absent, beta, overlap, monotone, tol, max_newton
        As in :class:`SoftmaxTreeClassifier`; ``tol`` is looser, because rounds repeat the work.
    validation_fraction : float, optional
        Share of the rows held out. The tree of the round with the lowest error on them is kept, and
        growth stops after ``patience`` rounds without a lower one; by default, the last one's is.
    patience : int
        Used with ``validation_fraction``.
    zero_probability, epsilon, class_weight, random_state, n_jobs
        As in :class:`SoftmaxTreeClassifier`.
    checkpoint : path, optional
        A file that is replaced after each sweep over the whole tree. If it exists when ``fit`` is
        called with the same data and parameters (limits may differ), growth goes on from it, and
        ends with the same tree as if it had never stopped. Without a ``random_state`` it goes on
        with the seed in the file. The file stays when the fit is done.
    verbose : int
        1 shows each sweep over the whole tree and each round on standard error.

    Attributes
    ----------
    tree_ : Tree
        The trained tree, without dead, pure and redundant parts.
    classes_ : ndarray of shape (n_classes,)
    history_ : list of dict
        One a round, from the initial tree (0): round, accepted, tried, train_error,
        validation_error, objective, coverage, n_leaves, depth, mean_depth, mean_leaf_classes,
        max_leaf_classes, flops, expansion_seconds, sweep_seconds, seconds, sweeps.
    best_round_ : int
        The round whose tree was kept.
    ended_ : str
        Why growth ended: "no leaf expands", "rounds", "depth", "leaves", "seconds", "patience" or
        "interrupted".
    n_iter_ : int
        Rounds of growth done; at least 1, as scikit-learn wants it.
    coverage_, backoff_, epsilon_, n_features_in_, feature_names_in_
        As in :class:`SoftmaxTreeClassifier`.

    Notes
    -----
    Ctrl-C ends a fit with the tree reached so far, and a warning; before the first complete sweep
    there is none, and ``KeyboardInterrupt`` is raised.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AdaptiveSoftmaxTreeClassifier(max_rounds=2, random_state=0).fit(X, y)
    >>> [entry["n_leaves"] for entry in clf.history_][0]
    4
    >>> clf.score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict[str, list[Any]] = BaseTaoClassifier._parameter_constraints | {
        "contraction": [Interval(Real, 0, 1, closed="neither")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "initial_contraction": [Interval(Real, 0, 1, closed="right"), None],
        "initial_depth": [Interval(Integral, 0, 24, closed="both"), None],
        "expansion_depth": [Interval(Integral, 1, 2, closed="both")],
        "max_sweeps": [Interval(Integral, 1, None, closed="left")],
        "expansion_sweeps": [Interval(Integral, 1, None, closed="left")],
        "max_rounds": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaves": [Interval(Integral, 1, None, closed="left"), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        contraction: float = 0.85,
        tolerance: float = 1.0,
        *,
        initial_contraction: float | None = None,
        initial_depth: int | None = None,
        expansion_depth: int = 1,
        init: Init | Literal["auto"] = "auto",
        max_sweeps: int = 15,
        expansion_sweeps: int = 10,
        max_rounds: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        max_leaves: int | None = None,
        max_seconds: float | None = None,
        router_l1: float = 0.01,
        leaf_l1: float = 0.01,
        router_ridge: float | None = None,
        leaf_ridge: float | None = None,
        absent: Absent = "constant",
        beta: float = 10.0,
        overlap: float | Literal["auto"] | None = "auto",
        monotone: bool = False,
        tol: float = 1e-3,
        max_newton: int = 20,
        validation_fraction: float | None = None,
        patience: int = 3,
        zero_probability: str = "backoff",
        epsilon: float | None = None,
        class_weight: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            init=init,
            router_l1=router_l1,
            leaf_l1=leaf_l1,
            router_ridge=router_ridge,
            leaf_ridge=leaf_ridge,
            absent=absent,
            beta=beta,
            overlap=overlap,
            monotone=monotone,
            tol=tol,
            max_newton=max_newton,
            validation_fraction=validation_fraction,
            patience=patience,
            zero_probability=zero_probability,
            epsilon=epsilon,
            class_weight=class_weight,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.contraction = contraction
        self.tolerance = tolerance
        self.initial_contraction = initial_contraction
        self.initial_depth = initial_depth
        self.expansion_depth = expansion_depth
        self.max_sweeps = max_sweeps
        self.expansion_sweeps = expansion_sweeps
        self.max_rounds = max_rounds
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Grow the tree."""
        self._check_combinations()
        data, classes = self._read(X, y, sample_weight)
        checkpoint = self._checkpoint(data, classes)
        saved = None if checkpoint is None else checkpoint.load()
        seed = self._seed(saved)
        data, held = self._split(data, node_seed(seed, 1))
        start: InitialTree | Grown
        start = self._initial(data, node_seed(seed, 0)) if saved is None else saved[0]
        lines = RoundLines(type(self).__name__, self.max_sweeps) if self.verbose else None

        def after(grown: Grown) -> None:
            if checkpoint is not None:
                checkpoint.save(grown, int(seed.entropy))  # type: ignore[arg-type]
            if lines is not None:
                (lines.round if grown.sweeps is None else lines.sweep)(grown)

        with executor_for(self.n_jobs) as executor:
            grown = grow(
                start,
                data,
                self._settings(data, self._first_limits(start.tree)),
                self._growth(data),
                executor,
                node_seed(seed, 2),
                validation=held,
                after_round=after,
                after_sweep=after,
            )
        self.classes_ = classes
        self._keep(grown, data, held)

    # -- steps of a fit ----------------------------------------------------------------------------

    def _checkpoint(self, data: TrainingData, classes: AnyArray) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        try:
            check_writable(path)
        except OSError as error:
            raise ValueError(f"checkpoint: {error}") from error
        shaping = {k: v for k, v in self.get_params().items() if k not in _NOT_SHAPING}
        return Checkpoint(path, fingerprint(data, shaping | {"classes": classes.tolist()}))

    def _seed(self, saved: tuple[Grown, int] | None) -> np.random.SeedSequence:
        """Return the seed of this fit, or without a fixed one, that of the fit to go on with."""
        seed = seed_sequence(self.random_state)
        if saved is None:
            return seed
        if isinstance(self.random_state, Integral) and seed.entropy != saved[1]:
            raise ValueError(
                f"the checkpoint {self.checkpoint} is of random_state={saved[1]}, not "
                f"{self.random_state}: give another path, or delete it to start afresh"
            )
        return np.random.SeedSequence(saved[1])

    def _initial(self, data: TrainingData, seed: np.random.SeedSequence) -> InitialTree:
        depth = self.initial_depth
        if depth is None:
            depth = max(2, math.ceil(math.log2(data.n_classes / _CLASSES_PER_LEAF)))
        if self.max_depth is not None:
            depth = min(depth, self.max_depth)
        if self.max_leaves is not None:
            depth = min(depth, math.floor(math.log2(self.max_leaves)))
        return initial_tree(data, int(depth), self._init(data), seed)

    def _first_limits(self, tree: Tree) -> IndexArray:
        """Return k₀ for every leaf of the initial tree."""
        if self.initial_contraction is None:
            fair = _FAIR_SHARES * math.ceil(tree.n_classes / tree.n_leaves)
            limit = min(math.floor(self.contraction * tree.n_classes + 1e-9), fair)
        else:
            limit = math.floor(self.initial_contraction * tree.n_classes + 1e-9)
        return np.full(tree.n_nodes, max(limit, 1), dtype=INDEX)

    def _growth(self, data: TrainingData) -> Growth:
        return Growth(
            self.contraction,
            self.tolerance,
            self.expansion_depth,
            self._init(data),
            self.expansion_sweeps,
            self.max_sweeps,
            self._rounds(data),
            self.max_depth,
            self.max_leaves,
            self.max_seconds,
            self.patience,
        )

    def _rounds(self, data: TrainingData) -> int | None:
        if self.max_rounds == "auto":
            few = data.n_rows < _ROWS_PER_CLASS * data.n_classes
            chosen = self.validation_fraction is not None
            return _ROUNDS if chosen or not (few or isinstance(data.X, CSR)) else 0
        return self.max_rounds

    def _keep(self, grown: Grown, data: TrainingData, held: TrainingData | None) -> None:
        if grown.ended == "interrupted":
            warnings.warn(
                f"interrupted: growth ended in round {len(grown.history) - 1}", stacklevel=5
            )
        self.history_ = [asdict(record) for record in grown.history]
        self.best_round_ = best_round(grown.history)
        self.ended_ = grown.ended
        self.n_iter_ = max(len(grown.history) - 1, 1)
        assert grown.best is not None  # of round 0 at least
        self._finish(grown.best, data, held)

"""The Adaptive Softmax Tree of paper 000 as a scikit-learn classifier."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf._dtypes import INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.replace import check_writable
from thinleaf.arrays.rows import CSR, Rows, mean_square_norm, n_features_of
from thinleaf.estimators._base.large_fits import most_common
from thinleaf.estimators._base.out_of_core import JoinedFit, PartTree, round_of_parts
from thinleaf.estimators._base.progress import RoundLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier, tuned_epsilon
from thinleaf.execution import ExecutorChoice, executor_for
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.adapt import Recipe, adapt, follow, hold_out
from thinleaf.softmaxtree.growth.candidates import DENSE_STRENGTH
from thinleaf.softmaxtree.growth.checkpoint import Checkpoint, fingerprint
from thinleaf.softmaxtree.growth.expand import Grown, Growth, grow
from thinleaf.softmaxtree.growth.first_tree import (
    Wishes,
    few_features,
    usual_depth,
    usual_limits,
)
from thinleaf.softmaxtree.growth.initial_tree import Init, InitialTree, initial_tree, node_seed
from thinleaf.softmaxtree.growth.round_record import best_round
from thinleaf.softmaxtree.growth.thin import AS_GOOD, FEW_WEIGHTS
from thinleaf.softmaxtree.growth.trial import FIRST_STRENGTH, LeafKind, LeafLoss
from thinleaf.softmaxtree.growth.trust import LEAST_JUDGES, Trust, with_sharpness
from thinleaf.softmaxtree.objective import Absent, Penalty
from thinleaf.softmaxtree.parts.partition import PartRows, held_weight
from thinleaf.softmaxtree.solvers.axis import solve_axis
from thinleaf.softmaxtree.solvers.hinge import solve_hinge, solve_hinge_router
from thinleaf.softmaxtree.solvers.leaf import solve_softmax
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao import Settings, TrainingData
from thinleaf.softmaxtree.tao.units import feature_spread

JUDGES = 0.15
"""Share of the rows that decide."""

_LOCAL_SWEEPS = 2
_SPARSE_SWEEPS, _DENSE_SWEEPS = 1, 2
"""Over a replacement, and over the whole tree in a round, if the judge has the last word."""

_SPARSE_REFITS, _DENSE_REFITS = 1, 4
"""Sweeps of the last fit, to all rows, of a tree that has grown."""

_L1 = 0.01
_FOUND = ("_found", "beam_", "leaf_loss_", "leaf_strength_", "sharpness_", "temperature_")
"""What only trees that decide by held-out rows have."""

_SPARSE_SHALLOW, _DENSE_SHALLOW = 2, 1
"""Depth of the other trees of a forest whose first one is flat."""

_HINGE_ROUTER, _SPARSE_ROUTER, _DENSE_ROUTER = 0.4, 0.1, 0.05
"""Ridge of routers, for rows of unit length."""

_DENSE_OVERLAP = 0.02
_LIMITS = {"max_rounds", "max_depth", "max_leaves", "max_seconds", "patience"}
_NOT_SHAPING = _LIMITS | {
    "beam",
    "checkpoint",
    "class_weight",
    "epsilon",
    "executor",
    "keep_rows",
    "max_memory",
    "n_jobs",
    "random_state",
    "small_weights",
    "verbose",
    "zero_probability",
}
"""What a tree depends on in another way: class weights are in those of the rows."""


@dataclass(eq=False)
class Watch:
    """What a fit that held-out rows decide had before its last step.

    Attributes
    ----------
    rounds : list of (Tree, overlap)
        The tree of each round, fitted without the rows that decide.
    judged : Tree or None
        The one that was kept.
    """

    rounds: list[tuple[Tree, float | None]] = field(default_factory=list)
    judged: Tree | None = None


class AdaptiveSoftmaxTreeClassifier(BaseTaoClassifier):
    """A softmax tree that adapts itself: deep where it must be, with thin leaves.

    Training starts from a shallow tree with wide softmaxes. In each round it tries to replace every
    leaf by a small tree with fewer classes a leaf, keeps those that do no harm, and optimises the
    whole tree again. By default, rows that are held out decide: they choose loss and ridge of the
    leaves, whether a tree is better than one flat leaf, which replacements are kept, when to stop,
    and how sure the tree may be. Then the tree is fitted once more, to all rows.

    Parameters
    ----------
    contraction : float
        α: a leaf of k classes is replaced by leaves of αk. Smaller gives shallower trees with
        thinner leaves.
    tolerance : float
        ρ, with ``decisions="training"`` alone: a replacement may make this many times the training
        errors of the leaf; none if the leaf makes none. Smaller gives smaller trees.
    initial_contraction : float, optional
        α₀: leaves of the initial tree hold α₀·K of the K classes. By default α, but no more than
        four times a leaf's fair share.
    initial_depth : int, optional
        Δ₀, of the initial tree. By default 2, and more for many classes: so that a leaf's fair
        share is at most 50 of them. Only by default do held-out rows compare the tree with one flat
        leaf of all classes, where that is affordable; if the leaf has no more errors, it is kept
        and does not grow.
    expansion_depth : int
        Of a replacement, 1 or 2.
    init : {"auto", "random", "random_median", "pca_median", "axis_splits", "random_axis_splits", \
"class_clusters", "row_clusters", "balanced_clusters"}
        How the initial tree and replacements start; see :class:`SoftmaxTreeClassifier`. With
        ``"auto"``, dense input of up to 64 features also has a trial that starts from splits by one
        feature, and whose routers may be such splits; and once it has grown, one that starts as a
        decision tree, if that is not far behind. Held-out rows decide.
    hierarchy : mapping, optional
        From labels to the groups that they belong to, the largest first: a sequence of names, or
        one text with "/" between them, such as ``{"cat": "animal/mammal"}``. The initial tree then
        follows it, instead of ``init``. Model files do not hold it.
    max_sweeps : int
        Sweeps over the whole tree in a round, at the most. If held-out rows decide, there are no
        more than 2 for dense and 1 for sparse input, and one that raises their error is undone.
    expansion_sweeps : int
        Sweeps over a replacement, at the most; no more than 2 if held-out rows decide.
    max_rounds : int, optional
        Rounds of growth at the most; None, or ``"auto"`` as in earlier versions, is no limit.
    max_depth, max_leaves : int, optional
        Limits of growth; less depth keeps more classes in a leaf.
    max_seconds : float, optional
        Growth ends at the first sweep over the whole tree, or the first leaf to expand, after this
        time; trials before it and the last fit do not count. Results then depend on the machine.
    decisions : {"held_out", "training"}
        What decides. ``"held_out"``: rows that are not fitted, some of each class, as said above.
        ``"training"`` is paper 000's way: ρ and the errors of the rows that are fitted, penalties
        in the units of the input, softmax leaves, and no last fit. Where fewer than 20 rows would
        be held out, it is taken, too.
    leaf_loss : {"auto", "softmax", "hinge"}
        If held-out rows decide: what leaves minimise. A softmax; or a squared hinge loss of each
        class against the others, without an ℓ₁ penalty, which is often better and faster on text.
        ``"auto"`` tries both on sparse input, and for a flat leaf of dense input, unless a penalty
        of leaves is given, and takes the softmax else. Routers follow the leaves, unless a penalty
        of routers is given.
    small_weights : {"auto", "drop", "keep"} or float
        If held-out rows decide, on sparse input: ``"drop"`` leaves out weights of leaves and
        routers that hardly matter, as many as raise the errors of held-out rows by no more than a
        thirtieth. A number says how many times these errors may be; 1.1 gives a smaller model.
        ``"auto"`` does so for trees of more than a million weights, as long as these errors do not
        rise.
    router_l1, leaf_l1, router_ridge, leaf_ridge : float, optional
        Penalties on the sum of losses. What is given is in the units of the input, as in
        :class:`SoftmaxTreeClassifier`, whose default the other one of the same nodes then has. If
        neither is given and held-out rows decide, ℓ₁ is 0.01, and ridge is a strength times the
        mean squared length of the rows: for sparse input as they are, for dense input in units of
        the node, where rows are scaled by their spread there. The strength of leaves is looked for
        on sparse input and for a flat leaf; leaves of dense trees have 0.005.
    overlap : float or "auto", optional
        As in :class:`SoftmaxTreeClassifier`. If held-out rows decide, dense input has none until
        the tree errs far more on held-out rows than on those it is fitted to and overlap lowers
        their error; ``"auto"`` is then 0.02.
    absent, beta, monotone, tol, max_newton
        As in :class:`SoftmaxTreeClassifier`; ``tol`` is looser, because rounds repeat the work.
        With ``monotone=True``, the rows that are fitted decide, and a replacement is kept if it
        does not raise the objective, whatever ρ: neither a sweep nor a round ever raises it.
    validation_fraction : float, optional
        Share of the rows held out. If they decide, by default 0.15, and all rows are fitted in the
        end. With ``decisions="training"``, by default none; if given, the tree of the round with
        the lowest error on them is kept, and growth stops after ``patience`` rounds without a lower
        one.
    patience : int
        With ``decisions="training"`` and ``validation_fraction``. If held-out rows decide, growth
        stops after 2 rounds that have not lowered their error by a hundredth.
    beam : int or "auto"
        How many paths a row takes in prediction; 1 is the papers' single path. ``"auto"`` is
        ``beam_`` at ``temperature_``.
    zero_probability, epsilon, keep_rows, class_weight, random_state, n_jobs, executor
        As in :class:`SoftmaxTreeClassifier`.
    max_memory : int or str, optional
        Most memory of the process, in bytes or such as ``"4G"``. Rows that would take more are
        trained on part by part: a top of the tree from a sample, then a subtree for each part, one
        after the other, through temporary files where ``TMPDIR`` says; see :meth:`fit_shards`.
        Ctrl-C then leaves no tree. If rows fit, the tree is the same as without a limit.
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
        max_leaf_classes, flops, expansion_seconds, sweep_seconds, seconds, sweeps, overlap. If
        held-out rows decide, it is that of the rows that are not held out, before the last fit.
    best_round_ : int
        The round whose tree was kept.
    ended_ : str
        Why growth ended: "no leaf expands", "rounds" (also of a flat leaf), "depth", "leaves",
        "seconds", "patience" or "interrupted".
    beam_, temperature_ : int, float
        If held-out rows decide: how many paths had the fewest errors on them, up to 16, and what
        the scores of routers are then divided by. One path, if no beam had fewer.
    leaf_loss_ : {"softmax", "hinge"}
        If held-out rows decide: what the leaves minimise.
    leaf_strength_ : float
        If held-out rows decide: ridge of the leaves for rows of unit length. Without meaning if a
        penalty of leaves is given.
    n_iter_ : int
        Rounds of growth done; at least 1, as scikit-learn wants it.
    n_parts_ : int
        Of a tree that was trained part by part: how many there were. Its ``history_`` is one entry.
    coverage_, backoff_, epsilon_, memory_, update_, n_features_in_, feature_names_in_
        As in :class:`SoftmaxTreeClassifier`.

    Notes
    -----
    Ctrl-C ends a fit with the tree reached so far, and a warning; it is then not fitted to held-out
    rows. Before the first complete sweep there is none, and ``KeyboardInterrupt`` is raised.

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

    _recipe: Recipe | None = None
    _known_kind: LeafKind | None = None
    _is_varied: bool = False
    """What another tree of a forest has found."""

    _share: AccumArray | None = None
    """How much rows of a part count where they are fitted."""

    _watch: Watch | None = None
    """Who wants to know what the last fit, to all rows, started from."""

    _parameter_constraints: dict[str, list[Any]] = BaseTaoClassifier._parameter_constraints | {
        "decisions": [StrOptions({"held_out", "training"})],
        "leaf_loss": [StrOptions({"auto", "softmax", "hinge"})],
        "small_weights": [
            StrOptions({"auto", "drop", "keep"}),
            Interval(Real, 1, None, closed="left"),
        ],
        "beam": [Interval(Integral, 1, 1024, closed="both"), StrOptions({"auto"})],
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
        hierarchy: Mapping[Any, Any] | None = None,
        max_sweeps: int = 15,
        expansion_sweeps: int = 10,
        max_rounds: int | Literal["auto"] | None = None,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        max_seconds: float | None = None,
        decisions: Literal["held_out", "training"] = "held_out",
        leaf_loss: Literal["auto", "softmax", "hinge"] = "auto",
        small_weights: float | Literal["auto", "drop", "keep"] = "auto",
        router_l1: float | None = None,
        leaf_l1: float | None = None,
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
        beam: int | Literal["auto"] = 1,
        zero_probability: str = "backoff",
        epsilon: float | None = None,
        keep_rows: int | Literal["auto"] = "auto",
        class_weight: Any = None,
        max_memory: int | str | None = None,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: ExecutorChoice = "threads",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            init=init,
            hierarchy=hierarchy,
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
            keep_rows=keep_rows,
            class_weight=class_weight,
            max_memory=max_memory,
            random_state=random_state,
            n_jobs=n_jobs,
            executor=executor,
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
        self.decisions = decisions
        self.leaf_loss = leaf_loss
        self.small_weights = small_weights
        self.beam = beam
        self.checkpoint = checkpoint

    def _fit_in_memory(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Grow the tree."""
        data, classes = self._read(X, y, sample_weight)
        checkpoint = self._checkpoint(data, classes)
        saved = None if checkpoint is None else checkpoint.load()
        seed = self._seed(saved)
        lines = RoundLines(type(self).__name__, self.max_sweeps) if self.verbose else None

        def after(grown: Grown) -> None:
            if self._watch is not None and grown.sweeps is None:
                self._watch.rounds.append((grown.tree, grown.history[-1].overlap))
            if checkpoint is not None:
                checkpoint.save(grown, int(seed.entropy))  # type: ignore[arg-type]
            if lines is not None:
                (lines.round if grown.sweeps is None else lines.sweep)(grown)

        for name in _FOUND:  # of an earlier fit
            self.__dict__.pop(name, None)
        held = hold_out(data, self.validation_fraction or JUDGES, node_seed(seed, 1))
        judges = np.count_nonzero(held) >= LEAST_JUDGES and not self.monotone
        if self.decisions == "held_out" and judges:
            self._adapt(data, held, seed, saved, after)
        else:
            self._grow(data, seed, saved, after)
            if self.decisions == "held_out":  # too few rows say which beam is better than a path
                self.beam_, self.temperature_ = 1, 1.0
        self.classes_ = classes

    def _adapt(
        self,
        data: TrainingData,
        held: AccumArray,
        seed: np.random.SeedSequence,
        saved: tuple[Grown, int] | None,
        after: Callable[[Grown], None],
    ) -> None:
        """Fit by decisions on rows that are not fitted, then on all rows."""
        sparse = isinstance(data.X, CSR)
        deepest = 24 if self.max_depth is None else self.max_depth
        if self.max_leaves is not None:
            deepest = min(deepest, math.floor(math.log2(self.max_leaves)))
        wishes = Wishes(
            self.initial_depth if self.initial_depth is None else min(self.initial_depth, deepest),
            deepest,
            self.contraction,
            self.initial_contraction,
            self._leaf_losses(sparse),
            self._leaf_losses(sparse=True),
            self.leaf_ridge is None and self.leaf_l1 is None,
            self._init(data),
            (self._is_varied or self.init == "auto") and few_features(data.X),
            _SPARSE_REFITS if sparse else _DENSE_REFITS,
            *self._thinning(),
        )
        growth = replace(
            self._growth(data),
            judged=True,
            local_sweeps=min(self.expansion_sweeps, _LOCAL_SWEEPS),
            sweeps=min(self.max_sweeps, _SPARSE_SWEEPS if sparse else _DENSE_SWEEPS),
            sweep_patience=1,
            patience=2,
        )
        with executor_for(self.n_jobs, self.executor) as executor:
            judged: Tree | None = None
            if self._recipe is not None:
                recipe = self._recipe
                tree = follow(recipe, data, wishes, self._settings_of, executor, seed)
                self._keep(Grown(tree, np.empty(0, INDEX), ended="rounds"))
            else:
                resumed = None if saved is None else saved[0]
                adapted = adapt(
                    data, held, wishes, self._settings_of, growth, executor, seed,
                    saved=resumed, kind=self._known_kind, share=self._share, after=after,
                )  # fmt: skip
                tree, recipe = adapted.tree, adapted.recipe
                self._keep(adapted.grown)
                judged = adapted.grown.best
                if self._watch is not None:
                    self._watch.judged = judged
        self._found = recipe
        self.leaf_loss_, self.leaf_strength_ = recipe.kind.loss, recipe.kind.strength
        self.sharpness_ = recipe.sharpness
        self.beam_, self.temperature_ = recipe.trust.beam, recipe.trust.temperature
        epsilon = self.epsilon
        if self.zero_probability == "epsilon" and epsilon is None:
            assert judged is not None
            epsilon = tuned_epsilon(judged, replace(data, weight=held).take(np.flatnonzero(held)))
        self._finish(tree, data, None, recipe.trust.outside_scale, epsilon)

    def _leaf_losses(self, sparse: bool) -> tuple[LeafLoss, ...]:
        """Return the losses of leaves to try."""
        if self.leaf_loss != "auto":
            return (self.leaf_loss,)
        both = sparse and self.leaf_ridge is None and self.leaf_l1 is None
        return ("hinge", "softmax") if both else ("softmax",)

    def _thinning(self) -> tuple[float, float]:
        """Return the weights above which small ones go, and how many times the errors may be."""
        if isinstance(self.small_weights, str):
            usual = {"auto": (FEW_WEIGHTS, 1.0), "drop": (0, AS_GOOD), "keep": (math.inf, 1.0)}
            return usual[self.small_weights]
        return 0, float(self.small_weights)

    def _with_tree(self, tree: Tree, data: TrainingData) -> Self:
        """Return this estimator with a tree that was fitted to some rows, as sure as its own."""
        found = self._found
        out = copy.copy(self)
        out.__dict__.pop("_watch", None)
        tree = with_sharpness(tree, found.sharpness)
        out._finish(tree, data, None, found.trust.outside_scale, self.epsilon_ or None)
        return out

    def _like_this(self) -> tuple[Recipe | None, LeafKind | None]:
        """Return what another tree of the same rows need not find again: all, or a part.

        Trees that differ make a forest. A flat leaf would always be the same, so others like it are
        shallow trees; trees that have grown are grown each by itself.
        """
        recipe = getattr(self, "_found", None)
        if recipe is None or (self.zero_probability == "epsilon" and self.epsilon is None):
            return None, None
        if recipe.depth == 0:
            depth = _SPARSE_SHALLOW if self.sparse_input_ else _DENSE_SHALLOW
            return replace(recipe, depth=depth, n_sweeps=2, trust=Trust()), None
        shallow = len(self.history_) < 2 and not recipe.kind.deep
        return (recipe, None) if shallow else (None, recipe.kind)

    def _settings_of(self, data: TrainingData, kind: LeafKind, leaf_limits: IndexArray) -> Settings:
        """Return settings for leaves of a kind; what the user gave is in the units of the input."""
        settings = self._settings(data, leaf_limits)
        routers, leaves = settings.objective.routers, settings.objective.leaves
        if isinstance(data.X, CSR):
            scale, local = mean_square_norm(data.X), False
        else:
            scale, local = float(n_features_of(data.X)), True
        margins = kind.loss == "hinge"
        own_routers = self.router_l1 is None and self.router_ridge is None
        if own_routers:
            strength = _HINGE_ROUTER if margins else _DENSE_ROUTER if local else _SPARSE_ROUTER
            routers = Penalty(0.0 if margins else _L1, strength * scale, local)
        if self.leaf_l1 is None and self.leaf_ridge is None:
            leaves = Penalty(0.0 if margins else _L1, kind.strength * scale, local)
        overlap = settings.overlap
        if local and self.overlap == "auto":
            overlap = _DENSE_OVERLAP
        router_solver = solve_axis if local and kind.axis else solve_logistic
        if margins and own_routers:
            router_solver = solve_hinge_router
        return replace(
            settings,
            overlap=overlap,
            objective=replace(settings.objective, routers=routers, leaves=leaves),
            spread=feature_spread(data.X) if local else None,
            solve_leaf=solve_hinge if margins else solve_softmax,
            solve_router=router_solver,
            warm_leaves=not margins,
        )

    def _settings_for_update(self, data: TrainingData) -> tuple[Settings, float]:
        if not hasattr(self, "leaf_loss_"):
            return super()._settings_for_update(data)
        kind = LeafKind(self.leaf_loss_, self.leaf_strength_)
        settings = self._settings_of(data, kind, np.empty(0, INDEX))
        if settings.spread is not None and hasattr(self, "feature_spread_"):
            spread = np.where(self.feature_spread_ > 0.0, self.feature_spread_, 1.0)
            settings = replace(settings, spread=spread)
        return settings, float(getattr(self, "sharpness_", 1.0))

    def _grow(
        self,
        data: TrainingData,
        seed: np.random.SeedSequence,
        saved: tuple[Grown, int] | None,
        after: Callable[[Grown], None],
    ) -> None:
        """Grow as in paper 000: by decisions on the rows that are fitted."""
        data, held = self._split(data, node_seed(seed, 1))
        start: InitialTree | Grown
        start = self._initial(data, node_seed(seed, 0)) if saved is None else saved[0]
        with executor_for(self.n_jobs, self.executor) as executor:
            grown = grow(
                start,
                data,
                self._settings(
                    data, usual_limits(start.tree, self.contraction, self.initial_contraction)
                ),
                self._growth(data),
                executor,
                node_seed(seed, 2),
                validation=held,
                after_round=after,
                after_sweep=after,
            )
        self._keep(grown)
        assert grown.best is not None  # of round 0 at least
        self._finish(grown.best, data, held)

    # -- part by part ------------------------------------------------------------------------------

    def _check_in_parts(self) -> None:
        super()._check_in_parts()
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is for rows that are trained on together: these take more than "
                "max_memory allows"
            )

    def _held_share(self) -> float | None:
        judged = self.decisions == "held_out"
        return self.validation_fraction or JUDGES if judged else self.validation_fraction

    def _part_floor(self, X: Rows) -> float | None:
        waits = self.decisions == "held_out" and not isinstance(X, CSR)  # until overlap has helped
        return None if waits else super()._part_floor(X)

    def _top_settings(self, data: TrainingData, leaf_limits: IndexArray) -> Settings:
        if self.decisions == "training":
            return self._settings(data, leaf_limits)
        sparse = isinstance(data.X, CSR)
        loss = self._leaf_losses(sparse)[0]
        strength = FIRST_STRENGTH[loss] if sparse else DENSE_STRENGTH
        return self._settings_of(data, LeafKind(loss, strength), leaf_limits)

    def _part_parameters(
        self, depth: int, share: float, n_own: int, n_classes: int
    ) -> dict[str, Any]:
        own: dict[str, Any] = {}
        if self.max_depth is not None:
            if self.max_depth <= depth:
                raise ValueError(
                    f"max_depth={self.max_depth} is too little: with this max_memory, {depth} "
                    "levels and more divide the rows into parts that fit"
                )
            own["max_depth"] = self.max_depth - depth
        if self.max_leaves is not None:
            own["max_leaves"] = max(1, math.floor(share * self.max_leaves))
        if self.max_seconds is not None:
            own["max_seconds"] = max(share, 1e-6) * self.max_seconds
        usual = usual_depth(n_classes) - depth  # a part has its own classes, and those of guests
        if self.initial_depth is not None:
            own["initial_depth"] = max(0, self.initial_depth - depth)
        elif usual > 0:
            own["initial_depth"] = usual
        if self.initial_contraction is not None:
            own["initial_contraction"] = min(1.0, self.initial_contraction * n_classes / n_own)
        return own

    def _train_part(
        self, data: TrainingData, rows: PartRows, seed: np.random.SeedSequence
    ) -> PartTree:
        held = held_weight(data, rows, self.validation_fraction or JUDGES)
        judged, scale = None, 1.0
        found: dict[str, Any] = {}
        if self.decisions == "held_out" and np.count_nonzero(held) >= LEAST_JUDGES:
            self._share, self._watch = rows.share, Watch()
            self._adapt(data, held, seed, None, lambda _: None)
            scale = self._found.trust.outside_scale
            if self._watch.judged is not None:
                judged = with_sharpness(self._watch.judged, self._found.sharpness)
            found = {"leaf_loss_": self.leaf_loss_, "leaf_strength_": self.leaf_strength_}
        else:
            weighted = replace(data, weight=data.weight * rows.share)
            self._grow(weighted, seed, None, lambda _: None)
        if self.ended_ == "interrupted":
            raise KeyboardInterrupt
        record = self.history_[self.best_round_]
        found |= {"ended_": self.ended_, "n_iter_": self.n_iter_}
        return PartTree(self.tree_, judged, None if judged is None else held, scale, record, found)

    def _keep_parts(self, fit: JoinedFit) -> None:
        for name in _FOUND:  # of an earlier fit
            self.__dict__.pop(name, None)
        self.history_ = [round_of_parts(fit, self.coverage_)]
        self.best_round_ = 0
        self.ended_ = most_common([part.found["ended_"] for part in fit.parts if part.found])
        self.n_iter_ = max(part.found.get("n_iter_", 1) for part in fit.parts)
        if self.decisions != "held_out":
            return
        self.beam_, self.temperature_ = 1, 1.0
        if fit.trust is not None:
            self.beam_, self.temperature_ = fit.trust.beam, fit.trust.temperature
        for name in ("leaf_loss_", "leaf_strength_"):
            values = [part.found[name] for part in fit.parts if name in part.found]
            if values:
                setattr(self, name, most_common(values))

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
            depth = usual_depth(data.n_classes)
        if self.max_depth is not None:
            depth = min(depth, self.max_depth)
        if self.max_leaves is not None:
            depth = min(depth, math.floor(math.log2(self.max_leaves)))
        return initial_tree(data, int(depth), self._init(data), seed)

    def _growth(self, data: TrainingData) -> Growth:
        return Growth(
            self.contraction,
            self.tolerance,
            self.expansion_depth,
            self._init(data),
            self.expansion_sweeps,
            self.max_sweeps,
            None if self.max_rounds == "auto" else self.max_rounds,
            self.max_depth,
            self.max_leaves,
            self.max_seconds,
            self.patience,
        )

    def _keep(self, grown: Grown) -> None:
        if grown.ended == "interrupted":
            warnings.warn(
                f"interrupted: growth ended in round {len(grown.history) - 1}", stacklevel=6
            )
        self.history_ = [asdict(record) for record in grown.history]
        self.best_round_ = best_round(grown.history) if grown.history else 0
        self.ended_ = grown.ended
        self.n_iter_ = max(len(grown.history) - 1, 1)

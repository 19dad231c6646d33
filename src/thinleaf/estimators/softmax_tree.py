"""The Softmax Tree of paper 001 as a scikit-learn classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval

from thinleaf._dtypes import INDEX, IndexArray
from thinleaf.arrays.rows import CSR
from thinleaf.estimators._base.large_fits import most_common
from thinleaf.estimators._base.out_of_core import (
    JoinedFit,
    PartTree,
    error_of_parts,
    sum_of_parts,
)
from thinleaf.estimators._base.progress import SweepBar
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier
from thinleaf.execution import Executor, ExecutorChoice, executor_for
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.growth.initial_tree import (
    Init,
    from_routers,
    initial_tree,
    node_seed,
)
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.softmaxtree.objective import Absent
from thinleaf.softmaxtree.parts.partition import PartRows
from thinleaf.softmaxtree.tao import Settings, TaoResult, TrainingData, Validation, optimise

_ROWS_PER_LEAF = 100


class SoftmaxTreeClassifier(BaseTaoClassifier):
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
    structure : Tree, optional
        A tree whose structure and leaf sizes are taken, such as an adaptive tree's ``tree_``,
        instead of ``depth`` and ``leaf_classes``. Its parameters are not: training starts afresh,
        with an ``init`` other than ``"class_clusters"`` and ``"row_clusters"``.
    init : {"auto", "random", "random_median", "pca_median", "axis_splits", "random_axis_splits", \
"class_clusters", "row_clusters", "balanced_clusters"} or Tree
        The initial tree: random hyperplanes; splits at the median along a random or the first
        principal direction; dense input split, as decision trees do, by the feature, or the best of
        a random half of them, that tells most of the classes; paper 001's greedy merging of k-means
        clusters of class means or of rows; or classes halved from the root down by spherical
        2-means. ``"auto"`` is ``"pca_median"`` for dense and ``"balanced_clusters"`` for sparse
        input. A tree gives its routers, such as
        :meth:`~thinleaf.RecallTreeClassifier.router_tree` of an online tree; nodes that fewer than
        100 rows reach become leaves. Model files do not hold it.
    hierarchy : mapping, optional
        From labels to the groups that they belong to, the largest first: a sequence of names, or
        one text with "/" between them, such as ``{"cat": "animal/mammal"}``. The initial tree then
        follows it, instead of ``init``. Model files do not hold it.
    max_sweeps : int
        Sweeps at the most; training stops earlier if a sweep changes nothing.
    router_l1, leaf_l1 : float
        ℓ₁ penalties λ and μ on the sum of losses; they make weights sparse.
    router_ridge, leaf_ridge : float, optional
        Ridge penalties, ``ridge/2·‖w‖²`` on the sum of losses. By default 0.1 and 0.005 times the
        mean squared length of the rows, so that they follow the scale of the input.
    absent : {"constant", "zero_one", "drop"}
        Loss of a row whose class is not in the leaf it reaches: the constant ``beta``; 0/1 loss for
        all rows; or none, routers then ignore such rows (the paper finds that this fails).
    beta : float
        The constant.
    overlap : float or "auto", optional
        A row trains each node with the weight of its path probability there, also nodes that it
        only nearly reaches: with at least this probability. It makes trees generalise much better.
        Smaller gives fewer errors, more classes a leaf and longer fits. ``"auto"`` is 0.05 for
        dense and 0.01 for sparse input. None trains a node with just the rows that reach it, as in
        the papers.
    monotone : bool
        Take a node's new parameters only if they do not raise the objective. Safe, but it settles
        for worse trees. Needs ``overlap=None``.
    tol : float
        Precision of node problems, relative to the loss of the best constant model.
    max_newton : int
        Newton steps at the most in a node problem; the next sweep goes on from there.
    validation_fraction : float, optional
        Share of the rows held out. The tree with the lowest error on them is kept, and training
        stops after ``patience`` sweeps without a lower one; by default, the last one is kept, or
        without overlap, that with the lowest objective.
    patience : int
        Used with ``validation_fraction``.
    zero_probability : {"backoff", "epsilon", "none"}
        What classes outside a leaf get: a share of the leaf's estimated outside mass; ``epsilon``
        each, renormalised; or zero.
    epsilon : float, optional
        For ``zero_probability="epsilon"``. By default it is tuned on the validation part.
    keep_rows : int or "auto"
        Rows of each class to remember, so that :meth:`update` does not make the model forget them;
        0 is none. ``"auto"`` is as many as are a million values together, and 4 at least. They are
        in ``memory_``, and in files that are saved with ``trainable=True``.
    class_weight : dict or "balanced", optional
    max_memory : int or str, optional
        Most memory of the process, in bytes or such as ``"4G"``. Rows that would take more are
        trained on part by part: a top of the tree from a sample, then a subtree for each part, one
        after the other, through temporary files where ``TMPDIR`` says; see :meth:`fit_shards`.
        Ctrl-C then leaves no tree. If rows fit, the tree is the same as without a limit.
    warm_start : bool
        Go on from the tree of the previous fit instead of an initial tree.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Workers; None is 1, and -1 all cores. With ``executor="ray"`` None is all cores, too, of the
        whole cluster. The result does not depend on it.
    executor : {"threads", "ray", "joblib"} or object
        Where nodes are fitted: on threads; on a cluster of Ray, which needs the extra ``ray``; or,
        what is coarse, by the backends of joblib. Or a :class:`~thinleaf.execution.Ray` or
        :class:`~thinleaf.execution.Joblib` that says more, or another
        :class:`~thinleaf.execution.Executor`. The result does not depend on it.
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
        The sweep whose tree was kept; 0 if none was better than that of a warm start.
    n_iter_ : int
        Sweeps done.
    ended_ : str
        Why training ended: "converged", "patience", "sweeps" or "interrupted".
    n_parts_ : int
        Of a tree that was trained part by part: how many there were. Its ``history_`` is one entry.
    coverage_ : float
        Share of training weight whose class is in the leaf that the row reaches.
    backoff_ : Backoff or None
    epsilon_ : float
    memory_ : Memory
        Rows that are remembered.
    update_ : UpdateReport
        What the last update has changed.
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

    _parameter_constraints: dict[str, list[Any]] = BaseTaoClassifier._parameter_constraints | {
        "depth": [Interval(Integral, 0, 24, closed="both"), None],
        "leaf_classes": [Interval(Integral, 1, None, closed="left"), None],
        "structure": [Tree, None],
        "init": [*BaseTaoClassifier._parameter_constraints["init"], Tree],
        "max_sweeps": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        depth: int | None = None,
        leaf_classes: int | None = None,
        *,
        structure: Tree | None = None,
        init: Init | Tree | Literal["auto"] = "auto",
        hierarchy: Mapping[Any, Any] | None = None,
        max_sweeps: int = 30,
        router_l1: float = 0.01,
        leaf_l1: float = 0.01,
        router_ridge: float | None = None,
        leaf_ridge: float | None = None,
        absent: Absent = "constant",
        beta: float = 10.0,
        overlap: float | Literal["auto"] | None = "auto",
        monotone: bool = False,
        tol: float = 1e-4,
        max_newton: int = 20,
        validation_fraction: float | None = None,
        patience: int = 10,
        zero_probability: str = "backoff",
        epsilon: float | None = None,
        keep_rows: int | Literal["auto"] = "auto",
        class_weight: Any = None,
        max_memory: int | str | None = None,
        warm_start: bool = False,
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
        self.depth = depth
        self.leaf_classes = leaf_classes
        self.structure = structure
        self.max_sweeps = max_sweeps
        self.warm_start = warm_start

    def _fit_in_memory(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train the tree."""
        previous = getattr(self, "tree_", None) if self.warm_start else None
        known = None if previous is None else self.classes_
        data, classes = self._read(X, y, sample_weight, known)
        seed = seed_sequence(self.random_state)
        data, held = self._split(data, node_seed(seed, 1))
        with executor_for(self.n_jobs, self.executor) as executor:
            result = self._optimise(previous, data, held, node_seed(seed, 0), executor)
        if result.ended == "interrupted":
            warnings.warn(
                f"interrupted: the tree of sweep {result.best_sweep} is kept", stacklevel=4
            )
        self.classes_ = classes
        self.history_ = [asdict(record) for record in result.history]
        self.best_sweep_ = result.best_sweep
        self.ended_ = result.ended
        self.n_iter_ = len(result.history)
        tree, _ = prune(result.tree, route(result.tree, data.X).sizes > 0)
        self._finish(tree, data, held)

    def _check_combinations(self) -> None:
        super()._check_combinations()
        if self.structure is not None and (self.depth is not None or self.leaf_classes is not None):
            raise ValueError("structure says depth and leaf_classes: leave them None")
        if isinstance(self.init, Tree):
            given = [name for name in ("depth", "structure", "hierarchy") if getattr(self, name)]
            if given:
                raise ValueError(f"the tree of init says the structure: leave {given[0]} None")

    # -- part by part ------------------------------------------------------------------------------

    def _check_in_parts(self) -> None:
        super()._check_in_parts()
        if self.structure is not None or self.warm_start or isinstance(self.init, Tree):
            raise ValueError(
                "structure, warm_start and a tree as init are for rows that are trained on "
                "together: these take more than max_memory allows"
            )

    def _top_settings(self, data: TrainingData, leaf_limits: IndexArray) -> Settings:
        return self._settings(data, leaf_limits)

    def _part_parameters(
        self, depth: int, share: float, n_own: int, n_classes: int
    ) -> dict[str, Any]:
        return {} if self.depth is None else {"depth": max(0, self.depth - depth)}

    def _train_part(
        self, data: TrainingData, rows: PartRows, seed: np.random.SeedSequence
    ) -> PartTree:
        weighted, held = replace(data, weight=data.weight * rows.share), None
        if self.validation_fraction is not None:
            chosen = rows.own & rows.unseen
            if chosen.any() and not chosen.all():
                held = data.take(np.flatnonzero(chosen))
                weighted = weighted.take(np.flatnonzero(~chosen))
        with executor_for(self.n_jobs, self.executor) as executor:
            result = self._optimise(None, weighted, held, node_seed(seed, 0), executor)
        if result.ended == "interrupted":
            raise KeyboardInterrupt
        tree, _ = prune(result.tree, route(result.tree, weighted.X).sizes > 0)
        record = asdict(result.history[max(result.best_sweep, 1) - 1])
        found = {"ended_": result.ended, "n_iter_": len(result.history)}
        return PartTree(tree, None, None, 1.0, record, found)

    def _keep_parts(self, fit: JoinedFit) -> None:
        parts = fit.parts
        self.history_ = [
            {
                "sweep": 1,
                "objective": float(sum_of_parts(parts, "objective")),
                "train_error": error_of_parts(parts, "train_error"),
                "validation_error": error_of_parts(parts, "validation_error"),
                "n_solved": sum_of_parts(parts, "n_solved"),
                "seconds": float(sum_of_parts(parts, "seconds")),
            }
        ]
        self.best_sweep_ = 1
        self.ended_ = most_common([part.found["ended_"] for part in parts if part.found])
        self.n_iter_ = max(part.found.get("n_iter_", 1) for part in parts)

    # -- steps of a fit ----------------------------------------------------------------------------

    def _optimise(
        self,
        previous: Tree | None,
        data: TrainingData,
        held: TrainingData | None,
        seed: np.random.SeedSequence,
        executor: Executor,
    ) -> TaoResult:
        tree, assignment = previous, None
        if tree is None:
            if isinstance(self.init, Tree):
                start = from_routers(self.init, data, _ROWS_PER_LEAF)
            else:
                start = initial_tree(data, self._shape(data), self._init(data), seed)
            tree, assignment = start.tree, start.assignment
        bar = SweepBar(type(self).__name__, self.max_sweeps) if self.verbose else None
        result = optimise(
            tree,
            data,
            self._settings(data, self._leaf_limits(tree)),
            executor,
            max_sweeps=self.max_sweeps,
            assignment=assignment,
            validation=None if held is None else Validation(held, self.patience),
            progress=bar,
        )
        if bar is not None:
            bar.close()
        return result

    def _shape(self, data: TrainingData) -> int | Tree:
        """Return the structure to start from: a tree's, or the depth of a complete one."""
        if self.structure is not None:
            return self.structure
        if self.depth is not None:
            return int(self.depth)
        sparse = isinstance(data.X, CSR)
        wanted = math.log2(max(data.n_classes, 2)) * (0.5 if sparse else 1.0)
        affordable = math.log2(max(data.n_rows / _ROWS_PER_LEAF, 1.0))
        return int(min(math.ceil(wanted), affordable))

    def _leaf_limits(self, tree: Tree) -> IndexArray:
        if self.structure is not None and np.array_equal(self.structure.children, tree.children):
            return np.maximum(np.diff(self.structure.class_ptr), 1).astype(INDEX)
        limit = self.leaf_classes
        if self.structure is not None:  # a warm start from a tree that was pruned
            limit = int(self.structure.leaf_sizes.max())
        if limit is None:
            limit = max(8, math.ceil(4 * tree.n_classes / tree.n_leaves))
        return np.full(tree.n_nodes, min(limit, tree.n_classes), dtype=INDEX)

"""The classifier of paper 004: an M-ary tree over labels, learned with the representation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import OFFSET, PARAM, AnyArray, ParamArray
from thinleaf._version import __version__
from thinleaf.arrays.checks import as_weights, class_ids, ids_of_rows
from thinleaf.arrays.rows import (
    Rows,
    as_rows,
    mean_square_norm,
    n_features_of,
    n_rows_of,
)
from thinleaf.estimators._base.classifier import (
    SparseInputClassifier,
    all_or_nothing,
    made_once,
)
from thinleaf.estimators._base.progress import EpochLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import (
    Storable,
    json_parameters,
    plain_parameters,
)
from thinleaf.estimators._base.training_rows import (
    check_labels,
    check_one_type,
    checked_training,
)
from thinleaf.execution import executor_for
from thinleaf.labeltree import fixed_trees as kinds
from thinleaf.labeltree.assign import Criterion, check_depth
from thinleaf.labeltree.frozen import FrozenLabelTree, Training
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.model import LabelTreeModel
from thinleaf.labeltree.predictor import LabelTreePredictor
from thinleaf.labeltree.show import tree_text
from thinleaf.labeltree.start import order_test, projected, prototypes
from thinleaf.labeltree.statistics import NodeQuality, Statistics, node_quality
from thinleaf.labeltree.targets import Targets, indicator, is_indicator, targets_of
from thinleaf.labeltree.texts import is_text, text_list
from thinleaf.labeltree.training import Assigning, Schedule, train
from thinleaf.labeltree.word_features import Pooling, WordFeatures

FixedKind = Literal["ordered", "huffman", "balanced", "clustering"]
TreeKind = Literal["learned", FixedKind]
Start = Literal["auto", FixedKind]


class LabelTreeClassifier(SparseInputClassifier, Storable):
    """A tree over labels with a softmax at each node, on embeddings of the input.

    A row is the sum of the embeddings of its features, weighted by their values; a text is the mean
    of the embeddings of its words and n-grams, as in fastText. The probability of a label is the
    product of the nodes' softmaxes along its path. With ``tree="learned"`` labels are re-assigned
    to paths while embeddings and nodes are trained (paper 004); the other kinds are fixed trees,
    and ``tree="huffman", arity=2`` is fastText's hierarchical softmax.

    Parameters
    ----------
    dim : int
        Length d of the embeddings.
    arity : int
        M, the number of children of a node; no more than there are labels are made. Wide trees have
        fewer errors, narrow ones are faster.
    tree : {"learned", "ordered", "huffman", "balanced", "clustering"} or LabelTree
        Of the fixed kinds, "ordered" and "balanced" have paths of the same length, or one more,
        over the labels as they sort and in random order; "huffman" minimises the expected depth,
        with labels of equal frequency as they sort; "clustering" puts labels with similar examples
        together.
    start : {"auto", "ordered", "huffman", "balanced", "clustering"}
        The tree that a learned one starts from. The order of names such as codes or paths often
        says which labels are alike: "auto" is "ordered" if so it does on rows that are held out
        for this, and "clustering" if not.
    epochs : int
        Passes over the training rows.
    learning_rate : float
        Of stochastic gradient ascent; it decreases linearly to zero, while the tree is learned
        after a first half in which it is constant.
    ngrams : int
        For texts: the most words in a term.
    n_buckets : int
        For texts: what sequences of words are hashed into.
    min_count : int
        For texts: how often a term must occur to have an embedding.
    pooling : {"mean", "sum"}
        For texts: what the embeddings of terms are put together by.
    max_depth : int or None
        The longest path of a learned tree (algorithm 3). None is no limit, with each node's number
        of labels one modulo M - 1 (algorithm 2).
    max_share : float or None
        A child of a learned tree whose labels have this many times its fair share of the examples
        takes no more while others have room. None is no limit.
    n_assignments : int
        How often, in the first half of training, a learned tree is re-assigned.
    criterion : {"probability", "log_likelihood"}
        Which derivative of J_n ranks assignments: equation 10 or 12.
    gradient : {"log_likelihood", "probability"}
        Whether steps ascend log p or p of the right child at each node.
    search : {"exact", "greedy"}
        How ``predict`` finds a label: by branch and bound the most probable one, or by the most
        probable child of each node.
    random_state : int, RandomState instance or None
    n_jobs : int or None
        Threads for training and for batches of predictions. One thread gives the same model each
        time; more update shared arrays without locks, so that models differ in their bits, though
        not in quality. Predictions do not depend on it.
    verbose : int

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : LabelTreeModel
        Tree, embeddings and parameters of the nodes.
    start_ : str
        The kind of tree that training started from, or "given"; not in files.
    history_ : list of dict
        Loss and depth after each epoch.
    quality_ : NodeQuality
        J_n, β and α of each node on the training rows, as they were in the last epoch.
    class_count_ : ndarray of shape (n_classes,)
    features_ : WordFeatures or None
        The terms of training texts.

    Examples
    --------
    >>> from thinleaf import LabelTreeClassifier
    >>> texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 5
    >>> y = ["fracture", "fracture", "fever", "fever"] * 5
    >>> clf = LabelTreeClassifier(dim=8, arity=2, epochs=20, random_state=0).fit(texts, y)
    >>> clf.predict(["broken toe"])
    array(['fracture'], dtype='<U8')
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "dim": [Interval(Integral, 1, None, closed="left")],
        "arity": [Interval(Integral, 2, None, closed="left")],
        "tree": [StrOptions({*get_args(TreeKind)}), LabelTree],
        "start": [StrOptions({"auto", *get_args(FixedKind)})],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "ngrams": [Interval(Integral, 1, 10, closed="both")],
        "n_buckets": [Interval(Integral, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "pooling": [StrOptions({"mean", "sum"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_share": [Interval(Real, 1, None, closed="left"), None],
        "n_assignments": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"probability", "log_likelihood"})],
        "gradient": [StrOptions({"probability", "log_likelihood"})],
        "search": [StrOptions({"exact", "greedy"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        dim: int = 100,
        arity: int = 20,
        tree: TreeKind | LabelTree = "learned",
        start: Start = "auto",
        epochs: int = 25,
        learning_rate: float = 1.0,
        ngrams: int = 2,
        n_buckets: int = 2_000_000,
        min_count: int = 1,
        pooling: Pooling = "mean",
        max_depth: int | None = None,
        max_share: float | None = 2.0,
        n_assignments: int = 50,
        criterion: Criterion = "probability",
        gradient: Criterion = "log_likelihood",
        search: Literal["exact", "greedy"] = "exact",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.dim = dim
        self.arity = arity
        self.tree = tree
        self.start = start
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.ngrams = ngrams
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.pooling = pooling
        self.max_depth = max_depth
        self.max_share = max_share
        self.n_assignments = n_assignments
        self.criterion = criterion
        self.gradient = gradient
        self.search = search
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None
    ) -> LabelTreeClassifier:
        """Train embeddings and nodes, and unless it is fixed, the tree.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features) or list of str
        y : array-like of shape (n_rows,) or {sparse matrix, array} of shape (n_rows, n_labels)
            Labels: integers or strings. Rows of several labels have them as a matrix with 1 where
            a row has a label; labels are then the numbers of columns. In each epoch, such a row is
            an example of one of its labels, drawn at random. Columns without a row are no labels;
            rows without a label are left out.
        sample_weight : array-like of shape (n_rows,), optional
            What the steps of a row are multiplied by, once they are scaled to a mean of one. Rows
            without weight are left out; other weights are like repetition, but not the same.

        Returns
        -------
        self
        """
        self._validate_params()
        importance: ParamArray | None = None
        if is_indicator(y):
            X, y, sample_weight = _labelled(X, y, sample_weight)
        if sample_weight is not None:
            X, y, importance = _weighted(X, y, sample_weight)
        if is_indicator(y):
            targets, classes = targets_of(y)
            rows, _, scale, features = self._read(X, targets.labels[targets.ptr[:-1]])
        else:
            rows, labels, scale, features = self._read(X, y)
            classes = np.unique(labels)
            targets = Targets.single(class_ids(classes, labels))
        learned = isinstance(self.tree, str) and self.tree == "learned"
        seeds = seed_sequence(self.random_state)
        rng = np.random.default_rng(seeds)
        given = _Given(rows, targets, classes.size, scale, importance)
        start = self._start(given, np.random.default_rng(seeds.spawn(1)[0]))
        tree = self._first_tree(start, given, rng)
        model = LabelTreeModel.start(tree, n_features_of(rows), self.dim, rng, scale)
        schedule = Schedule(self.epochs, self.learning_rate, self.n_assignments if learned else 0)
        assigning = Assigning(
            self.criterion,
            self.max_depth,
            self.max_share,
            log_gradient=self.gradient == "log_likelihood",
        )
        lines = EpochLines(type(self).__name__, self.epochs) if self.verbose else None
        with executor_for(self.n_jobs) as executor:
            trained = train(
                model, rows, targets, schedule, assigning, rng, executor, lines, importance
            )
        _check_finite(trained.model)
        quality = node_quality(trained.model.tree, trained.statistics)
        self.features_ = features
        self.classes_ = classes
        self.model_ = trained.model
        self.start_ = start
        self.class_count_ = np.bincount(targets.labels, minlength=classes.size).astype(OFFSET)
        self.history_ = [record._asdict() for record in trained.history]
        self.quality_ = quality
        return self

    # -- looking at it -----------------------------------------------------------------------------

    def mean_flops(self, X: Any) -> float:
        """Return the mean number of multiplications for a prediction, as ``search`` finds it.

        A row's representation takes d for each of its terms, a node that is visited d for each of
        its outputs.
        """
        rows = self._predictor.as_rows(self._rows(X))
        return self.model_.mean_flops(rows, greedy=self.search == "greedy")

    def inspect(self, X: Any = None, y: npt.ArrayLike | None = None) -> NodeQuality:
        """Return J_n, balancedness β and purity α of every node (paper 004, section 5).

        Parameters
        ----------
        X : rows or texts, optional
            By default the figures are those of the training rows, collected in the last epoch.
        y : array-like of shape (n_rows,), optional
            To be given with ``X``.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither for the figures of the training rows")
        if X is None or y is None:
            return self.quality_
        return self.quality_of([self.node_statistics(X, y)])

    def node_statistics(self, X: Any, y: npt.ArrayLike) -> Statistics:
        """Return SumProbas and Counts of some rows, for :meth:`quality_of`."""
        if is_indicator(y):
            raise ValueError("y must be one label a row: repeat rows of several labels")
        rows = self._predictor.as_rows(self._rows(X))
        return self.model_.statistics(rows, ids_of_rows(self.classes_, y, n_rows_of(rows)))

    def quality_of(self, parts: Iterable[Statistics]) -> NodeQuality:
        """Return J_n, β and α of every node, from the statistics of several batches of rows."""
        total = Statistics.zeros(self.model_.tree, 0)
        for part in parts:
            total.sum_probas[:] += part.sum_probas
            total.counts[:] += part.counts
        return node_quality(self.model_.tree, total)

    def tree_text(self, **options: int) -> str:
        """Return the tree with the most frequent labels of each node.

        Parameters
        ----------
        **options
            ``n_top``, ``max_depth`` and ``max_children`` of
            :func:`thinleaf.labeltree.show.tree_text`.
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        return tree_text(self.model_.tree, names, self.class_count_, self.quality_, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`thinleaf.load` and :func:`thinleaf.load_estimator` open."""
        plain_parameters(self, given_tree=not isinstance(self.tree, str))  # or say what cannot be
        self.freeze().save(path)

    # -- shared steps ------------------------------------------------------------------------------

    def _read(self, X: Any, y: npt.ArrayLike) -> _Input:
        if not is_text(X):
            X, labels = checked_training(self, X, y)
            rows = as_rows(X)
            square = mean_square_norm(rows)
            return _Input(rows, labels, 1.0 / np.sqrt(square) if square > 0.0 else 1.0, None)
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit to rows
            self.__dict__.pop(name, None)
        check_one_type(y)
        texts, labels = list(X), np.asarray(y)
        if labels.shape != (len(texts),):
            raise ValueError(f"there are {len(texts)} texts, but y has shape {labels.shape}")
        check_labels(labels)
        features = WordFeatures(self.ngrams, self.n_buckets, self.min_count, self.pooling)
        return _Input(features.fit_transform(texts), labels, 1.0, features)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._rows(X) if self.features_ is None else text_list(X)

    @property
    def _predictor(self) -> LabelTreePredictor:
        """What predicts, made when it is first needed."""
        model = getattr(self, "model_", None)
        if model is None:
            check_is_fitted(self)
        greedy = self.search == "greedy"
        return made_once(
            self,
            (model, greedy),
            lambda: LabelTreePredictor(self.model_, self.classes_, self.features_, greedy=greedy),
        )

    def _frozen_form(self) -> FrozenLabelTree:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        parameters = json_parameters(self) | {"search": self.search}
        if not isinstance(self.tree, str):
            parameters["tree"] = None  # the model has it
        return FrozenLabelTree(
            self.model_,
            self.classes_,
            Training(parameters, self.history_, self.quality_, self.class_count_),
            words=self.features_,
            greedy=self.search == "greedy",
            feature_names=None if names is None else [str(name) for name in names],
            summary={"estimator": type(self).__name__, "thinleaf": __version__},
        )

    def _start(self, given: _Given, rng: np.random.Generator) -> FixedKind | Literal["given"]:
        """Return the kind of the tree that training starts from."""
        if isinstance(self.tree, LabelTree):
            return "given"
        if self.tree != "learned":
            return self.tree
        if self.start != "auto":
            return self.start
        arity = kinds.useful_arity(given.n_labels, self.arity)
        if given.n_labels <= arity:
            return "ordered"  # one node: there is no order
        rows = projected(given.rows, given.scale, rng)
        test = order_test(rows, given.targets, given.n_labels, arity, rng)
        return "ordered" if test.passed else "clustering"

    def _first_tree(
        self, kind: FixedKind | Literal["given"], given: _Given, rng: np.random.Generator
    ) -> LabelTree:
        """Return the tree that training starts from."""
        n_labels = given.n_labels
        if isinstance(self.tree, LabelTree):
            if self.tree.n_labels != n_labels:
                raise ValueError(f"tree has {self.tree.n_labels} labels, but y has {n_labels}")
            return self.tree
        arity = kinds.useful_arity(n_labels, self.arity)
        if self.tree == "learned":
            check_depth(n_labels, arity, self.max_depth)
        if kind == "huffman":
            return kinds.huffman(given.targets.frequency(n_labels, given.importance), arity)
        if kind == "clustering":
            points = projected(given.rows, given.scale, rng)
            return kinds.clustered(prototypes(points, given.targets, n_labels), arity, rng)
        return kinds.balanced(n_labels, arity, rng if kind == "balanced" else None)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the share of rows whose label is predicted: of several, any of them (P@1)."""
        if not is_indicator(y):
            return float(super().score(X, y, sample_weight))
        found = self.predict(X)
        matrix = indicator(y, found.size)
        if matrix.shape[1] <= int(found.max(initial=0)):
            raise ValueError(f"Y must have a column for each label, got {matrix.shape[1]}")
        right = np.asarray(matrix[np.arange(found.size), found]).ravel()
        return float(np.average(right, weights=as_weights(sample_weight, found.size)))


class _Input(NamedTuple):
    """What ``fit`` was given, as training takes it."""

    rows: Rows
    labels: AnyArray
    scale: float
    """What rows are to be multiplied by."""
    features: WordFeatures | None


class _Given(NamedTuple):
    """What the first tree depends on."""

    rows: Rows
    targets: Targets
    n_labels: int
    scale: float
    importance: ParamArray | None


def _labelled(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return rows that have a label, the matrix of these, and the weights."""
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        X = np.asarray(X)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    matrix = indicator(y, n_rows)
    kept = np.flatnonzero(np.diff(matrix.indptr))
    if kept.size == 0:
        raise ValueError("no row has a label: Y has no 1")
    if kept.size == n_rows:
        return X, matrix, sample_weight
    if sample_weight is not None:
        sample_weight = as_weights(sample_weight, n_rows)[kept]
    return (
        _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, kept),
        matrix[kept],
        sample_weight,
    )


def _weighted(
    X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike
) -> tuple[Any, AnyArray, ParamArray]:
    """Return rows, labels and weights without those of no weight; weights have mean one."""
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        X = np.asarray(X)
    labels: Any = y if is_indicator(y) else np.asarray(y)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    weight = as_weights(sample_weight, n_rows)
    if labels.shape[:1] != (n_rows,):
        raise ValueError(f"there are {n_rows} rows, but y has shape {labels.shape}")
    kept = np.flatnonzero(weight > 0.0)
    if kept.size < n_rows:
        X = _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, kept)
    weight = weight[kept] / weight[kept].mean()
    return X, labels[kept], weight.astype(PARAM)


def _check_finite(model: LabelTreeModel) -> None:
    if not (np.isfinite(model.weights).all() and np.isfinite(model.U).all()):
        raise ValueError("training diverged: lower learning_rate")

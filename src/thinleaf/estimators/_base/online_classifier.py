"""What all online classifiers do: take a stream in pieces, count mistakes, be frozen and stored."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import as_weights, check_real
from thinleaf.arrays.rows import Rows
from thinleaf.estimators._base.classifier import SparseInputClassifier, all_or_nothing, go_back
from thinleaf.estimators._base.progress import ProgressLines
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import Trainable, Types, check_types, training_summary
from thinleaf.estimators._base.training_rows import check_labels, checked_training
from thinleaf.kernels.hashing import hash_features
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.predictor import Predictor
from thinleaf.model.probability import Backoff, Outside
from thinleaf.model.tree import Leaf, Tree
from thinleaf.online.growable import OnlineModel, checked, flattened, restored
from thinleaf.online.importance import LOSSES
from thinleaf.online.linear_models import Learning
from thinleaf.online.predictor import OnlinePredictor, model_row, model_rows
from thinleaf.online.progressive import ProgressiveLoss
from thinleaf.online.scaled_rows import Stream
from thinleaf.online.softmax_form import Unrolled
from thinleaf.online.stream_labels import Arrivals
from thinleaf.online.tables import padded

Loss: TypeAlias = Literal["logistic", "squared"]

MOST_ROUTERS = 2**31 - 1
"""More than that is no limit."""
_CHUNK = 1 << 14
"""Rows learned between two looks at interrupts and progress."""
_FIRST = np.zeros(1, dtype=INDEX)


_FITTED: Types = {
    "dense_": (bool,), "hash_bits_": (int, type(None)), "n_features_in_": (int,),
    "progressive_loss_": (float,),
}  # fmt: skip


_EXPLAINED: WeakKeyDictionary[Any, tuple[Any, Predictor]] = WeakKeyDictionary()
"""The trees that models were when they were last explained, kept beside them."""


class BaseOnlineClassifier(SparseInputClassifier, Trainable):
    """Everything but the model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels that have arrived or been announced, in ascending order.
    progress_ : list of dict
    progressive_loss_ : float
        Share of wrong predictions of examples that had not been learned yet: those of the first
        pass, or of all calls of ``partial_fit``.
    n_examples_ : int
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "loss": [StrOptions(set(LOSSES))],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "hash_bits": [Interval(Integral, 1, 26, closed="both"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    loss: Loss
    learning_rate: float
    n_passes: int
    shuffle: bool
    hash_bits: int | None
    random_state: Any
    verbose: int
    n_features_in_: int
    hash_bits_: int | None
    dense_: bool
    arrivals_: Arrivals
    model_: OnlineModel
    progressive_: ProgressiveLoss
    progressive_loss_: float
    _counts: AccumArray

    # -- what subclasses say -----------------------------------------------------------------------

    @abstractmethod
    def _new_model(self, n_features: int, *, dense: bool) -> OnlineModel:
        """Return a model that knows nothing."""

    def _learning(self) -> Learning:
        return Learning(LOSSES[self.loss], float(self.learning_rate), False)

    def _decide(self, stream: Stream, order: IndexArray) -> int:
        """Choose what is not given, before rows are learned in this order; return the passes."""
        return self.n_passes

    _fitted: Types = _FITTED
    """What files hold beside arrays, by type; and what newer files hold."""
    _fitted_since: Types = {}  # noqa: RUF012

    # -- learning ----------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Forget everything and learn rows in ``n_passes`` passes; Ctrl-C keeps what is learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels: integers or strings.
        sample_weight : array-like of shape (n_rows,), optional
            Importance of each row.

        Returns
        -------
        self
        """
        self._validate_params()
        X, y = self._read(X, y, first=True)
        weights = as_weights(sample_weight, y.size)
        rng = np.random.default_rng(seed_sequence(self.random_state))
        self._start(X)
        self.arrivals_.add(self.arrivals_.new_among(y[weights > 0.0]))
        stream = self._stream(X, y, weights)
        self._announce()
        rows = np.flatnonzero(weights > 0.0).astype(INDEX)
        order = rng.permutation(rows) if self.shuffle else rows
        n_passes = self._decide(stream, order)
        try:
            for n_done in range(n_passes):
                self._learn(stream, order)
                order = rng.permutation(rows) if self.shuffle else rows
                if n_done == 0:
                    self.progressive_loss_ = self.progressive_.loss
        except KeyboardInterrupt:
            if self.n_examples_ == 0:
                raise
            if self.n_examples_ < rows.size:
                self.progressive_loss_ = self.progressive_.loss
            warnings.warn(
                f"interrupted: {self.n_examples_} examples have been learned", stacklevel=3
            )
        return self

    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn rows once, in the order given, after all that has been learned so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels; new ones may appear in any call.
        classes : array-like, optional
            Labels to announce, so that ``predict_proba`` has a column for them. Not needed.
        sample_weight : array-like of shape (n_rows,), optional
            Importance of each row. One of weight 2 is learned much like two equal rows.

        Returns
        -------
        self
        """
        self._validate_params()
        first, before = not hasattr(self, "arrivals_"), dict(vars(self))
        try:
            self._learn_more(X, y, classes, sample_weight, first=first)
        except BaseException:
            if first and ("progressive_" not in vars(self) or self.n_examples_ == 0):
                go_back(self, before)
            raise
        return self

    def learn_one(self, x: Any, label: Any, values: Any = None, *, weight: float = 1.0) -> Any:
        """Learn one example, without the checks that tables of rows need; say what was predicted.

        Much faster than :meth:`partial_fit` of one row, which it equals.

        Parameters
        ----------
        x : array-like of shape (n_features,), or sparse matrix of one row
            With ``values``, the indices of features that are not zero.
        label : int or str
            A new one is a new class.
        values : array-like, optional
            As many as there are indices.
        weight : float
            Importance of the example.

        Returns
        -------
        label
            What was predicted on one path before the example was learned; None if no class was
            known.
        """
        if not hasattr(self, "arrivals_"):
            if values is not None:
                raise ValueError(
                    "the first example tells how many features there are: give a whole row, or "
                    "call partial_fit first"
                )
            X = x if sp.issparse(x) else np.asarray(x)[None]
            self.partial_fit(X, [label], sample_weight=[weight])
            return None
        if not 0.0 < weight < np.inf:
            raise ValueError(f"weight must be positive and finite, got {weight!r}")
        rows = model_row(
            x, values, self.n_features_in_, dense=self.dense_, hash_bits=self.hash_bits_
        )
        class_id = self.arrivals_.id_of(label)
        if class_id is None:
            new = self.arrivals_.new_among(np.array([label]))
            check_labels(new)
            self.arrivals_.add(new)
            class_id = len(self.arrivals_) - 1
        if self.hash_bits_ is not None:
            seen = np.shape(x)[-1] if values is None else int(np.max(x, initial=-1)) + 1
            self.n_features_in_ = max(self.n_features_in_, seen)
        ids = np.array([class_id], dtype=INDEX)
        stream = Stream(rows, ids, np.array([weight], dtype=ACCUM), _FIRST)
        n_classes = len(self.arrivals_)
        if n_classes > self._counts.size:
            self._counts = padded(self._counts, max(n_classes, 2 * self._counts.size), 0)
        predicted = self.model_.learn(stream, n_classes)
        self._counts[class_id] += weight
        self.progressive_.add(predicted, ids)
        self.progressive_loss_ = self.progressive_.loss
        found = int(predicted[0])
        return None if found < 0 else self.arrivals_.label_of(found)

    def _learn_more(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        first: bool,
    ) -> None:
        X, y = self._read(X, y, first=first)
        weights = as_weights(sample_weight, y.size)
        announced = y[:0] if classes is None else _announced(classes)
        arrivals = Arrivals(np.empty(0, dtype=np.int64)) if first else self.arrivals_
        new = arrivals.new_among(announced, y[weights > 0.0])
        if first:  # from here on nothing is refused
            self._start(X)
        self.n_features_in_ = max(X.shape[1], self.n_features_in_)
        self.arrivals_.add(new)
        if classes is not None:
            self._announce()
        try:
            rows = np.flatnonzero(weights > 0.0).astype(INDEX)
            self._learn(self._stream(X, y, weights), rows)
        finally:
            self.progressive_loss_ = self.progressive_.loss

    def _read(self, X: Any, y: npt.ArrayLike, *, first: bool) -> tuple[Any, AnyArray]:
        """Return checked rows and labels."""
        bits = self.hash_bits if first else self.hash_bits_
        return checked_training(self, X, y, reset=first, hashed=bits is not None)

    def _start(self, X: Any) -> None:
        """Make an empty model."""
        self.hash_bits_ = self.hash_bits
        self.dense_ = not sp.issparse(X) and self.hash_bits_ is None
        self.n_features_in_ = X.shape[1]
        self.model_ = self._new_model(self._width, dense=self.dense_)
        self.arrivals_ = Arrivals(np.empty(0, dtype=np.int64))
        self._counts = np.zeros(0, dtype=ACCUM)
        self.progressive_ = ProgressiveLoss()
        self.progressive_loss_ = 0.0

    @property
    def _width(self) -> int:
        """Features of the model."""
        return self.n_features_in_ if self.hash_bits_ is None else 1 << self.hash_bits_

    def _stream(self, X: Any, y: AnyArray, weights: AccumArray) -> Stream:
        """Return rows as models take them."""
        ids = np.zeros(y.size, dtype=INDEX)
        ids[weights > 0.0] = self.arrivals_.ids(y[weights > 0.0])
        return Stream(self._as_rows(X), ids, weights, np.empty(0, dtype=INDEX))

    def _announce(self) -> None:
        """Let all known classes take part, where a model cares."""

    def _learn(self, stream: Stream, order: IndexArray) -> None:
        lines = ProgressLines(type(self).__name__) if self.verbose else None
        n_classes = len(self.arrivals_)
        if n_classes > self._counts.size:
            self._counts = padded(self._counts, max(n_classes, 2 * self._counts.size), 0)
        done = 0
        while done < order.size:
            n = min(self.progressive_.n_until_record, _CHUNK)
            rows = order[done : done + n]
            predicted = self.model_.learn(stream._replace(order=rows), n_classes)
            np.add.at(self._counts, stream.labels[rows], stream.weights[rows])
            record = self.progressive_.add(predicted, stream.labels[rows])
            if record is not None and lines is not None:
                lines(record)
            done += rows.size

    def _as_rows(self, X: Any) -> Rows:
        return model_rows(X, dense=self.dense_, hash_bits=self.hash_bits_)

    # -- what has been learned ---------------------------------------------------------------------

    @property
    def classes_(self) -> AnyArray:
        """Labels so far, in ascending order."""
        if not hasattr(self, "arrivals_"):
            raise AttributeError("there are no classes before fit or partial_fit")
        return self.arrivals_.classes

    @property
    def counts_(self) -> AccumArray:
        """Weight of the examples of each class so far, in the order of arrival."""
        counts: AccumArray = self._counts[: len(self.arrivals_)]
        return counts

    @property
    def progress_(self) -> list[dict[str, float]]:
        """Progressive validation loss after 1, 2, 4, 8, … examples."""
        if not hasattr(self, "progressive_"):
            raise AttributeError("there is no progress before fit or partial_fit")
        return [record.as_dict() for record in self.progressive_.records]

    @property
    def n_examples_(self) -> int:
        """Examples learned so far, those of all passes."""
        if not hasattr(self, "progressive_"):
            raise AttributeError("there are no examples before fit or partial_fit")
        return self.progressive_.n_examples

    # -- prediction --------------------------------------------------------------------------------

    @property
    def _predictor(self) -> OnlinePredictor:
        check_is_fitted(self, "arrivals_")
        return OnlinePredictor(
            self.model_,
            self.arrivals_,
            self.counts_,
            self.n_features_in_,
            dense=self.dense_,
            hash_bits=self.hash_bits_,
            beam=self._paths()[0],
            temperature=self._paths()[1],
        )

    @property
    def _explained_predictor(self) -> Predictor:
        """The tree that the model is now, made anew once more has been learned."""
        check_is_fitted(self, "arrivals_")
        key = (self.model_, self.n_examples_, len(self.arrivals_))
        known = _EXPLAINED.get(self)
        if known is None or known[0] != key:
            known = _EXPLAINED[self] = (key, self.freeze()._predictor)
        return known[1]

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self, "arrivals_")
        check_real(X)
        if self.hash_bits_ is None:
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=PARAM)
        else:
            X = check_array(X, accept_sparse="csr", dtype=PARAM, estimator=self)
        return self._as_rows(X)

    # -- frozen and stored -------------------------------------------------------------------------

    def router_tree(self) -> Tree:
        """Return the routers of now as a tree, which a batch tree can start from.

        Its leaves are constant: what online leaves score with is shared by all of them. As
        ``init`` of a :class:`~thinleaf.SoftmaxTreeClassifier` it is refined by TAO, on rows that
        must be given, since an online tree keeps none.
        """
        tree = self._unrolled()
        nodes = [
            Leaf.constant(0) if leaf else tree.router(node)
            for node, leaf in enumerate(tree.is_leaf.tolist())
        ]
        return Tree.build(
            tree.children, nodes, n_features=tree.n_features, n_classes=tree.n_classes
        )

    def _unrolled(self) -> Unrolled:
        """Return the tree of now, its classes ascending, its features those of rows."""
        check_is_fitted(self, "arrivals_")
        tree = self.model_.unrolled(self.counts_.size).with_classes(self.arrivals_.columns)
        if self.hash_bits_ is None:
            return tree
        features = np.arange(self.n_features_in_, dtype=INDEX)
        return tree.with_features(hash_features(features, self.hash_bits_))

    def _frozen_form(self) -> FrozenTree:
        tree = self._unrolled()
        prior = (self.counts_ + 1.0)[self.arrivals_.columns]
        backoff = Backoff(
            tree.mass,
            np.zeros(tree.n_nodes + 1, dtype=OFFSET),
            np.empty(0, dtype=INDEX),
            np.empty(0, dtype=ACCUM),
            prior / prior.sum(),
        )
        outside = Outside.of(tree, backoff.capped(tree), 0.0)
        names = getattr(self, "feature_names_in_", None)
        return FrozenTree(
            pack(tree, outside, sparse=not self.dense_),
            self.classes_,
            feature_names=None if names is None else [str(name) for name in names],
            summary=training_summary(self),
        )

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        check_is_fitted(self, "arrivals_")
        state = self.model_.trimmed(self.counts_.size)
        arrays: dict[str, AnyArray] = {
            "arrivals": self.arrivals_.columns,
            "counts": self.counts_.copy(),
            "progress": self.progressive_.as_array(),
        }
        arrays |= flattened(state, "model.")
        names = [*self._fitted, *self._fitted_since]
        return arrays, {name: getattr(self, name) for name in names}

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        check_types(fitted, self._fitted, self._fitted_since)
        for name, value in fitted.items():
            setattr(self, name, value)
        if self.n_features_in_ != model.n_features:
            raise ValueError(f"the estimator has {self.n_features_in_} features")
        if self.hash_bits_ is not None and (self.dense_ or not 1 <= self.hash_bits_ <= 26):
            raise ValueError("hash_bits_ is out of range")
        self.model_ = self._new_model(self._width, dense=self.dense_)
        self.model_.state = restored(self.model_.state, arrays, "model.")
        self.model_.check(model.n_classes)
        columns = checked("arrivals", np.empty(0, INDEX), arrays)
        self.arrivals_ = Arrivals.from_columns(model.labels, columns)
        self._counts = checked("counts", np.empty(0, ACCUM), arrays)
        if self._counts.shape != (model.n_classes,) or not np.all(self._counts >= 0.0):
            raise ValueError("counts must be one number a class")
        progress = checked("progress", np.empty((0, 2), OFFSET), arrays)
        self.progressive_ = ProgressiveLoss.from_array(progress)


def _announced(classes: npt.ArrayLike) -> AnyArray:
    labels = np.asarray(classes)
    if labels.ndim != 1:
        raise ValueError(f"classes must have one dimension, got {labels.ndim}")
    check_labels(labels)
    return np.unique(labels)

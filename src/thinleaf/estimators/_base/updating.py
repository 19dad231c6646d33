"""Batch trees that go on learning: new rows, new classes, classes that are forgotten.

What is done to a tree is in :mod:`thinleaf.softmaxtree.growth.update`; here are input and results.
"""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, BoolArray, IndexArray
from thinleaf.arrays.checks import as_weights, class_ids
from thinleaf.arrays.rows import CSR, Rows, as_rows
from thinleaf.estimators._base.classifier import all_or_nothing
from thinleaf.estimators._base.training_rows import check_magnitude, checked_training
from thinleaf.estimators._base.tree_classifier import BaseFrozenClassifier
from thinleaf.execution import Executor, executor_for
from thinleaf.model.forest import with_features
from thinleaf.model.importance import feature_spread
from thinleaf.model.routing import losses, route
from thinleaf.softmaxtree.growth.memory import Memory
from thinleaf.softmaxtree.growth.update import correct, with_classes, without_class
from thinleaf.softmaxtree.tao import TrainingData, canonical

if TYPE_CHECKING:
    from thinleaf.estimators._base.tao_classifier import BaseTaoClassifier

_PREFIX = "memory."


@dataclass(frozen=True)
class UpdateReport:
    """What an update has changed.

    Attributes
    ----------
    n_rows : int
        New rows, equal ones of a class counted once.
    new_classes : list
        Labels that were not known before.
    n_remembered : int
        Rows from memory that the new ones were weighed against.
    n_leaves, n_routers : int
        Nodes that were corrected, of all trees.
    error_before, error_after : float
        Share of the new rows that trees label wrongly on one path, on average over trees. Those
        after are of rows that were learned.
    n_new_features : int
        Terms of texts that were not known before.
    seconds : float
    """

    n_rows: int
    new_classes: list[Any]
    n_remembered: int
    n_leaves: int
    n_routers: int
    error_before: float
    error_after: float
    n_new_features: int
    seconds: float

    def __str__(self) -> str:
        """Return it in two lines."""
        nodes = f"{self.n_leaves:,} leaves and {self.n_routers:,} routers changed"
        terms = f", {self.n_new_features:,} new terms" if self.n_new_features else ""
        return (
            f"{self.n_rows:,} new rows, {len(self.new_classes):,} new classes{terms}; {nodes}\n"
            f"error on the new rows {100 * self.error_before:.1f} % before, "
            f"{100 * self.error_after:.1f} % after; {self.seconds:.2f} s"
        )


class UpdatingClassifier(BaseFrozenClassifier):
    """A classifier of softmax trees that can learn more after its fit.

    Attributes
    ----------
    memory_ : Memory
        Rows of each class that it remembers.
    update_ : UpdateReport
        What the last update has changed.
    """

    memory_: Memory
    sparse_input_: bool
    n_features_in_: int
    n_jobs: Any
    executor: Any

    @abstractmethod
    def _members(self) -> Sequence[BaseTaoClassifier]:
        """Return the trees: itself, or those of a forest."""

    @abstractmethod
    def _take_members(self, members: list[BaseTaoClassifier]) -> None:
        """Take over trees that have changed."""

    def _columns_of(self, member: BaseTaoClassifier) -> BoolArray | None:
        """Return the features that a tree may use; None if it is all."""
        return None

    @all_or_nothing
    def update(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn more rows, also of classes that are new, without those of the fit.

        Nodes that the rows reach are corrected; the rest stays as it is. A new class enters the
        leaves where its rows land. The rows that the model remembers (``keep_rows``) see to it that
        others are not forgotten. The work is that of the new rows, whatever was learned before.
        :attr:`update_` says what has changed. If it fails, nothing has.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels, known ones or new ones.
        sample_weight : array-like of shape (n_rows,), optional
            In the units of the fit. A ``class_weight`` that is a mapping counts, too.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        started = time.perf_counter()
        new, classes, moved = self._new_rows(X, y, sample_weight)
        memory = self._known_memory().with_classes(moved, classes.size)
        old = memory.data
        with executor_for(self.n_jobs, "threads") as executor:
            found = [
                _learned(member, old, new, moved, self._columns_of(member), executor)
                for member in self._members()
            ]
        for member, _, _ in found:
            member.classes_ = classes
        known = set(self.classes_.tolist())
        self._take_members([member for member, _, _ in found])
        self.classes_ = classes
        self.memory_ = memory.with_rows(new)
        errors = np.mean([error for _, _, error in found], axis=0)
        counts = np.sum([count for _, count, _ in found], axis=0)
        self.update_ = UpdateReport(
            new.n_rows,
            [label for label in classes.tolist() if label not in known],
            memory.n_rows,
            int(counts[0]),
            int(counts[1]),
            float(errors[0]),
            float(errors[1]),
            self.__dict__.pop("_n_added", 0),
            time.perf_counter() - started,
        )
        return self

    @all_or_nothing
    def forget(self, label: Any) -> Self:
        """Remove a class: it is never answered again, and its rows are no longer remembered.

        Weights that other classes got from its rows stay.

        Parameters
        ----------
        label : one of ``classes_``

        Returns
        -------
        self
        """
        check_is_fitted(self)
        at = np.flatnonzero(self.classes_ == label)
        if at.size != 1:
            raise ValueError(f"there is no class {label!r} to forget")
        if self.classes_.size == 1:
            raise ValueError(f"{label!r} is the only class: a model needs one")
        gone, classes = int(at[0]), np.delete(self.classes_, at)
        moved = np.arange(self.classes_.size, dtype=INDEX)
        moved[gone + 1 :] -= 1
        moved[gone] = -1
        members = [_forgot(member, gone, moved) for member in self._members()]
        for member in members:
            member.classes_ = classes
        self._take_members(members)
        self.memory_ = self._known_memory().with_classes(moved, classes.size)
        self.classes_ = classes
        return self

    def _known_memory(self) -> Memory:
        """Return what is remembered; nothing, if the model comes from a file of before 0.5."""
        found: Memory | None = self.__dict__.get("memory_")
        if found is not None:
            return found
        n_features, n_classes = self.n_features_in_, self.classes_.size
        return Memory.empty(n_features, n_classes, sparse=self.sparse_input_)

    def _new_rows(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None
    ) -> tuple[TrainingData, AnyArray, IndexArray]:
        """Return checked rows, all classes, and which of these the known ones have become."""
        X, labels = checked_training(self, X, y, reset=False)
        check_magnitude(X)
        known = self.classes_
        if (labels.dtype.kind in "iub") != (known.dtype.kind in "iub"):
            raise ValueError(
                f"labels of the fit are {known.dtype}, those of the update {labels.dtype}: "
                "give labels of the same type"
            )
        weight = as_weights(sample_weight, labels.size)
        given = self._members()[0].class_weight
        if isinstance(given, Mapping):
            weight = weight * compute_sample_weight(dict(given), labels)
        if sp.issparse(X) != self.sparse_input_:
            X = sp.csr_matrix(X) if self.sparse_input_ else X.toarray()
        used = weight > 0.0
        X, labels, weight = X[used], labels[used], weight[used]
        classes = np.unique(np.concatenate([known, labels]))
        ids = class_ids(classes, labels)
        rows = canonical(TrainingData(as_rows(X), ids, weight, classes.size))
        return rows, classes, np.searchsorted(classes, known).astype(INDEX)

    def _widened(self, moved: IndexArray, n_features: int) -> Self:
        """Return a copy for rows of more features, of which the old ones have new numbers."""
        out = copy.copy(self)
        members = []
        for member in self._members():
            wide = copy.copy(member)
            wide.tree_ = with_features(member.tree_, moved, n_features)
            wide.n_features_in_ = n_features
            if hasattr(member, "feature_spread_"):
                wide.feature_spread_ = np.full(n_features, np.finfo(ACCUM).tiny)  # they may be used
                wide.feature_spread_[moved] = member.feature_spread_
            members.append(wide)
        out._take_members(members)
        out.memory_ = self._known_memory().with_features(moved, n_features)
        out.n_features_in_ = n_features
        out._n_added = n_features - moved.size
        return out

    # -- files -------------------------------------------------------------------------------------

    def _memory_arrays(self) -> dict[str, AnyArray]:
        """Return what a file holds of the memory."""
        memory: Memory | None = self.__dict__.get("memory_")
        if memory is None or memory.most == 0:
            return {}
        return {_PREFIX + name: array for name, array in memory.to_arrays().items()}

    def _restore_memory(self, arrays: Mapping[str, AnyArray], model: Any) -> None:
        """Take over what :meth:`_memory_arrays` returned; ``ValueError`` if it cannot be."""
        own = {n.removeprefix(_PREFIX): a for n, a in arrays.items() if n.startswith(_PREFIX)}
        if own:
            memory = Memory.from_arrays(own, model.n_features, model.n_classes)
            if isinstance(memory.X, CSR) != self.sparse_input_:
                raise ValueError("memory: rows are of another kind than those of the fit")
            self.memory_ = memory


# -- one tree --------------------------------------------------------------------------------------


def _learned(
    tree: BaseTaoClassifier,
    old: TrainingData,
    new: TrainingData,
    moved: IndexArray,
    columns: BoolArray | None,
    executor: Executor,
) -> tuple[BaseTaoClassifier, tuple[int, int], tuple[float, float]]:
    """Return a copy of a tree that has learned rows, how many nodes changed, errors on the rows."""
    if columns is not None:
        old, new = (replace(data, X=_only(data.X, columns)) for data in (old, new))
    out = copy.copy(tree)
    n_classes = new.n_classes
    before = with_classes(tree.tree_, moved, n_classes)
    settings, sharpness = tree._settings_for_update(new if old.n_rows == 0 else old)
    corrected = correct(before, old, new, settings, sharpness, executor)
    after = corrected.tree
    after.validate()
    reach = route(after, new.X)
    entropy, right = losses(after, new.X, new.y, reach)
    total = new.weight.sum()
    was_right = losses(before, new.X, new.y, route(before, new.X))[1]
    seen = tree.node_weight_ if hasattr(tree, "node_weight_") else np.zeros(after.n_nodes)
    out.tree_ = after
    if tree.backoff_ is not None:
        wider = tree.backoff_.with_classes(moved, n_classes)
        out.backoff_ = wider.with_rows(after, reach, new.y, new.weight, seen)
    covered = float(new.weight[np.isfinite(entropy)].sum())
    out.coverage_ = float((tree.coverage_ * seen[0] + covered) / (seen[0] + total))
    if hasattr(tree, "node_weight_"):
        out.node_weight_ = seen + _node_weight(reach, new.weight)
        share = total / (seen[0] + total)
        squares = (1.0 - share) * tree.feature_spread_**2 + share * feature_spread(new.X) ** 2
        out.feature_spread_ = np.sqrt(squares)
    errors = tuple(1.0 - float(new.weight[mask].sum() / total) for mask in (was_right, right))
    counts = (corrected.leaves.size, corrected.routers.size)
    return out, counts, (errors[0], errors[1])


def _node_weight(reach: Any, weight: AccumArray) -> AccumArray:
    ordered = np.concatenate([[0.0], np.cumsum(weight[reach.rows[reach.order]])])
    out: AccumArray = ordered[reach.end] - ordered[reach.begin]
    return out


def _only(X: Rows, columns: BoolArray) -> Rows:
    """Return rows with zero in all other columns."""
    if isinstance(X, CSR):
        return X._replace(data=np.where(columns[X.indices], X.data, 0.0).astype(PARAM))
    return (X * columns).astype(PARAM)


def _forgot(tree: BaseTaoClassifier, gone: int, moved: IndexArray) -> BaseTaoClassifier:
    """Return a copy of a tree that does not know a class."""
    out = copy.copy(tree)
    n_classes = moved.size - 1
    cut, kept = without_class(tree.tree_, gone)
    out.tree_ = with_classes(cut, moved, n_classes)
    out.tree_.validate()
    if tree.backoff_ is not None:
        mass = tree.backoff_.mass.copy()
        for node in range(tree.tree_.n_nodes - 1, -1, -1):  # leaves may stand for routers
            if not tree.tree_.is_leaf[node]:
                mass[node] = mass[tree.tree_.children[node]].mean()
        rest = replace(tree.backoff_, mass=mass).of_nodes(kept).with_classes(moved, n_classes)
        rest = replace(rest, mass=np.where(out.tree_.is_leaf, rest.mass, 0.0))
        out.backoff_ = rest.capped(out.tree_)
    if hasattr(tree, "node_weight_"):
        out.node_weight_ = tree.node_weight_[kept]
    return out

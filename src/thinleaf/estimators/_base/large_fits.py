"""Trees of more rows than may come together in memory: what their estimators have in common."""

from __future__ import annotations

import os
import sys
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import validate_data

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.amounts import as_bytes
from thinleaf.arrays.row_store import RowStore, bytes_of, gathered
from thinleaf.arrays.rows import as_matrix, is_sparse
from thinleaf.datasets import open_examples
from thinleaf.estimators._base.classifier import all_or_nothing
from thinleaf.estimators._base.memory import TIMES_ROWS, rows_fit
from thinleaf.estimators._base.out_of_core import (
    JoinedFit,
    PartFit,
    PartTree,
    Plan,
    each,
    room_in,
    temporary_directory,
)
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.shards import (
    LabelledRows,
    StoredShard,
    as_shards,
    classes_of,
    store_shard,
)
from thinleaf.estimators._base.storable import training_summary
from thinleaf.estimators._base.tree_classifier import BaseTreeClassifier
from thinleaf.execution import Executor, ExecutorChoice, executor_for
from thinleaf.softmaxtree.growth.hierarchy import Hierarchy
from thinleaf.softmaxtree.parts.partition import PartRows
from thinleaf.softmaxtree.tao import Settings, TrainingData

_DENSE_SHARE = 0.1
"""Files with at least this share of values that are not zero become dense rows."""

_SAID_ROWS = 1_000_000


@dataclass(frozen=True)
class _Shards:
    """All shards on disk, of one width and kind."""

    shards: list[StoredShard]
    classes: AnyArray
    class_of: list[IndexArray]

    @property
    def stores(self) -> list[RowStore]:
        return [shard.store for shard in self.shards]

    @property
    def n_rows(self) -> int:
        return sum(store.n_rows for store in self.stores)

    @property
    def n_bytes(self) -> int:
        return sum(store.nbytes for store in self.stores)

    @property
    def mass(self) -> AccumArray:
        """Weight of the rows of each class."""
        mass = np.zeros(self.classes.size, dtype=ACCUM)
        for shard, class_of in zip(self.shards, self.class_of, strict=True):
            np.add.at(mass, class_of, shard.mass)
        return mass

    @property
    def spread(self) -> AccumArray:
        """Standard deviation of each feature."""
        sums = np.sum([shard.sums for shard in self.shards], axis=0) / self.n_rows
        squares = np.sum([shard.squares for shard in self.shards], axis=0) / self.n_rows
        out: AccumArray = np.sqrt(np.maximum(squares - sums**2, 0.0))
        return out

    def together(self) -> tuple[Any, AnyArray, AccumArray | None]:
        """Return rows, labels and weights, if some differ from one, as ``fit`` takes them."""
        X, y, weight = gathered(self.stores)
        ends = np.cumsum([store.n_rows for store in self.stores])[:-1]
        ids = [c[part] for c, part in zip(self.class_of, np.split(y, ends), strict=True)]
        return as_matrix(X), self.classes[np.concatenate(ids)], _unless_one(weight)


def _unless_one(weight: AccumArray) -> AccumArray | None:
    return None if np.all(weight == 1.0) else weight


class BaseLargeFits(BaseTreeClassifier):
    """Fits within ``max_memory``, and to shards."""

    class_weight: Any
    executor: ExecutorChoice
    hierarchy: Mapping[Any, Any] | None
    max_memory: int | str | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    zero_probability: str
    epsilon: float | None
    _hierarchy: Hierarchy

    @all_or_nothing
    def fit_shards(
        self, shards: Any, *, rows: Literal["auto", "dense", "sparse"] = "auto", **reader: Any
    ) -> Self:
        """Train on labelled rows that are in several places, each with a part of them.

        If all rows fit into ``max_memory``, or there is no such limit, the tree is that of ``fit``.
        Else they never come together: each shard is read by itself, a sample trains the top of the
        tree, and rows go to the part of the tree that they belong to through temporary files. With
        ``executor="ray"`` all machines must see the directory that ``TMPDIR`` names, and the paths.

        Parameters
        ----------
        shards : path, or sequence of paths, Arrow tables or (X, y) or (X, y, weight); or Dataset
            Data files with rows of features, as :func:`~thinleaf.datasets.open_examples` reads
            them, tables of numbers with a column of labels, or arrays, which may be memory-mapped.
            Or a data set of Ray, which its workers write to files.
        rows : {"auto", "dense", "sparse"}
            How rows of files are trained on; by default dense if a tenth of the values is not zero.
        **reader
            Of :func:`~thinleaf.datasets.open_examples`, such as ``n_features`` or
            ``label_column``.

        Returns
        -------
        self
        """
        self._validate_params()
        self._check_combinations()
        self.__dict__.pop("n_parts_", None)
        if rows not in ("auto", "dense", "sparse"):
            raise ValueError(f"rows must be 'auto', 'dense' or 'sparse', got {rows!r}")
        with temporary_directory() as name:
            self._fit_shards(as_shards(shards, Path(name)), rows, reader, Path(name))
        return self

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train on rows at once, or if they would take too much memory, part by part."""
        self._check_combinations()
        self.__dict__.pop("n_parts_", None)  # of an earlier fit
        if self._fits(X):
            self._fit_in_memory(X, y, sample_weight)
            return
        validate_data(self, X[:1], accept_sparse="csr", dtype=PARAM)  # names of features
        with temporary_directory() as name:
            shard = LabelledRows(X, y, sample_weight)
            self._fit_shards([shard], "sparse" if is_sparse(X) else "dense", {}, Path(name))

    # -- what the estimators do --------------------------------------------------------------------

    @abstractmethod
    def _check_combinations(self) -> None:
        """Raise ``ValueError`` if some parameters do not go together."""

    @abstractmethod
    def _check_in_parts(self) -> None:
        """Raise ``ValueError`` if a parameter asks for what only a fit in memory can do."""

    @abstractmethod
    def _fit_in_memory(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train on rows that are in memory."""

    @abstractmethod
    def _top_settings(self, data: TrainingData, leaf_limits: IndexArray) -> Settings:
        """Return the settings of the top of the tree."""

    @abstractmethod
    def _part_parameters(
        self, depth: int, share: float, n_own: int, n_classes: int
    ) -> dict[str, Any]:
        """Return parameters for a part: its depth, its share of rows, its classes and all."""

    @abstractmethod
    def _train_part(
        self, data: TrainingData, rows: PartRows, seed: np.random.SeedSequence
    ) -> PartTree:
        """Train a subtree on the rows of a part."""

    @abstractmethod
    def _keep_parts(self, fit: JoinedFit) -> None:
        """Take over history and findings of all parts."""

    # -- steps of a fit ----------------------------------------------------------------------------

    def _fits(self, X: Any) -> bool:
        """Return whether rows can be trained on within the limit."""
        if self.max_memory is None:
            return True
        limit = as_bytes(self.max_memory)
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            return True  # a list, or nothing that can be trained on
        n_values = int(X.nnz) if is_sparse(X) else int(shape[0]) * int(shape[1])
        n_bytes = bytes_of(int(shape[0]), n_values, is_sparse(X))
        return rows_fit(n_bytes, limit)

    def _fit_shards(
        self, shards: list[Any], rows: str, reader: dict[str, Any], directory: Path
    ) -> None:
        limit = None if self.max_memory is None else as_bytes(self.max_memory)
        with ExitStack() as stack:
            executor = stack.enter_context(executor_for(self.n_jobs, self.executor))
            say = _to_stderr(type(self).__name__) if self.verbose else None
            found = _stored(shards, rows, reader, directory, executor, say)
            self._n_shard_rows = found.n_rows
            if limit is not None and not rows_fit(found.n_bytes, limit):
                if say is not None:
                    say(
                        f"{found.n_rows:,} rows of {found.classes.size:,} classes take "
                        f"{found.n_bytes / 2**20:,.0f} MiB, {TIMES_ROWS:.0f} times as much to "
                        f"train on at once: they are divided into parts"
                    )
                self._fit_parts(found, directory, executor, room_in(limit, executor), say)
                return
        X, y, weight = found.together()
        for store in found.stores:
            store.remove()
        self._fit_in_memory(X, y, weight)

    def _fit_parts(
        self,
        found: _Shards,
        directory: Path,
        executor: Executor,
        room: int,
        say: Callable[[str], None] | None,
    ) -> None:
        """Train part by part."""
        self._check_in_parts()
        classes, mass = found.classes, found.mass
        factor = self._class_factor(classes, mass)
        unit = min(shard.least for shard in found.shards) * float(factor[mass > 0.0].min())
        n_features = found.stores[0].n_features
        trainer = type(self)(**self.get_params(deep=False))
        if executor.local is not executor:
            trainer.set_params(executor="threads", n_jobs=1)
        if self.hierarchy is not None:
            trainer._hierarchy = Hierarchy.of(self.hierarchy, classes)
        seed = seed_sequence(self.random_state)
        counts = mass * factor / unit
        plan = Plan(trainer, classes, factor, unit, counts, seed, room, found.n_rows)
        fit = PartFit(plan, found.shards, found.class_of, executor, directory, say)
        joined = fit.run(counts)
        branch = joined.branch
        branch.tree.validate()
        self.tree_ = branch.tree
        self.classes_ = classes
        self.n_features_in_ = n_features
        store = found.stores[0]
        self.sparse_input_ = store.sparse and not store.as_dense
        self.node_weight_ = branch.weight * unit
        self.feature_spread_ = found.spread
        self.coverage_ = sum(p.covered for p in joined.parts) / sum(p.weight for p in joined.parts)
        self.backoff_ = branch.backoff if self.zero_probability == "backoff" else None
        self.epsilon_ = float(self.epsilon or 0.0) if self.zero_probability == "epsilon" else 0.0
        self.n_parts_ = len(joined.parts)
        self._keep_parts(joined)
        self._trained_with = training_summary(self)

    def _class_factor(self, classes: AnyArray, mass: AccumArray) -> AccumArray:
        """Return what weights of each class are multiplied by."""
        if self.class_weight == "balanced":
            mean = float(mass.sum() / np.count_nonzero(mass))
            return np.asarray(mean / np.maximum(mass, 1e-300), dtype=ACCUM)
        if self.class_weight is None:
            return np.ones(classes.size, dtype=ACCUM)
        return np.asarray(compute_sample_weight(self.class_weight, classes), dtype=ACCUM)

    def _for_part(self, depth: int, share: float, classes: AnyArray, n_classes: int) -> Self:
        """Return an estimator for a part of the rows that begins at some depth."""
        parameters = self.get_params(deep=False) | {
            "max_memory": None,
            "verbose": 0,
            "zero_probability": "none",
        }
        own = self._part_parameters(depth, share, classes.size, n_classes)
        out = type(self)(**(parameters | own))
        if self.hierarchy is not None:
            out._hierarchy = Hierarchy.of(self.hierarchy, classes)
        return out


def _stored(
    shards: list[Any],
    rows: str,
    reader: dict[str, Any],
    directory: Path,
    executor: Executor,
    say: Callable[[str], None] | None,
) -> _Shards:
    """Write all shards to disk."""
    files = [shard for shard in shards if isinstance(shard, str)]
    if len(files) > 1:
        reader = _same_layout(files[0], reader)
    items = [(shard, directory / f"shard{i}") for i, shard in enumerate(shards)]
    if executor.local is executor and say is not None:
        count = _counting(say)
        stored = [store_shard(reader, item, count) for item in items]
    else:
        stored = each(executor, store_shard, items, reader)
    stored = [shard for shard in stored if shard.store.n_rows]
    for note in (note for shard in stored for note in shard.notes):
        warnings.warn(note, stacklevel=6)
    if not stored:
        raise ValueError("the shards have no rows")
    widths, sparse = {s.store.n_features for s in stored}, {s.store.sparse for s in stored}
    if len(sparse) > 1 or (sparse == {False} and len(widths) > 1):
        raise ValueError("all shards must be sparse, or all dense with the same number of features")
    n_features = max(widths)
    n_values = sum(s.store.n_entries for s in stored)
    n_cells = float(n_features) * sum(s.store.n_rows for s in stored)
    dense = rows == "dense" or (rows == "auto" and n_values >= _DENSE_SHARE * n_cells)
    if not all(shard.written for shard in stored):
        dense = False  # arrays are what they are
    stored = [
        replace(
            s,
            store=replace(s.store, n_features=n_features, as_dense=dense and s.store.sparse),
            sums=np.pad(s.sums, (0, n_features - s.sums.size)),
            squares=np.pad(s.squares, (0, n_features - s.squares.size)),
        )
        for s in stored
    ]
    classes, class_of = classes_of(stored)
    return _Shards(stored, classes, [ids.astype(INDEX) for ids in class_of])


def _same_layout(path: str, reader: dict[str, Any]) -> dict[str, Any]:
    """Let all files be read as the first one is."""
    with open_examples(path, labels="required", **reader) as examples:
        layout = examples.layout
    return {"format": layout.format, "zero_based": layout.zero_based, "hashed": layout.hashed} | {
        name: value for name, value in reader.items() if value != "auto"
    }


def _counting(say: Callable[[str], None]) -> Callable[[int], None]:
    """Return what is told how many rows were read, and says it now and then."""
    n_rows = 0

    def count(n_more: int) -> None:
        nonlocal n_rows
        before, n_rows = n_rows // _SAID_ROWS, n_rows + n_more
        if n_rows // _SAID_ROWS > before:
            say(f"reading, {n_rows:,} rows so far")

    return count


def _to_stderr(name: str) -> Callable[[str], None]:
    def say(text: str) -> None:
        sys.stderr.write(f"{name}: {text}{os.linesep}")
        sys.stderr.flush()

    return say


def most_common(values: list[Any]) -> Any:
    """Return the value that most parts have."""
    return Counter(values).most_common(1)[0][0]

"""A few rows of each class that a model remembers, so that what it learns later does not undo them.

Which rows of a class are kept is told by their hashes alone: those with the lowest ones. So it
depends neither on their order nor on a seed, and what is kept of rows that come in parts is what
would be kept of all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    BoolArray,
    IndexArray,
)
from thinleaf.arrays.checks import require
from thinleaf.arrays.rows import CSR, Rows, take_rows
from thinleaf.kernels.hashing import hash_rows
from thinleaf.softmaxtree.tao.reduced import TrainingData

_VALUES = 1_000_000
_LEAST_ROWS = 4
"""About how many values are kept of a model that may choose, and how many rows of a class."""

_COMMON = {"y": INDEX, "weight": ACCUM, "total": ACCUM, "most": OFFSET}
_DENSE = {"X": PARAM, **_COMMON}
_SPARSE = {"indptr": INDEX, "indices": INDEX, "data": PARAM, **_COMMON}
"""What is stored of a memory."""


@dataclass(frozen=True)
class Memory:
    """Rows that stand for all rows of their classes that were ever learned.

    Attributes
    ----------
    X : Rows
    y : ndarray of shape (n_rows,)
        Their classes.
    weight : ndarray of shape (n_rows,)
        Each one's own.
    total : ndarray of shape (n_classes,)
        The weight of all rows of each class that were learned.
    most : int
        Rows of a class at the most.
    """

    X: Rows
    y: IndexArray
    weight: AccumArray
    total: AccumArray
    most: int

    @classmethod
    def of(cls, data: TrainingData, most: int | Literal["auto"]) -> Memory:
        """Return what is kept of training rows: so many of a class, or as many as cost little."""
        if isinstance(most, str):
            values = data.X.data.size if isinstance(data.X, CSR) else data.X.size
            each = _VALUES * data.n_rows / max(values * data.n_classes, 1)
            n_each = max(_LEAST_ROWS, math.ceil(each))
        else:
            n_each = int(most)
        total = np.bincount(data.y, weights=data.weight, minlength=data.n_classes)
        kept = _lowest(data.X, data.y, n_each)
        some = data.take(kept)
        return cls(some.X, some.y, some.weight, total.astype(ACCUM), n_each)

    @classmethod
    def empty(cls, n_features: int, n_classes: int, *, sparse: bool) -> Memory:
        """Return the memory of a model that remembers nothing."""
        X: Rows = np.empty((0, n_features), dtype=PARAM)
        if sparse:
            X = CSR(np.zeros(1, INDEX), np.empty(0, INDEX), np.empty(0, PARAM), n_features)
        return cls(X, np.empty(0, INDEX), np.empty(0, ACCUM), np.zeros(n_classes, ACCUM), 0)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def data(self) -> TrainingData:
        """The rows with the weights of all rows that they stand for."""
        kept = np.bincount(self.y, weights=self.weight, minlength=self.total.size)
        scale = self.total / np.maximum(kept, 1e-300)
        return TrainingData(self.X, self.y, self.weight * scale[self.y], self.total.size)

    def with_rows(self, data: TrainingData) -> Memory:
        """Return the memory after some more rows were learned."""
        total = self.total + np.bincount(data.y, weights=data.weight, minlength=data.n_classes)
        rows = join_rows(self.X, data.X)
        y, weight = np.concatenate([self.y, data.y]), np.concatenate([self.weight, data.weight])
        kept = _lowest(rows, y, self.most)
        return Memory(take_rows(rows, kept), y[kept], weight[kept], total, self.most)

    def with_classes(self, new_id: IndexArray, n_classes: int) -> Memory:
        """Return the memory with class ``new_id[i]`` in place of class i; -1 is forgotten."""
        total = np.zeros(n_classes, dtype=ACCUM)
        total[new_id[new_id >= 0]] = self.total[new_id >= 0]
        y = new_id[self.y]
        out = replace(self, y=y, total=total)
        return out if np.all(y >= 0) else out._take(y >= 0)

    def with_features(self, new_id: IndexArray, n_features: int) -> Memory:
        """Return the memory of rows whose feature i has become feature ``new_id[i]``."""
        X = self.X
        if isinstance(X, CSR):
            return replace(self, X=CSR(X.indptr, new_id[X.indices], X.data, n_features))
        wide = np.zeros((X.shape[0], n_features), dtype=X.dtype)
        wide[:, new_id] = X
        return replace(self, X=wide)

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return what :meth:`from_arrays` takes."""
        X = self.X
        rows: dict[str, AnyArray]
        if isinstance(X, CSR):
            rows = {"indptr": X.indptr, "indices": X.indices, "data": X.data}
        else:
            rows = {"X": X}
        most = np.array([self.most], dtype=OFFSET)
        return rows | {"y": self.y, "weight": self.weight, "total": self.total, "most": most}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], n_features: int, n_classes: int) -> Memory:
        """Return what :meth:`to_arrays` was called on; ``ValueError`` if it cannot be."""
        sparse = "indptr" in arrays
        dtypes = _SPARSE if sparse else _DENSE
        require(set(arrays) == set(dtypes), "memory: unknown arrays")
        for name, dtype in dtypes.items():
            array, axes = arrays[name], 2 if name == "X" else 1
            require(array.dtype == dtype and array.ndim == axes, f"memory: {name} is damaged")
        y, weight, total = arrays["y"], arrays["weight"], arrays["total"]
        require(arrays["most"].size == 1 and arrays["most"][0] > 0, "memory: most is damaged")
        require(weight.shape == y.shape and total.shape == (n_classes,), "memory: sizes differ")
        require(bool(np.all((y >= 0) & (y < n_classes))), "memory: classes are out of range")
        positive = all(np.all(np.isfinite(a) & (a >= 0.0)) for a in (weight, total))
        require(positive and bool(np.all(weight > 0.0)), "memory: weights must be positive")
        X: Rows
        if sparse:
            indptr, indices, data = (arrays[name] for name in ("indptr", "indices", "data"))
            rises = indptr.size == y.size + 1 and bool(np.all(indptr[:-1] <= indptr[1:]))
            fits = rises and indptr[0] == 0 and indptr[-1] == indices.size == data.size
            require(fits, "memory: indptr is damaged")
            require(bool(np.all((indices >= 0) & (indices < n_features))), "memory: features")
            inner = np.ones(indices.size, dtype=np.bool_)
            inner[indptr[:-1][indptr[:-1] < indices.size]] = False
            ascends = np.diff(indices, prepend=-1) > 0
            require(bool(np.all(ascends | ~inner)), "memory: features must ascend")
            X = CSR(indptr.copy(), indices.copy(), data.copy(), n_features)
        else:
            data = arrays["X"]
            require(data.shape == (y.size, n_features), "memory: X is damaged")
            X = data.copy()
        require(bool(np.all(np.isfinite(data))), "memory: values must be finite")
        return cls(X, y.copy(), weight.copy(), total.copy(), int(arrays["most"][0]))

    def _take(self, mask: BoolArray) -> Memory:
        rows = np.flatnonzero(mask)
        X = take_rows(self.X, rows)
        return replace(self, X=X, y=self.y[rows], weight=self.weight[rows])


def _lowest(X: Rows, y: IndexArray, most: int) -> IndexArray:
    """Return the rows to keep of each class, ascending by class and hash."""
    order = np.lexsort((hash_rows(X), y))
    ordered = y[order]
    begins = np.searchsorted(ordered, ordered, side="left")
    return order[np.arange(y.size) - begins < most].astype(INDEX)


def join_rows(X: Rows, other: Rows) -> Rows:
    """Return rows after rows of the same features; sparse ones if the first are."""
    if not isinstance(X, CSR):
        assert not isinstance(other, CSR)
        return np.concatenate([X, other])
    assert isinstance(other, CSR)
    indptr = np.concatenate([X.indptr, other.indptr[1:] + X.indptr[-1]]).astype(INDEX)
    indices = np.concatenate([X.indices, other.indices])
    return CSR(indptr, indices, np.concatenate([X.data, other.data]), X.n_features)

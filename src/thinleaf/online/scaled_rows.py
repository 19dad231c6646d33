"""One example as online learners see it: entries divided by the scale of their feature.

The scale of a feature is the largest absolute value it has had so far, so that learning does not
depend on units (Ross, Mineiro & Langford 2013, algorithm NAG). All models share the scales, which
makes this a matter of the row, done once. In NAG a weight shrinks by s/s' when its feature's scale
grows from s to s'; weights here are of scaled entries, and do so by themselves.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import ACCUM, PARAM, AccumArray, IndexArray, ParamArray
from thinleaf.arrays.rows import CSR, Rows


class Scales(NamedTuple):
    """What has been seen of the features."""

    largest: ParamArray
    """Largest absolute value of each feature, of shape (n_features,)."""
    norm: AccumArray
    """Weight of the examples so far, and of their squared scaled lengths."""


class Row(NamedTuple):
    """The scaled entries of an example, and the indicator features beside them."""

    idx: IndexArray
    """Features; of dense rows, all of them, and not stored."""
    val: ParamArray
    n: int | np.int64
    extra: IndexArray
    """Owners of the tables of indicator features: the path."""
    n_extra: int | np.int64


class Stream(NamedTuple):
    """Labelled rows, and the order in which they come."""

    X: Rows
    labels: IndexArray
    weights: AccumArray
    order: IndexArray


def new_scales(n_features: int) -> Scales:
    """Return scales before the first example."""
    return Scales(np.zeros(n_features, dtype=PARAM), np.zeros(2, dtype=ACCUM))


def longest(X: Rows) -> int:
    """Return the number of entries of the longest row."""
    if not isinstance(X, CSR):
        return int(X.shape[1])
    return int(np.diff(X.indptr).max(initial=0))


def observe(X: Rows, row: int, scales: Scales) -> float:
    """Let scales grow with a row; return its squared scaled length, a constant feature included."""
    raise TypeError("only called from kernels")


@overload(observe)
def _observe(X, row, scales):
    if isinstance(X, types.Array):

        def dense(X, row, scales):
            total = 1.0
            for f in range(X.shape[1]):
                x = abs(X[row, f])
                if x > scales.largest[f]:
                    scales.largest[f] = x
                if x > 0.0:
                    scaled = x / scales.largest[f]
                    total += scaled * scaled
            return total

        return dense

    def sparse(X, row, scales):
        total = 1.0
        for t in range(X.indptr[row], X.indptr[row + 1]):
            f = X.indices[t]
            x = abs(X.data[t])
            if x > scales.largest[f]:
                scales.largest[f] = x
            if x > 0.0:
                scaled = x / scales.largest[f]
                total += scaled * scaled
        return total

    return sparse


def prepare(X: Rows, row: int, scales: Scales, idx: IndexArray, val: ParamArray) -> int:
    """Fill ``idx`` and ``val`` with the scaled entries of a row; return their number."""
    raise TypeError("only called from kernels")


@overload(prepare)
def _prepare(X, row, scales, idx, val):
    if isinstance(X, types.Array):

        def dense(X, row, scales, idx, val):
            for f in range(X.shape[1]):
                largest = scales.largest[f]
                val[f] = X[row, f] / largest if largest > 0.0 else np.float32(0.0)
            return X.shape[1]

        return dense

    def sparse(X, row, scales, idx, val):
        n = 0
        for t in range(X.indptr[row], X.indptr[row + 1]):
            f = X.indices[t]
            if X.data[t] != 0.0 and scales.largest[f] > 0.0:
                idx[n] = f
                val[n] = X.data[t] / scales.largest[f]
                n += 1
        return n

    return sparse

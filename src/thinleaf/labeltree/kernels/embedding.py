"""The representation of a row: the sum of its features' embeddings, and the step back."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import ParamArray
from thinleaf.arrays.rows import Rows
from thinleaf.kernels._jit import kernel


def embed_row(X: Rows, row: int, scale: np.float32, U: ParamArray | None, out: ParamArray) -> None:
    """Fill ``out`` with scale · Σ x_f U_f; without U, rows are representations already."""
    raise TypeError("only called from kernels")


@overload(embed_row, inline="always")
def _embed_row(X, row, scale, U, out):
    if isinstance(U, types.NoneType):

        def as_it_is(X, row, scale, U, out):
            for t in range(out.size):
                out[t] = X[row, t]

        return as_it_is

    if isinstance(X, types.Array):

        def dense(X, row, scale, U, out):
            out[:] = np.float32(0.0)
            for f in range(X.shape[1]):
                x = X[row, f] * scale
                if x != 0.0:
                    for t in range(out.size):
                        out[t] += x * U[f, t]

        return dense

    def sparse(X, row, scale, U, out):
        out[:] = np.float32(0.0)
        end = X.indptr[row + 1]
        fours = end - (end - X.indptr[row]) % 4
        for e in range(X.indptr[row], fours, 4):  # four at a time: fewer passes over ``out``
            f0, f1, f2, f3 = X.indices[e], X.indices[e + 1], X.indices[e + 2], X.indices[e + 3]
            x0, x1, x2, x3 = X.data[e], X.data[e + 1], X.data[e + 2], X.data[e + 3]
            for t in range(out.size):
                pair = x0 * U[f0, t] + x1 * U[f1, t]
                out[t] += scale * (pair + (x2 * U[f2, t] + x3 * U[f3, t]))
        for e in range(fours, end):
            x = X.data[e] * scale
            f = X.indices[e]
            for t in range(out.size):
                out[t] += x * U[f, t]

    return sparse


def step_row(X: Rows, row: int, scale: np.float32, step: ParamArray, U: ParamArray) -> None:
    """Add scale · x_f · step to the embedding of each feature of a row."""
    raise TypeError("only called from kernels")


@overload(step_row, inline="always")
def _step_row(X, row, scale, step, U):
    if isinstance(X, types.Array):

        def dense(X, row, scale, step, U):
            for f in range(X.shape[1]):
                x = X[row, f] * scale
                if x != 0.0:
                    for t in range(step.size):
                        U[f, t] += x * step[t]

        return dense

    def sparse(X, row, scale, step, U):
        for e in range(X.indptr[row], X.indptr[row + 1]):
            x = X.data[e] * scale
            f = X.indices[e]
            for t in range(step.size):
                U[f, t] += x * step[t]

    return sparse


@kernel
def embed_rows(X: Rows, scale: float, U: ParamArray, out: ParamArray) -> None:
    """Fill row i of ``out`` with the representation of row i."""
    factor = np.float32(scale)
    for row in range(out.shape[0]):
        embed_row(X, row, factor, U, out[row])

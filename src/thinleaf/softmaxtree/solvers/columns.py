"""What the node solvers do with one column of a sparse local problem.

Arrays over rows and classes, such as the residuals, have the class axis contiguous, so the inner
loops over classes use vector instructions.
"""

from __future__ import annotations

from thinleaf._dtypes import AccumArray, ParamArray
from thinleaf.arrays.rows import CSC
from thinleaf.kernels._jit import inlined


@inlined
def column_dot(X: CSC, j: int, v: AccumArray) -> float:
    """Return Σᵢ xᵢⱼ vᵢ."""
    total = 0.0
    for t in range(X.indptr[j], X.indptr[j + 1]):
        total += X.data[t] * v[X.indices[t]]
    return total


@inlined
def column_dots(X: CSC, j: int, v: AccumArray, u: AccumArray) -> tuple[float, float]:
    """Return Σᵢ xᵢⱼ vᵢ and Σᵢ xᵢⱼ² uᵢ."""
    linear = 0.0
    square = 0.0
    for t in range(X.indptr[j], X.indptr[j + 1]):
        x = X.data[t]
        i = X.indices[t]
        linear += x * v[i]
        square += x * x * u[i]
    return linear, square


@inlined
def column_add(X: CSC, j: int, step: float, v: AccumArray) -> None:
    """Add ``step``·xᵢⱼ to vᵢ."""
    for t in range(X.indptr[j], X.indptr[j + 1]):
        v[X.indices[t]] += step * X.data[t]


@inlined
def column_add_scaled(X: CSC, j: int, step: float, scale: AccumArray, v: AccumArray) -> None:
    """Add ``step``·xᵢⱼ·scaleᵢ to vᵢ."""
    for t in range(X.indptr[j], X.indptr[j + 1]):
        i = X.indices[t]
        v[i] += step * X.data[t] * scale[i]


@inlined
def block_dot(X: CSC, j: int, V: ParamArray, out: ParamArray) -> None:
    """Fill ``out`` with Σᵢ xᵢⱼ Vᵢ."""
    for c in range(out.size):
        out[c] = 0.0
    for t in range(X.indptr[j], X.indptr[j + 1]):
        x = X.data[t]
        i = X.indices[t]
        for c in range(out.size):
            out[c] += x * V[i, c]


@inlined
def block_square_dot(X: CSC, j: int, V: ParamArray, out: ParamArray) -> None:
    """Fill ``out`` with Σᵢ xᵢⱼ² Vᵢ."""
    for c in range(out.size):
        out[c] = 0.0
    for t in range(X.indptr[j], X.indptr[j + 1]):
        x = X.data[t] * X.data[t]
        i = X.indices[t]
        for c in range(out.size):
            out[c] += x * V[i, c]


@inlined
def block_add(X: CSC, j: int, step: ParamArray, V: ParamArray) -> None:
    """Add xᵢⱼ·step to row i of V."""
    for t in range(X.indptr[j], X.indptr[j + 1]):
        x = X.data[t]
        i = X.indices[t]
        for c in range(step.size):
            V[i, c] += x * step[c]


@inlined
def block_add_softmax(
    X: CSC, j: int, step: ParamArray, P: ParamArray, weight: ParamArray, R: ParamArray
) -> None:
    """Add to row i of R what ``xᵢⱼ·step`` changes in it to first order.

    The residual weightᵢ (pᵢ - yᵢ) has the derivative weightᵢ (diag(pᵢ) - pᵢpᵢᵀ) in the scores.
    """
    for t in range(X.indptr[j], X.indptr[j + 1]):
        i = X.indices[t]
        x = X.data[t] * weight[i]
        mean = P[i, 0] * step[0]
        for c in range(1, step.size):
            mean += P[i, c] * step[c]
        for c in range(step.size):
            R[i, c] += x * P[i, c] * (step[c] - mean)

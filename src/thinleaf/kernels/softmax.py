"""Exponentials and normalised scores."""

# mypy: disable-error-code="assignment, no-any-return"

from __future__ import annotations

import math

import numpy as np

from thinleaf._dtypes import ParamArray
from thinleaf.kernels._jit import exact_kernel, inlined

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)


@exact_kernel
def exp32(x: float) -> float:
    """Return e^x in float32 to 2 ulp, without a call, so that loops around it vectorise.

    Cody-Waite reduction to |r| ≤ ln(2)/2, then Cephes' polynomial. The argument is clamped to
    [-87, 88], where the result is a normal float32.
    """
    x = min(max(np.float32(x), np.float32(-87.0)), np.float32(88.0))
    n = np.floor(x * _LOG2_E + np.float32(0.5))
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    power = (np.int32(n) + np.int32(127)) << np.int32(23)
    return p * np.int32(power).view(np.float32)


@exact_kernel
def log32(x: float) -> np.float32:
    """Return log x of a normal float32 to 2 ulp, without a call, so that loops vectorise.

    The mantissa is brought to [√½, √2), then Cephes' polynomial.
    """
    bits = np.float32(x).view(np.int32) - np.int32(0x3F3504F3)
    n = np.float32(bits >> np.int32(23))
    r = np.int32((bits & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
    r = r - np.float32(1.0)
    z = r * r
    p = np.float32(7.0376836292e-2)
    p = p * r + np.float32(-1.1514610310e-1)
    p = p * r + np.float32(1.1676998740e-1)
    p = p * r + np.float32(-1.2420140846e-1)
    p = p * r + np.float32(1.4249322787e-1)
    p = p * r + np.float32(-1.6668057665e-1)
    p = p * r + np.float32(2.0000714765e-1)
    p = p * r + np.float32(-2.4999993993e-1)
    p = p * r + np.float32(3.3333331174e-1)
    p = p * r * z + n * _LN2_LOW - np.float32(0.5) * z
    return r + p + n * _LN2_HIGH


@inlined
def log1p_unit(e: float) -> float:
    """Return log(1 + e) for e in [0, 1] to 1e-8, without a call.

    With z = e/(2 + e), which is at most 1/3, it is 2·artanh(z) = 2(z + z³/3 + z⁵/5 + …).
    """
    z = np.float64(e) / (2.0 + np.float64(e))
    q = z * z
    p = 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return 2.0 * z * p


@inlined
def softmax_row(scores: ParamArray, out: ParamArray) -> float:
    """Fill ``out`` with the softmax of ``scores`` and return log Σ exp(scores)."""
    top = scores[0]
    for c in range(1, scores.size):
        top = max(top, scores[c])
    total = np.float32(0.0)
    for c in range(scores.size):
        out[c] = exp32(scores[c] - top)
    for c in range(scores.size):
        total += out[c]
    inverse = np.float32(1.0) / total
    for c in range(scores.size):
        out[c] *= inverse
    return top + math.log(total)


@inlined
def log_sum_exp(scores: ParamArray) -> float:
    """Return log Σ exp(scores)."""
    top = scores[0]
    for c in range(1, scores.size):
        top = max(top, scores[c])
    total = np.float32(0.0)
    for c in range(scores.size):
        total += exp32(scores[c] - top)
    return top + math.log(total)

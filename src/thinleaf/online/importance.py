"""What one example of importance h does to a prediction: the limit of ever smaller steps.

An update of importance h is what h infinitely many, infinitely small gradient steps would do
(Karampatziakis & Langford 2011). Hence it never overshoots the label, and two updates of importance
h equal one of 2h. Along an example the prediction p follows dp/dt = -∂loss/∂p, from t = 0 to
t = h·η·q, where q is how much p moves for a unit step; both losses have a closed form for that.

Labels are -1 and +1. What a weight does is in :mod:`thinleaf.online.linear_models`.
"""

from __future__ import annotations

import math
from typing import Final

from thinleaf.kernels._jit import bare_kernel

LOGISTIC: Final = 0
SQUARED: Final = 1
LOSSES: Final = {"logistic": LOGISTIC, "squared": SQUARED}

_SETTLED = 36.0
"""Margin above which logistic loss moves nothing: e⁻³⁶ is below the last bit of a double."""


@bare_kernel
def slope(loss: int, prediction: float, label: float) -> float:
    """Return ∂loss/∂prediction: of log(1 + exp(-yp)), or of (p - y)²/2."""
    if loss == SQUARED:
        return prediction - label
    return -label / (1.0 + math.exp(min(label * prediction, 700.0)))


@bare_kernel
def flow(loss: int, prediction: float, label: float, time: float) -> float:
    """Return the prediction after ``time`` on its way towards ``label``."""
    if loss == SQUARED:
        return label + (prediction - label) * math.exp(-time)
    return label * logistic_flow(label * prediction, time)


@bare_kernel
def logistic_flow(margin: float, time: float) -> float:
    """Return z of z + exp(z) = m + exp(m) + t: where dm/dt = 1/(1 + exp(m)) leads in time t.

    Newton's method from the right of the root, where it converges for this convex function.
    """
    if margin > _SETTLED or time <= 0.0:
        return margin
    growth = math.exp(margin)
    end = margin + growth + time
    z = min(margin + time / (1.0 + growth), math.log(end) if end > 1.0 else end)
    for _ in range(50):
        e = math.exp(z)
        step = (z + e - end) / (1.0 + e)
        z -= step
        if step * step <= 1e-10:  # what is left is less than half of that
            break
    return max(z, margin)

"""Temperature scaling (Guo et al., 2017) of the routers of a beam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from thinleaf.model.frozen import FrozenTree

TEMPERATURES = tuple(2.0 ** (i / 2) for i in sorted(range(-2, 9), key=abs))
"""What :func:`calibrated` tries: 1, then others from 1/2 to 16."""
_LEAST = 1e-300


def calibrated(model: FrozenTree, X: Any, y: npt.ArrayLike, n_jobs: int = 1) -> FrozenTree:
    """Return a model with the temperature that suits some rows best.

    See :meth:`thinleaf.FrozenTree.calibrated`.
    """
    if model.beam == 1:
        raise ValueError("a single path has no use for a temperature: call with_beam(4) first")
    if not np.size(y):
        raise ValueError("there are no rows to calibrate on: give some with their labels")
    models = [model.with_beam(model.beam, temperature=t) for t in TEMPERATURES]
    losses = [
        -np.log(np.maximum(other.label_proba(X, y, n_jobs=n_jobs), _LEAST)).sum()
        for other in models
    ]
    return models[int(np.argmin(losses))]

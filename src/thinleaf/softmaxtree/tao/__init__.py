"""Tree Alternating Optimization: training a tree of fixed structure, one level at a time."""

from thinleaf.softmaxtree.tao.loop import (
    Progress,
    SweepRecord,
    Sweeps,
    TaoResult,
    Validation,
    error,
    fit_leaves,
    optimise,
)
from thinleaf.softmaxtree.tao.reduced import TrainingData, canonical
from thinleaf.softmaxtree.tao.sweep import Settings, State

__all__ = [
    "Progress",
    "Settings",
    "State",
    "SweepRecord",
    "Sweeps",
    "TaoResult",
    "TrainingData",
    "Validation",
    "canonical",
    "error",
    "fit_leaves",
    "optimise",
]

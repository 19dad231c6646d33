"""What the parameter ``executor`` of an estimator may be."""

from __future__ import annotations

from typing import Any, Final

from sklearn.utils._param_validation import HasMethods, StrOptions

EXECUTORS: Final[list[Any]] = [
    StrOptions({"threads", "ray", "joblib"}),
    HasMethods("open"),
    HasMethods(["map", "share"]),
]
"""See :func:`thinleaf.execution.executor_for`."""

"""thinleaf: classification into thousands of classes with deep paths and thin leaves.

Public names are imported when they are first used: ``import thinleaf`` loads no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thinleaf._version import __version__

if TYPE_CHECKING:
    from thinleaf.arrays.files import ModelFileError as ModelFileError
    from thinleaf.estimators import (
        AdaptiveSoftmaxTreeClassifier as AdaptiveSoftmaxTreeClassifier,
    )
    from thinleaf.estimators import AutoTreeClassifier as AutoTreeClassifier
    from thinleaf.estimators import DoubleSamplingClassifier as DoubleSamplingClassifier
    from thinleaf.estimators import FlatSoftmaxClassifier as FlatSoftmaxClassifier
    from thinleaf.estimators import LabelTreeClassifier as LabelTreeClassifier
    from thinleaf.estimators import LabelTreeLanguageModel as LabelTreeLanguageModel
    from thinleaf.estimators import LOMTreeClassifier as LOMTreeClassifier
    from thinleaf.estimators import MACHClassifier as MACHClassifier
    from thinleaf.estimators import OneVsAllClassifier as OneVsAllClassifier
    from thinleaf.estimators import OnlineOneVsAllClassifier as OnlineOneVsAllClassifier
    from thinleaf.estimators import RecallTreeClassifier as RecallTreeClassifier
    from thinleaf.estimators import SoftmaxForestClassifier as SoftmaxForestClassifier
    from thinleaf.estimators import SoftmaxTreeClassifier as SoftmaxTreeClassifier
    from thinleaf.estimators import TextClassifier as TextClassifier
    from thinleaf.estimators import estimate_cost as estimate_cost
    from thinleaf.estimators import load_estimator as load_estimator
    from thinleaf.labeltree.frozen import FrozenLabelTree as FrozenLabelTree
    from thinleaf.labeltree.label_tree import LabelTree as LabelTree
    from thinleaf.measuring import metrics as metrics
    from thinleaf.model.frozen import FrozenTree as FrozenTree
    from thinleaf.model.tree import Tree as Tree
    from thinleaf.model.tree import TreeError as TreeError
    from thinleaf.native.loading import load as load
    from thinleaf.text.frozen import FrozenTextTree as FrozenTextTree
    from thinleaf.warmup import warm_up as warm_up

_EXPORTS = {
    "AdaptiveSoftmaxTreeClassifier": "thinleaf.estimators",
    "AutoTreeClassifier": "thinleaf.estimators",
    "DoubleSamplingClassifier": "thinleaf.estimators",
    "FlatSoftmaxClassifier": "thinleaf.estimators",
    "FrozenLabelTree": "thinleaf.labeltree.frozen",
    "FrozenTextTree": "thinleaf.text.frozen",
    "FrozenTree": "thinleaf.model.frozen",
    "LOMTreeClassifier": "thinleaf.estimators",
    "LabelTree": "thinleaf.labeltree.label_tree",
    "LabelTreeClassifier": "thinleaf.estimators",
    "LabelTreeLanguageModel": "thinleaf.estimators",
    "MACHClassifier": "thinleaf.estimators",
    "ModelFileError": "thinleaf.arrays.files",
    "OneVsAllClassifier": "thinleaf.estimators",
    "OnlineOneVsAllClassifier": "thinleaf.estimators",
    "RecallTreeClassifier": "thinleaf.estimators",
    "SoftmaxForestClassifier": "thinleaf.estimators",
    "SoftmaxTreeClassifier": "thinleaf.estimators",
    "TextClassifier": "thinleaf.estimators",
    "Tree": "thinleaf.model.tree",
    "TreeError": "thinleaf.model.tree",
    "estimate_cost": "thinleaf.estimators",
    "load": "thinleaf.native.loading",
    "load_estimator": "thinleaf.estimators",
    "warm_up": "thinleaf.warmup",
}
_MODULES = {"metrics": "thinleaf.measuring.metrics", "torch": "thinleaf.torch"}

__all__ = [
    "AdaptiveSoftmaxTreeClassifier",
    "AutoTreeClassifier",
    "DoubleSamplingClassifier",
    "FlatSoftmaxClassifier",
    "FrozenLabelTree",
    "FrozenTextTree",
    "FrozenTree",
    "LOMTreeClassifier",
    "LabelTree",
    "LabelTreeClassifier",
    "LabelTreeLanguageModel",
    "MACHClassifier",
    "ModelFileError",
    "OneVsAllClassifier",
    "OnlineOneVsAllClassifier",
    "RecallTreeClassifier",
    "SoftmaxForestClassifier",
    "SoftmaxTreeClassifier",
    "TextClassifier",
    "Tree",
    "TreeError",
    "__version__",
    "estimate_cost",
    "load",
    "load_estimator",
    "metrics",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'thinleaf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

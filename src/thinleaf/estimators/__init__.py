"""scikit-learn classes, one file each. They check what users train with."""

from thinleaf.estimators._base.storable import load_estimator
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.auto_tree import AutoTreeClassifier
from thinleaf.estimators.cost import estimate_cost
from thinleaf.estimators.double_sampling import DoubleSamplingClassifier
from thinleaf.estimators.flat_softmax import FlatSoftmaxClassifier
from thinleaf.estimators.forest import SoftmaxForestClassifier
from thinleaf.estimators.label_tree import LabelTreeClassifier
from thinleaf.estimators.language_model import LabelTreeLanguageModel
from thinleaf.estimators.lom_tree import LOMTreeClassifier
from thinleaf.estimators.mach import MACHClassifier
from thinleaf.estimators.one_vs_all import OneVsAllClassifier
from thinleaf.estimators.online_one_vs_all import OnlineOneVsAllClassifier
from thinleaf.estimators.recall_tree import RecallTreeClassifier
from thinleaf.estimators.softmax_tree import SoftmaxTreeClassifier
from thinleaf.estimators.text_classifier import TextClassifier

STORABLE = (
    "AdaptiveSoftmaxTreeClassifier",
    "AutoTreeClassifier",
    "FlatSoftmaxClassifier",
    "LOMTreeClassifier",
    "OneVsAllClassifier",
    "OnlineOneVsAllClassifier",
    "RecallTreeClassifier",
    "SoftmaxForestClassifier",
    "SoftmaxTreeClassifier",
    "TextClassifier",
)
"""What a model file may hold to train on."""

__all__ = [
    "AdaptiveSoftmaxTreeClassifier",
    "AutoTreeClassifier",
    "DoubleSamplingClassifier",
    "FlatSoftmaxClassifier",
    "LOMTreeClassifier",
    "LabelTreeClassifier",
    "LabelTreeLanguageModel",
    "MACHClassifier",
    "OneVsAllClassifier",
    "OnlineOneVsAllClassifier",
    "RecallTreeClassifier",
    "SoftmaxForestClassifier",
    "SoftmaxTreeClassifier",
    "TextClassifier",
    "estimate_cost",
    "load_estimator",
]

"""scikit-learn classes, one file each: the only place that validates what users give."""

from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.files import load_estimator
from thinleaf.estimators.label_tree import LabelTreeClassifier
from thinleaf.estimators.language_model import LabelTreeLanguageModel
from thinleaf.estimators.softmax_tree import SoftmaxTreeClassifier

TREE_CLASSIFIERS = ("AdaptiveSoftmaxTreeClassifier", "SoftmaxTreeClassifier")
"""What a model file may hold to train on."""

__all__ = [
    "AdaptiveSoftmaxTreeClassifier",
    "LabelTreeClassifier",
    "LabelTreeLanguageModel",
    "SoftmaxTreeClassifier",
    "load_estimator",
]

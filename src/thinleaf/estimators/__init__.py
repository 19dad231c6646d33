"""scikit-learn classes, one file each: the only place that validates what users give."""

from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.softmax_tree import SoftmaxTreeClassifier

__all__ = ["AdaptiveSoftmaxTreeClassifier", "SoftmaxTreeClassifier"]

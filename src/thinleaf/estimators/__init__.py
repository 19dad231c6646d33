"""scikit-learn classes: the only place that validates user input."""

from thinleaf.estimators.softmax_tree import SoftmaxTreeClassifier

__all__ = ["SoftmaxTreeClassifier"]

"""LOMTree, the computational baseline of paper 002, as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval

from thinleaf.estimators._base.online_classifier import MOST_ROUTERS, BaseOnlineClassifier, Loss
from thinleaf.online.lom_model import LomTreeModel
from thinleaf.online.lom_tree import Settings


class LOMTreeClassifier(BaseOnlineClassifier):
    """An online tree with one class for each leaf, whose routers make balanced and pure splits.

    Logarithmic time online multiclass prediction: the baseline that the Recall Tree is measured
    against. Mostly faster, and less accurate.

    Parameters
    ----------
    max_routers : int, optional
        The most routers. By default one less than the number of classes so far.
    swap_resistance : float
        Once all routers are in use, a leaf takes over the router next to the smallest leaf if its
        labels other than the most frequent one are this many times as many as that leaf's.
    max_depth : int
        The most routers that an example passes.
    loss : {"logistic", "squared"}
        Of routers.
    learning_rate : float
    n_passes : int
        Passes over the rows in ``fit``.
    shuffle : bool
        Whether ``fit`` takes the rows in a new random order in each pass.
    hash_bits : int, optional
        Hash the numbers of features to 2^hash_bits ones; then rows may get wider from call to call.
    random_state : int, RandomState or None
        For ``shuffle``; learning itself is deterministic.
    verbose : int
        1 shows progressive validation loss on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    progress_ : list of dict
        Progressive validation after 1, 2, 4, 8, … examples: examples, loss, loss_since_last.
    progressive_loss_ : float
        Of the first pass, or of all calls of ``partial_fit``.
    n_examples_ : int
    model_ : LomTreeModel
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import LOMTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = LOMTreeClassifier(max_routers=63, random_state=0).fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.6
    True
    """

    _parameter_constraints: dict[str, list[Any]] = BaseOnlineClassifier._parameter_constraints | {
        "max_routers": [Interval(Integral, 1, None, closed="left"), None],
        "swap_resistance": [Interval(Real, 0, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        max_routers: int | None = None,
        *,
        swap_resistance: float = 4.0,
        max_depth: int = 64,
        loss: Loss = "logistic",
        learning_rate: float = 1.0,
        n_passes: int = 5,
        shuffle: bool = True,
        hash_bits: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_routers = max_routers
        self.swap_resistance = swap_resistance
        self.max_depth = max_depth
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.hash_bits = hash_bits
        self.random_state = random_state
        self.verbose = verbose

    def _new_model(self, n_features: int, *, dense: bool) -> LomTreeModel:
        settings = Settings(
            min(int(self.max_routers or 0), MOST_ROUTERS),
            float(self.swap_resistance),
            min(int(self.max_depth), MOST_ROUTERS),
            self._learning(),
        )
        return LomTreeModel(n_features, settings, dense=dense)

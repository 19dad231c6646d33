"""The Recall Tree of paper 002 as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf.estimators._base.online_classifier import MOST_ROUTERS, BaseOnlineClassifier, Loss
from thinleaf.online.histogram import MOST_CANDIDATES
from thinleaf.online.importance import LOSSES
from thinleaf.online.linear_models import Learning
from thinleaf.online.recall_model import RecallTreeModel
from thinleaf.online.recall_tree import Settings


class RecallTreeClassifier(BaseOnlineClassifier):
    """An online tree that leads an example to a few candidate classes, of which regressors choose.

    Time to learn an example grows with the logarithm of the number of classes; time to predict one
    grows faster (``benchmarks/results/online_growth.md``). The tree grows as examples arrive, and
    new classes may appear at any time. Features need no scaling.

    Parameters
    ----------
    max_candidates : int, optional
        F: the most frequent labels of a node that are scored, from 1 to 64. By default four times
        log₂ of the number of classes so far.
    max_depth : int
        The most routers that an example passes.
    max_routers : int, optional
        The most routers of the tree. By default 16 for each class so far.
    bound_multiplier : float
        λ of the lower bound on recall, by which an example stops where the next node's candidates
        are less certain to have its label. 0 is no bound: empirical recall as it is.
    path_features : bool
        Whether regressors see which nodes the example has passed.
    router_weight : {"entropy", "example"}
        The weight of an example for a router: how many bits its choice of side makes, or its own.
    negatives : {"known", "all"}
        Which weights of a regressor learn from an example of another class, if rows are sparse:
        those of features that the regressor's own class has had, or of all features. The former
        takes memory for the pairs of class and feature that occur, much less than the latter, with
        next to no effect on errors.
    loss, router_loss : {"logistic", "squared"}
        Of regressors and of routers.
    learning_rate, router_learning_rate : float
        How fast they learn.
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
        Progressive validation after 1, 2, 4, 8, … examples: examples, loss, loss_since_last. Honest
        in the first pass.
    progressive_loss_ : float
        Of the first pass, or of all calls of ``partial_fit``.
    n_examples_ : int
        Examples learned, those of all passes.
    n_nodes_ : int
        Nodes of the tree, those that only wait for examples included.
    model_ : RecallTreeModel
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import RecallTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RecallTreeClassifier(max_candidates=4, random_state=0)
    >>> clf.partial_fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.8
    True
    >>> clf.fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.85
    True
    """

    _parameter_constraints: dict[str, list[Any]] = BaseOnlineClassifier._parameter_constraints | {
        "max_candidates": [Interval(Integral, 1, MOST_CANDIDATES, closed="both"), None],
        "max_depth": [Interval(Integral, 0, 62, closed="both")],
        "max_routers": [Interval(Integral, 1, None, closed="left"), None],
        "bound_multiplier": [Interval(Real, 0, None, closed="left")],
        "path_features": ["boolean"],
        "negatives": [StrOptions({"all", "known"})],
        "router_weight": [StrOptions({"entropy", "example"})],
        "router_loss": [StrOptions(set(LOSSES))],
        "router_learning_rate": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        max_candidates: int | None = None,
        *,
        max_depth: int = 20,
        max_routers: int | None = None,
        bound_multiplier: float = 1.0,
        path_features: bool = True,
        router_weight: str = "entropy",
        negatives: str = "known",
        loss: Loss = "logistic",
        router_loss: Loss = "logistic",
        learning_rate: float = 1.0,
        router_learning_rate: float = 1.0,
        n_passes: int = 5,
        shuffle: bool = True,
        hash_bits: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_candidates = max_candidates
        self.max_depth = max_depth
        self.max_routers = max_routers
        self.bound_multiplier = bound_multiplier
        self.path_features = path_features
        self.router_weight = router_weight
        self.negatives = negatives
        self.loss = loss
        self.router_loss = router_loss
        self.learning_rate = learning_rate
        self.router_learning_rate = router_learning_rate
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.hash_bits = hash_bits
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_nodes_(self) -> int:
        """Nodes of the tree."""
        if not hasattr(self, "model_"):
            raise AttributeError("there is no tree before fit or partial_fit")
        return int(self.model_.state.sizes[0])

    def _new_model(self, n_features: int, *, dense: bool) -> RecallTreeModel:
        settings = Settings(
            int(self.max_depth),
            min(int(self.max_routers or 0), MOST_ROUTERS),
            int(self.max_candidates or 0),
            float(self.bound_multiplier),
            bool(self.path_features),
            self.router_weight == "entropy",
            Learning(LOSSES[self.router_loss], float(self.router_learning_rate), False),
            Learning(LOSSES[self.loss], float(self.learning_rate), self.negatives == "known"),
        )
        return RecallTreeModel(n_features, settings, dense=dense)

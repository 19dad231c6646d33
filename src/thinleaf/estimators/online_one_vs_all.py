"""Online one-against-all, the statistical baseline of paper 002, as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import StrOptions

from thinleaf.estimators._base.online_classifier import BaseOnlineClassifier, Loss
from thinleaf.online.one_vs_all import OneVsAllModel


class OnlineOneVsAllClassifier(BaseOnlineClassifier):
    """A regressor for each class, all of which learn every example.

    Time for an example is linear in the number of classes: the baseline that trees avoid.

    Parameters
    ----------
    negatives : {"all", "known"}
        Which weights of a regressor learn from an example of another class, if rows are sparse:
        those of all features, or of features that the regressor's own class has had.
    loss : {"logistic", "squared"}
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
    model_ : OneVsAllModel
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import OnlineOneVsAllClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = OnlineOneVsAllClassifier(random_state=0).fit(X[:900], y[:900])
    >>> clf.score(X[900:], y[900:]) > 0.85
    True
    """

    _parameter_constraints: dict[str, list[Any]] = BaseOnlineClassifier._parameter_constraints | {
        "negatives": [StrOptions({"all", "known"})],
    }

    model_: OneVsAllModel

    def __init__(
        self,
        *,
        negatives: str = "all",
        loss: Loss = "logistic",
        learning_rate: float = 1.0,
        n_passes: int = 5,
        shuffle: bool = True,
        hash_bits: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.negatives = negatives
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.hash_bits = hash_bits
        self.random_state = random_state
        self.verbose = verbose

    def _announce(self) -> None:
        self.model_.announce(len(self.arrivals_))

    def _new_model(self, n_features: int, *, dense: bool) -> OneVsAllModel:
        learning = self._learning()._replace(known_only=self.negatives == "known")
        return OneVsAllModel(n_features, learning, dense=dense)

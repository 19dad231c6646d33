"""The Recall Tree of paper 002 as a scikit-learn classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from thinleaf._dtypes import AnyArray, IndexArray
from thinleaf.estimators._base.online_classifier import MOST_ROUTERS, BaseOnlineClassifier, Loss
from thinleaf.estimators._base.storable import Types
from thinleaf.online.histogram import MOST_CANDIDATES
from thinleaf.online.importance import LOSSES
from thinleaf.online.linear_models import Learning
from thinleaf.online.recall_model import RecallTreeModel, without_leaf_routers
from thinleaf.online.recall_race import FEWEST_ROWS, Race, robust, run
from thinleaf.online.recall_tree import Settings
from thinleaf.online.scaled_rows import Stream

Auto: TypeAlias = Literal["auto"]

AUTO = StrOptions({"auto"})
MOST_PATHS: Final = 64

_FOUND: Final = (
    "max_candidates", "max_routers", "bound_multiplier", "path_features", "two_paths",
    "learning_rate", "router_learning_rate",
)  # fmt: skip


class RecallTreeClassifier(BaseOnlineClassifier):
    """An online tree that leads an example to a few candidate classes, of which regressors choose.

    Time to learn an example grows with the logarithm of the number of classes; time to predict one
    grows faster (``benchmarks/results/online_growth.md``). The tree grows as examples arrive, and
    new classes may appear at any time. Features need no scaling.

    What is ``"auto"`` is found by ``fit``, by progressive loss: trees with different settings learn
    the first rows and predict the next ones before they are learned (``race_``; see
    :mod:`thinleaf.online.recall_race`). That takes about as long as the fit itself. With fewer than
    1,000 rows, and in ``partial_fit``, which sees no row twice, ``"auto"`` is what is good in most
    cases; ``settings_`` tells. What is given stays.

    Parameters
    ----------
    max_candidates : int, None or "auto"
        F: the most frequent labels of a node that are scored, from 1 to 64. None is four times log₂
        of the number of classes so far; ``"auto"`` is 64, or all classes that ``fit`` sees.
    max_depth : int
        The most routers that an example passes.
    max_routers : int, None or "auto"
        The most routers of the tree. None is 16 for each class so far; ``"auto"`` is the same, or
        as many as rows where trees win that go on to leaves of one label.
    bound_multiplier : float or "auto"
        λ of the lower bound on recall, by which an example stops where the next node's candidates
        are less certain to have its label. 0 is no bound: empirical recall as it is.
    recall_of : {"auto", "child", "node"}
        Which recall decides that an example stops at a node: that of the node's candidates and of
        the child's on the child's examples, or that of each on all of its own, as in the paper.
        ``"auto"`` is the paper's if ``bound_multiplier`` is given.
    path_features : bool or "auto"
        Whether regressors see which nodes the example has passed.
    two_paths : bool or "auto"
        Whether regressors learn the candidates of an example's second best path, too.
    half_life : float, optional
        Examples after which a label that a node has seen counts half, for streams that change. By
        default labels count for ever.
    beam : int or "auto"
        How many paths a row takes in prediction, and in :meth:`freeze`; ``"auto"`` is 4 unless
        ``fit`` finds another.
    router_weight : {"entropy", "example"}
        The weight of an example for a router: how many bits its choice of side makes, or its own.
    negatives : {"known", "all"}
        Which weights of a regressor learn from an example of another class: those of features that
        the regressor's own class has had, or of all features. The former takes memory for the pairs
        of class and feature that occur, much less than the latter, with next to no effect on
        errors. Of dense rows all features are known, and only path features may be new.
    loss, router_loss : {"logistic", "squared"}
        Of regressors and of routers.
    learning_rate, router_learning_rate : float or "auto"
        How fast they learn.
    n_passes : int or "auto"
        Passes over the rows in ``fit``; without a race, ``"auto"`` is 5.
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
    settings_ : dict
        The values of parameters that the tree learns with.
    n_passes_ : int
    beam_, temperature_ : int, float
        How many paths a row takes, and what the outputs of routers are divided by to weigh them.
    race_ : list of dict
        What the last ``fit`` has tried, and its progressive loss. Not in files.
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
        "max_candidates": [Interval(Integral, 1, MOST_CANDIDATES, closed="both"), AUTO, None],
        "max_depth": [Interval(Integral, 0, 62, closed="both")],
        "max_routers": [Interval(Integral, 1, None, closed="left"), AUTO, None],
        "bound_multiplier": [Interval(Real, 0, None, closed="left"), AUTO],
        "recall_of": [StrOptions({"auto", "child", "node"})],
        "path_features": ["boolean", AUTO],
        "two_paths": ["boolean", AUTO],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "beam": [Interval(Integral, 1, MOST_PATHS, closed="both"), AUTO],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), AUTO],
        "n_passes": [Interval(Integral, 1, None, closed="left"), AUTO],
        "negatives": [StrOptions({"all", "known"})],
        "router_weight": [StrOptions({"entropy", "example"})],
        "router_loss": [StrOptions(set(LOSSES))],
        "router_learning_rate": [Interval(Real, 0, None, closed="neither"), AUTO],
    }

    _fitted_since: Types = {  # noqa: RUF012
        "settings_": (dict,), "n_passes_": (int,), "beam_": (int,), "temperature_": (float,),
    }  # fmt: skip

    model_: RecallTreeModel
    settings_: dict[str, Any]
    n_passes_: int
    beam_: int
    temperature_: float
    race_: list[dict[str, Any]]

    def __init__(
        self,
        max_candidates: int | Auto | None = "auto",
        *,
        max_depth: int = 20,
        max_routers: int | Auto | None = "auto",
        bound_multiplier: float | Auto = "auto",
        recall_of: Literal["auto", "child", "node"] = "auto",
        path_features: bool | Auto = "auto",
        two_paths: bool | Auto = "auto",
        half_life: float | None = None,
        beam: int | Auto = "auto",
        router_weight: str = "entropy",
        negatives: str = "known",
        loss: Loss = "logistic",
        router_loss: Loss = "logistic",
        learning_rate: float | Auto = "auto",
        router_learning_rate: float | Auto = "auto",
        n_passes: int | Auto = "auto",
        shuffle: bool = True,
        hash_bits: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_candidates = max_candidates
        self.max_depth = max_depth
        self.max_routers = max_routers
        self.bound_multiplier = bound_multiplier
        self.recall_of = recall_of
        self.path_features = path_features
        self.two_paths = two_paths
        self.half_life = half_life
        self.beam = beam
        self.router_weight = router_weight
        self.negatives = negatives
        self.loss = loss
        self.router_loss = router_loss
        self.learning_rate = learning_rate  # type: ignore[assignment]
        self.router_learning_rate = router_learning_rate
        self.n_passes = n_passes  # type: ignore[assignment]
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

    @classmethod
    def _from_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return parameters; those that older files lack have the values of that time."""
        before = {"recall_of": "node", "two_paths": False, "half_life": None, "beam": 1}
        return before | parameters

    # -- settings ----------------------------------------------------------------------------------

    @property
    def _free(self) -> frozenset[str]:
        """Parameters that are to be found."""
        return frozenset(name for name in _FOUND if getattr(self, name) == "auto")

    def _number(self, name: str) -> int | None:
        """Return a parameter that is given, None if it is to be found."""
        value: Any = getattr(self, name)
        return None if value == "auto" else int(value)

    def _start(self, X: Any) -> None:
        self.__dict__.pop("settings_", None)
        super()._start(X)
        self.race_ = []

    def _new_model(self, n_features: int, *, dense: bool) -> RecallTreeModel:
        if "settings_" not in vars(self):
            self._take(self._given_settings())
            self.n_passes_ = int(self._number("n_passes") or 5)
            self.beam_ = int(self._number("beam") or 4)
            self.temperature_ = 1.0
        return RecallTreeModel(n_features, self._settings(), dense=dense)

    def _take(self, settings: Settings) -> None:
        """Let parameters of a tree be known as such."""
        self.settings_ = {
            "max_candidates": settings.max_candidates or None,
            "max_routers": settings.max_routers or None,
            "bound_multiplier": settings.multiplier,
            "recall_of": "child" if settings.own_recall else "node",
            "path_features": settings.path_features,
            "two_paths": settings.two_paths,
            "learning_rate": settings.regressor.rate,
            "router_learning_rate": settings.router.rate,
        }

    def _given_settings(self) -> Settings:
        """Return given settings, and robust ones where none is given."""
        free = self._free
        given = {name: None if name in free else getattr(self, name) for name in _FOUND}
        recall_of = self.recall_of
        if recall_of == "auto":
            recall_of = "child" if "bound_multiplier" in free else "node"
        return robust(self._settings(given | {"recall_of": recall_of}), free)

    def _settings(self, values: dict[str, Any] | None = None) -> Settings:
        value = self.settings_ if values is None else values
        known = self.negatives == "known"
        return Settings(
            int(self.max_depth),
            min(int(value["max_routers"] or 0), MOST_ROUTERS),
            int(value["max_candidates"] or 0),
            float(value["bound_multiplier"] or 0.0),
            bool(value["path_features"]),
            self.router_weight == "entropy",
            value["recall_of"] == "child",
            bool(value["two_paths"]),
            float(self.half_life or 0.0),
            Learning(LOSSES[self.router_loss], float(value["router_learning_rate"] or 0.0), False),
            Learning(LOSSES[self.loss], float(value["learning_rate"] or 0.0), known),
        )

    def _decide(self, stream: Stream, order: IndexArray) -> int:
        free = self._free
        n_passes, beam = self._number("n_passes"), self._number("beam")
        races = free or n_passes is None or beam is None
        if "max_candidates" in free:
            self.settings_["max_candidates"] = min(MOST_CANDIDATES, len(self.arrivals_))
        if races and order.size >= FEWEST_ROWS and len(self.arrivals_) > 1:
            rng = np.random.default_rng(order[: 1 << 10].astype(np.uint32))
            race = Race(self._racer, stream, order, len(self.arrivals_), rng)
            choice = run(race, self._settings(), free, n_passes, beam)
            self._take(choice.settings)
            self.n_passes_, self.beam_ = choice.n_passes, choice.beam
            self.temperature_, self.race_ = choice.temperature, choice.tried
        self.model_ = self._racer(self._settings())
        return self.n_passes_

    def _racer(self, settings: Settings) -> RecallTreeModel:
        return RecallTreeModel(self._width, settings, dense=self.dense_)

    def _paths(self, beam: int | Auto | None = None) -> tuple[int, float]:
        width = self.beam_ if beam is None or beam == "auto" else int(beam)
        return width, self.temperature_

    # -- files -------------------------------------------------------------------------------------

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: Any
    ) -> None:
        if type(fitted) is dict and "settings_" in fitted:
            self._check_found(fitted)
        arrays = without_leaf_routers(arrays, "model.")
        for name, width in (("model.histograms.stats", 4), ("model.sizes", 3)):
            old = arrays.get(name)
            if old is not None and old.ndim and old.shape[-1] == width - 1:  # of an older version
                arrays[name] = np.concatenate([old, np.zeros_like(old[..., :1])], axis=-1)
        self.__dict__.pop("settings_", None)
        super()._restore(arrays, fitted, model)
        self.race_ = []

    def _check_found(self, fitted: dict[str, Any]) -> None:
        """Raise ``ValueError`` unless stored settings are such as parameters may be."""
        settings = fitted["settings_"]
        if type(settings) is not dict or settings.keys() != {*_FOUND, "recall_of"}:
            raise ValueError("unknown settings")
        values = settings | {"n_passes": fitted.get("n_passes_"), "beam": fitted.get("beam_")}
        if "auto" in values.values() or not 0.0 < fitted.get("temperature_", 0.0) < math.inf:
            raise ValueError("settings are out of range")
        clone(self).set_params(**values)._validate_params()

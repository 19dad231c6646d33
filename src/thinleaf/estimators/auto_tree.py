"""A fit to a budget: say what a model may cost, get the best one that does."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import AnyArray
from thinleaf.arrays.rows import as_matrix
from thinleaf.estimators._auto.contenders import Trainer
from thinleaf.estimators._auto.deadline import Clock
from thinleaf.estimators._auto.judge import Deployment, Judge, Metric, check_metric, file_bytes
from thinleaf.estimators._auto.raw_texts import (
    Form,
    derived,
    fitted_label_tree,
    n_trees_of,
    texts_of_rows,
)
from thinleaf.estimators._auto.search import (
    SLACK,
    Budget,
    BudgetError,
    Search,
    expected,
    preferred,
)
from thinleaf.estimators._auto.words import why
from thinleaf.estimators._base.classifier import SparseInputClassifier
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import (
    Trainable,
    build,
    check_types,
    described,
    plain,
    training_summary,
)
from thinleaf.estimators._base.training_rows import read_training
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.cost import seconds_of_rows
from thinleaf.estimators.forest import SoftmaxForestClassifier
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.labeltree.texts import text_list
from thinleaf.labeltree.word_features import WordFeatures
from thinleaf.model.front import Frontier, Point
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import WeightType
from thinleaf.model.predictor import Predictor
from thinleaf.model.variant import Variant
from thinleaf.softmaxtree.growth.adapt import hold_out
from thinleaf.softmaxtree.growth.initial_tree import node_seed
from thinleaf.softmaxtree.tao import TrainingData

_PROBING = 0.1
"""Share of the time in which it is found out what the default tree takes."""

_WARMING_ROWS = 200
_TREE_SHARE = 0.7
"""Share of the time that the default tree may take; if it takes more, it gets fewer rows."""


class AutoTreeClassifier(SparseInputClassifier, Trainable):
    """The best model that keeps a budget of microseconds, bytes and seconds of training.

    A few models are trained: the default :class:`AdaptiveSoftmaxTreeClassifier`, always; some
    rounds of its growth; a flat leaf or a tree of another depth, where a quarter of the rows do not
    speak against it; and a forest. Many are derived from them without training: the first trees of
    a forest, beams and temperatures, smaller and fewer weights. Each is judged by the same held-out
    rows and timed on this machine. The best one within the budget is fitted to all rows, if time
    allows. It takes the place of the default tree only if it has fewer errors by half a standard
    error of the difference.

    Parameters
    ----------
    max_us : float, optional
        Microseconds of a prediction. Measured ones must stay 8 % below, because other processes
        will differ.
    max_bytes : float, optional
        Bytes of the model file.
    max_fit_seconds : float, optional
        Of ``fit``, not counting what is compiled once on a machine. What is not done by then is
        not done, and the best so far is kept; if the default tree alone would take too long, it is
        trained on fewer rows. Only the main thread is interrupted.
    metric : {"error", "top5_error", "log_loss"} or callable
        What is to be small on held-out rows; top-k for any k. A callable takes labels and
        predicted labels and returns a number, the lower the better.
    timing : {"single", "batch"}
        What takes ``max_us``: a call of ``predict_one``, or a row of ``predict`` with all held-out
        rows and ``n_jobs`` threads.
    max_trees : int
        Of forests.
    repeat : dict, optional
        The ``decided_by_time_`` of an earlier fit: the same models are trained and the same one is
        chosen, without a look at the clock.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads of training and of batches; -1 is all cores. The result does not depend on it,
        unless time decides.
    verbose : int
        1 shows each model that was trained on standard error.

    Attributes
    ----------
    model_ : FrozenTree
        The chosen model, as it is deployed; in a :class:`TextClassifier` also a label tree.
    estimator_ : estimator
        What it is made of.
    frontier_ : Frontier
        All models that were measured: error, µs, bytes, seconds of training. Printed, it is the
        table of those that no other one beats.
    why_ : str
        What was tried, what won, and what the next better model would cost.
    decided_by_time_ : dict or None
        If a clock had a say, what it led to: for ``repeat``.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, if X had feature names

    Notes
    -----
    Without ``max_us`` and ``max_fit_seconds`` the clock has no say, and a seed gives the same model
    everywhere. Ctrl-C keeps the best model so far, with a warning; before there is one,
    ``KeyboardInterrupt`` is raised.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AutoTreeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AutoTreeClassifier(max_bytes=20_000, max_trees=1, random_state=0).fit(X, y)
    >>> clf.freeze().file_bytes <= 20_000
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "max_us": [Interval(Real, 0, None, closed="neither"), None],
        "max_bytes": [Interval(Real, 0, None, closed="neither"), None],
        "max_fit_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "metric": [str, callable],
        "timing": [StrOptions({"single", "batch"})],
        "max_trees": [Interval(Integral, 1, 64, closed="both")],
        "repeat": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _wrap: Callable[[FrozenTree], Any] | None = None
    _samples: Sequence[Any] | None = None
    """What is deployed instead of a model of rows, and what that takes."""

    _texts: Sequence[str] | None = None
    """What the rows were made of, if a label tree may be tried on it."""

    _reserved: int = 0
    """Bytes that others will add to the file."""

    _searched: dict[str, Any]

    def __init__(
        self,
        max_us: float | None = None,
        max_bytes: float | None = None,
        max_fit_seconds: float | None = None,
        *,
        metric: Metric = "error",
        timing: Literal["single", "batch"] = "single",
        max_trees: int = 16,
        repeat: dict[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_us = max_us
        self.max_bytes = max_bytes
        self.max_fit_seconds = max_fit_seconds
        self.metric = metric
        self.timing = timing
        self.max_trees = max_trees
        self.repeat = repeat
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_combinations(self) -> None:
        check_metric(self.metric)
        if self.repeat is not None:
            known = {"rows", "sources", "n_trees", "chosen", "refitted", "exact"}
            if set(self.repeat) != known:
                raise ValueError("repeat must be the decided_by_time_ of an earlier fit")

    # -- training ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        """Train, measure and choose."""
        self._check_combinations()
        data, classes = read_training(self, X, y, sample_weight)
        seed = _int_seed(self.random_state)
        given: tuple[Any, Any, Any] = (X, y, sample_weight)
        limit = self.max_fit_seconds if self.repeat is None else None
        if limit is not None:
            self._warm_up(X, y, data, classes, seed)
        clock = Clock(limit)
        share = self._share_of_rows(data, classes, seed, clock)
        if share < 1.0:
            left_out = hold_out(data, 1.0 - share, node_seed(seed_sequence(seed), 12))
            data = data.take(np.flatnonzero(left_out < data.weight))
            given = (as_matrix(data.X), classes[data.y], data.weight)
        texts = None if self._texts is None else texts_of_rows(self._texts, X, y, data, classes)
        trainer = Trainer(given, data, classes, seed, self.n_jobs, clock, texts)
        threads = self._n_threads
        judge = Judge(trainer.judging, classes, self.metric, threads, trainer.judging_texts)
        batch = self.timing == "batch"
        deployment = Deployment(
            judge.rows, batch=batch, wrap=self._deployed, samples=self._samples, n_jobs=threads
        )
        n_bytes = None if self.max_bytes is None else self.max_bytes - self._reserved
        budget = Budget(self.max_us, n_bytes, self._reserved)
        search = Search(
            trainer, judge, deployment, budget, int(self.max_trees), self.repeat, self._say
        )
        self.classes_ = classes
        self._trained_with = training_summary(self)
        search.run()
        chosen, estimator = search.choose()
        search.complete()
        self._keep(search, chosen, estimator)
        timed = self.max_us is not None or self.max_fit_seconds is not None
        self.decided_by_time_: dict[str, Any] | None = None
        if timed and self.repeat is None:
            exact = not search.cut_short and not search.interrupted
            self.decided_by_time_ = {"rows": share, "exact": exact} | search.decided(chosen)
        n_held = judge.rows.n_rows
        self.why_ = why(
            self.frontier_, list(search.contenders), self.max_us, self.max_bytes, search.left_out,
            n_held, trainer.honest,
        )  # fmt: skip
        if share < 1.0:
            self.why_ += f"\nFor want of time, {data.n_rows:,} rows were used: {share:.0%}."
        if search.interrupted:
            warnings.warn("interrupted: the best model so far is kept", stacklevel=4)

    def _warm_up(self, X: Any, y: Any, data: TrainingData, classes: AnyArray, seed: int) -> None:
        """Let what must be compiled once on a machine be compiled before the clock starts."""
        some = data.take(np.arange(0, data.n_rows, max(1, data.n_rows // _WARMING_ROWS)))
        model = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(as_matrix(some.X), classes[some.y], some.weight)
            wide = model.freeze().with_beam(2)
            for form in (wide, wide.quantized("int8"), wide.quantized("float16")):
                form.predictor.top_class(some.X)
            if self._texts is not None:
                texts = texts_of_rows(self._texts, X, y, some, classes)
                words = fitted_label_tree(texts, some, classes, seed, dim=8, epochs=2)
                words.freeze().predict(texts.tolist())

    def _share_of_rows(
        self, data: TrainingData, classes: AnyArray, seed: int, clock: Clock
    ) -> float:
        """Return the share of the rows that there is time for."""
        if self.repeat is not None:
            return float(self.repeat["rows"])
        if self.max_fit_seconds is None:
            return 1.0
        model = AdaptiveSoftmaxTreeClassifier(random_state=seed, n_jobs=self.n_jobs)
        rows = (as_matrix(data.X), classes[data.y], data.weight)
        seconds = seconds_of_rows(model, *rows, _PROBING * clock.left, seed)
        allowed = _TREE_SHARE * clock.left
        return 1.0 if seconds <= allowed else max(float(allowed / seconds), 0.02)

    def _keep(self, search: Search, chosen: Point, estimator: Any) -> None:
        if isinstance(estimator, SoftmaxForestClassifier):
            estimator = estimator.prefix(chosen.variant.n_trees)
        self.estimator_ = estimator
        self._variant = chosen.variant
        self.sparse_input_ = bool(getattr(estimator, "sparse_input_", True))  # of texts, too
        self.frontier_ = Frontier(search.measured(), chosen, self._metric_name())
        self._sure = search.sure()
        self._searched = {
            name: (search.judged(found), found.final) for name, found in search.contenders.items()
        }
        self.model_ = self._named(derived(chosen.variant, estimator._frozen_form()))

    def _deployed(self, model: Form) -> Any:
        """Return a model with all that its file will say."""
        model = self._named(model)
        if self._wrap is None or isinstance(model, FrozenLabelTree):
            return model
        return self._wrap(model)

    def _named(self, model: Form) -> Any:
        if isinstance(model, FrozenLabelTree):
            return model.replaced(summary=self._trained_with)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return model.replaced(feature_names=names, summary=self._trained_with)

    def _metric_name(self) -> str:
        return self.metric if isinstance(self.metric, str) else "metric"

    def _say(self, line: str) -> None:
        if self.verbose:
            sys.stderr.write(f"{type(self).__name__}: {line}\n")

    # -- other budgets -----------------------------------------------------------------------------

    def at(self, max_us: float | None = None, max_bytes: float | None = None) -> FrozenTree:
        """Return the frozen model of another budget, from the same fit.

        Parameters
        ----------
        max_us, max_bytes : float, optional

        Returns
        -------
        model : FrozenTree
            The best one that was measured. Where ``frontier_`` says so, it is one that was not
            fitted to the held-out rows.
        """
        return self._at(max_us, max_bytes, lambda model: model)  # type: ignore[no-any-return]

    def _at(self, max_us: float | None, max_bytes: float | None, wrap: Callable[[Any], Any]) -> Any:
        """Return the same, as it is deployed."""
        check_is_fitted(self)
        if not getattr(self, "_searched", None):
            raise ValueError("a model file holds the chosen model alone: fit again for others")
        given = {"max_us": max_us, "max_bytes": max_bytes}
        for name, limit in given.items():
            if limit is not None and not limit > 0:
                raise ValueError(f"{name} must be above 0, got {limit!r}")
        kept = self.frontier_.within(max_us, max_bytes, SLACK)
        while kept:
            point = preferred(kept, self._sure, expected)
            kept.remove(point)
            model = wrap(self._model_at(point))
            if max_bytes is None or file_bytes(model) <= max_bytes:
                return model
        near = self.frontier_.nearest(max_us, max_bytes)
        limits = [f"{name}={limit:g}" for name, limit in given.items() if limit is not None]
        n_bytes = file_bytes(wrap(self._model_at(near)))
        raise BudgetError(
            f"no model keeps {' and '.join(limits)}: the nearest is {near.name} with {near.us:.3g} "
            f"µs, of which {SLACK:g} times as many must keep it, and {n_bytes:,} bytes"
        )

    def _model_at(self, point: Point) -> Any:
        """Return a model of the front, of all rows if it is there."""
        judged, final = self._searched[point.source]
        found = judged
        if final is not None and n_trees_of(final._frozen_form()) >= point.variant.n_trees:
            found = final
        return self._named(derived(point.variant, found._frozen_form()))

    def _probe(self) -> _Probe:
        """Return a model to fit to other rows, like the one that was chosen."""
        return _Probe(self.estimator_, self._variant)

    # -- frozen and stored -------------------------------------------------------------------------

    @property
    def _predictor(self) -> Predictor:
        check_is_fitted(self)
        found: Predictor = self.model_._predictor
        return found

    def _frozen_form(self) -> Any:
        check_is_fitted(self)
        return self.model_

    @property
    def features_(self) -> WordFeatures:
        """The terms of texts, if the chosen model is a label tree."""
        model = getattr(self, "model_", None)
        if not isinstance(model, FrozenLabelTree) or model.words is None:
            raise AttributeError("the model takes rows")
        return model.words

    def _rows(self, X: Any) -> Any:
        return text_list(X) if hasattr(self, "features_") else super()._rows(X)

    def freeze(
        self,
        *,
        beam: int | Literal["auto"] | None = None,
        weights: WeightType | None = None,
    ) -> FrozenTree:
        """Return the chosen model in the form that is deployed.

        Parameters
        ----------
        beam : int, optional
            How many paths a row takes, if not as chosen.
        weights : {"float32", "float16", "int8"}, optional
            Type of the leaf weights, if not as chosen.
        """
        model = self._frozen_form()
        changes: dict[str, Any] = {} if weights is None else {"weights": weights}
        if beam is not None and beam != "auto":
            changes["beam"] = beam
        if not changes:
            return model  # type: ignore[no-any-return]
        if isinstance(model, FrozenLabelTree):
            raise ValueError("beam and weights are for softmax trees: a label tree was chosen")
        other = replace(self._variant, **changes)
        return self._named(other.of(self.estimator_._frozen_form()))  # type: ignore[no-any-return]

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        check_is_fitted(self)
        arrays, fitted = self.estimator_._stored()
        return arrays, {
            "estimator": described(self.estimator_),
            "fitted": {name: plain(value) for name, value in fitted.items()},
            "variant": asdict(self._variant),
            "points": [asdict(point) for point in self.frontier_.points],
            "why": self.why_,
            "decided": self.decided_by_time_,
        }

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: FrozenTree
    ) -> None:
        check_types(
            fitted,
            {"estimator": (dict,), "fitted": (dict,), "variant": (dict,), "points": (list,),
             "why": (str,), "decided": (dict, type(None))},
        )  # fmt: skip
        inner = build(fitted["estimator"])
        if not isinstance(inner, AdaptiveSoftmaxTreeClassifier | SoftmaxForestClassifier):
            raise ValueError(f"a fit to a budget has no {type(inner).__name__}")
        inner._restore(arrays, fitted["fitted"], model)
        self._variant = Variant(**fitted["variant"])
        points = tuple(
            Point(**(point | {"variant": Variant(**point["variant"])}))
            for point in fitted["points"]
        )
        chosen = next((p for p in points if p.variant == self._variant), None)
        self.estimator_, self.classes_ = inner, inner.classes_
        self.n_features_in_, self.sparse_input_ = inner.n_features_in_, inner.sparse_input_
        self.frontier_ = Frontier(points, chosen, self._metric_name())
        self.why_, self.decided_by_time_ = fitted["why"], fitted["decided"]
        self._trained_with = training_summary(self)
        self._searched = {}
        self.model_ = self._named(self._variant.of(inner._frozen_form()))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle all but what is only for a fit."""
        state: dict[str, Any] = dict(super().__getstate__())
        only_for_a_fit = ("_wrap", "_samples", "_texts")
        return {name: value for name, value in state.items() if name not in only_for_a_fit}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


class _Probe:
    """A model like another one, for other rows.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    variant : Variant
        How it is deployed.
    """

    def __init__(self, estimator: Any, variant: Variant) -> None:
        self._variant = variant
        self._model = clone(estimator)
        found = getattr(estimator, "_found", None)
        if found is not None:
            if len(estimator.history_) < 2:
                self._model._recipe = found
            else:
                self._model._known_kind = found.kind

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> _Probe:
        """Train."""
        self._model.fit(X, y, sample_weight)
        self.ended_ = getattr(self._model, "ended_", None)
        return self

    @property
    def _predictor(self) -> Predictor:
        return derived(self._variant, self._model._frozen_form())._predictor


def _int_seed(random_state: Any) -> int:
    """Return the seed of the default tree: that of an int is the int."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(seed_sequence(random_state).entropy)  # type: ignore[arg-type]

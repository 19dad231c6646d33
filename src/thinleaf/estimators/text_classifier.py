"""Texts in, labels out: features, a model, and when not to answer, as one scikit-learn class."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from thinleaf._dtypes import AccumArray, AnyArray
from thinleaf.arrays.rows import as_matrix
from thinleaf.estimators._auto.deadline import Clock, Deadline
from thinleaf.estimators._base.classifier import all_or_nothing
from thinleaf.estimators._base.executors import EXECUTORS
from thinleaf.estimators._base.held_out_texts import (
    fit_model,
    learned_rejection,
    n_samples,
    rejection_on,
)
from thinleaf.estimators._base.label_tree_files import classifier_of
from thinleaf.estimators._base.seeds import seed_sequence
from thinleaf.estimators._base.storable import Trainable, build, described, plain
from thinleaf.estimators._base.training_rows import check_labels, check_one_type
from thinleaf.estimators._base.updating import UpdateReport
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.estimators.auto_tree import AutoTreeClassifier
from thinleaf.estimators.label_tree import LabelTreeClassifier
from thinleaf.execution import ExecutorChoice
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.labeltree.word_input import WordInput
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.packing import WeightType
from thinleaf.model.predictor import Predictor
from thinleaf.text.choice import choose_features
from thinleaf.text.columns import Columns, Table, is_table
from thinleaf.text.encoded import Encoded
from thinleaf.text.features import TextFeatures
from thinleaf.text.frozen import FrozenTextTree
from thinleaf.text.inputs import Input, Texts, is_rows, text_list
from thinleaf.text.predictor import StoredInput, WrappedPredictor
from thinleaf.text.rejecting import RejectingPredictions
from thinleaf.text.rejection import LEAST_ROWS, SECTION, Rejection

FeatureChoice: TypeAlias = Literal["auto", "words", "chars", "both", "hashing"]

_KINDS: dict[str, Any] = {"words": "tfidf", "chars": "chars", "both": "both", "hashing": "hashing"}

_SETTINGS = tuple(signature(TextFeatures).parameters)
"""What a TextFeatures is made of."""

_TIMED_TEXTS = 1000
_REJECTION_BYTES = 8192
_WITHOUT_REJECTION = 0.7
"""Share of the time for the model alone, if there is to be a second one for rejection."""


def _of_model(name: str) -> Callable[[Any], bool]:
    """Return a check that lets a method exist where the model has it."""

    def check(self: Any) -> bool:
        return hasattr(getattr(self, "model_", None) or self.model, name)

    return check


class TextClassifier(RejectingPredictions, ClassifierMixin, Trainable):  # type: ignore[misc]
    """A classifier of texts, from raw strings to labels.

    Parameters
    ----------
    model : estimator or "auto", optional
        Any classifier of thinleaf; by default an :class:`AdaptiveSoftmaxTreeClassifier`. ``"auto"``
        is an :class:`AutoTreeClassifier`, which keeps the budget of this object. A copy of it is
        trained, with ``random_state`` and ``n_jobs`` of this object if it says none. A
        :class:`LabelTreeClassifier` makes features of its own.
    features : {"auto", "words", "chars", "both", "hashing"}, TextFeatures or callable
        How texts become rows. Words and pairs of words; sequences of characters within words; both;
        or hashes of words. ``"auto"`` lets training texts choose. A
        :class:`~thinleaf.text.TextFeatures` says it in detail. A callable is an *encoder*: it takes
        a list of texts and returns an array with a row for each, such as
        :class:`~thinleaf.text.SentenceEncoder`; a model file names it, and does not hold it.
    text_columns : str or list of str, optional
        Columns of texts, if ``X`` is a table. Each has features of its own.
    numeric_columns : str or list of str, optional
        Columns of numbers beside them, which are standardised.
    rejection : bool
        Whether to find out, by a second fit to four fifths of the texts, when not to answer: what
        ``predict(…, reject=…)`` and :meth:`confidence` need. With fewer than about 250 texts it is
        not done.
    max_us : float, optional
        With ``model="auto"``: microseconds of a prediction, from the text to the label.
    max_bytes : float, optional
        With ``model="auto"``: bytes of the model file, the words it knows among them.
    max_fit_seconds : float, optional
        With ``model="auto"``: of ``fit``, features and rejection included.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads; -1 is all cores.
    executor : {"threads", "ray", "joblib"} or object
        Where the model is trained, if that does not say it; see :class:`SoftmaxTreeClassifier`.

    Attributes
    ----------
    model_ : estimator
        The trained model, of rows.
    input_ : Input or None
        How samples become rows; None if the model takes texts itself.
    classes_ : ndarray of shape (n_classes,)
    rejection_ : Rejection or None
        When not to answer.

    Examples
    --------
    >>> from thinleaf import TextClassifier
    >>> texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 10
    >>> labels = ["fracture", "fracture", "fever", "fever"] * 10
    >>> clf = TextClassifier(random_state=0).fit(texts, labels)
    >>> clf.predict(["a broken toe", "fever and chills"])
    array(['fracture', 'fever'], dtype='<U8')
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "model": [HasMethods(["fit", "predict_topk"]), StrOptions({"auto"}), None],
        "features": [StrOptions(set(get_args(FeatureChoice))), TextFeatures, callable],
        "text_columns": [str, list, tuple, None],
        "numeric_columns": [str, list, tuple, None],
        "rejection": ["boolean"],
        "max_us": [Interval(Real, 0, None, closed="neither"), None],
        "max_bytes": [Interval(Real, 0, None, closed="neither"), None],
        "max_fit_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "executor": EXECUTORS,
    }

    model_: Any
    input_: Input | None
    classes_: AnyArray
    rejection_: Rejection | None

    def __init__(
        self,
        model: Any = None,
        features: FeatureChoice | TextFeatures | Callable[[list[str]], Any] = "auto",
        *,
        text_columns: str | Sequence[str] | None = None,
        numeric_columns: str | Sequence[str] | None = None,
        rejection: bool = True,
        max_us: float | None = None,
        max_bytes: float | None = None,
        max_fit_seconds: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: ExecutorChoice = "threads",
    ) -> None:
        self.model = model
        self.features = features
        self.text_columns = text_columns
        self.numeric_columns = numeric_columns
        self.rejection = rejection
        self.max_us = max_us
        self.max_bytes = max_bytes
        self.max_fit_seconds = max_fit_seconds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor

    # -- training ----------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Train on labelled texts.

        A fit that fails, or is interrupted before there is a model, leaves the estimator as it was.

        Parameters
        ----------
        X : sequence of str, or table
            Texts: a list, a NumPy array, a column of pandas, Polars or Arrow. With
            ``text_columns``, a table of these, a dict of columns, or a list of dicts.
        y : array-like of shape (n_texts,)
            Labels: integers or strings.
        sample_weight : array-like of shape (n_texts,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        clock = Clock(self._limit())
        samples = self._samples(X)
        labels = _labels(y, n_samples(samples))
        model = self._new_model()
        made: Input | None = None
        rows: Any = samples
        if not isinstance(model, LabelTreeClassifier):
            made = self._learned_input(samples, labels)
            rows = as_matrix(made.rows(samples, self._n_threads))
        elif made_elsewhere := self._not_for_label_trees():
            raise ValueError(f"a label tree makes features of its own: leave out {made_elsewhere}")
        if made is not None and isinstance(model, AutoTreeClassifier):
            self._deploy_as_texts(model, made, samples, clock)
        interrupted = fit_model(model, rows, labels, sample_weight)
        for name in ("_wrap", "_texts"):
            model.__dict__.pop(name, None)
        self._made = made
        if made is not None and hasattr(model, "features_"):  # a fit to a budget chose a label tree
            made = None
        self.model_, self.input_, self.classes_ = model, made, model.classes_
        self.rejection_, self._no_rejection = None, type(self)._no_rejection
        source = self._text_input
        if self.rejection and source is not None and not interrupted:
            seed = seed_sequence(self.random_state)
            deadline = Deadline(clock.left)
            try:
                with deadline:
                    self.rejection_ = learned_rejection(
                        model, source, samples, labels, sample_weight, seed
                    )
            except KeyboardInterrupt:  # the model is there
                reason = "max_fit_seconds are over" if deadline.fired else "interrupted"
                warnings.warn(f"{reason}: it is not known when to reject", stacklevel=3)
        return self

    def _limit(self) -> float | None:
        """Return the seconds that a fit may take."""
        given = self.max_fit_seconds
        limit: float | None = (
            getattr(self.model, "max_fit_seconds", None) if given is None else given
        )
        return limit

    def _deploy_as_texts(
        self, model: AutoTreeClassifier, made: Input, samples: Any, clock: Clock
    ) -> None:
        """Let a budget be that of the model of texts."""
        some = np.unique(np.linspace(0, n_samples(samples) - 1, _TIMED_TEXTS).astype(int)).tolist()
        if isinstance(samples, Mapping):
            model._samples = [{name: column[i] for name, column in samples.items()} for i in some]
        else:
            model._samples = [samples[i] for i in some]
            if not self._not_for_label_trees():
                model._texts = samples
        model._wrap = lambda frozen: self._taking_texts(frozen, made, None)
        model._reserved += _REJECTION_BYTES if self.rejection else 0
        if self._limit() is not None:
            share = _WITHOUT_REJECTION if self.rejection else 1.0
            model.max_fit_seconds = max(share * clock.left, 0.01)

    @available_if(_of_model("partial_fit"))  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn some more texts with an online model, by the features that there are.

        Features that learn nothing, hashes or those of an encoder, need no :meth:`fit` before. When
        not to answer is no longer known afterwards: see :meth:`fit_rejection`.

        Parameters
        ----------
        X : sequence of str, or table
        y : array-like of shape (n_texts,)
        classes : array-like, optional
            All labels that may come.

        Returns
        -------
        self
        """
        if hasattr(self, "model_"):
            model, made = copy.deepcopy(self.model_), self.input_
            rows = as_matrix(self._rows(X))
        else:
            self._validate_params()
            model, samples = self._new_model(), self._samples(X)
            made = self._input_that_learns_nothing(samples)
            rows = as_matrix(made.rows(samples, self._n_threads))
        model.partial_fit(rows, _labels(y, rows.shape[0]), classes)
        self.model_, self.input_, self.classes_ = model, made, model.classes_
        self.rejection_, self._no_rejection = None, _CHANGED
        return self

    @available_if(_of_model("update"))  # type: ignore[untyped-decorator]
    @all_or_nothing
    def update(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn more texts, also of classes that are new, without those of the fit.

        Terms that two or more of the texts have (``min_df``) and that are new become features;
        others keep their weights. What is learned of them is what softmax trees and forests learn:
        see :meth:`AdaptiveSoftmaxTreeClassifier.update`. When not to answer stays as it was found:
        :meth:`fit_rejection` finds it anew.

        Parameters
        ----------
        X : sequence of str, or table
        y : array-like of shape (n_texts,)
            Labels, known ones or new ones.
        sample_weight : array-like of shape (n_texts,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        assert self.input_ is not None  # it is None of a label tree alone
        samples = self._samples(X)
        labels = _labels(y, n_samples(samples))
        made, moved = self.input_.extended(samples)
        model = self.model_._widened(moved, made.n_features)
        model.update(as_matrix(made.rows(samples, self._n_threads)), labels, sample_weight)
        self.model_, self.input_, self.classes_ = model, made, model.classes_
        return self

    @available_if(_of_model("forget"))  # type: ignore[untyped-decorator]
    @all_or_nothing
    def forget(self, label: Any) -> Self:
        """Remove a class: it is never answered again, and its texts are no longer remembered.

        Parameters
        ----------
        label : one of ``classes_``

        Returns
        -------
        self
        """
        check_is_fitted(self)
        model = copy.copy(self.model_)
        model.forget(label)
        self.model_, self.classes_ = model, model.classes_
        return self

    @property
    def update_(self) -> UpdateReport:
        """What the last update has changed."""
        if not hasattr(self, "model_"):
            raise AttributeError("there is no update before fit")
        report: UpdateReport = self.model_.update_
        return report

    def fit_rejection(self, X: Any, y: npt.ArrayLike) -> Self:
        """Find out when not to answer, by labelled texts that the model has not learned.

        :meth:`fit` does it by itself. This is for what was learned since, by :meth:`partial_fit`,
        and for texts that are closer to those to come than the training texts are.

        Parameters
        ----------
        X : sequence of str, or table
        y : array-like of shape (n_texts,)
            Labels; some may be of classes that the model does not know.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        samples, source = self._samples(X), self._text_input
        if source is None:
            raise ValueError("the model was fitted to rows: when to reject is told by texts")
        labels = _labels(y, n_samples(samples))
        seed = seed_sequence(self.random_state)
        found = rejection_on(self.model_, source, samples, labels, seed)
        if found is None:
            raise ValueError(
                f"there must be {LEAST_ROWS} or more texts with known terms, to tell when to reject"
            )
        self.rejection_ = found
        return self

    def _new_model(self) -> Any:
        model: Any
        budget = {name: getattr(self, name) for name in ("max_us", "max_bytes", "max_fit_seconds")}
        if isinstance(self.model, str):
            model = AutoTreeClassifier(**budget)
        elif any(value is not None for value in budget.values()):
            names = ", ".join(name for name, value in budget.items() if value is not None)
            raise ValueError(f"{names}: a budget is for model='auto'")
        else:
            model = AdaptiveSoftmaxTreeClassifier() if self.model is None else clone(self.model)
            if isinstance(model, AutoTreeClassifier):
                model._reserved = self.model._reserved
        known = model.get_params(deep=False)
        if known.get("random_state", 0) is None and self.random_state is not None:
            entropy = seed_sequence(self.random_state).entropy
            model.set_params(random_state=int(entropy))  # type: ignore[arg-type]
        if known.get("n_jobs", 0) is None and self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        if known.get("executor") == "threads":
            model.set_params(executor=self.executor)
        return model

    def _samples(self, X: Any) -> Any:
        """Return texts as a list, and a table as it is, if there are any."""
        if self.text_columns is None:
            if self.numeric_columns is not None:
                raise ValueError("numeric_columns stand beside text_columns: name these, too")
            X = text_list(X)
        elif not is_table(X):
            raise ValueError(
                f"text_columns are of a table (pandas, Polars, Arrow, a dict of columns, or a list "
                f"of dicts), but X is a {type(X).__name__}"
            )
        else:
            X = Table(X, [*_names(self.text_columns), *_names(self.numeric_columns)]).as_dict()
        if n_samples(X) == 0:
            raise ValueError("there are no texts to learn from")
        return X

    def _learned_input(self, samples: Any, labels: AnyArray) -> Input:
        if self.text_columns is None:
            return self._of_texts(samples, labels)
        texts, numeric = _names(self.text_columns), _names(self.numeric_columns)
        if not texts or len({*texts, *numeric}) < len(texts) + len(numeric):
            raise ValueError("text_columns and numeric_columns must be names, each of them once")
        return Columns.fit(samples, texts, numeric, lambda column: self._of_texts(column, labels))

    def _input_that_learns_nothing(self, samples: Any) -> Input:
        """Return what makes rows, before anything was learned."""
        features = self.features
        hashing = isinstance(features, TextFeatures) and features.kind == "hashing"
        learns = features != "hashing" if isinstance(features, str) else not callable(features)
        if (learns and not hashing) or self.numeric_columns:
            raise ValueError(
                "partial_fit needs features: call fit with some texts first, or set "
                "features='hashing' or an encoder, without numeric_columns, which learn nothing"
            )
        return self._learned_input(samples, np.empty(0))

    def _of_texts(self, texts: list[str], labels: AnyArray) -> Input:
        features = self.features
        if isinstance(features, TextFeatures):
            return Texts(copy.copy(features).fit(texts))
        if not isinstance(features, str):
            return Encoded.by(features)
        if features == "auto":
            return Texts(choose_features(texts, labels, random_state=self.random_state))
        return Texts(TextFeatures(_KINDS[features]).fit(texts))

    def _not_for_label_trees(self) -> str:
        given = {
            "features": not (isinstance(self.features, str) and self.features == "auto"),
            "text_columns": self.text_columns is not None,
        }
        return " and ".join(name for name, wrong in given.items() if wrong)

    @property
    def feature_importances_(self) -> AccumArray:
        """How much each feature decides, where the model knows it; see ``input_.feature_name``."""
        if not hasattr(self, "model_"):
            raise AttributeError("there are no importances before fit")
        found: AccumArray = self.model_.feature_importances_
        return found

    # -- prediction --------------------------------------------------------------------------------

    @property
    def _predictor(self) -> Predictor:
        check_is_fitted(self)
        inner: Predictor = self.model_._predictor
        return inner if self.input_ is None else WrappedPredictor(inner, self.input_)

    @property
    def _explained_predictor(self) -> Predictor:
        check_is_fitted(self)
        inner: Predictor = self.model_._explained_predictor
        return inner if self.input_ is None else WrappedPredictor(inner, self.input_)

    def _names_for(self, x: Any) -> FeatureNames:
        check_is_fitted(self)
        if self.input_ is None:
            names: FeatureNames = self.model_._names_for(x)
            return names
        return super()._names_for(x)

    @property
    def _text_input(self) -> Input | None:
        check_is_fitted(self)
        words = getattr(self.model_, "features_", None)  # of a label tree
        return self.input_ if words is None else WordInput(words)

    @property
    def _found_rejection(self) -> Rejection | None:
        check_is_fitted(self)
        return self.rejection_

    @property
    def _n_threads(self) -> int:  # type: ignore[override]
        return int(self.n_jobs) if isinstance(self.n_jobs, Integral) else 1

    def _rows(self, X: Any) -> Any:
        return self._rows_in(X, None)

    def _rows_in(self, X: Any, n_jobs: int | None) -> Any:
        check_is_fitted(self)
        if self.input_ is None or is_rows(X):
            return self.model_._rows(X)
        return self.input_.rows(X, self._threads(n_jobs))

    # -- frozen and stored -------------------------------------------------------------------------

    def _frozen_form(self) -> Any:
        check_is_fitted(self)
        return self._with_texts(self._freezable()._frozen_form())

    @available_if(_of_model("at"))  # type: ignore[untyped-decorator]
    def at(self, max_us: float | None = None, max_bytes: float | None = None) -> Any:
        """Return the frozen model of another budget, from the same fit with ``model="auto"``.

        Parameters
        ----------
        max_us, max_bytes : float, optional

        Returns
        -------
        model : FrozenTextTree
        """
        check_is_fitted(self)
        return self.model_._at(max_us, max_bytes, self._with_texts)

    def freeze(
        self,
        *,
        beam: int | Literal["auto"] | None = None,
        weights: WeightType | None = None,
    ) -> Any:
        """Return the model in the form that is deployed: packed, immutable, without training.

        Parameters
        ----------
        beam : int or "auto", optional
            How many paths a text takes; by default what the model says.
        weights : {"float32", "float16", "int8"}, optional
            Type of the leaf weights; by default float32, or what a fit to a budget has chosen.

        Returns
        -------
        model : FrozenTextTree or FrozenLabelTree
            It takes texts.
        """
        check_is_fitted(self)
        given = {} if weights is None else {"weights": weights}
        return self._with_texts(self._freezable().freeze(beam=beam, **given))

    def _freezable(self) -> Any:
        if not hasattr(self.model_, "freeze"):
            raise ValueError(
                f"a {type(self.model_).__name__} cannot be frozen or saved: it is for comparisons"
            )
        return self.model_

    def _with_texts(self, model: Any) -> Any:
        """Return a frozen model that takes texts."""
        takes_texts = isinstance(model, FrozenLabelTree)
        chosen = takes_texts == (self.input_ is None)  # other models of a fit to a budget reject
        rejection = self.rejection_ if chosen else None  # by other figures
        if not takes_texts:
            made = self._made if self.input_ is None else self.input_
            assert made is not None
            return self._taking_texts(model, made, rejection)
        sections = model.sections
        if rejection is not None:
            sections[SECTION] = rejection.section()
        return model.replaced(sections=sections)

    def _taking_texts(self, model: Any, made: Input, rejection: Rejection | None) -> Any:
        sections = model.sections | {made.kind: made.section()}
        if rejection is not None:
            sections[SECTION] = rejection.section()
        arguments = model._arguments() | {"sections": sections}
        source = StoredInput(sections, model.n_features, made)
        return FrozenTextTree(
            arguments.pop("packed"), arguments.pop("labels"), source=source, **arguments
        )

    def save(self, path: str | os.PathLike[str], *, trainable: bool = False) -> None:
        """Write a file that :func:`thinleaf.load` opens, and the command line takes.

        Parameters
        ----------
        path : path-like
        trainable : bool
            Also write what :func:`thinleaf.load_estimator` needs to give this object back. The file
            of a label tree always has it.
        """
        check_is_fitted(self)
        super().save(path, trainable=trainable or self.input_ is None)

    def _stored(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        if self.input_ is None:  # the file of a label tree has all of it
            return {}, {}
        arrays, fitted = self._freezable()._stored()
        values = {name: plain(value) for name, value in fitted.items()}
        return arrays, {"model": described(self.model_), "fitted": values}

    @classmethod
    def _for_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        features = parameters["features"]
        if isinstance(features, TextFeatures):
            settings = {name: getattr(features, name) for name in _SETTINGS}
            lists = {name: list(settings[name]) for name in ("ngram_range", "char_range")}
            features = {"text_features": settings | lists}
        elif not isinstance(features, str):
            features = {"encoder": True}
        columns: dict[str, Any] = {
            name: list(parameters[name])
            for name in ("text_columns", "numeric_columns")
            if isinstance(parameters[name], tuple)
        }
        if isinstance(parameters["model"], LabelTreeClassifier):
            columns["model"] = None  # what the file of a label tree says itself
        return parameters | {"features": features} | columns

    @classmethod
    def _from_file(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        features = parameters.get("features")
        if type(features) is not dict:
            return parameters
        if set(features) == {"text_features"} and type(features["text_features"]) is dict:
            return parameters | {"features": TextFeatures(**features["text_features"])}
        if features != {"encoder": True}:
            raise ValueError("unknown features")
        return parameters | {"features": _absent_encoder}

    def _restore(
        self, arrays: Mapping[str, AnyArray], fitted: Mapping[str, Any], model: Any
    ) -> None:
        if isinstance(model, FrozenLabelTree):
            self._restore_label_tree(fitted, model)
            return
        if type(fitted) is not dict or set(fitted) != {"model", "fitted"}:
            raise ValueError("unknown fitted attributes")
        if not isinstance(model, FrozenTextTree):
            raise ValueError("the file does not say how texts become rows")
        inner = build(fitted["model"])
        if isinstance(inner, TextClassifier):
            raise ValueError("a model of texts in a model of texts")
        inner._restore(arrays, fitted["fitted"], model)
        self.model_, self.input_, self.classes_ = inner, model.input, inner.classes_
        self.rejection_ = model.rejection
        encoder = getattr(self.input_, "encoder", None)
        if self.features is _absent_encoder and encoder is not None:
            self.features = encoder

    def _restore_label_tree(self, fitted: Mapping[str, Any], model: FrozenLabelTree) -> None:
        to_a_budget = self.model == "auto" or isinstance(self.model, AutoTreeClassifier)
        if fitted or not (self.model is None or to_a_budget) or model.words is None:
            raise ValueError("the label tree is not that of a classifier of texts")
        inner = classifier_of(model)
        if not to_a_budget:
            self.model = clone(inner)
        self.model_, self.input_, self.classes_ = inner, None, inner.classes_
        self.rejection_ = model.rejection

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        return tags


_CHANGED = (
    "partial_fit has changed it since; call fit_rejection with labelled texts that it has not "
    "learned, or fit it again"
)


def _absent_encoder(texts: list[str]) -> Any:
    """Stand for an encoder that a file could not hold."""
    raise ValueError("a model file holds no encoder: set_params(features=encoder), then fit")


def _labels(y: Any, n_texts: int) -> AnyArray:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = y.to_pylist() if hasattr(y, "to_pylist") else y
    check_one_type(y)
    labels = np.asarray(y)
    if labels.shape != (n_texts,):
        raise ValueError(
            f"there must be one label a text: there are {n_texts} texts, but y has shape "
            f"{labels.shape}"
        )
    check_labels(labels)
    return labels


def _names(columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return []
    names = [columns] if isinstance(columns, str) else list(columns)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"columns must be given by name, got {names!r}")
    return names

"""One prediction contract: what a trained model answers, and what users ask it.

A :class:`Predictor` answers for rows that have been checked, in class ids. :class:`Predictions` has
the public methods, written once over it: whoever has a predictor and says how input is checked has
them all. Nothing here knows scikit-learn.
"""

from __future__ import annotations

import functools
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import check_top_k, ids_of_rows
from thinleaf.arrays.rows import Rows, n_rows_of, one_row, sample

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.model.explanation.explainer import Explainer
    from thinleaf.model.explanation.names import FeatureNames
    from thinleaf.model.explanation.values import Explanation

Method = TypeVar("Method", bound=Callable[..., Any])


class Predictor(ABC):
    """What was trained, as it answers for checked rows.

    Rows are :data:`~thinleaf.arrays.rows.Rows`; a model of texts takes a list of them instead.
    Classes are numbered as in ``labels``.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,)
    label_list : list
        The labels as Python values.
    n_features : int
        Width of a row.
    """

    labels: AnyArray
    label_list: list[Any]
    n_features: int

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""

    @abstractmethod
    def top_k(self, rows: Any, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of each row, best first, and their probabilities."""

    @abstractmethod
    def probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class, of shape (n_rows, n_classes)."""

    @abstractmethod
    def probability_of(
        self, rows: Any, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row; see :meth:`Predictions.label_proba`."""

    # -- what follows from these, unless there is a faster way -------------------------------------

    def top_class(self, rows: Any, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        return self.top_k(rows, 1, n_jobs)[0][:, 0]

    def log_probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the logarithm of :meth:`probabilities`."""
        with np.errstate(divide="ignore"):
            out: AccumArray = np.log(self.probabilities(rows, n_jobs))
        return out

    def sparse_probabilities(self, rows: Any, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the classes that a row's softmax is over: here, of all."""
        import scipy.sparse as sp

        return sp.csr_array(self.probabilities(rows, n_jobs))

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the class of one sample, which is checked here."""
        return int(self.top_class(self.rows_of_one(x, values))[0])

    def top_k_one(self, x: Any, values: Any, k: int) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of one sample, which is checked here."""
        ids, p = self.top_k(self.rows_of_one(x, values), k)
        return ids[0], p[0]

    def rows_of_one(self, x: Any, values: Any) -> Any:
        """Return one sample as rows."""
        rows: Rows = one_row(x, values, self.n_features)
        return rows

    def sample_of(self, x: Any, values: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one sample: a dense row and None, or indices and values."""
        return sample(x, values, self.n_features)

    def names_for(self, x: Any, names: FeatureNames) -> FeatureNames:
        """Return what the features of a sample are called, given their names."""
        return names

    @property
    def explainer(self) -> Explainer:
        """What explains its answers; ``TypeError`` if there is no tree to follow."""
        raise TypeError(
            "the model does not predict through a tree: there is no path to explain. Trees, "
            "forests, online trees and label trees have one"
        )


def _in_the_old_order(method: Method) -> Method:
    """Let ``predict_topk_one(x, k, values)`` work, as it was called at first."""

    @functools.wraps(method)
    def wrapper(self: Any, x: Any, *given: Any, **named: Any) -> Any:
        if given and isinstance(given[0], Integral):
            warnings.warn(
                "predict_topk_one(x, k, values) is deprecated: call predict_topk_one(x, values, "
                "k=k), or predict_topk_one(x, k=k)",
                DeprecationWarning,
                stacklevel=2,
            )
            named |= dict(zip(("k", "values"), given, strict=False))
            given = ()
        return method(self, x, *given, **named)

    return cast(Method, wrapper)


class Predictions:
    """The public prediction methods of all models, frozen ones and estimators alike.

    Input ``X`` is an array-like or a sparse matrix of shape (n_rows, n_features); of a model that
    was trained on texts, a sequence of strings.
    """

    if TYPE_CHECKING:

        @property
        def _predictor(self) -> Predictor:
            """What answers."""

        def _rows(self, X: Any) -> Any:
            """Return input as the predictor takes it, once it is checked."""

    _n_threads: int = 1
    """Threads, if a call does not say how many."""

    def predict(self, X: Any, *, n_jobs: int | None = None) -> AnyArray:
        """Return the label of each row: the most probable one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features), or list of str
        n_jobs : int, optional
            Threads; -1 is all cores. By default what the estimator says, or one.

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        rows, predictor = self._rows_in(X, n_jobs), self._predictor
        return predictor.labels[predictor.top_class(rows, self._threads(n_jobs))]

    def predict_topk(
        self, X: Any, k: int = 5, *, n_jobs: int | None = None
    ) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable labels of each row and their probabilities, best first.

        Parameters
        ----------
        X, n_jobs
            As for :meth:`predict`.
        k : int

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        probabilities : ndarray of shape (n_rows, k)
            As in :meth:`predict_proba`, without ever making that matrix.
        """
        rows, predictor = self._rows_in(X, n_jobs), self._predictor
        check_top_k(k, predictor.labels.size)
        ids, p = predictor.top_k(rows, int(k), self._threads(n_jobs))
        return predictor.labels[ids], p

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> AccumArray:
        """Return the probability of every label; rows sum to one.

        With many labels the result is large: prefer :meth:`predict_topk` or :meth:`label_proba`.

        Parameters
        ----------
        X, n_jobs
            As for :meth:`predict`.

        Returns
        -------
        P : ndarray of shape (n_rows, n_classes)
        """
        rows = self._rows_in(X, n_jobs)
        return self._predictor.probabilities(rows, self._threads(n_jobs))

    def predict_log_proba(self, X: Any, *, n_jobs: int | None = None) -> AccumArray:
        """Return the logarithm of :meth:`predict_proba`."""
        rows = self._rows_in(X, n_jobs)
        return self._predictor.log_probabilities(rows, self._threads(n_jobs))

    def predict_proba_sparse(self, X: Any, *, n_jobs: int | None = None) -> sp.csr_array:
        """Return the probabilities of the labels that the rows' leaves hold.

        Parameters
        ----------
        X, n_jobs
            As for :meth:`predict`.

        Returns
        -------
        P : scipy CSR array of shape (n_rows, n_classes)
            The entries are those of :meth:`predict_proba`; a row's sum falls short of one by what
            labels outside its leaves get. Of models without leaves all labels are there.
        """
        rows = self._rows_in(X, n_jobs)
        return self._predictor.sparse_probabilities(rows, self._threads(n_jobs))

    def label_proba(
        self, X: Any, y: npt.ArrayLike, *, smooth: bool = True, n_jobs: int | None = None
    ) -> AccumArray:
        """Return the probability of one given label for each row.

        Parameters
        ----------
        X, n_jobs
            As for :meth:`predict`.
        y : array-like of shape (n_rows,)
            Known labels.
        smooth : bool
            False leaves labels outside a row's leaves at zero: what coverage and the papers'
            perplexity are computed from. A model without leaves has none outside.

        Returns
        -------
        p : ndarray of shape (n_rows,)
        """
        rows, predictor = self._rows_in(X, n_jobs), self._predictor
        order = np.argsort(predictor.labels, kind="stable")
        n_rows = len(rows) if isinstance(rows, list) else n_rows_of(rows)
        ids = order[ids_of_rows(predictor.labels[order], y, n_rows)].astype(INDEX)
        return predictor.probability_of(rows, ids, smooth, self._threads(n_jobs))

    def predict_one(self, x: Any, values: Any = None) -> Any:
        """Return the label of one sample; of a frozen tree, in about a microsecond.

        Nothing is checked but what memory safety needs: NaN gives some label. Fastest with
        contiguous arrays of float32 (and int32 indices); others are converted.

        Parameters
        ----------
        x : ndarray of shape (n_features,), sparse matrix of one row, or str
            A dense row, a sparse one, or the text of a model of texts; or, with ``values``, the
            indices of the nonzero features, in any order.
        values : ndarray of the shape of ``x``, optional

        Returns
        -------
        label : int, float, bool or str
        """
        predictor = self._predictor
        return predictor.label_list[predictor.top_class_one(x, values)]

    @_in_the_old_order
    def predict_topk_one(self, x: Any, values: Any = None, k: int = 5) -> list[tuple[Any, float]]:
        """Return the ``k`` most probable labels of one sample with their probabilities.

        Parameters
        ----------
        x, values
            As for :meth:`predict_one`.
        k : int

        Returns
        -------
        top : list of (label, probability), best first
        """
        predictor = self._predictor
        check_top_k(k, predictor.labels.size)
        ids, p = predictor.top_k_one(x, values, int(k))
        names = predictor.label_list
        return [(names[i], value) for i, value in zip(ids, p.tolist(), strict=True)]

    def explain(
        self, x: Any, values: Any = None, *, against: Any = None, top: int = 5
    ) -> Explanation:
        """Return why one sample gets its label: the path, what pushed it there, what decided.

        Print the result, show it in a notebook, or take its values; ``to_dict`` gives JSON. The
        contributions of features add up to the model's own scores, exactly.

        Parameters
        ----------
        x, values
            As for :meth:`predict_one`.
        against : object, optional
            Another label: why not that one, where its way parts from the sample's, and what would
            have to change.
        top : int
            How many labels, and candidates of a leaf, to explain.

        Returns
        -------
        explanation : Explanation

        Raises
        ------
        TypeError
            If the model does not predict through a tree.
        """
        from thinleaf.model.explanation.explainer import explained

        return explained(self._explained_predictor, x, values, against, top, self._names_for(x))

    @property
    def _explained_predictor(self) -> Predictor:
        """What answers, in a form that can be explained."""
        return self._predictor

    def _names_for(self, x: Any) -> FeatureNames:
        """Return what the features of a sample are called."""
        from thinleaf.model.explanation.names import FeatureNames

        names = getattr(self, "_feature_names", None)
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        return FeatureNames(None if names is None else names)

    def explore(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        n_examples: int = 4,
        max_mb: float = 25.0,
        exact: bool = False,
    ) -> Any:
        """Write a page in which the tree can be walked: one file, which needs no network.

        Parameters
        ----------
        path : path-like
            An ``.html`` file; one of that name is replaced.
        X : {array-like, sparse matrix} of shape (n_rows, n_features), or list of str, optional
            Rows to count at the nodes, and to show examples of.
        y : array-like of shape (n_rows,), optional
            Their labels: nodes then have an error, too.
        title : str, optional
        n_examples : int
            How many examples of each leaf to show, of those predicted right and of the others. They
            are in the page as they are: 0 for data that must not be passed on.
        max_mb : float
            The page has no more millions of bytes. A model that does not fit answers approximately
            there, with rounded weights and without those that matter least; the page says so, and
            how often the rows get the same label.
        exact : bool
            If the model does not fit, leave out the weights of leaves, those that fewest rows reach
            first, and change no others: the page answers for a part, as the model does.

        Returns
        -------
        page : thinleaf.explain.explorer.Page
            What was written: its size, and what was left out.

        Raises
        ------
        ValueError
            If the model has no tree.
        """
        # what explains stands above models, and is looked up only when it is asked for
        explorer = import_module("thinleaf.explain.explorer")
        return explorer.explore(
            self, path, X, y, title=title, n_examples=n_examples, max_mb=max_mb, exact=exact
        )

    def _rows_in(self, X: Any, n_jobs: int | None) -> Any:
        """Return checked input; models for which that is work may do it in threads."""
        return self._rows(X)

    def _threads(self, n_jobs: int | None) -> int:
        return self._n_threads if n_jobs is None else n_jobs

"""Counting what a model does on labelled rows, in memory or batch by batch.

:func:`evaluate` takes rows or texts in memory, a :class:`Tally` what streams by; both give an
:class:`~thinleaf.measuring.evaluation.Evaluation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import INDEX, OFFSET, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import is_whole
from thinleaf.measuring.confusions import ConfusedPair, Confusions, UnknownLabels
from thinleaf.measuring.evaluation import Evaluation
from thinleaf.measuring.label_scores import LabelScores
from thinleaf.measuring.latency import Stopwatch
from thinleaf.measuring.reliability import N_BINS, ConfidenceCounts

N_PAIRS = 50
BATCH = 8192


def evaluate(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    *,
    texts: Sequence[str] | None = None,
    top_k: int = 5,
    n_bins: int = N_BINS,
    n_pairs: int = N_PAIRS,
    n_examples: int = 3,
    batch_size: int = BATCH,
    n_jobs: int = 1,
) -> Evaluation:
    """Measure a model on labelled rows or texts.

    Parameters
    ----------
    model : FrozenTree, FrozenLabelTree or a fitted estimator of this library
        What has ``predict``, ``predict_topk`` and ``label_proba``.
    X : {array-like, sparse matrix} of shape (n_rows, n_features), or sequence of str
        Texts are for models that take them, or whose file says how texts become rows.
    y : array-like of shape (n_rows,)
        Labels. Those that the model does not know count as errors, and are named.
    texts : sequence of str, optional
        What to show of rows that are wrong; by default ``X``, if it holds texts.
    top_k : int
        Of the top-k error; at most the number of classes is taken.
    n_bins : int
        Of the reliability table.
    n_pairs : int
        Confused pairs to keep.
    n_examples : int
        Of each of them.
    batch_size : int
        Rows that are predicted at a time.
    n_jobs : int
        Threads; -1 is all cores.

    Returns
    -------
    evaluation : Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from thinleaf import SoftmaxTreeClassifier
    >>> from thinleaf.measuring import evaluate
    >>> X = np.random.default_rng(0).normal(size=(200, 4)).astype("float32")
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = SoftmaxTreeClassifier(depth=1, random_state=0).fit(X, y).freeze()
    >>> found = evaluate(model, X, y)
    >>> found.labels.labels, found.error < 0.1
    (['left', 'right'], True)
    """
    if not is_whole(batch_size) or batch_size < 1:
        raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
    given = _texts_of(X)
    texts = given if texts is None else texts
    truth = np.asarray(y)
    n_rows = _n_rows(X) if given is None else len(given)
    if truth.shape != (n_rows,):
        raise ValueError(f"y must have one label a row ({n_rows}), got shape {truth.shape}")
    if texts is not None and len(texts) != n_rows:
        raise ValueError(f"texts must be one a row ({n_rows}), got {len(texts)}")
    tally = Tally(
        model, top_k=top_k, n_bins=n_bins, n_pairs=n_pairs, n_examples=n_examples, n_jobs=n_jobs
    )
    index = {label: i for i, label in enumerate(tally.labels.tolist())}
    for begin, rows in _batches(_reader(model, X, given), n_rows, int(batch_size)):
        part = slice(begin, begin + batch_size)
        names = truth[part].tolist()
        ids = np.array([index.get(name, -1) for name in names], dtype=INDEX)
        shown = None if texts is None else texts[part]
        tally.add(rows, ids, names, np.arange(begin, begin + len(names)), shown)
    return tally.result()


class Tally:
    """Adds up what a model does, batch by batch, in bounded memory.

    A row whose label the model does not know is an error; it has no probability, so it is left out
    of perplexity and coverage.

    Parameters
    ----------
    model : object
        As for :func:`evaluate`.
    top_k, n_bins, n_pairs, n_examples, n_jobs
        As for :func:`evaluate`.
    unit : {"row", "line"}
        What the numbers of rows count.
    """

    def __init__(
        self,
        model: Any,
        *,
        top_k: int = 5,
        n_bins: int = N_BINS,
        n_pairs: int = N_PAIRS,
        n_examples: int = 3,
        n_jobs: int = 1,
        unit: Literal["row", "line"] = "row",
    ) -> None:
        labels = getattr(model, "labels", None)
        self.labels: AnyArray = np.asarray(model.classes_ if labels is None else labels)
        n_classes = self.labels.size
        if not is_whole(top_k) or top_k < 1:
            raise ValueError(f"top_k must be a positive integer, got {top_k!r}")
        self._model, self._n_jobs, self._unit, self._n_pairs = model, n_jobs, unit, n_pairs
        self._top_k = min(int(top_k), n_classes)
        self._order = np.argsort(self.labels, kind="stable")
        self._n_rows = self._n_wrong = self._n_missed = self._n_covered = 0
        self._loss = self._covered_loss = 0.0
        self._counts = np.zeros((3, n_classes), dtype=OFFSET)  # support, predicted, right
        self._confusions = Confusions(n_classes, n_examples)
        self._unknown = UnknownLabels()
        self._confidence = ConfidenceCounts(n_bins)
        self._watch = Stopwatch()

    def add(
        self,
        X: Any,
        ids: IndexArray,
        names: Sequence[Any],
        numbers: AnyArray,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Count rows.

        Parameters
        ----------
        X : rows or texts
            As the model takes them.
        ids : ndarray of shape (n_rows,)
            Their classes; -1 is one that the model does not know.
        names : sequence of length n_rows
            Their labels, of which the unknown ones are named.
        numbers : ndarray of shape (n_rows,)
            By which rows are named.
        texts : sequence of str, optional
            By which they are shown.
        """
        model, jobs, known = self._model, self._n_jobs, ids >= 0
        if ids.size == 0:
            return
        if self._n_rows == 0:
            model.predict(X[:1])  # so that loading code is not measured
        with self._watch:
            predicted = model.predict(X, n_jobs=jobs)
        top, p = model.predict_topk(X, self._top_k, n_jobs=jobs)
        truth = self.labels[ids]  # of an unknown label, the last one: it is left out below
        given = self._ids_of(predicted)
        right = (given == ids) & known
        self._n_rows += ids.size
        self._n_wrong += ids.size - int(np.count_nonzero(right))
        hit = (top == truth[:, None]).any(axis=1) & known
        self._n_missed += ids.size - int(np.count_nonzero(hit))
        if known.any():
            self._add_losses(X, truth, known)
        confidence = p[:, 0]
        if not np.array_equal(top[:, 0], predicted):  # a greedy search may find another
            confidence = model.label_proba(X, predicted, n_jobs=jobs)
        self._confidence.add(confidence, right)
        n_classes = self.labels.size
        for row, found in enumerate((ids[known], given, given[right])):
            self._counts[row] += np.bincount(found, minlength=n_classes)
        wrong = np.flatnonzero(known & ~right)
        self._confusions.add(
            ids[wrong],
            given[wrong],
            numbers[wrong],
            confidence[wrong],
            None if texts is None else [texts[i] for i in wrong.tolist()],
        )
        self._unknown.add([names[i] for i in np.flatnonzero(~known).tolist()])

    def result(self) -> Evaluation:
        """Return all figures so far; there must be a row."""
        n_rows, n_known = self._n_rows, self._n_rows - self._unknown.n_rows
        if n_rows == 0:
            raise ValueError("there are no rows to evaluate")
        names = self.labels.tolist()
        unknown = dict(sorted(self._unknown.counts.items(), key=lambda item: -item[1]))
        support, predicted, right = self._counts.copy()
        pairs = tuple(
            ConfusedPair(names[i], names[j], n, n / int(support[i]), examples)
            for i, j, n, examples in self._confusions.pairs(self._n_pairs)
        )
        return Evaluation(
            rows=n_rows,
            unknown_rows=self._unknown.n_rows,
            unknown_labels=unknown,
            unknown_complete=self._unknown.complete,
            error=self._n_wrong / n_rows,
            top_k=self._top_k,
            top_k_error=self._n_missed / n_rows,
            perplexity=_perplexity(self._loss, n_known),
            coverage=self._n_covered / n_known if n_known else None,
            covered_perplexity=_perplexity(self._covered_loss, self._n_covered),
            us_per_row=1e6 * self._watch.seconds / n_rows,
            labels=LabelScores.of(names, support, predicted, right, unknown),
            pairs=pairs,
            n_pairs=len(self._confusions),
            pairs_complete=self._confusions.complete,
            reliability=self._confidence.reliability(),
            selection=self._confidence.selection(),
            n_classes=self.labels.size,
            beam=getattr(self._model, "beam", 1),
            temperature=getattr(self._model, "temperature", 1.0),
            unit=self._unit,
        )

    def _ids_of(self, labels: AnyArray) -> IndexArray:
        """Return the class of each label that the model has given."""
        at = np.searchsorted(self.labels, labels, sorter=self._order)
        return self._order[at].astype(INDEX)

    def _add_losses(self, X: Any, truth: AnyArray, known: AnyArray) -> None:
        model, jobs = self._model, self._n_jobs
        held: AccumArray = model.label_proba(X, truth, smooth=False, n_jobs=jobs)[known]
        p: AccumArray = model.label_proba(X, truth, n_jobs=jobs)[known]
        self._n_covered += int(np.count_nonzero(held))
        self._covered_loss -= float(np.log(held[held > 0.0]).sum())
        with np.errstate(divide="ignore"):
            self._loss -= float(np.log(p).sum())


def _perplexity(loss: float, n: int) -> float | None:
    if n == 0:
        return None
    return math.exp(loss / n) if loss / n < 700.0 else math.inf


# -- rows and texts in memory ----------------------------------------------------------------------


def _texts_of(X: Any) -> list[str] | None:
    """Return texts if that is what X holds."""
    if isinstance(X, str | bytes):
        raise ValueError("X must be rows or a list of texts, got one text")
    if hasattr(X, "tocsr") or len(getattr(X, "shape", (0,))) != 1:
        return None
    values = list(X)
    return values if values and all(isinstance(value, str) for value in values) else None


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return len(X) if shape is None else int(shape[0])


def _reader(model: Any, X: Any, texts: list[str] | None) -> Any:
    """Return what gives some rows of X as the model takes them."""
    if texts is not None:
        sections = getattr(model, "sections", {})
        if "text" in sections and not model.takes_texts:
            from thinleaf.text.recipe import Recipe

            features = Recipe.of(sections, model.n_features).text
            assert features is not None
            return lambda part: features.transform(texts[part])
        return lambda part: texts[part]
    X = X.tocsr() if hasattr(X, "tocsr") else X
    X = getattr(X, "iloc", X)
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    return lambda part: X[part]


def _batches(read: Any, n_rows: int, size: int) -> Iterator[tuple[int, Any]]:
    for begin in range(0, n_rows, size):
        yield begin, read(slice(begin, begin + size))

"""The answers of the compiled header, under the contract that all models have.

:class:`NativePredictor` is a :class:`~thinleaf.model.predictor.Predictor`; the public methods over
it are those of every model. Neither numba nor scikit-learn is imported, and SciPy only
where the answer is one of its matrices.
"""

from __future__ import annotations

import bisect
import math
import operator
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.files import ModelFileError, arrays_in, unpack_strings
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR, Rows, checked_rows, n_rows_of, sample
from thinleaf.labeltree import texts as label_tree_texts
from thinleaf.model.file_parts import Section, unpack_labels
from thinleaf.model.predictor import Predictions, Predictor
from thinleaf.text.inputs import checked_sample, is_rows, text_list
from thinleaf.text.kernels.sureness_table import ARRAYS, LEAST, TINY
from thinleaf.text.known_terms import Evidence, all_known
from thinleaf.text.rejecting import RejectingPredictions, check_precision
from thinleaf.text.rejection import SECTION as REJECTION
from thinleaf.text.rejection import Rejection, stored_rejection

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.native.model import NativeModel

CLASS, TOPK, ALL, HELD, ONE, EVIDENCE = range(6)
"""What the extension can be asked for many samples."""

_BAD_LEAF, _NO_SCRATCH, _BAD_FEATURE = -5, -9, -11
_MIN_CHUNK = 256
_LABEL_TREE = 1


class Given(NamedTuple):
    """Samples as the extension takes them: a tuple of texts; a matrix; or a CSR triple."""

    a: Any
    b: Any
    c: Any
    n: int


class NativePredictor(Predictor):
    """Answers with the compiled header.

    Parameters
    ----------
    model : NativeModel
    labels : ndarray of shape (n_classes,)
    """

    def __init__(self, model: NativeModel, labels: AnyArray) -> None:
        self._model, self.labels, self.label_list = model, labels, labels.tolist()
        self.n_features = model.n_features
        self._is_label_tree, self._takes_texts = model._kind == _LABEL_TREE, model.takes_texts

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return int(self._model._whole.nbytes)

    # -- one sample --------------------------------------------------------------------------------

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the class of one sample."""
        return int(self.top_class(self.rows_of_one(x, values))[0])

    def top_k_one(self, x: Any, values: Any, k: int) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of one sample."""
        ids, p = self.top_k(self.rows_of_one(x, values), k)
        return ids[0], p[0]

    def rows_of_one(self, x: Any, values: Any) -> Rows | list[str]:
        """Return one sample as rows, or a text in a list; indices may be in any order."""
        if (
            self._is_label_tree
            and self._takes_texts
            and (not isinstance(x, str) or values is not None)
        ):
            raise ValueError(f"a text must be a string, got {x!r}")
        if self._takes_texts and values is None and isinstance(x, str | Mapping):
            if not isinstance(x, str):
                raise ValueError(f"a sample must be a text, got {type(x).__name__}")
            return [x]
        if self._is_label_tree and isinstance(x, str):
            raise ValueError("a string is for models of texts; this one was fitted to rows")
        if self._takes_texts:
            x = checked_sample(x)
        x, values = sample(x, values, self.n_features)
        if values is None:
            if x.size != self.n_features:
                raise ValueError(
                    f"x has {x.size} features, but the model expects {self.n_features}"
                )
            dense: Rows = x[None]
            return dense
        if x.size != values.size:
            self._fail(_BAD_FEATURE)
        return CSR(np.array([0, x.size], dtype=INDEX), x, values, self.n_features)

    # -- batches -----------------------------------------------------------------------------------

    def top_class(self, rows: Any, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        given = self._given(rows)
        ids = np.empty(given.n, dtype=INDEX)
        self._run(CLASS, 0, given, n_jobs, ids, None)
        return ids

    def top_k(self, rows: Any, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of each row, best first, and their probabilities."""
        given = self._given(rows)
        ids, p = np.empty((given.n, k), dtype=INDEX), np.empty((given.n, k), dtype=ACCUM)
        self._run(TOPK, k, given, n_jobs, ids, p)
        return ids, p

    def probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        given = self._given(rows)
        P = np.empty((given.n, self.labels.size), dtype=ACCUM)
        self._run(ALL, 0, given, n_jobs, None, P)
        return P

    def probability_of(
        self, rows: Any, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row."""
        if self._is_label_tree:
            own: AccumArray = self._model._whole._predictor.probability_of(
                rows, ids, smooth, n_jobs
            )
            return own
        given = self._given(rows)
        out = np.empty(given.n, dtype=ACCUM)
        self._run(ONE, int(smooth), given, n_jobs, np.ascontiguousarray(ids, dtype=INDEX), out)
        return out

    def log_probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the logarithm of :meth:`probabilities`."""
        if self._is_label_tree:  # without underflow
            python: Predictor = self._model._whole._predictor
            return python.log_probabilities(rows, n_jobs)
        return super().log_probabilities(rows, n_jobs)

    def sparse_probabilities(self, rows: Any, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the classes that the rows' leaves hold."""
        import scipy.sparse as sp

        if self._is_label_tree:
            return super().sparse_probabilities(rows, n_jobs)
        given = self._given(rows)
        parts = self._run(HELD, 0, given, n_jobs, None, None)
        sizes, ids, p = (
            np.concatenate([np.frombuffer(part[at], dtype) for part in parts])
            for at, dtype in ((1, OFFSET), (2, INDEX), (3, ACCUM))
        )
        P = sp.csr_array((p, ids, offsets(sizes)), shape=(given.n, self.labels.size))
        P.sort_indices()
        return P

    def evidence(self, texts: list[str]) -> Evidence:
        """Return how many terms of each text are known, and how many it has."""
        if self._model._hashing:
            return all_known(texts)
        given = self._given(texts)
        known = np.empty((given.n, 2), dtype=ACCUM)
        self._run(EVIDENCE, 0, given, 1, None, known)
        n_known, n_terms = np.ascontiguousarray(known.T)
        return Evidence(n_known, n_terms)

    def found_in(self, text: str) -> tuple[int, float, float, float, float]:
        """Return what speaks for the label of a text.

        Its class; the class's probability, and that within the leaves; how many terms are known,
        and how many there are.
        """
        given = Given(_as_utf8([text]), None, None, 1)
        ids, p, known = np.empty(1, INDEX), np.empty(2, ACCUM), np.empty((1, 2), ACCUM)
        self._run(TOPK, 1, given, 1, ids[:, None], p[:1, None])
        self._run(ONE, 0, given, 1, ids, p[1:])
        self._run(EVIDENCE, 0, given, 1, None, known)
        return (int(ids[0]), *p.tolist(), *known[0].tolist())

    # -- small steps -------------------------------------------------------------------------------

    def _given(self, rows: Any) -> Given:
        if isinstance(rows, list):
            return Given(_as_utf8(rows), None, None, len(rows))
        if isinstance(rows, CSR):
            if rows.n_features != self.n_features:
                self._wrong_width(rows.n_features)
            return Given(rows.indptr, rows.indices, rows.data, n_rows_of(rows))
        if rows.shape[1] != self.n_features:
            self._wrong_width(rows.shape[1])
        return Given(np.ascontiguousarray(rows), None, None, len(rows))

    def _run(
        self, what: int, k: int, given: Given, n_jobs: int, ids: AnyArray | None, p: AnyArray | None
    ) -> list[Any]:
        """Ask for all samples, in pieces on several threads if asked for."""
        n_threads = (os.cpu_count() or 1) if n_jobs < 0 else max(n_jobs, 1)
        n_threads = min(n_threads, max(given.n // _MIN_CHUNK, 1))

        def piece(begin: int, end: int) -> Any:
            own = [None if array is None else array[begin:end] for array in (ids, p)]
            return self._model._run(what, k, given.a, given.b, given.c, begin, end, *own)

        if n_threads == 1:
            parts = [piece(0, given.n)]
        else:
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            cuts = np.linspace(0, given.n, 4 * n_threads + 1).astype(int).tolist()
            with ThreadPoolExecutor(n_threads) as pool:
                parts = list(pool.map(piece, cuts[:-1], cuts[1:]))
        status = min(part[0] for part in parts)
        if status < 0:
            self._fail(status)
        return parts

    def _wrong_width(self, n: int) -> NoReturn:
        raise ValueError(f"X has {n} features, but the model expects {self.n_features}")

    def _fail(self, status: int) -> NoReturn:
        """Raise the error that a status of the header stands for."""
        if status == _BAD_FEATURE:
            raise ValueError(
                f"indices must lie in 0..{self.n_features - 1}, and there must be as many values"
            )
        if status == _BAD_LEAF:
            raise ModelFileError(
                "the model file is damaged: a leaf holds ids or weights out of range"
            )
        if status == _NO_SCRATCH:
            raise MemoryError("there is not enough memory for an input of this size")
        raise ValueError(f"the input cannot be read (status {status})")


def _as_utf8(texts: list[str]) -> tuple[Any, ...]:
    """Return texts as the extension reads them; half of a surrogate pair takes three bytes."""
    try:
        for text in texts:
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError:
        return tuple(text.encode("utf-8", "surrogatepass") for text in texts)
    return tuple(texts)


# -- what users ask --------------------------------------------------------------------------------


class NativePredictions(Predictions):
    """The public prediction methods, over the compiled header."""

    def __init__(self, model: NativeModel) -> None:
        self._model = model
        arrays, about = arrays_in(model._content, model._path)
        self._is_label_tree = model._kind == _LABEL_TREE
        fitted = about["fitted"] if self._is_label_tree else about
        labels = unpack_labels(arrays, fitted["labels"], model.n_classes)
        named = fitted["feature_names"] and "features.ptr" in arrays
        self._feature_names = unpack_strings(arrays, "features") if named else None
        self._native = NativePredictor(model, labels)
        self._sections: dict[str, Section] = {}
        if REJECTION in about["sections"]:
            own = {n: arrays[f"{REJECTION}.{n}"] for n in ARRAYS if f"{REJECTION}.{n}" in arrays}
            self._sections[REJECTION] = Section(own, about["sections"][REJECTION])

    @property
    def _predictor(self) -> NativePredictor:
        return self._native

    @property
    def labels(self) -> AnyArray:
        """The class labels, of shape (n_classes,)."""
        view = self._native.labels.view()
        view.flags.writeable = False
        return view

    def _rows(self, X: Any) -> Any:
        if self._is_label_tree and self._model.takes_texts:
            texts = label_tree_texts.text_list(X)
            for text in texts:
                if not isinstance(text, str):
                    raise ValueError(f"texts must be strings, got {text!r}")
            return texts
        if self._model.takes_texts and not is_rows(X):
            return text_list(X)
        return checked_rows(X, self._feature_names, self._native.n_features)


class NativeLabelTreePredictions(NativePredictions):
    """The same of a label tree; when not to answer is known in Python alone."""

    def predict(self, X: Any, *, n_jobs: int | None = None, **rejecting: Any) -> AnyArray:
        """Return the label of each row or text."""
        if rejecting:
            labels: AnyArray = self._model._whole.predict(X, n_jobs=n_jobs, **rejecting)
            return labels
        return super().predict(X, n_jobs=n_jobs)

    def predict_one(self, x: Any, values: Any = None, **rejecting: Any) -> Any:
        """Return the label of one row or text."""
        if rejecting:
            return self._model._whole.predict_one(x, values, **rejecting)
        return super().predict_one(x, values)


class _Texts:
    """Texts as they are, and what is known of them."""

    def __init__(self, predictor: NativePredictor) -> None:
        self._predictor = predictor

    def rows(self, X: Any, n_jobs: int = 1) -> list[str]:
        return text_list(X)

    def evidence(self, X: Any) -> Evidence:
        return self._predictor.evidence(text_list(X))


class _Rejection(Rejection):
    """A rejection whose tables NumPy looks up."""

    def _judged(self, S: AccumArray) -> tuple[AccumArray, AccumArray]:
        score = S @ self.weights[:-1] + self.weights[-1]
        found = (
            np.interp(score, self.scores, table) for table in (self.probability, self.precision)
        )
        probability, precision = found
        return probability, precision

    @cached_property
    def _lists(self) -> tuple[list[float], ...]:
        arrays = (self.weights, self.scores, self.probability, self.precision)
        return tuple(array.tolist() for array in arrays)

    def judged_one(self, signs: Sequence[float]) -> tuple[float, float]:
        """Return probability and precision of one text, as kernels do."""
        weights, scores, *tables = self._lists
        score = sum(map(operator.mul, signs, weights)) + weights[-1]
        at = bisect.bisect_right(scores, score)  # scores[at - 1] <= score < scores[at]
        if at in (0, len(scores)):
            end = min(at, len(scores) - 1)
            return tables[0][end], tables[1][end]
        part = (score - scores[at - 1]) / (scores[at] - scores[at - 1])
        low, high = ([table[i] for table in tables] for i in (at - 1, at))
        probability, precision = (a + (b - a) * part for a, b in zip(low, high, strict=True))
        return probability, precision


class NativeTextPredictions(RejectingPredictions, NativePredictions):
    """The same of a softmax tree that takes texts, and may say that it does not know."""

    @cached_property
    def rejection(self) -> Rejection | None:
        """When not to answer, or None if the file does not say."""
        found = stored_rejection(self._sections)
        return None if found is None else _Rejection(**vars(found))

    @property
    def _found_rejection(self) -> Rejection | None:
        return self.rejection

    @property
    def _text_input(self) -> Any:
        return _Texts(self._native)

    def _label_or_none(self, x: Any, reject: float) -> Any:
        """Return the label of one sample, or None if it is rejected; of a text, in microseconds."""
        rejection = self.rejection
        if not isinstance(x, str) or self._model._hashing or rejection is None:
            return super()._label_or_none(x, reject)
        check_precision(reject)
        assert isinstance(rejection, _Rejection)
        label, top, alone, n_known, n_terms = self._native.found_in(x)
        outside = 1.0 - top / max(alone, TINY) if alone > 0.0 else 1.0
        p = min(max(top, LEAST), 1.0 - LEAST)
        signs = (
            math.log(p / (1.0 - p)),
            math.log(min(max(outside, LEAST), 1.0)),
            (n_terms - n_known) / max(n_terms, 1.0),
            math.log1p(n_terms - n_known),
            1.0 / (1.0 + n_known),
        )
        answered = rejection.answers_one(*rejection.judged_one(signs), int(n_known), reject)
        return self._native.label_list[label] if answered else None

    def _signs(self, rows: Any, known: Evidence, n_jobs: int | None) -> AccumArray:
        """Return what :func:`thinleaf.text.rejection.signs` does, without kernels."""
        threads = self._threads(n_jobs)
        ids, top = self._native.top_k(rows, 1, threads)
        alone = self._native.probability_of(rows, ids[:, 0], False, threads)
        inside = np.where(alone > 0.0, 1.0 - top[:, 0] / np.maximum(alone, TINY), 1.0)
        p, n_unknown = np.clip(top[:, 0], LEAST, 1.0 - LEAST), known.n_terms - known.n_known
        return np.column_stack(
            [
                np.log(p / (1.0 - p)),
                np.log(np.clip(inside, LEAST, 1.0)),
                n_unknown / np.maximum(known.n_terms, 1.0),
                np.log1p(n_unknown),
                1.0 / (1.0 + known.n_known),
            ]
        )


def predictions_of(model: NativeModel) -> NativePredictions:
    """Return what answers for more than one sample."""
    if model._kind == _LABEL_TREE:
        return NativeLabelTreePredictions(model)
    return NativeTextPredictions(model) if model.takes_texts else NativePredictions(model)

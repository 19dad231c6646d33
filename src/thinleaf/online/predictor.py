"""The predictor of online models as they are now, while they go on learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import Rows, as_matrix, as_rows, n_rows_of, one_row
from thinleaf.kernels.hashing import hashed
from thinleaf.model.predictor import Predictor
from thinleaf.online.growable import OnlineModel, flattened
from thinleaf.online.shortlist import Shortlists, spread

if TYPE_CHECKING:
    from thinleaf.online.stream_labels import Arrivals

_ANY_WIDTH = np.iinfo(INDEX).max


def model_rows(X: Any, *, dense: bool, hash_bits: int | None) -> Rows:
    """Return a matrix as a model takes it: dense or sparse, features hashed if it has bits."""
    if hash_bits is not None:
        return hashed(as_rows(sp.csr_matrix(X)), hash_bits)
    if dense and sp.issparse(X):
        return as_rows(cast("sp.csr_matrix", X).toarray())
    if not dense and not sp.issparse(X):
        return as_rows(sp.csr_matrix(X))
    return as_rows(X)


class OnlinePredictor(Predictor):
    """Answers with a model; rows are those of :func:`model_rows`.

    The candidates of a row share a softmax of their scores; other classes get what the node has
    seen of labels that were no candidates, in proportion to their frequency.

    Parameters
    ----------
    model : OnlineModel
    arrivals : Arrivals
        Labels; class ids of the model are in the order of their arrival, here they are in
        ascending order.
    counts : ndarray of shape (n_classes,)
        Weight of the examples of each class, in the order of arrival.
    n_features : int
    dense : bool
    hash_bits : int or None
    """

    def __init__(
        self,
        model: OnlineModel,
        arrivals: Arrivals,
        counts: AccumArray,
        n_features: int,
        *,
        dense: bool,
        hash_bits: int | None,
    ) -> None:
        self._model, self._counts = model, counts
        self.labels, self.label_list = arrivals.classes, arrivals.label_list
        self._columns, self._rank = arrivals.columns, arrivals.ranks
        self.n_features, self._dense, self._hash_bits = n_features, dense, hash_bits

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the model."""
        arrays = flattened(self._model.trimmed(self._counts.size))
        return sum(array.nbytes for array in arrays.values())

    def rows_of_one(self, x: Any, values: Any) -> Rows:
        """Return one sample as rows of the model."""
        width = self.n_features
        if self._hash_bits is not None:  # any features do
            width = _ANY_WIDTH if values is not None else np.shape(x)[-1]
        matrix = as_matrix(one_row(x, values, width))
        return model_rows(matrix, dense=self._dense, hash_bits=self._hash_bits)

    def top_class(self, rows: Rows, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        return self._rank[self._model.predict(rows)]

    def probabilities(self, rows: Rows, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        P = np.empty((n_rows_of(rows), self._counts.size), dtype=ACCUM)
        for part in self._shortlists(rows):
            P[part.rows] = part.outside
            P[np.ix_(part.rows, part.candidates)] = part.inside
        out: AccumArray = P[:, self._columns]
        return out

    def sparse_probabilities(self, rows: Rows, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the candidates of each row."""
        n_rows = n_rows_of(rows)
        parts = list(self._shortlists(rows))
        sizes = np.zeros(n_rows, dtype=INDEX)
        for part in parts:
            sizes[part.rows] = part.candidates.size
        ptr = offsets(sizes)
        ids, p = np.empty(ptr[-1], dtype=INDEX), np.empty(ptr[-1], dtype=ACCUM)
        for part in parts:
            at = ptr[part.rows][:, None] + np.arange(part.candidates.size)
            ids[at], p[at] = self._rank[part.candidates], part.inside
        P = sp.csr_array((p, ids, ptr), shape=(n_rows, self._counts.size))
        P.sort_indices()
        return P

    def top_k(self, rows: Rows, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of each row, best first, and their probabilities."""
        top = np.empty((n_rows_of(rows), k), dtype=INDEX)
        top_p = np.empty(top.shape, dtype=ACCUM)
        for part in self._shortlists(rows):
            others = part.best_others(k)
            ids = np.concatenate([part.candidates, others])
            p = np.empty((part.rows.size, ids.size), dtype=ACCUM)
            p[:, : part.candidates.size] = part.inside
            p[:, part.candidates.size :] = part.outside[others]
            best = np.argsort(-p, axis=1, kind="stable")[:, :k]
            top[part.rows] = ids[best]
            top_p[part.rows] = np.take_along_axis(p, best, axis=1)
        return self._rank[top], top_p

    def probability_of(
        self, rows: Rows, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row."""
        arrived: AnyArray = self._columns[ids]
        p = np.empty(ids.size, dtype=ACCUM)
        for part in self._shortlists(rows):
            own = arrived[part.rows]
            slot = np.argmax(part.candidates == own[:, None], axis=1)
            held = part.candidates[slot] == own
            inside = part.inside[np.arange(own.size), slot]
            if smooth:
                p[part.rows] = np.where(held, inside, part.outside[own])
            else:
                p[part.rows] = np.where(held, inside / part.inside.sum(axis=1), 0.0)
        return p

    def _shortlists(self, rows: Rows) -> Iterator[Shortlists]:
        return spread(self._model, *self._model.shortlists(rows), self._counts)

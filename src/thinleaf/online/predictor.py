"""The predictor of online models as they are now, while they go on learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import CSR, Rows, as_matrix, as_rows, n_rows_of, one_row, pairs
from thinleaf.kernels.hashing import hashed
from thinleaf.model.predictor import Predictor
from thinleaf.online.growable import OnlineModel, flattened
from thinleaf.online.shortlist import Shortlists, spread

if TYPE_CHECKING:
    from thinleaf.online.recall_model import RecallTreeModel
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


def model_row(x: Any, values: Any, n_features: int, *, dense: bool, hash_bits: int | None) -> Rows:
    """Return one sample as a model takes it, without a matrix in between where none is needed.

    Raises
    ------
    ValueError
        If the sample does not fit, or is not finite.
    """
    if hash_bits is not None:  # any features do
        width = _ANY_WIDTH if values is not None else np.shape(x)[-1]
        matrix = as_matrix(one_row(x, values, width))
        rows = model_rows(matrix, dense=dense, hash_bits=hash_bits)
    elif dense or values is None:
        matrix = as_matrix(one_row(x, values, n_features))
        rows = (
            matrix
            if dense and values is None and not sp.issparse(matrix)
            else model_rows(matrix, dense=dense, hash_bits=None)
        )
    else:
        indices, entries = pairs(x, values)
        ascends = bool((indices[1:] > indices[:-1]).all())
        fits = indices.size == 0 or (indices[0] >= 0 and indices[-1] < n_features)
        if not ascends or not fits or indices.size != entries.size:
            rows = one_row(x, values, n_features)  # which sorts, or says what is wrong
        else:
            rows = CSR(np.array([0, indices.size], dtype=INDEX), indices, entries, n_features)
    data = rows.data if isinstance(rows, CSR) else rows
    if not np.isfinite(data).all():
        raise ValueError("a sample must be finite: it has NaN or infinity")
    return rows


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
    beam : int
        Paths of a row: more than one for Recall Trees only.
    temperature : float
        What the outputs of routers are divided by in a beam.
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
        beam: int = 1,
        temperature: float = 1.0,
    ) -> None:
        self._model, self._counts = model, counts
        self.labels, self.label_list = arrivals.classes, arrivals.label_list
        self._columns, self._rank = arrivals.columns, arrivals.ranks
        self.n_features, self._dense, self._hash_bits = n_features, dense, hash_bits
        self.beam, self.temperature = beam, temperature

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of the model."""
        arrays = flattened(self._model.trimmed(self._counts.size))
        return sum(array.nbytes for array in arrays.values())

    def rows_of_one(self, x: Any, values: Any) -> Rows:
        """Return one sample as rows of the model."""
        return model_row(x, values, self.n_features, dense=self._dense, hash_bits=self._hash_bits)

    def top_class(self, rows: Rows, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        if self.beam > 1:
            return self._rank[self._beams.predict_mixed(rows, *self._mixing)]
        return self._rank[self._model.predict(rows)]

    def probabilities(self, rows: Rows, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        P = np.empty((n_rows_of(rows), self._counts.size), dtype=ACCUM)
        if self.beam > 1:
            for first, mixed in self._beams.mixtures(rows, *self._mixing):
                P[first : first + mixed.n.size] = mixed.rest[:, None] * self._share
                at, slot = _entries(mixed.n)
                P[first + at, mixed.ids[at, slot]] = mixed.p[at, slot]
            ordered: AccumArray = P[:, self._columns]
            return ordered
        for part in self._shortlists(rows):
            P[part.rows] = part.outside
            P[np.ix_(part.rows, part.candidates)] = part.inside
        out: AccumArray = P[:, self._columns]
        return out

    def sparse_probabilities(self, rows: Rows, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the candidates of each row."""
        n_rows = n_rows_of(rows)
        if self.beam > 1:
            return self._sparse_mixtures(rows)
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
        if self.beam > 1:
            self._best_mixed(rows, top, top_p)
            return self._rank[top], top_p
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
        if self.beam > 1:
            for first, mixed in self._beams.mixtures(rows, *self._mixing, smooth=smooth):
                own = arrived[first : first + mixed.n.size]
                valid = np.arange(mixed.ids.shape[1]) < mixed.n[:, None]
                found = valid & (mixed.ids == own[:, None])
                held, inside = found.any(axis=1), (mixed.p * found).sum(axis=1)
                others = mixed.rest * self._share[own]
                p[first : first + own.size] = np.where(held, inside, others)
            return p
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

    # -- several paths -----------------------------------------------------------------------------

    @property
    def _beams(self) -> RecallTreeModel:
        return cast("RecallTreeModel", self._model)

    @property
    def _mixing(self) -> tuple[AccumArray, int, float]:
        return self._counts, self.beam, self.temperature

    @property
    def _share(self) -> AccumArray:
        share: AccumArray = (self._counts + 1.0) / (self._counts + 1.0).sum()
        return share

    def _sparse_mixtures(self, rows: Rows) -> sp.csr_array:
        sizes = np.zeros(n_rows_of(rows), dtype=INDEX)
        ids, p = [np.empty(0, dtype=INDEX)], [np.empty(0, dtype=ACCUM)]
        for first, part in self._beams.mixtures(rows, *self._mixing):
            at = _entries(part.n)
            sizes[first : first + part.n.size] = part.n
            ids.append(self._rank[part.ids[at]])
            p.append(part.p[at])
        entries = np.concatenate(p), np.concatenate(ids), offsets(sizes)
        P = sp.csr_array(entries, shape=(sizes.size, self._counts.size))
        P.sort_indices()
        return P

    def _best_mixed(self, rows: Rows, top: IndexArray, top_p: AccumArray) -> None:
        k, share = top.shape[1], self._share
        frequent = np.argsort(-share, kind="stable")
        for first, part in self._beams.mixtures(rows, *self._mixing):
            for i, n in enumerate(part.n.tolist()):
                own = part.ids[i, :n]
                others = frequent[: n + k]
                others = others[~np.isin(others, own)][:k]
                ids = np.concatenate([own, others])
                p = np.concatenate([part.p[i, :n], part.rest[i] * share[others]])
                best = np.argsort(-p, kind="stable")[:k]
                top[first + i], top_p[first + i] = ids[best], p[best]

    def _shortlists(self, rows: Rows) -> Iterator[Shortlists]:
        return spread(self._model, *self._model.shortlists(rows), self._counts)


def _entries(counts: IndexArray) -> tuple[AnyArray, AnyArray]:
    """Return row and slot of all entries, if rows have so many."""
    rows = np.repeat(np.arange(counts.size), counts)
    starts = np.repeat(offsets(counts)[:-1], counts)
    return rows, np.arange(rows.size) - starts

"""Errors and latencies of deployed models on the same rows: a model and its beams and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import INDEX, IndexArray
from thinleaf.measuring.latency import N_SINGLE, batch_latency, prepared_rows, single_latency
from thinleaf.model.frozen import FrozenTree

_MAX_DENSE = 1 << 27


class Measurement:
    """What is measured of each model.

    Parameters
    ----------
    X : {ndarray, csr_matrix} of shape (n_rows, n_features)
        As from :func:`rows_for`.
    ids : ndarray of shape (n_rows,)
        The rows' classes; -1 is one that the models do not know.
    repeats : int
        Times that the batch is predicted.
    jobs : int
        Threads that predict it.
    """

    def __init__(self, X: Any, ids: IndexArray, repeats: int, jobs: int) -> None:
        self._X, self._ids, self._repeats, self._jobs = X, ids, repeats, jobs
        self._single = prepared_rows(X, min(N_SINGLE, ids.size))

    def error(self, model: FrozenTree) -> float:
        """Return the share of rows whose label is not found."""
        found = model.predict(self._X) == model.labels[self._ids]
        return float(1.0 - np.mean(found & (self._ids >= 0)))

    def __call__(self, model: FrozenTree) -> dict[str, Any]:
        """Return error and latencies: microseconds a call of one row, and a row of the batch."""
        batch = partial(model.predict, self._X, n_jobs=self._jobs)
        return {
            "error": self.error(model),
            "single_us": asdict(single_latency(model.predict_one, self._single)),
            "batch_us": asdict(batch_latency(batch, self._ids.size, self._repeats, math.inf)),
        }


def rows_for(model: FrozenTree, parts: Sequence[sp.csr_matrix]) -> Any:
    """Return sparse rows as whoever predicts with a model has them: dense, if it is laid out so."""
    X = sp.csr_matrix(sp.vstack(parts, format="csr"))
    if not model.packed.sparse and X.shape[0] * X.shape[1] <= _MAX_DENSE:
        return X.toarray()
    X.indices, X.indptr = X.indices.astype(INDEX), X.indptr.astype(INDEX)
    return X

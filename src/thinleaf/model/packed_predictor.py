"""The predictor of packed trees: which kernel answers what, in how many threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy import ndarray  # looked up once: a prediction takes a microsecond

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
)
from thinleaf.arrays.files import ModelFileError
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import Rows, as_writable, dense_row, n_features_of, n_rows_of, sample
from thinleaf.model.kernels import prediction as kernels
from thinleaf.model.kernels.leaf_checks import leaf_is_valid
from thinleaf.model.kernels.packed import BAD_FEATURE, BAD_LEAF, WRONG_WIDTH
from thinleaf.model.packing import PackedTree
from thinleaf.model.predictor import Predictor

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.model.explanation.explainer import Explainer

_FLOAT32 = np.dtype(PARAM)
_STEP = (_FLOAT32.itemsize,)
_MIN_CHUNK = 256


class PackedPredictor(Predictor):
    """Answers with a packed tree or forest; single samples and batches agree to the bit.

    Parameters
    ----------
    packed : PackedTree
    labels : ndarray of shape (n_classes,)
    beam : int
    temperature : float
    checked : bool
        Whether the leaves' contents are known to be valid; else they are checked on first use.
    """

    def __init__(
        self, packed: PackedTree, labels: AnyArray, beam: int, temperature: float, *, checked: bool
    ) -> None:
        self.packed, self.labels, self.n_features = packed, labels, packed.n_features
        self.label_list = labels.tolist()
        self.checked = checked
        state = np.full(packed.n_leaves, checked, dtype=np.uint8)
        self._table, self._kept = packed.table(beam, temperature, state)
        self.beam, self.temperature = int(beam), float(temperature)
        # code of beams and forests is compiled only where it is needed
        several = beam > 1 or packed.n_trees > 1
        self._several = True if several else None
        self._of_row, self._of_pairs = kernels.single_row_kernels(several, packed.sparse)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return self.packed.nbytes

    @property
    def table(self) -> OffsetArray:
        """The table of addresses that kernels take; alive as long as the predictor."""
        return self._table

    @property
    def several_paths(self) -> bool:
        """Whether a row takes several paths: a beam, or a forest."""
        return self._several is not None

    @cached_property
    def explainer(self) -> Explainer:
        """What explains its answers."""
        from thinleaf.model.explanation.packed_trees import PackedExplainer

        return PackedExplainer(self)

    # -- one sample --------------------------------------------------------------------------------

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the class of one sample."""
        if values is not None or type(x) is not ndarray or x.dtype is not _FLOAT32:
            x, values = sample(x, values, self.n_features)
        elif x.strides != _STEP:
            x = dense_row(x)
        if values is None:
            class_id: int = self._of_row(self._table, x)
        else:
            class_id = self._of_pairs(self._table, x, values)
        if class_id < 0:
            self.fail(class_id, x)
        return class_id

    def top_k_one(self, x: Any, values: Any, k: int) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of one sample."""
        ids, p = np.empty(k, dtype=INDEX), np.empty(k, dtype=ACCUM)
        x, values = sample(x, values, self.n_features)
        if values is None:
            status = kernels.top_k(self._table, x, ids, p)
        else:
            status = kernels.top_k_of_pairs(self._table, x, values, ids, p)
        if status < 0:
            self.fail(status, x)
        return ids, p

    # -- batches -----------------------------------------------------------------------------------

    def top_class(self, rows: Rows, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        out = np.empty(n_rows_of(rows), dtype=INDEX)
        self._run(kernels.top_class_of_rows, rows, n_jobs, self._several, out)
        return out

    def top_k(self, rows: Rows, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of each row, best first, and their probabilities."""
        ids = np.empty((n_rows_of(rows), k), dtype=INDEX)
        p = np.empty(ids.shape, dtype=ACCUM)
        self._run(kernels.top_k_of_rows, rows, n_jobs, ids, p)
        return ids, p

    def probabilities(self, rows: Rows, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        P = np.empty((n_rows_of(rows), self.labels.size), dtype=ACCUM)
        self._run(kernels.probabilities_of_rows, rows, n_jobs, P)
        return P

    def sparse_probabilities(self, rows: Rows, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the classes that the rows' leaves hold."""
        import scipy.sparse as sp

        sizes = np.empty(n_rows_of(rows), dtype=OFFSET)
        self._run(kernels.count_classes_of_rows, rows, n_jobs, sizes)
        ptr = offsets(sizes)
        ids, p = np.empty(ptr[-1], dtype=INDEX), np.empty(ptr[-1], dtype=ACCUM)
        self._run(kernels.held_classes_of_rows, rows, n_jobs, ptr, ids, p)
        P = sp.csr_array((p, ids, ptr), shape=(sizes.size, self.labels.size))
        P.sort_indices()
        return P

    def probability_of(
        self, rows: Rows, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row."""
        out = np.empty(ids.size, dtype=ACCUM)
        self._run(kernels.label_probability_of_rows, rows, n_jobs, ids, smooth, out)
        return out

    def leaves(self, rows: Rows, n_jobs: int = 1) -> IndexArray:
        """Return the leaf node of each row in each tree, of shape (n_rows, n_trees)."""
        out = np.empty((n_rows_of(rows), self.packed.n_trees), dtype=INDEX)
        self._run(kernels.leaf_of_rows, rows, n_jobs, out)
        return np.flatnonzero(self.packed.child < 0).astype(INDEX)[out]

    def check(self) -> None:
        """Raise :class:`ModelFileError` if the content of a leaf is out of range."""
        if not self.checked:
            for leaf in range(self.packed.n_leaves):
                if not leaf_is_valid(self._table, leaf):
                    self.fail(BAD_LEAF, None)

    # -- small steps -------------------------------------------------------------------------------

    def _run(self, kernel: Callable[..., int], rows: Rows, n_jobs: int, *arguments: Any) -> None:
        """Call a kernel on all rows, in pieces on several threads if asked for."""
        if n_features_of(rows) != self.n_features:  # kernels follow indices wherever they lead
            raise ValueError(
                f"X has {n_features_of(rows)} features, but the model expects {self.n_features}"
            )
        rows, n_rows = as_writable(rows), n_rows_of(rows)
        n_threads = (os.cpu_count() or 1) if n_jobs < 0 else max(n_jobs, 1)
        n_threads = min(n_threads, max(n_rows // _MIN_CHUNK, 1))
        if n_threads == 1:
            status = kernel(self._table, rows, 0, n_rows, *arguments)
        else:
            # several pieces a thread: some rows cost more than others
            cuts = np.linspace(0, n_rows, 4 * n_threads + 1).astype(int).tolist()
            with ThreadPoolExecutor(n_threads) as pool:
                pieces = pool.map(
                    lambda begin, end: kernel(self._table, rows, begin, end, *arguments),
                    cuts[:-1],
                    cuts[1:],
                )
                status = min(pieces)
        if status < 0:
            self.fail(status, rows)

    def fail(self, status: int, x: Any) -> NoReturn:
        """Raise the error that the status of a kernel stands for."""
        if status == WRONG_WIDTH:
            raise ValueError(f"x has {x.size} features, but the model expects {self.n_features}")
        if status == BAD_FEATURE:
            raise ValueError(
                f"indices must lie in 0..{self.n_features - 1}, and there must be as many values"
            )
        raise ModelFileError("the model file is damaged: a leaf holds ids or weights out of range")

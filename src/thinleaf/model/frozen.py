"""The form of a model that is deployed: immutable, packed, fast, and free of training.

``estimator.freeze()`` or :func:`load` give a :class:`FrozenTree`, which may be a forest. It knows
labels and feature names, but neither scikit-learn nor how it was trained. The kernels are in
:mod:`thinleaf.model.kernels.prediction`, the layout in :mod:`thinleaf.model.packing`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import check_top_k, ids_of_rows
from thinleaf.arrays.files import (
    ModelFileError,
    pack_strings,
    read_arrays,
    typed,
    unpack_strings,
    write_arrays,
)
from thinleaf.arrays.rows import CSR, Rows, as_rows, as_writable, dense_row, n_rows_of, pairs
from thinleaf.model.file_parts import (
    LABEL_TREE_FORMAT,
    Section,
    label_arrays,
    pack_labels,
    section_arrays,
    unpack_labels,
    unpack_sections,
)
from thinleaf.model.forest import first_trees
from thinleaf.model.kernels import prediction as kernels
from thinleaf.model.kernels.packed import BAD_FEATURE, BAD_LEAF, WRONG_WIDTH, leaf_is_valid
from thinleaf.model.packing import PackedTree, WeightType, array_dtypes
from thinleaf.model.quantization import quantize
from thinleaf.model.tree import TreeError

if TYPE_CHECKING:
    import scipy.sparse as sp

FORMAT = "thinleaf model"
VERSION = 3
"""Of files with a temperature. Those of forests are 2, other ones 1, which say neither."""

TEMPERATURES = tuple(2.0 ** (i / 2) for i in sorted(range(-2, 9), key=abs))
"""What :meth:`FrozenTree.calibrated` tries: 1, then others from 1/2 to 16."""
_LEAST = 1e-300

_FLOAT32 = np.dtype(PARAM)
_STEP = (_FLOAT32.itemsize,)
_MIN_CHUNK = 256


class FrozenTree:
    """A tree that predicts, and does nothing else; or several, whose probabilities are averaged.

    Made by ``estimator.freeze()`` or :func:`load`. Single samples and batches agree.

    Parameters
    ----------
    packed : PackedTree
    labels : array-like of shape (n_classes,)
        Integers, floats, booleans or strings, without duplicates.
    feature_names : list of str, optional
    beam : int
        In each tree, follow this many of the most probable paths and mix their leaves. 1, one path,
        is the fastest; 2 to 8 have fewer errors.
    temperature : float
        What the scores of routers are divided by in a beam; above 1, paths are more alike.
        :meth:`calibrated` finds one. A single path does not depend on it.
    summary : mapping, optional
        Anything that JSON can hold about the training.
    sections : mapping of str to Section, optional
        What else the model file carries, such as the recipe that makes rows of text.
    checked : bool
        Whether the leaves' contents are known to be valid; else they are checked on first use.

    Examples
    --------
    >>> import numpy as np
    >>> from thinleaf import SoftmaxTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 4)).astype("float32")
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = SoftmaxTreeClassifier(depth=1, random_state=0).fit(X, y).freeze()
    >>> model.predict_one(np.array([2, 0, 0, 0], dtype="float32"))
    'right'
    """

    def __init__(
        self,
        packed: PackedTree,
        labels: npt.ArrayLike,
        *,
        feature_names: list[str] | None = None,
        beam: int = 1,
        temperature: float = 1.0,
        summary: Mapping[str, Any] | None = None,
        sections: Mapping[str, Section] | None = None,
        checked: bool = True,
    ) -> None:
        self._packed = replace(packed)  # also of an unpickled one, arrays are read-only
        self._labels = np.array(labels)
        if self._labels.shape != (packed.n_classes,):
            raise ValueError(
                f"labels must have shape ({packed.n_classes},), got {self._labels.shape}"
            )
        if feature_names is not None and len(feature_names) != packed.n_features:
            raise ValueError(
                f"there are {packed.n_features} features, but {len(feature_names)} feature_names"
            )
        self._label_list = self._labels.tolist()
        self._feature_names = None if feature_names is None else list(feature_names)
        self._beam = beam
        self._summary = copy.deepcopy(dict(summary or {}))
        self._sections = dict(sections or {})
        for name in self._sections:
            if not name or "." in name or name in _OWN:
                raise ValueError(f"a section cannot have the name {name!r}")
        self._checked = checked
        state = np.full(packed.n_leaves, checked, dtype=np.uint8)
        self._table, self._kept = self._packed.table(beam, temperature, state)
        self._temperature = float(temperature)
        several = beam > 1 or packed.n_trees > 1
        self._several = True if several else None
        self._of_row, self._of_pairs = kernels.single_row_kernels(several, packed.sparse)

    # -- looking at it -----------------------------------------------------------------------------

    @property
    def labels(self) -> AnyArray:
        """The class labels, of shape (n_classes,)."""
        view = self._labels.view()
        view.flags.writeable = False
        return view

    @property
    def packed(self) -> PackedTree:
        """The arrays, read-only."""
        return self._packed

    @property
    def beam(self) -> int:
        """How many paths a row takes in a tree."""
        return self._beam

    @property
    def temperature(self) -> float:
        """What the scores of routers are divided by in a beam."""
        return self._temperature

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self._packed.n_trees

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, a copy, or None."""
        return None if self._feature_names is None else list(self._feature_names)

    @property
    def summary(self) -> dict[str, Any]:
        """What is known of the training, a copy."""
        return copy.deepcopy(self._summary)

    @property
    def sections(self) -> dict[str, Section]:
        """What else the model file carries."""
        return dict(self._sections)

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self._packed.n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._packed.n_classes

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self._packed.n_leaves

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return self._packed.nbytes

    def __repr__(self) -> str:
        """Return the shape in one line."""
        layout = "sparse" if self._packed.sparse else "dense"
        trees = "" if self.n_trees == 1 else f"{self.n_trees} trees, "
        at = "" if self.temperature == 1.0 else f" at temperature {self.temperature:g}"
        return (
            f"FrozenTree({trees}{self.n_leaves} leaves, {self.n_classes} classes, "
            f"{self.n_features} features, {layout} rows, {self._packed.weights}, "
            f"beam {self.beam}{at}, {self.nbytes:,} bytes)"
        )

    # -- one sample --------------------------------------------------------------------------------

    def predict_one(self, x: Any, values: Any = None) -> Any:
        """Return the label of one sample, in about a microsecond.

        Nothing is checked but what memory safety needs: NaN gives some label. Fastest with
        contiguous arrays of float32 (and int32 indices); others are converted.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            A dense row; or, with ``values``, the indices of the nonzero features, in any order.
        values : ndarray of the shape of ``x``, optional

        Returns
        -------
        label : int, float, bool or str
        """
        if values is None:
            if type(x) is not np.ndarray or x.dtype is not _FLOAT32 or x.strides != _STEP:
                x = dense_row(x)
            class_id = self._of_row(self._table, x)
        else:
            x, values = pairs(x, values)
            class_id = self._of_pairs(self._table, x, values)
        if class_id < 0:
            self._fail(class_id, x)
        return self._label_list[class_id]

    def predict_topk_one(self, x: Any, k: int, values: Any = None) -> list[tuple[Any, float]]:
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
        check_top_k(k, self.n_classes)
        ids, p = np.empty(k, dtype=INDEX), np.empty(k, dtype=ACCUM)
        if values is None:
            x = dense_row(x)
            status = kernels.top_k(self._table, x, ids, p)
        else:
            x, values = pairs(x, values)
            status = kernels.top_k_of_pairs(self._table, x, values, ids, p)
        if status < 0:
            self._fail(status, x)
        return [(self._label_list[i], value) for i, value in zip(ids, p.tolist(), strict=True)]

    # -- batches -----------------------------------------------------------------------------------

    def predict(self, X: Any, *, n_jobs: int = 1) -> AnyArray:
        """Return the most probable label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        n_jobs : int
            Threads; -1 is all cores.

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        rows = self._rows(X)
        out = np.empty(n_rows_of(rows), dtype=INDEX)
        self._run(kernels.top_class_of_rows, rows, n_jobs, self._several, out)
        return self._labels[out]

    def predict_topk(self, X: Any, k: int = 5, *, n_jobs: int = 1) -> tuple[AnyArray, AccumArray]:
        """Return the ``k`` most probable labels of each row and their probabilities, best first.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        probabilities : ndarray of shape (n_rows, k)
        """
        rows = self._rows(X)
        check_top_k(k, self.n_classes)
        ids = np.empty((n_rows_of(rows), k), dtype=INDEX)
        p = np.empty(ids.shape, dtype=ACCUM)
        self._run(kernels.top_k_of_rows, rows, n_jobs, ids, p)
        return self._labels[ids], p

    def predict_proba(self, X: Any, *, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class, of shape (n_rows, n_classes); rows sum to one."""
        rows = self._rows(X)
        P = np.empty((n_rows_of(rows), self.n_classes), dtype=ACCUM)
        self._run(kernels.probabilities_of_rows, rows, n_jobs, P)
        return P

    def predict_proba_sparse(self, X: Any, *, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the classes that the rows' leaves hold.

        Returns
        -------
        P : scipy CSR array of shape (n_rows, n_classes)
            The entries are those of :meth:`predict_proba`; a row's sum falls short of one by what
            classes outside its leaves get.
        """
        import scipy.sparse as sp

        rows = self._rows(X)
        sizes = np.empty(n_rows_of(rows), dtype=OFFSET)
        self._run(kernels.count_classes_of_rows, rows, n_jobs, sizes)
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(OFFSET)
        ids, p = np.empty(ptr[-1], dtype=INDEX), np.empty(ptr[-1], dtype=ACCUM)
        self._run(kernels.held_classes_of_rows, rows, n_jobs, ptr, ids, p)
        P = sp.csr_array((p, ids, ptr), shape=(sizes.size, self.n_classes))
        P.sort_indices()
        return P

    def label_proba(
        self, X: Any, y: npt.ArrayLike, *, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one given label for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Known labels.
        smooth : bool
            False leaves classes outside a row's leaves at zero: what coverage and the papers'
            perplexity are computed from.
        n_jobs : int
        """
        rows = self._rows(X)
        order = np.argsort(self._labels, kind="stable")
        ids = order[ids_of_rows(self._labels[order], y, n_rows_of(rows))].astype(INDEX)
        out = np.empty(ids.size, dtype=ACCUM)
        self._run(kernels.label_probability_of_rows, rows, n_jobs, ids, smooth, out)
        return out

    def apply(self, X: Any, *, n_jobs: int = 1) -> IndexArray:
        """Return the node of the leaf that each row reaches; nodes are numbered breadth-first.

        Returns
        -------
        leaves : ndarray of shape (n_rows,), or (n_rows, n_trees) of a forest
        """
        rows = self._rows(X)
        out = np.empty((n_rows_of(rows), self.n_trees), dtype=INDEX)
        self._run(kernels.leaf_of_rows, rows, n_jobs, out)
        leaves = np.flatnonzero(self._packed.child < 0).astype(INDEX)[out]
        return leaves[:, 0] if self.n_trees == 1 else leaves

    def check(self) -> None:
        """Check every leaf of a loaded model now, instead of when a row first reaches it.

        Raises
        ------
        ModelFileError
            If the content of a leaf is out of range.
        """
        if not self._checked:
            for leaf in range(self.n_leaves):
                if not leaf_is_valid(self._table, leaf):
                    self._fail(BAD_LEAF, None)

    # -- other forms of it -------------------------------------------------------------------------

    def with_beam(self, beam: int, *, temperature: float | None = None) -> FrozenTree:
        """Return the same model with another beam; the arrays are shared.

        Parameters
        ----------
        beam : int
            How many paths a row takes in a tree.
        temperature : float, optional
            What the scores of routers are divided by; by default as it is. What has the fewest
            errors depends on the data: try some on held-out rows. With a beam of 1 it is kept, but
            changes nothing.
        """
        return self._like(
            beam=beam, temperature=self._temperature if temperature is None else temperature
        )

    def calibrated(self, X: Any, y: npt.ArrayLike, *, n_jobs: int = 1) -> FrozenTree:
        """Return the same model with the temperature that suits some rows best.

        Temperature scaling (Guo et al., 2017) of the routers, for probabilities: the likelihood of
        labels decides. Errors may rise or fall; for the fewest, compare temperatures by error.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_rows,)
            Their labels, which must be known.
        n_jobs : int

        Returns
        -------
        model : FrozenTree
            Of ``TEMPERATURES``, the one with which labels have the highest likelihood; if several
            have, the one closest to 1.
        """
        if self.beam == 1:
            raise ValueError("a single path has no use for a temperature: call with_beam(4) first")
        if not np.size(y):
            raise ValueError("there are no rows to calibrate on: give some with their labels")
        models = [self.with_beam(self.beam, temperature=t) for t in TEMPERATURES]
        losses = [
            -np.log(np.maximum(model.label_proba(X, y, n_jobs=n_jobs), _LEAST)).sum()
            for model in models
        ]
        return models[int(np.argmin(losses))]

    def prefix(self, n_trees: int) -> FrozenTree:
        """Return the first trees of a forest as a model: smaller and faster, with more errors.

        What :func:`thinleaf.load_estimator` would need is not kept: take the ``prefix`` of the
        estimator for that. The prior of classes outside leaves stays that of all trees.
        """
        whole = isinstance(n_trees, int | np.integer) and not isinstance(n_trees, bool)
        if not whole or not 1 <= n_trees <= self.n_trees:
            raise ValueError(f"n_trees must be an integer in 1..{self.n_trees}, got {n_trees!r}")
        if n_trees == self.n_trees:
            return self
        self.check()
        return self._like(
            packed=first_trees(self._packed, int(n_trees)),
            sections={name: part for name, part in self._sections.items() if name != "training"},
            summary=self._summary | {"trees": int(n_trees)},
            checked=True,
        )

    def prefixes(self) -> list[FrozenTree]:
        """Return the first 1, 2, 4, … trees and all of them: a curve of error against latency."""
        sizes = {2**i for i in range(self.n_trees.bit_length())} | {self.n_trees}
        return [self.prefix(n_trees) for n_trees in sorted(sizes)]

    def quantized(self, weights: WeightType) -> FrozenTree:
        """Return the same model with leaf weights of a smaller type: "float16" or "int8"."""
        self.check()
        return self._like(packed=quantize(self._packed, weights))

    def quantization_report(self, X: Any, y: npt.ArrayLike) -> list[dict[str, Any]]:
        """Return error and size with each type of leaf weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        report : list of dict
            With the keys ``weights``, ``error`` and ``nbytes``.
        """
        report = []
        for weights in ("float32", "float16", "int8"):
            model = self.quantized(weights)
            error = float(np.mean(model.predict(X) != np.asarray(y)))
            report.append({"weights": weights, "error": error, "nbytes": model.nbytes})
        return report

    def with_summary(self, **more: Any) -> FrozenTree:
        """Return the same model that tells more of its training."""
        return self._like(summary=self._summary | more)

    def with_sections(self, **sections: Section) -> FrozenTree:
        """Return the same model that carries more in its file."""
        return self._like(sections=self._sections | sections)

    def _like(self, **changes: Any) -> FrozenTree:
        own: dict[str, Any] = {
            "packed": self._packed,
            "labels": self._labels,
            **self._keywords(),
            "checked": self._checked,
        } | changes
        return FrozenTree(own.pop("packed"), own.pop("labels"), **own)

    def __reduce__(self) -> Any:
        """Pickle the arrays; addresses are made anew."""
        return (_unpickled, (self._packed, self._labels, self._keywords(), self._checked))

    def _keywords(self) -> dict[str, Any]:
        return {
            "feature_names": self._feature_names,
            "beam": self._beam,
            "temperature": self._temperature,
            "summary": self._summary,
            "sections": self._sections,
        }

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: safetensors with JSON metadata. A file of that name is replaced."""
        arrays = {f"tree.{name}": array for name, array in self._packed.arrays().items()}
        labels, kind = pack_labels(self._labels)
        arrays |= labels
        if self._feature_names is not None:
            arrays |= pack_strings(self._feature_names, "features")
        arrays |= section_arrays(self._sections)
        metadata = {
            "format": FORMAT,
            "version": 1,
            "n_features": self.n_features,
            "n_classes": self.n_classes,
            "sparse": self._packed.sparse,
            "weights": self._packed.weights,
            "beam": int(self._beam),
            "labels": kind,
            "feature_names": self._feature_names is not None,
            "summary": self._summary,
            "sections": {name: dict(part.metadata) for name, part in self._sections.items()},
        }
        if self.n_trees > 1 or self._temperature != 1.0:
            metadata |= {"version": 2, "n_trees": self.n_trees}
        if self._temperature != 1.0:
            metadata |= {"version": VERSION, "temperature": self._temperature}
        write_arrays(Path(path), arrays, metadata)

    # -- small steps -------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        if isinstance(X, CSR):  # checked by an estimator
            return as_writable(X)
        if not hasattr(X, "indptr"):
            with np.errstate(over="ignore"):  # infinity is found below
                X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=PARAM)
        elif getattr(X, "format", "csr") != "csr":
            X = X.tocsr()
        if X.ndim != 2:
            raise ValueError(f"X must have two axes (rows, features), got shape {X.shape}")
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but the model expects {self.n_features}"
            )
        with np.errstate(over="ignore"):
            rows = as_rows(X)
        if not np.all(np.isfinite(rows.data if isinstance(rows, CSR) else rows)):
            raise ValueError("X contains NaN or infinity, or is too large for float32")
        return as_writable(rows)

    def _run(self, kernel: Callable[..., int], rows: Rows, n_jobs: int, *arguments: Any) -> None:
        """Call a kernel on all rows, in pieces on several threads if asked for."""
        n_rows = n_rows_of(rows)
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
            self._fail(status, rows)

    def _fail(self, status: int, x: Any) -> None:
        if status == WRONG_WIDTH:
            raise ValueError(f"x has {x.size} features, but the model expects {self.n_features}")
        if status == BAD_FEATURE:
            raise ValueError(
                f"indices must lie in 0..{self.n_features - 1}, and there must be as many values"
            )
        raise ModelFileError("the model file is damaged: a leaf holds ids or weights out of range")


def load(path: str | os.PathLike[str]) -> FrozenTree:
    """Open a model file.

    The file is mapped into memory, not read: a large one opens in milliseconds, and processes share
    its pages. Its structure is checked at once, each leaf when a row first reaches it. To save
    another model under its name is safe, to change the file in place is not.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    model : FrozenTree

    Raises
    ------
    ModelFileError
        If the file is damaged, or is none of ours.
    """
    path = Path(path)
    arrays, metadata = read_arrays(path)
    try:
        return _from_file(arrays, metadata)
    except (TreeError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} is no valid model file: {error}") from error


def _from_file(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> FrozenTree:
    if metadata.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}{_hint(metadata)}")
    version = metadata.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(
            f"its format version is {version!r}, this thinleaf reads up to {VERSION}: "
            "update thinleaf, or save the model again"
        )
    weights = typed(metadata, "weights", str)
    if weights not in ("float32", "float16", "int8"):
        raise ValueError(f"unknown weights {weights!r}")
    packed = PackedTree(
        typed(metadata, "n_features", int),
        typed(metadata, "n_classes", int),
        typed(metadata, "sparse", bool),
        weights,
        1 if version == 1 else typed(metadata, "n_trees", int),
        **{name: arrays[f"tree.{name}"] for name in array_dtypes(weights)},
    )
    packed.validate()
    named = typed(metadata, "feature_names", bool)
    kind = typed(metadata, "labels", str)
    own = {f"tree.{name}" for name in array_dtypes(weights)}
    own |= label_arrays(kind)
    own |= {"features.utf8", "features.ptr"} if named else set()
    return FrozenTree(
        packed,
        unpack_labels(arrays, kind, packed.n_classes),
        feature_names=unpack_strings(arrays, "features") if named else None,
        beam=typed(metadata, "beam", int),
        temperature=1.0 if version < 3 else typed(metadata, "temperature", float),
        summary=typed(metadata, "summary", dict),
        sections=unpack_sections(
            {name: array for name, array in arrays.items() if name not in own},
            typed(metadata, "sections", dict),
        ),
        checked=False,
    )


def _hint(metadata: Mapping[str, Any]) -> str:
    """Return how to open a file of ours that holds something else."""
    if metadata.get("format") != LABEL_TREE_FORMAT:
        return ""
    return f", but {LABEL_TREE_FORMAT!r}: open it with thinleaf.load_estimator"


_OWN = ("tree", "labels", "features")


def _unpickled(
    packed: PackedTree, labels: AnyArray, keywords: dict[str, Any], checked: bool
) -> FrozenTree:
    return FrozenTree(packed, labels, checked=checked, **keywords)

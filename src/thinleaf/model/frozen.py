"""The form of a model that is deployed: immutable, packed, fast, and free of training.

``estimator.freeze()`` or :func:`thinleaf.load` give a :class:`FrozenTree`, which may be a forest,
or another :class:`FrozenModel`. It knows labels and feature names, but neither scikit-learn nor how
it was trained, and it predicts: :mod:`thinleaf.model.model_file` writes and opens files,
:mod:`thinleaf.model.calibration` finds temperatures, :mod:`thinleaf.model.quantization` makes
weights smaller, and :mod:`thinleaf.model.forest` cuts forests.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import AnyArray, IndexArray
from thinleaf.arrays.rows import Rows, checked_rows
from thinleaf.model import calibration, forest, model_file, quantization, thinning
from thinleaf.model.file_parts import Section
from thinleaf.model.packed_predictor import PackedPredictor
from thinleaf.model.packing import PackedTree, WeightType
from thinleaf.model.predictor import Predictions, Predictor

_OWN = ("tree", "labels", "features")


class FrozenModel(Predictions):
    """What all deployed models have in common.

    Parameters
    ----------
    predictor : Predictor
    feature_names : list of str, optional
    summary : mapping, optional
        Anything that JSON can hold about the training.
    sections : mapping of str to Section, optional
        What else the model file carries, such as the recipe that makes rows of text.
    """

    _predictor: Predictor

    def __init__(
        self,
        predictor: Predictor,
        feature_names: list[str] | None,
        summary: Mapping[str, Any] | None,
        sections: Mapping[str, Section] | None,
    ) -> None:
        self._predictor = predictor
        if feature_names is not None and len(feature_names) != predictor.n_features:
            raise ValueError(
                f"there are {predictor.n_features} features, but {len(feature_names)} feature_names"
            )
        self._feature_names = None if feature_names is None else list(feature_names)
        self._summary = copy.deepcopy(dict(summary or {}))
        self._sections = dict(sections or {})
        for name in self._sections:
            if not name or "." in name or name in _OWN:
                raise ValueError(f"a section cannot have the name {name!r}")

    # -- looking at it -----------------------------------------------------------------------------

    @property
    def labels(self) -> AnyArray:
        """The class labels, of shape (n_classes,)."""
        view = self._predictor.labels.view()
        view.flags.writeable = False
        return view

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
        return self._predictor.n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._predictor.labels.size

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return self._predictor.nbytes

    @property
    def takes_texts(self) -> bool:
        """Whether input is texts instead of rows."""
        return False

    @property
    def beam(self) -> int:
        """How many paths a row takes in a tree."""
        return 1

    @property
    def temperature(self) -> float:
        """What the scores of routers are divided by in a beam."""
        return 1.0

    @property
    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Sizes and settings by name, as JSON holds them."""

    @property
    @abstractmethod
    def shape(self) -> str:
        """How many leaves or nodes there are, in words."""

    # -- other forms of it -------------------------------------------------------------------------

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: safetensors with JSON metadata. A file of that name is replaced."""

    @abstractmethod
    def replaced(self, **changes: Any) -> Self:
        """Return the same model with other arguments of the constructor."""

    def with_summary(self, **more: Any) -> Self:
        """Return the same model that tells more of its training."""
        return self.replaced(summary=self._summary | more)

    def with_sections(self, **sections: Section) -> Self:
        """Return the same model that carries more in its file."""
        return self.replaced(sections=self._sections | sections)

    def _rows(self, X: Any) -> Rows:
        return checked_rows(X, self._feature_names, self.n_features)


class FrozenTree(FrozenModel):
    """A tree that predicts, and does nothing else; or several, whose probabilities are averaged.

    Made by ``estimator.freeze()`` or :func:`thinleaf.load`. Single samples and batches agree.

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
        packed = replace(packed)  # also of an unpickled one, arrays are read-only
        labels = np.array(labels)
        if labels.shape != (packed.n_classes,):
            raise ValueError(f"labels must have shape ({packed.n_classes},), got {labels.shape}")
        predictor = self._predictor_of(packed, labels, beam, temperature, checked)
        super().__init__(predictor, feature_names, summary, sections)
        self._predictor: PackedPredictor = predictor
        self._beam, self._temperature = beam, float(temperature)

    def _predictor_of(
        self, packed: PackedTree, labels: AnyArray, beam: int, temperature: float, checked: bool
    ) -> PackedPredictor:
        return PackedPredictor(packed, labels, beam, temperature, checked=checked)

    # -- looking at it -----------------------------------------------------------------------------

    @property
    def packed(self) -> PackedTree:
        """The arrays, read-only."""
        return self._predictor.packed

    @property
    def predictor(self) -> PackedPredictor:
        """What answers for checked rows, in numbers of classes."""
        return self._predictor

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
        return self.packed.n_trees

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.packed.n_leaves

    @property
    def figures(self) -> dict[str, Any]:
        """Sizes and settings by name, as JSON holds them."""
        return {
            "features": self.n_features,
            "classes": self.n_classes,
            "trees": self.n_trees,
            "leaves": self.n_leaves,
            "beam": self.beam,
            "temperature": self.temperature,
            "weights": self.packed.weights,
        }

    @property
    def shape(self) -> str:
        """How many leaves there are, in words."""
        return ("" if self.n_trees == 1 else f"{self.n_trees} trees with ") + (
            f"{self.n_leaves:,} leaves"
        )

    def __repr__(self) -> str:
        """Return the shape in one line."""
        layout = "sparse" if self.packed.sparse else "dense"
        trees = "" if self.n_trees == 1 else f"{self.n_trees} trees, "
        at = "" if self.temperature == 1.0 else f" at temperature {self.temperature:g}"
        return (
            f"FrozenTree({trees}{self.n_leaves} leaves, {self.n_classes} classes, "
            f"{self.n_features} features, {layout} rows, {self.packed.weights}, "
            f"beam {self.beam}{at}, {self.nbytes:,} bytes)"
        )

    def apply(self, X: Any, *, n_jobs: int = 1) -> IndexArray:
        """Return the node of the leaf that each row reaches; nodes are numbered breadth-first.

        Returns
        -------
        leaves : ndarray of shape (n_rows,), or (n_rows, n_trees) of a forest
        """
        leaves = self._predictor.leaves(self._rows(X), n_jobs)
        return leaves[:, 0] if self.n_trees == 1 else leaves

    def check(self) -> None:
        """Check every leaf of a loaded model now, instead of when a row first reaches it.

        Raises
        ------
        ModelFileError
            If the content of a leaf is out of range.
        """
        self._predictor.check()

    # -- other forms of it -------------------------------------------------------------------------

    def with_beam(self, beam: int, *, temperature: float | None = None) -> Self:
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
        return self.replaced(
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
            Of ``thinleaf.model.calibration.TEMPERATURES``, the one with which labels have the
            highest likelihood; if several have, the one closest to 1.
        """
        return calibration.calibrated(self, X, y, n_jobs)

    def prefix(self, n_trees: int) -> FrozenTree:
        """Return the first trees of a forest as a model: smaller and faster, with more errors.

        What :func:`thinleaf.load_estimator` would need is not kept: take the ``prefix`` of the
        estimator for that. The prior of classes outside leaves stays that of all trees.
        """
        return forest.prefix(self, n_trees)

    def prefixes(self) -> list[FrozenTree]:
        """Return the first 1, 2, 4, … trees and all of them: a curve of error against latency."""
        return forest.prefixes(self)

    def quantized(self, weights: WeightType) -> Self:
        """Return the same model with leaf weights of a smaller type: "float16" or "int8"."""
        self.check()
        return self.replaced(packed=quantization.quantize(self.packed, weights))

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
        return quantization.report(self, X, y)

    def to_onnx(self, *, probabilities: bool = True) -> Any:
        """Return the model as an ONNX graph of standard operators, for other runtimes.

        Input ``X`` is dense, float32 of shape (rows, n_features); outputs are ``label`` and
        ``probabilities``. Sums are in another order than here, so that probabilities agree to some
        1e-6. It needs the extra ``onnx``.

        Parameters
        ----------
        probabilities : bool
            Whether there is an output of the probability of every label; without it, a graph of one
            tree is quicker.

        Returns
        -------
        model : onnx.ModelProto

        Raises
        ------
        ValueError
            If rows take several paths in a tree, or the trees are too deep or too large.
        """
        from thinleaf.model.onnx_graph import to_onnx

        return to_onnx(self, probabilities=probabilities)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: safetensors with JSON metadata. A file of that name is replaced."""
        model_file.save(self, path)

    @property
    def file_bytes(self) -> int:
        """Bytes of the file that :meth:`save` would write, exactly."""
        return model_file.file_bytes(self)

    def thinned(self, share: float) -> Self:
        """Return the same model without small weights of leaves: smaller, with more errors.

        Parameters
        ----------
        share : float
            Weights below this share of the largest one of the same class in the same leaf are left
            out, where leaves are stored as sparse rows; blocks stay as they are.
        """
        self.check()
        return self.replaced(packed=thinning.thinned(self.packed, share))

    def replaced(self, **changes: Any) -> Self:
        """Return the same model with other arguments of the constructor; arrays are shared."""
        return _built(type(self), self._arguments() | changes)  # type: ignore[no-any-return]

    def _arguments(self) -> dict[str, Any]:
        return {
            "packed": self.packed,
            "labels": self._predictor.labels,
            "feature_names": self._feature_names,
            "beam": self._beam,
            "temperature": self._temperature,
            "summary": self._summary,
            "sections": self._sections,
            "checked": self._predictor.checked,
        }

    def __reduce__(self) -> Any:
        """Pickle the arrays; addresses are made anew."""
        return (_built, (type(self), self._arguments()))


def _built(cls: type[Any], arguments: dict[str, Any]) -> Any:
    return cls(arguments.pop("packed"), arguments.pop("labels"), **arguments)

"""What can be compared, behind one interface; and our own models behind it.

A system is called in the fastest way that its Python interface has: what a single prediction needs
is prepared beforehand. All run on one thread. Other libraries are in
:mod:`thinleaf.measuring.peers`.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from thinleaf._dtypes import AccumArray, AnyArray
from thinleaf.arrays.rows import as_rows
from thinleaf.estimators import LabelTreeClassifier, MACHClassifier
from thinleaf.measuring.latency import prepared_rows
from thinleaf.measuring.split import Split
from thinleaf.model.cost import frozen_mean_flops
from thinleaf.model.frozen import FrozenTree

_REHEARSAL = (400, 8)
"""Rows and classes that are trained on before anything is timed."""

_FEW = {
    "epochs": 1, "expansion_sweeps": 2, "max_rounds": 1, "max_sweeps": 2, "n_estimators": 2,
    "n_passes": 1, "n_repetitions": 1, "verbose": 0,
}  # fmt: skip
"""How much of it, at the most."""


class System(ABC):
    """A classifier: what it needs, and how to fit, call and weigh it. Labels are class ids."""

    name: str

    def obstacle(self, split: Split) -> str | None:
        """Return why it cannot be fitted to a split, None if it can."""
        return None

    def rehearse(self, split: Split) -> None:
        """Do all once on a few rows, so that compilation is not timed; others compile nothing."""
        return

    @abstractmethod
    def fit(self, split: Split) -> None:
        """Train on one thread."""

    @abstractmethod
    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""

    def batch(self, split: Split) -> Callable[[], Any]:
        """Return the fastest call that predicts all test rows, their input prepared."""
        return lambda: self.predict(split)

    def top_classes(self, split: Split, k: int) -> AnyArray | None:
        """Return the ``k`` best class ids of the test rows; None if it does not rank."""
        return None

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray] | None:
        """Return the probability of the true class of each test row whose class is known.

        Returns
        -------
        smooth, held : ndarray of shape (n_known,)
            With and without what classes get that a row's leaf does not hold. None if there are no
            probabilities.
        """
        return None

    def shape(self, split: Split) -> dict[str, Any]:
        """Return what is known of depth, leaves, mean_leaf_classes and flops."""
        return {}

    @abstractmethod
    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return the first test rows, each as the arguments of :meth:`one`."""

    @abstractmethod
    def one(self) -> Callable[..., Any]:
        """Return the fastest call for a prepared row."""

    def measured(self) -> dict[str, float] | None:
        """Return train_seconds, single_us and batch_us if the system measures itself."""
        return None

    @abstractmethod
    def nbytes(self) -> int:
        """Return the size of the model on disk, or of its arrays."""


class Ours(System):
    """An estimator of this library, frozen if it can be.

    Parameters
    ----------
    name : str
    model : estimator
        Not fitted.
    """

    predictor: Any
    """The frozen model, or the estimator itself."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.model = model

    def rehearse(self, split: Split) -> None:
        """Train and predict on a few rows."""
        few = split.first(*_REHEARSAL)
        less = {}
        for name, value in self.model.get_params().items():
            most = _FEW.get(name.rpartition("__")[2])
            if most is not None and isinstance(value, int) and value > most:
                less[name] = most
        rehearsal = Ours(self.name, clone(self.model).set_params(**less))
        rehearsal.fit(few)
        rehearsal.predict(few)
        rehearsal.top_classes(few, 1)
        rehearsal.label_proba(few)
        rehearsal.one()(*rehearsal.samples(few, 1)[0])

    def fit(self, split: Split) -> None:
        """Train, and freeze."""
        self.model.fit(self._rows(split, "train"), split.y_train)
        self.predictor = self.model.freeze() if hasattr(self.model, "freeze") else self.model

    def predict(self, split: Split) -> AnyArray:
        """Return the class ids of the test part, as a batch."""
        ids: AnyArray = self.predictor.predict(self._rows(split, "test"))
        return ids

    def top_classes(self, split: Split, k: int) -> AnyArray | None:
        """Return the ``k`` best class ids of the test rows."""
        ids: AnyArray = self.predictor.predict_topk(self._rows(split, "test"), k)[0]
        return ids

    def label_proba(self, split: Split) -> tuple[AccumArray, AccumArray] | None:
        """Return the probability of the true class of each test row whose class is known."""
        rows, y = self._rows(split, "test"), split.y_test
        if not split.known.all():
            rows, y = _of(rows, split.known), y[split.known]
        if y.size == 0:
            return None
        smooth = self.predictor.label_proba(rows, y)
        if not isinstance(self.predictor, FrozenTree):
            return smooth, smooth
        return smooth, self.predictor.label_proba(rows, y, smooth=False)

    def shape(self, split: Split) -> dict[str, Any]:
        """Return depth, leaves, mean_leaf_classes and flops, as far as the model has them."""
        if isinstance(self.predictor, FrozenTree):
            packed = self.predictor.packed
            return {
                "depth": int(packed.node_depth.max()),
                "leaves": packed.n_leaves,
                "mean_leaf_classes": float(np.diff(packed.class_ptr).mean()),
                "flops": frozen_mean_flops(self.predictor, as_rows(split.X_test)),
            }
        shape = {"flops": self.model.mean_flops(self._rows(split, "test"))}
        if isinstance(self.model, LabelTreeClassifier):
            tree = self.model.model_.tree
            return {"depth": tree.depth, "leaves": tree.n_labels, "mean_leaf_classes": 1.0, **shape}
        if isinstance(self.model, MACHClassifier):
            mach = self.model.model_
            buckets = {"leaves": len(mach.softmaxes), "mean_leaf_classes": float(mach.n_buckets)}
            return {"depth": 0, **buckets, **shape}
        return shape

    def samples(self, split: Split, n: int) -> list[tuple[Any, ...]]:
        """Return the first test rows, each as the arguments of :meth:`one`."""
        X = self._rows(split, "test")
        if self._takes_texts:
            return [(text,) for text in X[:n]]
        if isinstance(self.model, LabelTreeClassifier):
            return [(X[i : i + 1],) for i in range(n)]
        return prepared_rows(X, n)

    def one(self) -> Callable[..., Any]:
        """Return ``predict_one``, or what comes closest to it."""
        if isinstance(self.model, LabelTreeClassifier) and not self._takes_texts:
            predict = self.model.predict
            return lambda row: predict(row)[0]
        call: Callable[..., Any] = self.predictor.predict_one
        return call

    def nbytes(self) -> int:
        """Return the size of the arrays, or of the file where there is no such figure."""
        if isinstance(self.predictor, FrozenTree):
            return self.predictor.nbytes
        if not isinstance(self.model, LabelTreeClassifier):
            return int(self.model.nbytes_)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            self.model.save(path)
            return path.stat().st_size

    @property
    def _takes_texts(self) -> bool:
        """Whether a label tree was trained on texts as they are."""
        return getattr(self.model, "features_", None) is not None

    def _rows(self, split: Split, part: str) -> Any:
        """Return the rows, or the texts for a label tree, which makes features itself."""
        texts = getattr(split, f"texts_{part}")
        if texts is not None and isinstance(self.model, LabelTreeClassifier):
            return texts
        return getattr(split, f"X_{part}")


class Refrozen(Ours):
    """A model that another system has fitted, deployed differently: a beam, fewer trees.

    Parameters
    ----------
    name : str
    model : estimator
        Fitted before this system is.
    change : callable
        Of its frozen form.
    """

    def __init__(self, name: str, model: Any, change: Callable[[FrozenTree], FrozenTree]) -> None:
        super().__init__(name, model)
        self.change = change

    def rehearse(self, split: Split) -> None:
        """Do nothing: what it calls has been called."""

    def fit(self, split: Split) -> None:
        """Freeze it; it has been trained."""
        self.predictor = self.change(self.model.freeze())


def _of(rows: Any, mask: AnyArray) -> Any:
    return rows[mask] if not isinstance(rows, list) else [rows[i] for i in np.flatnonzero(mask)]

"""The data of a comparison: a training and a test part, as rows and, if it is text, as texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray


@dataclass(frozen=True, eq=False)
class Split:
    """Rows and classes, the same for all models.

    Attributes
    ----------
    X_train, X_test : ndarray or CSR matrix of shape (n_rows, n_features)
    y_train : ndarray of shape (n_train,)
        Classes 0..n_classes - 1.
    y_test : ndarray of shape (n_test,)
        -1 for a class that no training row has: whatever is predicted is wrong.
    texts_train, texts_test : list of str, optional
        What the rows were made of.
    """

    X_train: Any
    y_train: IndexArray
    X_test: Any
    y_test: IndexArray
    texts_train: list[str] | None = None
    texts_test: list[str] | None = None

    @classmethod
    def of(
        cls,
        X_train: Any,
        labels_train: AnyArray,
        X_test: Any,
        labels_test: AnyArray,
        texts_train: Sequence[str] | None = None,
        texts_test: Sequence[str] | None = None,
    ) -> Split:
        """Return the split of rows with labels of any kind, the same in both parts.

        Examples
        --------
        >>> import numpy as np
        >>> from thinleaf.measuring import Split
        >>> X = np.eye(3, dtype="float32")
        >>> Split.of(X, np.array(["a", "b", "a"]), X[:2], np.array(["b", "c"])).y_test
        array([ 1, -1], dtype=int32)
        """
        classes, y_train = np.unique(labels_train, return_inverse=True)
        at = np.minimum(np.searchsorted(classes, labels_test), classes.size - 1)
        y_test = np.where(classes[at] == labels_test, at, -1)
        return cls(
            _rows(X_train),
            y_train.astype(INDEX),
            _rows(X_test),
            y_test.astype(INDEX),
            None if texts_train is None else list(texts_train),
            None if texts_test is None else list(texts_test),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes in the training part."""
        return int(self.y_train.max()) + 1

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return sp.issparse(self.X_train)

    @property
    def known(self) -> AnyArray:
        """Mask of the test rows whose class the training part has."""
        mask: AnyArray = self.y_test >= 0
        return mask

    def first(self, n_rows: int, n_classes: int) -> Split:
        """Return a small part: the first training rows of the first classes, tested on themselves.

        For a rehearsal before anything is timed.
        """
        rows = np.flatnonzero(self.y_train < n_classes)[:n_rows]
        y = np.unique(self.y_train[rows], return_inverse=True)[1].astype(INDEX)
        texts = None if self.texts_train is None else [self.texts_train[i] for i in rows]
        return Split(self.X_train[rows], y, self.X_train[rows], y, texts, texts)

    def save(self, folder: Path) -> None:
        """Write the split for another process."""
        for part, X, y, texts in (
            ("train", self.X_train, self.y_train, self.texts_train),
            ("test", self.X_test, self.y_test, self.texts_test),
        ):
            np.save(folder / f"y_{part}.npy", y)
            if self.sparse:
                sp.save_npz(folder / f"X_{part}.npz", X, compressed=False)
            else:
                np.save(folder / f"X_{part}.npy", X)
            if texts is not None:
                (folder / f"texts_{part}.json").write_text(json.dumps(texts), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Split:
        """Read what :meth:`save` has written."""
        parts: dict[str, Any] = {}
        for part in ("train", "test"):
            sparse, texts = folder / f"X_{part}.npz", folder / f"texts_{part}.json"
            parts[f"y_{part}"] = np.load(folder / f"y_{part}.npy")
            if sparse.exists():
                parts[f"X_{part}"] = _rows(sp.load_npz(sparse))
            else:
                parts[f"X_{part}"] = np.load(folder / f"X_{part}.npy")
            if texts.exists():
                parts[f"texts_{part}"] = json.loads(texts.read_text(encoding="utf-8"))
        return cls(**parts)


def _rows(X: Any) -> Any:
    """Return rows as predictors take them without a copy."""
    if not hasattr(X, "tocsr"):
        return np.ascontiguousarray(X, dtype=PARAM)
    rows = sp.csr_matrix(X.tocsr(), dtype=PARAM)
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(INDEX), rows.indptr.astype(INDEX)
    return rows

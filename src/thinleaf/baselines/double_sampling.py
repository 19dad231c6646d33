"""(π, κ)-double sampling: many classes to one binary problem over pairs of classes.

Joshi, Amini, Partalas, Iutzeler & Maximov (2017). A joint map φ(x, y) says how a row and a class
fit together. A row of class y and another class y′ make an example φ(x, y) - φ(x, y′) of a binary
problem with few features and one weight vector for all classes. Of all such pairs a few are drawn:
rows by class (π), so that rare classes count as much as frequent ones, and for each of them some
adversary classes (κ).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, IndexArray
from thinleaf.arrays.rows import CSR, Rows, as_matrix, take_rows
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import NodeProblem, NodeSolution, Precision
from thinleaf.softmaxtree.solvers.router import solve_logistic
from thinleaf.softmaxtree.tao import TrainingData

_CHUNK = 1 << 14
"""Pairs whose joint features are computed together."""
_MAX_TERMS = 1 << 22
"""Terms of their classes, all told, that are looked at together."""


class Scorer(Protocol):
    """w·φ of rows with all classes."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""

    def scores(self, X: Rows) -> AccumArray:
        """Return the score of each row with every class, of shape (n_rows, n_classes)."""

    def mean_flops(self, X: Rows) -> float:
        """Return the mean number of multiplications for a row."""


class JointMap(Protocol):
    """φ: how rows and classes fit together."""

    @property
    def n_joint(self) -> int:
        """Number of joint features."""

    def pairs(self, X: Rows, classes: IndexArray) -> AccumArray:
        """Return φ of each row with its class, of shape (n_rows, n_joint)."""

    def scorer(self, w: AccumArray) -> Scorer:
        """Return what is needed to predict with weights of the joint features."""


# -- sparse rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TermMap:
    """The joint features of a text and a class, from the terms that they share.

    With n the number of the class's rows that have a term, all but the last are sums over the terms
    of the row that the class has: log(1 + n), log(1 + l/S), I, log(1 + n/L), log(1 + I·n/L),
    log(1 + l/S·n/L), 1, I·n/L, BM25. S is the number of all rows with the term, l the sum of S, L
    the sum of n over the class, and I = log(N/S). The last one is the cosine of the row and the
    mean of the class.

    Attributes
    ----------
    counts : CSR matrix of shape (n_classes, n_features)
        Where a class has a term.
    tables : ndarray of shape (n_sums, counts.nnz)
        What each term adds to each of the sums.
    means : CSR matrix of shape (n_classes, n_features)
        Of length one.
    """

    counts: sp.csr_matrix
    tables: AccumArray
    means: sp.csr_matrix

    @classmethod
    def of(cls, data: TrainingData) -> TermMap:
        """Count the terms of the training rows."""
        X = as_matrix(data.X)
        shape = (data.n_classes, data.n_rows)
        members = sp.csr_matrix((data.weight, (data.y, np.arange(data.n_rows))), shape=shape)
        counts = sp.csr_matrix(members @ _presence(X))
        counts.sort_indices()
        n = counts.data
        class_of = np.repeat(np.arange(data.n_classes), np.diff(counts.indptr))
        rows_with = np.asarray(counts.sum(axis=0)).ravel()
        length = np.asarray(counts.sum(axis=1)).ravel()
        rarity = (rows_with.sum() / np.maximum(rows_with, 1e-300))[counts.indices]
        idf = np.log(data.weight.sum() / np.maximum(rows_with, 1e-300))[counts.indices]
        share = n / length[class_of]
        saturation = 0.25 + 0.75 * length[class_of] / length.mean()
        tables = np.array(
            [
                np.log1p(n), np.log1p(rarity), idf,
                np.log1p(share), np.log1p(share * idf), np.log1p(share * rarity),
                np.ones_like(n), share * idf, idf * 2.0 * n / (n + saturation),
            ]
        )  # fmt: skip
        return cls(counts, tables, _of_unit_length(sp.csr_matrix(members @ X)))

    @property
    def n_joint(self) -> int:
        """Number of joint features."""
        return len(self.tables) + 1

    def pairs(self, X: Rows, classes: IndexArray) -> AccumArray:
        """Return φ of each row with its class, of shape (n_rows, n_joint)."""
        rows = as_matrix(X)
        places = self._with_data(np.arange(1, self.counts.nnz + 1, dtype=ACCUM))
        part = np.cumsum(np.diff(self.counts.indptr)[classes], dtype=np.int64) // _MAX_TERMS
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), classes.size]
        parts = [slice(*cut) for cut in pairwise(cuts)]
        return np.concatenate([self._pairs(rows[at], classes[at], places) for at in parts])

    def _pairs(self, rows: Any, classes: IndexArray, places: sp.csr_matrix) -> AccumArray:
        shared = sp.csr_matrix(_presence(rows).multiply(places[classes]))
        at = shared.data.astype(np.int64) - 1
        row_of = np.repeat(np.arange(classes.size), np.diff(shared.indptr))
        out = np.empty((classes.size, self.n_joint), dtype=ACCUM)
        for j, table in enumerate(self.tables):
            out[:, j] = np.bincount(row_of, weights=table[at], minlength=classes.size)
        cosines = _of_unit_length(rows).multiply(self.means[classes]).sum(axis=1)
        out[:, -1] = np.asarray(cosines).ravel()
        return out

    def scorer(self, w: AccumArray) -> TermScorer:
        """Return what is needed to predict with weights of the joint features."""
        sums = self._with_data(w[:-1] @ self.tables)
        return TermScorer(sp.csr_matrix(sums.T), sp.csr_matrix((w[-1] * self.means).T))

    def _with_data(self, values: AccumArray) -> sp.csr_matrix:
        indices, indptr = self.counts.indices, self.counts.indptr
        return sp.csr_matrix((values, indices, indptr), shape=self.counts.shape)


@dataclass(frozen=True)
class TermScorer:
    """All sums over shared terms are one sum for a class, and the cosine is another.

    Attributes
    ----------
    sums, means : CSR matrix of shape (n_features, n_classes)
    """

    sums: sp.csr_matrix
    means: sp.csr_matrix

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        parts = [(part.data, part.indices, part.indptr) for part in (self.sums, self.means)]
        return sum(int(array.nbytes) for part in parts for array in part)

    def scores(self, X: Rows) -> AccumArray:
        """Return the score of each row with every class, of shape (n_rows, n_classes)."""
        rows = sp.csr_matrix(as_matrix(X))
        total = _presence(rows) @ self.sums + _of_unit_length(rows) @ self.means
        out: AccumArray = total.toarray()
        return out

    def mean_flops(self, X: Rows) -> float:
        """Return the mean number of multiplications for a row."""
        n_classes = self.sums.getnnz(axis=1) + self.means.getnnz(axis=1)
        rows = sp.csr_matrix(as_matrix(X))
        return float(n_classes[rows.indices].sum() / max(rows.shape[0], 1))


def _presence(X: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(((X.data != 0).astype(ACCUM), X.indices, X.indptr), shape=X.shape)


def _of_unit_length(X: sp.csr_matrix) -> sp.csr_matrix:
    square = np.asarray(X.multiply(X).sum(axis=1), dtype=ACCUM).ravel()
    return sp.csr_matrix(sp.diags(1.0 / np.sqrt(np.maximum(square, 1e-300))) @ X)


# -- dense rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DifferenceMap:
    """The joint features of dense rows: squared differences from the mean of the class, negated.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_features)
    """

    means: AccumArray

    @classmethod
    def of(cls, data: TrainingData) -> DifferenceMap:
        """Average the training rows of each class."""
        shape = (data.n_classes, data.n_rows)
        members = sp.csr_matrix((data.weight, (data.y, np.arange(data.n_rows))), shape=shape)
        mass = np.bincount(data.y, weights=data.weight, minlength=data.n_classes)
        return cls((members @ as_matrix(data.X).astype(ACCUM)) / np.maximum(mass, 1e-300)[:, None])

    @property
    def n_joint(self) -> int:
        """Number of joint features."""
        return int(self.means.shape[1])

    def pairs(self, X: Rows, classes: IndexArray) -> AccumArray:
        """Return φ of each row with its class, of shape (n_rows, n_joint)."""
        out: AccumArray = -np.square(as_matrix(X) - self.means[classes])
        return out

    def scorer(self, w: AccumArray) -> LinearScorer:
        """Return what is needed to predict with weights of the joint features."""
        weighted = self.means * w
        return LinearScorer(2.0 * weighted.T, -(weighted * self.means).sum(axis=1))


@dataclass(frozen=True)
class LinearScorer:
    """Squared differences without x², which all classes have in common, are linear in x.

    Attributes
    ----------
    weights : ndarray of shape (n_features, n_classes)
    bias : ndarray of shape (n_classes,)
    """

    weights: AccumArray
    bias: AccumArray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.weights.nbytes + self.bias.nbytes)

    def scores(self, X: Rows) -> AccumArray:
        """Return the score of each row with every class, of shape (n_rows, n_classes)."""
        out: AccumArray = as_matrix(X) @ self.weights
        out += self.bias
        return out

    def mean_flops(self, X: Rows) -> float:
        """Return the number of multiplications for a row."""
        return float(self.weights.size)


# -- sampling and fitting --------------------------------------------------------------------------


def fit_weights(
    joint: JointMap,
    data: TrainingData,
    pairs: tuple[IndexArray, IndexArray],
    penalty: Penalty,
    precision: Precision,
) -> tuple[AccumArray, list[NodeSolution]]:
    """Solve the binary problem that pairs make.

    Joint features are scaled to mean square one before, so that the penalty treats them alike.

    Parameters
    ----------
    joint : JointMap
    data : TrainingData
    pairs : tuple of rows and of adversary classes, as from :func:`draw_pairs`
    penalty : Penalty
    precision : Precision

    Returns
    -------
    w : ndarray of shape (n_joint,)
    solutions : list of NodeSolution
        How the solver ended; of no pairs, none.
    """
    rows, adversaries = pairs
    if rows.size == 0:
        return np.zeros(joint.n_joint, dtype=ACCUM), []
    difference = np.empty((rows.size, joint.n_joint), dtype=ACCUM)
    for begin in range(0, rows.size, _CHUNK):
        at = slice(begin, begin + _CHUNK)
        X = take_rows(data.X, rows[at])
        difference[at] = joint.pairs(X, data.y[rows[at]]) - joint.pairs(X, adversaries[at])
    scale = np.sqrt(np.mean(np.square(difference), axis=0))
    scale[scale == 0.0] = 1.0
    # as in the paper, the class that sorts first is compared with the other one
    forward = data.y[rows] < adversaries
    difference *= np.where(forward, 1.0, -1.0)[:, None] / scale
    problem = NodeProblem(
        difference.astype(PARAM), forward.astype(INDEX), data.weight[rows], 2, penalty
    )
    solution = solve_logistic(problem, None, precision)
    w: AccumArray = solution.weights[:, 0] / scale
    return w, [solution]


def joint_map(data: TrainingData) -> JointMap:
    """Return φ of training rows: for sparse rows by terms, for dense rows by differences."""
    return TermMap.of(data) if isinstance(data.X, CSR) else DifferenceMap.of(data)


def draw_pairs(
    data: TrainingData, n_examples: int, n_adversaries: int, rng: np.random.Generator
) -> tuple[IndexArray, IndexArray]:
    """Return rows, each several times, and the adversary classes that they are paired with.

    At most ``n_examples`` rows of a class are drawn without replacement, and with each of them
    ``n_adversaries`` other classes with replacement; all others, if they are no more.
    """
    order = np.lexsort((rng.random(data.n_rows), data.y))
    sizes = np.bincount(data.y, minlength=data.n_classes)
    rank = np.arange(data.n_rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = order[rank < n_examples]
    n_others = data.n_classes - 1
    if n_adversaries >= n_others:
        steps = np.tile(np.arange(1, n_others + 1), (rows.size, 1))
    else:
        steps = rng.integers(1, data.n_classes, size=(rows.size, n_adversaries))
    adversaries = (data.y[rows][:, None] + steps) % data.n_classes
    repeated = np.repeat(rows, steps.shape[1])
    return repeated.astype(INDEX), adversaries.ravel().astype(INDEX)

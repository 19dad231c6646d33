"""MACH, merged-average classifiers via hashing (Medini, Huang, Wang, Mohan & Shrivastava, 2019).

R times, classes are thrown into B buckets and a softmax over the buckets is fitted. What the R
softmaxes say of a class's buckets is merged into its score, as the counters of a count-min sketch
are. The softmaxes have R·B weights a feature instead of K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AccumArray, IndexArray
from thinleaf.arrays.rows import CSR, Rows
from thinleaf.baselines.linear import flat_softmax
from thinleaf.execution import Executor
from thinleaf.model.cost import frozen_mean_flops
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Tree
from thinleaf.softmaxtree.objective import Penalty
from thinleaf.softmaxtree.solvers.problem import NodeSolution, Precision
from thinleaf.softmaxtree.tao import TrainingData

Merge: TypeAlias = Literal["mean", "median", "min"]


@dataclass(frozen=True)
class Mach:
    """A fitted model.

    Attributes
    ----------
    buckets : ndarray of shape (n_repetitions, n_classes)
        The bucket of each class.
    softmaxes : sequence of FrozenTree
        One a repetition, each a single leaf over the buckets.
    """

    buckets: IndexArray
    softmaxes: Sequence[FrozenTree]

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        buckets: IndexArray,
        penalty: Penalty,
        precision: Precision,
        executor: Executor,
    ) -> tuple[Mach, list[NodeSolution]]:
        """Fit a softmax for each row of ``buckets``; return how the solver ended, too."""
        n_buckets = int(buckets.max()) + 1
        fit = partial(_merged_softmax, n_buckets, penalty, precision)
        fitted = executor.map(fit, list(buckets), shared=[executor.share(data)], coarse=True)
        sparse = isinstance(data.X, CSR)
        softmaxes = [
            FrozenTree(pack(tree, Outside.of(tree, None, 0.0), sparse=sparse), np.arange(n_buckets))
            for tree, _ in fitted
        ]
        return cls(buckets, softmaxes), [solution for _, solution in fitted]

    @property
    def n_buckets(self) -> int:
        """B."""
        return self.softmaxes[0].n_classes

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.buckets.nbytes) + sum(model.nbytes for model in self.softmaxes)

    def mean_flops(self, X: Rows) -> float:
        """Return the mean multiplications of all softmaxes for a row."""
        return sum(frozen_mean_flops(model, X) for model in self.softmaxes)

    def scores(self, X: Rows, merge: Merge) -> AccumArray:
        """Return an estimate of the probability of every class, of shape (n_rows, n_classes).

        The mean over the repetitions counts the classes that share a bucket too; less that, it is
        unbiased if hashes are independent: B/(B - 1)·(mean - 1/B), which may be negative. Median
        and minimum are taken as they are.
        """
        parts = (
            model.predict_proba(X)[:, own]
            for model, own in zip(self.softmaxes, self.buckets, strict=True)
        )
        if merge == "median":
            middle: AccumArray = np.median(np.stack(list(parts)), axis=0)
            return middle
        total: AccumArray = next(parts)
        for part in parts:
            if merge == "mean":
                total += part
            else:
                np.minimum(total, part, out=total)
        if merge == "mean" and self.n_buckets > 1:
            B = self.n_buckets
            total *= 1.0 / len(self.softmaxes)
            total -= 1.0 / B
            total *= B / (B - 1.0)
        return total


def _merged_softmax(
    n_buckets: int, penalty: Penalty, precision: Precision, data: TrainingData, own: IndexArray
) -> tuple[Tree, NodeSolution]:
    """Fit a softmax over buckets of classes."""
    merged = TrainingData(data.X, own[data.y], data.weight, n_buckets)
    return flat_softmax(merged, penalty, precision)


def draw_buckets(
    n_classes: int, n_buckets: int, n_repetitions: int, rng: np.random.Generator
) -> IndexArray:
    """Return a bucket for each class, ``n_repetitions`` times; buckets differ by one at the most.

    Returns
    -------
    buckets : ndarray of shape (n_repetitions, n_classes)
    """
    rows = [rng.permutation(n_classes) % n_buckets for _ in range(n_repetitions)]
    return np.array(rows, dtype=INDEX)


def as_probabilities(scores: AccumArray, floor: float) -> AccumArray:
    """Return scores as probabilities: not below ``floor``, and with the sum one in each row."""
    P: AccumArray = np.maximum(scores, floor, dtype=ACCUM)
    P /= P.sum(axis=1, keepdims=True)
    return P

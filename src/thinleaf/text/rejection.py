"""When not to answer: how likely the label of a text is right, told by held-out rows.

A :class:`Rejection` is a logistic regression on five signs of a text, each with the direction that
it must have, and two tables: from its score to the share of right labels around it, where one text
in eleven is made up and means nothing; and to that of all held-out texts with such a score or a
higher one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, OFFSET, AccumArray, AnyArray, BoolArray, OffsetArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import ModelFileError
from thinleaf.model.file_parts import Section
from thinleaf.model.predictor import Predictor
from thinleaf.text.kernels.sureness_table import ARRAYS as _ARRAYS
from thinleaf.text.kernels.sureness_table import LEAST as _LEAST
from thinleaf.text.known_terms import Evidence

VERSION = 1
SECTION = "rejection"
LEAST_ROWS = 50
"""Held-out rows from which anything can be said."""

_DIRECTIONS = np.array([1.0, -1.0, -1.0, -1.0, -1.0])
_MORE_LIKELY_WRONG = 0.5
_NONSENSE_WEIGHT = 0.1
"""Weight of texts that were made up, for each row that was held out."""

_KNOTS = 256


def signs(predictor: Predictor, rows: Any, known: Evidence, n_jobs: int = 1) -> AccumArray:
    """Return what speaks for or against the labels of some texts.

    Parameters
    ----------
    predictor : Predictor
    rows : Rows
        Of the texts.
    known : Evidence
        What features know of them.
    n_jobs : int

    Returns
    -------
    S : ndarray of shape (n_texts, 5)
        Log-odds of the most probable label, logarithm of the mass outside the text's leaves, share
        of terms that are not known, logarithm of their number, and what falls with the number of
        known terms.
    """
    from thinleaf.text.kernels.sureness import signs_of_rows  # starts a compiler

    ids, top = predictor.top_k(rows, 1, n_jobs)
    # what makes a label less probable than its leaf says is the mass outside leaves
    alone = predictor.probability_of(rows, np.ascontiguousarray(ids[:, 0]), False, n_jobs)
    S = np.empty((len(top), _DIRECTIONS.size), dtype=ACCUM)
    figures = (top[:, 0], alone, known.n_known, known.n_terms)
    p, inside, n_known, n_terms = (np.ascontiguousarray(one, dtype=ACCUM) for one in figures)
    signs_of_rows(p, inside, n_known, n_terms, S)
    return S


@dataclass(frozen=True)
class Rejection:
    """How likely a label is right, and from which score on to answer.

    Attributes
    ----------
    weights : ndarray of shape (6,)
        Of the signs, and what is added: their sum is the score of a text.
    scores : ndarray of shape (n,)
        Scores of held-out rows and of texts that were made up, ascending.
    probability : ndarray of shape (n,)
        How often labels with about this score were right; it never falls.
    precision : ndarray of shape (n,)
        How often labels with this score or more were right; it never falls.
    n_rows : int
        Rows that were held out.
    """

    weights: AccumArray
    scores: AccumArray
    probability: AccumArray
    precision: AccumArray
    n_rows: int

    @classmethod
    def fit(cls, S: AccumArray, right: BoolArray, nonsense: AccumArray) -> Rejection:
        """Learn from held-out rows.

        Parameters
        ----------
        S : ndarray of shape (n_rows, 5)
            Their signs.
        right : ndarray of shape (n_rows,)
            Whether the label was right.
        nonsense : ndarray of shape (n, 5)
            Signs of texts that were made up: no label is right.
        """
        both = np.concatenate([S, nonsense])
        target = np.concatenate([right, np.zeros(len(nonsense), dtype=bool)])
        share = _NONSENSE_WEIGHT * len(S) / max(len(nonsense), 1)
        weight = np.concatenate([np.ones(len(S)), np.full(len(nonsense), share)])
        weights = _signed_logistic(both, target, weight)
        scores = both @ weights[:-1] + weights[-1]
        order = np.argsort(scores, kind="stable")
        scores, target, weight = scores[order], target[order], weight[order]
        # one more error than there were: a few rows do not prove a high precision
        held_out = (order < len(S)).astype(ACCUM)
        n_right = np.cumsum((held_out * target)[::-1])[::-1]
        precision = np.maximum.accumulate(n_right / (np.cumsum(held_out[::-1])[::-1] + 1.0))
        probability = _isotonic(target.astype(ACCUM), weight)
        knots = np.unique(np.linspace(0, scores.size - 1, _KNOTS).astype(int))
        return cls(weights, scores[knots], probability[knots], precision[knots], len(S))

    @cached_property
    def table(self) -> OffsetArray:
        """What kernels take: the number of knots, and the addresses of arrays kept here."""
        addresses = [getattr(self, name).__array_interface__["data"][0] for name in _ARRAYS]
        return np.array([self.scores.size, *addresses], dtype=OFFSET)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without addresses, which are those of this process."""
        return {name: value for name, value in self.__dict__.items() if name != "table"}

    def _judged(self, S: AccumArray) -> tuple[AccumArray, AccumArray]:
        from thinleaf.text.kernels.sureness import judged_rows

        probability, precision = np.empty((2, len(S)), dtype=ACCUM)
        judged_rows(self.table, np.ascontiguousarray(S, dtype=ACCUM), probability, precision)
        return probability, precision

    def confidence(self, S: AccumArray, known: Evidence) -> AccumArray:
        """Return how likely labels are right; 0 for texts without a known term."""
        return np.where(known.n_known > 0.0, self._judged(S)[0], 0.0)

    def answers(self, S: AccumArray, known: Evidence, precision: float) -> BoolArray:
        """Return which texts to answer, so that so many of the answers are right.

        Those are all from the lowest score on that has this precision on held-out rows. An answer
        that is more likely wrong than right, or to a text without any known term, is never given.
        """
        probability, of_all_above = self._judged(S)
        sure = (of_all_above >= precision) & (probability >= _MORE_LIKELY_WRONG)
        return sure & (known.n_known > 0.0)

    def answers_one(
        self, probability: float, of_all_above: float, n_known: int, precision: float
    ) -> bool:
        """Return whether to answer one text, of which kernels have judged the signs."""
        sure = of_all_above >= precision and probability >= _MORE_LIKELY_WRONG
        return sure and n_known > 0

    def section(self) -> Section:
        """Return what a model file holds of it."""
        arrays: dict[str, AnyArray] = {name: getattr(self, name) for name in _ARRAYS}
        return Section(arrays, {"version": VERSION, "rows": self.n_rows})

    @classmethod
    def from_section(cls, section: Section) -> Rejection:
        """Return what :meth:`section` was called on; ``ValueError`` if it is damaged."""
        metadata, arrays = section.metadata, section.arrays
        require(set(metadata) == {"version", "rows"}, "rejection: unknown metadata")
        require(metadata["version"] == VERSION, "rejection: a version that cannot be read")
        require(type(metadata["rows"]) is int and metadata["rows"] > 0, "rejection: no rows")
        require(set(arrays) == set(_ARRAYS), f"rejection: arrays must be {sorted(_ARRAYS)}")
        size = arrays["scores"].shape
        for name in _ARRAYS:
            shape = (_DIRECTIONS.size + 1,) if name == "weights" else size
            good = arrays[name].dtype == ACCUM and arrays[name].shape == shape and len(shape) == 1
            require(good and bool(np.all(np.isfinite(arrays[name]))), f"rejection: bad {name}")
            rises = name == "weights" or bool(np.all(np.diff(arrays[name]) >= 0.0))
            require(rises, f"rejection: {name} must not fall")
        require(size[0] > 0, "rejection: empty tables")
        own = {name: np.array(arrays[name]) for name in _ARRAYS}
        return cls(**own, n_rows=metadata["rows"])


def stored_rejection(sections: Mapping[str, Section]) -> Rejection | None:
    """Return when not to answer, or None if a model file does not say.

    Raises
    ------
    ModelFileError
        If what it says is damaged.
    """
    if SECTION not in sections:
        return None
    try:
        return Rejection.from_section(sections[SECTION])
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"the model file is damaged: {error}") from error


def _signed_logistic(S: AccumArray, target: BoolArray, weight: AccumArray) -> AccumArray:
    """Return weights of signs, none against its direction, and the bias, with a little ridge."""
    from scipy.optimize import minimize

    center, spread = S.mean(axis=0), S.std(axis=0)
    flat = spread < _LEAST  # the same for all rows, but for rounding: it says nothing
    spread = np.where(flat, 1.0, spread)
    Z = np.column_stack([np.where(flat, 0.0, S - center) / spread * _DIRECTIONS, np.ones(len(S))])
    side = np.where(target, 1.0, -1.0)

    def loss(v: AccumArray) -> tuple[float, AccumArray]:
        margin = side * (Z @ v)
        slope = -weight * side * np.exp(-np.logaddexp(0.0, margin))
        gradient = Z.T @ slope
        gradient[:-1] += v[:-1]
        value = float(weight @ np.logaddexp(0.0, -margin) + 0.5 * v[:-1] @ v[:-1])
        return value, gradient

    bounds = [(0.0, None)] * _DIRECTIONS.size + [(None, None)]
    found = minimize(loss, np.zeros(len(bounds)), jac=True, bounds=bounds, method="L-BFGS-B").x
    own = np.where(flat, 0.0, found[:-1] * _DIRECTIONS / spread)
    return np.append(own, found[-1] - own @ center)


def _isotonic(values: AccumArray, weight: AccumArray) -> AccumArray:
    """Return the closest values that never fall (pool adjacent violators)."""
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, mass in zip(values.tolist(), weight.tolist(), strict=True):
        means.append(value)
        masses.append(mass)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            total = masses[-2] + masses[-1]
            mean = (means[-2] * masses[-2] + means[-1] * masses[-1]) / total
            means[-2:], masses[-2:], sizes[-2:] = [mean], [total], [sizes[-2] + sizes[-1]]
    return np.repeat(means, sizes)

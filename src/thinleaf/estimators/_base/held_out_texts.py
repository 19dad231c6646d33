"""What a second model, fitted to a part of the texts, says on the others: when not to answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from thinleaf._dtypes import AccumArray, AnyArray, BoolArray
from thinleaf.arrays.rows import as_matrix
from thinleaf.estimators.adaptive_tree import AdaptiveSoftmaxTreeClassifier
from thinleaf.softmaxtree.growth.initial_tree import node_seed
from thinleaf.text.inputs import Input
from thinleaf.text.known_terms import Evidence
from thinleaf.text.rejection import LEAST_ROWS, Rejection, signs

_SHARE = 0.2
_MOST_ROWS = 20_000


def fit_model(model: Any, rows: Any, labels: AnyArray, sample_weight: Any) -> bool:
    """Fit a model; return whether Ctrl-C ended it early, which it says in a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, labels, sample_weight=sample_weight)
    for entry in caught:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return any(str(entry.message).startswith("interrupted") for entry in caught)


def learned_rejection(
    model: Any,
    made: Input,
    samples: Any,
    labels: AnyArray,
    sample_weight: Any,
    seed: np.random.SeedSequence,
) -> Rejection | None:
    """Return when not to answer, or None if there are too few texts.

    Parameters
    ----------
    model : estimator
        Fitted to all texts: another one like it is fitted to a part.
    made : Input
        How texts become rows.
    samples : list of str, or dict of columns
    labels : ndarray of shape (n_texts,)
    sample_weight : array-like of shape (n_texts,), optional
    seed : SeedSequence
    """
    rng = np.random.default_rng(node_seed(seed, 3))
    held = _hold_out(labels, rng)
    if np.count_nonzero(held) < LEAST_ROWS:
        return None
    weight = None if sample_weight is None else np.asarray(sample_weight)[~held]
    fitted, others = _part(samples, ~held), _part(samples, held)
    if np.unique(labels[~held]).size < 2 or (weight is not None and not np.any(weight > 0.0)):
        return None
    try:
        part = made.fitted_to(fitted)
        probe = _like(model)
        rows = as_matrix(part.rows(fitted))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            probe.fit(rows, labels[~held], sample_weight=weight)
        if getattr(probe, "ended_", None) == "interrupted":
            raise KeyboardInterrupt
        predictor = probe._predictor
        rows, known = part.rows(others), part.evidence(others)
        S = signs(predictor, rows, known)
        right = predictor.labels[predictor.top_class(rows)] == labels[held]
        made_up = part.nonsense(others, rng)
        N = signs(predictor, part.rows(made_up), part.evidence(made_up))
    except ValueError:  # a part of the texts may leave no term
        return None
    return _from_signs(S, known, right, N)


def rejection_on(
    model: Any, made: Input, samples: Any, labels: AnyArray, seed: np.random.SeedSequence
) -> Rejection | None:
    """Return when a fitted model should not answer, by texts that it has not learned.

    Parameters
    ----------
    model : estimator
    made : Input
    samples : list of str, or dict of columns
    labels : ndarray of shape (n_texts,)
    seed : SeedSequence

    Returns
    -------
    rejection : Rejection or None
        None if there are too few texts.
    """
    predictor = model._predictor
    rows, known = made.rows(samples), made.evidence(samples)
    made_up = made.nonsense(samples, np.random.default_rng(node_seed(seed, 3)))
    N = signs(predictor, made.rows(made_up), made.evidence(made_up))
    right = predictor.labels[predictor.top_class(rows)] == labels
    return _from_signs(signs(predictor, rows, known), known, right, N)


def _from_signs(
    S: AccumArray, known: Evidence, right: BoolArray, nonsense: AccumArray
) -> Rejection | None:
    some = known.n_known > 0.0
    if np.count_nonzero(some) < LEAST_ROWS:
        return None
    return Rejection.fit(S[some], right[some], nonsense)


def n_samples(samples: Any) -> int:
    """Return how many samples texts or columns hold."""
    if isinstance(samples, Mapping):
        return len(next(iter(samples.values()), ()))
    return len(samples)


def _hold_out(labels: AnyArray, rng: np.random.Generator) -> BoolArray:
    """Return which rows to hold out: a fifth of each class, and never all of it."""
    _, ids, counts = np.unique(labels, return_inverse=True, return_counts=True)
    share = min(_SHARE, _MOST_ROWS / labels.size)
    n_held = np.minimum(np.floor(share * counts + rng.random(counts.size)), counts - 1)
    order = rng.permutation(labels.size)
    order = order[np.argsort(ids[order], kind="stable")]
    place = np.arange(labels.size) - np.repeat(np.cumsum(counts) - counts, counts)
    held = np.zeros(labels.size, dtype=bool)
    held[order] = place < np.repeat(n_held, counts)
    return held


def _part(samples: Any, mask: BoolArray) -> Any:
    at = np.flatnonzero(mask).tolist()
    if isinstance(samples, Mapping):
        return {name: [column[i] for i in at] for name, column in samples.items()}
    return [samples[i] for i in at]


def _like(model: Any) -> Any:
    """Return a model to fit, which need not look again for what the first one has found."""
    if hasattr(model, "_probe"):
        return model._probe()
    probe = clone(model)
    known = probe.get_params(deep=False)
    quiet = {"checkpoint": None, "verbose": 0}
    probe.set_params(**{name: value for name, value in quiet.items() if name in known})
    found = getattr(model, "_found", None)
    if isinstance(model, AdaptiveSoftmaxTreeClassifier) and found is not None:
        if len(model.history_) < 2:
            probe._recipe = found
        else:
            probe._known_kind = found.kind
    return probe

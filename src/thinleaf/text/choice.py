"""Which features texts want, words, characters or both: held-out rows of the given texts decide.

Features are learned from three quarters of the texts. Samples of classes, with all of their rows,
are fitted by regularised least squares, which needs only inner products: those of words and of
characters are computed once, and "both" is their mean. Samples of rows would not do: with fewer
rows of a class, characters look better than they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.linalg
from threadpoolctl import threadpool_limits

from thinleaf._dtypes import PARAM, AnyArray, BoolArray, OffsetArray, ParamArray
from thinleaf.text.features import Kind, TextFeatures, as_documents

FEW_TEXTS: Final = 500
"""Of fewer texts, terms that occur once are features, too, and nothing can be held out."""

_WORD = re.compile(r"\w")
_HELD_OUT = 0.25
_N_ROWS = 2500
_N_SAMPLES = 3
_MIN_CLASSES = 20
_SURE = 2.0
"""Standard errors by which longer rows must be better."""
_RIDGE = PARAM(0.3)
"""Of rows of length one; between 0.1 and 1, errors hardly differ."""


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    features : TextFeatures
        Fitted to all texts.
    errors : dict of kind to int
        The errors of each kind on held-out rows; empty if there were too few texts.
    n_rows : int
        How many held-out rows there were.
    """

    features: TextFeatures
    errors: dict[Kind, int]
    n_rows: int


def choose_features(
    texts: Iterable[str], y: npt.ArrayLike, *, random_state: Any = None
) -> TextFeatures:
    """Return features of the kind that errs least on held-out rows, fitted to all texts.

    Parameters
    ----------
    texts : iterable of str
    y : array-like of shape (n_texts,)
        Their labels.
    random_state : int, RandomState or None
        For the rows that are held out and the classes that are looked at.

    Returns
    -------
    features : TextFeatures
        Of kind "tfidf", "chars" or "both". The shorter rows are kept, words before characters
        before both, unless longer ones are better by more than chance would have it.

    Examples
    --------
    >>> from thinleaf.text.choice import choose_features
    >>> choose_features(["a broken arm", "the common cold"], [0, 1]).kind
    'both'
    """
    return choose(texts, y, random_state=random_state).features


def choose(texts: Iterable[str], y: npt.ArrayLike, *, random_state: Any = None) -> Choice:
    """Do as :func:`choose_features`, and say why."""
    from sklearn.utils import check_random_state

    documents, labels = as_documents(texts), np.asarray(y)
    if labels.shape != (len(documents),):
        raise ValueError(f"y must have a label for each of {len(documents)} texts")
    few = len(documents) < FEW_TEXTS
    if not any(map(_WORD.search, documents)):
        return Choice(TextFeatures("chars", min_df=1 if few else 2).fit(documents), {}, 0)
    if few:
        return Choice(TextFeatures("both", min_df=1).fit(documents), {}, 0)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    _, ids = np.unique(labels, return_inverse=True)
    wrong = wrong_rows(TextFeatures("both"), documents, ids, rng)
    kind = _least(wrong)
    errors = {name: int(rows.sum()) for name, rows in wrong.items()}
    n_rows = next(iter(wrong.values())).size
    return Choice(TextFeatures(kind).fit(documents), errors, n_rows)


def _least(wrong: dict[Kind, BoolArray]) -> Kind:
    """Return the kind with the shortest rows that no other one is surely better than."""
    best: Kind = "tfidf"
    by_length: tuple[Kind, ...] = ("chars", "both")
    for kind in by_length:
        n_better = int((wrong[best] & ~wrong[kind]).sum())
        n_worse = int((wrong[kind] & ~wrong[best]).sum())
        # where rows differ, which kind errs is a coin's toss if neither is better
        if n_better - n_worse > _SURE * np.sqrt(n_better + n_worse):
            best = kind
    return best


def wrong_rows(
    both: TextFeatures, documents: list[str], ids: AnyArray, rng: np.random.Generator
) -> dict[Kind, BoolArray]:
    """Return which held-out rows each kind gets wrong, of some samples of classes.

    Parameters
    ----------
    both : TextFeatures
        Of kind "both"; it is fitted to the rows that are not held out.
    documents : list of str
    ids : ndarray of shape (n_texts,)
        The class of each, from 0 on.
    rng : numpy Generator
    """
    order = rng.permutation(ids.size)
    n_held_out = int(_HELD_OUT * ids.size)
    train, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    both.fit([documents[i] for i in train])
    rounds: list[dict[Kind, BoolArray]] = []
    for chosen in _samples(ids[train], rng):
        rows = train[chosen]
        asked = held_out[np.isin(ids[held_out], ids[rows])]
        X = both.transform([documents[i] for i in np.concatenate([rows, asked])])
        rounds.append(_wrong_in(X, both.n_word_terms, ids[rows], ids[asked]))
    return {kind: np.concatenate([wrong[kind] for wrong in rounds]) for kind in rounds[0]}


def _wrong_in(
    X: Any, n_words: int, train_ids: AnyArray, held_out_ids: AnyArray
) -> dict[Kind, BoolArray]:
    """Return which held-out rows each kind gets wrong; X has them after those to learn from."""
    n_train = train_ids.size
    classes, target = np.unique(train_ids, return_inverse=True)
    wanted = np.zeros((n_train, classes.size), dtype=PARAM)
    wanted[np.arange(n_train), target] = 1.0
    words, chars = (_products(block, n_train) for block in (X[:, :n_words], X[:, n_words:]))
    both = words + chars
    kinds: dict[Kind, ParamArray] = {
        "tfidf": _of_length_one(words, X[:, :n_words]),
        "chars": _of_length_one(chars, X[:, n_words:]),
        "both": both,
    }
    return {kind: classes[_least_squares(K, wanted)] != held_out_ids for kind, K in kinds.items()}


def _products(block: Any, n_train: int) -> ParamArray:
    """Return the inner products of rows with the first ones."""
    K: ParamArray = (block @ block[:n_train].T).toarray()
    return K


def _of_length_one(K: ParamArray, block: Any) -> ParamArray:
    """Return inner products as if rows had length one: alone, a block has all of a row's."""
    lengths = np.sqrt(np.asarray(block.multiply(block).sum(axis=1), dtype=PARAM)).ravel()
    scale = PARAM(1.0) / np.where(lengths > 0.0, lengths, PARAM(1.0))
    return (K * scale[:, None] * scale[: K.shape[1]]).astype(PARAM)


def _least_squares(K: ParamArray, wanted: ParamArray) -> AnyArray:
    """Return the best column of ``wanted`` for the rows of K that follow those of ``wanted``.

    Parameters
    ----------
    K : ndarray of shape (n_train + n_held_out, n_train)
        Inner products.
    wanted : ndarray of shape (n_train, n_classes)
    """
    n_train = wanted.shape[0]
    system = K[:n_train].copy()
    system[np.diag_indices(n_train)] += _RIDGE
    with threadpool_limits(limits=1):  # so that bits do not depend on the machine's cores
        weights = scipy.linalg.solve(system, wanted, assume_a="pos", overwrite_a=True)
        scores = K[n_train:] @ weights
    best: AnyArray = scores.argmax(axis=1)
    return best


def _samples(ids: AnyArray, rng: np.random.Generator) -> list[OffsetArray]:
    """Return rows of some samples of classes: all of a class, unless it is too large."""
    counts = np.bincount(ids)
    known = np.flatnonzero(counts)
    most = _N_ROWS // min(known.size, _MIN_CLASSES)
    order = rng.permutation(known)
    number = (np.cumsum(np.minimum(counts[order], most)) - 1) // _N_ROWS
    samples: list[OffsetArray] = []
    for i in range(min(_N_SAMPLES, int(number[-1]) + 1)):
        chosen = order[number == i]
        if chosen.size < 2 and samples:
            break
        rows = [np.flatnonzero(ids == c) for c in chosen]
        rows = [r if r.size <= most else rng.choice(r, most, replace=False) for r in rows]
        samples.append(np.sort(np.concatenate(rows)))
    return samples

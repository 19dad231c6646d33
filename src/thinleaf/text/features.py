"""The recipe from raw text to sparse rows, small and plain enough to be stored in a model file.

Two kinds: tf-idf over the words and word sequences of training texts, or a hash of each of them.
Counting is scikit-learn's. What is stored are arrays and JSON values, never pickled objects, and
what comes back is checked before anything is built from it. Files themselves are for ``persist``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM, AnyArray, ParamArray
from thinleaf.arrays.checks import is_whole
from thinleaf.arrays.ragged import offsets

Kind: TypeAlias = Literal["tfidf", "hashing"]

VERSION: Final = 1
"""Of the recipe and its state. What was stored with another one is refused."""

TOKEN_PATTERN: Final = r"(?u)\b\w+\b"

_MAX_NGRAM = 10
_MAX_BUCKETS = 1 << 30
_MAX_INT = int(np.iinfo(INDEX).max)
_SETTINGS = ("kind", "ngram_range", "min_df", "max_features", "n_buckets", "signed")
_ARRAYS: Final[Mapping[str, Any]] = {"term_bytes": np.uint8, "term_ptr": OFFSET, "idf": PARAM}


class TextFeatures:
    """Features of texts: lower-case words and sequences of words, in rows of length 1.

    Parameters
    ----------
    kind : {"tfidf", "hashing"}
        With "tfidf", features are terms of the training texts, and the value of one is
        ``1 + log(count)`` times its smoothed inverse document frequency. With "hashing", features
        are hashes of terms and values are counts: nothing is learned, and only settings are stored.
    ngram_range : tuple of int
        The number of words in the shortest and in the longest terms.
    min_df : int
        For "tfidf", in how many training texts a term must occur to be a feature.
    max_features : int or None
        For "tfidf", the most features: terms that occur most often are kept, and of equally
        frequent ones those that are first in the order of their characters.
    n_buckets : int
        For "hashing", the number of features: a power of two.
    signed : bool
        For "hashing", whether half of the terms count negative, so that collisions cancel on
        average.

    Examples
    --------
    >>> from thinleaf.text import TextFeatures
    >>> features = TextFeatures(ngram_range=(1, 1)).fit(["a broken arm", "a broken leg"])
    >>> features.feature_names()
    ['a', 'broken']
    >>> features.transform(["Broken toe", "A broken toe"]).toarray()
    array([[0.        , 1.        ],
           [0.70710677, 0.70710677]], dtype=float32)
    """

    def __init__(
        self,
        kind: Kind = "tfidf",
        *,
        ngram_range: tuple[int, int] = (1, 2),
        min_df: int = 2,
        max_features: int | None = 200_000,
        n_buckets: int = 1 << 18,
        signed: bool = True,
    ) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be 'tfidf' or 'hashing', got {kind!r}")
        if not isinstance(signed, bool):
            raise ValueError(f"signed must be True or False, got {signed!r}")
        if max_features is not None:
            max_features = _count("max_features", max_features, _MAX_INT)
        self.kind: Final = kind
        self.ngram_range: Final = _ngram_range(ngram_range)
        self.min_df: Final = _count("min_df", min_df, _MAX_INT)
        self.max_features: Final = max_features
        self.n_buckets: Final = _count("n_buckets", n_buckets, _MAX_BUCKETS)
        self.signed: Final = signed
        if self.n_buckets.bit_count() != 1:
            raise ValueError(f"n_buckets must be a power of two, got {n_buckets}")
        self._terms: list[str] = []
        self._idf: ParamArray = np.empty(0, dtype=PARAM)
        self._vectorizer: Any = self._hashing() if kind == "hashing" else None

    def fit(self, texts: Iterable[str]) -> TextFeatures:
        """Learn terms and their inverse document frequencies; of kind "hashing", nothing.

        Parameters
        ----------
        texts : iterable of str
            The training texts.

        Raises
        ------
        ValueError
            If no term is left.
        """
        documents = _documents(texts)
        if self.kind == "tfidf":
            self._set(*self._learn(documents))
        return self

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """Return a row for each text.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        csr_matrix of shape (n_texts, n_features)
            float32 values and ascending int32 indices. A text without known terms is a row of
            zeros.
        """
        self._check_fitted()
        documents = _documents(texts)
        if not documents:
            return sp.csr_matrix(np.empty((0, self.n_features), dtype=PARAM))
        X = sp.csr_matrix(self._vectorizer.transform(documents), dtype=PARAM)
        if X.nnz > _MAX_INT:
            raise ValueError(f"{X.nnz} entries are more than 2^31 - 1: transform fewer texts")
        X.sort_indices()
        X.indices = X.indices.astype(INDEX, copy=False)
        X.indptr = X.indptr.astype(INDEX, copy=False)
        return X

    @property
    def n_features(self) -> int:
        """The number of columns of transformed texts."""
        self._check_fitted()
        return self.n_buckets if self.kind == "hashing" else len(self._terms)

    def feature_names(self) -> list[str]:
        """Return the term of each feature; kind "hashing" knows none.

        Raises
        ------
        ValueError
            If features are hashes.
        """
        if self.kind == "hashing":
            raise ValueError("hashed features have no names; kind='tfidf' has")
        self._check_fitted()
        return list(self._terms)

    def to_arrays(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return all that :meth:`from_arrays` needs.

        Returns
        -------
        arrays : dict
            For "tfidf", ``term_bytes`` (the terms in UTF-8, one after the other; uint8),
            ``term_ptr`` (where they begin and end; int64) and ``idf`` (float32). Empty for
            "hashing".
        metadata : dict
            The settings, as JSON values.
        """
        self._check_fitted()
        metadata = {name: getattr(self, name) for name in _SETTINGS}
        metadata |= {"version": VERSION, "ngram_range": list(self.ngram_range)}
        if self.kind == "hashing":
            return {}, metadata
        encoded = [term.encode() for term in self._terms]
        return {
            "term_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(),
            "term_ptr": offsets([len(term) for term in encoded]),
            "idf": self._idf.copy(),
        }, metadata

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]
    ) -> TextFeatures:
        """Return what :meth:`to_arrays` was called on: it transforms every text as before.

        Raises
        ------
        ValueError
            If anything about arrays or metadata is not as :meth:`to_arrays` makes it.
        """
        features = cls(**_settings(metadata))
        _check_arrays(arrays, {} if features.kind == "hashing" else _ARRAYS)
        if features.kind == "tfidf":
            terms = _decode_terms(arrays["term_bytes"], arrays["term_ptr"])
            _check_idf(arrays["idf"], len(terms))
            features._set(terms, arrays["idf"].copy())
        return features

    def _check_fitted(self) -> None:
        if self._vectorizer is None:
            raise NotFittedError("this TextFeatures has not learned its terms yet: call fit first")

    def _learn(self, documents: list[str]) -> tuple[list[str], ParamArray]:
        """Return terms, in the order of their characters, and inverse document frequencies."""
        counter = CountVectorizer(
            token_pattern=TOKEN_PATTERN, ngram_range=self.ngram_range, dtype=PARAM
        )
        try:
            counts = counter.fit_transform(documents)
        except ValueError as error:  # its only cause is that no text has a term
            raise ValueError(f"no terms in {len(documents)} texts to learn from") from error
        kept = _frequent(counts, self.min_df, self.max_features)
        if kept.size == 0:
            raise ValueError(
                f"no term is in {self.min_df} of the {len(documents)} texts: "
                "lower min_df, or give more texts"
            )
        idf = TfidfTransformer().fit(counts[:, kept]).idf_
        return counter.get_feature_names_out()[kept].tolist(), idf.astype(PARAM)

    def _set(self, terms: list[str], idf: ParamArray) -> None:
        """Become fitted. Whether fitted or read from a file, the state is these two."""
        vectorizer = TfidfVectorizer(
            token_pattern=TOKEN_PATTERN,
            ngram_range=self.ngram_range,
            sublinear_tf=True,
            dtype=PARAM,
            vocabulary={term: index for index, term in enumerate(terms)},
        )
        vectorizer.idf_ = idf
        self._terms, self._idf, self._vectorizer = terms, idf, vectorizer

    def _hashing(self) -> HashingVectorizer:
        return HashingVectorizer(
            token_pattern=TOKEN_PATTERN,
            ngram_range=self.ngram_range,
            n_features=self.n_buckets,
            alternate_sign=self.signed,
            dtype=PARAM,
        )


def _frequent(counts: Any, min_df: int, max_features: int | None) -> AnyArray:
    """Return which columns of counts, in ascending order, to keep."""
    n_texts = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = np.flatnonzero(n_texts >= min_df)
    if max_features is None or kept.size <= max_features:
        return kept
    totals = np.bincount(counts.indices, counts.data.astype(ACCUM), counts.shape[1])[kept]
    most = np.argsort(-totals, kind="stable")[:max_features]
    return np.sort(kept[most])


def _documents(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str | bytes):
        raise ValueError("texts must be a list of strings, got one string")
    documents = list(texts)
    for number, text in enumerate(documents):
        if not isinstance(text, str):
            raise ValueError(f"texts must be strings, but number {number} is {type(text).__name__}")
    return documents


def _count(name: str, value: Any, highest: int) -> int:
    if not is_whole(value):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if not 1 <= value <= highest:
        raise ValueError(f"{name} must be in 1..{highest}, got {value}")
    return int(value)


def _ngram_range(value: Any) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"ngram_range must be two integers, got {value!r}")
    low, high = (_count("ngram_range", number, _MAX_NGRAM) for number in value)
    if low > high:
        raise ValueError(f"ngram_range must be the lower number first, got {value!r}")
    return low, high


def _settings(metadata: Any) -> dict[str, Any]:
    """Return the arguments that stored metadata stand for; the constructor checks their values."""
    if not isinstance(metadata, Mapping):
        raise ValueError(f"text features: metadata must be an object, got {metadata!r}")
    if metadata.get("version") != VERSION:
        raise ValueError(
            f"text features: version {metadata.get('version')!r} cannot be read, only {VERSION}"
        )
    if set(metadata) != {"version", *_SETTINGS}:
        raise ValueError(
            f"text features: metadata must have {sorted({'version', *_SETTINGS})}, "
            f"got {sorted(map(str, metadata))}"
        )
    return {name: metadata[name] for name in _SETTINGS}


def _check_arrays(arrays: Any, expected: Mapping[str, Any]) -> None:
    if not isinstance(arrays, Mapping) or set(arrays) != set(expected):
        found = sorted(map(str, arrays)) if isinstance(arrays, Mapping) else arrays
        raise ValueError(f"text features: arrays must be {sorted(expected)}, got {found}")
    for name, dtype in expected.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
            raise ValueError(
                f"text features: {name} must be a vector of {np.dtype(dtype)}, "
                f"got {getattr(array, 'dtype', type(array).__name__)} "
                f"of shape {getattr(array, 'shape', None)}"
            )


def _decode_terms(content: AnyArray, ptr: AnyArray) -> list[str]:
    n_terms = ptr.size - 1
    if not 1 <= n_terms <= _MAX_INT:
        raise ValueError(f"text features: term_ptr has {ptr.size} entries, for {n_terms} terms")
    if ptr[0] != 0 or ptr[-1] != content.size or np.any(ptr[1:] <= ptr[:-1]):
        raise ValueError(
            f"text features: term_ptr must ascend from 0 to {content.size}, the size of term_bytes"
        )
    joined = content.tobytes()
    try:
        terms = [joined[begin:end].decode() for begin, end in pairwise(ptr.tolist())]
    except UnicodeDecodeError as error:
        raise ValueError(f"text features: a term is not UTF-8: {error}") from error
    if len(set(terms)) < n_terms:
        raise ValueError(f"text features: {n_terms - len(set(terms))} terms occur twice")
    return terms


def _check_idf(idf: AnyArray, n_terms: int) -> None:
    if idf.size != n_terms:
        raise ValueError(f"text features: {idf.size} entries of idf for {n_terms} terms")
    if not np.all(np.isfinite(idf)) or np.any(idf <= 0.0):
        raise ValueError("text features: idf must be positive and finite")

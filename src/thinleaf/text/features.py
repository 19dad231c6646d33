"""The recipe from raw text to sparse rows, small and plain enough to be stored in a model file.

Terms of training texts, weighted by tf-idf: words and word sequences, sequences of characters
within words, or both; or a hash of each word sequence. Reading is compiled
(:mod:`thinleaf.text.reader`), and equal to what scikit-learn's vectorizers do. What is stored are
arrays and JSON values, never pickled objects, and what comes back is checked before anything is
built from it. Files themselves are for ``persist``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, get_args

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray, ParamArray
from thinleaf.arrays.checks import is_whole
from thinleaf.text.encoding import all_encoded
from thinleaf.text.reader import Reader
from thinleaf.text.vocabulary import Vocabulary, check_arrays, checked, idf_among, learn

if TYPE_CHECKING:
    import scipy.sparse as sp

Kind: TypeAlias = Literal["tfidf", "chars", "both", "hashing"]

VERSION: Final = 1
"""Of the recipe and its state, where words alone are features."""

VERSION_WITH_CHARS: Final = 2
"""The same for kinds "chars" and "both". What was stored with another version is refused."""

_MAX_NGRAM = 10
_MAX_BUCKETS = 1 << 30
_MAX_INT = int(np.iinfo(INDEX).max)
_SETTINGS = ("kind", "ngram_range", "min_df", "max_features", "n_buckets", "signed")


class TextFeatures:
    r"""Features of texts: lower-case words, word sequences and characters, in rows of length 1.

    Parameters
    ----------
    kind : {"tfidf", "chars", "both", "hashing"}
        With "tfidf", features are words and word sequences of the training texts. With "chars",
        they are sequences of characters that lie within a word and the spaces around it. With
        "both", words and characters stand side by side, each with half of a row's squared length.
        The value of such a term is ``1 + log(count)`` times its smoothed inverse document
        frequency. With "hashing", features are hashes of words and word sequences, and values are
        counts: nothing is learned, and only settings are stored.
    ngram_range : tuple of int
        The number of words in the shortest and in the longest terms.
    char_range : tuple of int
        For "chars" and "both", the number of characters in the shortest and in the longest terms.
    min_df : int
        In how many training texts a term must occur to be a feature.
    max_features : int or None
        The most features; with "both", the most of either. Terms that occur most often are kept,
        and of equally frequent ones those that are first in the order of their characters.
    n_buckets : int
        For "hashing", the number of features: a power of two.
    signed : bool
        For "hashing", whether half of the terms count negative, so that collisions cancel on
        average.

    Notes
    -----
    Lower case is that of ``str.lower``; words are runs of ``\w``, of which terms are one space
    apart; characters lie between the white space of ``str.split``. Rows are those of
    scikit-learn's ``TfidfVectorizer`` with the same vocabulary, ``sublinear_tf=True`` and
    ``token_pattern=r"(?u)\b\w+\b"`` or ``analyzer="char_wb"``. Half of a surrogate pair is no
    part of a word, and no term of characters has one: no file could hold it.

    Examples
    --------
    >>> from thinleaf.text import TextFeatures
    >>> features = TextFeatures(ngram_range=(1, 1)).fit(["a broken arm", "a broken leg"])
    >>> features.feature_names()
    ['a', 'broken']
    >>> features.transform(["Broken toe", "A broken toe"]).toarray()
    array([[0.        , 1.        ],
           [0.70710677, 0.70710677]], dtype=float32)
    >>> features.row_of("A broken toe")
    (array([0, 1], dtype=int32), array([0.70710677, 0.70710677], dtype=float32))
    """

    def __init__(
        self,
        kind: Kind = "tfidf",
        *,
        ngram_range: tuple[int, int] = (1, 2),
        char_range: tuple[int, int] = (4, 4),
        min_df: int = 2,
        max_features: int | None = 200_000,
        n_buckets: int = 1 << 18,
        signed: bool = True,
    ) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {get_args(Kind)}, got {kind!r}")
        if not isinstance(signed, bool):
            raise ValueError(f"signed must be True or False, got {signed!r}")
        if max_features is not None:
            max_features = _count("max_features", max_features, _MAX_INT)
        self.kind: Final = kind
        self.ngram_range: Final = _range("ngram_range", ngram_range)
        self.char_range: Final = _range("char_range", char_range)
        self.min_df: Final = _count("min_df", min_df, _MAX_INT)
        self.max_features: Final = max_features
        self.n_buckets: Final = _count("n_buckets", n_buckets, _MAX_BUCKETS)
        self.signed: Final = signed
        if self.n_buckets.bit_count() != 1:
            raise ValueError(f"n_buckets must be a power of two, got {n_buckets}")
        self._vocabulary: Vocabulary | None = None
        self._reader: Reader | None = None
        if kind == "hashing":
            self._reader = Reader(self.ngram_range, None, n_buckets=self.n_buckets, signed=signed)

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
        documents = as_documents(texts)
        if self.kind == "tfidf":
            self._set(self._learn(documents, is_chars=False))
        elif self.kind == "chars":
            self._set(self._learn(documents, is_chars=True))
        elif self.kind == "both":
            words = self._learn(documents, is_chars=False)
            self._set(words + self._learn(documents, is_chars=True))
        return self

    def extended(self, texts: Iterable[str]) -> tuple[TextFeatures, IndexArray]:
        """Return features that also have the frequent terms of more texts, and where old ones are.

        Terms that are known keep their inverse document frequencies, so rows of texts without new
        terms keep their values. ``max_features`` limits what is new alone.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        features : TextFeatures
            This one if there is nothing new, as there never is of kind "hashing".
        moved : ndarray of shape (n_features,)
            The number that each old feature has there; ascending.
        """
        same = np.arange(self.n_features, dtype=INDEX)
        documents = as_documents(texts)
        if self.kind == "hashing" or not documents:
            return self, same
        old = self._vocabulary or self._fail()
        kinds = {"tfidf": (False,), "chars": (True,), "both": (False, True)}[self.kind]
        added = [self._unknown(old, documents, is_chars=is_chars) for is_chars in kinds]
        if all(part is None for part in added):
            return self, same
        parts = []
        for is_chars, part in zip(kinds, added, strict=True):
            known = old.blocks()[is_chars]
            parts.append(known if part is None else known + part)
        joined = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        n_words = 0 if self.kind == "chars" else parts[0].n_terms
        out = copy.copy(self)
        out._set(replace(joined, n_words=n_words))
        shift = n_words - old.n_words
        return out, np.where(same < old.n_words, same, same + shift).astype(INDEX)

    def _unknown(
        self, old: Vocabulary, documents: list[str], *, is_chars: bool
    ) -> Vocabulary | None:
        """Return the frequent terms of texts that are not known, or None if there are none."""
        try:
            found = self._learn(documents, is_chars=is_chars)
        except ValueError:  # no term is frequent
            return None
        new = old.unknown(found, is_chars=is_chars)
        if new.n_terms == 0:
            return None
        return replace(new, idf=idf_among(new.idf, len(documents), old.idf, self.min_df))

    def fit_transform(self, texts: Iterable[str], n_jobs: int = 1) -> sp.csr_matrix:
        """Learn terms of texts, and return their rows, as :meth:`fit` and :meth:`transform` do."""
        documents = as_documents(texts)
        return self.fit(documents).transform(documents, n_jobs)

    def transform(self, texts: Iterable[str], n_jobs: int = 1) -> sp.csr_matrix:
        """Return a row for each text.

        Parameters
        ----------
        texts : iterable of str
        n_jobs : int
            Threads; -1 is all cores. Rows are the same whatever their number.

        Returns
        -------
        csr_matrix of shape (n_texts, n_features)
            float32 values and ascending int32 indices. A text without known terms is a row of
            zeros.
        """
        import scipy.sparse as sp

        reader = self.reader
        documents = as_documents(texts)
        ptr, indices, values = reader.rows(documents, n_jobs)
        if indices.size > _MAX_INT:
            raise ValueError(
                f"{indices.size} entries are more than 2^31 - 1: transform fewer texts"
            )
        shape = (len(documents), self.n_features)
        X = sp.csr_matrix((values, indices, ptr.astype(INDEX)), shape=shape, copy=False)
        X.has_canonical_format = True
        return X

    def row_of(self, text: str) -> tuple[IndexArray, ParamArray]:
        """Return the row of one text, without a matrix: in a few microseconds.

        Parameters
        ----------
        text : str

        Returns
        -------
        indices : ndarray of int32
            Ascending.
        values : ndarray of float32
            To the bit as in :meth:`transform`.
        """
        return (self._reader or self._fail()).row(text)

    @property
    def reader(self) -> Reader:
        """What reads texts; another one after the next fit."""
        return self._reader or self._fail()

    def reader_of_known_terms(self) -> Reader | None:
        """Return what finds the shortest sequences of words that may be features, or None.

        Where characters alone are features, it finds the longest sequences of them; hashes say
        nothing of what is known.
        """
        if self.kind == "hashing":
            return None
        vocabulary = self._vocabulary or self._fail()
        if self.kind == "chars":
            return Reader(None, (self.char_range[1],) * 2, vocabulary)
        return Reader((self.ngram_range[0],) * 2, None, vocabulary)

    @property
    def n_features(self) -> int:
        """The number of columns of transformed texts."""
        if self.kind == "hashing":
            return self.n_buckets
        return (self._vocabulary or self._fail()).n_terms

    @property
    def n_word_terms(self) -> int:
        """How many of the features are words and word sequences: those before characters."""
        if self.kind == "hashing":
            return self.n_buckets
        return (self._vocabulary or self._fail()).n_words

    def feature_names(self) -> list[str]:
        """Return the term of each feature; kind "hashing" knows none.

        With "both", terms of characters are between quotes: no word has any.

        Raises
        ------
        ValueError
            If features are hashes.
        """
        if self.kind == "hashing":
            raise ValueError("hashed features have no names; those of other kinds have")
        vocabulary = self._vocabulary or self._fail()
        terms, n_words = vocabulary.terms, vocabulary.n_words
        if self.kind == "both":
            return terms[:n_words] + [f"'{term}'" for term in terms[n_words:]]
        return list(terms)

    def to_arrays(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return all that :meth:`from_arrays` needs.

        Returns
        -------
        arrays : dict
            ``term_bytes`` (the terms in UTF-8, one after the other; uint8), ``term_ptr`` (where
            they begin and end; int64) and ``idf`` (float32). Empty for "hashing".
        metadata : dict
            The settings, as JSON values; with "chars" and "both", how many terms are words.
        """
        vocabulary = None if self.kind == "hashing" else self._vocabulary or self._fail()
        metadata: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS}
        metadata |= {"version": VERSION, "ngram_range": list(self.ngram_range)}
        if vocabulary is None:
            return {}, metadata
        if self.kind != "tfidf":
            metadata |= {
                "version": VERSION_WITH_CHARS,
                "char_range": list(self.char_range),
                "n_words": vocabulary.n_words,
            }
        return vocabulary.to_arrays(), metadata

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
        settings, n_words = _settings(metadata)
        features = cls(**settings)
        if features.kind == "hashing":
            check_arrays(arrays, {})
        else:
            features._set(checked(arrays, n_words))
        return features

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without addresses, which are those of this process."""
        return {**self.__dict__, "_reader": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state, and make a reader of it."""
        self.__dict__.update(state)
        if self.kind == "hashing":
            self._reader = Reader(
                self.ngram_range, None, n_buckets=self.n_buckets, signed=self.signed
            )
        elif self._vocabulary is not None:
            self._set(self._vocabulary)

    def _fail(self) -> NoReturn:
        # by its name: what predicts, and may reach this module, knows no scikit-learn
        error: type[ValueError] = import_module("sklearn.exceptions").NotFittedError
        raise error("this TextFeatures has not learned its terms yet: call fit first")

    def _blocks(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Return which sequences of words and of characters there are."""
        return (
            None if self.kind == "chars" else self.ngram_range,
            None if self.kind == "tfidf" else self.char_range,
        )

    def _learn(self, documents: list[str], *, is_chars: bool) -> Vocabulary:
        reader = Reader(None, self.char_range) if is_chars else Reader(self.ngram_range, None)
        content, text_ptr = all_encoded(documents)
        return learn(
            reader.table_for(content),
            content,
            text_ptr,
            min_df=self.min_df,
            max_features=self.max_features,
            is_chars=is_chars,
        )

    def _set(self, vocabulary: Vocabulary) -> None:
        """Become fitted. Whether fitted or read from a file, the state is this."""
        self._reader = Reader(*self._blocks(), vocabulary)
        self._vocabulary = vocabulary


def as_documents(texts: Iterable[str]) -> list[str]:
    """Return texts as a list; ``ValueError`` if one of them is no string."""
    if isinstance(texts, str | bytes):
        raise ValueError("texts must be a list of strings, got one string")
    documents = list(texts)
    if set(map(type, documents)) <= {str}:
        return documents
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


def _range(name: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be two integers, got {value!r}")
    low, high = (_count(name, number, _MAX_NGRAM) for number in value)
    if low > high:
        raise ValueError(f"{name} must be the lower number first, got {value!r}")
    return low, high


def _settings(metadata: Any) -> tuple[dict[str, Any], int | None]:
    """Return the arguments that stored metadata stand for, and how many terms are words.

    The constructor checks the arguments' values.
    """
    if not isinstance(metadata, Mapping):
        raise ValueError(f"text features: metadata must be an object, got {metadata!r}")
    version = metadata.get("version")
    if not is_whole(version) or version not in (VERSION, VERSION_WITH_CHARS):
        raise ValueError(
            f"text features: version {version!r} cannot be read, only {VERSION} and "
            f"{VERSION_WITH_CHARS}"
        )
    with_chars = version == VERSION_WITH_CHARS
    names = {*_SETTINGS, *(("char_range",) if with_chars else ())}
    expected = {"version", *names, *(("n_words",) if with_chars else ())}
    if set(metadata) != expected:
        raise ValueError(
            f"text features: metadata must have {sorted(expected)}, "
            f"got {sorted(map(str, metadata))}"
        )
    kinds = ("chars", "both") if with_chars else ("tfidf", "hashing")
    if metadata["kind"] not in kinds:
        raise ValueError(
            f"text features: kind must be one of {kinds} in version {version}, "
            f"got {metadata['kind']!r}"
        )
    n_words = metadata.get("n_words")
    if with_chars and (not is_whole(n_words) or (metadata["kind"] == "chars" and n_words != 0)):
        raise ValueError(f"text features: {n_words!r} terms cannot be words")
    return {name: metadata[name] for name in names}, n_words

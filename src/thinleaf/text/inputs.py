"""What a model of texts is given, as rows: of one text a sample, of columns, or of an encoder.

An :class:`Input` is made in ``fit``, stored in sections of the model file, and made again from
them. :func:`text_list` takes texts in whatever users have them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import ModelFileError
from thinleaf.arrays.rows import CSR, Rows
from thinleaf.model.file_parts import TEXT_SECTIONS, Section
from thinleaf.text.known_terms import Evidence, KnownTerms

if TYPE_CHECKING:
    from thinleaf.text.features import TextFeatures


class Input(ABC):
    """How samples as users have them become rows of a model."""

    kind: ClassVar[str]
    """The section of a model file that holds it."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Width of a row."""

    @abstractmethod
    def rows(self, X: Any, n_jobs: int = 1) -> Rows:
        """Return a row for each sample."""

    @abstractmethod
    def one(self, x: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one sample as kernels take it: indices and values, or a dense row and None."""

    @abstractmethod
    def evidence(self, X: Any) -> Evidence:
        """Return what is known of each sample."""

    @abstractmethod
    def fitted_to(self, X: Any) -> Input:
        """Return the same kind of input, learned from other samples."""

    def extended(self, X: Any) -> tuple[Input, IndexArray]:
        """Return the same input with the features of more samples, and where old ones are.

        Old features keep their meaning and their order. What learns nothing stays as it is.
        """
        return self, np.arange(self.n_features, dtype=INDEX)

    @abstractmethod
    def nonsense(self, X: Any, rng: np.random.Generator) -> Any:
        """Return samples that are made up of parts of others, and mean nothing."""

    def attached(self, encoder: Any) -> Input:
        """Return the same with an encoder; ``ValueError`` if it takes none, or another one."""
        raise ValueError("the model makes features of texts itself, and takes no encoder")

    def cells(self, X: Any) -> list[list[str]] | None:
        """Return the columns of a table as strings; None if samples are no table."""
        return None

    @abstractmethod
    def feature_name(self, feature: int) -> str:
        """Return what a feature stands for."""

    @abstractmethod
    def section(self) -> Section:
        """Return what :func:`input_of` makes it of again."""


class Texts(Input):
    """One text a sample.

    Parameters
    ----------
    features : TextFeatures
        Fitted.
    """

    kind = "text"

    def __init__(self, features: TextFeatures) -> None:
        self.features = features
        self._names: list[str] | None = None
        self._known: KnownTerms | None = None

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.features.n_features

    def rows(self, X: Any, n_jobs: int = 1) -> CSR:
        """Return a row for each text."""
        matrix = self.features.transform(text_list(X), n_jobs=n_jobs)
        return CSR(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])

    def one(self, x: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return the indices and values of a text."""
        if not isinstance(x, str):
            raise ValueError(f"a sample must be a text, got {type(x).__name__}")
        return self.features.row_of(x)

    def evidence(self, X: Any) -> Evidence:
        """Return how many terms of each text are known, and the share that is not."""
        if self._known is None:
            self._known = KnownTerms(self.features)
        return self._known.evidence(text_list(X))

    def fitted_to(self, X: Any) -> Texts:
        """Return the same features, learned from other texts."""
        return Texts(copy.copy(self.features).fit(text_list(X)))

    def extended(self, X: Any) -> tuple[Texts, IndexArray]:
        """Return the same features and new terms of more texts, and where old ones are."""
        features, moved = self.features.extended(text_list(X))
        return (self if features is self.features else Texts(features)), moved

    def nonsense(self, X: Any, rng: np.random.Generator) -> list[str]:
        """Return texts of random words."""
        return word_salad(text_list(X), rng)

    def feature_name(self, feature: int) -> str:
        """Return the term of a feature, or the number of its bucket."""
        if self.features.kind == "hashing":
            return f"bucket {feature}"
        if self._names is None:
            self._names = self.features.feature_names()
        return self._names[feature]

    def section(self) -> Section:
        """Return settings and terms."""
        return Section(*self.features.to_arrays())


def input_of(sections: Mapping[str, Section], n_features: int | None) -> Input | None:
    """Return how samples become rows of a model, or None if the file does not say.

    Parameters
    ----------
    sections : mapping of str to Section
        Of a model.
    n_features : int or None
        Of the same; None if that is not known.

    Raises
    ------
    ModelFileError
        If a section is damaged, or does not fit the model.
    """
    found = [name for name in TEXT_SECTIONS if name in sections]
    if not found:
        return None
    try:
        require(len(found) == 1, f"sections {found} exclude each other")
        made = _MAKERS[found[0]](sections[found[0]])
        fits = n_features is None or made.n_features == n_features
        require(fits, "text features do not fit the model")
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"the model file has no valid recipe for texts: {error}") from error
    return made


def _texts(section: Section) -> Input:
    from thinleaf.text.features import TextFeatures

    return Texts(TextFeatures.from_arrays(section.arrays, section.metadata))


def _columns(section: Section) -> Input:
    from thinleaf.text.columns import Columns

    return Columns.from_section(section)


def _encoded(section: Section) -> Input:
    from thinleaf.text.encoded import Encoded

    return Encoded.from_section(section)


_MAKERS = {"text": _texts, "columns": _columns, "encoder": _encoded}


# -- texts that mean nothing -----------------------------------------------------------------------


_UNKNOWN = "\ua840\ua841\ua842\ua843\ua844"
"""Letters of a script that is no longer written."""


def word_salad(texts: list[str], rng: np.random.Generator) -> list[str]:
    """Return texts of the words of texts, drawn at random, and of words that nobody knows."""
    split = [text.split() for text in texts]
    words = [word for part in split for word in part]
    if not words:
        return list(texts)
    made = []
    for part in split:
        drawn = rng.integers(len(words), size=max(len(part), 1)).tolist()
        foreign = (rng.random(len(drawn)) < rng.uniform(0.0, 0.5)).tolist()
        pairs = zip(drawn, foreign, strict=True)
        made.append(" ".join(_UNKNOWN if is_foreign else words[i] for i, is_foreign in pairs))
    return made


# -- texts as users have them ----------------------------------------------------------------------


def text_list(X: Any, name: str = "texts") -> list[str]:
    """Return texts as a list.

    Parameters
    ----------
    X : sequence of str
        A list, a NumPy array, or a column of pandas, Polars or Arrow.
    name : str
        What to call them.

    Raises
    ------
    ValueError
        If one is no string, with what to do about it.
    """
    if isinstance(X, str | bytes):
        raise ValueError(f"{name} must be a list of strings, got one string: give [text]")
    texts: list[Any] = X if type(X) is list else _listed(X, name)
    for text in texts:
        if type(text) is not str:
            return _strings(texts, name)
    return texts


def _listed(X: Any, name: str) -> list[Any]:
    if isinstance(X, Mapping) or column_names(X) is not None:
        raise ValueError(
            f"{name} must be one column of strings, got a table with the columns "
            f"{list(column_names(X) or X)}: give one of them, or name text_columns"
        )
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"{name} must have one axis, got shape {X.shape}")
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(X, method):
            listed = getattr(X, method)()
            return listed if isinstance(listed, list) else [listed]
    try:
        return list(X)
    except TypeError:
        raise ValueError(f"{name} must be a list of strings, got {type(X).__name__}") from None


def _strings(texts: list[Any], name: str) -> list[str]:
    for number, text in enumerate(texts):
        if isinstance(text, str):  # of a subclass, such as NumPy's
            continue
        missing = is_missing(text) or (isinstance(text, Number) and text != text)
        what = "missing" if missing else f"{text!r}, a {type(text).__name__}"
        hint = "leave such rows out, or fill in ''" if missing else "make strings of them first"
        raise ValueError(f"{name} must be strings, but number {number} is {what}: {hint}")
    return [str(text) for text in texts]


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a table (pandas, Polars, Arrow); None of others."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None or callable(names) else list(names)


def is_rows(X: Any) -> bool:
    """Return whether input is rows of features: numbers in an array or a list, or sparse ones."""
    if isinstance(X, CSR) or hasattr(X, "indptr") or hasattr(X, "tocsr"):
        return True
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "fiubc" or (X.ndim > 1 and X.dtype.kind not in "US")
    if isinstance(X, list | tuple):
        return bool(X) and hasattr(X[0], "__len__") and not _is_sample(X[0])
    return False


def _is_sample(x: Any) -> bool:
    """Return whether it is a text, a sample with columns, or words: no row of numbers."""
    if isinstance(x, list | tuple):
        return any(isinstance(value, str) for value in x)
    return isinstance(x, str | bytes | Mapping) or _holds_texts(x)


def _holds_texts(x: Any) -> bool:
    """Return whether it is an array of strings, or a row of a table with such."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or getattr(dtype, "kind", "O") not in "OUS":
        return False
    return any(isinstance(value, str) for value in np.ravel(x))


def checked_sample(x: Any) -> Any:
    """Return a row as it is; ``ValueError`` if it is neither that nor a text."""
    words = isinstance(x, list | tuple) and any(isinstance(value, str) for value in x)
    if x is None or words or isinstance(x, bytes | Number) or is_missing(x) or _holds_texts(x):
        what = "a list of texts" if words else repr(x) if x is None else type(x).__name__
        hint = "; of a row of a table, its to_dict()" if hasattr(x, "to_dict") else ""
        raise ValueError(f"give one text, a str, or a row of features, got {what}{hint}")
    return x


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or what pandas has in its place."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")

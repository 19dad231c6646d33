"""Predictors that take one sample as the user has it: a text, or a mapping of columns."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from thinleaf._dtypes import AccumArray, AnyArray, IndexArray
from thinleaf.arrays.files import ModelFileError
from thinleaf.model.file_parts import TEXT_SECTIONS, Section
from thinleaf.model.packed_predictor import PackedPredictor
from thinleaf.model.predictor import Predictor
from thinleaf.text.direct import TextToClass
from thinleaf.text.inputs import Input, Texts, checked_sample, input_of

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.model.explanation.explainer import Explainer


class StoredInput:
    """How samples become rows, made of a model's sections when it is first needed.

    Parameters
    ----------
    sections : mapping of str to Section
    n_features : int
        Of the model.
    made : Input, optional
        What the sections would give.
    """

    def __init__(
        self, sections: Mapping[str, Section], n_features: int, made: Input | None = None
    ) -> None:
        self._sections = {name: sections.get(name) for name in TEXT_SECTIONS}
        self._n_features = n_features
        if made is not None:
            self.__dict__["input"] = made

    @cached_property
    def input(self) -> Input:
        """What makes rows."""
        given = {name: part for name, part in self._sections.items() if part is not None}
        made = input_of(given, self._n_features)
        if made is None:
            raise ModelFileError("the model does not say how texts become rows")
        return made

    def is_of(self, sections: Mapping[str, Section], n_features: int) -> bool:
        """Return whether it was made of these very sections."""
        same = all(sections.get(name) is part for name, part in self._sections.items())
        return same and n_features == self._n_features


class TextPredictor(PackedPredictor):
    """A packed tree or forest that also takes one sample as the user has it."""

    source: StoredInput

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the class of one text or row."""
        if type(x) is str:
            return self._class_of(x)
        return super().top_class_one(*self._row(x, values))

    def top_k_one(self, x: Any, values: Any, k: int) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of one text or row."""
        return super().top_k_one(*self._row(x, values), k)

    def sample_of(self, x: Any, values: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one text or row as a row."""
        return super().sample_of(*self._row(x, values))

    def _row(self, x: Any, values: Any) -> tuple[Any, Any]:
        if values is None and isinstance(x, str | Mapping):
            return self.source.input.one(x)
        return checked_sample(x), values

    @cached_property
    def direct(self) -> TextToClass | None:
        """What takes texts to classes in one compiled call, where that is possible."""
        made = self.source.input
        if not isinstance(made, Texts):
            return None
        return TextToClass(made.features, weakref.proxy(self))

    @cached_property
    def _class_of(self) -> Callable[[str], int]:
        """What takes a text to its class."""
        made = self.source.input
        if self.direct is not None:
            return self.direct
        one, answer = made.one, super().top_class_one
        return lambda text: answer(*one(text))


class WrappedPredictor(Predictor):
    """Any predictor of rows, which with this also takes one sample as the user has it.

    Parameters
    ----------
    inner : Predictor
    input : Input
    """

    def __init__(self, inner: Predictor, input: Input) -> None:
        self._inner, self._input = inner, input
        self.labels, self.label_list = inner.labels, inner.label_list
        self.n_features = inner.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that prediction uses."""
        return self._inner.nbytes

    def top_k(self, rows: Any, k: int, n_jobs: int = 1) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of each row, best first, and their probabilities."""
        return self._inner.top_k(rows, k, n_jobs)

    def probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the probability of every class."""
        return self._inner.probabilities(rows, n_jobs)

    def probability_of(
        self, rows: Any, ids: IndexArray, smooth: bool = True, n_jobs: int = 1
    ) -> AccumArray:
        """Return the probability of one class of each row."""
        return self._inner.probability_of(rows, ids, smooth, n_jobs)

    def top_class(self, rows: Any, n_jobs: int = 1) -> IndexArray:
        """Return the class of each row."""
        return self._inner.top_class(rows, n_jobs)

    def log_probabilities(self, rows: Any, n_jobs: int = 1) -> AccumArray:
        """Return the logarithm of :meth:`probabilities`."""
        return self._inner.log_probabilities(rows, n_jobs)

    def sparse_probabilities(self, rows: Any, n_jobs: int = 1) -> sp.csr_array:
        """Return the probabilities of the classes that a row's softmax is over."""
        return self._inner.sparse_probabilities(rows, n_jobs)

    def top_class_one(self, x: Any, values: Any = None) -> int:
        """Return the class of one sample."""
        return self._inner.top_class_one(*self._row(x, values))

    def top_k_one(self, x: Any, values: Any, k: int) -> tuple[IndexArray, AccumArray]:
        """Return the k most probable classes of one sample."""
        return self._inner.top_k_one(*self._row(x, values), k)

    def sample_of(self, x: Any, values: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one sample as a row."""
        return self._inner.sample_of(*self._row(x, values))

    @property
    def explainer(self) -> Explainer:
        """What explains the answers of the inner predictor."""
        return self._inner.explainer

    def _row(self, x: Any, values: Any) -> tuple[Any, Any]:
        if values is None and isinstance(x, str | Mapping):
            return self._input.one(x)
        return checked_sample(x), values

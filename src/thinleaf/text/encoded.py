"""Texts as dense rows, by an encoder that a model file names but does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from thinleaf._dtypes import PARAM, AnyArray, ParamArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import typed
from thinleaf.model.file_parts import Section
from thinleaf.text.inputs import Input, text_list, word_salad
from thinleaf.text.known_terms import Evidence, all_known

Encoder: TypeAlias = Callable[[list[str]], Any]

VERSION = 1
_SAMPLES = ["Which encoder is this?", "zwölf Boxkämpfer", "3 red apples, 2 green pears"]
"""Texts whose rows tell encoders apart; those of one encoder differ by rounding alone."""

_ALIKE = 0.999
_MAX_NAME = 200


class Encoded(Input):
    """One text a sample, which an encoder makes a dense row of.

    Parameters
    ----------
    name : str
        What the encoder is called.
    fingerprint : str or None
        What its ``fingerprint`` says, if it has one.
    samples : ndarray of shape (3, n_features)
        Its rows of three texts.
    encoder : callable, optional
        From a list of texts to an array of shape (n_texts, n_features). Without it, there are no
        rows.
    """

    kind = "encoder"

    def __init__(
        self,
        name: str,
        fingerprint: str | None,
        samples: ParamArray,
        encoder: Encoder | None = None,
    ) -> None:
        self.name, self.fingerprint, self.samples = name, fingerprint, samples
        self.encoder = encoder

    @classmethod
    def by(cls, encoder: Encoder) -> Encoded:
        """Return the input of an encoder; ``ValueError`` if it gives no rows."""
        name = getattr(encoder, "name", None) or getattr(encoder, "__qualname__", None)
        name = name if isinstance(name, str) else type(encoder).__name__
        fingerprint = getattr(encoder, "fingerprint", None)
        return cls(
            name[:_MAX_NAME],
            fingerprint if isinstance(fingerprint, str) else None,
            _encode(encoder, list(_SAMPLES)),
            encoder,
        )

    def attached(self, encoder: Encoder) -> Encoded:
        """Return the same with an encoder; ``ValueError`` if it is not the one of the training."""
        if not callable(encoder):
            raise ValueError(
                f"an encoder must be callable, from a list of texts to an array, got {encoder!r}; "
                "of a directory, SentenceEncoder makes one"
            )
        other = Encoded.by(encoder)
        if other.n_features != self.n_features:
            raise ValueError(
                f"the encoder {other.name!r} gives {other.n_features} features, but the model was "
                f"trained with {self.name!r}, which gives {self.n_features}"
            )
        same = _is_alike(self.samples, other.samples)
        if self.fingerprint is not None and other.fingerprint is not None:
            same = self.fingerprint == other.fingerprint
        if not same:
            raise ValueError(
                f"the encoder {other.name!r} is not the one that the model was trained with, "
                f"{self.name!r}: its rows of the same texts are others, or its fingerprint is"
            )
        return Encoded(self.name, self.fingerprint, self.samples, encoder)

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return int(self.samples.shape[1])

    def rows(self, X: Any, n_jobs: int = 1) -> ParamArray:
        """Return a row for each text; threads are the encoder's own matter."""
        texts = text_list(X)
        if self.encoder is None:
            raise ValueError(
                f"the model takes texts by the encoder {self.name!r}, which no model file holds: "
                "attach it with load(path, encoder=…) or with_encoder(…), on the command line with "
                "--encoder DIR, or give rows of it"
            )
        if not texts:
            return np.empty((0, self.n_features), dtype=PARAM)
        rows = _encode(self.encoder, texts)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"the encoder {self.name!r} gave {rows.shape[1]} features, not {self.n_features}"
            )
        return rows

    def one(self, x: Any) -> tuple[AnyArray, None]:
        """Return the dense row of a text."""
        if not isinstance(x, str):
            raise ValueError(f"a sample must be a text, got {type(x).__name__}")
        return self.rows([x])[0], None

    def evidence(self, X: Any) -> Evidence:
        """Return the number of words of each text: an encoder knows them all."""
        return all_known(text_list(X))

    def fitted_to(self, X: Any) -> Encoded:
        """Return itself: an encoder does not learn."""
        return self

    def nonsense(self, X: Any, rng: np.random.Generator) -> list[str]:
        """Return texts of random words."""
        return word_salad(text_list(X), rng)

    def feature_name(self, feature: int) -> str:
        """Return the number of a dimension."""
        return f"dimension {feature}"

    def section(self) -> Section:
        """Return name, fingerprint and some rows, never a path."""
        metadata = {"version": VERSION, "name": self.name, "fingerprint": self.fingerprint}
        return Section({"samples": self.samples}, metadata)

    @classmethod
    def from_section(cls, section: Section) -> Encoded:
        """Return what :meth:`section` was called on, without the encoder."""
        metadata = section.metadata
        require(set(metadata) == {"version", "name", "fingerprint"}, "encoder: unknown metadata")
        require(metadata["version"] == VERSION, "encoder: a version that cannot be read")
        fingerprint = metadata["fingerprint"]
        require(fingerprint is None or type(fingerprint) is str, "encoder: no fingerprint")
        samples = section.arrays["samples"]
        good = samples.ndim == 2 and samples.shape[0] == len(_SAMPLES) and samples.dtype == PARAM
        require(good and bool(np.all(np.isfinite(samples))), "encoder: damaged samples")
        return cls(typed(metadata, "name", str), fingerprint, samples)


def _encode(encoder: Encoder, texts: list[str]) -> ParamArray:
    rows = encoder(texts)
    if hasattr(rows, "tocsr"):
        raise ValueError("an encoder must return a dense array; for sparse rows take TextFeatures")
    array = np.asarray(rows)
    if array.ndim != 2 or array.shape[0] != len(texts) or array.shape[1] < 1:
        raise ValueError(
            f"an encoder must return an array of shape ({len(texts)}, n_features) for "
            f"{len(texts)} texts, got shape {array.shape}"
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"an encoder must return real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=PARAM)
    if not np.all(np.isfinite(array)):
        raise ValueError("the encoder returned NaN, infinity or what is too large for float32")
    return array


def _is_alike(a: ParamArray, b: ParamArray) -> bool:
    """Return whether rows point the same way and are as long, but for rounding."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    size = np.linalg.norm(wide_a, axis=1) + np.linalg.norm(wide_b, axis=1)
    gap = np.linalg.norm(wide_a - wide_b, axis=1)
    return bool(np.all(gap <= (1.0 - _ALIKE) * np.maximum(size, 1e-30) * 10.0))

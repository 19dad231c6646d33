"""What a model file must remember of the data file that it was trained on.

A :class:`Recipe` says how lines become rows: the layout of the file, and of texts also their
features. In a model file they are the sections "input" and "text". :class:`KnownLabels` goes from
labels as they are written to classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import ModelFileError
from thinleaf.datasets import ExampleReader, FeatureRows, Layout, label_array, open_examples
from thinleaf.datasets.examples import Examples
from thinleaf.datasets.formats import FEATURE_FORMATS, FORMATS, TEXT_FORMATS, Labels
from thinleaf.datasets.lines import Source
from thinleaf.model.file_parts import Section

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.text.features import TextFeatures

VERSION = 1
"""Of the section "input"."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """How the lines of a data file become rows of a model.

    Attributes
    ----------
    n_features : int
        Of the model.
    layout : Layout or None
        Of the file that the model was trained on; None if that is not known. Then a file's own
        layout is found.
    text : TextFeatures or None
        The features of texts.
    raw : bool
        Whether the model takes texts as they are, and makes features of them itself.
    """

    n_features: int
    layout: Layout | None = None
    text: TextFeatures | None = None
    raw: bool = False

    @classmethod
    def of(cls, sections: Mapping[str, Section], n_features: int, *, raw: bool = False) -> Recipe:
        """Return the recipe that a model file carries.

        Parameters
        ----------
        sections : mapping of str to Section
            Of a :class:`~thinleaf.FrozenTree`.
        n_features : int
            Of the same.
        raw : bool
            Whether the model takes texts as they are.

        Raises
        ------
        ModelFileError
            If a section is damaged, or does not fit the model.
        """
        layout, text = None, None
        try:
            if "input" in sections:
                layout = _layout(sections["input"].metadata, n_features)
            if "text" in sections:
                from thinleaf.text.features import TextFeatures

                text = TextFeatures.from_arrays(sections["text"].arrays, sections["text"].metadata)
                require(text.n_features == n_features, "text features do not fit the model")
            require(
                layout is None or (layout.format in TEXT_FORMATS) == (raw or text is not None),
                "the model needs text features for a format of texts, and for no other",
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ModelFileError(f"the model file has no valid recipe for data: {error}") from error
        return cls(n_features, layout, text, raw)

    def sections(self) -> dict[str, Section]:
        """Return what :meth:`of` needs."""
        sections = {}
        if self.layout is not None:
            sections["input"] = Section({}, {"version": VERSION} | asdict(self.layout))
        if self.text is not None:
            sections["text"] = Section(*self.text.to_arrays())
        return sections

    def open(
        self,
        source: Source,
        *,
        format: str | None = None,
        labels: Labels = "optional",
        on_error: Literal["raise", "skip"] = "raise",
        **options: Any,
    ) -> ExampleReader:
        """Open a data file for the model; features that it does not know are left out.

        Parameters
        ----------
        source : path or file object
        format : {"libsvm", "vw", "fasttext", "tsv"}, optional
            Of the lines: texts may come in another format of texts than those of the training. If
            it is not given, first lines that are evidently no such ones are refused.
        labels, on_error, **options
            As in :func:`~thinleaf.datasets.open_examples`.
        """
        given: dict[str, Any] = {"format": format or "auto", "check_lines": format is None}
        if self.layout is not None:
            _check_format(self.layout, format)
            given |= asdict(self.layout) | ({} if format is None else {"format": format})
        if self.text is None and not self.raw:
            given |= {"n_features": self.n_features, "unknown_features": "drop"}
        return open_examples(source, labels=labels, on_error=on_error, **given, **options)

    def rows(self, examples: Examples) -> sp.csr_matrix | AnyArray:
        """Return examples as rows of the model, or as texts, in an array, if it takes those."""
        if isinstance(examples, FeatureRows):
            if self.text is not None or self.raw:
                raise ValueError("the model takes texts, but the file has rows of features")
            return examples.to_csr()
        if self.raw:
            return np.array(examples.texts, dtype=object)
        if self.text is None:
            raise ValueError(
                "the model takes rows of features (LIBSVM or VW), but the file has texts"
            )
        return self.text.transform(examples.texts)

    def feature_name(self, feature: int) -> str:
        """Return what a feature is called in data files, or the term that it stands for."""
        if self.text is not None:
            return f"bucket {feature}" if self.text.kind == "hashing" else self._terms[feature]
        if self.layout is not None and self.layout.hashed:
            return f"bucket {feature}"
        counted_from_one = self.layout == Layout("libsvm", n_features=self.n_features)
        return str(feature + counted_from_one)

    @cached_property
    def _terms(self) -> list[str]:
        return [] if self.text is None else self.text.feature_names()


def _layout(metadata: Mapping[str, Any], n_features: int) -> Layout:
    names = {field.name for field in fields(Layout)}
    require(set(metadata) == names | {"version"}, f"input must have {sorted(names)}")
    require(metadata["version"] == VERSION, f"version {metadata['version']!r} cannot be read")
    layout = Layout(**{name: metadata[name] for name in names})
    require(layout.format in FORMATS, f"unknown format {layout.format!r}")
    require(type(layout.zero_based) is bool and type(layout.hashed) is bool, "no flags")
    expected = n_features if layout.format in FEATURE_FORMATS else None
    require(layout.n_features == expected, "another number of features than the model has")
    return layout


def _check_format(layout: Layout, format: str | None) -> None:
    if format is None or format == layout.format:
        return
    if layout.format in FEATURE_FORMATS or format in FEATURE_FORMATS:
        raise ValueError(f"the model was trained on {layout.format} lines, and takes no {format}")


class KnownLabels:
    """Goes from labels as data files have them to the classes of a model.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from thinleaf.text.recipe import KnownLabels
    >>> KnownLabels(np.array([3, 12])).ids(["12", "+3", "7", "x", None])
    array([ 1,  0, -1, -1, -1], dtype=int32)
    """

    def __init__(self, labels: AnyArray) -> None:
        self._numbers: Literal["int", "float"] | None = None
        if labels.dtype.kind in "iuf":
            self._numbers = "float" if labels.dtype.kind == "f" else "int"
        keys = labels.tolist() if self._numbers else map(str, labels.tolist())
        self._ids = {key: i for i, key in enumerate(keys)}
        self._seen: dict[str | None, int] = {}

    def ids(self, labels: Sequence[str | None]) -> IndexArray:
        """Return the class of each label; -1 if there is none."""
        ids = [self._seen.get(label, -2) for label in labels]
        if -2 in ids:
            ids = [self._find(label) for label in labels]
        return np.array(ids, dtype=INDEX)

    def _find(self, label: str | None) -> int:
        key: Any = label
        if self._numbers is not None:
            try:
                key = label_array([label], self._numbers)[0].item()
            except ValueError:
                key = None
        found = self._ids.get(key, -1)
        if found >= 0:
            self._seen[label] = found
        return found

"""What a model file must remember of the data file that it was trained on.

A :class:`Recipe` says how lines become rows: the layout of the file, and of texts also their
features. In a model file they are the sections "input" and "text". :class:`KnownLabels` goes from
labels as they are written to classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray, IndexArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import ModelFileError
from thinleaf.arrays.rows import as_matrix
from thinleaf.datasets import ExampleReader, FeatureRows, Layout, label_array, open_examples
from thinleaf.datasets.detect import format_of_source
from thinleaf.datasets.examples import Examples
from thinleaf.datasets.formats import (
    FEATURE_FORMATS,
    LINE_FORMATS,
    TABLE_FORMATS,
    Column,
    Labels,
)
from thinleaf.datasets.lines import Source
from thinleaf.model.file_parts import TEXT_SECTIONS, Section
from thinleaf.text.columns import Columns
from thinleaf.text.inputs import Input, Texts

if TYPE_CHECKING:
    import scipy.sparse as sp

    from thinleaf.model.frozen import FrozenModel
    from thinleaf.text.features import TextFeatures

VERSION = 2
"""Of the section "input". Layouts without columns are still written as version 1."""

_FIELDS = {
    1: {"format", "zero_based", "hashed", "n_features"},
    2: {field.name for field in fields(Layout)},
}
"""What a section of each version has."""


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
    input : Input or None
        How samples become rows, where ``text`` does not say it alone.
    """

    n_features: int
    layout: Layout | None = None
    text: TextFeatures | None = None
    raw: bool = False
    input: Input | None = None

    @classmethod
    def of_model(cls, model: FrozenModel) -> Recipe:
        """Return the recipe of a model that was loaded, with the features that it has made."""
        from thinleaf.text.frozen import FrozenTextTree  # starts a compiler

        sections = model.sections
        if not isinstance(model, FrozenTextTree):
            return cls.of(sections, model.n_features, raw=model.takes_texts)
        made = model.input
        others = {name: part for name, part in sections.items() if name not in TEXT_SECTIONS}
        recipe = cls.of(others, model.n_features, raw=True)
        text = made.features if isinstance(made, Texts) else None
        return replace(recipe, raw=False, text=text, input=made)

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
                layout is None or layout.has_texts == (raw or text is not None),
                "the model needs text features for a format of texts, and for no other",
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ModelFileError(f"the model file has no valid recipe for data: {error}") from error
        return cls(n_features, layout, text, raw)

    def sections(self) -> dict[str, Section]:
        """Return what :meth:`of` needs."""
        sections = {}
        if self.layout is not None:
            version = VERSION if self.layout.format in TABLE_FORMATS else 1
            kept = {k: v for k, v in asdict(self.layout).items() if k in _FIELDS[version]}
            sections["input"] = Section({}, {"version": version} | kept)
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
        text_column: Column | Sequence[Column] | None = None,
        label_column: Column | None = None,
        header: bool | None = None,
        **options: Any,
    ) -> ExampleReader:
        """Open a data file for the model; features that it does not know are left out.

        Parameters
        ----------
        source : path or file object
        format : str, optional
            Of the lines: texts may come in another format of texts than those of the training. If
            it is not given, a name such as ``new.csv`` says it, and first lines that are evidently
            of another format are refused.
        text_column, label_column, header
            Of a table, if they are others than in the training; as in
            :func:`~thinleaf.datasets.open_examples`.
        labels, on_error, **options
            As there.
        """
        own = self.layout
        takes_texts = self._takes_texts
        found = format_of_source(source) if format is None else format
        given: dict[str, Any] = {"format": format or "auto", "check_lines": format is None}
        if self._columns is not None:
            given |= self._apart(text_column) | {"format": found or "auto"}
        elif own is None:
            if takes_texts and text_column is None:
                given["default_format"] = "tsv"  # a line without a tab is a text
                if isinstance(self.input, Columns):
                    given |= {"text_column": list(self.input.texts), "well_known": True}
        elif own.format in TABLE_FORMATS:
            _check_format(own, found)
            given |= _remembered(own, text_column is not None) | {"format": found or "auto"}
        elif own.has_texts and found in TABLE_FORMATS:
            given["format"] = found
        else:
            _check_format(own, format)
            given |= {name: getattr(own, name) for name in _FIELDS[1]}
            given["format"] = format or own.format
        for name, value in (
            ("text_column", text_column), ("label_column", label_column), ("header", header),
        ):  # fmt: skip
            if value is not None:
                given[name] = value
        if not takes_texts:
            given |= {"n_features": self.n_features, "unknown_features": "drop"}
        return open_examples(source, labels=labels, on_error=on_error, **given, **options)

    def rows(self, examples: Examples) -> sp.csr_matrix | AnyArray:
        """Return examples as rows of the model, or as texts, in an array, if it takes those."""
        if isinstance(examples, FeatureRows):
            if self._takes_texts:
                raise ValueError("the model takes texts, but the file has rows of features")
            return examples.to_csr()
        if self.raw:
            return np.array(examples.texts, dtype=object)
        if self.input is not None:
            X: sp.csr_matrix | AnyArray = as_matrix(self.input.rows(self.samples(examples)))
            return X
        if self.text is None:
            raise ValueError(
                "the model takes rows of features (LIBSVM or VW), but the file has texts"
            )
        return self.text.transform(examples.texts)

    def samples(self, examples: Examples) -> Any:
        """Return examples as users have them: texts, or columns; None if they are rows."""
        if isinstance(examples, FeatureRows):
            return None
        if self._columns is None:
            return examples.texts
        cells = [] if examples.columns is None else examples.columns.values()
        return dict(zip([*self._columns.texts, *self._columns.numeric], cells, strict=True))

    @property
    def _columns(self) -> Columns | None:
        """What takes several columns, or None where a text is all."""
        made = self.input
        return made if isinstance(made, Columns) and made.lone is None else None

    def _apart(self, text_column: Column | Sequence[Column] | None) -> dict[str, Any]:
        """Return how a model of several columns reads a file: by their names."""
        made, own = self._columns, self.layout
        assert made is not None
        texts: list[Any] = list(made.texts)
        if text_column is not None:
            one = isinstance(text_column, str | int)
            given: list[Any] = [text_column] if one else list(text_column)  # type: ignore
            if len(given) != len(texts):
                names = ", ".join(map(repr, texts))
                raise ValueError(
                    f"the model takes {len(texts)} columns of texts, {names}, but --text-column "
                    f"(in Python, text_column) names {len(given)}: name each, in this order"
                )
            texts = given
        known: dict[str, Any] = {} if own is None else {"label_column": own.label_column}
        if own is not None and own.format in TABLE_FORMATS:
            known["header"] = own.header
        return known | {"text_column": texts, "numeric_column": made.numeric, "apart": True}

    def feature_name(self, feature: int) -> str:
        """Return what a feature is called in data files, or the term that it stands for."""
        if self.input is not None:
            return self.input.feature_name(feature)
        if self.text is not None:
            return f"bucket {feature}" if self.text.kind == "hashing" else self._terms[feature]
        if self.layout is not None and self.layout.feature_columns:
            return str(self.layout.feature_columns[feature])
        if self.layout is not None and self.layout.hashed:
            return f"bucket {feature}"
        counted_from_one = self.layout == Layout("libsvm", n_features=self.n_features)
        return str(feature + counted_from_one)

    @property
    def _takes_texts(self) -> bool:
        return self.raw or self.text is not None or self.input is not None

    @cached_property
    def _terms(self) -> list[str]:
        return [] if self.text is None else self.text.feature_names()


def _remembered(own: Layout, others: bool) -> dict[str, Any]:
    """Return how a model of a table reads a file, unless texts are in other columns."""
    known: dict[str, Any] = {"label_column": own.label_column}
    if others:
        return known
    # A line that names no columns is a text, but where training had no names either.
    default = "tsv" if own.has_texts and own.header else "csv"
    return known | {
        "text_column": own.text_column,
        "feature_columns": own.feature_columns,
        "header": own.header,
        "default_format": default,
        "well_known": own.header and own.has_texts,
    }


def _layout(metadata: Mapping[str, Any], n_features: int) -> Layout:
    version = metadata["version"]
    require(version in _FIELDS, f"version {version!r} cannot be read")
    names = _FIELDS[version]
    require(set(metadata) == names | {"version"}, f"input must have {sorted(names)}")
    kept = {name: metadata[name] for name in names}
    if version > 1:
        for name in ("text_column", "feature_columns"):
            require(isinstance(kept[name], list | tuple), f"no list of columns in {name}")
            kept[name] = tuple(kept[name])
    layout = Layout(**kept)
    formats = TABLE_FORMATS if version > 1 else LINE_FORMATS
    require(layout.format in formats, f"unknown format {layout.format!r}")
    flags = (layout.zero_based, layout.hashed, layout.header)
    require(all(type(flag) is bool for flag in flags), "no flags")
    expected = None if layout.has_texts else n_features
    require(layout.n_features == expected, "another number of features than the model has")
    if version > 1:
        _check_columns(layout)
    return layout


def _check_columns(layout: Layout) -> None:
    inputs = layout.text_column or layout.feature_columns
    columns = [*inputs, *([] if layout.label_column is None else [layout.label_column])]
    kind = str if layout.header else int
    require(bool(layout.text_column) != bool(layout.feature_columns), "no columns of one kind")
    require(all(type(column) is kind for column in columns), "columns without names or numbers")
    require(layout.header or all(int(column) > 0 for column in columns), "columns from 1")
    if layout.feature_columns:
        require(len(inputs) == layout.n_features, "another number of columns than of features")


def _check_format(layout: Layout, format: str | None) -> None:
    if format in (None, layout.format):
        return
    if layout.has_texts:
        possible = format not in FEATURE_FORMATS
    else:
        possible = layout.format in TABLE_FORMATS and format in TABLE_FORMATS
    if not possible:
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

"""Tables as rows: a block of features for each column of texts, and standardised numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AccumArray, AnyArray, IndexArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import typed
from thinleaf.arrays.rows import CSR, Rows, as_matrix, as_rows
from thinleaf.model.file_parts import Section
from thinleaf.text.inputs import Input, column_names, input_of, is_missing, text_list
from thinleaf.text.known_terms import Evidence

VERSION = 1


class Columns(Input):
    """Several columns a sample.

    Parameters
    ----------
    texts : mapping of str to Input
        How the texts of each column become rows.
    numeric : sequence of str
        Columns of numbers.
    mean, scale : ndarray of shape (n_numeric,)
        What is subtracted from numbers, and what they are divided by.
    """

    kind = "columns"

    def __init__(
        self,
        texts: Mapping[str, Input],
        numeric: Sequence[str],
        mean: AccumArray,
        scale: AccumArray,
    ) -> None:
        self.texts, self.numeric = dict(texts), list(numeric)
        self.mean, self.scale = mean, scale

    @classmethod
    def fit(
        cls, X: Any, texts: Sequence[str], numeric: Sequence[str], make: Callable[[Any], Input]
    ) -> Columns:
        """Learn from a table.

        Parameters
        ----------
        X : table
            Of pandas, Polars or Arrow; a mapping from names to columns; or a list of mappings.
        texts, numeric : sequence of str
            Names of columns.
        make : callable
            From the texts of a column to how they become rows.
        """
        table = Table(X, [*texts, *numeric])
        blocks = {name: _made(name, table.texts(name), make) for name in texts}
        values = table.numbers(numeric)
        scale = values.std(axis=0) if len(values) else np.ones(len(numeric))
        mean = values.mean(axis=0) if len(values) else np.zeros(len(numeric))
        return cls(blocks, numeric, mean, np.where(scale > 0.0, scale, 1.0))

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return sum(part.n_features for part in self.texts.values()) + len(self.numeric)

    @property
    def lone(self) -> Input | None:
        """The only column, if that is all there is: its texts may come without a table."""
        if self.numeric or len(self.texts) > 1:
            return None
        return next(iter(self.texts.values()))

    @property
    def encoder(self) -> Any:
        """The encoder of the texts, or None."""
        return getattr(next(iter(self.texts.values())), "encoder", None)

    def rows(self, X: Any, n_jobs: int = 1) -> Rows:
        """Return a row for each sample of a table."""
        if self.lone is not None and not is_table(X):
            return self.lone.rows(X, n_jobs)
        table = Table(X, [*self.texts, *self.numeric])
        blocks = [part.rows(table.texts(name), n_jobs) for name, part in self.texts.items()]
        with np.errstate(over="ignore"):
            numbers = ((table.numbers(self.numeric) - self.mean) / self.scale).astype(PARAM)
        if not np.all(np.isfinite(numbers)):
            raise ValueError("a numeric column has values that are too large for float32")
        if all(isinstance(block, CSR) for block in blocks):
            import scipy.sparse as sp

            matrices = [as_matrix(block) for block in blocks]
            whole = sp.hstack([*matrices, sp.csr_matrix(numbers)], format="csr", dtype=PARAM)
            return as_rows(whole)
        dense = [
            as_matrix(block).toarray() if isinstance(block, CSR) else block for block in blocks
        ]
        return np.ascontiguousarray(np.hstack([*dense, numbers]), dtype=PARAM)

    def one(self, x: Any) -> tuple[AnyArray, AnyArray | None]:
        """Return one sample: a mapping from columns to values, or the text of a lone column."""
        if isinstance(x, str):
            if self.lone is None:
                raise ValueError(
                    f"the model takes the columns {[*self.texts, *self.numeric]}: "
                    "give a mapping from them to values"
                )
            return self.lone.one(x)
        rows = self.rows([x])
        if isinstance(rows, CSR):
            return rows.indices, rows.data
        return rows[0], None

    def evidence(self, X: Any) -> Evidence:
        """Return what is known of the texts of all columns together."""
        if self.lone is not None and not is_table(X):
            return self.lone.evidence(X)
        table = Table(X, list(self.texts))
        parts = [part.evidence(table.texts(name)) for name, part in self.texts.items()]
        return Evidence(
            np.sum([part.n_known for part in parts], axis=0),
            np.sum([part.n_terms for part in parts], axis=0),
        )

    def fitted_to(self, X: Any) -> Columns:
        """Return the same columns, learned from another table."""
        parts = iter(self.texts.values())
        return Columns.fit(X, list(self.texts), self.numeric, lambda c: next(parts).fitted_to(c))

    def extended(self, X: Any) -> tuple[Columns, IndexArray]:
        """Return the same columns with new terms of their texts, and where old features are."""
        table = Table(X if is_table(X) else {next(iter(self.texts)): X}, list(self.texts))
        texts, moved, begin = {}, [], 0
        for name, part in self.texts.items():
            texts[name], own = part.extended(table.texts(name))
            moved.append(own + INDEX(begin))
            begin += texts[name].n_features
        moved.append(INDEX(begin) + np.arange(len(self.numeric), dtype=INDEX))
        out = Columns(texts, self.numeric, self.mean, self.scale)
        return out, np.concatenate(moved).astype(INDEX)

    def nonsense(self, X: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return a table of random words, and of numbers that do not belong to them."""
        table = Table(X, [*self.texts, *self.numeric])
        made: dict[str, Any] = {
            name: part.nonsense(table.texts(name), rng) for name, part in self.texts.items()
        }
        numbers = table.numbers(self.numeric)
        return made | {name: rng.permutation(numbers[:, i]) for i, name in enumerate(self.numeric)}

    def attached(self, encoder: Any) -> Columns:
        """Return the same with an encoder of all texts."""
        texts = {name: part.attached(encoder) for name, part in self.texts.items()}
        return Columns(texts, self.numeric, self.mean, self.scale)

    def cells(self, X: Any) -> list[list[str]] | None:
        """Return columns of texts, then those of numbers, as strings; None without a table."""
        if not is_table(X):
            return None
        table = Table(X, [*self.texts, *self.numeric])
        texts = [table.texts(name) for name in self.texts]
        numbers = table.numbers(self.numeric).T.tolist()
        return texts + [[repr(value).removesuffix(".0") for value in own] for own in numbers]

    def feature_name(self, feature: int) -> str:
        """Return the column, and of a text also what its feature stands for."""
        for name, part in self.texts.items():
            if feature < part.n_features:
                return f"{name}: {part.feature_name(feature)}"
            feature -= part.n_features
        return self.numeric[feature]

    def section(self) -> Section:
        """Return the sections of all columns in one."""
        arrays: dict[str, AnyArray] = {"mean": self.mean, "scale": self.scale}
        columns = []
        for number, (name, part) in enumerate(self.texts.items()):
            section = part.section()
            arrays |= {f"{number}.{key}": array for key, array in section.arrays.items()}
            columns.append({"name": name, "kind": part.kind, "metadata": dict(section.metadata)})
        metadata = {
            "version": VERSION,
            "texts": columns,
            "numeric": list(self.numeric),
        }
        return Section(arrays, metadata)

    @classmethod
    def from_section(cls, section: Section) -> Columns:
        """Return what :meth:`section` was called on; ``ValueError`` if it is damaged."""
        metadata = section.metadata
        require(set(metadata) == {"version", "texts", "numeric"}, "columns: unknown metadata")
        require(metadata["version"] == VERSION, "columns: a version that cannot be read")
        numeric = typed(metadata, "numeric", list)
        require(all(type(name) is str for name in numeric), "columns: names must be strings")
        texts: dict[str, Input] = {}
        arrays = dict(section.arrays)
        mean, scale = arrays.pop("mean"), arrays.pop("scale")
        for number, column in enumerate(typed(metadata, "texts", list)):
            name, kind = typed(column, "name", str), typed(column, "kind", str)
            require(kind in ("text", "encoder"), f"columns: unknown kind {kind!r}")
            prefix = f"{number}."
            own = {key: arrays.pop(key) for key in list(arrays) if key.startswith(prefix)}
            own = {key.removeprefix(prefix): array for key, array in own.items()}
            part = input_of({kind: Section(own, typed(column, "metadata", dict))}, None)
            assert part is not None
            texts[name] = part
        require(not arrays, "columns: arrays that belong to no column")
        names = [*texts, *numeric]
        require(len(set(names)) == len(metadata["texts"]) + len(numeric), "columns: a name twice")
        require(bool(names), "columns: there are none")
        for array in (mean, scale):
            fits = array.shape == (len(numeric),) and array.dtype == ACCUM
            require(fits and bool(np.all(np.isfinite(array))), "columns: damaged numbers")
        require(bool(np.all(scale > 0.0)), "columns: a scale that is not positive")
        return cls(texts, numeric, mean, scale)


def is_table(X: Any) -> bool:
    """Return whether it is a table: columns by name, or samples that are mappings."""
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], Mapping)
    return isinstance(X, Mapping) or column_names(X) is not None


class Table:
    """Columns by name, of whatever holds them.

    Parameters
    ----------
    X : table
        Of pandas, Polars or Arrow; a mapping from names to columns; or a list of mappings.
    names : list of str
        Columns that must be there.
    """

    def __init__(self, X: Any, names: list[str]) -> None:
        if not is_table(X):
            raise ValueError(
                f"give a table with the columns {names} (pandas, Polars, Arrow, a dict of "
                f"columns, or a list of dicts), got {type(X).__name__}"
            )
        if isinstance(X, list | tuple):
            X = _transposed(X, names)
        if hasattr(X, "collect") and not hasattr(X, "shape"):
            raise ValueError("the table is lazy: call collect() first")
        there = list(X) if isinstance(X, Mapping) else column_names(X) or []
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(f"the table has no column {missing[0]!r}; it has {there}")
        self._columns = {name: X[name] for name in names}
        self._n_rows: int | None = None

    def texts(self, name: str) -> list[str]:
        """Return a column of texts."""
        found = text_list(self._columns[name], f"texts of column {name!r}")
        self._check_length(name, len(found))
        return found

    def numbers(self, names: Sequence[str]) -> AccumArray:
        """Return columns of numbers side by side."""
        columns = [self._number_column(name) for name in names]
        if columns:
            return np.column_stack(columns)
        return np.empty((self._n_rows or 0, 0), dtype=ACCUM)

    def as_dict(self) -> dict[str, list[Any]]:
        """Return all columns as lists."""
        return {name: _as_list(column) for name, column in self._columns.items()}

    def _number_column(self, name: str) -> AccumArray:
        column = self._columns[name]
        values = np.asarray(column.to_pylist() if hasattr(column, "to_pylist") else column)
        if values.ndim != 1:
            raise ValueError(f"column {name!r} must have one axis, got shape {values.shape}")
        if values.dtype.kind == "O" and not any(isinstance(v, str) for v in values.tolist()):
            filled = [np.nan if is_missing(v) else v for v in values.tolist()]
            with suppress(TypeError, ValueError, OverflowError):
                values = np.array(filled, dtype=ACCUM)
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"column {name!r} must hold numbers, got {values.dtype}: if it holds texts, name "
                "it in text_columns"
            )
        numbers = values.astype(ACCUM)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if bad.size:
            raise ValueError(
                f"column {name!r} is missing, NaN or infinite in row {bad[0]}: fill it in first"
            )
        self._check_length(name, numbers.size)
        return numbers

    def _check_length(self, name: str, n_rows: int) -> None:
        if self._n_rows is None:
            self._n_rows = n_rows
        if n_rows != self._n_rows:
            raise ValueError(f"column {name!r} has {n_rows} rows, but others have {self._n_rows}")


def _transposed(samples: Sequence[Any], names: list[str]) -> dict[str, list[Any]]:
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise ValueError(f"sample {number} is no mapping, but {type(sample).__name__}")
        missing = [name for name in names if name not in sample]
        if missing:
            raise ValueError(f"sample {number} has no {missing[0]!r}; it has {list(sample)}")
    return {name: [sample[name] for sample in samples] for name in names}


def _as_list(column: Any) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _made(name: str, texts: Any, make: Callable[[Any], Input]) -> Input:
    try:
        return make(texts)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error

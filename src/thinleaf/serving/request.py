"""What a request may say: JSON that is checked before a model sees any of it.

Nothing here knows HTTP but the status that a refusal has. Whatever a body holds, the outcome is an
:class:`Asked` or a :class:`RequestError` that says what is wrong and where.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal

import numpy as np

from thinleaf._dtypes import INDEX, PARAM
from thinleaf.serving.limits import Limits

OPTIONS = ("top_k", "proba", "min_proba", "reject")
_LARGEST = float(np.finfo(PARAM).max)


class RequestError(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    status : int
        Of the response, 4xx.
    message : str
        What is wrong, for whoever asked.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True)
class Shape:
    """What the checks must know of a model.

    Attributes
    ----------
    kind : {"texts", "rows", "records"}
        What it takes; records are of several columns.
    n_features, n_classes : int
    rejects : bool
        Whether it knows when to reject.
    text_columns, numeric_columns : tuple of str
        Of a record.
    """

    kind: Literal["texts", "rows", "records"]
    n_features: int
    n_classes: int
    rejects: bool = False
    text_columns: tuple[str, ...] = ()
    numeric_columns: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, str]:
        """The fields of one sample and of several."""
        return self.kind[:-1], self.kind

    @property
    def in_words(self) -> str:
        """What the model takes."""
        if self.kind == "rows":
            return f"rows of {self.n_features:,} features"
        columns = ", ".join(map(repr, (*self.text_columns, *self.numeric_columns)))
        return f"records of {columns}" if self.kind == "records" else "texts"


@dataclass(frozen=True, eq=False)
class Asked:
    """A request that can be answered.

    Attributes
    ----------
    single : bool
        Whether one sample was asked about, not a list of them.
    samples : list of str, list of dict, ndarray or CSR matrix of shape (n_rows, n_features)
    n_rows : int
    top_k : int or None
    proba : bool
    min_proba : float or None
    reject : float or None
        Wanted precision.
    """

    single: bool
    samples: Any
    n_rows: int
    top_k: int | None = None
    proba: bool = False
    min_proba: float | None = None
    reject: float | None = None

    @property
    def may_reject(self) -> bool:
        """Whether answers may be left out."""
        return self.min_proba is not None or self.reject is not None


def parse(body: bytes, shape: Shape, limits: Limits) -> Asked:
    """Return what a body asks for.

    Raises
    ------
    RequestError
        If it asks for nothing that can be answered.
    """
    content = _json(body)
    if not isinstance(content, dict):
        raise RequestError(422, f"the body must be a JSON object, got {_kind(content)}")
    one, many = shape.fields
    for name in content:
        if name not in (one, many, *OPTIONS):
            raise RequestError(422, _unknown(name, shape))
    if (one in content) == (many in content):
        raise RequestError(422, f"give either {one!r}, for one answer, or {many!r}, for a list")
    single = one in content
    given = [content[one]] if single else content[many]
    if not isinstance(given, list):
        raise RequestError(422, f"{many} must be a list, got {_kind(given)}")
    if not given:
        raise RequestError(422, f"{many} is empty: give at least one")
    if len(given) > limits.max_batch:
        raise RequestError(413, f"{many} has {len(given)} entries, at most {limits.max_batch}")
    top_k = _top_k(content, shape, len(given), limits)
    names = [one] if single else [f"{many}[{i}]" for i in range(len(given))]
    samples = _samples(given, names, shape)
    proba = content.get("proba", False)
    if not isinstance(proba, bool):
        raise RequestError(422, f"proba must be true or false, got {_kind(proba)}")
    min_proba, reject = _share(content, "min_proba"), _share(content, "reject")
    if reject in (0.0, 1.0):
        raise RequestError(422, "reject is a wanted precision, and must be between 0 and 1")
    if reject is not None and not shape.rejects:
        raise RequestError(422, "the model does not know when to reject: give min_proba instead")
    return Asked(single, samples, len(given), top_k, proba, min_proba, reject)


# -- JSON ------------------------------------------------------------------------------------------


def _json(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"the body is not UTF-8 at byte {error.start}") from error
    if not text.strip():
        raise RequestError(400, "the body is empty: send JSON")
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise RequestError(400, "the body is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise RequestError(
            400, f"the body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}"
        ) from error
    except ValueError as error:  # an integer of thousands of digits
        raise RequestError(400, f"the body is not JSON that can be read: {error}") from error


def _no_constant(name: str) -> Any:
    raise RequestError(400, f"the body is not JSON: {name} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RequestError(400, f"the body has {_shown(twice)} twice in one object")
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)


def _kind(value: Any) -> str:
    """Return what JSON calls a value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {str: "a string", list: "a list", dict: "an object", int: "a number", float: "a number"}
    return kinds[type(value)]


def _shown(name: str) -> str:
    """Return a name as it can be shown: it may be anything, of any length."""
    return repr(name if len(name) <= 40 else f"{name[:39]}…").encode("utf-8", "replace").decode()


def _unknown(name: str, shape: Shape) -> str:
    one, many = shape.fields
    if name in ("text", "texts", "row", "rows", "record", "records"):
        return f"the model takes {shape.in_words}: give {one!r} or {many!r}, not {name!r}"
    known = (one, many, *OPTIONS)
    close = get_close_matches(name[:40], known, 1)
    hint = f": did you mean {close[0]!r}?" if close else f", only {', '.join(map(repr, known))}"
    return f"there is no field {_shown(name)}{hint}"


# -- options ---------------------------------------------------------------------------------------


def _top_k(content: dict[str, Any], shape: Shape, n_rows: int, limits: Limits) -> int | None:
    if "top_k" not in content:
        return None
    top_k = _whole(content["top_k"])
    if top_k is None:
        raise RequestError(422, f"top_k must be an integer, got {_kind(content['top_k'])}")
    if not 1 <= top_k <= shape.n_classes:
        raise RequestError(422, f"top_k must be in 1..{shape.n_classes}, the number of labels")
    if top_k * n_rows > limits.max_labels:
        raise RequestError(
            413, f"{n_rows} times top_k {top_k} are more than {limits.max_labels} labels"
        )
    return top_k


def _whole(value: Any) -> int | None:
    """Return an integer, which JSON may write as 2.0; None of anything else."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _share(content: dict[str, Any], name: str) -> float | None:
    if name not in content:
        return None
    value = content[name]
    if type(value) not in (int, float):
        raise RequestError(422, f"{name} must be a number, got {_kind(value)}")
    if not 0 <= value <= 1:
        raise RequestError(422, f"{name} must be in 0..1")
    return float(value)


# -- samples ---------------------------------------------------------------------------------------


def _samples(given: Sequence[Any], names: Sequence[str], shape: Shape) -> Any:
    if shape.kind == "rows":
        return _rows(given, names, shape.n_features)
    check = _check_text if shape.kind == "texts" else partial(_check_record, shape=shape)
    for sample, name in zip(given, names, strict=True):
        check(sample, name)
    return list(given)


def _check_text(text: Any, name: str) -> None:
    if not isinstance(text, str):
        raise RequestError(422, f"{name} must be a string, got {_kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            422, f"{name} has half of a surrogate pair at character {error.start}"
        ) from error


def _check_record(record: Any, name: str, *, shape: Shape) -> None:
    columns = (*shape.text_columns, *shape.numeric_columns)
    if not isinstance(record, dict):
        raise RequestError(422, f"{name} must be an object, got {_kind(record)}")
    if set(record) != set(columns):
        missing = [column for column in columns if column not in record]
        more = [_shown(column) for column in record if column not in columns]
        wrong = f"lacks {missing[0]!r}" if missing else f"has {more[0]}, which the model has not"
        raise RequestError(422, f"{name} {wrong}: the columns are {', '.join(columns)}")
    for column in shape.text_columns:
        _check_text(record[column], f"{name}.{column}")
    for column in shape.numeric_columns:
        value = record[column]
        if type(value) not in (int, float):
            raise RequestError(422, f"{name}.{column} must be a number, got {_kind(value)}")
        if not -_LARGEST <= value <= _LARGEST:
            raise RequestError(422, f"{name}.{column} is too large for a 32-bit number")


def _rows(given: Sequence[Any], names: Sequence[str], n_features: int) -> Any:
    """Return dense rows as an array; if any is given by its entries, all as a CSR matrix."""
    if all(isinstance(row, list) for row in given):
        dense = [_dense(row, name, n_features) for row, name in zip(given, names, strict=True)]
        return np.array(dense, dtype=PARAM)
    import scipy.sparse as sp

    pairs = [_sparse(row, name, n_features) for row, name in zip(given, names, strict=True)]
    indices = [index for row, _ in pairs for index in row]
    values = [value for _, row in pairs for value in row]
    ptr = np.concatenate([[0], np.cumsum([len(row) for row, _ in pairs])])
    arrays = (np.array(values, PARAM), np.array(indices, INDEX), ptr.astype(INDEX))
    matrix = sp.csr_matrix(arrays, shape=(len(given), n_features))
    matrix.sort_indices()
    return matrix


def _numbers(values: list[Any], name: str) -> list[float]:
    if not set(map(type, values)) <= {int, float}:
        at = next(i for i, value in enumerate(values) if type(value) not in (int, float))
        raise RequestError(422, f"{name}[{at}] must be a number, got {_kind(values[at])}")
    for at, value in enumerate(values):
        if not -_LARGEST <= value <= _LARGEST:  # 1e999 is infinite
            raise RequestError(422, f"{name}[{at}] is too large for a 32-bit number")
    return [float(value) for value in values]


def _dense(row: Any, name: str, n_features: int) -> list[float]:
    if len(row) != n_features:
        raise RequestError(
            422, f"{name} has {len(row)} values, but the model has {n_features} features"
        )
    return _numbers(row, name)


def _sparse(row: Any, name: str, n_features: int) -> tuple[list[int], list[float]]:
    if isinstance(row, list):
        values = _dense(row, name, n_features)
        kept = [i for i, value in enumerate(values) if value != 0.0]
        return kept, [values[i] for i in kept]
    if not isinstance(row, dict) or set(row) != {"indices", "values"}:
        raise RequestError(
            422, f"{name} must be a list of numbers, or an object with 'indices' and 'values'"
        )
    indices, values = row["indices"], row["values"]
    for part, of in ((indices, "indices"), (values, "values")):
        if not isinstance(part, list):
            raise RequestError(422, f"{name}.{of} must be a list, got {_kind(part)}")
    if len(indices) != len(values):
        raise RequestError(422, f"{name} has {len(indices)} indices, but {len(values)} values")
    if not set(map(type, indices)) <= {int}:
        indices = list(map(_whole, indices))
    if None in indices:
        raise RequestError(422, f"{name}.indices must be integers")
    if indices and not 0 <= min(indices) <= max(indices) < n_features:
        raise RequestError(422, f"{name}.indices must be in 0..{n_features - 1}")
    if len(set(indices)) < len(indices):
        raise RequestError(422, f"{name}.indices has a feature twice")
    return indices, _numbers(values, f"{name}.values")


def finite(value: float) -> float | None:
    """Return a number that JSON has."""
    return value if math.isfinite(value) else None

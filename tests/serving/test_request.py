"""What a body may say: whatever it is, there is a request or a refusal that says why."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinleaf.serving.limits import Limits
from thinleaf.serving.request import RequestError, Shape, parse

LIMITS = Limits(max_batch=3, max_labels=20)
TEXTS = Shape("texts", 100, 10)
ROWS = Shape("rows", 3, 10)
RECORDS = Shape("records", 100, 10, True, ("title",), ("age",))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELD = st.sampled_from(
    [
        "text",
        "texts",
        "row",
        "rows",
        "record",
        "records",
        "top_k",
        "proba",
        "min_proba",
        "reject",
        "x",
    ]
)


def asked(content: Any, shape: Shape = TEXTS) -> Any:
    return parse(json.dumps(content).encode(), shape, LIMITS)


def refused(body: bytes | dict[str, Any] | list[Any] | None, shape: Shape = TEXTS) -> str:
    """Return the status and what is said."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RequestError) as caught:
        parse(raw, shape, LIMITS)
    assert caught.value.message
    assert len(caught.value.message) < 500
    caught.value.message.encode()
    return f"{caught.value.status} {caught.value.message}"


def test_one_text_and_several():
    one = asked({"text": "a", "top_k": 2, "proba": True, "min_proba": 0.5})
    assert (one.single, one.samples, one.n_rows) == (True, ["a"], 1)
    assert (one.top_k, one.proba, one.min_proba) == (2, True, 0.5)
    several = asked({"texts": ["a", "", "\x00 🙂"]})
    assert (several.single, several.samples) == (False, ["a", "", "\x00 🙂"])
    assert (several.top_k, several.proba, several.min_proba) == (None, False, None)


def test_dense_and_sparse_rows():
    np.testing.assert_array_equal(asked({"row": [1, 2.5, 0]}, ROWS).samples, [[1, 2.5, 0]])
    mixed = asked({"rows": [[1, 0, 3], {"indices": [2, 0], "values": [5, 4]}]}, ROWS).samples
    np.testing.assert_array_equal(mixed.toarray(), [[1, 0, 3], [4, 0, 5]])
    assert mixed.has_sorted_indices
    empty = asked({"row": {"indices": [], "values": []}}, ROWS).samples
    assert empty.shape == (1, 3)
    assert asked({"row": [3.4e38, 0, 0]}, ROWS).samples.dtype == np.float32


def test_integers_may_be_written_with_a_point():
    assert asked({"text": "a", "top_k": 2.0}).top_k == 2
    row = asked({"row": {"indices": [2.0, 0], "values": [1, 2]}}, ROWS).samples
    np.testing.assert_array_equal(row.toarray(), [[2, 0, 1]])


def test_records():
    record = {"title": "a", "age": 3}
    assert asked({"record": record, "reject": 0.9}, RECORDS).reject == 0.9
    assert asked({"record": record}, RECORDS).samples == [record]
    assert asked({"records": [record, record]}, RECORDS).n_rows == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "400 the body is empty"),
        (b"  \n", "400 the body is empty"),
        (b"{", "400 the body is not JSON: Expecting property name"),
        (b'{"text": "a"', "400 the body is not JSON"),
        (b'\xef\xbb\xbf{"text": "a"}', "400 the body is not JSON"),
        (b'{"text": "\xff"}', "400 the body is not UTF-8 at byte 10"),
        ('{"text": "ä"}'.encode("utf-16"), "400 the body is not UTF-8"),
        (b'{"text": NaN}', "400 the body is not JSON: NaN is no JSON number"),
        (b'{"text": "a", "min_proba": -Infinity}', "400 the body is not JSON: -Infinity"),
        (b"[" * 1_000_000, "400 the body is nested too deeply"),
        (b'{"a":' * 500_000, "400 the body is nested too deeply"),
        (b'{"text": "a", "top_k": ' + b"9" * 100_000 + b"}", "400 the body is not JSON that can"),
        (b'{"text": "a", "text": "b"}', "400 the body has 'text' twice"),
        (b"[]", "422 the body must be a JSON object, got a list"),
        (b"null", "422 the body must be a JSON object, got null"),
        (b'"text"', "422 the body must be a JSON object, got a string"),
        (b"3", "422 the body must be a JSON object, got a number"),
        (b'{"text": "\\ud800"}', "422 text has half of a surrogate pair"),
    ],
)
def test_bodies_that_are_no_request(body, said):
    assert refused(body).startswith(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "422 give either 'text', for one answer, or 'texts', for a list"),
        ({"text": "a", "texts": ["b"]}, "422 give either 'text'"),
        ({"text": None}, "422 text must be a string, got null"),
        ({"text": ["a"]}, "422 text must be a string, got a list"),
        ({"texts": "a"}, "422 texts must be a list, got a string"),
        ({"texts": ["a", 3]}, "422 texts[1] must be a string, got a number"),
        ({"texts": []}, "422 texts is empty"),
        ({"texts": ["a"] * 4}, "413 texts has 4 entries, at most 3"),
        ({"tex": "a"}, "422 there is no field 'tex': did you mean 'text'?"),
        ({"text": "a", "zzz": 1}, "422 there is no field 'zzz', only"),
        ({"text": "a", "\ud800" * 99: 1}, "422 there is no field"),
        ({"row": [1]}, "422 the model takes texts: give 'text' or 'texts', not 'row'"),
        ({"text": "a", "top_k": 0}, "422 top_k must be in 1..10"),
        ({"text": "a", "top_k": 11}, "422 top_k must be in 1..10"),
        ({"text": "a", "top_k": 2.5}, "422 top_k must be an integer, got a number"),
        ({"text": "a", "top_k": True}, "422 top_k must be an integer, got true"),
        ({"text": "a", "top_k": None}, "422 top_k must be an integer, got null"),
        ({"texts": ["a"] * 3, "top_k": 10}, "413 3 times top_k 10 are more than 20 labels"),
        ({"text": "a", "proba": 1}, "422 proba must be true or false, got a number"),
        ({"text": "a", "min_proba": "1"}, "422 min_proba must be a number, got a string"),
        ({"text": "a", "min_proba": 1.5}, "422 min_proba must be in 0..1"),
        ({"text": "a", "min_proba": 10**400}, "422 min_proba must be in 0..1"),
        ({"text": "a", "reject": 0.9}, "422 the model does not know when to reject"),
        ({"text": "a", "reject": True}, "422 reject must be a number, got true"),
        ({"text": "a", "reject": 1}, "422 reject is a wanted precision, and must be between"),
    ],
)
def test_fields_that_are_wrong(content, said):
    assert refused(content).startswith(said)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a", "422 row must be a list of numbers, or an object with"),
        (None, "422 row must be a list of numbers, or an object"),
        ({}, "422 row must be a list of numbers"),
        ([1, 2], "422 row has 2 values, but the model has 3 features"),
        ([1, 2, "3"], "422 row[2] must be a number, got a string"),
        ([1, True, 3], "422 row[1] must be a number, got true"),
        ([1, 2, 1e39], "422 row[2] is too large"),
        ([1, 2, 10**400], "422 row[2] is too large"),
        ({"indices": [0], "values": [1], "more": 2}, "422 row must be a list of numbers"),
        ({"indices": 0, "values": [1]}, "422 row.indices must be a list, got a number"),
        ({"indices": [0, 1], "values": [1]}, "422 row has 2 indices, but 1 values"),
        ({"indices": [3], "values": [1]}, "422 row.indices must be in 0..2"),
        ({"indices": [-1], "values": [1]}, "422 row.indices must be in 0..2"),
        ({"indices": [10**30], "values": [1]}, "422 row.indices must be in 0..2"),
        ({"indices": [0.5], "values": [1]}, "422 row.indices must be integers"),
        ({"indices": [True], "values": [1]}, "422 row.indices must be integers"),
        ({"indices": [0, 0], "values": [1, 2]}, "422 row.indices has a feature twice"),
        ({"indices": [0], "values": [None]}, "422 row.values[0] must be a number, got null"),
    ],
)
def test_rows_that_are_wrong(row, said):
    assert refused({"row": row}, ROWS).startswith(said)


def test_infinity_that_json_allows():
    assert refused(b'{"row": [1, 2, 1e999]}', ROWS).startswith("422 row[2] is too large")
    assert refused(b'{"row": [[1], 2, 3]}', ROWS).startswith("422 row[0] must be a number")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("a", "422 record must be an object, got a string"),
        ({"title": "a"}, "422 record lacks 'age': the columns are title, age"),
        ({"title": "a", "age": 1, "x": 2}, "422 record has 'x', which the model has not"),
        ({"title": 3, "age": 1}, "422 record.title must be a string, got a number"),
        ({"title": "a", "age": "1"}, "422 record.age must be a number, got a string"),
        ({"title": "a", "age": 1e300}, "422 record.age is too large"),
    ],
)
def test_records_that_are_wrong(record, said):
    assert refused({"record": record}, RECORDS).startswith(said)


@given(st.binary(max_size=200))
@example(b"\x00" * 50)
def test_any_bytes(body):
    for shape in (TEXTS, ROWS, RECORDS):
        _request_or_refusal(body, shape)


@given(st.dictionaries(FIELD, JSON, max_size=3) | JSON)
def test_any_json(content):
    body = json.dumps(content).encode("utf-8", "surrogatepass")
    for shape in (TEXTS, ROWS, RECORDS):
        _request_or_refusal(body, shape)


def _request_or_refusal(body: bytes, shape: Shape) -> None:
    try:
        found = parse(body, shape, LIMITS)
    except RequestError as error:
        refusal = error
    else:
        assert 1 <= found.n_rows <= 3
        return
    assert refusal.status in (400, 413, 422)
    assert len(refusal.message) < 500
    json.dumps({"error": refusal.message}, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "wrong", [{"max_body": 0}, {"max_batch": -1}, {"timeout": 0.0}, {"timeout": float("nan")},
              {"max_labels": True}],
)  # fmt: skip
def test_limits_that_are_none(wrong):
    with pytest.raises(ValueError, match="must be a positive"):
        Limits(**wrong)

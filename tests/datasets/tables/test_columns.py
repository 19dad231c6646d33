"""Columns are those that are asked for, or those that are clear; else it is said what to do."""

from __future__ import annotations

import pytest

from thinleaf.datasets.lines import BadLine
from thinleaf.datasets.tables.columns import Columns, Wanted, find_columns, position

NAMES = ["id", "Title", "body", "kind"]
PAIRS = [["cat", "it purrs a lot"], ["dog", "it barks"], ["cat", "it sleeps"]]


def found(names, records=(), labels="required", **wanted):
    columns = find_columns(names, records, Wanted(**wanted), labels)
    return columns.text, columns.label, columns.features


def unclear(names, records=(), labels="required", **wanted) -> str:
    with pytest.raises(BadLine) as caught:
        find_columns(names, records, Wanted(**wanted), labels)
    return str(caught.value)


def test_columns_by_name_and_number():
    assert position(NAMES, "Title") == position(NAMES, "title") == position(NAMES, " TITLE ") == 1
    assert position(NAMES, 2) == position(NAMES, "2") == 1
    assert position(["2", "1"], "2") == 0  # a name comes first
    assert position(["a", "A"], "A") == 1
    assert found(NAMES, text=("title", "body"), label="kind") == ((1, 2), 3, ())
    assert found(NAMES, text=(3,), label=4) == ((2,), 3, ())


@pytest.mark.parametrize(
    ("names", "column", "message"),
    [
        (NAMES, "text", "no column 'text': the file has columns 'id', 'Title', 'body', 'kind'"),
        (NAMES, 5, "no column 5: the file has 4"),
        (NAMES, "0", "no column 0"),
        (NAMES, "9" * 5000, "no column 999999999"),
        (["a", "b", "a"], "a", "2 columns are called 'a': rename them, or give the number"),
        (["a", "A"], "b", "no column 'b'"),
        ([1, 2], "b", "no column 'b', for the file has no header: .* number, from 1 to 2"),
        ([f"c{i}" for i in range(99)], "b", "'c19' and 79 more"),
    ],
)
def test_columns_that_are_not_there(names, column, message):
    with pytest.raises(BadLine, match=message):
        position(names, column)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["text", "label"], ((0,), 1)),
        (["LABEL", " Text "], ((1,), 0)),
        (["id", "sentence", "class", "score"], ((1,), 2)),
        (["title", "text", "label", "category"], ((1,), 2)),  # the best known
        (["query", "intent"], ((0,), 1)),
        (["about", "category"], ((0,), 1)),  # the one that is left
        (["id", "about", "category"], ((1,), 2)),
        (["", "about", "category"], ((1,), 2)),
    ],
)
def test_well_known_names(names, expected):
    assert found(names) == (*expected, ())


def test_columns_that_are_left():
    assert found(["about", "kind"], text=("about",)) == ((0,), 1, ())
    assert found(["about", "kind"], label="kind") == ((0,), 1, ())
    assert found(["about"], labels="optional") == ((0,), None, ())
    assert found(["id", "about"], labels="none") == ((1,), None, ())
    assert found(["id"], labels="none") == ((0,), None, ())


def test_two_columns_are_told_by_what_is_in_them():
    assert found(["a", "b"], PAIRS) == ((1,), 0, ())
    assert found(["b", "a"], [pair[::-1] for pair in PAIRS]) == ((0,), 1, ())
    assert "not clear" in unclear(["a", "b"], PAIRS[:1])
    assert "not clear" in unclear(["a", "b"], [["cat", "cow"], ["dog", "moo"]])  # as long
    assert "not clear" in unclear(["a", "b"], [["long one", "x"], ["long one", "y"]])


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        (["title", "description", "label"], {}, "texts could be in 'title' or 'description'"),
        (["a", "b", "c"], {}, "which of columns 'a', 'b', 'c' has the texts .*--text-column"),
        (["a", "b", "c"], {"text": ("a",)}, "which of .* has the labels .*--label-column"),
        (["a"], {"text": ("a",)}, "no column of labels beside column 'a': add one"),
        (["a", "b"], {"text": ("a",), "label": "a"}, "'a' cannot be label and input"),
        (["a", "b"], {"text": ("b",), "label": "c"}, "no column 'c'"),
        (["a", "b"], {"text": ("c",), "label": "a"}, "no column 'c'"),
    ],
)
def test_what_is_not_clear_is_said(names, wanted, message):
    with pytest.raises(BadLine, match=message):
        find_columns(names, [], Wanted(**wanted), "required")


def test_labels_may_be_missing_if_they_are_not_required():
    for labels in ("optional", "none"):
        assert found(["a", "b"], labels=labels, text=("a",), label="c") == ((0,), None, ())
    assert found(["a", "c"], labels="optional", text=("a",), label="c") == ((0,), 1, ())
    assert found(["a", "c"], labels="none", text=("a",), label="c") == ((0,), None, ())


def test_columns_of_numbers_are_features():
    records = [["1", " 2.5", "a"], ["-1e3", "", "b"]]
    assert found(["u", "v", "y"], records) == ((), 2, (0, 1))
    assert found(["id", "v", "y"], records) == ((), 2, (1,))
    assert found(["text", "v", "y"], records) == ((0,), 2, ())  # who says text means it
    assert found(["u", "v", "y"], features=("v",)) == ((), 2, (1,))
    assert "not clear" in unclear(["u", "v", "y"], [["1", "b", "a"]])
    assert "not clear" in unclear(["u", "v", "y"], [["1", "", "a"]])


def test_what_was_taken_is_described():
    columns = Columns(("a", "b", "c", "d"), (0, 1), 2)
    assert columns.described() == (
        "texts are in columns 'a', 'b', labels in column 'c', 1 other column is passed over"
    )
    assert Columns((1, 2), (1,), None).described() == (
        "there is no header; texts are in column 2, 1 other column is passed over"
    )
    assert Columns(("u", "y"), (), 1, (0,)).described() == (
        "features are in column 'u', labels in column 'y'"
    )

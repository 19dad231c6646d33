"""JSON lines: keys are columns, values strings or numbers; what is broken is told by its line."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinleaf.datasets import DataFileError, FeatureRows, LiveStream, open_examples, read_examples

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
labels = st.one_of(st.integers(), st.booleans(), st.text(st.sampled_from("ab é'\"{}"), min_size=1))


def read(text: str, **settings):
    return read_examples(io.BytesIO(text.encode()), **{"format": "jsonl"} | settings)


def as_label(value) -> str:
    return json.dumps(value) if isinstance(value, bool | int) else value.strip()


@given(
    st.lists(st.tuples(texts, labels.filter(lambda v: as_label(v) != "")), min_size=1),
    st.booleans(),
)
def test_what_is_written_is_read(pairs, ascii_only):
    lines = [
        json.dumps({"n": i, "about": text, "kind": label}, ensure_ascii=ascii_only)
        for i, (text, label) in enumerate(pairs)
    ]
    columns = {"text_column": "about", "label_column": "kind"}
    found = read("\ufeff" + "\r\n".join(lines), **columns)
    assert found.texts == [text for text, _ in pairs]
    assert found.labels == [as_label(label) for _, label in pairs]
    assert found.lines.tolist() == list(range(1, len(pairs) + 1))
    with open_examples(io.StringIO("\n".join(lines)), **columns, batch_size=2) as reader:
        assert reader.read_all().texts == found.texts
    assert reader.layout.format == "jsonl"


def test_keys_that_are_clear_need_not_be_named(tmp_path):
    lines = '{"label": 3, "text": "it purrs", "more": {"a": [1]}}\n\n{"text": "x", "label": 4.5}\n'
    for name in ("a.jsonl", "a.ndjson", "a.json", "a"):
        (tmp_path / name).write_text(lines)
        rows = read_examples(tmp_path / name)
        assert (rows.texts, rows.labels) == (["it purrs", "x"], ["3", "4.5"])
        assert (rows.lines.tolist(), rows.records.tolist()) == ([1, 3], [1, 3])


def test_values_that_are_missing():
    lines = '{"text": null, "label": "a"}\n{"label": null, "text": "x"}\n{"text": 7}\n'
    rows = read(lines, labels="optional")
    assert (rows.texts, rows.labels) == (["", "x", "7"], ["a", None, None])
    rows = read('{"text": "x"}\n', labels="optional", label_column="kind")
    assert rows.labels == [None]


def test_several_keys_and_numbers():
    line = '{"a": "one", "b": "two", "u": 1, "v": -0.5, "y": "c"}\n'
    assert read(line, text_column=["b", "a"], label_column="y").texts == ["two\none"]
    rows = read('{"u": 1, "v": -0.5, "y": "c"}\n')
    assert isinstance(rows, FeatureRows)
    np.testing.assert_array_equal(rows.to_csr().toarray(), [[1.0, -0.5]])


BAD = [
    ("{", "no JSON"),
    ("[1]", "a JSON value that is no object"),
    ('"text"', "a JSON value that is no object"),
    ("{'text': 'x'}", "no JSON"),
    ('{"text": NaN, "label": "b"}', "no JSON .NaN is no JSON number"),
    ('{"label": "b"}', "no key 'text': the object has key 'label'"),
    ('{"text": "x", "label": ["b"]}', "an array at 'label': write a string"),
    ('{"text": {}, "label": "b"}', "an object at 'text'"),
    ('{"text": "x"}', "an empty label"),
    ('{"text": "x", "label": ""}', "an empty label"),
    ('{"text": "x", "label": "b\\nc"}', "a label with a line break"),
    ('{"text": "\\ud800", "label": "b"}', "half of a surrogate pair"),
    ('{"text": "\\u0000", "label": "b"}', "a NUL character"),
    ("[" * 100_000, "no JSON"),
    ('{"text": ' + "9" * 5000 + ', "label": "b"}', "no JSON"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_a_bad_line_is_told_by_its_number(line, message):
    good = '{"text": "one", "label": "a"}'
    text = f"{good}\n\n{line}\n{good}\n"
    with pytest.raises(
        DataFileError, match=f"^<stream>:3: {message}.*; the line is ['\"]"
    ) as caught:
        read(text)
    assert len(str(caught.value)) < 400
    with open_examples(io.StringIO(text), format="jsonl", on_error="skip") as reader:
        assert reader.read_all().lines.tolist() == [1, 4]
    assert (reader.n_rows, reader.n_blank, reader.n_skipped) == (2, 1, 1)


def test_keys_that_do_not_do():
    with pytest.raises(DataFileError, match="which of columns 'a', 'b', 'c' has the texts"):
        read('{"a": "x", "b": "y", "c": "z"}\n')
    with pytest.raises(DataFileError, match="keys of JSON have names, not numbers"):
        read('{"a": "x"}\n', text_column=1)
    with pytest.raises(DataFileError, match=":1: no key 'title': the object has keys 'text', 'y'"):
        read('{"text": "x", "y": "z"}\n', text_column="title")
    with pytest.raises(DataFileError, match=":1: no JSON"):
        read("it purrs\n")
    for content in ("", "\n \n"):
        with pytest.raises(DataFileError, match="no example in the file"):
            read(content)


@given(st.binary(max_size=100), st.sampled_from(["raise", "skip"]))
def test_any_bytes_are_read_or_refused(content, on_error):
    for head in (b"", b'{"text": "x", "label": "y"}\n'):
        try:
            with open_examples(
                io.BytesIO(head + content), format="jsonl", on_error=on_error
            ) as reader:
                assert sum(map(len, reader)) == reader.n_rows
        except DataFileError:
            continue


def test_lines_are_given_as_they_arrive():
    pieces = [b'{"text": "one"}\n', b"\n", b"bad\n", b'{"text": "two"}\n{"te', b'xt": "three"}\n']

    class Arriving(io.BufferedIOBase):
        n_taken = 0

        def read1(self, size: int = -1) -> bytes:
            self.n_taken += 1
            return pieces[self.n_taken - 1] if self.n_taken <= len(pieces) else b""

    stream = Arriving()
    with open_examples(
        LiveStream(stream), format="jsonl", labels="optional", on_error="skip", empty_batches=True
    ) as reader:
        for n_taken, expected in enumerate([["one"], [], [], ["two"], ["three"]], 1):
            assert next(reader).texts == expected
            assert stream.n_taken == n_taken

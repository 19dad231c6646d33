"""Parquet and Arrow: rows in batches, whatever the types; damaged files are refused."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thinleaf.datasets import DataFileError, FeatureRows, LiveStream, open_examples, read_examples

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FORMATS = ("parquet", "arrow", "stream")
each = pytest.mark.parametrize("kind", FORMATS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def written(table, kind: str, rows: int = 1000) -> bytes:
    sink = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, sink, row_group_size=rows)
        return sink.getvalue()
    new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def read(table, kind: str, rows: int = 1000, **given):
    format = "parquet" if kind == "parquet" else "arrow"
    return read_examples(io.BytesIO(written(table, kind, rows)), format=format, **given)


@each
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@given(pairs=st.lists(st.tuples(texts, st.integers(0, 9)), min_size=1), rows=st.integers(1, 4))
def test_what_is_written_is_read(kind, pairs, rows):
    table = pa.table({"more": [0] * len(pairs), "about": [t for t, _ in pairs],
                      "kind": [n for _, n in pairs]})  # fmt: skip
    found = read(table, kind, rows, text_column="about", label_column="kind")
    assert found.texts == [text for text, _ in pairs]
    assert found.labels == [str(n) for _, n in pairs]
    assert found.lines.tolist() == found.records.tolist() == list(range(1, len(pairs) + 1))


@each
def test_types_of_columns(kind):
    strings = pa.array(["one", None, "three"])
    for type in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        found = read(pa.table({"text": strings.cast(type), "y": [1, 2, 3]}), kind)
        assert found.texts == ["one", "", "three"]
        assert found.labels == ["1", "2", "3"]
    for values, expected in (
        ([1.5, None, float("nan")], ["1.5", None, None]),
        ([True, False, None], ["true", "false", None]),
        (["a ", "", None], ["a", None, None]),
    ):
        found = read(pa.table({"text": strings, "label": values}), kind, labels="optional")
        assert found.labels == expected
    for values in ([[1], [2], [3]], [b"a", b"b", b"c"], [{"a": 1}] * 3):
        with pytest.raises(DataFileError, match=r"column 'text' has values of type .*: there must"):
            read(pa.table({"text": values, "y": [1, 2, 3]}), kind)


@each
def test_columns_of_numbers_and_several_texts(kind):
    table = pa.table({"u": [1, 2], "v": [0.5, -1.0], "species": ["a", "b"]})
    found = read(table, kind, label_column="species")
    assert isinstance(found, FeatureRows)
    np.testing.assert_array_equal(found.to_csr().toarray(), [[1.0, 0.5], [2.0, -1.0]])
    found = read(table, kind, text_column=["species", 1], label_column="v")
    assert found.texts == ["a\n1", "b\n2"]


@each
def test_batches_and_names_of_files(kind, tmp_path):
    table = pa.table({"text": [f"text {i}" for i in range(10_000)], "y": list(range(10_000))})
    content = written(table, kind)
    names = ["a.parquet", "a.pq", "a"] if kind == "parquet" else ["a.arrow", "a.feather", "a.ipc"]
    for name in names + (["a"] if kind == "arrow" else []):
        path = tmp_path / name
        path.write_bytes(content)
        with open_examples(path, batch_size=3000) as reader:
            batches = list(reader)
        assert [len(batch) for batch in batches] == [3000, 3000, 3000, 1000]
        assert batches[-1].texts[-1] == "text 9999"
        assert reader.layout.format == ("parquet" if kind == "parquet" else "arrow")


@each
def test_bad_rows_are_told_by_their_number(kind):
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.int32([0, 1, 2, 3])), pa.py_buffer(b"a\xffb")]
    )
    for column, message in (
        (pa.array(["a", "b\0", "c"]), "a NUL character"),
        (not_utf8, "a text that is not UTF-8"),
    ):
        table = pa.table({"text": column, "y": ["p", "q", "r"]})
        with pytest.raises(DataFileError, match=f"<stream>:2: {message}.*; the row has '"):
            read(table, kind)
        content = io.BytesIO(written(table, kind))
        format = "parquet" if kind == "parquet" else "arrow"
        with open_examples(content, format=format, on_error="skip") as reader:
            assert reader.read_all().lines.tolist() == [1, 3]
    with pytest.raises(DataFileError, match="<stream>:2: an empty label in column 'y'"):
        read(pa.table({"text": ["a", "b"], "y": ["p", None]}), kind)
    with pytest.raises(DataFileError, match="no column 'z': the file has columns 'text', 'y'"):
        read(pa.table({"text": ["a"], "y": ["p"]}), kind, label_column="z")
    with pytest.raises(DataFileError, match="which of columns 'a', 'b', 'c' has the texts"):
        read(pa.table({"a": ["x"], "b": ["y"], "c": ["z"]}), kind)
    with pytest.raises(DataFileError, match="no example in the file"):
        read(pa.table({"text": pa.array([], pa.string()), "y": pa.array([], pa.string())}), kind)


@pytest.mark.filterwarnings("error::ResourceWarning")
@each
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_files_that_are_cut_short_or_damaged(kind, on_error, tmp_path):
    table = pa.table({"text": [f"text {i * i}" for i in range(5000)], "y": list(range(5000))})
    whole = written(table, kind)
    path = tmp_path / ("a.parquet" if kind == "parquet" else "a.arrow")
    garbled = bytearray(whole)
    garbled[len(whole) // 3 : len(whole) // 3 + 2000] = bytes(2000)
    for broken in (b"", whole[:4], whole[:9], whole[: len(whole) // 2], bytes(garbled), b"a,b\n"):
        path.write_bytes(broken)
        try:
            with open_examples(path, on_error=on_error) as reader:
                reader.read_all()
        except DataFileError as error:
            assert str(error).startswith(str(path))  # noqa: PT017


def test_streams_are_refused():
    with pytest.raises(DataFileError, match="<stdin>: a stream cannot be Parquet: give a file"):
        open_examples(LiveStream(io.BytesIO(b"PAR1")), format="parquet")


def test_without_pyarrow_the_extra_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    code = (
        "import sys; sys.modules['pyarrow'] = None; sys.modules['compression'] = None\n"
        "from thinleaf.datasets import read_examples\n"
        "for name in ('a.parquet', 'a.csv.zst'):\n"
        "    try: read_examples(name)\n"
        "    except ModuleNotFoundError as error: print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    parquet_says, zstd_says = ended.stdout.splitlines()
    assert parquet_says == "a.parquet: Parquet files need pyarrow: pip install 'thinleaf[arrow]'"
    assert "a.csv.zst is compressed with zstd" in zstd_says
    assert "thinleaf[arrow]" in zstd_says

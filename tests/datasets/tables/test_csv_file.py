"""CSV: what a writer writes in any dialect comes back; what is broken is told by its line."""

from __future__ import annotations

import csv
import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thinleaf.datasets import (
    DataFileError,
    FeatureRows,
    LiveStream,
    TextRows,
    open_examples,
    read_examples,
)
from thinleaf.datasets.tables import csv_file
from thinleaf.datasets.tables.dialect import Dialect, find_dialect

cells = st.text(
    st.one_of(st.sampled_from(',;|\t"\r\n \ufeffa'), st.characters(exclude_categories=["Cs"])),
    max_size=12,
).filter(lambda text: "\0" not in text)
labels = st.text(st.sampled_from("abc, ;|\t\"'é"), min_size=1).filter(lambda text: text.strip())
delimiters = st.sampled_from(",;\t|")


def written(rows, **dialect) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, **dialect).writerows(rows)
    return stream.getvalue()


def read(text: str, **settings) -> TextRows:
    return read_examples(io.BytesIO(text.encode()), **{"format": "csv"} | settings)


# -- what is written is read -----------------------------------------------------------------------


@given(
    st.lists(st.tuples(cells, labels, cells), min_size=1),
    delimiters,
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_is_written_in_any_dialect_is_read(rows, delimiter, quoting, end, mark):
    # Before Python 3.13, a writer whose lines end in LF does not quote a lone CR.
    assume(
        end == "\r\n" or quoting == csv.QUOTE_ALL or not any("\r" in "".join(row) for row in rows)
    )
    header = ("the title", "kind", "more")
    text = written([header, *rows], delimiter=delimiter, quoting=quoting, lineterminator=end)
    found = read("\ufeff" * mark + text, text_column="the title", label_column="kind")
    assert found.texts == [row[0] for row in rows]
    assert found.labels == [row[1].strip() for row in rows]
    joined = read(text, text_column=["more", 1], label_column=2)
    assert joined.texts == [f"{row[2]}\n{row[0]}" for row in rows]
    assert found.records.tolist() == list(range(1, len(rows) + 1))


@given(st.lists(cells, min_size=1), delimiters)
def test_one_column_is_enough_for_texts(texts, delimiter):
    text = written([["text"], *([text] for text in texts)], delimiter=delimiter)
    assume(find_dialect(text.splitlines(keepends=True), ["text"]).delimiter == delimiter)
    assert read(text, labels="optional").texts == texts


@given(st.lists(st.tuples(labels, cells), min_size=1), st.integers(1, 4))
def test_batches_and_ways_to_read_are_the_same(rows, size):
    text = written([("label", "text"), *rows])
    whole = read(text)
    for source in (io.StringIO(text, newline="\n"), LiveStream(io.BytesIO(text.encode()))):
        with open_examples(source, format="csv", batch_size=size) as reader:
            found = reader.read_all()
        assert (found.texts, found.labels) == (whole.texts, whole.labels)
        assert found.lines.tolist() == whole.lines.tolist()


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("text;label\nwell, yes;a\nno, no;b\n", Dialect(";")),
        ("text|label\na;b|c,d\n", Dialect("|")),
        ("text\tlabel\na, b\tc\n", Dialect("\t")),
        ('text\tlabel\n"a\nb"\tc\n', Dialect("\t")),
        ('text\tlabel\n"a\tc\nb 5"\td\n"x" y\tc\n', Dialect("\t", quoted=False)),
        ('"text","label"\n"a;b;c",d\n', Dialect(",")),
        ("text\nhello; there\n", Dialect(",")),
        ("a, b;title\nx;y\n", Dialect(";")),
        ("", Dialect(",")),
    ],
)
def test_dialects_are_found(text, dialect):
    assert find_dialect(text.splitlines(keepends=True), ["title"]) == dialect


def test_quotes_of_tabbed_files_are_characters_if_they_are_not_closed():
    found = read('text\tlabel\n"a\tc\nb 5"\td\n"x" y\tc\n')
    assert found.texts == ['"a', 'b 5"', '"x" y']


@pytest.mark.parametrize(
    ("text", "has", "columns"),
    [
        ("text,label\nhello,cat\n", True, {}),
        ("cat,it purrs\ndog,it barks\ncat,it sleeps\n", False, {}),  # cat comes again
        ("cat,7\ndog,8\ncow,12345\n", False, {"text_column": 2, "label_column": 1}),
        ("a,a,b\nx,y,z\n", False, {"text_column": 2, "label_column": 1}),
        ("kind,about\ndog,it barks\ncow,it moos\n", True, {}),
        ("kind,about\ndog,it barks\n", True, {"text_column": 2, "label_column": 1}),
        ("a,b\nx,it barks\n", False, {"text_column": 2, "label_column": 1, "header": False}),
        ("1,2\ndog,it barks\n", True, {"text_column": "2", "label_column": "1", "header": True}),
    ],
)  # fmt: skip
def test_headers_are_noticed(text, has, columns):
    with open_examples(io.StringIO(text), format="csv", **columns) as reader:
        rows = reader.read_all()
    assert reader.layout.header is has
    assert len(rows) == text.count("\n") - has
    again = read(text, text_column=reader.layout.text_column,
                 label_column=reader.layout.label_column, header=has)  # fmt: skip
    assert (again.texts, again.labels) == (rows.texts, rows.labels)


def test_the_name_of_a_file_tells(tmp_path):
    text = b"text,label\nit purrs,cat\n"
    for name, content in (("a.csv", text), ("A.CSV.GZ", gzip.compress(text))):
        path = tmp_path / name
        path.write_bytes(content)
        assert read_examples(path).labels == ["cat"]


def test_columns_make_a_table_of_a_tsv_file_and_of_lines(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("about\tkind\nit purrs\tcat\n")
    columns = {"text_column": "about", "label_column": "kind"}
    assert read_examples(path, **columns).texts == ["it purrs"]
    assert read_examples(io.StringIO(path.read_text()), **columns).texts == ["it purrs"]
    for format in ("tsv", "fasttext", "libsvm"):
        with pytest.raises(ValueError, match=f"columns are for csv, .* but it is {format}"):
            read_examples(path, format=format, **columns)


# -- numbers ---------------------------------------------------------------------------------------


def test_columns_of_numbers_become_rows():
    rows = read("id,u,v,species\n1,0.5,-2,a\n2,0,1e3,b\n", label_column="species")
    assert isinstance(rows, FeatureRows)
    np.testing.assert_array_equal(rows.to_csr().toarray(), np.float32([[0.5, -2.0], [0.0, 1000.0]]))
    assert rows.labels == ["a", "b"]
    picked = read("id,u,v,y\n1,0.5,-2,a\n", feature_columns=["v", "id"])
    assert picked.to_csr().toarray().tolist() == [[-2.0, 1.0]]


@pytest.mark.parametrize("cell", ["", "x", "nan", "inf", "1e39", "1_0", "٣", "0x1"])
def test_cells_without_a_number(cell):
    text = f"u,v,y\n1,2,a\n3,{cell},b\n"
    message = rf":3: .*{re.escape(repr(cell))} in column 'v' is no finite number"
    with pytest.raises(DataFileError, match=message):
        read(text, feature_columns=["u", "v"])
    with open_examples(
        io.StringIO(text), format="csv", feature_columns=["u", "v"], on_error="skip"
    ) as reader:
        assert reader.read_all().labels == ["a"]


# -- what is broken --------------------------------------------------------------------------------

HEAD = "label,text\na,one\n"
BAD = [
    ("b", "1 field, where there should be 2: quote"),
    ("b,two,three", "3 fields, where there should be 2"),
    (",two", "an empty label in column 'label'"),
    ("  ,two", "an empty label"),
    ('"b\nc",two', r"a label with a line break, 'b\\nc'"),
    ("b,t\0wo", "a NUL character"),
    ('b,"two" three', "text after the quote that ends a field: double quotes"),
    ("b,two\rthree", "a lone carriage return: end lines"),
]


@pytest.mark.parametrize(("record", "message"), BAD)
def test_a_bad_record_is_told_by_its_line(record, message):
    text = f"{HEAD}\n{record}\nc,four\n"
    with pytest.raises(DataFileError, match=f"^<stream>:4: {message}.*; the record begins '"):
        read(text)
    with open_examples(io.StringIO(text, newline="\n"), format="csv", on_error="skip") as reader:
        rows = reader.read_all()
    assert rows.texts == ["one", "four"]
    assert rows.records.tolist() == [1, 4]
    assert (reader.n_rows, reader.n_blank, reader.n_skipped, reader.n_lines) == (2, 1, 1, 4)
    assert message.partition(":")[0] in reader.skipped[0] or "\\" in message


@pytest.mark.parametrize("bad", [b"\xff", b"\xe9t"])
def test_records_that_are_not_utf8(bad):
    content = b'label,text\na,one\nb,"two\n' + bad + b' three"\nc,four\n'
    with pytest.raises(DataFileError, match=r"^<stream>:3: not UTF-8 .*: save the file as UTF-8"):
        read_examples(io.BytesIO(content), format="csv")
    with open_examples(io.BytesIO(content), format="csv", on_error="skip") as reader:
        assert reader.read_all().texts == ["one", "four"]
    assert reader.n_skipped == 1
    with pytest.raises(DataFileError, match=r"^<stream>:1: not UTF-8"):
        read_examples(io.BytesIO(b"label,t" + bad + b"\na,one\n"), format="csv")
    with pytest.raises(DataFileError, match=r"^<stream>:1: not UTF-8"):
        read_examples(io.BytesIO("label,text\na,one\n".encode("utf-16")), format="csv")
    with pytest.raises(DataFileError, match=r"^<stream>:1: not UTF-8"):
        read_examples(io.BytesIO("label,text\r\na,one\r\n".encode("utf-16")), format="csv")


def test_a_quote_that_is_not_closed_costs_its_line_only():
    text = 'label,text\na,one\nb,"two\nc,three\nd,four\n'
    with pytest.raises(DataFileError, match=r":3: a quote that is not closed, by line 5: double"):
        read(text)
    with open_examples(io.StringIO(text), format="csv", on_error="skip") as reader:
        rows = reader.read_all()
    assert rows.labels == ["a", "c", "d"]
    assert rows.lines.tolist() == [2, 4, 5]
    assert (reader.n_skipped, reader.n_lines) == (1, 4)
    with pytest.raises(DataFileError, match=r":1: a quote that is not closed"):
        read('label,"text\na,one\n')


def test_quotes_that_are_never_closed_are_given_up(monkeypatch):
    monkeypatch.setattr(csv_file, "MAX_LINE", 50)
    text = "label,text\n" + 'b,"two\n' + "a,one\n" * 10
    with (
        pytest.raises(DataFileError, match=r":2: quotes that are not closed, here or before"),
        open_examples(io.StringIO(text), format="csv", on_error="skip") as reader,
    ):
        reader.read_all()


def test_long_fields():
    long = "x" * 1_000_000
    assert read(f'label,text\na,"{long}\n{long}"\n').texts == [f"{long}\n{long}"]
    many = "y" * (1 << 20) + "\n"
    text = 'label,text\na,one\nb,"' + many * 70 + '"\n'  # 70 MiB
    with pytest.raises(
        DataFileError, match=r":3: (a field of more than 64 MiB|quotes that are not)"
    ):
        read(text)
    with pytest.raises(DataFileError, match=r":3: the line is longer than 64 MiB"):
        read(text.replace("y\n", "yy"))


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "text,label\n", "text,label\n\n\n"])
def test_files_without_examples(content):
    with pytest.raises(DataFileError, match=r"^<stream>: no example in the file"):
        read(content)


def test_headers_that_do_not_do():
    with pytest.raises(DataFileError, match=r":1: no column 'c': the file has columns 'a', 'b'$"):
        read("a,b\n1,2\n", text_column="c")
    with pytest.raises(DataFileError, match=r":1: 2 columns are called 'text'"):
        read("text,text,label\n1,2,3\n", text_column="text")
    with pytest.raises(DataFileError, match=r":1: which of .*; give --no-header"):
        read("a,b,c\nx,y,z\n")
    with pytest.raises(DataFileError, match=r":2: no column 'b', for the file has no header"):
        read("\na,b\n1,2\n", text_column="b", header=False)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_files_that_are_cut_short(on_error, tmp_path):
    text = "label,text\n" + "".join(f'{i},"text\n{i * i}"\n' for i in range(20_000))
    path = tmp_path / "data.csv.gz"
    whole = gzip.compress(text.encode())
    path.write_bytes(whole)
    assert len(read_examples(path)) == 20_000
    path.write_bytes(whole[:-9])
    with (
        pytest.raises(DataFileError, match=r"data.csv.gz:\d+: the gzip data is damaged"),
        open_examples(path, on_error=on_error) as reader,
    ):
        reader.read_all()


@given(st.binary(max_size=200), st.sampled_from(["raise", "skip"]))
def test_any_bytes_are_read_or_refused(content, on_error):
    for head in (b"", b"label,text\n"):
        try:
            with open_examples(
                io.BytesIO(head + content), format="csv", on_error=on_error, labels="optional"
            ) as reader:
                counted = sum(len(batch) for batch in reader)
        except DataFileError:
            continue
        assert counted == reader.n_rows


@given(
    st.lists(st.tuples(labels, cells), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from('",;\n\r\t \0x')), max_size=4),
    st.integers(0, 10**6),
)
def test_files_that_are_changed_or_cut_are_read_or_refused(rows, changes, end):
    text = written([("label", "text"), *rows], lineterminator="\n")
    body = list(text[11:])
    for at, character in changes:
        body[at % len(body)] = character
    body = body[: end % (len(body) + 1)]
    source = io.StringIO(text[:11] + "".join(body), newline="\n")
    last = 0
    try:
        with open_examples(source, format="csv", on_error="skip", batch_size=2) as reader:
            for batch in reader:
                assert (np.diff([last, *batch.records]) > 0).all()
                assert all(batch.labels)
                last = int(batch.records[-1])
    except DataFileError:
        return
    assert last <= reader.n_lines


# -- as it arrives ---------------------------------------------------------------------------------


class Arriving(io.BufferedIOBase):
    """Gives one piece at a time, and remembers how many were taken."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = iter(pieces)
        self.n_taken = 0

    def read1(self, size: int = -1) -> bytes:
        self.n_taken += 1
        return next(self._pieces, b"")


@pytest.mark.parametrize("format", ["csv", "auto"])
def test_records_are_given_when_they_are_complete(format):
    stream = Arriving(
        b"\n", b"label,te", b"xt\n", b"a,one\nb,", b"two\n", b'c,"three\n', b'four"\n',
        b"\n", b"d\n", b"e,five",
    )  # fmt: skip
    settings = {"default_format": "tsv", "text_column": "text"} if format == "auto" else {}
    reader = open_examples(
        LiveStream(stream), format=format, on_error="skip", empty_batches=True, **settings
    )
    assert stream.n_taken == 3
    for n_taken, texts in ((4, ["one"]), (5, ["two"]), (7, ["three\nfour"]), (8, []), (9, [])):
        assert next(reader).texts == texts
        assert stream.n_taken == n_taken
        assert reader.layout.format == "csv"
    assert reader.n_lines == 6
    assert next(reader).texts == ["five"]
    with pytest.raises(StopIteration):
        next(reader)


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_files_are_closed(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\nx,y,z\n")
    with pytest.raises(DataFileError, match="not clear"):
        read_examples(path)
    path.write_text("label,text\nx,y,z\n")
    with pytest.raises(DataFileError, match="3 fields"):
        read_examples(path)

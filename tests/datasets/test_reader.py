"""Data files: what is written is read, in every way; what cannot be read is told by its line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from thinleaf.datasets import (
    DataFileError,
    FeatureRows,
    TextRows,
    concatenate,
    label_array,
    label_kind,
    lines,
    open_examples,
    read_examples,
)

GOOD = {
    "libsvm": "a 1:0.5 3:-2\nb 2:1e-3\n+7 4:1 # a comment\nc\n",
    "vw": "a |x one:0.5 two\nb 2.5 'tag|x two:3 |y:2 one\nc tag|\n",
    "fasttext": "__label__a one two\n__label__b  two, too\nlast is __label__c\n__label__d\n",
    "tsv": "a\tone two\nb b\ttwo\ttoo\nc\t\n",
}
formats = pytest.mark.parametrize("format", GOOD)

words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1)
values = st.floats(-(2.0**100), 2.0**100, width=32)
sparse_rows = st.lists(st.dictionaries(st.integers(1, 10**6), values, max_size=6), min_size=1)


def same(a, b) -> None:
    assert type(a) is type(b)
    for name, value in vars(a).items():
        np.testing.assert_array_equal(value, getattr(b, name), strict=True, err_msg=name)


def libsvm(rows: list[dict[int, float]], base: int = 1) -> str:
    return "".join(
        f"{label} {' '.join(f'{i - 1 + base}:{row[i]!r}' for i in sorted(row))}\n"
        for label, row in enumerate(rows)
    )


def read(text: str, **settings):
    return read_examples(io.StringIO(text), **settings)


# -- round trips -----------------------------------------------------------------------------------


@given(sparse_rows, st.booleans())
def test_sparse_rows_that_are_written_as_libsvm_are_read(rows, zero_based):
    text = libsvm(rows, 0 if zero_based else 1)
    found = read(text, format="libsvm", zero_based=zero_based)
    assert found.labels == [str(i) for i in range(len(rows))]
    for i, row in enumerate(rows):
        at = slice(found.indptr[i], found.indptr[i + 1])
        assert (found.indices[at] + 1).tolist() == sorted(row)
        np.testing.assert_array_equal(found.data[at], np.float32([row[j] for j in sorted(row)]))
    assert found.n_features == max((max(row, default=0) for row in rows), default=0)


@given(sparse_rows)
def test_libsvm_is_read_as_scikit_learn_reads_it(rows):
    text = libsvm(rows)
    X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=False, dtype=np.float32)
    found = read(text, format="libsvm", zero_based=False)
    np.testing.assert_array_equal(found.indptr, X.indptr)
    np.testing.assert_array_equal(found.indices, X.indices)
    np.testing.assert_array_equal(found.data, X.data)
    np.testing.assert_array_equal(label_array(found.labels), y)
    if X.nnz:  # else scikit-learn makes up a feature
        assert found.to_csr().shape == X.shape


@given(st.lists(st.tuples(words, st.lists(words)), min_size=1))
def test_labelled_texts_that_are_written_are_read(pairs):
    texts = [" ".join(text) for _, text in pairs]
    labels = [label for label, _ in pairs]
    tsv = "".join(f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True))
    found = read(tsv, format="tsv")
    assert (found.labels, found.texts) == (labels, texts)
    assert found.lines.tolist() == list(range(1, len(pairs) + 1))


@given(st.lists(st.tuples(words, st.lists(words)), min_size=1))
def test_texts_that_are_written_as_fasttext_are_read(pairs):
    assume(not any(word.startswith("__label__") for _, text in pairs for word in text))
    text = "".join(f"__label__{label} {' '.join(text)}\n" for label, text in pairs)
    found = read(text, format="fasttext")
    assert found.labels == [label for label, _ in pairs]
    assert found.texts == [" ".join(text) for _, text in pairs]


@given(sparse_rows)
def test_integer_features_of_vw_are_those_of_libsvm(rows):
    text = libsvm(rows, base=0)
    vw = re.sub(r"^(\d+) ", r"\1 | ", text, flags=re.M)
    same(
        read(vw, format="vw", hashed=False),
        read(text, format="libsvm", zero_based=True),
    )


def test_dtypes():
    rows = read(GOOD["libsvm"])
    assert (rows.indptr.dtype, rows.indices.dtype, rows.data.dtype) == (np.int32, np.int32, "f4")
    X = rows.to_csr()
    assert X.has_canonical_format
    assert X.toarray().tolist() == [
        [0.5, 0.0, -2.0, 0.0],
        [0.0, np.float32(1e-3), 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    assert rows.labels == ["a", "b", "+7", "c"]


def test_texts():
    assert read(GOOD["fasttext"]).texts == ["one two", "two, too", "last is", ""]
    assert read(GOOD["fasttext"]).labels == ["a", "b", "c", "d"]
    assert read(GOOD["tsv"]).texts == ["one two", "two\ttoo", ""]
    assert read(GOOD["tsv"]).labels == ["a", "b b", "c"]


# -- ways to read ----------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_batches_are_the_whole(format, size):
    with open_examples(io.StringIO(GOOD[format]), format=format, batch_size=size) as reader:
        batches = list(reader)
    whole = read(GOOD[format], format=format)
    same(concatenate(batches), whole)
    assert all(len(batch) == size for batch in batches[:-1])
    assert reader.n_rows == len(whole)


@given(sparse_rows, st.integers(1, 5))
def test_batches_of_any_rows_are_the_whole(rows, size):
    text = libsvm(rows)
    with open_examples(io.StringIO(text), format="libsvm", batch_size=size) as reader:
        same(reader.read_all(), read(text, format="libsvm"))


@formats
def test_a_file_its_gzip_and_streams_are_the_same(format, tmp_path):
    content = GOOD[format].encode()
    plain, compressed, odd = (tmp_path / name for name in ("data", "data.gz", "data.bin"))
    plain.write_bytes(content)
    compressed.write_bytes(gzip.compress(content))
    odd.write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
    whole = read(GOOD[format])
    for source in (plain, str(plain), compressed, odd, io.BytesIO(content)):
        same(read_examples(source), whole)
    with plain.open() as file:
        same(read_examples(file), whole)
        assert not file.closed


@formats
def test_line_ends_marks_and_blank_lines_do_not_matter(format):
    text = GOOD[format]
    whole = read(text)
    for content in (
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        text.removesuffix("\n"),
        text + "\n\n",
    ):
        same(read_examples(io.BytesIO(content.encode())), whole)
        same(read(content), whole)
    spaced = "\n \n" + text.replace("\n", "\n\n")
    with open_examples(io.StringIO(spaced), format=format) as reader:
        rows = reader.read_all()
    assert rows.labels == whole.labels
    assert (rows.lines == 2 * whole.lines + 1).all()
    assert (reader.n_blank, reader.n_skipped) == (2 + len(whole), 0)


@formats
def test_the_layout_that_was_found_reads_the_same(format):
    with open_examples(io.StringIO(GOOD[format])) as reader:
        whole = reader.read_all()
    assert reader.layout.format == format
    same(read(GOOD[format], **asdict(reader.layout)), whole)


def test_a_stream_is_read_from_where_it_stands():
    stream = io.StringIO("# header\na\tone\n")
    stream.readline()
    assert read_examples(stream).labels == ["a"]


def test_a_known_layout_needs_no_lines_in_advance():
    class Trickle(io.StringIO):
        n_read = 0

        def readline(self, size=-1):
            self.n_read += 1
            return super().readline(size)

    stream = Trickle("1 1:2\n" * 50)
    reader = open_examples(stream, format="libsvm", zero_based=False, batch_size=1)
    assert stream.n_read == 0
    next(reader)
    assert stream.n_read == 1


def test_texts_and_rows_do_not_mix():
    with pytest.raises(ValueError, match="cannot be concatenated"):
        concatenate([read(GOOD["tsv"]), read(GOOD["libsvm"])])


# -- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.svm", "libsvm"),
        ("a.LIBSVM.GZ", "libsvm"),
        ("a.b.svmlight", "libsvm"),
        ("a.vw.gz", "vw"),
        ("a.ft", "fasttext"),
        ("a.fasttext", "fasttext"),
        ("a.tsv", "tsv"),
        ("a.tsv.zst", "tsv"),
    ],
)
def test_the_name_tells_the_format(name, format, tmp_path):
    path = tmp_path / name
    path.write_text(GOOD[format])
    with open_examples(path) as reader:
        assert reader.layout.format == format


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("a\t1:2\nb\t3:4\n", "libsvm or tsv"),
        ("__label__a\tone\n", "fasttext or tsv"),
        ("a\tone | two\n", "vw or tsv"),
        ("just some words\n", "is none of libsvm, vw, fasttext, tsv"),
        ("a\tone\nno tab\n", "is none of .*"),
    ],
)
def test_a_format_that_cannot_be_told(text, candidates):
    with pytest.raises(DataFileError, match=rf"^<stream>: .*{candidates}; pass format"):
        read(text)


def test_an_index_of_zero_among_the_first_lines_means_counting_from_zero():
    text = "a 1:5\nb 0:7 1:8\n"
    assert read(text).to_csr().toarray().tolist() == [[0.0, 5.0], [7.0, 8.0]]
    assert read("a 1:5\n").to_csr().toarray().tolist() == [[5.0]]
    assert read("a 1:5\n", zero_based=True).to_csr().toarray().tolist() == [[0.0, 5.0]]


def test_a_later_index_of_zero_is_an_error():
    text = "a 1:5\n" * 2000 + "a 0:1\n"
    with pytest.raises(DataFileError, match=r":2001: index 0 is below 1.*zero_based=True"):
        read(text)


def test_names_of_vw_features_are_hashed_unless_they_are_numbers_of_one_namespace():
    for text, hashed in [
        ("a | 1:2 0\n", False),
        ("a |n 1:2 0\nb |n 3\nc |\n", False),
        ("a |n 1:2 |m 0\n", True),
        ("a |n 1 |m\n", False),
        ("a |n 1 x\n", True),
        ("a |n 4294967295\n", True),
    ]:
        with open_examples(io.StringIO(text)) as reader:
            assert reader.layout.hashed is hashed, text
            assert reader.layout.n_features == (2**18 if hashed else None)


def test_hashed_features_depend_on_namespace_and_name_only():
    rows = read("a |x one two |y one\nb |y one |x two one:0.5 one:0.5\nc | one\n", hashed=True)
    X = rows.to_csr()
    assert X.shape == (3, 2**18)
    assert X[0].nnz == 3
    assert (X[0] != X[1]).nnz == 0
    assert (X[0].multiply(X[2])).nnz == 0
    again = read("z | one\n", hashed=True)
    assert again.indices.tolist() == X[2].indices.tolist()
    small = read("z | one\n", hashed=True, n_features=7)
    assert small.n_features == 7
    assert small.indices[0] < 7


def test_the_hash_of_a_name_never_changes():
    """Models depend on it."""
    assert read("a |ns name\n").indices.tolist() == [249983]


def test_weights_of_vw():
    rows = read("a 2.5 |x:2 p:3 q\nb |x p\n", hashed=True)
    assert rows.weights.tolist() == [2.5, 1.0]
    assert sorted(rows.data.tolist()) == [1.0, 2.0, 6.0]
    assert read("a 1:2\n").weights.tolist() == [1.0]


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["1", "-2", "+3", "0"], "int"),
        (["1", "2.0", "1e3", "-5."], "float"),
        (["1.1", "1.10"], "str"),
        (["1", "2.5"], "str"),
        (["1", "b"], "str"),
        (["1", "02"], "str"),
        (["1", "nan"], "str"),
        (["1", "inf"], "str"),
        (["1", "1e999"], "str"),
        (["1_0"], "str"),
        (["٣"], "str"),
        (["9223372036854775807"], "int"),
        (["9223372036854775808"], "str"),
        (["9007199254740993.0"], "str"),
        (["1", ""], "str"),
        (["1", None], "str"),
    ],
)
def test_what_labels_are(labels, kind):
    assert label_kind(labels) == kind


def test_labels_as_arrays():
    assert label_array(["1", "+2"]).tolist() == [1, 2]
    assert label_array(["1", "2.0"]).dtype == np.float64
    assert label_array(["1.1", "1.10"]).tolist() == ["1.1", "1.10"]
    assert label_array(["1", "2.5"], "float").tolist() == [1.0, 2.5]
    assert label_array(["1", "x"]).tolist() == ["1", "x"]
    assert label_array(["1", "2"], "str").tolist() == ["1", "2"]
    assert label_array(["1", "2"], "float").dtype == np.float64
    with pytest.raises(ValueError, match="the label 'x' is no int"):
        label_array(["1", "x"], "int")
    with pytest.raises(ValueError, match="1 of 2 rows have no label"):
        label_array(["1", None])


@pytest.mark.parametrize(
    ("format", "text", "labels"),
    [
        ("libsvm", "a 1:2\n1:2 2:3\n+1:1\n", ["a", None, None]),
        ("vw", "a | x\n| x\n'tag| x\ntag|x y\n", ["a", None, None, None]),
        ("fasttext", "__label__a one\none two\n", ["a", None]),
        ("tsv", "a\tone\none two\n\tone\n", ["a", None, None]),
    ],
)
def test_labels_may_be_missing_if_they_are_optional(format, text, labels):
    assert read(text, format=format, labels="optional").labels == labels
    with pytest.raises(DataFileError, match=r"^<stream>:2: no (label|tab)"):
        read(text, format=format)


def test_whole_lines_as_examples():
    assert read("1:2 2:3\n", format="libsvm", labels="none").indices.tolist() == [0, 1]
    assert read("a\tb __label__c\n", format="tsv", labels="none").texts == ["a\tb __label__c"]
    assert read("a\tb __label__c\n", format="fasttext", labels="none").texts == ["a\tb __label__c"]
    assert read("| 1\n'tag| 2\n", format="vw", labels="none").labels == [None, None]


# -- bad lines -------------------------------------------------------------------------------------

BAD = [
    ("libsvm", "a 1:x", "'1:x' is not index:value"),
    ("libsvm", "a 1:", "'1:' is not index:value"),
    ("libsvm", "a :1", "':1' is not index:value"),
    ("libsvm", "a 1", "'1' is not index:value"),
    ("libsvm", "a 1:2:3 4", "'1:2:3' is not index:value"),
    ("libsvm", "a 1.5:2", "'1.5:2' is not index:value"),
    ("libsvm", "a 1_0:2", "'1_0:2' is not index:value"),
    ("libsvm", "a 1:2_0", "'1:2_0' is not index:value"),
    ("libsvm", "a ١:2", "'١:2' is not index:value"),
    ("libsvm", "a b 1:2", "'b' is not index:value"),
    ("libsvm", "a qid:3 1:2", "'qid:3' is not index:value"),
    ("libsvm", "a 1:nan", "value nan is not finite"),
    ("libsvm", "a 1:1 2:-inf", "value -inf is not finite"),
    ("libsvm", "a 1:1e39", r"value 1e\+39 is not finite"),
    ("libsvm", f"a {'9' * 5000}:1", "99…' is not index:value"),
    ("libsvm", "a 2147483648:1", "index 2147483648 is too large"),
    ("libsvm", "a 0:1", "index 0 is below 1: .*zero_based=True"),
    ("libsvm", "a -1:1", "index -1 is below 1"),
    ("libsvm", "a 2:1 2:1", "index 2 after 2"),
    ("libsvm", "a 1:1 5:1 3:1", "index 3 after 5: sort"),
    ("libsvm", "1:1 2:1", "no label"),
    ("libsvm", "1:nan", "no label"),
    ("libsvm", "1,2 1:1", "several labels, '1,2'"),
    ("vw", "a x y", "no bar"),
    ("vw", "| x", "no label"),
    ("vw", "a| x", "no label: a word that touches the bar is a tag"),
    ("vw", "1,2 | x", "several labels, '1,2'"),
    ("vw", "1:0.5 2:1 | x", "a label with a cost, '1:0.5'"),
    ("vw", "1 2 3 | x", "3 words before the bar: give one label"),
    ("vw", "1 b | x", "no finite number in 'b'"),
    ("vw", "1 nan | x", "no finite number in 'nan'"),
    ("vw", "1 -1 | x", "importance '-1' is negative"),
    ("vw", "1 | x:y", "no finite number in 'x:y'"),
    ("vw", "1 | x:", "no finite number in 'x:'"),
    ("vw", "1 | x:1:2", "no finite number in 'x:1:2'"),
    ("vw", "1 | x:1_0", "no finite number in 'x:1_0'"),
    ("vw", "1 | x:nan", "value nan is not finite"),
    ("vw", "1 | x:1e39", "not finite"),
    ("vw", "1 | x:3e38 x:3e38", "not finite"),
    ("vw", "1 |n:z x", "no finite number in 'n:z'"),
    ("vw", "1 | :1", "feature ':1' has no name"),
    ("fasttext", "one two", "no label"),
    ("fasttext", "__label__ one", "an empty label"),
    ("fasttext", "__label__a __label__b one", "2 labels: one is allowed"),
    ("fasttext", "__label__a one __label__b", "2 labels: one is allowed"),
    ("tsv", "one two", "no tab"),
    ("tsv", "\tone", "an empty label"),
    ("tsv", " \tone", "an empty label"),
    ("tsv", "a\tNUL \0", "NUL"),
]


@pytest.mark.parametrize(("format", "line", "message"), BAD)
def test_a_bad_line_is_told_by_its_number(format, line, message, tmp_path):
    path = tmp_path / "data.txt"
    good = GOOD[format].splitlines()[0]
    path.write_text(f"{good}\n\n{line}\n{good}\n", encoding="utf-8")
    settings = {"format": format, "zero_based": False, "hashed": True}
    place = rf"^{re.escape(str(path))}:3: "
    with pytest.raises(DataFileError, match=f"{place}.*{message}.*; the line is '.+'$") as caught:
        read_examples(path, **settings)
    assert len(str(caught.value)) < 400
    with open_examples(path, **settings, on_error="skip") as reader:
        assert reader.read_all().lines.tolist() == [1, 4]
    assert (reader.n_rows, reader.n_blank, reader.n_skipped) == (2, 1, 1)
    assert reader.skipped == [str(caught.value)]


@pytest.mark.parametrize(
    ("line", "message"),
    [("1 |b 2", "namespace 'b' beside 'a'"), ("1 |a x", "feature 'x' is no integer")],
)
def test_vw_lines_that_need_hashing_after_some_that_do_not(line, message):
    with pytest.raises(DataFileError, match=rf":1001: {message}.*hashed=True"):
        read("1 |a 1:2\n" * 1000 + line + "\n")


def test_a_label_where_there_should_be_none():
    with pytest.raises(DataFileError, match=r":1: a label, 'a'"):
        read("a | x\n", format="vw", labels="none")
    with pytest.raises(DataFileError, match=r":1: 'a' is not index:value"):
        read("a 1:2\n", format="libsvm", labels="none")


@formats
@pytest.mark.parametrize("bad", [b"\xff\xfe", b"\xe9t"])
def test_lines_that_are_not_utf8(format, bad):
    first, *rest = GOOD[format].encode().splitlines(keepends=True)
    content = first + bad + b"\n" + b"".join(rest)
    with pytest.raises(DataFileError, match=r"^<stream>:2: not UTF-8 .*: save the file as UTF-8"):
        read_examples(io.BytesIO(content), format=format)
    with open_examples(io.BytesIO(content), format=format, on_error="skip") as reader:
        assert reader.read_all().labels == read(GOOD[format]).labels
    assert reader.n_skipped == 1


def test_text_streams_that_are_not_utf8():
    content = b"a\tone\nb\t\xe9t\n"
    lenient = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataFileError, match=r"^<stream>:2: not UTF-8"):
        read_examples(lenient, format="tsv")
    strict = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    with pytest.raises(DataFileError, match=r"^<stream>:1: here or in the lines that follow"):
        read_examples(strict, format="tsv")


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_gzip_files_that_are_cut_short_or_damaged(on_error, tmp_path):
    content = "".join(f"{i}\ttext {i * i}\n" for i in range(20_000)).encode()
    whole = gzip.compress(content)
    garbled = whole[:5000] + bytes(64) + whole[5064:]
    path = tmp_path / "data.tsv.gz"
    for broken in (whole[:-1], whole[:-9], whole[:40_000], whole[:5], whole + b"\1", garbled):
        path.write_bytes(broken)
        with (
            pytest.raises(DataFileError, match=r"data.tsv.gz:\d+: the gzip data is damaged"),
            open_examples(path, on_error=on_error) as reader,
        ):
            reader.read_all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tone\n".encode("utf-16"), "not UTF-8 text, but UTF-16: save"),
        (b"PAR1\x15\0\xff\n", "but Parquet: give the name of the file"),
        (b"ARROW1\0\0\xff\n", "but Arrow: give the name of the file"),
        (b"PK\x03\x04\x14\0\n", "but a zip archive or an Excel file: save the table as CSV"),
        (bz2.compress(b"a\tone\n"), "but compressed by bzip2: compress"),
        (lzma.compress(b"a\tone\n"), "but compressed by xz: compress"),
    ],
)
@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl"])
def test_what_is_no_text_is_named(content, message, format):
    with pytest.raises(DataFileError, match=f"^<stream>:1: .*{message}"):
        read_examples(io.BytesIO(content), format=format)


def test_texts_may_begin_as_other_files_do():
    assert read("BZh\tPAR1\n", format="tsv").labels == ["BZh"]


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", ["data.svm", "data.vw", "data.ft", "data.tsv", "data"])
@pytest.mark.parametrize("compress", [False, True])
def test_files_without_examples(content, name, compress, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if compress else content)
    with pytest.raises(DataFileError, match=rf"^{re.escape(str(path))}: no example in the file"):
        read_examples(path)


def test_files_of_bad_lines_only():
    reader = open_examples(io.StringIO("one\ntwo\n"), format="tsv", on_error="skip")
    with pytest.raises(DataFileError, match=r"none of 2 lines can be read as tsv.*<stream>:1: no"):
        next(reader)


def test_many_bad_lines_are_counted_and_some_described():
    text = "bad\n" * 1000 + "a\tone\n"
    with open_examples(io.StringIO(text), format="tsv", on_error="skip") as reader:
        assert reader.read_all().lines.tolist() == [1001]
    assert reader.n_skipped == 1000
    assert len(reader.skipped) == 10


def test_lines_without_end(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    for on_error in ("raise", "skip"):
        reader = open_examples(
            io.StringIO("a\tb\na\t" + "b" * 200), format="tsv", on_error=on_error
        )
        with pytest.raises(DataFileError, match=r"^<stream>:2: the line is longer"):
            reader.read_all()
    assert read("a\t" + "b" * 98, format="tsv").texts == ["b" * 98]


@given(st.binary(max_size=200), st.sampled_from(list(GOOD)), st.sampled_from(["raise", "skip"]))
def test_any_bytes_are_read_or_refused(content, format, on_error):
    counted = 0
    try:
        with open_examples(io.BytesIO(content), format=format, on_error=on_error) as reader:
            for batch in reader:
                counted += len(batch)
                if isinstance(batch, FeatureRows):
                    batch.to_csr().check_format(full_check=True)
                    assert np.isfinite(batch.data).all()
    except DataFileError:
        return
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))
    assert counted + reader.n_blank + reader.n_skipped == n_lines


@given(
    st.text(st.sampled_from("ab01.:|,#'_-+ \t\n\re"), max_size=60),
    st.sampled_from(list(GOOD)),
    st.sampled_from(["required", "optional", "none"]),
)
def test_no_line_is_lost(text, format, labels):
    try:
        with open_examples(
            io.BytesIO(text.encode()), format=format, labels=labels, on_error="skip"
        ) as reader:
            rows = reader.read_all()
    except DataFileError:
        return
    assert len(rows) + reader.n_blank + reader.n_skipped == len(text.removesuffix("\n").split("\n"))
    if labels == "required":
        assert all(rows.labels)


# -- features beyond what is known -----------------------------------------------------------------


def test_features_beyond_what_is_known():
    text = "a 1:1 3:3\nb 5:5\n"
    with pytest.raises(DataFileError, match=r":2: feature 5 is beyond the 3 features"):
        read(text, n_features=3)
    with open_examples(io.StringIO(text), n_features=2, unknown_features="drop") as reader:
        assert reader.read_all().to_csr().toarray().tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert reader.n_dropped == 2
    assert read(text, n_features=9).to_csr().shape == (2, 9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "xml"),
        ("format", None),
        ("zero_based", "yes"),
        ("hashed", None),
        ("labels", True),
        ("on_error", "ignore"),
        ("unknown_features", "keep"),
        ("batch_size", 0),
        ("batch_size", 1.5),
        ("n_features", 0),
        ("n_features", True),
        ("n_features", 2**31),
        ("header", "yes"),
        ("text_column", 0),
        ("text_column", 1.5),
        ("text_column", ["a", None, 0]),
        ("label_column", -1),
        ("feature_columns", [True]),
    ],
)
def test_settings(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        open_examples(io.StringIO("a 1:1\n"), **{name: value})


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_examples(tmp_path / "none.svm")
    with pytest.raises(OSError, match=re.escape(tmp_path.name)):
        read_examples(tmp_path)


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_files_are_closed(tmp_path: Path):
    path = tmp_path / "data.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tone\nbad\n"))
    with open_examples(path, on_error="skip") as reader:
        assert isinstance(reader.read_all(), TextRows)
    with pytest.raises(DataFileError):
        read_examples(path)
    path.rename(tmp_path / "moved")
    with pytest.raises(DataFileError, match="cannot be told"):
        read_examples(tmp_path / "moved")

"""First lines of another format, and headers, are noticed; texts that resemble them are not."""

from __future__ import annotations

import io

import pytest

from thinleaf.datasets import DataFileError, Layout, LiveStream, open_examples, read_examples
from thinleaf.datasets.first_lines import evident_format
from thinleaf.text.recipe import Recipe

EVIDENT = {
    "csv": [
        ["cat,it purrs", "dog,it barks, and loudly", "cow,it moos"],
        ["it purrs,cat", "it barks, and loudly,dog", "it moos,cow"],
        ['"big cat","it purrs"', '"dog","it barks, and ""loudly"""', '"cow","it moos"'],
        ["5,0.1,0.25", "3,0.2,0.5", "4,0.5,1"],
    ],
    "jsonl": [
        ['{"a": 1}', '{"a": {"b": [1]}}'],
        ['{"label": "cat"}'],
    ],
    "json": [
        ["[", '  {"label": "cat"},'],
        ['[{"label": "cat"}, {"label": "dog"}]'],
    ],
    "libsvm": [
        ["3 1:0.5 7:2", "4 2:1"],
        ["1:0.5 7:2"],
        ["cat 1:0.5 2:1 # a comment"],
        ["3\t1:0.5\t7:2"],
    ],
    "fasttext": [["__label__cat it purrs", "__label__dog it barks"]],
    "vw": [["1 |f a:0.5 b:2", "2 1.5 'tag|f a:1"]],
}

TEXTS = [
    ["it purrs"],
    ["Fever, unspecified", "Pain, acute", "Cough, chronic"],
    ["Fever, unspecified"],
    ["cat,it purrs", "dog,it barks"],  # too few to say
    ["1,000 men", "2,500 women", "3,141 children"],
    ["well,yes", "no", "perhaps,no"],
    ["{braces} and [brackets]", "{a} b", "{}"],
    ['{"a": 1}', "it purrs"],
    ["{not json}"],
    ["[1, 2, 3]", "[4]"],
    ['She said "no", and left', 'He said "yes"', 'Both said "hm"'],
    ["bus 10:30 11:45", "train 12:50"],
    ["10:30"],
    ["ratio 3:1"],
    ["verse 3:16 says", "psalm 23:1 2:5"],
    ["Home | About", "Prices | Terms"],
    ["a | b:c"],
    ["a | b at 12:30 exactly", "c | d:e"],
]


@pytest.mark.parametrize(
    ("format", "lines"), [(name, lines) for name, cases in EVIDENT.items() for lines in cases]
)
def test_formats_that_are_evident(format, lines):
    assert evident_format(lines) == format
    recipe = Recipe(0, Layout("tsv"), raw=True)
    stream = io.StringIO("\n".join(lines))
    with pytest.raises(DataFileError, match=r"look like .* should be tab-separated .*--format tsv"):
        recipe.open(stream)
    stream.seek(0)
    examples = recipe.open(stream, format="tsv").read_all()  # whoever says so is believed
    assert len(examples) == len(lines)


@pytest.mark.parametrize("lines", TEXTS)
def test_texts_that_only_resemble_a_format(lines, tmp_path):
    assert evident_format(lines) is None
    recipe = Recipe(0, Layout("tsv"), raw=True)
    assert recipe.open(io.StringIO("\n".join(lines))).read_all().texts == lines
    labelled = "\n".join(f"some label\t{line}" for line in lines)
    assert recipe.open(io.StringIO(labelled)).read_all().texts == lines
    (tmp_path / "train.tsv").write_text(labelled)
    assert read_examples(tmp_path / "train.tsv").texts == lines


def test_the_format_to_give_is_named():
    recipe = Recipe(0, Layout("tsv"), raw=True)
    with pytest.raises(DataFileError, match=r"like fastText, .*: give --format fasttext, or"):
        recipe.open(io.StringIO("__label__cat it purrs\n"))
    recipe = Recipe(0, Layout("fasttext"), raw=True)
    with pytest.raises(DataFileError, match=r"like tab-separated, .*: give --format tsv, or"):
        recipe.open(io.StringIO("cat\tit purrs\n" * 3))
    assert recipe.open(io.StringIO("it purrs\nit barks\n")).read_all().labels == [None, None]


def test_lines_without_labels_may_have_tabs():
    recipe = Recipe(0, Layout("fasttext"), raw=True)
    lines = ["label\ttext", "a\tb", "__label__c\td"]
    assert recipe.open(io.StringIO("\n".join(lines)), labels="none").read_all().texts == lines
    recipe = Recipe(0, Layout("tsv"), raw=True)
    assert recipe.open(io.StringIO("\n".join(lines)), labels="none").read_all().texts == lines


def test_lines_as_long_as_may_be():
    for line in ("|" * 200_000, '"' + "x" * 200_000, ",a" * 100_000, "{" * 200_000):
        assert evident_format([line] * 5) in (None, "csv")


def test_rows_of_features_say_what_the_file_looks_like():
    recipe = Recipe(9, Layout("libsvm", n_features=9))
    with pytest.raises(DataFileError, match=r"look like CSV, but should be LIBSVM \(label index"):
        recipe.open(io.StringIO("5,0.1,0.2\n6,0.1,0.4\n7,0.1,0.3\n"))
    with pytest.raises(DataFileError, match="several labels"):  # as before
        recipe.open(io.StringIO("1,2 3:1\n2,3 1:1\n4,5 1:1\n")).read_all()


@pytest.mark.parametrize(
    ("format", "hint"), [("csv", "CSV; pass format"), ("json", "JSON: write one object a line")]
)
def test_a_format_that_cannot_be_told_but_is_evident(format, hint):
    with pytest.raises(DataFileError, match=f"none of .*, but looks like {hint}"):
        read_examples(io.StringIO("\n".join(EVIDENT[format][0])))


TABLES = [
    ["label,text", 'cat,"it purrs"', 'dog,"it barks, and loudly"'],
    ["text;label", '"it purrs";cat', '"it barks, and loudly";dog'],
    ['{"label": "cat", "text": "it purrs"}', '{"label": "dog", "text": "it barks, and loudly"}'],
]


@pytest.mark.parametrize("lines", TABLES)
@pytest.mark.parametrize("layout", [Layout("tsv"), None])
def test_columns_that_are_evident_are_read(lines, layout):
    recipe = Recipe(0, layout, raw=True)
    examples = recipe.open(io.StringIO("\n".join(lines))).read_all()
    assert examples.texts == ["it purrs", "it barks, and loudly"]
    assert examples.labels == ["cat", "dog"]
    assert len(read_examples(io.StringIO("\n".join(lines)))) == 2
    stream = io.StringIO("\n".join(lines))  # whoever says so is believed
    assert recipe.open(stream, format="tsv").read_all().texts == lines


@pytest.mark.parametrize(
    "header",
    ["label\ttext", "Category\tText", "text\tlabel", "id\tlabel\ttext", "#class\tsentence",
     '"code"\t"description"', "intent\ttext"],
)  # fmt: skip
def test_a_header_names_columns(tmp_path, header):
    order = [name.strip('#"').lower() for name in header.split("\t")]
    text_at = next(i for i, name in enumerate(order) if name in ("text", "sentence", "description"))
    label_at = next(
        i
        for i, name in enumerate(order)
        if name in ("label", "category", "class", "code", "intent")
    )
    rows = []
    for label, text in (("cat", "it purrs"), ("dog", "it barks")):
        cells = ["7"] * len(order)
        cells[text_at], cells[label_at] = text, label
        rows.append("\t".join(cells))
    path = tmp_path / "train.tsv"
    path.write_text("\n".join(["", header, *rows]) + "\n")
    for read in (open_examples, Recipe(0, Layout("tsv"), raw=True).open):
        with read(path) as reader:
            examples = reader.read_all()
        assert examples.labels == ["cat", "dog"]
        assert examples.texts == ["it purrs", "it barks"]
        assert examples.lines.tolist() == [3, 4]
        assert reader.layout.format == "csv"
        assert (reader.n_skipped, reader.n_blank) == (0, 1)
    assert len(read_examples(path, format="tsv")) == 3


def test_a_table_with_tabs_needs_one_known_name():
    table = "sku\ttitle\tstate\n7\ta lamp\tnew\n8\ta chair\tused\n"
    found = read_examples(io.StringIO(table), text_column=2, label_column=3)
    assert (found.texts, found.labels) == (["a lamp", "a chair"], ["new", "used"])
    with pytest.raises(DataFileError, match=r"'sku', 'title', 'state' has the labels is not clear"):
        read_examples(io.StringIO(table))
    for lines in (
        "cat\ttitle\tit purrs\ndog\tit barks\n",  # another line has fewer fields
        "cat\ttitle\tit purrs\ncat\tbook\tit sleeps\n",  # the label comes again
        "cat\ttitle\t12\ndog\tbook\t13\n",  # a number is no name
        "cat\tbook\tname\ndog\tfilm\tyear\n",  # nothing is known
    ):
        assert read_examples(io.StringIO(lines)).labels[0] == "cat"


def test_a_header_that_comes_late_is_no_example():
    class Arriving(io.BufferedIOBase):
        pieces = iter([b"\n", b"label\ttext\n", b"cat\tit purrs\n", b""])

        def read1(self, size: int = -1) -> bytes:
            return next(self.pieces)

    recipe = Recipe(0, Layout("tsv"), raw=True)
    with (
        recipe.open(LiveStream(Arriving())) as reader,
        pytest.raises(DataFileError, match=r"<stdin>:2: .* is a header.*: give --format csv"),
    ):
        reader.read_all()


def test_lines_that_are_no_header():
    for text in ("label\tthe text", "cat\ttext", "id\tname", "y\tx y", "label"):
        recipe = Recipe(0, Layout("tsv"), raw=True)
        assert len(recipe.open(io.StringIO(text + "\n")).read_all()) == 1
    later = "cat\tit purrs\nlabel\ttext\n"  # only the first line can be one
    assert len(read_examples(io.StringIO(later))) == 2


def test_a_live_stream_is_not_waited_for():
    taken = []

    class Arriving(io.BufferedIOBase):
        def read1(self, size: int = -1) -> bytes:
            taken.append(size)
            return [b"it purrs\n", b"\n", b"it barks\n", b""][len(taken) - 1]

    recipe = Recipe(0, Layout("tsv"), raw=True)
    with recipe.open(LiveStream(Arriving()), empty_batches=True) as reader:
        for n_taken, texts in ((1, ["it purrs"]), (2, []), (3, ["it barks"])):
            assert next(reader).texts == texts
            assert len(taken) == reader.n_lines == n_taken
        with pytest.raises(StopIteration):
            next(reader)

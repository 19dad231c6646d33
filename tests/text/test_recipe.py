"""Models that remember how lines become rows, and lines that are read as they arrive."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from thinleaf import ModelFileError
from thinleaf.datasets import Layout, LiveStream, open_examples, read_examples
from thinleaf.datasets.lines import MAX_LINE, DataFileError
from thinleaf.model.file_parts import Section
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import KnownLabels, Recipe

TEXTS = ["a broken arm", "a broken leg", "the broken arm"]


def text_recipe(format: str = "tsv") -> Recipe:
    features = TextFeatures(ngram_range=(1, 1)).fit(TEXTS)
    return Recipe(features.n_features, Layout(format), features)


def row_recipe(**layout) -> Recipe:
    return Recipe(4, Layout("libsvm", n_features=4, **layout))


@pytest.mark.parametrize("recipe", [text_recipe(), row_recipe(), row_recipe(zero_based=True)])
def test_a_recipe_comes_back_from_its_sections(recipe):
    again = Recipe.of(recipe.sections(), recipe.n_features)
    assert again.layout == recipe.layout
    line = "x\tA broken toe\n" if recipe.text else "x 1:2 3:4\n"
    examples = [r.open(io.BytesIO(line.encode())).read_all() for r in (recipe, again)]
    rows = [r.rows(e).toarray() for r, e in zip((recipe, again), examples, strict=True)]
    np.testing.assert_array_equal(*rows)
    assert rows[0].any()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "csv"},
        {"version": 2},
        {"zero_based": "no"},
        {"n_features": 5},
        {"n_features": None},
        {"more": 1},
        {"format": "tsv", "n_features": None},
    ],
)
def test_a_damaged_section_is_an_error(change):
    sections = row_recipe().sections()
    damaged = Section({}, dict(sections["input"].metadata) | change)
    with pytest.raises(ModelFileError, match="no valid recipe"):
        Recipe.of({"input": damaged}, 4)


def test_what_has_no_columns_is_written_as_before():
    """So that older versions can read it."""
    metadata = text_recipe().sections()["input"].metadata
    assert metadata == {
        "version": 1, "format": "tsv", "zero_based": False, "hashed": False, "n_features": None,
    }  # fmt: skip


TABLE = Layout("csv", text_column=("title", "body"), label_column="kind")
UNNAMED = Layout("csv", text_column=(2,), label_column=1, header=False)
NUMBERS = Layout("parquet", n_features=2, feature_columns=("u", "v"), label_column="y")


def table_recipe(layout: Layout) -> Recipe:
    return Recipe(2, layout) if layout.feature_columns else Recipe(0, layout, raw=True)


@pytest.mark.parametrize("layout", [TABLE, UNNAMED, NUMBERS, replace(TABLE, label_column=None)])
def test_columns_come_back_from_their_section(layout):
    recipe = table_recipe(layout)
    section = recipe.sections()["input"]
    assert section.metadata["version"] == 2
    stored = Section({}, json.loads(json.dumps(dict(section.metadata))))
    again = Recipe.of({"input": stored}, recipe.n_features, raw=recipe.raw)
    assert again.layout == layout


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"version": 3},
        {"format": "tsv"},
        {"text_column": []},
        {"text_column": "title"},
        {"text_column": ["title", 2]},
        {"text_column": [None]},
        {"feature_columns": ["u"]},
        {"label_column": 1},
        {"header": "yes"},
        {"header": False},
        {"header": False, "text_column": [0], "label_column": 1},
        {"n_features": 2},
        {"zero_based": 0},
    ],
)
def test_damaged_columns_are_an_error(change):
    metadata = json.loads(json.dumps(dict(table_recipe(TABLE).sections()["input"].metadata)))
    with pytest.raises(ModelFileError, match="no valid recipe"):
        Recipe.of({"input": Section({}, metadata | change)}, 0, raw=True)


def test_a_model_of_a_table_reads_its_columns(tmp_path):
    recipe = table_recipe(TABLE)
    csv = "id,body,title\n7,made of oak,A chair\n"
    for text, given in (
        (csv, {}),
        (csv, {"format": "csv"}),
        (csv.replace(",", "\t"), {}),
        ('{"title": "A chair", "body": "made of oak"}\n', {}),
        ('{"title": "A chair", "body": "made of oak"}\n', {"format": "jsonl"}),
        ("BODY;Title;kind\nmade of oak;A chair;\n", {}),
    ):
        examples = recipe.open(io.StringIO(text), **given).read_all()
        assert (examples.texts, examples.labels) == (["A chair\nmade of oak"], [None])
    for name in ("new.csv", "new.tsv"):
        (tmp_path / name).write_text(csv if name == "new.csv" else csv.replace(",", "\t"))
        assert recipe.open(tmp_path / name).read_all().texts == ["A chair\nmade of oak"]
    assert recipe.open(io.StringIO(csv), labels="none").read_all().texts == ["A chair\nmade of oak"]
    with pytest.raises(DataFileError, match=r":1: no column 'kind': the file has columns 'id'"):
        recipe.open(io.StringIO(csv), labels="required")
    with pytest.raises(DataFileError, match=r":1: no column 'title'"):
        recipe.open(io.StringIO("text,kind\nx,y\n"), format="csv")
    other = recipe.open(io.StringIO("text,kind\nx,y\n"), text_column="text").read_all()
    assert (other.texts, other.labels) == (["x"], ["y"])
    with pytest.raises(ValueError, match="takes no libsvm"):
        recipe.open(io.StringIO("x 1:2\n"), format="libsvm")


def test_a_model_of_a_table_also_reads_plain_texts():
    recipe = table_recipe(TABLE)
    for text in ("A chair, made of oak", "What is, say, title and body?", "chair"):
        assert recipe.open(io.StringIO(text + "\n")).read_all().texts == [text]
    assert recipe.open(io.StringIO("x\tchair\n")).read_all().labels == ["x"]
    assert recipe.open(io.StringIO("x\tchair\n"), labels="none").read_all().texts == ["x\tchair"]
    for text in ("name,colour\nx,y\n", "name;colour of it\nx;y\n"):
        with pytest.raises(DataFileError, match="looks like a header, but has no columns 'title'"):
            recipe.open(io.StringIO(text))
        assert len(recipe.open(io.StringIO(text), format="tsv").read_all()) == 2
    with pytest.raises(DataFileError, match=r"look like JSON, but .*give --format jsonl"):
        recipe.open(io.StringIO('{"name": "x"}\n'))


def test_a_model_of_a_table_without_names_reads_numbers_of_columns():
    recipe = table_recipe(UNNAMED)
    for given in ({}, {"format": "csv"}):
        examples = recipe.open(io.StringIO("a,A chair,x\n"), **given).read_all()
        assert (examples.texts, examples.labels) == (["A chair"], ["a"])
    with pytest.raises(DataFileError, match="no column 2: the file has 1"):
        recipe.open(io.StringIO("A chair\n"))


def test_a_model_of_columns_of_numbers():
    recipe = table_recipe(NUMBERS)
    assert [recipe.feature_name(i) for i in range(2)] == ["u", "v"]
    for text in ("v,id,u\n1,7,2\n", '{"v": 1, "u": 2}\n'):
        rows = recipe.rows(recipe.open(io.StringIO(text)).read_all())
        assert rows.toarray().tolist() == [[2.0, 1.0]]
    with pytest.raises(ValueError, match="takes no tsv"):
        recipe.open(io.StringIO("a\tb\n"), format="tsv")
    with pytest.raises(DataFileError, match="no column 'u'"):
        recipe.open(io.StringIO("v,w\n1,2\n"))


@pytest.mark.parametrize("layout", [Layout("tsv"), Layout("fasttext"), None])
def test_a_model_of_lines_reads_a_table_whose_columns_are_clear(layout, tmp_path):
    recipe = Recipe(0, layout, raw=True)
    path = tmp_path / "new.csv"
    path.write_text("text,kind\nA chair,x\n")
    assert recipe.open(path).read_all().texts == ["A chair"]
    path.write_text("about,kind,more\nA chair,x,y\n")
    with pytest.raises(DataFileError, match="has the texts is not clear: give --text-column"):
        recipe.open(path)
    examples = recipe.open(path, text_column="about", label_column="kind").read_all()
    assert (examples.texts, examples.labels) == (["A chair"], ["x"])


def test_text_features_must_fit_the_model():
    with pytest.raises(ModelFileError, match="do not fit"):
        Recipe.of(text_recipe().sections(), 99)
    with pytest.raises(ModelFileError, match="needs text features"):
        Recipe.of({"input": text_recipe().sections()["input"]}, 3)


def test_without_a_recipe_rows_of_features_are_read():
    recipe = Recipe.of({}, 3)
    reader = recipe.open(io.StringIO("x 1:2 9:4\n"))
    assert recipe.rows(reader.read_all()).toarray().tolist() == [[2.0, 0.0, 0.0]]
    assert reader.n_dropped == 1
    with pytest.raises(ValueError, match="takes rows of features"):
        recipe.rows(recipe.open(io.StringIO("x\ta text\n")).read_all())


def test_texts_may_come_in_another_format_of_texts():
    recipe = text_recipe("tsv")
    reader = recipe.open(io.StringIO("__label__x a broken arm\n"), format="fasttext")
    assert reader.read_all().labels == ["x"]
    with pytest.raises(ValueError, match="takes no libsvm"):
        recipe.open(io.StringIO("x 1:2\n"), format="libsvm")
    with pytest.raises(ValueError, match="takes no tsv"):
        row_recipe().open(io.StringIO("x\ta text\n"), format="tsv")
    with pytest.raises(ValueError, match="takes texts"):
        recipe.rows(read_examples(io.StringIO("x 1:2\n")))


def test_features_have_the_names_of_the_file():
    assert [text_recipe().feature_name(f) for f in range(3)] == ["a", "arm", "broken"]
    assert row_recipe().feature_name(0) == "1"
    assert row_recipe(zero_based=True).feature_name(0) == "0"
    assert Recipe(4).feature_name(3) == "3"
    assert Recipe(4, Layout("vw", hashed=True, n_features=4)).feature_name(3) == "bucket 3"
    hashing = Recipe(8, Layout("tsv"), TextFeatures("hashing", n_buckets=8))
    assert hashing.feature_name(3) == "bucket 3"


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        (np.array([1, 20]), ["20", "x", "+1", None, "1.0"]),
        (np.array([1.0, 20.5]), ["20.5", "x", "1", None, "1e9"]),
        (np.array(["b", "a"]), ["a", "x", "b", None, "c"]),
        (np.array(["b", "a"], dtype=object), ["a", "x", "b", None, "c"]),
        (np.array([False, True]), ["True", "x", "False", None, "1"]),
    ],
)
def test_labels_are_found_as_they_are_written(labels, tokens):
    known = KnownLabels(labels)
    for _ in range(2):  # the second time from what was seen
        assert known.ids(tokens).tolist() == [1, -1, 0, -1, -1]
        assert known.ids(tokens[::2]).tolist() == [1, 0, -1]


# -- streams ---------------------------------------------------------------------------------------


class Arriving(io.BufferedIOBase):
    """Gives one piece at a time, and remembers how many were taken."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self.n_taken = 0

    def read1(self, size: int = -1) -> bytes:
        self.n_taken += 1
        return next(self._pieces, b"")


def test_a_batch_ends_where_the_next_line_has_not_arrived():
    stream = Arriving([b"a 1:1\nb 1:1\nc ", b"1:1\n", b"\n", b"d 2:1"])
    reader = open_examples(LiveStream(stream), format="libsvm", zero_based=False)
    assert next(reader).labels == ["a", "b"]
    assert stream.n_taken == 1
    assert next(reader).labels == ["c"]
    assert stream.n_taken == 2
    assert next(reader).labels == ["d"]
    with pytest.raises(StopIteration):
        next(reader)


def test_a_full_batch_ends_too():
    stream = LiveStream(Arriving([b"a 1:1\nb 1:1\nc 1:1\n"]))
    reader = open_examples(stream, format="libsvm", zero_based=False, batch_size=2)
    assert [batch.labels for batch in reader] == [["a", "b"], ["c"]]


def test_a_live_line_has_a_limit():
    stream = LiveStream(Arriving([b"x" * (MAX_LINE // 2)] * 4), name="<stdin>")
    with pytest.raises(DataFileError, match="<stdin>:1: the line is longer"):
        next(open_examples(stream, format="tsv"))


def test_what_comes_before_a_bad_line_is_given_first():
    reader = open_examples(io.StringIO("a 1:1\nb 1:1\nc 1:x\nd 1:1\n"), format="libsvm")
    assert next(reader).labels == ["a", "b"]
    for _ in range(2):
        with pytest.raises(DataFileError, match=":3: "):
            next(reader)

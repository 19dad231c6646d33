"""Several columns, encoders and other names on the command line; what answers look like."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pytest

import thinleaf
from tests.cli.test_cli import done, wrong
from tests.explain.explorer.test_page import blocks
from tests.text_cases import made_texts, vowels
from thinleaf import LabelTreeClassifier, SoftmaxTreeClassifier, TextClassifier

TEXTS, LABELS = made_texts(80)
QUICK = ["--model", "st", "--depth", "1", "--max-sweeps", "1", "--jobs", "1", "--quiet"]
HEADER = ("question", "answer", "price", "intent")


def table(rows, header=HEADER) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "train.csv"
    path.write_text(table(zip(TEXTS, TEXTS[::-1], map(str, range(80)), LABELS, strict=True)))
    return path


@pytest.fixture(scope="module")
def one_column(data):
    path = data.parent / "one"
    columns = ["--text-column", "question", "--label-column", "intent"]
    done("train", data, "-o", path, *columns, *QUICK)
    return path


@pytest.fixture(scope="module")
def several(data):
    path = data.parent / "several"
    texts = ["--text-column", "question", "--text-column", "answer"]
    done(
        "train", data, "-o", path, *texts, "--numeric-column", "price",
        "--label-column", "intent", "--trainable", *QUICK,
    )  # fmt: skip
    return path


# -- names of columns ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "text,label\ncard stolen,card\nloan rate,loan\n",
        "id,text\n1,card stolen\n2,loan rate\n",
        '{"text": "card stolen"}\n{"text": "loan rate"}\n',
        "question\ncard stolen\nloan rate\n",
    ],
)
def test_a_well_known_name_will_do_where_the_model_has_another(one_column, content, tmp_path):
    answers = done("predict", one_column, stdin=content).stdout
    assert answers == "card\nloan\n"
    if content.startswith("{"):
        assert done("predict", one_column, "--format", "jsonl", stdin=content).stdout == answers
    elif content.startswith("text"):
        path = tmp_path / "new.csv"
        path.write_text(content)
        assert done("predict", one_column, path, "-q").stdout == answers
        assert done("evaluate", one_column, path, "-q").exit_code == 0


def test_a_name_that_was_given_must_be_there(one_column):
    told = wrong(
        "predict", one_column, "--format", "csv", "--text-column", "title", stdin="text\na\n"
    )
    assert "no column 'title'" in told
    told = wrong("predict", one_column, "--format", "csv", stdin="foo,bar\na,b\n")
    assert "no column 'question'" in told


def test_a_file_without_labels_is_told(data, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text\na card\na loan\n")
    told = wrong("train", path, "-o", tmp_path / "model", *QUICK)
    assert "no column of labels beside column 'text'" in told


# -- several columns -------------------------------------------------------------------------------


def test_columns_are_read_by_all_verbs(several, data):
    model = thinleaf.load(several)
    assert list(model.input.texts) == ["question", "answer"]
    assert model.input.numeric == ["price"]
    X = {"question": TEXTS, "answer": TEXTS[::-1], "price": np.arange(80.0)}
    assert done("predict", several, data, "-q").stdout.splitlines() == model.predict(X).tolist()
    objects = [
        {"PRICE": i, "answer": TEXTS[::-1][i], "question": TEXTS[i]} for i in range(len(TEXTS))
    ]
    lines = "".join(json.dumps(o) + "\n" for o in objects).replace("PRICE", "price")
    assert done("predict", several, stdin=lines).stdout.splitlines() == model.predict(X).tolist()
    for verb in ("evaluate", "inspect"):
        assert done(verb, several, data, "-q").exit_code == 0
    again = thinleaf.load_estimator(several)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_file_of_a_python_model_of_columns_is_read(data, tmp_path):
    X = {"question": TEXTS, "answer": TEXTS[::-1]}
    clf = TextClassifier(
        SoftmaxTreeClassifier(depth=1, max_sweeps=1),
        text_columns=["question", "answer"],
        random_state=0,
    ).fit(X, LABELS)
    clf.save(tmp_path / "model")
    answers = done("predict", tmp_path / "model", data, "-q").stdout.splitlines()
    assert answers == clf.predict(X).tolist()
    renamed = ["--text-column", "a", "--text-column", "b"]
    content = table(zip(TEXTS, TEXTS[::-1], strict=True), ("a", "b"))
    answers = done("predict", tmp_path / "model", *renamed, stdin=content).stdout.splitlines()
    assert answers == clf.predict(X).tolist()
    assert "names 1" in wrong("predict", tmp_path / "model", *renamed[:2], stdin=content)


def test_columns_that_are_missing_or_no_numbers_are_told(several, data, tmp_path):
    assert "no column 'question'" in wrong("predict", several, stdin="just a text\nand another\n")
    bad = table([("a card", "a loan", "cheap", "card")])
    told = wrong("predict", several, "-q", stdin=bad)
    assert "'cheap' in column 'price' is no finite number" in told
    twice = ["--text-column", "question", "--text-column", "question", "--separate-columns"]
    told = wrong("train", data, "-o", tmp_path / "m", *twice, "--label-column", "intent", *QUICK)
    assert "named more than once" in told
    told = wrong("train", data, "-o", tmp_path / "m", "--separate-columns", "--model", "label-tree")
    assert "not for --model label-tree" in told
    lines = tmp_path / "lines.tsv"
    lines.write_text("card\ta card\nloan\ta loan\n" * 5)
    told = wrong("train", lines, "-o", tmp_path / "m", "--separate-columns", *QUICK)
    assert "has no columns" in told


def test_a_model_of_columns_rejects(data, tmp_path):
    texts, labels = made_texts(400)
    rows = list(zip(texts, texts[::-1], ["1"] * 400, labels, strict=True))
    path = tmp_path / "more.csv"
    path.write_text(table(rows))
    done(
        "train", path, "-o", tmp_path / "model", "--text-column", "question",
        "--numeric-column", "price", "--label-column", "intent", *QUICK,
    )  # fmt: skip
    answers = done("predict", tmp_path / "model", "--reject", "0.5", "-q", stdin=table(
        [("qq ww", "zz", "1", ""), ("card stolen card", "zz", "1", "")]
    )).stdout.splitlines()  # fmt: skip
    assert answers == ["", "card"]


# -- encoders --------------------------------------------------------------------------------------


def test_an_encoder_of_a_directory(data, tmp_path):
    pytest.importorskip("onnxruntime")
    from tests.text.test_sentence_encoder import write_model

    write_model(tmp_path / "encoder")
    encoder = ["--encoder", tmp_path / "encoder"]
    columns = ["--text-column", "question", "--label-column", "intent"]
    model = tmp_path / "model"
    done("train", data, "-o", model, *columns, *encoder, *QUICK)
    answers = done("predict", model, data, *encoder, "-q").stdout.splitlines()
    loaded = thinleaf.load(model, encoder=thinleaf.text.SentenceEncoder(tmp_path / "encoder"))
    assert answers == loaded.predict(TEXTS).tolist()
    assert done("evaluate", model, data, *encoder, "-q").exit_code == 0
    assert "--encoder DIR" in wrong("predict", model, data, "-q")
    told = wrong("train", data, "-o", model, *columns, *encoder, "--text", "words", *QUICK)
    assert "leave out --text" in told
    told = wrong("train", data, "-o", model, *encoder, "--model", "label-tree")
    assert "--encoder is for softmax trees" in told


# -- answers ---------------------------------------------------------------------------------------


def test_answers_as_csv(one_column):
    content = 'question\ncard stolen\n\n"loan\nrate"\n'
    text = done("predict", one_column, "--output-format", "csv", stdin=content).stdout
    assert text == "line,label\n2,card\n4,loan\n"
    text = done(
        "predict", one_column, "--output-format", "csv", "--top-k", "2", "--proba",
        "--min-proba", "0.999999", stdin=content,
    ).stdout  # fmt: skip
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["line", "label_1", "probability_1", "label_2", "probability_2", "rejected"]
    assert {len(row) for row in rows} == {6}
    assert rows[1] == ["2", "", "", "", "", "true"]
    as_json = done("predict", one_column, "--output-format", "json", stdin=content).stdout
    assert as_json == done("predict", one_column, "--json", stdin=content).stdout
    told = wrong("predict", one_column, "--output-format", "csv", "--json", stdin=content)
    assert "exclude each other" in told


def test_a_label_with_a_line_break_is_one_line(tmp_path):
    labels = [f"{label}\nof\ttwo \\ lines" for label in LABELS]
    model = SoftmaxTreeClassifier(depth=1, max_sweeps=1)
    TextClassifier(model, "words", random_state=0).fit(TEXTS, labels).save(tmp_path / "model")
    answers = done("predict", tmp_path / "model", stdin="card stolen\nloan rate\n").stdout
    assert answers == "card\\nof\\ttwo \\ lines\nloan\\nof\\ttwo \\ lines\n"
    text = done("predict", tmp_path / "model", "--output-format", "csv", stdin="card pin\n").stdout
    assert list(csv.reader(io.StringIO(text)))[1] == ["1", "card\nof\ttwo \\ lines"]


def test_standard_input_may_be_compressed(one_column):
    content = b"card stolen\nloan rate\n"
    assert done("predict", one_column, stdin=gzip.compress(content)).stdout == "card\nloan\n"
    pa = pytest.importorskip("pyarrow")
    zstd = pa.Codec("zstd").compress(content, asbytes=True)
    assert done("predict", one_column, stdin=zstd).stdout == "card\nloan\n"
    assert "cut short" in wrong("predict", one_column, "-q", stdin=gzip.compress(content)[:-9])


def test_label_trees_reject_on_the_command_line(tmp_path):
    texts, labels = made_texts(400)
    lines = "".join(f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True))
    train = ["--model", "label-tree", "--set", "epochs=20", "--set", "dim=8", "-q"]
    done("train", "-", "-o", tmp_path / "model", "--format", "tsv", *train, stdin=lines)
    asked = "zz qq ww\nplease help with my stolen card pin\n"
    answers = done("predict", tmp_path / "model", "--reject", "0.5", "-q", stdin=asked).stdout
    assert answers == "\ncard\n"
    assert isinstance(thinleaf.load_estimator(tmp_path / "model"), LabelTreeClassifier)
    assert done("inspect", tmp_path / "model", "-q").exit_code == 0


def test_an_encoder_of_python_is_not_found_by_its_name(tmp_path):
    clf = TextClassifier(SoftmaxTreeClassifier(depth=1, max_sweeps=1), vowels, random_state=0)
    clf.fit(TEXTS, LABELS).save(tmp_path / "model")
    assert "by the encoder 'vowels'" in wrong("predict", tmp_path / "model", stdin="a\n")


def test_examples_of_a_page_are_rows_of_the_table(several, data, tmp_path):
    out = tmp_path / "tree.html"
    done("explore", several, data, "-o", out, "-q")
    examples = blocks(out)["tree"][0]["examples"]
    assert examples
    for example in examples:
        row = example["number"] - 2  # a line of the header, and lines count from one
        assert example["cells"] == [TEXTS[row], TEXTS[::-1][row], str(row)]
        assert example["label"] == LABELS[row]

"""From a table to answers: columns are named, found or asked for, and each record is answered."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import thinleaf
from tests.cli.test_cli import done, numbers, process, texts, wrong
from tests.cli.test_edges import ask, posix
from thinleaf.datasets import read_examples

QUICK = ["--model", "st", "--depth", "1", "--max-sweeps", "1", "--jobs", "1", "--quiet"]
COLUMNS = ["--text-column", "title", "--label-column", "kind"]


def records(n_rows: int, seed: int) -> list[tuple[str, str, str]]:
    own, y = texts(n_rows, seed)
    return [
        (f'{text},\n"so"', label, str(i))
        for i, (text, label) in enumerate(zip(own, y, strict=True))
    ]


def as_csv(rows, header=("title", "kind", "sku"), delimiter=",") -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows([header, *rows])
    return stream.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    paths = {
        name: folder / name for name in ("train.csv", "test.csv", "test.jsonl", "test.parquet")
    }
    train, test = records(60, 0), records(30, 1)
    paths["train.csv"].write_text(as_csv(train), encoding="utf-8", newline="")
    paths["test.csv"].write_text(as_csv(test, delimiter=";"), encoding="utf-8", newline="")
    objects = [{"kind": label, "title": text} for text, label, _ in test]
    paths["test.jsonl"].write_text("".join(json.dumps(o) + "\n" for o in objects))
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pa.Table.from_pylist(objects), paths["test.parquet"]
    )
    paths["model"] = folder / "model.thinleaf"
    done("train", paths["train.csv"], "-o", paths["model"], *COLUMNS, *QUICK)
    return paths


@pytest.mark.parametrize("name", ["test.csv", "test.jsonl", "test.parquet"])
def test_a_table_is_answered_and_judged(files, name):
    model = thinleaf.load(files["model"])
    assert model.n_classes == 6
    answers = done("predict", files["model"], files[name], "-q").stdout.splitlines()
    columns = {"text_column": "title", "label_column": "kind"}
    rows = read_examples(files[name], **columns)
    assert len(answers) == len(rows) == 30
    figures = json.loads(done("evaluate", files["model"], files[name], "--json", "-q").stdout)
    wrongs = sum(a != b for a, b in zip(answers, rows.labels, strict=True))
    assert figures["error"] == pytest.approx(wrongs / 30)
    first = json.loads(
        done("predict", files["model"], files[name], "--json", "-q").stdout.splitlines()[1]
    )
    assert first["line"] == rows.lines[1]


def test_other_verbs_read_tables(files, tmp_path):
    done("inspect", files["model"], files["test.csv"], "-q")
    done("bench", files["model"], files["test.csv"], "--repeats", "1", "-q", "--json")
    other = tmp_path / "other.csv"
    other.write_text(as_csv(records(12, 2), ("about", "class", "n")))
    message = wrong("evaluate", files["model"], other, "-q")
    assert "other.csv:1: no column 'title': the file has columns 'about', 'class', 'n'" in message
    named = ["--text-column", "about", "--label-column", "2"]
    for verb in ("evaluate", "inspect", "bench"):
        done(verb, files["model"], other, *named, "-q")
    assert len(done("predict", files["model"], other, *named[:2], "-q").stdout.splitlines()) == 12
    compared = done("bench", "compare", files["train.csv"], "--test", files["test.csv"], *COLUMNS,
                    "--models", "ova", "--json", "-q")  # fmt: skip
    assert json.loads(compared.stdout)["test_rows"] == 30


def test_what_is_read_is_said(files, tmp_path):
    out = tmp_path / "m"
    said = done(
        "train", files["train.csv"], "-o", out, "--label-column", "kind", *QUICK[:-1]
    ).stderr
    assert (
        "texts are in column 'title', labels in column 'kind', 1 other column is passed over"
        in said
    )
    message = wrong("train", files["test.csv"], "-o", out, "--text-column", "body", *QUICK)
    assert "test.csv:1: no column 'body': the file has columns 'title', 'kind', 'sku'" in message
    said = done("predict", files["model"], stdin="a red green thing\n")
    assert said.stdout == "class0\n"
    assert "has no columns, such as 'title': each line is a text" in said.stderr
    assert "title" not in done("predict", files["model"], files["test.csv"]).stderr


def test_several_columns_and_numbers_of_columns(files, tmp_path):
    out = tmp_path / "m"
    columns = ["--text-column", "1", "--text-column", "sku", "--label-column", "2"]
    done("train", files["train.csv"], "-o", out, *columns, *QUICK)
    answers = done("predict", out, "-q", stdin="sku,title\n7,a red green thing\n").stdout
    assert answers == "class0\n"
    headless = tmp_path / "headless.csv"
    headless.write_text(files["train.csv"].read_text().partition("\n")[2])
    done("train", headless, "-o", out, "--no-header", "--text-column", "1", "--label-column", "2",
         *QUICK)  # fmt: skip
    assert thinleaf.load(out).summary["rows"] == 60
    assert len(done("predict", out, headless, "-q").stdout.splitlines()) == 60


def test_bad_records_can_be_left_out(files):
    table = 'title,kind\na red green thing,class0\nbad,,,\n\n"a blue\nround thing",class2\n'
    result = done("predict", files["model"], "--on-error", "skip", stdin=table)
    assert result.stdout == "class0\n\n\nclass2\n"
    assert "1 lines were left out; <stdin>:3: 4 fields, where there should be 2" in result.stderr
    message = wrong("predict", files["model"], "-q", stdin=table)
    assert message.startswith("error: <stdin>:3: 4 fields")


@posix
def test_every_record_is_answered_at_once(files):
    with process(
        "predict", files["model"], "--format", "csv", "--on-error", "skip", "-q",
        stdin=subprocess.PIPE, bufsize=0,
    ) as running:  # fmt: skip
        try:
            running.stdin.write(b"title\n")
            assert ask(running, b"a red green thing\n") == b"class0\n"
            assert ask(running, b"\n") == b"\n"
            assert ask(running, b"two,fields\n") == b"\n"
            assert ask(running, b'"a blue\nround thing"\n') == b"class2\n"
        finally:
            running.stdin.close()
        assert running.stdout.read() == b""
        assert running.wait(timeout=300) == 0


def test_a_table_of_numbers(tmp_path):
    X, y = numbers(60, 0)
    names = [f"x{j}" for j in range(6)]
    for name in ("train", "test"):
        rows = [[*x, f"class{c}"] for x, c in zip(X.tolist(), y.tolist(), strict=True)]
        (tmp_path / f"{name}.csv").write_text(as_csv(rows, [*names, "species"]))
    out = tmp_path / "m"
    done("train", tmp_path / "train.csv", "-o", out, "--label-column", "species", *QUICK)
    model = thinleaf.load(out)
    assert not model.packed.sparse
    expected = model.predict(np.float32(X)).tolist()
    assert done("predict", out, tmp_path / "test.csv", "-q").stdout.splitlines() == expected
    backwards = as_csv([x[::-1] for x in X.tolist()], names[::-1])
    assert done("predict", out, "-q", stdin=backwards).stdout.splitlines() == expected
    assert "x3" in done("inspect", out, "-q").stdout
    message = wrong("train", tmp_path / "train.csv", "-o", out, "--text", "tfidf",
                    "--label-column", "species", *QUICK)  # fmt: skip
    assert "--text is for texts" in message

"""``train --auto`` and ``--dry-run``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from thinleaf import load
from thinleaf.cli import app


@pytest.fixture
def data(tmp_path):
    lines = [f"c{i % 5}\tword{i % 5} word{i % 7} thing{i % 5}\n" for i in range(300)]
    path = tmp_path / "data.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_budget_is_kept(data, tmp_path):
    output = tmp_path / "model.thinleaf"
    options = ["--auto", "--max-mb", 0.06, "--trees", 2, "--text", "words", "--jobs", 1, "--json"]
    done = run("train", data, "-o", output, *options)
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert record["file_bytes"] == output.stat().st_size <= 60_000
    assert record["chosen"]
    assert load(output).predict_one("word1 thing1") == "c1"


def test_what_would_it_cost(data, tmp_path):
    done = run("train", data, "--dry-run", "--text", "words", "--json", "--jobs", 1)
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert record["rows"] == 300
    assert record["seconds"] > 0
    assert record["model_bytes"] > 0
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


def test_a_model_is_written_somewhere(data):
    done = run("train", data)
    assert done.exit_code == 2
    assert "give the model file to write" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-us", "5"], "give --auto"),
        (["--auto", "--model", "st"], "chooses the model"),
        (["--auto", "--beam", "4"], "--beam is chosen"),
        (["--auto", "--weights", "int8"], "--weights is chosen"),
        (["--auto", "--max-mb", "-1"], "must be above 0"),
        (["--auto", "--depth", "3"], "no parameter 'depth'"),
    ],
)
def test_options_that_do_not_go_together(data, tmp_path, options, message):
    done = run("train", data, "-o", tmp_path / "model.thinleaf", *options)
    assert done.exit_code == 1
    assert message in " ".join(done.output.split())

"""``thinleaf train --continue``: a file learns more rows and becomes another one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thinleaf.cli import app

_WORDS = [f"word{i}" for i in range(40)]


def write(path, classes, n, seed):
    rng = random.Random(seed)
    lines = [
        f"c{c}\t{' '.join(rng.choices(_WORDS[4 * c : 4 * c + 4], k=4))}\n"
        for c in classes
        for _ in range(n)
    ]
    path.write_text("".join(lines))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("continue")
    data, path = write(folder / "old.tsv", range(5), 15, 0), str(folder / "old.thinleaf")
    quick = ["--no-rejection", "--max-rounds", "0", "--text", "words", "--quiet"]
    assert run("train", data, "-o", path, "--trainable", *quick).exit_code == 0
    assert run("train", data, "-o", path + ".small", *quick).exit_code == 0
    return path


def test_a_file_goes_on_and_stays_as_it_was(model, tmp_path):
    before = Path(model).read_bytes()
    new, out = write(tmp_path / "new.tsv", [2, 6, 7], 12, 1), str(tmp_path / "new.thinleaf")
    done = run("train", "--continue", model, new, "-o", out, "--json", "--quiet")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (record["new_classes"], record["classes"], record["rows"]) == (2, 7, 36)
    assert record["error_after"] < record["error_before"]
    assert Path(model).read_bytes() == before
    test = write(tmp_path / "test.tsv", [0, 1, 2, 3, 4, 6, 7], 10, 2)
    found = run("evaluate", out, test, "--json")
    assert json.loads(found.stdout)["error"] < 0.1
    again = run("train", "--continue", out, new, "-o", str(tmp_path / "third.thinleaf"))
    assert again.exit_code == 0, again.output
    assert "0 new classes" in again.output


def test_what_cannot_be_is_said(model, tmp_path):
    new, out = write(tmp_path / "new.tsv", [2, 6], 5, 1), str(tmp_path / "new.thinleaf")
    for arguments, said in (
        ([model, new, "-o", model], "give another name"),
        ([model, new, "-o", out, "--depth", "3"], "leave out --depth"),
        ([model + ".small", new, "-o", out], "trainable"),
        ([str(tmp_path / "none"), new, "-o", out], "none"),
    ):
        failed = run("train", "--continue", *arguments)
        assert failed.exit_code != 0
        assert said in failed.output.replace("\n", " ")
    assert not (tmp_path / "new.thinleaf").exists()

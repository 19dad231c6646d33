"""``thinleaf predict`` with plain arguments does as the app does, without it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.data.vectors.make import HERE
from thinleaf.cli import app
from thinleaf.cli._main import _predict, plain_arguments

MODEL = str(HERE / "text-words.thinleaf")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--proba"],
        ["--top-k", "2"],
        ["--top-k=2", "--proba"],
        ["--json"],
        ["--output-format", "csv", "--top-k", "2", "-q"],
        ["--min-proba", "0.5", "--unlabelled"],
        ["--min-proba", "7"],
        ["--reject", "0.9"],
        ["--top-k", "100"],
        ["--json", "--output-format", "csv"],
    ],
)
def test_plain_arguments_give_what_the_app_gives(tmp_path, capfdbinary, arguments):
    data = tmp_path / "lines.txt"
    data.write_text("my card was stolen\n\na loan, please\n")
    command = ["predict", MODEL, str(data), *arguments]
    expected = CliRunner().invoke(app, command)
    capfdbinary.readouterr()
    plain = plain_arguments(command)
    assert plain is not None
    code = _predict(plain)
    captured = capfdbinary.readouterr()
    assert (code, captured.out) == (expected.exit_code, expected.stdout_bytes)
    assert captured.err.split(b", ")[:1] == expected.stderr_bytes.split(b", ")[:1]  # then seconds


def test_missing_files_are_said_alike(tmp_path, capfd):
    for command in (["predict", str(tmp_path / "no"), MODEL], ["predict", MODEL, str(tmp_path)]):
        expected = CliRunner().invoke(app, command)
        assert _predict(plain_arguments(command)) == expected.exit_code == 1
        assert capfd.readouterr().err == expected.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["train", "a"],
        ["predict"],
        ["predict", "--help"],
        ["predict", "a", "b", "c"],
        ["predict", "a", "--top-k"],
        ["predict", "a", "--top-k", "0"],
        ["predict", "a", "--top-k", "two"],
        ["predict", "a", "--beam", "4"],
        ["predict", "a", "--prob"],
        ["predict", "a", "-qq"],
        ["predict", "a", "--json=1"],
        ["predict", ""],
        ["predict", "a", "--output-format", "xml"],
    ],
)
def test_the_app_reads_what_is_not_plain(arguments):
    assert plain_arguments(arguments) is None

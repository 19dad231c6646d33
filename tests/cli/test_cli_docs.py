"""The page of the command line: its tables are made from the options, its commands run.

``python -m tests.cli.test_cli_docs`` writes the tables anew.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from tests.cli.test_cli import lines_of
from thinleaf.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"


def commands() -> dict[str, Any]:
    """Return all commands by their verbs: one, or that of a group and one of its own."""
    found = {}
    for verb, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", {})
        found |= {f"{verb} {name}": own for name, own in below.items()} or {verb: command}
    return found


VERBS = list(commands())

_TABLE = re.compile(r"(?m)^\| argument or option \|.*\n(?:\|.*\n)+")


def option_table(verb: str) -> str:
    """Return the arguments and options of a verb as a table."""
    command = commands()[verb]
    lines = ["| argument or option | default | |", "|---|---|---|"]
    for parameter in command.params:
        if "--help" in parameter.opts:
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar.strip("[]")]
        shown = ", ".join(f"`{name}`" for name in names)
        choices = _choices(command.callback, parameter.name)
        lines.append(f"| {shown} | {_default(parameter)} | {parameter.help}{choices} |")
    return "\n".join(lines) + "\n"


def _default(parameter) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    if parameter.default is None or parameter.required or parameter.default is False:
        return ""
    return f"`{parameter.default}`"


def _choices(verb, name: str) -> str:
    """Return what a parameter can be, if its type says so."""
    annotation = get_type_hints(verb).get(name)
    parts = [annotation, *get_args(annotation)]
    values = next((get_args(part) for part in parts if get_origin(part) is Literal), ())
    return f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""


def sections(text: str) -> dict[str, str]:
    """Return the sections of a page that are about a verb."""
    parts = re.split(r"(?m)^## `thinleaf ([a-z ]+)`\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def with_tables(text: str) -> str:
    """Return the page with the tables as they should be."""
    for verb, section in sections(text).items():
        text = text.replace(section, _TABLE.sub(lambda _, v=verb: option_table(v), section, 1))
    return text


def test_every_verb_has_a_section():
    assert list(sections(PAGE.read_text(encoding="utf-8"))) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_are_those_of_the_code(verb):
    section = sections(PAGE.read_text(encoding="utf-8"))[verb]
    assert option_table(verb) in section


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/cli.md",
        "docs/data.md",
        "docs/quickstart/cluster.md",
        "docs/quickstart/index.md",
        "docs/quickstart/text.md",
    ],
)
def test_options_that_are_named_exist(page):
    """Of each command in the text, in its line of code."""
    known = {verb: set(re.findall(r"--?[a-z][a-z-]*", option_table(verb))) for verb in VERBS}
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        for verb, rest in re.findall(rf"thinleaf ({'|'.join(VERBS)}|bench)([^`|]*)", line):
            if verb in known:
                assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", rest)) <= known[verb], line


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md", "docs/data.md"])
def test_commands_run(page, tmp_path, monkeypatch):
    """Lines of ``sh`` blocks that begin with ``thinleaf``, or pipe an ``echo`` into it."""
    monkeypatch.chdir(tmp_path)
    for name in ("train", "test"):
        Path(f"{name}.tsv").write_text("\n".join(lines_of("tsv", 120, 0)), encoding="utf-8")
        Path(f"{name}.svm").write_text("\n".join(lines_of("libsvm", 120, 0)), encoding="utf-8")
    for name in ("products", "new", "test"):
        rows = [line.split("\t") for line in lines_of("tsv", 120, 0)]
        records = [f'{i},"{text}",{label}' for i, (label, text) in enumerate(rows)]
        Path(f"{name}.csv").write_text(
            "\n".join(["sku,title,category", *records]), encoding="utf-8"
        )
    tickets = [f"{text},a {text},{i % 7},{label}" for i, (label, text) in enumerate(rows)]
    Path("tickets.csv").write_text(
        "\n".join(["title,note,amount,queue", *tickets]), encoding="utf-8"
    )
    keys = ("title", "note", "amount", "queue")
    records = [json.dumps(dict(zip(keys, line.split(","), strict=True))) for line in tickets]
    Path("new.jsonl").write_text("\n".join(records), encoding="utf-8")
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"(?m)^```sh\n((?:.*\n)*?)```$", text)
    commands = [line for block in blocks for line in block.splitlines() if "thinleaf " in line]
    commands = [line.partition("  #")[0] for line in commands if "pip " not in line]
    # they have their own tests
    commands = [line for line in commands if not re.search("thinleaf (demo|serve)", line)]
    assert len(commands) > 2
    for command in commands:
        said, _, last = command.rpartition("|")
        words = shlex.split(last)
        assert words.pop(0) == "thinleaf"
        stdin = " ".join(shlex.split(said)[1:]) + "\n" if said else None
        result = CliRunner().invoke(app, words, input=stdin)
        assert result.exit_code == 0, (command, result.output)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

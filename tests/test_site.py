"""The site is whole: names, pages, and what is made of other files. ``make docs`` builds it."""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import thinleaf
from benchmarks import when_page
from tests.check_site import problems
from thinleaf.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
outside = runpy.run_path(str(DOCS / "_ext" / "outside.py"))
PACKAGES = (
    "thinleaf",
    "thinleaf.datasets",
    "thinleaf.execution",
    "thinleaf.measuring",
    "thinleaf.measuring.metrics",
    "thinleaf.serving",
    "thinleaf.text",
    "thinleaf.torch",
)


def listed() -> dict[str, list[str]]:
    """Return the names that the page of the API lists, by module."""
    found: dict[str, list[str]] = {}
    module = ""
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.partition(":: ")[2]
        elif re.fullmatch(r"   \w+", line):
            found.setdefault(module, []).append(line.strip())
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    if package == "thinleaf.torch":
        pytest.importorskip("torch")
    public = set(import_module(package).__all__) - {"__version__", "metrics"}
    assert public == set(listed()[package])


def test_what_the_reference_lists_exists_and_has_a_docstring():
    for module, names in listed().items():
        if module == "thinleaf.torch" and not find_spec("torch"):
            continue
        for name in names:
            thing = getattr(import_module(module), name)
            plain = not (inspect.isclass(thing) or inspect.isroutine(thing))
            assert plain or thing.__doc__, (module, name)


def test_the_comparison_is_made_from_the_committed_results():
    text = when_page.PAGE.read_text(encoding="utf-8")
    assert when_page.page(text) == text, "docs/when.md: run python -m benchmarks.when_page"


def test_the_comparison_shows_where_others_are_better():
    rows = when_page.comparison().rows
    won = [row for row in rows if "**" in row[3] + row[5]]
    lost = [row for row in rows if "**" in row[7]]
    assert won
    assert lost


@pytest.mark.parametrize(
    ("source", "text", "on_the_site"),
    [
        ("docs/a.md", "[x](../benchmarks/results/y.md#z)", "[x](generated/measured/y.md#z)"),
        ("docs/a.md", "[x](../benchmarks/results)", "[x](generated/measured/index.md)"),
        ("docs/q/a.md", "![](../../benchmarks/results/y.svg)", "![](../generated/measured/y.svg)"),
        ("docs/a.md", "[x](../examples/y.py)", "[x](generated/examples/y.rst)"),
        (
            "docs/a.md",
            "[x](b.md) [y](#z) [z](https://a.b/c)",
            "[x](b.md) [y](#z) [z](https://a.b/c)",
        ),
    ],
)
def test_links_out_of_the_pages_lead_to_copies(source, text, on_the_site):
    assert outside["moved"](text, source, source) == on_the_site


def test_links_of_a_copy_lead_back():
    moved = outside["moved"]("[x](docs/guide.md)", "CHANGELOG.md", "docs/generated/changelog.md")
    assert moved == "[x](../guide.md)"


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.search(r"(?m)^version: (.*)$", citation)[1] == project["version"]
    assert thinleaf.__version__ == project["version"]


def test_extras_of_the_install_page_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (DOCS / "quickstart" / "index.md").read_text(encoding="utf-8")
    extras = re.findall(r"(?m)^\| `(\w+)` \|", text)
    internal = {"bench", "docs", "release", "test"}
    assert set(extras) == set(project["optional-dependencies"]) - internal


def test_the_first_quickstart_can_be_followed(tmp_path, monkeypatch):
    """Python blocks and commands of the page, in their order, but for the server."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "quickstart" / "text.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = []
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, "text.md", "exec"), {"__name__": "docs"})
            continue
        for line in code.splitlines():
            verb = line.split()[1]
            if line.startswith("thinleaf") and verb != "serve":
                result = CliRunner().invoke(app, shlex.split(line)[1:])
                assert result.exit_code == 0, (line, result.output)
                done.append(verb)
    assert done == ["train", "evaluate", "explain"]


def test_what_is_wrong_with_a_site_is_found(tmp_path):
    pages = {
        "good.html": '<a href="good.html#here" id="here"></a><img src="x.png"><a href="https://a.b">',
        "bad.html": '<script src="https://cdn.example/a.js"></script><a href="none.html"></a>'
        '<a href="good.html#nowhere"></a><img src="y.png"><link rel="stylesheet" href="//a/b.css">',
        "x.png": "",
        "a.css": "@font-face { src: url(https://fonts.example/a) }",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = "\n".join(problems(tmp_path))
    assert found.count("\n") == 5
    for said in ("cdn.example", "none.html", "#nowhere", "y.png", "//a/b.css", "a.css loads"):
        assert said in found
